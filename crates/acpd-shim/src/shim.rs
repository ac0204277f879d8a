//! The shim's process: one thread that waits for all events at once.

mod daemon;
mod process;

use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use acpd_sys::limits;
use acpd_sys::lock::InstanceLock;
use acpd_sys::process::{ProcessId, become_subreaper, close_inherited, drop_stdio};
use acpd_sys::signals::SignalPipe;
use acpd_sys::socket::{self, Listener, touch};
use acpd_sys::tree::Tree;
use acpd_sys::wait::{Interest, Wait};

use crate::agent::{self, Agent};
use crate::cgroup::Cgroup;
use crate::errors::Errors;
use crate::frame::{PIECE, Status, Step, VERSION};
use crate::input::Input;
use crate::launch::{How, Launch, Report};
use crate::link::Link;
use crate::output::Output;
use crate::shim_dir::{Record, ShimDir};
use crate::stop::Stop;

/// Time between two looks at the descendants, to know them before they hide, and between two
/// releases of unused memory.
const TICK: Duration = Duration::from_secs(5);
/// Shortest and longest time between two looks at a tree that ends.
const LOOK: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(50));
/// Time to wait for the exit status after a TCP agent has closed its connection.
const HOLD: Duration = Duration::from_millis(100);
/// Largest capacity of a pipe, in bytes.
const PIPE: usize = 1 << 20;

/// Runs the shim of the directory `dir`: reads the launch from stdin, starts the agent, and reports
/// the result on stdout. Returns when the agent is gone, and either the daemon has recorded the
/// exit, or the lease is over and the rest is on disk.
///
/// Must be called first in `main`: closes every descriptor except stdin, stdout and stderr.
pub fn run(dir: &Path) -> ExitCode {
    match Shim::start(ShimDir::at(dir)) {
        Ok((shim, started)) => {
            if say(&started).is_err() {
                shim.give_up();
                return ExitCode::FAILURE;
            }
            // If /dev/null cannot be opened, keep stdio; nothing reads it.
            drop_stdio().ok();
            shim.serve();
            ExitCode::SUCCESS
        }
        Err(report) => {
            say(&report).ok();
            ExitCode::FAILURE
        }
    }
}

fn say(report: &Report) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(report.to_line().as_bytes())?;
    stdout.flush()
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ready {
    Signals,
    Incoming,
    Candidate,
    Link,
    Stdin,
    Stdout,
    Stderr(usize),
}

struct Shim {
    dir: ShimDir,
    lock: InstanceLock,
    signals: SignalPipe,
    incoming: Listener,
    socket: PathBuf,
    agent: Agent,
    /// The agent is a command ([`How::Command`]).
    is_command: bool,
    tree: Option<Tree>,
    /// Descendants in the directory's record.
    recorded: Vec<ProcessId>,
    cgroup: Option<Cgroup>,
    input: Input,
    output: Output,
    errors: Errors,
    stop: Stop,
    link: Option<Link>,
    /// A connection that has not sent its hello.
    candidate: Option<Link>,
    lease: Option<Duration>,
    alone_since: Instant,
    /// Set by a signal to exit.
    leaving: bool,
    /// The daemon does not know this agent. Its exit is not recorded, because a daemon that finds
    /// the directory would take that for the end of a run.
    start_unreported: bool,
    exit: Option<Status>,
    /// Until then a closed connection is not announced: the process may exit because of it, and its
    /// exit status says more.
    hold_exit_until: Option<Instant>,
    /// Bytes still read after the leader's end, at most a full pipe; descendants may write more.
    left_to_read: usize,
    /// All output of the leader was read. Only a command's processes add more.
    sealed: bool,
    /// End of the leader's output, once it is sealed.
    leader_output: Option<u64>,
    /// Nothing of the agent runs.
    gone: bool,
    acknowledged: bool,
    /// Output or exit could not be written to the disk; retried at the next tick.
    keep_failed: bool,
    has_more_frames: bool,
    tick: Instant,
    /// Unused memory is freed before the next wait.
    trim_memory: bool,
    /// Time of the next look at a tree that ends, and the pause after it.
    look_at: Instant,
    look: Duration,
    scratch: Vec<u8>,
}

