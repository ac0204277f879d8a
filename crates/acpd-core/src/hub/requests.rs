//! Asking an agent, and what becomes of its answer: the open request is a record until it is answered,
//! taken back or lost with the process.

use acp_wire::Id;

use crate::hub::Hub;
use crate::ids::{HostId, SessionKey};
use crate::record;
use crate::record::{AskedRow, Record};
use crate::requests::Asked;
use crate::requests::purpose::Purpose;
use crate::timers::Timer;

impl Hub {
    /// Registers a request to an agent; its id. The request itself is to be written with the same
    /// batch.
    pub(crate) fn ask(&mut self, host: HostId, why: Purpose) -> u64 {
        let id = self.cx.ids.issue();
        let what = self.as_record(&why);
        self.cx.record(Record::Asked(AskedRow { id, host, what }));
        self.watch_answer(id, host, &why);
        self.requests.ask(id, host, why, self.cx.now);
        id
    }

    /// The request that a host's response belongs to; it is answered with that.
    pub(crate) fn answered(&mut self, host: HostId, id: &Id) -> Option<Purpose> {
        let (issued, why) = self.requests.answer(host, id)?;
        let meant = Id::issued(issued);
        if *id != meant && id.as_u64().is_none() {
            self.cx.note(host, &format!("answered request {meant} under the id {id}"));
        }
        let id = issued;
        self.cx.timers.clear(Timer::Asked(id));
        self.cx.record(Record::Answered { id });
        Some(why)
    }

    /// Takes back everything that a host will not answer any more, oldest first.
    pub(crate) fn unanswered(&mut self, host: HostId) -> Vec<Purpose> {
        let gone = self.requests.drop_host(host);
        for (id, _) in &gone {
            self.cx.timers.clear(Timer::Asked(*id));
            self.cx.record(Record::Answered { id: *id });
        }
        gone.into_iter().map(|(_, why)| why).collect()
    }

    pub(crate) fn on_asked_timer(&mut self, ask: u64) {
        match self.requests.get(ask).map(|asked| &asked.purpose) {
            Some(Purpose::List { .. }) => self.on_list_timer(ask),
            Some(Purpose::Adopt(_)) => self.on_adopt_timer(ask),
            Some(Purpose::Preset { .. }) => self.on_preset_timer(ask),
            Some(Purpose::LoginAgain) => self.on_login_timer(ask),
            Some(Purpose::Abandoned { .. }) => self.on_abandoned_timer(ask),
            Some(Purpose::NewSession(_) | Purpose::Steer(_) | Purpose::Relay { .. }) => {
                self.on_unanswered_timer(ask);
            }
            _ => {}
        }
    }

    /// Stops waiting for an answer, after which `session` may still be replayed; what it was for.
    pub(crate) fn give_up_ask(
        &mut self,
        ask: u64,
        session: Option<String>,
    ) -> Option<(HostId, Purpose)> {
        self.cx.timers.clear(Timer::Asked(ask));
        let was = self.requests.give_up(ask, session)?;
        self.save_asked(ask);
        Some(was)
    }

    /// Gives up the open restore step of a session; whether there was one.
    pub(crate) fn give_up_restore_step(&mut self, key: SessionKey) -> bool {
        let Some(ask) = self.requests.restore_ask(key) else { return false };
        let session = self.session(key).row.agent_id.clone();
        self.give_up_ask(ask, Some(session)).is_some()
    }

    /// The answer to a session's prompt matters only as the end of its turn; the id of the request.
    pub(crate) fn abandon_prompt(&mut self, key: SessionKey, session: String) -> Option<u64> {
        let ask = self.requests.abandon_prompt(key, session)?;
        self.save_asked(ask);
        Some(ask)
    }

    /// The purpose of an open request has changed.
    pub(crate) fn save_asked(&mut self, id: u64) {
        if let Some(Asked { host, purpose, .. }) = self.requests.get(id) {
            let what = self.as_record(purpose);
            self.cx.record(Record::Asked(AskedRow { id, host: *host, what }));
        }
    }

    fn as_record(&self, why: &Purpose) -> record::Asked {
        why.as_record(why.requester().and_then(|to| self.clients.sender(to)))
    }
}
