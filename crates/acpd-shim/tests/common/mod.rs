//! A host to test, and a daemon of a few lines.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use acpd_shim::frame::{Hello, Inbox, Stage, Status, ToDaemon, ToShim, VERSION};
use acpd_shim::launch::{How, LadderTimes, Launch, Program, StartError, Started, start};
use acpd_shim::orphans::Orphans;
use acpd_shim::shim_dir::ShimDir;
use acpd_sys::paths::Paths;
use acpd_sys::process::{ExitKind, Liveness, ProcessId, StopSignal, reap, signal_one, wait_leader};
use acpd_sys::socket::{Stream, connect};
use tempfile::TempDir;

/// Shims that this process has started.
static HOSTS: AtomicU64 = AtomicU64::new(1);
/// Longer than any step takes: reaching it is a failure.
const LONG: Duration = Duration::from_mins(1);

/// A shim, and what it was told.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) shim_dir: ShimDir,
    pub(crate) launch: Launch,
    pub(crate) started: Started,
    _state: TempDir,
    /// Waits for the end of the shim, which keeps its pid until then.
    waiter: Mutex<Option<JoinHandle<io::Result<ExitKind>>>>,
}

/// Arguments of this program.
pub(crate) fn path() -> String {
    std::env::var("PATH").unwrap()
}

pub(crate) fn program(program: &str, args: &[&str]) -> Program {
    Program {
        program: program.into(),
        args: args.iter().map(Into::into).collect(),
        env: vec![("PATH".into(), path().into())],
        cwd: "/".into(),
    }
}

pub(crate) fn own() -> String {
    std::env::current_exe().unwrap().into_os_string().into_string().unwrap()
}

/// An agent that does what the [script](super::script) says.
pub(crate) fn agent(script: &str) -> How {
    How::Stdio(program(&own(), &["agent", script]))
}

/// The end of a process that was killed.
pub(crate) const KILLED: ExitKind =
    if cfg!(windows) { ExitKind::Code(1) } else { ExitKind::Signal(9) };

pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    listener.local_addr().unwrap().port()
}

/// The launch of a shim whose files are in `state`.
pub(crate) fn launch(how: How, state: &Path) -> Launch {
    // Leftovers of an agent are found by its mark, and tests run side by side.
    let marker = format!("{}-{}", std::process::id(), HOSTS.fetch_add(1, Ordering::Relaxed));
    let place = |name: &str| state.join(name);
    let paths = Paths { runtime: place("run"), state: place("state"), config: place("c") };
    let hour = Duration::from_hours(1);
    Launch {
        how,
        socket: paths.shim_socket(&marker),
        marker,
        memory: 4 << 20,
        spool: 256 << 20,
        ladder: LadderTimes { eof: hour, term: hour, leftovers: Duration::from_millis(1) },
        lease: None,
    }
}

/// This program as the shim of this directory.
pub(crate) fn shim(shim_dir: &ShimDir) -> Command {
    let mut command = Command::new(own());
    command.arg("shim").arg(shim_dir.path());
    command
}

/// Looks again and again, with a moment for others in between.
pub(crate) fn wait_until(mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < end, "it does not come");
        std::thread::sleep(Duration::from_millis(1));
    }
}

impl Host {
    pub(crate) fn start(how: How) -> Host {
        Host::start_with(how, |_| {})
    }

    /// Starts a shim, and greets it as its first daemon.
    pub(crate) fn greeted(how: How) -> (Host, Daemon) {
        let host = Host::start(how);
        let mut daemon = host.connect();
        daemon.hello(0);
        (host, daemon)
    }

    pub(crate) fn start_with(how: How, change: impl FnOnce(&mut Launch)) -> Host {
        Host::try_start(how, change).unwrap()
    }

    pub(crate) fn try_start(
        how: How,
        change: impl FnOnce(&mut Launch),
    ) -> Result<Host, StartError> {
        let state = TempDir::new().unwrap();
        let mut launch = launch(how, state.path());
        let shim_dir = ShimDir::create(state.path(), &launch.marker).unwrap();
        change(&mut launch);
        let started = start(shim(&shim_dir), &launch, LONG)?;
        let waiter = thread::spawn(move || wait_leader(started.shim.pid));
        let waiter = Mutex::new(Some(waiter));
        Ok(Host { shim_dir, launch, started, _state: state, waiter })
    }

    pub(crate) fn connect(&self) -> Daemon {
        let stream = connect(&self.launch.socket, LONG).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        Daemon { stream, inbox: Inbox::default(), written: 0 }
    }

    /// Kills the shim; how it ended.
    pub(crate) fn kill(&self) -> ExitKind {
        signal_one(self.started.shim, StopSignal::Kill);
        self.exit()
    }

    /// Waits for the end of the shim.
    pub(crate) fn exit(&self) -> ExitKind {
        let exit =
            self.waiter.lock().unwrap().take().expect("called once").join().unwrap().unwrap();
        // There are no zombies on Windows.
        reap(self.started.shim.pid).ok();
        exit
    }

