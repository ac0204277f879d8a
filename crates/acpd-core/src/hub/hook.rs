//! Events for hooks ([`Effect::Hook`]) and desktop notifications ([`Effect::Notify`]).
//!
//! An event is sent in the batch that commits it, and is not stored: it is lost if the daemon dies
//! between the commit and the effect, and never sent twice.

use acp_wire::bound::NAME;
use acp_wire::clipped;
use acpd_api::{AgentTroubleInfo, HookEvent, HookInfo, Question, TurnEndInfo, TurnEnded, escape};
use bytes::Bytes;

use crate::hub::Hub;
use crate::ids::{InteractionId, SessionKey, SlotId, duration};
use crate::input::Effect;

/// Shorter turns end without a notification (ms): the user is probably still there.
const LONG_TURN: u64 = 60_000;

impl Hub {
    /// Skips a question that was answered at once. The notification does not show the question,
    /// because others may see the screen.
    pub(crate) fn hook_question(&mut self, id: InteractionId, session: Option<SessionKey>) {
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
        self.hook(&HookInfo::Permission(info));
        // Clients under an agent do not count: they cannot answer.
        let mut clients = session.into_iter().flat_map(|key| self.clients.at(key));
        let has_person = clients.any(|client| self.clients.may_decide(client));
        drop(clients);
        if !has_person {
            self.notify(session, agent.raw(), &what);
        }
    }

    pub(crate) fn hook_turn_end(&mut self, key: SessionKey, ended: &TurnEnded) {
        let row = &self.session(key).row;
        let info = TurnEndInfo {
            agent: row.agent.clone().into(),
            session_id: row.public_id.clone().into(),
            name: row.name.clone().map(Into::into),
            cwd: row.cwd.clone().into(),
            at: ended.at,
            turn: ended.turn,
            outcome: ended.outcome.clone(),
        };
        self.hook(&HookInfo::TurnEnd(info));
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
        let agent = self.session(key).row.agent.clone();
        self.notify(Some(key), &agent, &what);
    }

    fn notify(&mut self, key: Option<SessionKey>, agent: &str, what: &str) {
        if !self.cx.config.notify {
            return;
        }
        let title = key.map_or("acpd", |key| self.sessions[&key].row.handle());
        self.cx.send(Effect::Notify {
            title: escape::one_line(&clipped(title, NAME)).to_string(),
            body: escape::one_line(&format!("{} {what}", clipped(agent, NAME))).to_string(),
        });
    }

    pub(crate) fn hook_trouble(
        &mut self,
        id: SlotId,
        reason: &str,
        event: fn(AgentTroubleInfo) -> HookInfo,
    ) {
        let agent = &self.processes[&id];
        let session = agent.dedicated.and_then(|key| self.sessions.get(&key));
        let row = session.map(|session| &session.row);
        let info = AgentTroubleInfo {
            agent: agent.profile().into(),
            session_id: row.map(|row| row.public_id.clone().into()),
            name: row.and_then(|row| row.name.clone()).map(Into::into),
            cwd: row.map(|row| row.cwd.clone().into()),
            at: self.cx.now.0,
            reason: reason.into(),
        };
        self.hook(&event(info));
    }

    fn hook(&mut self, info: &HookInfo) {
        let event = HookEvent::from(info);
        if self.cx.config.hooks.contains(&event) {
            let about = Bytes::from(serde_json::to_vec(info).expect("plain data"));
            self.cx.send(Effect::Hook { event, about });
        }
    }
}
