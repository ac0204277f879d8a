//! Events for hooks ([`Effect::Hook`]) and desktop notifications ([`Effect::Notify`]).
//!
//! Each of these is sent when it happens, in the batch that commits it. Nothing here is stored, so the next
//! daemon sends none of it again; an event is lost if its daemon died after the commit and before it could
//! send it.

use acp_wire::bound::NAME;
use acp_wire::clipped;
use acpd_api::{AgentTroubleInfo, HookEvent, HookInfo, Question, TurnEnded, escape};
use bytes::Bytes;

use crate::hub::Hub;
use crate::ids::{InteractionId, SessionKey, SlotId, duration};
use crate::input::{Batch, Effect};

/// A turn that took longer was left alone (ms).
const LONG_TURN: u64 = 60_000;

impl Hub {
    /// A person is asked. What was answered at once is not open any more, and no news.
    ///
    /// A notification says no more than that a person is needed: what is asked may be anything, and others
    /// see the screen.
    pub(crate) fn hook_question(
        &self,
        id: InteractionId,
        session: Option<SessionKey>,
        out: &mut Batch,
    ) {
        let Some(info) = self.question_info(id) else { return };
        let what = match &info.question {
            Question::Permission { tool_kind: Some(kind), .. } => {
                format!("asks for permission ({})", clipped(kind.raw(), NAME))
            }
            Question::Permission { .. } => "asks for permission".to_owned(),
            Question::Form { .. } => "asks you to fill in a form".to_owned(),
            Question::Url { .. } => "asks you to open a page".to_owned(),
        };
        let agent = info.agent.clone();
        self.hook(HookEvent::Permission, out, || Some(HookInfo::Permission(info)));
        // A tool that waits for the turn cannot answer.
        let mut clients = session.into_iter().flat_map(|key| self.clients.at(key));
        if !clients.any(|client| self.clients.may_decide(client)) {
            self.notify(session, agent.raw(), &what, out);
        }
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
        self.notify_turn_end(key, ended, out);
    }

    /// Only for a turn that took long and that no client cancelled.
    fn notify_turn_end(&self, key: SessionKey, ended: &TurnEnded, out: &mut Batch) {
        let took = ended.at.saturating_sub(ended.started_at);
        let word = ended.outcome.word();
        let is_followed = self.clients.is_attended(key);
        if took < LONG_TURN || word == "cancelled" || is_followed {
            return;
        }
        let time = duration(took);
        let what = match word {
            "end_turn" => format!("is done after {time}"),
            other => format!("ended after {time}: {}", clipped(other, NAME).replace('_', " ")),
        };
        self.notify(Some(key), &self.session(key).row.agent, &what, out);
    }

    fn notify(&self, key: Option<SessionKey>, agent: &str, what: &str, out: &mut Batch) {
        let session = key.map(|key| self.session(key));
        if !self.config.notify {
            return;
        }
        let title = session.map_or("acpd", |session| session.row.handle());
        out.effects.push(Effect::Notify {
            title: escape::one_line(&clipped(title, NAME)).to_string(),
            body: escape::one_line(&format!("{} {what}", clipped(agent, NAME))).to_string(),
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
        let session = agent.dedicated().and_then(|key| self.sessions.get(&key));
        let row = session.map(|session| &session.row);
        AgentTroubleInfo {
            agent: agent.profile().into(),
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
