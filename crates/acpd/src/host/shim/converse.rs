//! A connection with a shim, as long as it lasts.

use std::collections::VecDeque;
use std::io;
use std::os::fd::AsFd as _;
use std::time::Duration;

use acpd_core::StopStep;
use acpd_shim::bundle::{Identity, Record};
use acpd_shim::frame::{Hello, Inbox, PIECE, Stage, Step, ToDaemon, ToShim, VERSION};
use acpd_sys::socket::{own_uid, peer_of};
use tokio::net::UnixStream;
use tokio::time::Instant;

use super::tender::{Tender, Told};
use crate::crash;
use crate::host::HostEvent;

/// How long a shim may take to answer a hello.
const ANSWER: Duration = Duration::from_secs(1);
/// Bytes that wait for the socket before more are made.
const OUTBOX: usize = 256 << 10;

/// How a connection ended.
pub(super) enum End {
    /// It broke.
    Lost,
    /// The shim knows that its end is on disk.
    Forgotten,
    /// Nobody will take what is left of it.
    Dismissed,
    /// Nobody wants anything any more.
    Dropped,
}

/// A connection with the shim of a bundle.
pub(super) struct Link {
    stream: UnixStream,
    inbox: Inbox,
    outbox: Vec<u8>,
    sent: Sent,
}

/// What was said on a connection.
#[derive(Default)]
struct Sent {
    ack: u64,
    step: Option<StopStep>,
    lease: Option<u64>,
    exit: bool,
}

