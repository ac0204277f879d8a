//! The terminal of a full screen: every key as it is, escapes and UTF-8 out.

use std::io;
use std::os::fd::AsFd as _;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, raise};
use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};
use nix::unistd::write;
use signal_hook::consts::{SIGCONT, SIGWINCH};
use signal_hook::iterator::Signals;

use crate::ask::Ask;

pub use crate::told::Told;

/// `true` where the user can stop the program and continue it.
pub const CAN_SUSPEND: bool = true;

/// `true` where keys come as a keyboard has them: also when they are released, AltGr as Ctrl and Alt, and
/// pasted text as if it was typed.
pub const HAS_BARE_KEYS: bool = false;

/// How a terminal was before a full screen.
#[derive(Debug)]
pub struct Before(Termios);

/// Takes the terminal on stdin and stdout. Returns how it was.
pub fn take() -> io::Result<Before> {
    let before = tcgetattr(io::stdin())?;
    let mut raw = before.clone();
    cfmakeraw(&mut raw);
    tcsetattr(io::stdin(), SetArg::TCSANOW, &raw)?;
    Ok(Before(before))
}

pub fn give_back(before: &Before) {
    // A terminal that is gone needs nothing.
    let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, &before.0);
}

/// Has the terminal report the mouse, beside the escapes that ask for that. It needs no more than these.
pub fn report_mouse(_is_on: bool) -> io::Result<()> {
    Ok(())
}

/// Writes past the standard library's buffer and its lock, which another thread may hold.
pub fn write_all(mut bytes: &[u8]) -> io::Result<()> {
    let stdout = io::stdout();
    while !bytes.is_empty() {
        match write(stdout.as_fd(), bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Waits until there is something to read, or perhaps is. It fails if the terminal is gone.
pub fn wait() -> io::Result<()> {
    let stdin = io::stdin();
    let mut keys = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    match poll(&mut keys, PollTimeout::NONE) {
        Ok(_) => match keys[0].revents() {
            Some(told) if told.intersects(PollFlags::POLLHUP | PollFlags::POLLERR) => {
                Err(io::ErrorKind::UnexpectedEof.into())
            }
            _ => Ok(()),
        },
        Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Has the terminal tell once more that there are keys: it does when its modes are set, also to what they were.
pub fn tell_again() {
    // If it fails, the next key tells.
    let _ = tcgetattr(io::stdin()).and_then(|now| tcsetattr(io::stdin(), SetArg::TCSANOW, &now));
}

/// Stops the program until the user continues it; returns then. The caller gives the terminal back before.
pub fn suspend() {
    // Where no process can continue us, the system does not stop us.
    let _ = raise(Signal::SIGTSTP);
}

/// Takes these from now on, and waits for each.
pub fn told() -> io::Result<impl Iterator<Item = Told> + Send + use<>> {
    let asks = Ask::ALL.map(Ask::signal);
    let mut signals = Signals::new(asks.into_iter().chain([SIGCONT, SIGWINCH]))?;
    Ok(std::iter::from_fn(move || {
        Some(match signals.forever().next()? {
            SIGCONT => Told::Continued,
            SIGWINCH => Told::Resized,
            came => Told::Asked(Ask::ALL.into_iter().find(|ask| ask.signal() == came)?),
        })
    }))
}
