//! What a full screen is told.

use crate::ask::Ask;

/// What a full screen is told by others than the keyboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// A person or the system asks something of it.
    Asked(Ask),
    /// It was stopped, and goes on: the terminal may be as somebody else wanted it.
    Continued,
    /// The terminal has another size.
    Resized,
}
