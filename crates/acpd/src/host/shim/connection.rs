//! The conversation with a shim on one connection.

use std::collections::VecDeque;
use std::io;

use acp_wire::{Body, Frame};
use acpd_core::{HostEvent, StopStep};
use acpd_shim::frame::{Stage, Step, ToDaemon, ToShim};
use bytes::Bytes;

use super::link::{End, Link};
use super::supervisor::{Reported, Supervisor};
use crate::clock::until;
use crate::crash;

/// Bytes that wait for the socket before more are encoded.
const OUTBOX: usize = 256 << 10;

impl Supervisor {
    /// Talks with the shim until the connection is lost or nothing is left to do.
    pub(super) async fn talk(&mut self, mut link: Link) -> End {
        let mut reports = VecDeque::new();
        let error = match self.exchange(&mut link, &mut reports).await {
            Ok(end) => return end,
            Err(error) => error,
        };
        // Received before the loss.
        for event in reports {
            if self.place.events.send((self.host, event)).await.is_err() {
                return End::Dropped;
            }
        }
        if link.sent.exit { End::Forgotten } else { End::Lost(error) }
    }

    /// Fails if the connection is lost. `reports` then has what was not reported yet.
    async fn exchange(
        &mut self,
        link: &mut Link,
        reports: &mut VecDeque<HostEvent>,
    ) -> io::Result<End> {
        let events = self.place.events.clone();
        self.hear(link, reports)?;
        loop {
            if self.dismiss {
                return Ok(End::Dismissed);
            }
            self.say(link);
            if !link.outbox.is_empty() {
                link.write()?;
            }
            // No output of an agent follows its leader's end, and that of a command needs no room.
            let has_room = self.reported >= Reported::Ended || self.output.has_room();
            let may_read = reports.is_empty() && has_room;
            // A shim that is not read is not silent.
            let force = self.force_at.filter(|_| may_read && self.reported < Reported::Gone);
            tokio::select! {
                // The handle sends nothing after `Forget`.
                command = self.commands.recv(), if !self.forget => {
                    let Some(command) = command else { return Ok(End::Dropped) };
                    self.take(command);
                    while let Ok(command) = self.commands.try_recv() {
                        self.take(command);
                    }
                }
                permit = events.reserve(), if !reports.is_empty() => {
                    let Ok(permit) = permit else { return Ok(End::Dropped) };
                    if let Some(event) = reports.pop_front() {
                        permit.send((self.host, event));
                    }
                }
                ready = link.stream.readable(), if may_read => {
                    let heard = ready.and_then(|()| link.read());
                    self.hear(link, reports).and(heard)?;
                }
                ready = link.stream.writable(), if !link.outbox.is_empty() => ready?,
                () = until(force) => self.force().await,
            }
            if !may_read {
                self.be_patient();
            }
        }
    }

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
                // Lines that wait come first.
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
        if self.forget && self.reported == Reported::Gone && !sent.exit {
            crash::point("before-forget");
            sent.exit = true;
            ToShim::Exit.encode(outbox);
        }
    }

    /// Handles the frames of the shim; fails if they cannot be understood.
    fn hear(&mut self, link: &mut Link, reports: &mut VecDeque<HostEvent>) -> io::Result<()> {
        while let Some(frame) = link.inbox.next_frame().map_err(io::Error::other)? {
            self.be_patient();
            match frame {
                ToDaemon::Hello(_) => {}
                // The output no longer counts, but the shim has to get rid of it.
                ToDaemon::Out { offset, bytes } if self.given_up => {
                    self.output.skip(offset + bytes.len() as u64);
                }
                // Only the terminal keeps the output of a command.
                ToDaemon::Out { offset, bytes } if self.place.command.is_some() => {
                    let end = offset + bytes.len() as u64;
                    self.output.skip(end);
                    let body = Body::Line(Bytes::copy_from_slice(bytes));
                    reports.push_back(HostEvent::Output(vec![Frame { end, body }]));
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
                    if let Some(exit) = &self.place.command {
                        exit.set(status).ok();
                    }
                    let stderr = String::from_utf8_lossy(stderr).trim().to_owned();
                    reports.extend(self.last_words(status.predicate(), stderr));
                    if stage == Stage::Gone && self.reported < Reported::Gone {
                        self.reported = Reported::Gone;
                        self.place.reaper.forget_shim(self.host);
                        reports.push_back(HostEvent::Gone);
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;

    use acpd_core::ToHost;
    use acpd_core::ids::HostId;
    use acpd_shim::frame::Status;
    use acpd_sys::lock::InstanceLock;
    use tempfile::TempDir;
    use tokio::io::AsyncReadExt as _;
    use tokio::net::UnixStream;
    use tokio::sync::mpsc;
    use tokio::time::Instant;

    use super::*;
    use crate::host::HostEvents;
    use crate::host::reaper::Reaper;
    use crate::host::shim::{Command, Place};
    use crate::log::BoundedLog;

    struct Bench {
        state: TempDir,
        supervisor: Supervisor,
        commands: mpsc::UnboundedSender<Command>,
        heard: mpsc::Receiver<(HostId, HostEvent)>,
    }

    fn bench() -> Bench {
        let state = TempDir::new().unwrap();
        let (events, heard): (HostEvents, _) = mpsc::channel(8);
        let place = Place {
            state: state.path().to_owned(),
            reaper: Reaper::start(events.clone()).unwrap(),
            events,
            log: BoundedLog::open(&state.path().join("log"), 1 << 20),
            line_limit: 64 << 20,
            idle_lease: 0,
            busy_lease: 0,
            command: None,
        };
        let (commands, mut supervisor) = Supervisor::new(HostId(3), "7-3", place);
        supervisor.reported = Reported::Running;
        Bench { state, supervisor, commands, heard }
    }

    fn link() -> (Link, UnixStream) {
        let (stream, shim) = UnixStream::pair().unwrap();
        (Link::over(stream, 0), shim)
    }

    fn said(frames: &[ToDaemon<'_>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for frame in frames {
            frame.encode(&mut bytes);
        }
        bytes
    }

    const ENDED: ToDaemon<'_> =
        ToDaemon::Exit { stage: Stage::Ended, status: Status::Code(0), stderr: b"" };

    #[tokio::test]
    async fn what_was_heard_before_a_loss_is_not_acknowledged_by_being_told_again() {
        let Bench { mut supervisor, .. } = bench();
        let all = said(&[ToDaemon::Out { offset: 0, bytes: b"{}\n{}\n" }, ENDED]);
        for lines in [2, 0] {
            let (mut link, _shim) = link();
            let mut reports = VecDeque::new();
            link.inbox.push(&all);
            supervisor.hear(&mut link, &mut reports).unwrap();
            let told = reports.iter().map(|event| match event {
                HostEvent::Output(frames) => frames.len(),
                _ => 0,
            });
            assert_eq!(told.sum::<usize>(), lines);
            assert_eq!(supervisor.output.acked(), 0, "nothing is committed");
        }
        supervisor.output.ack(6);
        assert_eq!(supervisor.output.acked(), 6);
    }

    #[tokio::test]
    async fn a_shim_that_says_something_is_not_killed() {
        let Bench { mut supervisor, .. } = bench();
        let over = Instant::now();
        supervisor.force_at = Some(over);
        let (mut link, _shim) = link();
        supervisor.hear(&mut link, &mut VecDeque::new()).unwrap();
        assert_eq!(supervisor.force_at, Some(over));
        link.inbox.push(&said(&[ToDaemon::Out { offset: 0, bytes: b"{" }]));
        supervisor.hear(&mut link, &mut VecDeque::new()).unwrap();
        assert!(supervisor.force_at > Some(over));
    }

    #[tokio::test]
    async fn a_shim_that_cannot_be_verified_is_left_alone_and_that_is_said_once() {
        let Bench { state, mut supervisor, .. } = bench();
        fs::create_dir_all(supervisor.shim_dir.path()).unwrap();
        // The lock is held, and nothing names its holder.
        let _held = InstanceLock::acquire(&supervisor.shim_dir.path().join("lock")).unwrap();
        for _ in 0..2 {
            let over = Instant::now();
            supervisor.force_at = Some(over);
            supervisor.force().await;
            assert!(supervisor.force_at > Some(over), "it is not tried again at once");
        }
        let log = fs::read_to_string(state.path().join("log")).unwrap();
        assert_eq!(log.matches("cannot be verified").count(), 1, "{log}");
    }

    #[tokio::test]
    async fn a_shim_that_is_told_to_end_is_heard_ending_though_there_is_no_room() {
        let Bench { mut supervisor, commands, heard: _heard, .. } = bench();
        supervisor.output.push(0, &b"{}\n".repeat(2 << 20)).unwrap();
        supervisor.output.frames();
        assert!(!supervisor.output.has_room());
        supervisor.reported = Reported::Gone;
        commands.send(Command::Tell(ToHost::Forget)).unwrap();
        let (link, mut shim) = link();
        let ends = async {
            let mut bytes = Vec::new();
            let mut exit = Vec::new();
            ToShim::Exit.encode(&mut exit);
            while !bytes.ends_with(&exit) {
                shim.read_buf(&mut bytes).await.unwrap();
            }
            drop(shim);
        };
        let (end, ()) = tokio::join!(supervisor.talk(link), ends);
        assert!(matches!(end, End::Forgotten));
    }
}
