//! Reads the output of a command, and keeps the end of it.

use std::collections::VecDeque;
use std::io;
use std::str;
use std::sync::mpsc::{self, TryRecvError};
use std::time::{Duration, Instant};

use acpd_sys::wait::{End, Interest, Wait};
use tokio::sync::watch;

use super::types::{Exit, Gone, Output};

/// Largest capacity of a pipe, in bytes.
const PIPE: usize = 1 << 20;
const PIECE: usize = 16 << 10;

const FAR: Duration = Duration::from_hours(1);

pub(super) struct State {
    kept: Kept,
    pub(super) exit: Option<Exit>,
}

impl State {
    pub(super) fn new(limit: usize) -> State {
        State { kept: Kept::new(limit), exit: None }
    }

    pub(super) fn output(&self) -> Output {
        let (text, truncated) = self.kept.text(self.exit.is_some());
        Output { text, truncated, exit: self.exit.clone() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ready {
    Pipe,
    Bell,
}

/// Reads until all writers have closed, and publishes the exit after the output before it. The
/// threads that send the exit and release the tree ring the bell afterwards. Blocks the thread.
pub(super) fn read(
    mut pipe: End,
    mut bell: End,
    state: &watch::Sender<State>,
    exited: &mpsc::Receiver<Exit>,
    gone: &Gone,
) {
    // Output does not wake a thread that waits for the exit.
    let keep = |bytes: &[u8]| {
        state.send_if_modified(|state| {
            state.kept.push(bytes);
            false
        });
    };
    let mut piece = vec![0; PIECE];
    let (mut open, mut running) = (true, true);
    while open || running {
        let mut wait = Wait::empty();
        wait.add(&mut bell, Interest::Read, Ready::Bell);
        if open {
            wait.add(&mut pipe, Interest::Read, Ready::Pipe);
        }
        let ready = wait.until(Instant::now() + FAR);
        if ready.contains(&Ready::Bell) {
            keep_rest(&mut bell, &mut piece, |_| ()).ok();
            let exit = if running { exited.try_recv() } else { Err(TryRecvError::Empty) };
            let is_gone = gone.has_changed().is_err();
            if running && exit != Err(TryRecvError::Empty) {
                running = false;
                // Output from before the end is in the pipe already.
                keep_rest(&mut pipe, &mut piece, keep).ok();
                state.send_modify(|state| state.exit = Some(exit.unwrap_or_default()));
            }
            if is_gone && !running {
                keep_rest(&mut pipe, &mut piece, keep).ok();
                return;
            }
        } else if ready.contains(&Ready::Pipe) {
            match pipe.read(&mut piece) {
                Ok(n) if n > 0 => keep(&piece[..n]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                _ => open = false,
            }
        }
    }
}

/// Reads what the pipe holds now, at most [`PIPE`] bytes: others may write meanwhile.
fn keep_rest(pipe: &mut End, piece: &mut [u8], keep: impl Fn(&[u8])) -> io::Result<()> {
    let mut total = 0;
    while total < PIPE {
        match pipe.read(piece) {
            Ok(0) => break,
            Ok(n) => {
                total += n;
                keep(&piece[..n]);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The last bytes of a stream.
struct Kept {
    bytes: VecDeque<u8>,
    limit: usize,
    dropped: bool,
}

impl Kept {
    /// Bytes kept beyond the limit: up to three at the front may be the rest of a cut character,
    /// and up to three at the end are not shown yet. Text is never shorter than its bytes, so both
    /// stay out of the limit.
    const SPARE: usize = 6;

    fn new(limit: usize) -> Kept {
        Kept { bytes: VecDeque::new(), limit, dropped: false }
    }

    fn push(&mut self, bytes: &[u8]) {
        let most = self.limit + Kept::SPARE;
        let last = &bytes[bytes.len().saturating_sub(most)..];
        let over = (self.bytes.len() + last.len()).saturating_sub(most);
        self.bytes.drain(..over);
        self.bytes.extend(last);
        self.dropped |= over > 0 || last.len() < bytes.len();
    }

    /// Returns the last text within the limit, and whether there was more before. The beginning of
    /// a character is shown only if the stream has ended.
    fn text(&self, ended: bool) -> (String, bool) {
        let (front, back) = self.bytes.as_slices();
        let bytes = [front, back].concat();
        let whole = if ended { bytes.len() } else { bytes.len() - unfinished(&bytes) };
        let mut text = String::from_utf8_lossy(&bytes[..whole]).into_owned();
        let cut = text.ceil_char_boundary(text.len().saturating_sub(self.limit));
        text.drain(..cut);
        (text, self.dropped || cut > 0)
    }
}

/// Returns the number of bytes at the end that are the beginning of a character.
fn unfinished(bytes: &[u8]) -> usize {
    let last = &bytes[bytes.len().saturating_sub(3)..];
    let is_beginning = |tail: &&[u8]| {
        str::from_utf8(tail).is_err_and(|e| e.valid_up_to() == 0 && e.error_len().is_none())
    };
    let mut tails = (0..last.len()).map(|from| &last[from..]);
    tails.find(is_beginning).map_or(0, <[u8]>::len)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn bytes() -> impl Strategy<Value = Vec<u8>> {
        let part = prop_oneof![
            any::<char>().prop_map(|c| c.to_string().into_bytes()),
            any::<u8>().prop_map(|byte| vec![byte]),
            vec(0x80..=0xf4_u8, 0..5),
        ];
        vec(part, 0..40).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn what_is_shown_is_the_end_of_the_text_within_the_limit_however_it_came(
            bytes in bytes(),
            sizes in vec(0..20_usize, 0..40),
            limit in 0..60_usize,
        ) {
            let mut kept = Kept::new(limit);
            let mut whole = Kept::new(usize::MAX - Kept::SPARE);
            let mut rest = &bytes[..];
            let all = String::from_utf8_lossy(&bytes);
            for size in sizes.into_iter().chain([usize::MAX]) {
                let (piece, later) = rest.split_at(size.min(rest.len()));
                rest = later;
                kept.push(piece);
                whole.push(piece);
                // Nothing that is shown is ever taken back.
                let (shown, more) = whole.text(false);
                prop_assert!(all.starts_with(&shown) && !more);
                let (end, more) = kept.text(false);
                prop_assert!(shown.ends_with(&end) && end.len() <= limit);
                prop_assert!(more || end == shown);
            }
            let (text, truncated) = kept.text(true);
            prop_assert!(all.ends_with(&text));
            prop_assert_eq!(truncated, text != all);
            // One more character would be too much.
            let before = all[..all.len() - text.len()].chars().next_back();
            prop_assert!(before.is_none_or(|c| text.len() + c.len_utf8() > limit));
            prop_assert!(kept.bytes.len() <= limit + Kept::SPARE);
        }
    }
}
