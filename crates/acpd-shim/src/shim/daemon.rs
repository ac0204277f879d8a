//! Conversation of a shim with its daemon.

use std::io;
use std::time::{Duration, Instant};

use acpd_sys::process::ProcessId;
use acpd_sys::socket::other_end;

use super::{Shim, scratch_buffer};
use crate::frame::{
    FrameError, Hello, Inbox, PIECE, RELEASE, Stage, ToDaemon, ToShim, VERSION, put_out_head,
};
use crate::link::{Link, Told};

/// Frames in a row before the daemon is listened to again.
const FRAMES: usize = 16;

impl Shim {
    pub(super) fn accept(&mut self) {
        // The connection may be gone again.
        let Ok(stream) = self.incoming.accept() else { return };
        let ours = other_end(&stream).is_ok_and(|peer| peer.is_ours());
        if ours {
            self.candidate = Link::new(stream).ok();
        }
    }

    /// Reads what the daemon says; `None` if the connection is lost.
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

    /// `None` if the daemon does not keep to the protocol.
    fn obey(&mut self, frame: ToShim<'_>, link: &mut Link) -> Option<()> {
        let now = Instant::now();
        match frame {
            ToShim::Hello { from, .. } => self.greet(from, link),
            _ if link.told.is_none() => return None,
            ToShim::In { chunk, at, last, bytes } => {
                self.input.accept(chunk, at, last, bytes).ok()?;
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
        let agent = self.agent.leader.unwrap_or(ProcessId { pid: 0, start: 0 });
        let written = self.input.written();
        let hello = Hello {
            version: VERSION,
            shim: std::process::id(),
            agent: agent.pid,
            start: agent.start,
            base: self.output.base(),
            end: self.output.end(),
            chunk,
            at,
            written,
            credit: self.input.credit(),
            release: Some(RELEASE),
        };
        ToDaemon::Hello(hello).encode(&mut link.outbox);
        link.told = Some(Told { output: self.output.base(), written, stage: None });
    }

    /// Tells the daemon what it does not know, as far as it listens.
    pub(super) fn talk(&mut self) {
        self.busy = false;
        let Some(mut link) = self.link.take() else { return };
        match self.talk_on(&mut link) {
            Ok(()) => self.link = Some(link),
            Err(_) => self.alone = Instant::now(),
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
        self.busy = !link.is_waiting();
        Ok(())
    }

    /// Adds what is news to an empty outbox.
    fn compose(&mut self, link: &mut Link) -> io::Result<()> {
        let (Some(told), to) = (&mut link.told, &mut link.outbox) else { return Ok(()) };
        let written = self.input.written();
        if written > told.written {
            told.written = written;
            ToDaemon::Written { chunk: written }.encode(to);
        }
        if let Some(bytes) = self.input.take_owed() {
            ToDaemon::Credit { bytes }.encode(to);
        }
        if !self.errors.is_empty() {
            ToDaemon::Err { bytes: &self.errors.take() }.encode(to);
        }
        // Acknowledged output is known, though.
        told.output = told.output.max(self.output.base());
        let count = self.output.run(told.output).min(PIECE);
        if count > 0 {
            put_out_head(to, told.output, count);
            self.output.copy(told.output, count, to)?;
            told.output += count as u64;
            return Ok(());
        }
        if self.hold.is_some_and(|until| Instant::now() < until) {
            return Ok(());
        }
        let stage = match (self.exit, self.sealed, self.gone) {
            (Some(_), true, true) => Some(Stage::Gone),
            (Some(_), true, false) => Some(Stage::Ended),
            _ => None,
        };
        if let (Some(status), Some(stage)) = (self.exit, stage)
            && told.stage < Some(stage)
        {
            // Each stage is told, also when the second came before the first was.
            let next = if told.stage.is_none() { Stage::Ended } else { stage };
            told.stage = Some(next);
            self.hold = None;
            ToDaemon::Exit { stage: next, status, stderr: self.errors.last_words() }.encode(to);
        }
        Ok(())
    }
}
