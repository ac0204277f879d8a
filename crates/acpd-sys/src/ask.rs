//! Signals to a program in a terminal.

/// A request of a user or the system to a program in a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    Interrupt,
    /// Ctrl-\, or Ctrl-Break on Windows.
    Quit,
    End,
    /// To end, because the terminal is gone.
    HangUp,
}

impl Ask {
    pub const ALL: [Ask; 4] = [Ask::Interrupt, Ask::Quit, Ask::End, Ask::HangUp];

    /// The number of its signal, where there are signals; shells tell of an end by it.
    pub fn signal(self) -> i32 {
        match self {
            Ask::Interrupt => 2,
            Ask::Quit => 3,
            Ask::End => 15,
            Ask::HangUp => 1,
        }
    }
}
