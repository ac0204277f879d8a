//! What a connection is, as far as that decides who may stay.

use crate::clients::Client;

impl Client {
    pub(crate) fn is_manager(&self) -> bool {
        self.profile.is_none()
    }

    /// It is a client of a process that runs under an agent.
    pub(crate) fn is_tool(&self) -> bool {
        !self.is_manager() && self.under_agent
    }

    /// Nobody misses it: it waits for nothing and follows nothing.
    pub(crate) fn is_idle(&self) -> bool {
        self.open.is_empty() && self.sessions.is_empty()
    }
}
