//! Input for the agent: chunks that arrive in pieces and wait until the agent takes them.

use std::collections::VecDeque;
use std::io;

use acpd_sys::wait::End;

use crate::frame::WINDOW;

/// Credit is announced in portions of this size.
const PORTION: u32 = WINDOW / 4;

#[derive(Debug, Default)]
pub(crate) struct Input {
    queue: VecDeque<u8>,
    /// Chunks that end in the queue or right before it, with [`Input::received`] at their end.
    ends: VecDeque<(u64, u64)>,
    /// Bytes that ever entered the queue, and those that left it.
    received: u64,
    taken: u64,
    chunk: u64,
    at: u32,
    /// The last chunk that the agent took.
    pub(crate) written: u64,
    /// Credit that was not announced yet.
    owed: u32,
    /// Further input is dropped; queued input is still written.
    pub(crate) is_closed: bool,
}

impl Input {
    pub(crate) fn new() -> Input {
        Input { chunk: 1, ..Input::default() }
    }

    pub(crate) fn position(&self) -> (u64, u32) {
        (self.chunk, self.at)
    }

    pub(crate) fn credit(&mut self) -> u32 {
        self.owed = 0;
        WINDOW - self.queue.len() as u32
    }

    /// Returns credit that is enough to be announced.
    pub(crate) fn take_owed(&mut self) -> Option<u32> {
        (self.owed >= PORTION).then(|| std::mem::take(&mut self.owed))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Adds a piece, without the bytes that are here already. `None` if the daemon broke the order of
    /// pieces or exceeded its credit.
    pub(crate) fn accept(&mut self, chunk: u64, at: u32, last: bool, bytes: &[u8]) -> Option<()> {
        let length = u32::try_from(bytes.len()).ok()?;
        let end = at.checked_add(length)?;
        if (chunk, at) > (self.chunk, self.at) || bytes.len() + self.queue.len() > WINDOW as usize {
            return None;
        }
        if chunk < self.chunk || end < self.at {
            self.owed += length;
            return Some(());
        }
        let known = self.at - at;
        self.owed += known;
        let new = &bytes[known as usize..];
        self.at = end;
        if self.is_closed {
            self.owed += length - known;
        } else {
            self.queue.extend(new);
            self.received += new.len() as u64;
        }
        if last {
            if !self.is_closed {
                match self.ends.back_mut() {
                    // Chunks without bytes share one entry: they take no credit, so their number is
                    // not limited.
                    Some((chunk, end)) if *end == self.received => *chunk = self.chunk,
                    _ => self.ends.push_back((self.chunk, self.received)),
                }
            }
            self.chunk += 1;
            self.at = 0;
            self.settle();
        }
        Some(())
    }

    pub(crate) fn write(&mut self, stdin: &mut End) -> io::Result<()> {
        while !self.queue.is_empty() {
            let (head, _) = self.queue.as_slices();
            match stdin.write(head) {
                Ok(count) => {
                    self.queue.drain(..count);
                    self.owed += count as u32;
                    self.taken += count as u64;
                    self.settle();
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn settle(&mut self) {
        while let Some((chunk, _)) = self.ends.pop_front_if(|(_, end)| *end <= self.taken) {
            self.written = chunk;
        }
    }

    /// Drops queued and further input: the agent no longer reads.
    pub(crate) fn close(&mut self) {
        self.is_closed = true;
        self.owed += self.queue.len() as u32;
        self.queue = VecDeque::new();
        self.ends = VecDeque::new();
    }

    pub(crate) fn give_back(&mut self) {
        self.queue.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read as _, pipe};

    use acpd_sys::files::NULL;
    use acpd_test::fuzz::{Dice, Outcomes, fuzz, throws};
    use proptest::prelude::*;

    use super::*;
    use crate::frame::{FrameError, Inbox, PIECE, Stage, Status, Step, ToDaemon, ToShim};

    proptest! {
        /// Pieces that are said again from any earlier place, as after a lost connection.
        #[test]
        fn every_byte_goes_in_once_however_often_it_comes(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..30), 1..6),
            cuts in prop::collection::vec((1_usize..10, 0_usize..10), 1..60),
        ) {
            let mut input = Input::new();
            let mut cuts = cuts.iter().cycle();
            let mut credit = i64::from(input.credit());
            for (chunk, bytes) in (1..).zip(&chunks) {
                while input.position().0 == chunk {
                    let (length, back) = *cuts.next().unwrap();
                    let start = (input.position().1 as usize).saturating_sub(back);
                    let end = bytes.len().min(start + length + back);
                    let last = end == bytes.len();
                    input.accept(chunk, start as u32, last, &bytes[start..end]).unwrap();
                    credit -= (end - start) as i64;
                    // An earlier chunk is known.
                    input.accept(chunk - 1, 0, true, &[]).unwrap();
                }
                prop_assert_eq!(input.position(), (chunk + 1, 0));
            }
            prop_assert_eq!(input.accept(chunks.len() as u64 + 2, 0, true, &[]), None);
            let (mut read, write) = pipe().unwrap();
            input.write(&mut End::new(write).unwrap()).unwrap();
            prop_assert_eq!(input.written, chunks.len() as u64);
            let mut arrived = Vec::new();
            read.read_to_end(&mut arrived).unwrap();
            prop_assert_eq!(arrived, chunks.concat());
            // All room comes back in the end.
            prop_assert_eq!(credit + i64::from(input.owed), i64::from(WINDOW));
        }
    }

    #[test]
    fn what_cannot_be_written_gives_its_room_back() {
        let mut input = Input::new();
        input.accept(1, 0, true, b"lost").unwrap();
        input.close();
        input.accept(2, 0, true, b"too").unwrap();
        assert_eq!((input.position(), input.written, input.owed), ((3, 0), 0, 7));
        assert!(input.is_empty());
    }

    #[test]
    fn chunks_without_bytes_take_no_room_however_many_they_are() {
        let mut input = Input::new();
        input.accept(1, 0, true, b"x").unwrap();
        for chunk in 2..1_000 {
            input.accept(chunk, 0, true, b"").unwrap();
        }
        assert_eq!(input.ends.len(), 1);
        input.write(&mut nowhere()).unwrap();
        assert_eq!(input.written, 999);
    }

    /// Returns the input of an agent that takes all of it.
    fn nowhere() -> End {
        End::new(File::options().write(true).open(NULL).unwrap()).unwrap()
    }

    /// Bytes of a frame, of which up to two may be others than they should be.
    fn broken(mut bytes: Vec<u8>, dice: &mut Dice<'_>) -> Vec<u8> {
        for _ in 0..dice.below(8).saturating_sub(5) {
            let at = dice.below(1 << 16) % bytes.len().min(32);
            match dice.below(3) {
                0 => bytes[at] = *dice.pick(b"\0\x01\x02\x05\x7f\x80\xff"),
                1 => bytes.insert(at, 0),
                _ => drop(bytes.remove(at)),
            }
        }
        bytes
    }

    /// A frame of a daemon, to a shim whose input stands there.
    fn of_daemon(input: &Input, dice: &mut Dice<'_>) -> Vec<u8> {
        const LENGTHS: [usize; 6] = [0, 1, 30, 4_000, PIECE, PIECE + 2_000];
        let mut to = Vec::new();
        let number = *dice.pick(&[0, 1, u64::from(WINDOW), u64::MAX]);
        let frame = match dice.below(16) {
            0 => ToShim::Hello { version: 1, from: number },
            1 => ToShim::Ack { offset: number },
            2 => ToShim::Lease { ms: number },
            3 => ToShim::Signal(*dice.pick(&[Step::CloseStdin, Step::Term, Step::Kill])),
            4 => ToShim::Exit,
            _ => {
                let ((chunk, at), length) = (input.position(), *dice.pick(&LENGTHS));
                let chunk = match dice.below(16) {
                    14 => chunk - 1,
                    15 => chunk.wrapping_add(number),
                    _ => chunk,
                };
                let at = match dice.below(8) {
                    6 => at.saturating_sub(10),
                    7 => at.wrapping_add(number as u32),
                    _ => at,
                };
                let (last, bytes) = (dice.below(3) > 0, vec![b'x'; length]);
                ToShim::In { chunk, at, last, bytes: &bytes }.encode(&mut to);
                return to;
            }
        };
        frame.encode(&mut to);
        to
    }

    /// A frame of a shim.
    fn of_shim(dice: &mut Dice<'_>) -> Vec<u8> {
        let mut to = Vec::new();
        let number = *dice.pick(&[0, 1, u64::MAX]);
        match dice.below(4) {
            0 => ToDaemon::Out { offset: number, bytes: b"{}\n" },
            1 => ToDaemon::Credit { bytes: number as u32 },
            2 => ToDaemon::Written { chunk: number },
            _ => {
                let stage = *dice.pick(&[Stage::Ended, Stage::Gone]);
                ToDaemon::Exit { stage, status: Status::Code(number as i32), stderr: b"x" }
            }
        }
        .encode(&mut to);
        to
    }

    /// A shim's end of its link, over one connection after another.
    fn shim_hears(throws: &[Vec<u8>], outcomes: &Outcomes) {
        let (mut input, mut stdin) = (Input::new(), nowhere());
        let (mut inbox, mut told) = (Inbox::default(), false);
        for dice in throws {
            outcomes.execution();
            let mut dice = Dice(dice);
            let mut bytes = Vec::new();
            if !told && dice.below(4) > 0 {
                ToShim::Hello { version: 1, from: 0 }.encode(&mut bytes);
            }
            bytes.extend(of_daemon(&input, &mut dice));
            let bytes = broken(bytes, &mut dice);
            if dice.below(4) == 0 {
                input.write(&mut stdin).unwrap();
            }
            let before = input.position();
            for part in bytes.chunks(*dice.pick(&[1 << 20, 1, 3, 7, 1_000])) {
                inbox.push(part);
                let over = loop {
                    match inbox.next_frame::<ToShim<'_>>() {
                        Ok(None) => break None,
                        Err(FrameError::TooLong(_)) => break Some("too long"),
                        Err(FrameError::CutOff(_)) => break Some("cut off"),
                        Err(FrameError::Value(..)) => break Some("no value"),
                        Ok(Some(ToShim::Hello { .. })) => {
                            assert!(input.credit() <= WINDOW);
                            told = true;
                            outcomes.met("hello");
                        }
                        Ok(Some(_)) if !told => break Some("no hello"),
                        Ok(Some(ToShim::In { chunk, at, last, bytes })) => {
                            if input.accept(chunk, at, last, bytes).is_none() {
                                break Some("violation");
                            }
                            outcomes.met("in");
                        }
                        Ok(Some(ToShim::Signal(Step::CloseStdin))) => input.is_closed = true,
                        Ok(Some(_)) => outcomes.met("another frame"),
                    }
                };
                if let Some(why) = over {
                    outcomes.met(why);
                    (inbox, told) = (Inbox::default(), false);
                    break;
                }
            }
            input.take_owed();
            assert!(input.position() >= before, "it goes back");
            assert!(input.written < input.position().0);
            assert!(input.queue.len() <= WINDOW as usize);
            assert!(input.ends.len() <= input.queue.len());
        }
    }

    /// The frames of these parts, and what ended them.
    fn frames(parts: &[&[u8]]) -> (Vec<String>, Option<FrameError>) {
        let (mut inbox, mut frames) = (Inbox::default(), Vec::new());
        for part in parts {
            inbox.push(part);
            loop {
                match inbox.next_frame::<ToDaemon<'_>>() {
                    Ok(Some(frame)) => frames.push(format!("{frame:?}")),
                    Ok(None) => break,
                    Err(error) => return (frames, Some(error)),
                }
            }
        }
        (frames, None)
    }

    /// A daemon's end: the same frames and the same error, however the bytes arrive.
    fn daemon_hears(throws: &[Vec<u8>], outcomes: &Outcomes) {
        let mut all = Vec::new();
        let mut cut = 1;
        for dice in throws {
            outcomes.execution();
            let mut dice = Dice(dice);
            all.extend(broken(of_shim(&mut dice), &mut dice));
            cut = 1 + dice.below(40);
        }
        let parts: Vec<&[u8]> = all.chunks(cut).collect();
        let heard = frames(&parts);
        assert_eq!(heard, frames(&[&all]));
        outcomes.met(if heard.1.is_some() { "no frames" } else { "frames" });
    }

    /// `cargo xtask fuzz shim-link`.
    #[test]
    fn shim_link() {
        let must_occur = ["hello", "in", "another frame", "violation", "no hello", "too long"];
        let inputs = (any::<bool>(), throws(100));
        fuzz("shim-link", 20_000, &must_occur, inputs, |(is_shim, throws), outcomes| {
            let check = if is_shim { shim_hears } else { daemon_hears };
            check(&throws, outcomes);
        });
    }
}
