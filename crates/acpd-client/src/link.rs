//! The two halves of a connection.
//!
//! After [`Connection::split`](crate::Connection::split) a thread writes, so that a daemon that
//! reads slowly never blocks reading; before it, each caller writes. The caller of
//! [`LinkReader::recv`] reads, and reconnects when the connection is lost.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use acp_wire::{Body, ErrorObject, Framer, Id, build, code};
use acpd_api::{Empty, method};
use acpd_sys::socket::{Stream, hang_up};
use bytes::Bytes;
use serde::Serialize;

use crate::connect::{ACCEPT_PATIENCE, Options, Place, open_or_start};
use crate::error::{ConnectError, LinkError, NotAnswering};
use crate::resume::{Resumption, Verdict};
use crate::silence::{QUIET, Silence, check_if_due};
use crate::stream::{is_timeout, read_block, write_line};

/// Queued bytes above which [`LinkWriter::send`] blocks.
const LIMIT: usize = 8 << 20;
/// Bytes per read.
const BLOCK: usize = 64 * 1024;
/// Longest time between two looks at the clock while a daemon does not answer.
const CLOCK: Duration = Duration::from_secs(1);
/// Time between two checks whether the user waits for the daemon's first line.
const FIRST_LOOK: Duration = Duration::from_millis(500);
/// After a connection that held this long, the next attempt begins at once.
const GOOD: Duration = Duration::from_secs(5);
/// Time for another process to replace the daemon before the link starts one.
const SPAWN_AFTER: Duration = Duration::from_millis(100);
/// Shortest time between two starts of a daemon.
const SPAWN_PAUSE: Duration = Duration::from_millis(500);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LinkEvent {
    Line(Bytes),
    /// The connection was lost; the link reconnects.
    Reconnecting,
    /// The user has stopped the daemon, and the link has nothing to resume. It starts no daemon,
    /// and resumes when one runs.
    Stopped,
    Resumed,
    /// The daemon does not answer; it may recover. Only after [`LinkReader::report_silence`].
    Silent(NotAnswering),
}

/// Connects with `first`. A lost connection is made again with `options`, for up to `patience`.
pub(crate) fn open(
    first: &Options,
    options: Options,
    patience: Duration,
) -> Result<(LinkReader, LinkWriter), ConnectError> {
    // The links to several machines are resumed one by one.
    let is_single = patience.is_zero() || matches!(options.place, Place::Machines(_));
    let memory = if is_single { Resumption::single() } else { Resumption::new(token()?) };
    let opened = open_or_start(first)?;
    let stream = Arc::new(opened.stream);
    limit_writes(&stream, Some(ACCEPT_PATIENCE));
    let inner = Inner { memory, stream: Some(Arc::clone(&stream)), ..Inner::default() };
    let (inner, changed, writing) = (Mutex::new(inner), Condvar::new(), Mutex::new(()));
    let shared = Arc::new(Shared { inner, changed, writing, options });
    let reader = LinkReader {
        shared: Arc::clone(&shared),
        patience,
        stream: Some(stream),
        framer: Framer::new(usize::MAX),
        block: vec![0; BLOCK].into(),
        ready: VecDeque::new(),
        ping_after: Some(QUIET),
        silence: None,
        away: None,
        waiting: None,
        pause: Duration::ZERO,
        good_since: Instant::now(),
        spawned: None,
        set_limit: None,
        is_bound: opened.is_bound,
    };
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
    writing: Mutex<()>,
    options: Options,
}

#[derive(Debug, Default)]
struct Inner {
    memory: Resumption,
    stream: Option<Arc<Stream>>,
    out: VecDeque<Bytes>,
    /// Bytes of `out` and of the lines that are being written.
    waiting: usize,
    last_id: u64,
    has_thread: bool,
    /// Several machines get their last lines; then the connection ends.
    is_leaving: bool,
    /// The link ends as soon as everything is written.
    is_ending: bool,
    ended: bool,
}

impl Inner {
    /// Runs a step of the memory, and counts what it adds to the queue.
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

    /// Runs on the writing thread until the connection has ended.
    fn write(&self) {
        let mut inner = self.lock();
        while !inner.ended {
            if inner.stream.is_some() && !inner.out.is_empty() {
                drop(inner);
                // The reader finds the reason.
                drop(self.write_queued());
                inner = self.lock();
            } else if inner.is_ending {
                self.finish(&mut inner);
            } else {
                inner = self.wait(inner);
            }
        }
    }

