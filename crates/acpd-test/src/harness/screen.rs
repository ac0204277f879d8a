//! A program on a terminal, and its screen.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::num::NonZero;
use std::os::fd::OwnedFd;
use std::process::{Command, ExitStatus};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use nix::pty::Winsize;
use nix::sys::signal::Signal;
use nix::sys::termios::{LocalFlags, tcgetattr};

use super::ctl::on_terminal;
use super::{DEADLINE, until};
use crate::lock;
use crate::process::ChildGuard;

/// A program that shows a full screen. Dropping it kills it.
pub struct Screen {
    child: ChildGuard,
    terminal: File,
    /// Keeps the terminal open after the program, to check its modes.
    program_side: OwnedFd,
    shared: Arc<(Mutex<Shown>, Condvar)>,
}

struct Shown {
    parser: vt100::Parser,
    bytes: Vec<u8>,
}

impl Screen {
    pub fn start(mut command: Command, (columns, rows): (u16, u16)) -> Screen {
        let size = Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        let (child, terminal, program_side) =
            on_terminal(command.env("LANG", "C.UTF-8"), Some(&size));
        let parser = vt100::Parser::new(size_of(rows), size_of(columns), 0);
        let shown = Shown { parser, bytes: Vec::new() };
        let shared = Arc::new((Mutex::new(shown), Condvar::new()));
        let (theirs, mut from) = (Arc::clone(&shared), terminal.try_clone().expect("a descriptor"));
        thread::spawn(move || {
            let (mut block, mut held) = ([0; 8 << 10], Vec::new());
            while let Ok(count @ 1..) = from.read(&mut block) {
                held.extend_from_slice(&block[..count]);
                let whole = whole_frames(&held);
                let mut shown = lock(&theirs.0);
                shown.parser.process(&held[..whole]);
                held.drain(..whole);
                shown.bytes.extend_from_slice(&block[..count]);
                theirs.1.notify_all();
            }
        });
        Screen { child, terminal, program_side, shared }
    }

    pub fn types(&mut self, keys: &str) {
        self.terminal.write_all(keys.as_bytes()).expect("the terminal takes keys");
    }

    /// Waits until the screen matches, and returns its text.
    pub fn waits(&self, what: &str, fits: impl Fn(&vt100::Screen) -> bool) -> String {
        let waits = |shown: &mut Shown| !fits(shown.parser.screen());
        let waited = self.shared.1.wait_timeout_while(lock(&self.shared.0), DEADLINE, waits);
        let shown = waited.unwrap_or_else(PoisonError::into_inner).0;
        let now = shown.parser.screen().contents();
        assert!(fits(shown.parser.screen()), "{what} did not come:\n{now}");
        now
    }

    pub fn sees(&self, text: &str) -> String {
        self.waits(text, |screen| screen.contents().contains(text))
    }

    /// Waits until this was written.
    pub fn writes(&self, text: &str) {
        until(text, || self.written().contains(text).then_some(()));
    }

    /// All output, with cursor movements.
    pub fn written(&self) -> String {
        String::from_utf8_lossy(&lock(&self.shared.0).bytes).into_owned()
    }

    pub fn resize(&mut self, (columns, rows): (u16, u16)) {
        lock(&self.shared.0).parser.screen_mut().set_size(size_of(rows), size_of(columns));
        let size =
            rustix::termios::Winsize { ws_row: rows, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&self.terminal, size).expect("a terminal");
        // A terminal without a session sends no signal by itself.
        self.signal(Signal::SIGWINCH);
    }

    pub fn pid(&self) -> u32 {
        self.child.0.id()
    }

    pub fn signal(&self, signal: Signal) {
        super::signal(self.pid(), signal);
    }

    /// Returns whether the terminal is as a shell needs it: without any mode of a full screen.
    pub fn is_as_before(&self) -> bool {
        let modes = tcgetattr(&self.program_side).expect("a terminal");
        let is_cooked = modes.local_flags.contains(LocalFlags::ICANON | LocalFlags::ECHO);
        let shown = lock(&self.shared.0);
        let screen = shown.parser.screen();
        is_cooked
            && !screen.alternate_screen()
            && !screen.bracketed_paste()
            && !screen.hide_cursor()
            && screen.mouse_protocol_mode() == vt100::MouseProtocolMode::None
    }

    pub fn gives_back(&self) {
        until("the modes of a shell", || self.is_as_before().then_some(()));
    }

    pub fn ends(&mut self) -> ExitStatus {
        until("a command to end", || self.child.0.try_wait().expect("a child"))
    }
}

impl std::fmt::Debug for Screen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&lock(&self.shared.0).parser.screen().contents())
    }
}

/// Length of the shown output: without an unfinished frame (synchronized output).
fn whole_frames(bytes: &[u8]) -> usize {
    let last = |mark: &[u8]| bytes.windows(mark.len()).rposition(|window| window == mark);
    match (last(b"\x1b[?2026h"), last(b"\x1b[?2026l")) {
        (Some(begins), ends) if ends.is_none_or(|ends| ends < begins) => begins,
        _ => bytes.len(),
    }
}

fn size_of(cells: u16) -> NonZero<u16> {
    NonZero::new(cells).expect("a terminal has cells")
}
