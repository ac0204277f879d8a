//! Signals. On Windows, events of the console and the system count as signals.
//!
//! ```text
//!                 Unix                         Windows
//! Interrupt       SIGINT                       Ctrl-C
//! Quit            SIGQUIT                      Ctrl-Break, also of another process to its group
//! Terminate       SIGTERM                      end of the console, the login or the system
//! HangUp          SIGHUP                       -
//! Continue        SIGCONT                      -
//! Resize          SIGWINCH                     - (the size comes with the keys)
//! ```

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod system;

pub use system::*;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    HangUp,
    Interrupt,
    Quit,
    Terminate,
    Continue,
    Resize,
}

impl Signal {
    /// Signals that end a process by default.
    pub const ENDING: [Signal; 4] =
        [Signal::HangUp, Signal::Interrupt, Signal::Quit, Signal::Terminate];

    /// Returns N, where a shell gives a process that the signal ended the exit code 128 + N.
    pub fn number(self) -> i32 {
        self.number_and_name().0
    }

    pub fn name(self) -> &'static str {
        self.number_and_name().1
    }

    fn number_and_name(self) -> (i32, &'static str) {
        match self {
            Signal::HangUp => (1, "SIGHUP"),
            Signal::Interrupt => (2, "SIGINT"),
            Signal::Quit => (3, "SIGQUIT"),
            Signal::Terminate => (15, "SIGTERM"),
            Signal::Continue => (system::SIGCONT, "SIGCONT"),
            Signal::Resize => (28, "SIGWINCH"),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceivedSignal {
    pub signal: Signal,
    /// `None` if unknown, or if the signal reports a terminal that is gone.
    pub sender: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenSignals {
    pub child: bool,
    pub stop: bool,
}
