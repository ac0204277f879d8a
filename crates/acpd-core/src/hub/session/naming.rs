//! Names of sessions: each is given once in a workspace of an agent.

use crate::fault::{Fault, name_taken};
use crate::hub::Hub;
use crate::ids::SessionKey;

impl Hub {
    /// Whether a session may have a name: no other session than `of` has it, or is to have it.
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
        let other = self.sessions.by_name(agent, cwd, name).filter(|other| Some(*other) != of);
        if other.is_some() || self.is_being_named(agent, cwd, name) {
            return Err(name_taken(name, cwd));
        }
        Ok(())
    }
}
