//! The program that shows long output page by page: `$ACPCTL_PAGER`, else `$PAGER`, else `less`.

use std::env;
use std::io::{self, Write};
use std::process::{Child, Stdio};

use acpd_sys::process;
use acpd_sys::programs;
use acpd_sys::signals::{self, Signal};
use acpd_sys::terminal::Utf8;

/// Default options of `less`: exit if all fits, keep colours and the screen.
const LESS: &str = "FRX";

#[derive(Debug)]
pub(crate) struct Pager {
    child: Child,
    _encoding: Utf8,
}

impl Pager {
    /// Starts it. `None` if the user wants none or it cannot be started: then the output goes out as it is.
    pub(crate) fn start() -> Option<Pager> {
        let line = command()?;
        let mut command = process::shell(&line);
        command.stdin(Stdio::piped());
        if env::var_os("LESS").is_none() {
            command.env("LESS", LESS);
        }
        let child = command.spawn().ok()?;
        // Ctrl-C is for the pager. Before it has ended, this process must not give the terminal back.
        drop(signals::ignore(&[Signal::Interrupt]));
        Some(Pager { child, _encoding: Utf8::set() })
    }

    /// Closes the pager's input, and waits until the user has left it.
    pub(crate) fn wait(&mut self) {
        drop(self.child.stdin.take());
        // The exit status is no error of the output.
        drop(self.child.wait());
    }
}

impl Write for Pager {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.child.stdin {
            Some(stdin) => stdin.write(bytes),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.child.stdin.as_mut().map_or(Ok(()), Write::flush)
    }
}

/// The command line of the pager of this person, if they want one.
pub(crate) fn command() -> Option<String> {
    wanted(|name| env::var(name).ok())
}

/// The command line of the pager. An empty one, and `cat`, mean none.
fn wanted(variable: impl Fn(&str) -> Option<String>) -> Option<String> {
    let named = ["ACPCTL_PAGER", "PAGER"].into_iter().find_map(variable);
    let line = named.unwrap_or_else(|| programs::PAGER.to_owned());
    (!line.trim().is_empty() && line.trim() != "cat").then_some(line)
}
