//! A connection that outlives the daemon's process.
//!
//! A thread of its own writes, so that a daemon that reads slowly never blocks reading; the caller of
//! [`LinkReader::recv`] reads, and connects again when the connection is lost.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use acp_wire::{Body, ErrorObject, Framer};
use acpd_api::Untrusted;
use acpd_sys::socket::{Stream, hang_up, is_left};
use bytes::Bytes;
use thiserror::Error;

use crate::connect::Options;
use crate::connection::connect;
use crate::error::{ConnectError, NotAnswering, error_data};
use crate::resume::{Resumption, Unresumable, Verdict, unnumbered};
use crate::silence::{Doubt, QUIET};
use crate::stream::{is_timeout, read_block, write_line};

/// The usual patience of a link: how long a daemon may stay away while the user waits for it. While the
/// user waits for nothing, it may stay away for any time.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Bytes that may wait to be written before [`LinkWriter::send`] blocks.
const LIMIT: usize = 8 << 20;
/// Bytes asked for in one read.
const BLOCK: usize = 64 * 1024;
/// The second and the longest pause between two attempts to connect, and the longest time without a
/// look at the clock while a daemon does not answer.
const FIRST_PAUSE: Duration = Duration::from_millis(20);
const LAST_PAUSE: Duration = Duration::from_secs(1);
/// How often the link checks whether the user waits for the daemon's first line.
const FIRST_LOOK: Duration = Duration::from_millis(500);
/// After a connection that held this long, the next attempt begins at once.
const GOOD: Duration = Duration::from_secs(5);
/// How long a daemon may take to be replaced by another one before the link starts one.
const SPAWN_AFTER: Duration = Duration::from_millis(100);
/// The link does not start daemons more often than this.
const SPAWN_PAUSE: Duration = Duration::from_millis(500);

/// An event from the daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Incoming {
    /// A line, without its newline.
    Line(Bytes),
    /// The connection was lost and is made again.
    Lost,
    /// A person has stopped the daemon, and the connection has nothing to take up again. The link starts no
    /// daemon; it comes back when there is one.
    Stopped,
    /// The connection is there again; nothing was lost.
    Back,
    /// The daemon closed the connection, and it cannot be taken up again.
    Closed,
}

