//! Ends the processes of terminals that a killed daemon left.

use std::collections::HashMap;
use std::time::Duration;

use acpd_sys::ladder::{Ladder, Pauses};
use acpd_sys::process::StopSignal;
use acpd_sys::tree::{Tree, marks};

const LOOK: Pauses = Pauses { first: Duration::from_millis(5), longest: Duration::from_secs(1) };

/// Ends all processes of terminals with a marker that `is_left`, and returns when none runs.
/// `grace` is the time from SIGTERM to SIGKILL.
pub fn end_leftovers(is_left: impl Fn(&str) -> bool, grace: Duration) {
    let mut left: HashMap<String, Tree> = HashMap::new();
    Ladder::term_first(grace, LOOK.longest).climb(LOOK, |signal| {
        for (mark, process) in marks() {
            if is_left(&mark) && !left.contains_key(&mark) {
                let mut tree = Tree::leftovers(mark.clone(), process, &[]);
                tree.signal_all(StopSignal::Term);
                left.insert(mark, tree);
            }
        }
        left.retain(|_, tree| !tree.is_empty());
        if signal == Some(StopSignal::Kill) {
            for tree in left.values_mut() {
                tree.signal_all(StopSignal::Kill);
            }
        }
        left.is_empty()
    });
}
