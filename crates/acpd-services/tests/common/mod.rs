//! Parts that tests of terminals share on all systems.

use std::io;
use std::process::{Child, Command};

use acpd_services::terminal::Children;
use acpd_sys::process::{discard, reap, start};

/// Children of this program, in which nothing else reaps.
pub(crate) struct Own;

impl Children for Own {
    fn start(&self, command: &mut Command) -> io::Result<Child> {
        start(command)
    }

    fn discard(&self, child: Child) {
        discard(child);
    }

    fn reap(&self, pid: u32) {
        reap(pid).unwrap();
    }
}