/// Why a connection that outlives the daemon has ended.
#[derive(Debug, Error)]
pub enum LinkError {
    /// The daemon did not come back in time.
    #[error("acpd has not come back in {seconds} s")]
    GaveUp {
        /// How long it had.
        seconds: u64,
        /// The error of the last attempt.
        source: ConnectError,
    },
    /// The daemon came back, but our state with it is gone.
    #[error(transparent)]
    Unresumable(#[from] Unresumable),
    /// The daemon is there and has not said a word.
    #[error(transparent)]
    NotAnswering(#[from] NotAnswering),
    /// The daemon closed the connection and said why.
    #[error("{}", .0.message)]
    LetGo(ErrorObject),
    /// A person has stopped the daemon.
    #[error("acpd was stopped")]
    Stopped,
    /// The connection cannot be read.
    #[error("the connection to acpd broke")]
    Io(#[from] io::Error),
}

impl LinkError {
    /// The way out, as a sentence without its period.
    pub fn hint(&self) -> Option<String> {
        match self {
            // The user may start it, even where we do not.
            LinkError::GaveUp { source: ConnectError::NotRunning { .. }, .. }
            | LinkError::Stopped => Some("start it with `acpctl daemon start`".to_owned()),
            LinkError::GaveUp { source, .. } => source.hint(),
            LinkError::Unresumable(reason) => Some(reason.hint().to_owned()),
            LinkError::NotAnswering(silent) => Some(silent.hint()),
            LinkError::LetGo(error) => error_data(error)?.hint.map(Untrusted::into_raw),
            LinkError::Io(_) => None,
        }
    }
}

/// Connects, and returns the two directions, for two threads.
///
/// When the connection is lost, the link connects again. It tries for up to `patience` after the user
/// begins to wait for something, and for any time before that; zero means never. The link itself tells the
/// daemon what it needs for that, and the user gets each line once. This holds from the user's `initialize`
/// on; before it, the link sends unanswered requests again.
pub fn link(
    options: Options,
    patience: Duration,
) -> Result<(LinkReader, LinkWriter), ConnectError> {
    begin(&options.clone(), options, patience)
}

/// Connects like [`link`] to a daemon that runs. One that has died is replaced; one that was stopped stays so.
pub fn rejoin(
    options: Options,
    patience: Duration,
) -> Result<(LinkReader, LinkWriter), ConnectError> {
    let spawn = options.spawn && is_left(&options.paths.socket());
    begin(&Options { spawn, ..options.clone() }, options, patience)
}

fn begin(
    first: &Options,
    options: Options,
    patience: Duration,
) -> Result<(LinkReader, LinkWriter), ConnectError> {
    // A link lives for hours; a long line must not cost its memory for as long.
    acpd_sys::limits::return_large_buffers();
    let token = token()?;
    let connection = connect(first)?;
    let is_bound = connection.is_bound();
    let stream = connection.into_stream();
    let inner = Inner {
        memory: Resumption::new(token),
        stream: Some(Arc::clone(&stream)),
        out: VecDeque::new(),
        waiting: 0,
        is_ending: false,
        ended: false,
    };
    let shared = Arc::new(Shared { inner: Mutex::new(inner), changed: Condvar::new() });
    let writes = Arc::clone(&shared);
    thread::Builder::new()
        .name("writer".to_owned())
        .spawn(move || writes.write())
        .map_err(ConnectError::System)?;
    let reader = LinkReader {
        shared: Arc::clone(&shared),
        options,
        patience,
        stream: Some(stream),
        framer: Framer::new(usize::MAX),
        block: vec![0; BLOCK].into(),
        ready: VecDeque::new(),
        doubt: Some(Doubt::new(QUIET)),
        away: None,
        waiting: None,
        pause: Duration::ZERO,
        good_since: Instant::now(),
        spawned: None,
        is_bound,
    };
    reader.limit_reads(Some(FIRST_LOOK));
    Ok((reader, LinkWriter { shared }))
}

/// 128 random bits in hexadecimal.
fn token() -> Result<String, ConnectError> {
    let mut bits = [0; 16];
    getrandom::fill(&mut bits).map_err(|error| ConnectError::System(error.into()))?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bits)))
}

#[derive(Debug)]
struct Shared {
    inner: Mutex<Inner>,
    changed: Condvar,
}

#[derive(Debug)]
struct Inner {
    memory: Resumption,
    stream: Option<Arc<Stream>>,
    /// To be written to `stream`.
    out: VecDeque<Bytes>,
    /// Bytes of `out` and of what is just being written.
    waiting: usize,
    /// As soon as everything is written, it ends.
    is_ending: bool,
    ended: bool,
}

impl Inner {
    /// Passes a line to the memory and counts what it adds to the queue.
    fn with<T>(&mut self, step: impl FnOnce(&mut Resumption, &mut VecDeque<Bytes>) -> T) -> T {
        let old = self.out.len();
        let result = step(&mut self.memory, &mut self.out);
        self.waiting += self.out.iter().skip(old).map(Bytes::len).sum::<usize>();
        result
    }