    /// Has the queue written: by the thread, or now.
    fn pass_on(&self, inner: MutexGuard<'_, Inner>) -> io::Result<()> {
        if inner.has_thread {
            self.changed.notify_all();
            return Ok(());
        }
        drop(inner);
        let written = self.write_queued();
        let mut inner = self.lock();
        if inner.is_ending {
            self.finish(&mut inner);
        }
        written
    }

    fn write_queued(&self) -> io::Result<()> {
        let _one_at_a_time = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut inner = self.lock();
        let Some(stream) = inner.stream.clone() else { return Ok(()) };
        let lines = std::mem::take(&mut inner.out);
        drop(inner);
        let written = lines.iter().try_for_each(|line| write_line(&stream, line));
        inner = self.lock();
        // The memory keeps the lines that were lost with an earlier connection.
        if inner.is_writing_to(&stream) {
            if written.is_ok() {
                inner.waiting -= lines.iter().map(Bytes::len).sum::<usize>();
            } else {
                inner.stream = None;
            }
        }
        self.changed.notify_all();
        written
    }

    fn finish(&self, inner: &mut Inner) {
        inner.ended = true;
        inner.stream.iter().for_each(|stream| hang_up(stream));
        self.changed.notify_all();
    }
}

/// The sending half of a link. Clones write to the same connection.
#[derive(Debug, Clone)]
pub struct LinkWriter {
    shared: Arc<Shared>,
}

impl LinkWriter {
    /// Sends a line without its newline, or keeps it while there is no connection. Blocks while
    /// more than 8 MiB are queued.
    ///
    /// # Errors
    /// The connection has ended for good, or the daemon does not read.
    pub fn send(&self, line: Bytes) -> Result<(), LinkError> {
        let mut inner = self.shared.lock();
        while inner.waiting + inner.memory.held_bytes() > LIMIT && !inner.ended && inner.has_thread
        {
            inner = self.shared.wait(inner);
        }
        if inner.ended {
            return Err(LinkError::Closed);
        }
        inner.with(|memory, out| memory.send(line, out));
        match self.shared.pass_on(inner) {
            Err(error) if is_timeout(&error) => {
                Err(self.shared.options.place.not_answering().into())
            }
            // The reader finds the reason.
            Ok(()) | Err(_) => Ok(()),
        }
    }

    /// Sends a request and returns its id: 1, 2, 3 and so on in each connection.
    pub fn request<P: Serialize>(&self, method: &str, params: &P) -> Result<Id, LinkError> {
        let mut inner = self.shared.lock();
        inner.last_id += 1;
        let id = Id::from(inner.last_id);
        drop(inner);
        self.send(build::request(&id, method, params))?;
        Ok(id)
    }

    pub fn notify<P: Serialize>(&self, method: &str, params: &P) -> Result<(), LinkError> {
        self.send(build::notification(method, params))
    }

    /// Cancels a request of this connection: ends the turn of a prompt, or takes back a queued
    /// prompt.
    pub fn cancel(&self, request: &Id) -> Result<(), LinkError> {
        self.send(build::cancel_request(request))
    }

    pub fn answer<R: Serialize>(&self, id: &Id, result: &R) -> Result<(), LinkError> {
        self.send(build::response(id, result))
    }

    /// Refuses a request for a service that this client does not have.
    pub fn refuse(&self, id: &Id, text: impl Into<String>) -> Result<(), LinkError> {
        self.send(build::error(id, &ErrorObject::new(code::METHOD_NOT_FOUND, text)))
    }

    /// Ends the connection on purpose: the daemon forgets the client at once. No line is sent or
    /// received after this.
    pub fn leave(&self) {
        let mut inner = self.shared.lock();
        if let Place::Machines(_) = self.shared.options.place {
            let leave = build::notification(method::CLIENT_LEAVE, &Empty {});
            inner.with(|_, out| out.push_back(leave));
            inner.is_leaving = true;
        }
        inner.with(Resumption::leave);
        // A daemon that is gone needs no goodbye.
        drop(self.shared.pass_on(inner));
    }

