//! The shim's conversation with its daemon.

use std::io;
use std::time::{Duration, Instant};

use acpd_sys::socket::other_end;

use super::{Shim, scratch_buffer};
use crate::frame::{
    FrameError, Hello, Inbox, PIECE, RELEASE, Stage, ToDaemon, ToShim, VERSION, put_out_head,
};
use crate::link::{AnnouncedState, Link};

/// Frames sent in a row before the daemon is read again.
const FRAMES: usize = 16;

impl Shim {
    pub(super) fn accept(&mut self) {
        let Ok(stream) = self.incoming.accept() else { return };
        let ours = other_end(&stream).is_ok_and(|peer| peer.is_ours());
        if ours {
            self.candidate = Link::new(stream).ok();
        }
    }

    /// Reads and executes frames of the daemon; `None` if the connection is lost.
    pub(super) fn hear(&mut self, mut link: Link) -> Option<Link> {
        link.read(scratch_buffer(&mut self.scratch)).ok()?;
        let mut inbox: Inbox = std::mem::take(&mut link.inbox);
        loop {
            let frame: Result<Option<ToShim<'_>>, FrameError> = inbox.next_frame();
            match frame.ok()? {
                Some(frame) => self.obey(frame, &mut link)?,
                None => break,
            }
        }
        link.inbox = inbox;
        Some(link)
    }

    /// `None` if the daemon violates the protocol.
    fn obey(&mut self, frame: ToShim<'_>, link: &mut Link) -> Option<()> {
        let now = Instant::now();
        match frame {
            ToShim::Hello { from, .. } => self.greet(from, link),
            _ if link.announced.is_none() => return None,
            ToShim::In { chunk, at, last, bytes } => {
                self.input.accept(chunk, at, last, bytes)?;
                self.feed();
            }
            ToShim::Ack { offset } => self.output.ack(offset),
            ToShim::Lease { ms } => {
                self.lease = Some(Duration::from_millis(ms)).filter(|lease| !lease.is_zero());
            }
            ToShim::Signal(step) => {
                self.stop.order(step, now);
                self.take_step(step);
            }
            ToShim::Exit => self.acknowledged = self.gone,
        }
        Some(())
    }

    fn greet(&mut self, from: u64, link: &mut Link) {
        self.output.ack(from);
        let (chunk, at) = self.input.position();
        let agent = self.agent.leader.unwrap_or_default();
        let written = self.input.written;
        let hello = Hello {
            version: VERSION,
            shim: std::process::id(),
            agent: agent.pid,
            start: agent.start,
            base: self.output.base,
            end: self.output.end,
            chunk,
            at,
            written,
            credit: self.input.credit(),
            release: Some(RELEASE),
        };
        ToDaemon::Hello(hello).encode(&mut link.outbox);
        link.announced = Some(AnnouncedState { output: self.output.base, written, stage: None });
    }

    /// Sends the daemon all news that it takes without blocking.
    pub(super) fn talk(&mut self) {
        self.has_more_frames = false;
        let Some(mut link) = self.link.take() else { return };
        match self.talk_on(&mut link) {
            Ok(()) => self.link = Some(link),
            Err(_) => self.alone_since = Instant::now(),
        }
    }

    fn talk_on(&mut self, link: &mut Link) -> io::Result<()> {
        link.flush()?;
        for _ in 0..FRAMES {
            if link.is_waiting() {
                return Ok(());
            }
            self.compose(link)?;
            if link.outbox.is_empty() {
                return Ok(());
            }
            link.flush()?;
        }
        self.has_more_frames = !link.is_waiting();
        Ok(())
    }

    /// Adds news to an empty outbox.
    fn compose(&mut self, link: &mut Link) -> io::Result<()> {
        let (Some(announced), to) = (&mut link.announced, &mut link.outbox) else { return Ok(()) };
        let written = self.input.written;
        if written > announced.written {
            announced.written = written;
            ToDaemon::Written { chunk: written }.encode(to);
        }
        if let Some(bytes) = self.input.take_owed() {
            ToDaemon::Credit { bytes }.encode(to);
        }
        if !self.errors.is_empty() {
            ToDaemon::Err { bytes: &self.errors.take() }.encode(to);
        }
        // A daemon knows the output that it has acknowledged.
        announced.output = announced.output.max(self.output.base);
        let count = self.output.run(announced.output).min(PIECE);
        // Processes that a command has left may write for ever.
        let is_end_due = announced.stage.is_none()
            && self.leader_output.is_some_and(|end| announced.output >= end);
        if count > 0 && !is_end_due {
            put_out_head(to, announced.output, count);
            self.output.copy(announced.output, count, to)?;
            announced.output += count as u64;
            return Ok(());
        }
        if self.hold_exit_until.is_some_and(|until| Instant::now() < until) {
            return Ok(());
        }
        let stage = match (self.exit, self.sealed, self.gone) {
            (Some(_), true, true) => Some(Stage::Gone),
            (Some(_), true, false) => Some(Stage::Ended),
            _ => None,
        };
        if let (Some(status), Some(stage)) = (self.exit, stage)
            && announced.stage < Some(stage)
        {
            // Each stage is sent, even if the second was reached before the first was sent.
            let next = if announced.stage.is_none() { Stage::Ended } else { stage };
            announced.stage = Some(next);
            self.hold_exit_until = None;
            ToDaemon::Exit { stage: next, status, stderr: self.errors.last_words() }.encode(to);
        }
        Ok(())
    }
}