    fn is_writing_to(&self, stream: &Arc<Stream>) -> bool {
        self.stream.as_ref().is_some_and(|own| Arc::ptr_eq(own, stream))
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, inner: MutexGuard<'a, Inner>) -> MutexGuard<'a, Inner> {
        self.changed.wait(inner).unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) {
        let mut inner = self.lock();
        while !inner.ended {
            let stream = inner.stream.clone().filter(|_| !inner.out.is_empty());
            let Some(stream) = stream else {
                if inner.is_ending {
                    inner.ended = true;
                    inner.stream.iter().for_each(|stream| hang_up(stream));
                    self.changed.notify_all();
                    return;
                }
                inner = self.wait(inner);
                continue;
            };
            let lines = std::mem::take(&mut inner.out);
            drop(inner);
            let written = lines.iter().try_for_each(|line| write_line(&stream, line));
            inner = self.lock();
            // The memory keeps lines that were written in vain to an earlier connection.
            if inner.is_writing_to(&stream) {
                if written.is_ok() {
                    inner.waiting -= lines.iter().map(Bytes::len).sum::<usize>();
                } else {
                    inner.stream = None;
                }
            }
            self.changed.notify_all();
        }
    }
}

/// The sending half of a link. Clones write to the same connection.
#[derive(Debug, Clone)]
pub struct LinkWriter {
    shared: Arc<Shared>,
}

impl LinkWriter {
    /// Sends a line without its newline, or keeps it for as long as there is no connection. Blocks
    /// while more than 8 MiB wait already. `false`: the connection has ended for good.
    pub fn send(&self, line: Bytes) -> bool {
        let mut inner = self.shared.lock();
        while inner.waiting + inner.memory.held_bytes() > LIMIT && !inner.ended {
            inner = self.shared.wait(inner);
        }
        if inner.ended {
            return false;
        }
        inner.with(|memory, out| memory.send(line, out));
        self.shared.changed.notify_all();
        true
    }

    /// Ends the link on purpose: tells acpd that the client will not come back, so that acpd forgets it at once.
    /// It is the last line that is sent; nothing is received after it.
    pub fn leave(&self) {
        let mut inner = self.shared.lock();
        inner.with(Resumption::leave);
        self.shared.changed.notify_all();
    }

    /// Like [`leave`](LinkWriter::leave), for a program that continues: the connection ends, too, when
    /// everything is written, and [`LinkReader::recv`] returns that it is closed.
    pub fn end(&self) {
        let mut inner = self.shared.lock();
        inner.with(Resumption::leave);
        inner.is_ending = true;
        self.shared.changed.notify_all();
    }

    /// Waits until everything is written, for up to `deadline`: for the end of a process.
    pub fn flush(&self, deadline: Duration) {
        let is_full =
            |inner: &mut Inner| !inner.ended && inner.waiting + inner.memory.held_bytes() > 0;
        drop(self.shared.changed.wait_timeout_while(self.shared.lock(), deadline, is_full));
    }
}

/// The receiving half of a link. Dropping it ends the connection.
#[derive(Debug)]
pub struct LinkReader {
    shared: Arc<Shared>,
    options: Options,
    patience: Duration,
    /// None while there is no connection.
    stream: Option<Arc<Stream>>,
    framer: Framer,
    block: Box<[u8]>,
    ready: VecDeque<Bytes>,
    /// Until the daemon has said a word.
    doubt: Option<Doubt>,
    /// When the connection was lost, until acpd knows us again.
    away: Option<Instant>,
    /// Since when the user waits for its first line or its return.
    waiting: Option<Instant>,
    pause: Duration,
    good_since: Instant,
    /// When we last started a daemon.
    spawned: Option<Instant>,
    is_bound: bool,
}

impl LinkReader {
    /// As [`Connection::is_bound`](crate::Connection::is_bound), of the first connection.
    pub fn is_bound(&self) -> bool {
        self.is_bound
    }

    /// The next thing that happens.
    pub fn recv(&mut self) -> Result<Incoming, LinkError> {
        loop {
            if let Some(line) = self.ready.pop_front() {
                return Ok(Incoming::Line(line));
            }
            let alive = match self.stream.clone() {
                None if self.shared.lock().ended => return Ok(Incoming::Closed),
                None => {
                    self.come_back()?;
                    true
                }
                Some(stream) => match read_block(&stream, &mut self.block) {
                    Ok(0) => false,
                    Ok(count) => {
                        self.has_spoken();
                        self.framer.push(&self.block[..count]);
                        self.take_lines()?
                    }
                    Err(error) if is_timeout(&error) && self.doubt.is_some() => {
                        self.await_first_word()?;
                        true
                    }
                    Err(error) if is_timeout(&error) && self.has_waited_enough() => {
                        let silent = NotAnswering::now(&self.options.paths);
                        return Err(self.give_up(silent.into()));
                    }
                    Err(error) if is_timeout(&error) => true,
                    Err(error) => return Err(error.into()),
                },
            };
            let news = if alive { self.settled() } else { self.lost()? };
            if let Some(news) = news {
                return Ok(news);
            }
        }
    }