impl Shim {
    fn start(shim_dir: ShimDir) -> Result<(Shim, Report), Report> {
        let shim = |what: &str, error: &dyn std::fmt::Display| {
            Report::Shim(format!("cannot {what}: {error}"))
        };
        set_up_process();
        let mut signals = SignalPipe::open().map_err(|error| shim("catch signals", &error))?;
        let launch =
            Launch::receive(io::stdin().lock()).map_err(|error| shim("read the launch", &error))?;
        let lock = shim_dir.lock().map_err(|error| shim("lock its directory", &error))?;
        let own = ProcessId::of(std::process::id())
            .ok_or_else(|| shim("start", &"its own start time cannot be read"))?;
        // A daemon that finds this shim dead has to know the socket, to remove it.
        shim_dir.write_socket(&launch.socket).map_err(|error| shim("record the start", &error))?;
        let incoming = Listener::bind(&launch.socket).map_err(|error| shim("listen", &error))?;
        let cgroup = Cgroup::create(&launch.marker);
        let mut errors = Errors::default();
        let agent = agent::start(&launch.how, &launch.marker, cgroup.as_ref(), &mut errors)
            .inspect_err(|_| {
                cgroup.iter().for_each(Cgroup::remove);
                socket::remove(&launch.socket);
            })?;
        let watched = agent.leader.map_or(Ok(()), |leader| signals.watch_child(leader.pid));
        let record = Record {
            version: VERSION,
            shim: own,
            agent: agent.leader,
            socket: launch.socket.clone(),
            cgroup: cgroup.as_ref().map(|cgroup| cgroup.dir.clone()),
        };
        let started = Report::Ok(own, agent.leader);
        let now = Instant::now();
        let mut shim_process = Shim {
            tree: agent.leader.map(|leader| Tree::below_us(&launch.marker, leader)),
            output: Output::new(shim_dir.clone(), launch.memory, launch.spool),
            dir: shim_dir,
            lock,
            signals,
            incoming,
            socket: launch.socket,
            agent,
            is_command: matches!(launch.how, How::Command { .. }),
            recorded: Vec::new(),
            cgroup,
            input: Input::new(),
            errors,
            stop: Stop::new(launch.ladder),
            link: None,
            candidate: None,
            lease: launch.lease,
            alone_since: now,
            leaving: false,
            start_unreported: false,
            exit: None,
            hold_exit_until: None,
            left_to_read: PIPE,
            sealed: false,
            leader_output: None,
            gone: false,
            acknowledged: false,
            keep_failed: false,
            has_more_frames: false,
            tick: now + TICK,
            trim_memory: true,
            look_at: now,
            look: LOOK.0,
            scratch: Vec::new(),
        };
        let recorded = watched.map_err(|error| shim("watch the agent", &error)).and_then(|()| {
            let written = shim_process.dir.write_record(&record, !shim_process.is_command);
            written.map_err(|error| shim("record the start", &error))
        });
        if let Err(report) = recorded {
            shim_process.give_up();
            return Err(report);
        }
        shim_process.look_around();
        Ok((shim_process, started))
    }

    fn give_up(mut self) {
        self.start_unreported = true;
        self.stop.order(Step::Kill, Instant::now());
        self.take_step(Step::Kill);
        while !self.gone {
            for ready in self.wait() {
                self.work(ready);
            }
            self.pass_time(Instant::now());
        }
        self.leave();
    }

    fn serve(mut self) {
        loop {
            let now = Instant::now();
            self.pass_time(now);
            self.drain();
            self.talk();
            if self.acknowledged {
                return self.leave();
            }
            if self.gone && self.link.is_none() && self.lease_is_over(now) && !self.keep_failed {
                if self.is_command {
                    return self.leave();
                }
                // A shim that has to exit does so even if the disk refuses the data.
                if self.keep_on_disk() || self.leaving {
                    return self.end();
                }
                self.keep_failed = true;
            }
            for ready in self.wait() {
                self.work(ready);
            }
        }
    }

    /// Writes everything that is not recorded to the directory, for a later daemon. Returns `false`
    /// if the disk refuses it.
    fn keep_on_disk(&mut self) -> bool {
        // Exceeds every limit; it would be lost otherwise.
        while !self.sealed {
            self.read_rest(PIECE);
        }
        let exit = self.exit.is_none_or(|status| self.dir.write_exit(status, true).is_ok());
        // Both are tried, because each is useful alone.
        self.output.keep().is_ok() && exit
    }

    fn end(&self) {
        self.cgroup.iter().for_each(Cgroup::remove);
        socket::remove(&self.socket);
    }

    /// Exits and leaves nothing behind.
    fn leave(self) {
        self.end();
        let Shim { dir, lock, output, .. } = self;
        // Windows removes no open file.
        drop((lock, output));
        dir.remove().ok();
    }

    /// Returns whether output is read only to get rid of it.
    fn drops_output(&self) -> bool {
        self.sealed && !self.is_command
    }

    fn lease_is_over(&self, now: Instant) -> bool {
        self.leaving
            || self.lease.is_some_and(|lease| now.duration_since(self.alone_since) >= lease)
    }

    fn pass_time(&mut self, now: Instant) {
        if self.leaving || (self.link.is_none() && self.lease_is_over(now)) {
            self.stop.run(now);
        }
        if !self.gone {
            while let Some(step) = self.stop.step(now, self.link.is_some()) {
                self.take_step(step);
            }
        }
        if self.exit.is_some() && now >= self.look_at {
            self.look_at = now + self.look;
            // Processes that a command has left may run for hours.
            let is_left = self.is_command && !self.stop.is_begun();
            self.look = (self.look * 2).min(if is_left { TICK } else { LOOK.1 });
            self.notice_gone();
        }
        if now >= self.tick {
            self.tick = now + TICK;
            self.keep_failed = false;
            self.look_around();
            self.notice_children();
            self.check_socket();
            // Without its directory no daemon finds this shim again.
            self.leaving |= self.link.is_none() && !self.dir.path().exists();
            self.give_back();
        }
    }

