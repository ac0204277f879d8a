//! Asking an agent, and what becomes of its answer: the open request is a record until it is answered,
//! taken back or lost with the process.

use acp_wire::Id;

use crate::hub::Hub;
use crate::ids::{ClientId, HostId, NOBODY, SessionKey};
use crate::input::Batch;
use crate::record::{self, AskedRow, Record};
use crate::requests::Asked;
use crate::requests::purpose::Purpose;
use crate::timers::Timer;

impl Hub {
    /// Registers a request to an agent; its id. The request itself is to be written with the same
    /// batch.
    pub(crate) fn ask(&mut self, host: HostId, why: Purpose, out: &mut Batch) -> u64 {
        let id = self.ids.issue();
        let what = self.as_record(&why);
        out.records.push(Record::Asked(AskedRow { id, host, what }));
        self.watch_answer(id, host, &why);
        self.requests.ask(id, host, why, self.now);
        id
    }

    /// The request that a host's response belongs to; it is answered with that.
    pub(crate) fn answered(&mut self, host: HostId, id: &Id, out: &mut Batch) -> Option<Purpose> {
        let (id, why) = self.requests.answer(host, id)?;
        self.timers.clear(Timer::Asked(id));
        out.records.push(Record::Answered { id });
        Some(why)
    }

    /// Takes back everything that a host will not answer any more, oldest first.
    pub(crate) fn unanswered(&mut self, host: HostId, out: &mut Batch) -> Vec<Purpose> {
        let gone = self.requests.drop_host(host);
        for (id, _) in &gone {
            self.timers.clear(Timer::Asked(*id));
            out.records.push(Record::Answered { id: *id });
        }
        gone.into_iter().map(|(_, why)| why).collect()
    }

    /// Answers to the requests of a client matter to nobody any more.
    pub(crate) fn forget_requester(&mut self, client: ClientId, out: &mut Batch) {
        let mut left = Vec::new();
        for (id, asked) in &mut self.requests.asked {
            if let Some(to) = asked.why.requester_mut().filter(|to| to.client == client) {
                to.client = NOBODY;
                left.push((*id, asked.host, asked.why.clone()));
            }
        }
        for (id, host, why) in left {
            out.records.push(Record::Asked(AskedRow { id, host, what: self.as_record(&why) }));
        }
    }

    /// An agent has not answered in time.
    pub(crate) fn on_asked_timer(&mut self, ask: u64, out: &mut Batch) {
        match self.requests.asked.get(&ask).map(|asked| &asked.why) {
            Some(Purpose::List { .. }) => self.on_list_timer(ask, out),
            Some(Purpose::Adopt(_)) => self.on_adopt_timer(ask, out),
            Some(Purpose::Abandoned { .. }) => self.on_abandoned_timer(ask, out),
            Some(Purpose::NewSession(_) | Purpose::Steer(_) | Purpose::Relay { .. }) => {
                self.on_unanswered_timer(ask, out);
            }
            _ => {}
        }
    }

    /// Stops waiting for an answer, after which `session` may still be replayed; what it was for.
    pub(crate) fn give_up_ask(
        &mut self,
        ask: u64,
        session: Option<String>,
        out: &mut Batch,
    ) -> Option<(HostId, Purpose)> {
        self.timers.clear(Timer::Asked(ask));
        let asked = self.requests.asked.get_mut(&ask)?;
        let was = std::mem::replace(&mut asked.why, Purpose::GivenUp { session });
        let (host, why) = (asked.host, asked.why.clone());
        out.records.push(Record::Asked(AskedRow { id: ask, host, what: self.as_record(&why) }));
        Some((host, was))
    }

    /// Gives up the open restore step of a session; whether there was one.
    pub(crate) fn give_up_restore_step(&mut self, key: SessionKey, out: &mut Batch) -> bool {
        let Some(ask) = self.requests.restore_of(key) else { return false };
        let session = self.session(key).row.agent_id.clone();
        self.give_up_ask(ask, Some(session), out).is_some()
    }

    /// The answer to a session's prompt matters only as the end of its turn; the id of the request.
    pub(crate) fn abandon_prompt(
        &mut self,
        key: SessionKey,
        session: String,
        out: &mut Batch,
    ) -> Option<u64> {
        let (id, asked) = self.requests.prompt_of(key)?;
        asked.why = Purpose::Abandoned { session };
        let (host, why) = (asked.host, asked.why.clone());
        out.records.push(Record::Asked(AskedRow { id, host, what: self.as_record(&why) }));
        Some(id)
    }

    /// What an open request is for has changed.
    pub(crate) fn save_asked(&self, id: u64, out: &mut Batch) {
        if let Some(Asked { host, why, .. }) = self.requests.asked.get(&id) {
            out.records.push(Record::Asked(AskedRow {
                id,
                host: *host,
                what: self.as_record(why),
            }));
        }
    }

    fn as_record(&self, why: &Purpose) -> record::Asked {
        match why {
            Purpose::Initialize => record::Asked::Initialize,
            Purpose::NewSession(new) => record::Asked::NewSession {
                sender: self.sender(&new.to),
                name: new.name.clone(),
                cwd: new.cwd.clone(),
                params: String::from_utf8_lossy(&new.params).into_owned(),
                fork: new.fork.clone(),
                notices: new.notices.clone(),
            },
            Purpose::Prompt { session } => record::Asked::Prompt { session: *session },
            Purpose::Abandoned { session } => record::Asked::Abandoned { session: session.clone() },
            Purpose::Restore { session, .. } => record::Asked::Restore { session: *session },
            Purpose::Relay { to, session, method, params } => {
                let params = params.as_ref().filter(|_| method == "session/set_mode");
                record::Asked::Relay {
                    sender: self.sender(to),
                    session: *session,
                    method: method.clone(),
                    params: params.map(|params| String::from_utf8_lossy(params).into_owned()),
                }
            }
            Purpose::Steer(steer) => record::Asked::Steer {
                sender: self.sender(&steer.to),
                session: steer.session,
                blocks: String::from_utf8_lossy(&steer.blocks).into_owned(),
                message: steer.message.clone(),
                form: steer.form,
            },
            // A client that still wants it asks again.
            Purpose::List { .. } => record::Asked::Nothing,
            Purpose::Adopt(adoption) => record::Asked::Adopt {
                session: adoption.id.clone(),
                cwd: adoption.cwd.clone(),
                params: String::from_utf8_lossy(&adoption.params).into_owned(),
                notices: adoption.notices.clone(),
            },
            Purpose::GivenUp { session: Some(session) } => {
                record::Asked::GivenUp { session: session.clone() }
            }
            Purpose::AuthStatus
            | Purpose::GivenUp { session: None }
            | Purpose::Title { .. }
            | Purpose::Farewell => record::Asked::Nothing,
        }
    }
}