    /// Returns whether the next [`recv`](LinkReader::recv) has a line at once.
    pub fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Everything that has come. `false`: acpd does not take us back just now.
    fn take_lines(&mut self) -> Result<bool, LinkError> {
        let mut guard = self.shared.lock();
        let inner = &mut *guard;
        let before = inner.waiting;
        while let Some(frame) = self.framer.next_frame() {
            let Body::Line(line) = frame.body else { continue };
            match inner.with(|memory, out| memory.receive(&line, out))? {
                Verdict::Pass => self.ready.push_back(line),
                Verdict::Unnumber => self.ready.push_back(unnumbered(&line)),
                Verdict::Swallow => {}
                Verdict::Refused => return Ok(false),
            }
        }
        if inner.waiting != before {
            self.shared.changed.notify_all();
        }
        Ok(true)
    }

    /// The daemon has said something: from now on it may be silent for as long as it has nothing to say.
    fn has_spoken(&mut self) {
        if self.doubt.take().is_some() {
            self.waiting = None;
            self.limit_reads(None);
        }
    }

    /// Checks that a daemon that has sent nothing so far is there, if the client waits for it.
    fn await_first_word(&mut self) -> Result<(), LinkError> {
        if !self.shared.lock().memory.waits() {
            return Ok(());
        }
        let since = *self.waiting.get_or_insert_with(Instant::now);
        match &mut self.doubt {
            Some(doubt) if since.elapsed() >= doubt.after() => Ok(doubt.check(&self.options)?),
            _ => Ok(()),
        }
    }

    /// Returns [`Incoming::Back`] if acpd has just taken us back.
    fn settled(&mut self) -> Option<Incoming> {
        if self.away.is_none() || !self.shared.lock().memory.is_up() {
            return None;
        }
        self.away = None;
        self.waiting = None;
        self.limit_reads(None);
        self.good_since = Instant::now();
        Some(Incoming::Back)
    }

    /// The connection is gone. Returns what to tell the user, unless the user knows.
    fn lost(&mut self) -> Result<Option<Incoming>, LinkError> {
        let mut inner = self.shared.lock();
        inner.stream = None;
        inner.out.clear();
        inner.waiting = 0;
        let resumable = inner.memory.lost() && !self.patience.is_zero();
        inner.ended = !resumable || inner.memory.is_turned_away();
        let told = inner.memory.refusal().filter(|_| inner.ended).cloned();
        let (has_ended, is_stopped) = (inner.ended, inner.memory.is_stopped());
        self.shared.changed.notify_all();
        drop(inner);
        if let Some(told) = told {
            return Err(LinkError::LetGo(told));
        }
        if has_ended && is_stopped {
            return Err(LinkError::Stopped);
        }
        if has_ended {
            return Ok(Some(Incoming::Closed));
        }
        self.stream = None;
        // From here on the link waits for the daemon's return, not for its first line.
        self.doubt = None;
        // A line that was cut off will come again.
        self.framer = Framer::new(usize::MAX);
        if self.away.is_some() {
            return Ok(None);
        }
        if self.good_since.elapsed() > GOOD {
            self.pause = Duration::ZERO;
        }
        self.away = Some(Instant::now());
        Ok(Some(if is_stopped { Incoming::Stopped } else { Incoming::Lost }))
    }