    /// Like [`leave`](LinkWriter::leave), for a program that continues: the connection ends when
    /// everything is written, and [`LinkReader::recv`] returns that it is closed.
    pub fn end(&self) {
        let mut inner = self.shared.lock();
        inner.with(Resumption::leave);
        inner.is_ending = true;
        drop(self.shared.pass_on(inner));
    }

    /// Waits until everything is written, for up to `deadline`: for the end of a process.
    pub fn flush(&self, deadline: Duration) {
        let is_full = |inner: &mut Inner| {
            !inner.ended && (inner.is_leaving || inner.waiting + inner.memory.held_bytes() > 0)
        };
        drop(self.shared.changed.wait_timeout_while(self.shared.lock(), deadline, is_full));
    }

    pub(crate) fn start_thread(&self) -> Result<(), ConnectError> {
        let mut inner = self.shared.lock();
        inner.has_thread = true;
        inner.stream.iter().for_each(|stream| limit_writes(stream, None));
        drop(inner);
        let shared = Arc::clone(&self.shared);
        let started =
            thread::Builder::new().name("writer".to_owned()).spawn(move || shared.write());
        started.map(drop).map_err(ConnectError::System)
    }
}

/// The receiving half of a link. Dropping it ends the connection.
#[derive(Debug)]
pub struct LinkReader {
    shared: Arc<Shared>,
    patience: Duration,
    /// `None` while there is no connection.
    stream: Option<Arc<Stream>>,
    framer: Framer,
    block: Box<[u8]>,
    ready: VecDeque<Bytes>,
    /// Set while the daemon owes a line, its first one or the answer to a call: the length of the
    /// silence at which the next ping is due.
    ping_after: Option<Duration>,
    /// Set if the caller wants [`LinkEvent::Silent`].
    silence: Option<Silence>,
    /// When the connection was lost; `None` once it is resumed.
    away: Option<Instant>,
    /// Since when the user waits for that line or for the daemon's return.
    waiting: Option<Instant>,
    pause: Duration,
    good_since: Instant,
    /// The last start of a daemon by this link.
    spawned: Option<Instant>,
    /// The timeout set on `stream`.
    set_limit: Option<Duration>,
    is_bound: bool,
}

impl LinkReader {
    /// Returns whether the daemon was started for this connection and ends together with the parent
    /// of this program, because the system lets no process out of it (a Job of Windows).
    pub fn is_bound(&self) -> bool {
        self.is_bound
    }

    /// Reports a daemon that does not answer from now on, also while nothing is due.
    pub fn report_silence(&mut self) {
        self.silence = Some(Silence::begin());
    }

    pub fn recv(&mut self) -> Result<LinkEvent, LinkError> {
        loop {
            if let Some(event) = self.recv_until(None)? {
                return Ok(event);
            }
        }
    }

    pub fn recv_within(&mut self, time: Duration) -> Result<Option<LinkEvent>, LinkError> {
        self.recv_until(Some(Instant::now() + time))
    }

    fn recv_until(&mut self, deadline: Option<Instant>) -> Result<Option<LinkEvent>, LinkError> {
        loop {
            if let Some(line) = self.ready.pop_front() {
                return Ok(Some(LinkEvent::Line(line)));
            }
            let alive = match self.stream.clone() {
                None if self.shared.lock().ended => return Err(LinkError::Closed),
                None => {
                    self.come_back(deadline)?;
                    true
                }
                Some(stream) => match self.read(&stream, deadline) {
                    Ok(0) => false,
                    Ok(count) => {
                        self.has_spoken();
                        self.framer.push(&self.block[..count]);
                        self.take_lines()?
                    }
                    Err(error) if is_timeout(&error) => {
                        if let Some(silent) = self.on_silence()? {
                            return Ok(Some(LinkEvent::Silent(silent)));
                        }
                        true
                    }
                    Err(error) => return Err(error.into()),
                },
            };
            let event = if alive { self.settled() } else { self.lost()? };
            if event.is_some() {
                return Ok(event);
            }
            let is_late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            if is_late && self.ready.is_empty() {
                return Ok(None);
            }
        }
    }

