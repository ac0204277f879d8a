//! The service manager: there is none that hands over a socket or wants to be told.

use std::io;
use std::time::Duration;

use crate::door::Handed;

pub use crate::news::News;

/// The service manager, which is not there.
#[derive(Debug, Clone, Copy)]
pub struct Manager(());

impl Manager {
    pub fn find() -> Manager {
        Manager(())
    }

    /// Returns whether there is a service manager.
    pub fn is_there(&self) -> bool {
        false
    }

    /// The socket that was handed over.
    #[expect(clippy::unnecessary_wraps, reason = "as on Unix, where it can fail")]
    pub fn socket(&self) -> io::Result<Option<Handed>> {
        Ok(None)
    }

    /// Leaves the socket to the daemon that takes this one's place.
    pub fn keep_socket(&self) {}

    /// How often it wants a sign of life.
    pub fn watchdog(&self) -> Option<Duration> {
        None
    }

    #[expect(clippy::unnecessary_wraps, reason = "as on Unix, where it can fail")]
    pub fn tell(&self, _news: News) -> io::Result<()> {
        Ok(())
    }
}
