//! What a desktop does for its programs: notifications, and no sleep. Its own commands do it, so no library for it
//! is in a daemon that mostly runs without one.

use crate::os;

/// The command that shows a notification: the program and its arguments. `None` if this process belongs to no
/// desktop.
pub fn notification(title: &str, body: &str) -> Option<Vec<String>> {
    os::notification(title, body)
}

/// The program that opens a file or an address as the user has chosen.
pub fn opener() -> &'static str {
    os::OPENER
}

/// The command that keeps the machine awake until its standard input ends.
pub fn awake() -> Vec<String> {
    os::AWAKE.iter().map(|word| (*word).to_owned()).collect()
}