    /// Reads some bytes, for up to the limits of this state and the deadline.
    fn read(&mut self, stream: &Stream, deadline: Option<Instant>) -> io::Result<usize> {
        // A timeout of zero is an error.
        let left = deadline.map(|deadline| left_until(deadline).max(Duration::from_millis(1)));
        let look = self.silence.as_ref().and_then(Silence::limit);
        // A silent daemon does not block the connection for ever.
        let owed = self.ping_after.map(|_| FIRST_LOOK);
        let away = self.away.map(|_| self.patience.min(CLOCK));
        let limit = owed.or(away).into_iter().chain(left).chain(look).min();
        if self.set_limit != limit {
            self.set_limit = limit;
            // Some systems refuse it for a connection that has ended: then the read reports that.
            stream.set_read_timeout(limit).ok();
        }
        read_block(stream, &mut self.block)
    }

    /// Notes that the daemon owes a line, or the answer to a ping.
    pub(crate) fn expect_line(&mut self) {
        if self.away.is_none() && self.ready.is_empty() {
            self.ping_after = Some(QUIET);
            self.waiting = None;
        }
    }

    /// Returns whether the next [`recv`](LinkReader::recv) returns a line at once.
    pub fn is_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Takes all complete lines. `false`: acpd does not resume the connection now.
    fn take_lines(&mut self) -> Result<bool, LinkError> {
        let mut guard = self.shared.lock();
        let inner = &mut *guard;
        let before = inner.waiting;
        while let Some(frame) = self.framer.next_frame() {
            let Body::Line(line) = frame.body else { continue };
            match inner.with(|memory, out| memory.receive(&line, out))? {
                Verdict::Pass => self.ready.push_back(line),
                Verdict::Own(line) => self.ready.push_back(line),
                Verdict::Swallow => {}
                Verdict::Refused => return Ok(false),
            }
        }
        if guard.waiting != before {
            // The next read notices a broken connection.
            drop(self.shared.pass_on(guard));
        }
        Ok(true)
    }

    /// Notes that the daemon sent something: it may be silent again.
    fn has_spoken(&mut self) {
        if let Some(silence) = &mut self.silence {
            *silence = Silence::begin();
        }
        if self.ping_after.take().is_some() {
            self.waiting = None;
        }
    }

    /// Checks that a silent daemon is there, if it owes a line for which the client waits, or has not
    /// resumed the connection. Returns a daemon that owes nothing and is silent for too long.
    fn on_silence(&mut self) -> Result<Option<NotAnswering>, LinkError> {
        let options = &self.shared.options;
        if let Some(after) = &mut self.ping_after {
            if self.shared.lock().memory.waits() {
                let since = *self.waiting.get_or_insert_with(Instant::now);
                check_if_due(after, since, options)?;
            }
        } else if self.away.is_none() {
            return Ok(self.silence.as_mut().and_then(|silence| silence.look(options)));
        } else if self.has_waited_enough() {
            let silent = self.shared.options.place.not_answering();
            return Err(self.give_up(silent.into()));
        }
        Ok(None)
    }

    /// Returns [`LinkEvent::Resumed`] if acpd has just resumed the connection.
    fn settled(&mut self) -> Option<LinkEvent> {
        if self.away.is_none() || !self.shared.lock().memory.is_up() {
            return None;
        }
        self.away = None;
        self.waiting = None;
        self.good_since = Instant::now();
        Some(LinkEvent::Resumed)
    }

    /// Handles a lost connection. Returns the event, unless the user has had it.
    fn lost(&mut self) -> Result<Option<LinkEvent>, LinkError> {
        let mut inner = self.shared.lock();
        inner.stream = None;
        inner.out.clear();
        inner.waiting = 0;
        let resumable = inner.memory.lost() && !self.patience.is_zero();
        inner.ended |= !resumable || inner.is_leaving || inner.memory.is_turned_away();
        let (has_ended, is_stopped) = (inner.ended, inner.memory.is_stopped());
        let refusal = inner.memory.refusal().filter(|_| has_ended).cloned();
        self.shared.changed.notify_all();
        drop(inner);
        if has_ended {
            let reason = if is_stopped { LinkError::Stopped } else { LinkError::Closed };
            return Err(refusal.map_or(reason, LinkError::Dismissed));
        }
        self.stream = None;
        // From here on the link waits for the daemon's return, not for its first line.
        self.ping_after = None;
        // A line that was cut off comes again.
        self.framer = Framer::new(usize::MAX);
        if self.away.is_some() {
            return Ok(None);
        }
        if self.good_since.elapsed() > GOOD {
            self.pause = Duration::ZERO;
        }
        self.away = Some(Instant::now());
        Ok(Some(if is_stopped { LinkEvent::Stopped } else { LinkEvent::Reconnecting }))
    }

