//! The agent's output, from the first byte that is not acknowledged.
//!
//! The oldest output is in the spool, the rest in memory. Full memory is moved to the spool as a
//! whole. The spool is removed when all of it is acknowledged. A full spool is written again
//! without its acknowledged part when that is at least half of it. So a line of half the total
//! limit always finds room, the spool may hold more than is needed, and the output has no gap.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};

use crate::shim_dir::{SPOOL_HEAD, ShimDir};

#[derive(Debug)]
pub(crate) struct Output {
    shim_dir: ShimDir,
    memory_limit: usize,
    spool_limit: u64,
    memory: VecDeque<u8>,
    spool: Option<Spool>,
    /// The disk refused a write; not tried again before [`Output::give_back`].
    refused: bool,
    /// The offset of the first byte.
    pub(crate) base: u64,
    /// The offset behind the last byte.
    pub(crate) end: u64,
}

#[derive(Debug)]
struct Spool {
    file: File,
    /// Offsets of its first byte and behind its last byte.
    start: u64,
    end: u64,
}

impl Output {
    pub(crate) fn new(shim_dir: ShimDir, memory_limit: u64, spool_limit: u64) -> Output {
        Output {
            shim_dir,
            memory_limit: usize::try_from(memory_limit).unwrap_or(usize::MAX).max(1),
            spool_limit,
            memory: VecDeque::new(),
            spool: None,
            refused: false,
            base: 0,
            end: 0,
        }
    }

    /// Returns the number of bytes that can be added. Full memory is moved to the spool first, if
    /// possible.
    pub(crate) fn room(&mut self) -> usize {
        if self.memory.len() >= self.memory_limit && !self.refused {
            self.refused = self.make_room().is_err();
        }
        self.memory_limit.saturating_sub(self.memory.len())
    }

