//! `session/status` and the archive, which acpd serves without the agent.
//!
//! ```text
//!        archive: closed for all                  unarchive
//!  listed ───────────────────────────▶ archived ─────────────▶ listed, and still closed
//!    ▲                                    │
//!    └─ a prompt, or what needs the agent ┘
//! ```
//!
//! The archive is acpd's own, so every agent has one; the agent only sees that the session is
//! closed. A client that opens an archived session reads it, and wakes no agent.
//!
//! Architecture invariant: no agent holds an archived session.

use acpd_api::SessionRef;
use serde_json::json;

use crate::clients::{Asked, Served};
use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::{ClientId, Requester, SessionKey};
use crate::params::read;
use crate::record::Dormant;
use crate::session::State;

impl Hub {
    /// Changes nothing, not even attachments.
    pub(crate) fn send_session_status(&mut self, to: &Requester, key: SessionKey) {
        let is_open = match &self.session(key).state {
            State::Live => true,
            State::Restoring(restore) => restore.is_back(),
            State::Dormant => false,
        };
        let status = if is_open { "open" } else { "saved" };
        self.answer(to, &json!({ "status": status }));
    }

    pub(crate) fn archive_for(
        &mut self,
        client: ClientId,
        key: SessionKey,
        archived: bool,
    ) -> Result<(), Fault> {
        if archived {
            self.can_archive(key)?;
            self.detach(client, key);
        }
        self.set_archived(key, archived);
        Ok(())
    }

    pub(crate) fn session_archive(&mut self, asked: Asked<'_>, archived: bool) -> Served {
        let Asked { to, params, .. } = asked;
        let key = self.resolve(&read::<SessionRef>(params)?)?;
        if archived {
            self.can_archive(key)?;
        }
        self.set_archived(key, archived);
        let info = self.session_info(key);
        self.answer(to, &info);
        Ok(())
    }

    pub(crate) fn set_archived(&mut self, key: SessionKey, archived: bool) {
        if archived {
            self.close_session(key);
            // A session that waits for a login would return from the archive after it.
            if !matches!(self.session(key).row.rest, Dormant::Closed | Dormant::Lost) {
                self.make_dormant(key, Dormant::Closed, Some("closed".to_owned()));
            }
        }
        let row = &mut self.session_mut(key).row;
        if row.archived != archived {
            row.edit().archived = archived;
            self.tell_state(key);
        }
    }
}