    /// Returns the time of the next work that no event reports.
    fn next_wake(&self) -> Instant {
        if self.has_more_frames {
            return Instant::now();
        }
        let mut next = self.tick;
        let linked = self.link.is_some();
        if !self.gone {
            next = self.stop.due(linked).map_or(next, |due| due.min(next));
            if self.exit.is_some() {
                next = next.min(self.look_at);
            }
        }
        let lease = self.lease.filter(|_| !linked);
        let end = lease.and_then(|lease| self.alone_since.checked_add(lease));
        // An expired lease wakes the loop only if it begins the stop or can end the shim now.
        let can_act = !self.stop.is_begun() || (self.gone && !self.keep_failed);
        let wakes = |end: &Instant| can_act || *end > Instant::now();
        end.filter(wakes).map_or(next, |end| next.min(end))
    }

    fn wait(&mut self) -> Vec<Ready> {
        let room = self.drops_output() || self.output.room() > 0;
        let wake = self.next_wake();

        let mut wait = Wait::empty();
        wait.add(&mut self.signals, Interest::Read, Ready::Signals);
        wait.add(&mut self.incoming, Interest::Read, Ready::Incoming);
        let links = [(&mut self.candidate, Ready::Candidate), (&mut self.link, Ready::Link)];
        for (link, what) in links {
            if let Some((end, interest)) = link.as_mut().map(Link::source) {
                wait.add(end, interest, what);
            }
        }
        if let Some(stdin) = self.agent.stdin.as_mut().filter(|_| !self.input.is_empty()) {
            wait.add(stdin, Interest::Write, Ready::Stdin);
        }
        if let Some(stdout) = self.agent.stdout.as_mut().filter(|_| room) {
            wait.add(stdout, Interest::Read, Ready::Stdout);
        }
        for (index, stderr) in self.agent.stderr.iter_mut().enumerate() {
            wait.add(stderr, Interest::Read, Ready::Stderr(index));
        }
        if std::mem::take(&mut self.trim_memory) {
            // Right before the wait, so that only the wait itself allocates afterwards.
            limits::give_back_unused();
        }
        // In reverse order, so that the removal of a closed stderr does not move the indexes of
        // others.
        wait.until(wake)
    }

    fn work(&mut self, ready: Ready) {
        match ready {
            Ready::Signals => {
                let seen = self.signals.take();
                self.leaving |= seen.stop;
                if seen.child {
                    self.look_soon();
                    self.notice_exit();
                    self.notice_children();
                }
            }
            Ready::Incoming => self.accept(),
            Ready::Candidate => {
                let Some(link) = self.candidate.take() else { return };
                match self.hear(link) {
                    Some(link) if link.announced.is_some() => self.link = Some(link),
                    waiting => self.candidate = waiting,
                }
            }
            Ready::Link => {
                let Some(link) = self.link.take() else { return };
                match self.hear(link) {
                    Some(link) => self.link = Some(link),
                    None => self.alone_since = Instant::now(),
                }
            }
            Ready::Stdin => self.feed(),
            Ready::Stdout if self.drops_output() => self.read_stdout(PIECE),
            Ready::Stdout => {
                let room = self.output.room().min(PIECE);
                if self.exit.is_some() && !self.sealed {
                    self.read_rest(room);
                } else {
                    self.read_stdout(room);
                }
            }
            Ready::Stderr(index) => {
                self.read_stderr(index);
            }
        }
    }

    /// Touches the socket, because cleaners of temporary directories remove old ones; binds it
    /// again if it is gone.
    fn check_socket(&mut self) {
        if socket::file_id(&self.socket).is_some() {
            touch(&self.socket).ok();
        } else if let Ok(incoming) = Listener::bind(&self.socket) {
            self.incoming = incoming;
        }
    }

    fn give_back(&mut self) {
        self.output.give_back();
        self.input.give_back();
        for link in self.link.iter_mut().chain(&mut self.candidate) {
            link.give_back();
        }
        self.scratch = Vec::new();
        self.trim_memory = true;
    }
}

/// Best effort: the shim works without any of this.
fn set_up_process() {
    close_inherited().ok();
    become_subreaper().ok();
    limits::no_core_dumps().ok();
    limits::private_files();
    limits::return_buffers(limits::SMALL_BUFFER);
}

/// Returns the buffer for reads, which is allocated on first use.
fn scratch_buffer(scratch: &mut Vec<u8>) -> &mut [u8] {
    if scratch.is_empty() {
        *scratch = vec![0; PIECE];
    }
    scratch
}
