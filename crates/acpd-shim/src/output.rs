//! The agent's output, from the first byte that is not acknowledged on.
//!
//! The oldest of it is in the spool, the rest in memory; memory that is full is spooled as a whole.
//! The spool is given up when all of it is acknowledged, so it may hold more than is needed, and
//! what is held never has a gap.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;

use crate::bundle::{Bundle, SPOOL_HEAD};

/// What is kept, and where.
#[derive(Debug)]
pub(crate) struct Output {
    bundle: Bundle,
    memory_limit: usize,
    spool_limit: u64,
    memory: VecDeque<u8>,
    spool: Option<Spool>,
    /// The disk took nothing: not tried again before [`Output::give_back`].
    refused: bool,
    base: u64,
    end: u64,
}

#[derive(Debug)]
struct Spool {
    file: File,
    /// Offsets of its first byte and behind its last one.
    start: u64,
    end: u64,
}

impl Output {
    pub(crate) fn new(bundle: Bundle, memory_limit: u64, spool_limit: u64) -> Output {
        Output {
            bundle,
            memory_limit: usize::try_from(memory_limit).unwrap_or(usize::MAX).max(1),
            spool_limit,
            memory: VecDeque::new(),
            spool: None,
            refused: false,
            base: 0,
            end: 0,
        }
    }

    /// Offset of the first byte that is kept.
    pub(crate) fn base(&self) -> u64 {
        self.base
    }

    /// Offset behind the last byte.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// How many bytes may be added now. Full memory is spooled, if that is possible.
    pub(crate) fn room(&mut self) -> usize {
        if self.memory.len() >= self.memory_limit && !self.refused {
            let spooled = self.spool.as_ref().map_or(0, |spool| spool.end - spool.start);
            if spooled + self.memory.len() as u64 <= self.spool_limit {
                self.refused = self.spill().is_err();
            }
        }
        self.memory_limit.saturating_sub(self.memory.len())
    }

    /// Adds output. More than [`Output::room`] is only for what must not be lost.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let needed = self.memory.len() + bytes.len();
        if needed > self.memory.capacity() {
            // By doubling, and never to twice the limit.
            let doubled = (2 * self.memory.capacity()).min(self.memory_limit);
            self.memory.reserve_exact(needed.max(doubled) - self.memory.len());
        }
        self.memory.extend(bytes);
        self.end += bytes.len() as u64;
    }

    /// Lets go of all before this offset.
    pub(crate) fn ack(&mut self, offset: u64) {
        self.base = offset.clamp(self.base, self.end);
        if self.spool.as_ref().is_some_and(|spool| spool.end <= self.base) {
            self.spool = None;
            self.bundle.remove_spool();
        }
        let first = self.end - self.memory.len() as u64;
        self.memory.drain(..self.base.saturating_sub(first) as usize);
    }

    /// How many bytes [`Output::copy`] can copy from this offset on; 0 only at the end.
    pub(crate) fn run(&self, offset: u64) -> usize {
        let end = match &self.spool {
            Some(spool) if offset < spool.end => spool.end,
            _ => self.end,
        };
        usize::try_from(end - offset).unwrap_or(usize::MAX)
    }

    /// Adds `count` bytes from this offset on to `to`, which have to be there.
    pub(crate) fn copy(&self, offset: u64, count: usize, to: &mut Vec<u8>) -> io::Result<()> {
        if let Some(spool) = self.spool.as_ref().filter(|spool| offset < spool.end) {
            let before = to.len();
            to.resize(before + count, 0);
            return spool.file.read_exact_at(&mut to[before..], SPOOL_HEAD + offset - spool.start);
        }
        let (head, tail) = self.memory.as_slices();
        let start = (offset + self.memory.len() as u64 - self.end) as usize;
        let end = start + count;
        let middle = head.len();
        to.extend_from_slice(&head[start.min(middle)..end.min(middle)]);
        to.extend_from_slice(&tail[start.max(middle) - middle..end.max(middle) - middle]);
        Ok(())
    }

    /// Gives memory back that is not needed now, and has the disk tried again.
    pub(crate) fn give_back(&mut self) {
        self.refused = false;
        self.memory.shrink_to_fit();
    }

    /// Writes everything to disk, for whoever comes later.
    pub(crate) fn keep(&mut self) -> io::Result<()> {
        self.spill()?;
        self.spool.as_ref().map_or(Ok(()), |spool| spool.file.sync_all())
    }

    fn spill(&mut self) -> io::Result<()> {
        if self.memory.is_empty() {
            return Ok(());
        }
        let spool = match &mut self.spool {
            Some(spool) => spool,
            None => {
                let file = self.bundle.create_spool()?;
                file.write_all_at(&self.base.to_le_bytes(), 0)?;
                self.spool.insert(Spool { file, start: self.base, end: self.base })
            }
        };
        // A part that got there before an error is written over.
        let (head, tail) = self.memory.as_slices();
        let at = SPOOL_HEAD + spool.end - spool.start;
        spool.file.write_all_at(head, at)?;
        spool.file.write_all_at(tail, at + head.len() as u64)?;
        spool.end += self.memory.len() as u64;
        self.memory.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use proptest::prelude::*;
    use tempfile::TempDir;

    use super::*;

    #[derive(Debug, Clone)]
    enum Action {
        /// The agent writes, as far as there is room.
        Push(Vec<u8>),
        /// The daemon has committed so much of what is kept.
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
            let bundle = Bundle::create(state.path(), "m").unwrap();
            let mut output = Output::new(bundle.clone(), memory, spool);
            let (mut all, mut base) = (Vec::new(), 0);
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
                prop_assert_eq!((output.base(), output.end()), (base as u64, all.len() as u64));
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
            if let Some(mut left) = bundle.leftover(base as u64).unwrap() {
                prop_assert_eq!(left.offset, base as u64);
                left.bytes.read_to_end(&mut kept).unwrap();
            }
            prop_assert_eq!(&kept, &all[base..]);
        }
    }
}
