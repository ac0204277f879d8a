//! Every open request, with its id on each hop.
//!
//! Ids that acpd issues, to an agent or to a client, come from [`IdSource`] and are unique across
//! daemon incarnations: an answer that comes too late can never be taken for the answer to something
//! else. An agent's own requests are kept as interactions, keyed by the process that asked.

use std::collections::BTreeMap;

use acp_wire::Id;
use bytes::Bytes;

use crate::hub::Hub;
use crate::hub::session::adopt::{Adoption, Wanted};
use crate::hub::session::directory::Directory;
use crate::hub::session::steer::Steer;
use crate::hub::session::title::SET_TITLE;
use crate::ids::{ClientId, HostId, InteractionId, SessionKey, Time};
use crate::input::Batch;
use crate::record::{self, AskedRow, ForkPoint, Record};
use crate::timers::Timer;

/// Issues ids: incarnation in the upper bits, so that numbers stay below 2⁵³ for JavaScript.
#[derive(Debug)]
pub(crate) struct IdSource {
    boot: u64,
    next: u64,
}

impl IdSource {
    pub(crate) fn new(boot: u64) -> IdSource {
        IdSource { boot, next: 1 }
    }

    /// Number of the incarnation.
    pub(crate) fn boot(&self) -> u64 {
        self.boot
    }

    pub(crate) fn issue(&mut self) -> u64 {
        let id = (self.boot << 32) | self.next;
        self.next += 1;
        id
    }
}

/// A client that is gone for good: what is meant for it goes nowhere.
pub(crate) const NOBODY: ClientId = ClientId(u64::MAX);

/// A client's request, to be answered once.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Requester {
    pub(crate) client: ClientId,
    pub(crate) id: Id,
}

/// Why something was asked of an agent.
#[derive(Debug, Clone)]
pub(crate) enum Purpose {
    /// acpd's own `initialize`.
    Initialize,
    /// A client's `session/new` or `session/fork`.
    NewSession(NewSession),
    /// The prompt of the session's running turn.
    Prompt { session: SessionKey },
    /// A prompt whose turn was given up, with the agent's id for its session.
    Abandoned { session: String },
    /// A step of the session's restore.
    Restore {
        session: SessionKey,
        /// It is asked for with `session/new`, so the agent's id for it is not known yet.
        renews: bool,
    },
    /// A message of a client into the running turn of a session.
    Steer(Box<Steer>),
    /// A client's request, relayed.
    Relay { to: Requester, session: Option<SessionKey>, method: String, params: Option<Bytes> },
    /// The agent's own sessions, for a client's `session/list`.
    List { to: Requester, wanted: Wanted },
    /// A session that only the agent knows, for clients that open it.
    Adopt(Box<Adoption>),
    /// A step of a restore that was given up; its answer does not matter.
    GivenUp {
        /// The agent's id of the session that it may still replay.
        session: Option<String>,
    },
    /// Whether the agent is logged in.
    AuthStatus,
    /// A person's title for a session, whose answer does not matter.
    Title { session: SessionKey },
    /// `session/close` or `session/delete` whose answer does not matter.
    Farewell,
}

impl Purpose {
    /// The session that it is about, if it is one of ours.
    pub(crate) fn session(&self) -> Option<SessionKey> {
        match self {
            Purpose::Prompt { session }
            | Purpose::Restore { session, .. }
            | Purpose::Title { session } => Some(*session),
            Purpose::Relay { session, .. } => *session,
            Purpose::Steer(steer) => Some(steer.session),
            _ => None,
        }
    }

    /// What was asked, for the log: a method, as far as it is always the same one.
    pub(crate) fn what(&self) -> &str {
        match self {
            Purpose::Initialize => "initialize",
            Purpose::NewSession(new) => new.method(),
            Purpose::Prompt { .. } => "session/prompt",
            Purpose::Abandoned { .. } => "session/prompt that was given up",
            Purpose::Restore { .. } => "restore",
            Purpose::Relay { method, .. } => method,
            Purpose::Steer(steer) => steer.form.method(),
            Purpose::List { .. } => "session/list",
            Purpose::Adopt(_) => "taking over",
            Purpose::GivenUp { .. } => "restore that was given up",
            Purpose::AuthStatus => "auth/status",
            Purpose::Title { .. } => SET_TITLE,
            Purpose::Farewell => "session/close",
        }
    }

