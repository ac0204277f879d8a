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

/// Whether the user can stop the program and continue it.
pub const CAN_SUSPEND: bool = true;

/// Whether keys come as a keyboard has them: also when they are released, AltGr as Ctrl and Alt, and
/// pasted text as if it was typed.
pub const HAS_BARE_KEYS: bool = false;

/// The modes of a terminal as they were.
#[derive(Debug, Clone)]
pub struct Modes(Termios);

impl Modes {
    pub fn restore(&self) {
        // A terminal that is gone needs nothing.
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

/// Has the terminal hand over each key at once, without an echo; Ctrl-C stays a signal. Drops what was
/// typed before.
pub fn single_keys() -> io::Result<Modes> {
    change(SetArg::TCSAFLUSH, |modes| {
        modes.local_flags.remove(LocalFlags::ICANON | LocalFlags::ECHO);
    })
}

/// Takes the terminal for a full screen: every key as it is, escapes and UTF-8 out.
pub fn raw() -> io::Result<Modes> {
    change(SetArg::TCSANOW, cfmakeraw)
}

/// Drops what was typed and not read yet.
pub fn forget_typed() {
    // Without a terminal there is nothing to drop.
    let _ = tcflush(io::stdin(), FlushArg::TCIFLUSH);
}

/// Has a full screen's terminal report the mouse, in addition to the escapes that ask for that.
pub fn report_mouse(_is_on: bool) -> io::Result<()> {
    Ok(())
}

/// Writes without the standard library's buffer and its lock, which another thread may hold.
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

/// Waits until there may be something to read. It fails if the terminal is gone.
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

/// Has the terminal announce once more that there are keys, as it does when its modes are set.
pub fn announce_keys() {
    // If it fails, the next key is announced.
    let _ = change(SetArg::TCSANOW, |_| ());
}

/// Stops the program until the user continues it. The terminal is to be restored before.
pub fn suspend() {
    // An orphaned process group is not stopped.
    let _ = raise(Signal::SIGTSTP);
}

/// The name of the terminal, such as `pts/3`.
pub fn name() -> Option<String> {
    let path = ttyname(io::stdin()).ok()?;
    Some(path.strip_prefix("/dev/").unwrap_or(&path).to_str()?.to_owned())
}

/// Returns whether stdin is a pipe or a file.
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

/// Sets the encoding of programs in the terminal to UTF-8, until it is dropped. On Unix it always is.
#[derive(Debug)]
pub struct Utf8(());

impl Utf8 {
    pub fn set() -> Utf8 {
        Utf8(())
    }
}
