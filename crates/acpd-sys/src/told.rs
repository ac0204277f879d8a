//! Events of a full screen other than keys.

use crate::ask::Ask;

/// An event of a full screen from another source than the keyboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// A person or the system asks something of it.
    Asked(Ask),
    /// Continued after a stop: another program may have changed the terminal.
    Continued,
    /// The terminal has another size.
    Resized,
}