    /// The client's request that it is for.
    pub(crate) fn requester(&self) -> Option<&Requester> {
        match self {
            Purpose::Relay { to, .. } | Purpose::List { to, .. } => Some(to),
            Purpose::NewSession(new) => Some(&new.to),
            Purpose::Steer(steer) => Some(&steer.to),
            _ => None,
        }
    }

    fn requester_mut(&mut self) -> Option<&mut Requester> {
        match self {
            Purpose::Relay { to, .. } | Purpose::List { to, .. } => Some(to),
            Purpose::NewSession(new) => Some(&mut new.to),
            Purpose::Steer(steer) => Some(&mut steer.to),
            _ => None,
        }
    }
}

/// A client's `session/new` or `session/fork` until it is answered.
#[derive(Debug, Clone)]
pub(crate) struct NewSession {
    pub(crate) to: Requester,
    pub(crate) name: Option<String>,
    pub(crate) cwd: String,
    /// Params as the client gave them, what it says to acpd included.
    pub(crate) params: Bytes,
    /// What is to be said in the conversation once there is one.
    pub(crate) notices: Vec<String>,
    pub(crate) directory: Directory,
    /// It is asked for with `session/fork`, to go on from here.
    pub(crate) fork: Option<ForkPoint>,
}

impl NewSession {
    /// What it is asked for with.
    pub(crate) fn method(&self) -> &'static str {
        if self.fork.is_some() { "session/fork" } else { "session/new" }
    }
}

/// A request that was sent to an agent.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) host: HostId,
    pub(crate) why: Purpose,
    /// When it was asked, or found by this daemon.
    since: Time,
    /// Who asked has taken it back.
    cancelled: bool,
}

/// All open requests that acpd has sent.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    asked: BTreeMap<u64, Asked>,
    offered: BTreeMap<(ClientId, u64), InteractionId>,
}

impl Requests {
    pub(crate) fn ask(&mut self, id: u64, host: HostId, why: Purpose, since: Time) {
        self.asked.insert(id, Asked { host, why, since, cancelled: false });
    }

    /// Who was asked for what since when, and whether it was taken back.
    pub(crate) fn waits_since(&self, ask: u64) -> Option<(HostId, Purpose, Time, bool)> {
        let asked = self.asked.get(&ask)?;
        Some((asked.host, asked.why.clone(), asked.since, asked.cancelled))
    }

    /// Who asked takes it back; whether that is news, and has no time of its own.
    pub(crate) fn cancel(&mut self, ask: u64) -> bool {
        let Some(asked) = self.asked.get_mut(&ask) else { return false };
        let counts = match &mut asked.why {
            Purpose::Steer(steer) => {
                steer.take_back();
                true
            }
            why => matches!(why, Purpose::NewSession(_) | Purpose::Relay { .. }),
        };
        counts && !std::mem::replace(&mut asked.cancelled, true)
    }

    /// The answer is nobody's any more; whose it was.
    pub(crate) fn disown(&mut self, ask: u64) -> Option<Requester> {
        let asked = self.asked.get_mut(&ask)?;
        asked.cancelled = false;
        let to = asked.why.requester_mut()?;
        let nobody = Requester { client: NOBODY, id: Id::null() };
        Some(std::mem::replace(to, nobody)).filter(|to| to.client != NOBODY)
    }

    /// The request that a host's response belongs to, with its id.
    fn answer(&mut self, host: HostId, id: &Id) -> Option<(u64, Purpose)> {
        let id = id.as_u64()?;
        if self.asked.get(&id)?.host != host {
            return None;
        }
        self.asked.remove(&id).map(|asked| (id, asked.why))
    }