    /// Connects, and says the first words.
    fn come_back(&mut self) -> Result<(), LinkError> {
        let reason = self.shared.lock().memory.refusal().map(|refusal| refusal.message.clone());
        let mut last = ConnectError::NotTakenBack { reason };
        let mut has_spawned = false;
        while !self.has_waited_enough() {
            self.rest();
            if self.shared.lock().ended {
                return Ok(());
            }
            let spawn = self.may_spawn();
            if spawn {
                self.spawned = Some(Instant::now());
            }
            match connect(&Options { spawn, ..self.options.clone() }) {
                Ok(connection) => {
                    self.install(connection.into_stream());
                    return Ok(());
                }
                // Why the one that we started did not come up says more.
                Err(ConnectError::NotRunning { .. }) if has_spawned => {}
                Err(error) => last = error,
            }
            has_spawned |= spawn;
        }
        Err(self.give_up(last))
    }

    fn give_up(&self, source: ConnectError) -> LinkError {
        LinkError::GaveUp { seconds: self.patience.as_secs(), source }
    }

    /// Returns whether the client has waited for as long as we have patience. The clock begins with the first
    /// call, so that at least one attempt is made.
    fn has_waited_enough(&mut self) -> bool {
        if !self.shared.lock().memory.waits() {
            return false;
        }
        match self.waiting {
            Some(since) => since.elapsed() >= self.patience,
            None => {
                self.waiting = Some(Instant::now());
                false
            }
        }
    }

    /// Pauses before an attempt; the pause ends when the user begins to wait.
    fn rest(&mut self) {
        let pause = jittered(self.pause);
        self.pause = (self.pause * 2).clamp(FIRST_PAUSE, LAST_PAUSE);
        let inner = self.shared.lock();
        let is_idle = !inner.memory.waits();
        let rests = |inner: &mut Inner| !(is_idle && inner.memory.waits());
        let rested = self.shared.changed.wait_timeout_while(inner, pause, rests);
        let (_inner, end) = rested.unwrap_or_else(PoisonError::into_inner);
        if !end.timed_out() {
            self.pause = FIRST_PAUSE;
        }
    }

    /// Returns whether this link may start a daemon. One that a person stopped is not started again. One that
    /// ended for another reason removed its socket: it is started again only if the user waits for something that
    /// can be taken up again. One that died left its socket, so any link replaces it for a while.
    fn may_spawn(&mut self) -> bool {
        let since = *self.away.get_or_insert_with(Instant::now);
        let is_due = since.elapsed() >= SPAWN_AFTER
            && self.spawned.is_none_or(|spawned| spawned.elapsed() >= SPAWN_PAUSE);
        let has_died = || since.elapsed() < self.patience && is_left(&self.options.paths.socket());
        let (is_stopped, is_wanted) = {
            let memory = &self.shared.lock().memory;
            (memory.is_stopped(), memory.is_resumable() && memory.waits())
        };
        self.options.spawn && is_due && !is_stopped && (is_wanted || has_died())
    }

    /// Limits how long one read blocks, so that a silent daemon does not block the link for ever.
    fn limit_reads(&self, limit: Option<Duration>) {
        if let Some(stream) = &self.stream {
            // Some systems refuse it for a connection that has ended: then the next read tells.
            let _ = stream.set_read_timeout(limit);
        }
    }

    fn install(&mut self, stream: Arc<Stream>) {
        let mut inner = self.shared.lock();
        inner.out = inner.memory.back();
        inner.waiting = inner.out.iter().map(Bytes::len).sum();
        inner.stream = Some(Arc::clone(&stream));
        self.shared.changed.notify_all();
        drop(inner);
        self.stream = Some(stream);
        self.limit_reads(Some(self.patience.min(LAST_PAUSE)));
    }
}

impl Drop for LinkReader {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.changed.notify_all();
    }
}

/// Adds up to a quarter, so that clients that were cut off together do not return together.
fn jittered(pause: Duration) -> Duration {
    let part = getrandom::u32().unwrap_or_default() % 256;
    pause + pause * part / 1024
}
