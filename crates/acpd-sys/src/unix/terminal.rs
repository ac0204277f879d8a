//! The terminal on stdin.

use std::fs::File;
use std::io;
use std::os::fd::AsFd as _;
use std::os::unix::fs::FileTypeExt as _;

use nix::sys::termios::{FlushArg, LocalFlags, SetArg, Termios, tcflush, tcgetattr, tcsetattr};
use nix::unistd::ttyname;

/// How a terminal was set.
#[derive(Debug, Clone)]
pub struct Modes(Termios);

/// Has the terminal hand over each key at once, without an echo; Ctrl-C stays a signal. What was typed before is thrown
/// away. Returns how it was set.
pub fn single_keys() -> io::Result<Modes> {
    let before = tcgetattr(io::stdin())?;
    let mut keys = before.clone();
    keys.local_flags.remove(LocalFlags::ICANON | LocalFlags::ECHO);
    tcsetattr(io::stdin(), SetArg::TCSAFLUSH, &keys)?;
    Ok(Modes(before))
}

/// Sets the terminal as it was.
pub fn restore(before: &Modes) {
    // A terminal that is gone needs nothing.
    let _ = tcsetattr(io::stdin(), SetArg::TCSANOW, &before.0);
}

/// Throws away what was typed and not read yet.
pub fn forget_typed() {
    // Fails if stdin is no terminal, which has nothing to forget.
    let _ = tcflush(io::stdin(), FlushArg::TCIFLUSH);
}

/// The name of the terminal, if it is one that has a name: `pts/3`.
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

/// Returns whether the terminal can show a full screen, as far as the environment says.
pub fn is_able() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term != "dumb" && !term.is_empty())
}

/// Returns whether the terminal shows more than ASCII, as far as the environment says.
pub fn is_unicode() -> bool {
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let locale = set("LC_ALL").or_else(|| set("LC_CTYPE")).or_else(|| set("LANG"));
    let locale = locale.unwrap_or_default().to_ascii_lowercase();
    locale.contains("utf-8") || locale.contains("utf8")
}

/// The encoding of what programs write to the terminal. It is the same all the time.
#[derive(Debug)]
pub struct Utf8(());

impl Utf8 {
    pub fn begin() -> Utf8 {
        Utf8(())
    }

    pub fn end(&self) {}
}