    /// Why something was asked of a host that has not answered it.
    pub(crate) fn open_mut(&mut self, host: HostId, id: &Id) -> Option<&mut Purpose> {
        let asked = self.asked.get_mut(&id.as_u64()?)?;
        (asked.host == host).then_some(&mut asked.why)
    }

    /// Everything that a host will not answer any more, oldest first.
    fn drop_host(&mut self, host: HostId) -> Vec<(u64, Purpose)> {
        let gone = self.asked.extract_if(.., |_, asked| asked.host == host);
        gone.map(|(id, asked)| (id, asked.why)).collect()
    }

    /// The client's request behind one of ours.
    pub(crate) fn requester(&self, ask: u64) -> Option<&Requester> {
        self.asked.get(&ask)?.why.requester()
    }

    /// Requests of clients that wait for an agent's answer.
    pub(crate) fn requesters(&self) -> impl Iterator<Item = &Requester> {
        self.asked.values().filter_map(|asked| asked.why.requester())
    }

    /// The same, to change whose they are.
    pub(crate) fn requesters_mut(&mut self) -> impl Iterator<Item = &mut Requester> {
        self.asked.values_mut().filter_map(|asked| asked.why.requester_mut())
    }

    /// Gives up the open restore step of a session; whether there was one.
    fn restore_of(&self, key: SessionKey) -> Option<u64> {
        let is_it =
            |asked: &Asked| matches!(asked.why, Purpose::Restore { session, .. } if session == key);
        self.asked.iter().find(|(_, asked)| is_it(asked)).map(|(id, _)| *id)
    }

    /// Whether a host may still replay a session that nobody waits for any more.
    pub(crate) fn may_replay(&self, host: HostId, id: &str) -> bool {
        self.asked.values().any(|asked| {
            let of =
                matches!(&asked.why, Purpose::GivenUp { session: Some(session) } if session == id);
            asked.host == host && of
        })
    }

    /// All adoptions, with their hosts and the ids of the requests.
    pub(crate) fn adoptions(&mut self) -> impl Iterator<Item = (u64, HostId, &mut Adoption)> {
        self.asked.iter_mut().filter_map(|(id, asked)| match &mut asked.why {
            Purpose::Adopt(adoption) => Some((*id, asked.host, &mut **adoption)),
            _ => None,
        })
    }

    /// The request for the adoption of a session from this host.
    pub(crate) fn adoption_ask(&self, host: HostId, id: &str) -> Option<u64> {
        let is_it = |asked: &Asked| {
            asked.host == host && matches!(&asked.why, Purpose::Adopt(of) if of.id == id)
        };
        self.asked.iter().find(|(_, asked)| is_it(asked)).map(|(id, _)| *id)
    }

    /// Whether a session of this host is being adopted.
    pub(crate) fn adopts(&self, host: HostId, id: &str) -> bool {
        self.adoption_ask(host, id).is_some()
    }

    /// The id under which a client's request was relayed.
    pub(crate) fn relayed(&self, requester: &Requester) -> Option<(u64, HostId)> {
        let found = self.asked.iter().find(|(_, asked)| asked.why.requester() == Some(requester));
        found.map(|(id, asked)| (*id, asked.host))
    }

    /// The prompt of a session's running turn.
    fn prompt_of(&mut self, key: SessionKey) -> Option<(u64, &mut Asked)> {
        let is_it =
            |asked: &Asked| matches!(asked.why, Purpose::Prompt { session } if session == key);
        let found = self.asked.iter_mut().find(|(_, asked)| is_it(asked));
        found.map(|(id, asked)| (*id, asked))
    }

    /// The host that was asked and has not answered.
    pub(crate) fn host_of(&self, ask: u64) -> Option<HostId> {
        self.asked.get(&ask).map(|asked| asked.host)
    }

    /// Sessions in which a host works on a turn that was given up, by the agent's ids.
    pub(crate) fn abandoned(&self, host: HostId) -> impl Iterator<Item = &str> {
        self.asked.values().filter_map(move |asked| match &asked.why {
            Purpose::Abandoned { session } if asked.host == host => Some(session.as_str()),
            _ => None,
        })
    }

