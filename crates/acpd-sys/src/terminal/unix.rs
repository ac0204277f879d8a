use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileTypeExt as _;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, raise};
use nix::sys::termios::{
    FlushArg, LocalFlags, SetArg, Termios, cfmakeraw, tcflush, tcgetattr, tcsetattr,
};
use nix::unistd::{ttyname, write};

/// The user can suspend and continue the program.
pub const CAN_SUSPEND: bool = true;

/// Keys arrive as on a keyboard: releases too, AltGr as Ctrl and Alt, and pasted text as
/// typed.
pub const HAS_BARE_KEYS: bool = false;

/// Modes of a terminal before a change.
#[derive(Debug, Clone)]
pub struct Modes(Termios);

impl Modes {
    pub fn restore(&self) {
        let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, &self.0);
    }
}

fn change(when: SetArg, change: impl FnOnce(&mut Termios)) -> io::Result<Modes> {
    let before = tcgetattr(io::stdin())?;
    let mut now = before.clone();
    change(&mut now);
    tcsetattr(io::stdin(), when, &now)?;
    Ok(Modes(before))
}

/// Makes the terminal deliver each key at once, without an echo; Ctrl-C stays a signal. Drops
/// earlier input.
pub fn single_keys() -> io::Result<Modes> {
    change(SetArg::TCSAFLUSH, |modes| {
        modes.local_flags.remove(LocalFlags::ICANON | LocalFlags::ECHO);
    })
}

/// Prepares the terminal for a full screen: raw keys in, escapes and UTF-8 out.
pub fn raw() -> io::Result<Modes> {
    change(SetArg::TCSANOW, cfmakeraw)
}

pub fn forget_typed() {
    let _ = tcflush(io::stdin(), FlushArg::TCIFLUSH);
}

/// Makes the terminal report the mouse, in addition to the escapes for that.
pub fn report_mouse(_is_on: bool) -> io::Result<()> {
    Ok(())
}

/// Writes without the standard library's buffer and lock, which another thread may hold.
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

/// Waits until there may be input. Fails if the terminal is gone.
pub fn wait() -> io::Result<()> {
    let stdin = io::stdin();
    let mut keys = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    match poll(&mut keys, PollTimeout::NONE) {
        Ok(_) => match keys[0].revents() {
            Some(found) if found.intersects(PollFlags::POLLHUP | PollFlags::POLLERR) => {
                Err(io::ErrorKind::UnexpectedEof.into())
            }
            _ => Ok(()),
        },
        Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Makes the terminal announce pending keys again, as a change of its modes does.
pub fn announce_keys() {
    // If it fails, the next key is announced.
    let _ = change(SetArg::TCSANOW, |_| ());
}

/// Stops the program until the user continues it. The caller restores the terminal before.
pub fn suspend() {
    // An orphaned process group is not stopped.
    let _ = raise(Signal::SIGTSTP);
}

/// Returns a name such as `pts/3`.
pub fn name() -> Option<String> {
    let path = ttyname(io::stdin()).ok()?;
    Some(path.strip_prefix("/dev/").unwrap_or(&path).to_str()?.to_owned())
}

pub fn input_is_fed() -> bool {
    let stdin = io::stdin().as_fd().try_clone_to_owned().map(File::from);
    let kind = stdin.and_then(|stdin| stdin.metadata()).map(|data| data.file_type());
    kind.is_ok_and(|kind| kind.is_fifo() || kind.is_file())
}

/// Returns whether the terminal can show a full screen, by its `TERM`.
pub fn can_show_full_screen() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term != "dumb" && !term.is_empty())
}

/// Returns whether the terminal shows more than ASCII, by the locale.
pub fn has_unicode() -> bool {
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG"));
    let locale = locale.unwrap_or_default().to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

/// Sets the encoding of programs in the terminal to UTF-8, until dropped. Does nothing on Unix.
#[derive(Debug)]
pub struct Utf8(());

impl Utf8 {
    pub fn set() -> Utf8 {
        Utf8(())
    }
}
