//! The kind of a connection, which decides about its place.

use crate::clients::Client;

impl Client {
    pub(crate) fn is_manager(&self) -> bool {
        self.profile.is_none()
    }

    /// A client of a process that runs under an agent.
    pub(crate) fn is_tool(&self) -> bool {
        !self.is_manager() && self.under_agent
    }

    /// The connection waits for nothing and follows nothing.
    pub(crate) fn is_idle(&self) -> bool {
        self.open.is_empty() && self.sessions.is_empty()
    }
}