    /// Everything that a host was asked and has not answered.
    pub(crate) fn of_host(&self, host: HostId) -> impl Iterator<Item = &Purpose> {
        let asked = self.asked.values().filter(move |asked| asked.host == host);
        asked.map(|asked| &asked.why)
    }

    pub(crate) fn new_pending(&self, host: HostId) -> bool {
        self.asked.values().any(|asked| {
            let makes = matches!(
                asked.why,
                Purpose::NewSession(_) | Purpose::Adopt(_) | Purpose::Restore { renews: true, .. }
            );
            asked.host == host && makes
        })
    }

    /// Sessions that are being made for clients.
    pub(crate) fn new_sessions(&self) -> impl Iterator<Item = (HostId, &NewSession)> {
        self.asked.values().filter_map(|asked| match &asked.why {
            Purpose::NewSession(new) => Some((asked.host, new)),
            _ => None,
        })
    }

    /// Messages on their way into the turn of a session.
    pub(crate) fn steers(&self, session: SessionKey) -> impl Iterator<Item = &Steer> {
        self.asked.values().filter_map(move |asked| match &asked.why {
            Purpose::Steer(steer) if steer.session == session => Some(&**steer),
            _ => None,
        })
    }

    /// Nobody wants the messages into the turn of a session any more; the requests that this changes.
    pub(crate) fn take_back_steers(&mut self, session: SessionKey) -> Vec<u64> {
        let changed = self.asked.iter_mut().filter_map(|(id, asked)| match &mut asked.why {
            Purpose::Steer(steer) if steer.session == session => steer.take_back().then_some(*id),
            _ => None,
        });
        changed.collect()
    }

    /// The params of sessions that a host is to make or to load for clients.
    pub(crate) fn made(&self, host: HostId) -> impl Iterator<Item = &Bytes> {
        let asked = self.asked.values().filter(move |asked| asked.host == host);
        asked.filter_map(|asked| match &asked.why {
            Purpose::NewSession(new) => Some(&new.params),
            Purpose::Adopt(adoption) => Some(&adoption.params),
            _ => None,
        })
    }

    /// Whether a host works on something whose answer matters.
    pub(crate) fn open_of_host(&self, host: HostId) -> bool {
        self.of_host(host).any(|why| {
            !matches!(
                why,
                Purpose::AuthStatus
                    | Purpose::Title { .. }
                    | Purpose::Farewell
                    | Purpose::GivenUp { .. }
            )
        })
    }

    pub(crate) fn offer(&mut self, client: ClientId, id: u64, interaction: InteractionId) {
        self.offered.insert((client, id), interaction);
    }

    /// The interaction that a client's response belongs to.
    pub(crate) fn offered(&mut self, client: ClientId, id: &Id) -> Option<InteractionId> {
        self.offered.remove(&(client, id.as_u64()?))
    }

    /// Takes back all offers of an interaction.
    pub(crate) fn withdraw(&mut self, interaction: InteractionId) -> Vec<(ClientId, u64)> {
        self.offered.extract_if(.., |_, of| *of == interaction).map(|(place, _)| place).collect()
    }

    pub(crate) fn drop_client(&mut self, client: ClientId) {
        self.offered.retain(|(of, _), _| *of != client);
    }

    /// Takes back the offer of an interaction to one client.
    pub(crate) fn take_back(
        &mut self,
        client: ClientId,
        interaction: InteractionId,
    ) -> Option<u64> {
        let mine =
            self.offered.iter().find(|((of, _), what)| *of == client && **what == interaction);
        let place = *mine?.0;
        self.offered.remove(&place);
        Some(place.1)
    }

    /// Whether this client is being asked already.
    pub(crate) fn is_offered(&self, client: ClientId, interaction: InteractionId) -> bool {
        self.offered.iter().any(|((of, _), what)| *of == client && *what == interaction)
    }
}

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
