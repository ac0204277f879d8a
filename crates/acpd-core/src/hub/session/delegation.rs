//! Limits on delegated sessions: depth and count.

use acpd_api::{Reason, SessionRowKey};

use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::SessionKey;
use crate::record::NewSession;
use crate::session::kin::Kin;

impl Hub {
    pub(crate) fn parent_for(&self, key: SessionKey) -> Result<SessionRowKey, Fault> {
        let row = &self.session(key).row;
        let parent = SessionRowKey {
            agent: row.agent.clone().into(),
            session_id: row.public_id.clone().into(),
        };
        let limits = self.cx.config.delegation;
        if self.sessions.depth(row.key) >= limits.max_depth {
            let text = format!(
                "session `{}` may begin no more sessions: it is {} below the one that a person began",
                row.handle(),
                limits.max_depth
            );
            return Err(Fault::new(Reason::TooMany, text)
                .hint("do the work in this session; `max_depth` in `[mcp.acpd]` sets the limit"));
        }
        let own = self.sessions.values().filter(|other| !other.row.archived);
        let own = own.filter(|other| other.kin.parent.as_ref() == Some(&parent)).count();
        let is_its = |new: &NewSession| Kin::of(&new.params).parent.as_ref() == Some(&parent);
        let being_made = self.being_made().filter(|(_, new)| is_its(new)).count();
        if own + being_made >= limits.max_sessions as usize {
            let text = format!(
                "session `{}` has begun {} others already",
                row.handle(),
                limits.max_sessions
            );
            return Err(Fault::new(Reason::TooMany, text).hint(
                "continue one of them by its name, or have a person archive some \
                 (`acpctl session archive`); `max_sessions` in `[mcp.acpd]` sets the limit",
            ));
        }
        Ok(parent)
    }
}