    /// The shim ends, and nothing of it stays.
    pub(crate) fn assert_clean(&self) {
        // A sanitizer that has found something lets it end in another way.
        assert_eq!(self.exit(), ExitKind::Code(0));
        assert!(!self.shim_dir.path().exists());
        assert!(!self.launch.socket.exists());
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // After a test that failed in the middle: the shim, then what it leaves.
        if self.started.shim.is_alive() == Liveness::Alive {
            self.kill();
        }
        let mut orphans = Orphans::of(&self.shim_dir);
        while !orphans.is_gone() {
            orphans.signal(StopSignal::Kill);
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// Frames that a daemon has read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    Hello(Hello),
    Out(u64, Vec<u8>),
    Err(Vec<u8>),
    Credit(u32),
    Written(u64),
    Exit(Stage, Status, Vec<u8>),
    /// The connection was closed.
    Lost,
}

pub(crate) struct Daemon {
    stream: Stream,
    inbox: Inbox,
    /// The last chunk that was said to be written.
    written: u64,
}

impl Daemon {
    pub(crate) fn say(&mut self, frame: &ToShim<'_>) {
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        self.say_bytes(&bytes);
    }

    pub(crate) fn say_bytes(&mut self, bytes: &[u8]) {
        // A shim that has hung up is heard of when something is read.
        (&self.stream).write_all(bytes).ok();
    }

    pub(crate) fn next(&mut self) -> Heard {
        loop {
            match self.inbox.next_frame().unwrap() {
                Some(ToDaemon::Hello(hello)) => return Heard::Hello(hello),
                Some(ToDaemon::Out { offset, bytes }) => return Heard::Out(offset, bytes.to_vec()),
                Some(ToDaemon::Err { bytes }) => return Heard::Err(bytes.to_vec()),
                Some(ToDaemon::Credit { bytes }) => return Heard::Credit(bytes),
                Some(ToDaemon::Written { chunk }) => {
                    self.written = chunk;
                    return Heard::Written(chunk);
                }
                Some(ToDaemon::Exit { stage, status, stderr }) => {
                    return Heard::Exit(stage, status, stderr.to_vec());
                }
                None => {}
            }
            let mut chunk = [0; 8192];
            match (&self.stream).read(&mut chunk) {
                Ok(0) => return Heard::Lost,
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {
                    return Heard::Lost;
                }
                read => self.inbox.push(&chunk[..read.unwrap()]),
            }
        }
    }

    pub(crate) fn hello(&mut self, from: u64) -> Hello {
        self.say(&ToShim::Hello { version: VERSION, from });
        let Heard::Hello(hello) = self.next() else { panic!("no hello") };
        hello
    }

    pub(crate) fn write_chunk(&mut self, chunk: u64, bytes: &[u8]) {
        self.say(&ToShim::In { chunk, at: 0, last: true, bytes });
    }

    /// Skips everything before this.
    pub(crate) fn wait_for(&mut self, wanted: &Heard) {
        loop {
            let heard = self.next();
            if heard == *wanted {
                return;
            }
            assert_ne!(heard, Heard::Lost);
        }
    }

    /// Skips everything until this chunk is written.
    pub(crate) fn wait_written(&mut self, chunk: u64) {
        while self.written < chunk {
            assert_ne!(self.next(), Heard::Lost);
        }
    }

    /// Reads `count` bytes of output, without gaps.
    fn read_exactly(&mut self, from: u64, count: usize) -> Vec<u8> {
        let mut found = Vec::new();
        while found.len() < count {
            match self.next() {
                Heard::Out(offset, bytes) => {
                    assert_eq!(offset, from + found.len() as u64);
                    found.extend(bytes);
                }
                heard => assert_ne!(heard, Heard::Lost),
            }
        }
        found
    }

    pub(crate) fn read_output(&mut self, from: u64, expected: &[u8]) {
        assert_eq!(self.read_exactly(from, expected.len()), expected);
    }

    /// Reads all output up to these words.
    pub(crate) fn read_up_to(&mut self, last: &str) -> String {
        let mut text = String::new();
        while !text.ends_with(last) {
            let more = self.read_exactly(text.len() as u64, 1);
            text.push_str(std::str::from_utf8(&more).unwrap());
        }
        text
    }

    /// Reads `count` lines with a pid each.
    pub(crate) fn read_pids(&mut self, count: usize) -> Vec<ProcessId> {
        let mut text = String::new();
        while text.matches('\n').count() < count {
            let more = self.read_exactly(text.len() as u64, 1);
            text.push_str(std::str::from_utf8(&more).unwrap());
        }
        text.lines().map(|pid| ProcessId::of(pid.trim().parse().unwrap()).unwrap()).collect()
    }

    pub(crate) fn exit(&mut self, wanted: Stage) -> Status {
        loop {
            match self.next() {
                Heard::Exit(stage, status, _) if stage == wanted => return status,
                heard => assert_ne!(heard, Heard::Lost),
            }
        }
    }

    /// Waits until nothing is left of the agent, and lets the shim go.
    pub(crate) fn end(&mut self, expected: Status) {
        assert_eq!(self.exit(Stage::Gone), expected);
        self.say(&ToShim::Exit);
        self.wait_for(&Heard::Lost);
    }
}
