//! Signals. On Windows, what a console and the system ask of a program counts as the same signals.
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

#[cfg(windows)]
pub use system::interrupt_console;
#[cfg(windows)]
pub(crate) use system::leave_to_others;
pub use system::{STOP_REQUESTS, SignalPipe, end_by, ignore, nudge, nudges, watch};

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
    /// The signals that ask for an end, by default.
    pub const ENDING: [Signal; 4] =
        [Signal::HangUp, Signal::Interrupt, Signal::Quit, Signal::Terminate];

    /// The number of the signal. A process that it ends has the exit code 128 + N in a shell.
    pub fn number(self) -> i32 {
        match self {
            Signal::HangUp => 1,
            Signal::Interrupt => 2,
            Signal::Quit => 3,
            Signal::Terminate => 15,
            Signal::Continue => system::SIGCONT,
            Signal::Resize => 28,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Signal::HangUp => "SIGHUP",
            Signal::Interrupt => "SIGINT",
            Signal::Quit => "SIGQUIT",
            Signal::Terminate => "SIGTERM",
            Signal::Continue => "SIGCONT",
            Signal::Resize => "SIGWINCH",
        }
    }
}

/// A signal that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceivedSignal {
    pub signal: Signal,
    /// The process that sent it, where the system knows one: not for a terminal that is gone.
    pub sender: Option<u32>,
}

/// The signals of a [`SignalPipe`] since the last look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenSignals {
    /// A child ended.
    pub child: bool,
    /// The process is asked to end.
    pub stop: bool,
}
