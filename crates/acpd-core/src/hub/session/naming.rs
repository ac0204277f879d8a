//! Names of sessions: each is given once in a workspace of an agent. Of those of several agents, only the agent
//! tells them apart.

use crate::fault::{Fault, name_taken};
use crate::hub::Hub;
use crate::ids::SessionKey;
use crate::record::SessionRow;

/// The holder of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NameClash {
    /// Another session of the same agent.
    Session(SessionKey),
    /// A session of that agent that is being made.
    BeingMade,
    /// A session of this other agent.
    OtherAgent(String),
}

impl Hub {
    /// Returns the holder of a name other than the session `of`.
    pub(crate) fn name_clash(
        &self,
        agent: &str,
        cwd: &str,
        name: &str,
        of: Option<SessionKey>,
    ) -> Option<NameClash> {
        let other = self.sessions.by_name(agent, cwd, name).filter(|other| Some(*other) != of);
        if let Some(other) = other {
            return Some(NameClash::Session(other));
        }
        if self.is_being_named(agent, cwd, name) {
            return Some(NameClash::BeingMade);
        }
        let mut rows = self.sessions.values().map(|session| &session.row);
        let is_other = |row: &SessionRow| {
            row.agent != agent && row.cwd == cwd && row.name.as_deref() == Some(name)
        };
        rows.find(|row| is_other(row)).map(|row| NameClash::OtherAgent(row.agent.clone()))
    }

    /// Returns whether a session may have a name: no other one of its agent has it, or will.
    ///
    /// # Errors
    /// When it is taken; what else could be done is for the caller to say.
    pub(crate) fn name_is_free(
        &self,
        agent: &str,
        cwd: &str,
        name: &str,
        of: Option<SessionKey>,
    ) -> Result<(), Fault> {
        match self.name_clash(agent, cwd, name, of) {
            None | Some(NameClash::OtherAgent(_)) => Ok(()),
            Some(NameClash::Session(_) | NameClash::BeingMade) => Err(name_taken(name, cwd)),
        }
    }
}
