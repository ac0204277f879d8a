//! Desktop services: notifications, and preventing sleep. They use the desktop's own commands, so that a
//! daemon that mostly runs without a desktop links no library for it.

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
