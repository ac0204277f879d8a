//! A process hears that something has changed.

use std::process;

use acpd_sys::signals::{nudge, nudges};

#[test]
fn each_nudge_wakes_whoever_waits() {
    let mut heard = nudges().unwrap();
    for _ in 0..3 {
        nudge(process::id());
        assert_eq!(heard.next(), Some(()));
    }
}