    /// Reconnects, and sends the first lines. Returns also at the deadline, after one more attempt.
    fn come_back(&mut self, deadline: Option<Instant>) -> Result<(), LinkError> {
        let reason = self.shared.lock().memory.refusal().map(|refusal| refusal.message.clone());
        let mut last = ConnectError::NotTakenBack { reason };
        let mut has_spawned = false;
        while !self.has_waited_enough() {
            self.pause_between_attempts(deadline);
            if self.shared.lock().ended {
                return Ok(());
            }
            let spawn = self.may_spawn();
            if spawn {
                self.spawned = Some(Instant::now());
            }
            match open_or_start(&Options { spawn, ..self.shared.options.clone() }) {
                Ok(opened) => {
                    self.install(Arc::new(opened.stream));
                    return Ok(());
                }
                // The reason why this link's daemon did not start says more.
                Err(ConnectError::NotRunning) if has_spawned => {}
                Err(error) => last = error,
            }
            has_spawned |= spawn;
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(());
            }
        }
        Err(self.give_up(last))
    }

    fn give_up(&self, source: ConnectError) -> LinkError {
        LinkError::GaveUp { seconds: self.patience.as_secs(), source }
    }

    /// Returns whether the user has waited for `patience`. The clock begins with the first call, so
    /// that at least one attempt is made.
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

    /// Waits before an attempt, or until the user begins to wait.
    fn pause_between_attempts(&mut self, deadline: Option<Instant>) {
        let pause = deadline.map_or(Duration::MAX, left_until).min(jittered(self.pause));
        let (second, longest) = self.shared.options.place.pauses();
        self.pause = (self.pause * 2).clamp(second, longest);
        let inner = self.shared.lock();
        let is_idle = !inner.memory.waits();
        let rests = |inner: &mut Inner| !(is_idle && inner.memory.waits());
        let rested = self.shared.changed.wait_timeout_while(inner, pause, rests);
        let (_inner, end) = rested.unwrap_or_else(PoisonError::into_inner);
        if !end.timed_out() {
            self.pause = second;
        }
    }

    /// Returns whether this link may start a daemon. A daemon that the user stopped is not started
    /// again. One that ended for another reason removed its socket: it is started again only if the
    /// user waits for something that can be resumed. One that died left its socket, so any link
    /// replaces it for a while.
    fn may_spawn(&self) -> bool {
        let away = self.away.map_or(Duration::ZERO, |since| since.elapsed());
        let is_due = away >= SPAWN_AFTER
            && self.spawned.is_none_or(|spawned| spawned.elapsed() >= SPAWN_PAUSE);
        let has_died = || away < self.patience && self.shared.options.place.has_socket();
        let (is_stopped, is_wanted) = {
            let memory = &self.shared.lock().memory;
            (memory.is_stopped(), memory.is_resumable() && memory.waits())
        };
        self.shared.options.spawn && is_due && !is_stopped && (is_wanted || has_died())
    }

    fn install(&mut self, stream: Arc<Stream>) {
        let mut inner = self.shared.lock();
        if inner.ended {
            return;
        }
        inner.out = inner.memory.back();
        inner.waiting = inner.out.iter().map(Bytes::len).sum();
        inner.stream = Some(Arc::clone(&stream));
        if !inner.has_thread {
            limit_writes(&stream, Some(ACCEPT_PATIENCE));
        }
        // The next read notices a broken connection.
        drop(self.shared.pass_on(inner));
        self.stream = Some(stream);
        self.set_limit = None;
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

fn left_until(deadline: Instant) -> Duration {
    deadline.saturating_duration_since(Instant::now())
}

fn limit_writes(stream: &Stream, limit: Option<Duration>) {
    // Some systems refuse it for a connection that has ended: then the first write reports that.
    stream.set_write_timeout(limit).ok();
}
