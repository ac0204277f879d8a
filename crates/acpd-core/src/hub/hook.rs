//! What commands of the configuration are told: [`Effect::Hook`].
//!
//! Each of these is told when it happens, in the batch that commits it. Nothing here is stored, so
//! the next daemon tells none of it again; what was committed by a daemon that died before it could
//! tell is told by nobody.

use acpd_api::{AgentTroubleInfo, HookEvent, HookInfo, TurnEnded};
use bytes::Bytes;

use crate::hub::Hub;
use crate::ids::{InteractionId, SessionKey, SlotId};
use crate::input::{Batch, Effect};

impl Hub {
    /// A person is asked. What was answered at once is not open any more, and no news.
    pub(crate) fn hook_question(&self, id: InteractionId, out: &mut Batch) {
        self.hook(HookEvent::Permission, out, || {
            let open = self.questions.get(id)?;
            Some(HookInfo::Permission(self.interaction_info(id, open)?))
        });
    }

    pub(crate) fn hook_turn_end(&self, key: SessionKey, ended: &TurnEnded, out: &mut Batch) {
        self.hook(HookEvent::TurnEnd, out, || {
            let row = &self.session(key).row;
            Some(HookInfo::TurnEnd(acpd_api::TurnEndInfo {
                agent: row.agent.clone().into(),
                session_id: row.public_id.clone().into(),
                name: row.name.clone().map(Into::into),
                cwd: row.cwd.clone().into(),
                at: ended.at,
                turn: ended.turn,
                outcome: ended.outcome.clone(),
            }))
        });
    }

    pub(crate) fn hook_crash(&self, id: SlotId, reason: &str, out: &mut Batch) {
        let about = || Some(HookInfo::Crash(self.trouble(id, reason)));
        self.hook(HookEvent::Crash, out, about);
    }

    pub(crate) fn hook_login(&self, id: SlotId, reason: &str, out: &mut Batch) {
        let about = || Some(HookInfo::Login(self.trouble(id, reason)));
        self.hook(HookEvent::Login, out, about);
    }

    fn trouble(&self, id: SlotId, reason: &str) -> AgentTroubleInfo {
        let agent = &self.processes[&id];
        let session = agent.dedicated.and_then(|key| self.sessions.get(&key));
        let row = session.map(|session| &session.row);
        AgentTroubleInfo {
            agent: agent.profile.clone().into(),
            session_id: row.map(|row| row.public_id.clone().into()),
            name: row.and_then(|row| row.name.clone()).map(Into::into),
            cwd: row.map(|row| row.cwd.clone().into()),
            at: self.now.0,
            reason: reason.into(),
        }
    }

    /// Tells it, if a command is run for it.
    fn hook(&self, event: HookEvent, out: &mut Batch, about: impl FnOnce() -> Option<HookInfo>) {
        if !self.config.hooks.contains(&event) {
            return;
        }
        if let Some(info) = about() {
            let about = Bytes::from(serde_json::to_vec(&info).expect("plain data"));
            out.effects.push(Effect::Hook { event: info.event(), about });
        }
    }
}