impl Link {
    /// Connects and says hello: output before `from` is committed.
    pub(super) async fn open(record: &Record, from: u64) -> io::Result<(Link, Hello)> {
        let answer = async {
            let stream = UnixStream::connect(&record.socket).await?;
            let peer = peer_of(stream.as_fd())?;
            if peer.uid != own_uid() || peer.pid.is_some_and(|pid| pid != record.shim.pid) {
                return Err(io::Error::other("somebody else listens there"));
            }
            crash::point("before-hello");
            let sent = Sent { ack: from, ..Sent::default() };
            let (inbox, outbox) = (Inbox::default(), Vec::new());
            let mut link = Link { stream, inbox, outbox, sent };
            ToShim::Hello { version: VERSION, from }.encode(&mut link.outbox);
            loop {
                if link.outbox.is_empty() {
                    link.stream.readable().await?;
                } else {
                    link.stream.writable().await?;
                    link.write()?;
                }
                link.read()?;
                match link.inbox.next_frame().map_err(io::Error::other)? {
                    Some(ToDaemon::Hello(hello)) => return Ok((link, hello)),
                    Some(_) => return Err(io::Error::other("it does not say hello")),
                    None => {}
                }
            }
        };
        let in_time = tokio::time::timeout(ANSWER, answer).await;
        in_time.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    fn read(&mut self) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(PIECE);
        match self.stream.try_read_buf(&mut bytes) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(_) => {
                self.inbox.push(&bytes);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn write(&mut self) -> io::Result<()> {
        match self.stream.try_write(&self.outbox) {
            Ok(count) if count == self.outbox.len() => {
                // A long line leaves no long buffer.
                self.outbox = Vec::new();
                Ok(())
            }
            Ok(count) => {
                self.outbox.drain(..count);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(error),
        }
    }
}

impl Tender {
    /// Talks with the shim until the connection is lost or nothing is left to be said.
    pub(super) async fn converse(&mut self, mut link: Link) -> End {
        let mut reports: VecDeque<HostEvent> = VecDeque::new();
        let events = self.place.events.clone();
        // What came right behind the hello.
        if self.hear(&mut link, &mut reports).is_err() {
            return self.lost(&mut link, reports).await;
        }
        loop {
            if self.dismiss {
                return End::Dismissed;
            }
            self.say(&mut link);
            if !link.outbox.is_empty() && link.write().is_err() {
                return self.lost(&mut link, reports).await;
            }
            let force = self.force_at.filter(|_| self.told < Told::Gone);
            let may_read = reports.is_empty() && self.output.has_room();
            tokio::select! {
                // After that word the handle is gone.
                command = self.commands.recv(), if !self.forget => {
                    let Some(command) = command else { return End::Dropped };
                    self.take(command);
                    while let Ok(command) = self.commands.try_recv() {
                        self.take(command);
                    }
                }
                permit = events.reserve(), if !reports.is_empty() => {
                    // The relay is gone only when the daemon ends.
                    let Ok(permit) = permit else { return End::Dropped };
                    if let Some(event) = reports.pop_front() {
                        permit.send((self.host, event));
                    }
                }
                ready = link.stream.readable(), if may_read => {
                    let heard = ready.and_then(|()| link.read());
                    let known = self.hear(&mut link, &mut reports);
                    if heard.is_err() || known.is_err() {
                        return self.lost(&mut link, reports).await;
                    }
                }
                ready = link.stream.writable(), if !link.outbox.is_empty() => {
                    if ready.is_err() {
                        return self.lost(&mut link, reports).await;
                    }
                }
                () = until(force) => {
                    if let Identity::Alive(record) = self.bundle.verify() {
                        self.kill_shim(&record).await;
                    }
                }
            }
        }
    }

    /// The connection is lost: reports what was heard before, and tells whether that matters.
    async fn lost(&mut self, link: &mut Link, reports: VecDeque<HostEvent>) -> End {
        for event in reports {
            if self.place.events.send((self.host, event)).await.is_err() {
                return End::Dropped;
            }
        }
        if link.sent.exit { End::Forgotten } else { End::Lost }
    }

    /// Adds what the shim does not know yet.
    fn say(&mut self, link: &mut Link) {
        let Link { outbox, sent, .. } = link;
        if outbox.len() >= OUTBOX {
            return;
        }
        let acked = self.output.acked();
        if acked > sent.ack {
            crash::point("before-ack");
            sent.ack = acked;
            ToShim::Ack { offset: acked }.encode(outbox);
        }
        if sent.lease != Some(self.lease) {
            sent.lease = Some(self.lease);
            ToShim::Lease { ms: self.lease }.encode(outbox);
        }
        let before = outbox.len();
        self.stdin.encode(outbox);
        if outbox.len() > before {
            crash::point("host-write");
        }
        if self.step > sent.step {
            let step = match self.step {
                // What is still to be written comes first.
                Some(StopStep::CloseStdin) if self.stdin.is_sent() => Some(Step::CloseStdin),
                Some(StopStep::Term) => Some(Step::Term),
                Some(StopStep::Kill) => Some(Step::Kill),
                _ => None,
            };
            if let Some(step) = step {
                sent.step = self.step;
                ToShim::Signal(step).encode(outbox);
            }
        }
        if self.forget && self.told == Told::Gone && !sent.exit {
            crash::point("before-forget");
            sent.exit = true;
            ToShim::Exit.encode(outbox);
        }
    }

    /// Takes up what the shim said; an error if it cannot be understood.
    fn hear(&mut self, link: &mut Link, reports: &mut VecDeque<HostEvent>) -> io::Result<()> {
        while let Some(frame) = link.inbox.next_frame().map_err(io::Error::other)? {
            match frame {
                ToDaemon::Hello(_) => {}
                // Of what is lost nothing counts any more, but it has to go.
                ToDaemon::Out { offset, bytes } if self.told >= Told::Ended => {
                    self.output.skip(offset + bytes.len() as u64);
                }
                ToDaemon::Out { offset, bytes } => {
                    let taken = self.output.push(offset, bytes);
                    taken.map_err(|_| io::Error::other("a part of the output is missing"))?;
                    let frames = self.output.frames();
                    if !frames.is_empty() {
                        crash::point("before-output");
                    }
                    reports.extend(self.lines(frames));
                }
                ToDaemon::Err { bytes } => self.place.log.write(bytes),
                ToDaemon::Credit { bytes } => self.stdin.allow(bytes),
                ToDaemon::Written { chunk } => reports.extend(self.wrote(chunk)),
                ToDaemon::Exit { stage, status, stderr } => {
                    let stderr = String::from_utf8_lossy(stderr).trim().to_owned();
                    reports.extend(self.last_words(Some(status), stderr));
                    if stage == Stage::Gone && self.told < Told::Gone {
                        self.told = Told::Gone;
                        self.place.reaper.unknow(self.host);
                        reports.push_back(HostEvent::Gone);
                    }
                }
            }
        }
        Ok(())
    }
}

/// Waits until then, or for ever.
pub(super) async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
