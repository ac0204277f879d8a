//! Exit codes of `acpctl`: an interface, never renumbered.

use crate::Reason;

/// Exit code of `acpd login` if the program cannot be executed; the reason is on stderr. Shells use
/// the same code for a missing command.
pub const LOGIN_NOT_BEGUN: u8 = 127;

/// Exit code of `acpctl`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum ExitCode {
    /// Success.
    Ok = 0,
    /// An error without a code of its own.
    Error = 1,
    /// The command line is wrong.
    Usage = 2,
    /// No such agent, session or file.
    NotFound = 3,
    /// The agent requires a login.
    NeedsLogin = 4,
    /// The agent or the user refused.
    Refused = 5,
    /// The turn was cut off in the middle.
    Interrupted = 6,
    /// The conversation was not fully restored.
    ContextLost = 7,
    /// The agent may or may not have got the prompt.
    OutcomeUnknown = 8,
    /// The command's time is over; `timeout` has the same code.
    TimedOut = 124,
    /// Cancelled from the keyboard.
    Cancelled = 130,
}

impl ExitCode {
    /// All codes with one line each, for the documentation and `--help`.
    pub const ALL: [(ExitCode, &'static str); 11] = [
        (ExitCode::Ok, "done"),
        (ExitCode::Error, "error"),
        (ExitCode::Usage, "wrong usage"),
        (ExitCode::NotFound, "no such agent, session or file"),
        (ExitCode::NeedsLogin, "the agent wants a login"),
        (ExitCode::Refused, "refused"),
        (ExitCode::Interrupted, "the turn was interrupted"),
        (ExitCode::ContextLost, "the conversation was lost, reseeded or restored in part"),
        (ExitCode::OutcomeUnknown, "the outcome is unknown"),
        (ExitCode::TimedOut, "the time is over"),
        (ExitCode::Cancelled, "cancelled"),
    ];

    /// The number given to the shell.
    pub fn code(self) -> u8 {
        self as u8
    }
}

impl From<Reason> for ExitCode {
    fn from(reason: Reason) -> ExitCode {
        match reason {
            Reason::AgentUnknown
            | Reason::SessionNotFound
            | Reason::SessionRemoved
            | Reason::CwdMissing => ExitCode::NotFound,
            Reason::NeedsLogin => ExitCode::NeedsLogin,
            Reason::AgentExited | Reason::Interrupted => ExitCode::Interrupted,
            Reason::UnderAgent | Reason::OutOfScope | Reason::Budget => ExitCode::Refused,
            Reason::SessionLost => ExitCode::ContextLost,
            Reason::OutcomeUnknown => ExitCode::OutcomeUnknown,
            Reason::Invalid | Reason::SessionAmbiguous | Reason::NameTaken => ExitCode::Usage,
            // The others have no code of their own. If an agent stops during a turn, that turn is
            // interrupted.
            _ => ExitCode::Error,
        }
    }
}