    /// Adds output. Only output that would be lost otherwise may exceed [`Output::room`].
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let needed = self.memory.len() + bytes.len();
        if needed > self.memory.capacity() {
            // Doubled, but to the limit at most.
            let doubled = (2 * self.memory.capacity()).min(self.memory_limit);
            self.memory.reserve_exact(needed.max(doubled) - self.memory.len());
        }
        self.memory.extend(bytes);
        self.end += bytes.len() as u64;
    }

    /// Drops all output before this offset.
    pub(crate) fn ack(&mut self, offset: u64) {
        self.base = offset.clamp(self.base, self.end);
        if self.spool.as_ref().is_some_and(|spool| spool.end <= self.base) {
            self.spool = None;
            self.shim_dir.remove_spool();
        }
        let first = self.end - self.memory.len() as u64;
        self.memory.drain(..self.base.saturating_sub(first) as usize);
    }

    /// Returns the number of bytes that one [`Output::copy`] from this offset can copy; 0 at the
    /// end only.
    pub(crate) fn run(&self, offset: u64) -> usize {
        let end = match &self.spool {
            Some(spool) if offset < spool.end => spool.end,
            _ => self.end,
        };
        usize::try_from(end - offset).unwrap_or(usize::MAX)
    }

    pub(crate) fn copy(&self, offset: u64, count: usize, to: &mut Vec<u8>) -> io::Result<()> {
        if let Some(spool) = self.spool.as_ref().filter(|spool| offset < spool.end) {
            let before = to.len();
            to.resize(before + count, 0);
            let at = SPOOL_HEAD + offset - spool.start;
            (&spool.file).seek(SeekFrom::Start(at))?;
            return (&spool.file).read_exact(&mut to[before..]);
        }
        let start = (offset + self.memory.len() as u64 - self.end) as usize;
        to.extend(self.memory.range(start..start + count));
        Ok(())
    }

    /// Frees unused memory, and allows another attempt to write to the disk.
    pub(crate) fn give_back(&mut self) {
        self.refused = false;
        self.memory.shrink_to_fit();
    }

    /// Moves all output to the disk, for a later daemon.
    pub(crate) fn keep(&mut self) -> io::Result<()> {
        self.spill()?;
        self.spool.as_ref().map_or(Ok(()), |spool| spool.file.sync_all())
    }

    fn make_room(&mut self) -> io::Result<()> {
        let fits = |length: u64| length + self.memory.len() as u64 <= self.spool_limit;
        let Some(spool) = &self.spool else {
            return if fits(0) { self.spill() } else { Ok(()) };
        };
        let (length, kept) = (spool.end - spool.start, spool.end - self.base);
        if !fits(length) && kept <= length / 2 && fits(kept) {
            self.renew()?;
        } else if !fits(length) {
            return Ok(());
        }
        self.spill()
    }

    /// Replaces the spool with one without the acknowledged bytes.
    fn renew(&mut self) -> io::Result<()> {
        let start = self.base;
        let end = self.spool.as_ref().map_or(start, |spool| spool.end);
        let file = self.shim_dir.replace_spool(|mut new| {
            new.write_all(&start.to_le_bytes())?;
            let Some(old) = &self.spool else { return Ok(()) };
            let mut from = &old.file;
            from.seek(SeekFrom::Start(SPOOL_HEAD + start - old.start))?;
            match io::copy(&mut from.take(end - start), &mut new)? {
                count if count == end - start => Ok(()),
                _ => Err(io::ErrorKind::UnexpectedEof.into()),
            }
        })?;
        self.spool = Some(Spool { file, start, end });
        Ok(())
    }

    fn spill(&mut self) -> io::Result<()> {
        if self.memory.is_empty() {
            return Ok(());
        }
        if self.spool.is_none() {
            self.renew()?;
        }
        let Some(spool) = &mut self.spool else { return Ok(()) };
        // Overwrites a part that was written before an error.
        let at = SPOOL_HEAD + spool.end - spool.start;
        spool.file.seek(SeekFrom::Start(at))?;
        spool.file.write_all(self.memory.make_contiguous())?;
        spool.end += self.memory.len() as u64;
        self.memory.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;
    use tempfile::TempDir;

    use super::*;

    #[derive(Debug, Clone)]
    enum Action {
        /// The agent writes, as far as there is room.
        Push(Vec<u8>),
        /// The daemon has committed this part of the kept output.
        Ack(prop::sample::Index),
        GiveBack,
    }

    fn any_action() -> impl Strategy<Value = Action> {
        prop_oneof![
            4 => prop::collection::vec(any::<u8>(), 1..20).prop_map(Action::Push),
            2 => any::<prop::sample::Index>().prop_map(Action::Ack),
            1 => Just(Action::GiveBack),
        ]
    }

    proptest! {
        #[test]
        fn what_is_not_acknowledged_is_there_wherever_it_is_kept(
            memory in 1_u64..16,
            spool in 0_u64..40,
            actions in prop::collection::vec(any_action(), 0..40),
        ) {
            let state = TempDir::new().unwrap();
            let shim_dir = ShimDir::create(state.path(), "m").unwrap();
            let mut output = Output::new(shim_dir.clone(), memory, spool);
            let (mut all, mut base) = (Vec::<u8>::new(), 0);
            for action in actions {
                match action {
                    Action::Push(bytes) => {
                        let count = output.room().min(bytes.len());
                        output.push(&bytes[..count]);
                        all.extend(&bytes[..count]);
                    }
                    Action::Ack(index) => {
                        base += index.index(all.len() - base + 1);
                        output.ack(base as u64);
                    }
                    Action::GiveBack => output.give_back(),
                }
                prop_assert_eq!((output.base, output.end), (base as u64, all.len() as u64));
                prop_assert!(output.memory.len() as u64 <= memory);
                let spooled = output.spool.as_ref().map_or(0, |spool| spool.end - spool.start);
                prop_assert!(spooled <= spool);
                for start in base..all.len() {
                    let mut found = Vec::new();
                    while start + found.len() < all.len() {
                        let at = (start + found.len()) as u64;
                        output.copy(at, output.run(at).min(3), &mut found).unwrap();
                    }
                    prop_assert_eq!(&found, &all[start..]);
                }
            }
            output.keep().unwrap();
            let mut kept = Vec::new();
            if let Some(mut left) = shim_dir.leftover(base as u64).unwrap() {
                prop_assert_eq!(left.offset, base as u64);
                left.bytes.read_to_end(&mut kept).unwrap();
            }
            prop_assert_eq!(&kept, &all[base..]);
        }

        /// The daemon acknowledges whole lines alone, so a daemon that has them all must get the next one.
        #[test]
        fn a_line_of_half_of_what_may_be_kept_always_finds_room(
            memory in 1_u64..16,
            spool in 0_u64..40,
            lines in prop::collection::vec((any::<prop::sample::Index>(), any::<bool>()), 0..60),
        ) {
            if Path::new(r"C:\windows\system32\winecfg.exe").exists() {
                // Wine replaces no file that is open: a spool that is full stays full.
                return Ok(());
            }
            let state = TempDir::new().unwrap();
            let shim_dir = ShimDir::create(state.path(), "m").unwrap();
            let mut output = Output::new(shim_dir.clone(), memory, spool);
            let longest = memory.midpoint(spool).max(1) as usize;
            let (mut all, mut whole): (Vec<u8>, Vec<usize>) = (Vec::new(), vec![0]);
            for (length, late) in lines {
                let line = vec![whole.len() as u8; length.index(longest) + 1];
                let end = all.len() + line.len();
                while all.len() < end {
                    let mut room = output.room();
                    if room == 0 {
                        // One line of many, or all there are.
                        let known = if late { whole.len() / 2 } else { whole.len() - 1 };
                        output.ack(whole[known] as u64);
                        room = output.room();
                    }
                    if room == 0 {
                        output.ack(whole[whole.len() - 1] as u64);
                        room = output.room();
                    }
                    prop_assert!(room > 0);
                    let count = room.min(end - all.len());
                    output.push(&line[..count]);
                    all.extend(&line[..count]);
                }
                whole.push(end);
            }
            let base = output.base;
            let mut kept = Vec::new();
            while base + (kept.len() as u64) < output.end {
                let at = base + kept.len() as u64;
                output.copy(at, output.run(at), &mut kept).unwrap();
            }
            prop_assert_eq!(&kept, &all[base as usize..]);
        }
    }
}
