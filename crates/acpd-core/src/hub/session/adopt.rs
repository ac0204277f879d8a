//! Adoption of a session that only its agent knows (`foreign.rs`); `made.rs` has the answer.
//!
//! ```text
//!  session/load of an unknown id ─▶ the agent loads it; what it replays is parked
//!     ├── answered ─▶ a session of acpd's, the replay its history ─▶ opened for all openers
//!     └── error ────▶ the client's error, and nothing is kept
//! ```
//!
//! Architecture invariant: a session is acpd's from the commit in which its whole history is in the
//! journal. A history that cannot be taken whole is not taken at all.

use acp_wire::code;
use acpd_api::Reason;
use bytes::Bytes;
use serde_json::{Value, json};

use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::{HostId, Process, Requester, SessionKey, SlotId, duration};
use crate::input::ReadStyle;
use crate::params::{raw, without_nulls};
use crate::process::slot::{Directory, WaitFor, Waiting};
use crate::record::{Adoption, Opener, Purpose, Replayable};
use crate::session::replay::{HISTORY_BYTES, Replay, user_text};
use crate::timers::Timer;

const MAX_ADOPTIONS: usize = 4;

/// Marks an agent's cursor in a list of acpd.
pub(crate) const CURSOR: &str = "agent:";

impl Hub {
    pub(crate) fn load_method(&self, profile: &str, style: ReadStyle) -> Option<&'static str> {
        let (config, known) = (&self.cx.config.agents[profile], self.processes.known(profile));
        let may_resume = style != ReadStyle::History && known.resumes(config);
        // A load is preferred, because later clients want the history.
        let load = known.loads(config).then_some("session/load");
        load.or(may_resume.then_some("session/resume"))
    }

    pub(crate) fn begin_adoption(
        &mut self,
        slot: SlotId,
        mut adoption: Adoption,
        directory: Directory,
    ) {
        let profile = self.processes[&slot].profile().to_owned();
        // The session may have been adopted while this request waited.
        if let Some(key) = self.sessions.by_public_id(&profile, &adoption.id) {
            return self.open_adopted(&adoption.openers, key);
        }
        let slots = self.processes.of_profile(&profile).into_iter();
        let hosts = slots.filter_map(|slot| self.processes[&slot].host().map(|host| host.id));
        let hosts: Vec<HostId> = hosts.collect();
        let is_it = |host: &HostId, open: &Adoption| hosts.contains(host) && open.id == adoption.id;
        if let Some((_, _, open)) =
            self.requests.adoptions().find(|(_, host, open)| is_it(host, open))
        {
            return open.openers.append(&mut adoption.openers);
        }
        let works = self.works_on(slot, &adoption.id);
        if works || directory != Directory::There {
            let to = adoption.openers[0].to.clone();
            let waiting = Waiting { to, what: WaitFor::Adopt(adoption), directory };
            if works {
                return self.processes.wait(slot, waiting);
            }
            return self.find_directory_for(slot, waiting);
        }
        let host = self.processes[&slot].usable_host();
        if host.is_some_and(|host| self.requests.may_replay(host, &adoption.id)) {
            // These lines could not be told from those of the next replay.
            let text =
                format!("the agent is still loading `{}` for an earlier request", adoption.id);
            let fault = Fault::new(Reason::SessionBlocked, text)
                .session(&adoption.id)
                .hint("try again in a moment");
            return self.refuse_adoption(&adoption, &fault);
        }
        if self.requests.adoptions().count() >= MAX_ADOPTIONS {
            let text = format!("{MAX_ADOPTIONS} sessions are being taken over already");
            let fault = Fault::new(Reason::TooMany, text).hint("try again in a moment");
            return self.refuse_adoption(&adoption, &fault);
        }
        let style = adoption.openers[0].style;
        let (Some(method), Some(host)) = (self.load_method(&profile, style), host) else {
            let fault = Fault::no_session(&adoption.id);
            return self.refuse_adoption(&adoption, &fault);
        };
        // Lines before the request are no part of the history.
        self.processes.take_parked(&mut self.cx, Process { slot, host }, &adoption.id);
        let opener = adoption.openers[0].to.client;
        let (params, notices) = (&mut adoption.params, &mut adoption.notices);
        let (servers, params) = self.gather_servers(slot, opener, &adoption.cwd, params, notices);
        let why = Purpose::Adopt(Box::new(adoption));
        self.request_with(slot, why, method, &raw(&params), &servers);
    }

    /// Extends the time with each line of the history. Returns the bytes parked so far.
    pub(crate) fn extend_adoption(&mut self, process: Process, session: &str) -> Option<usize> {
        let ask = self.requests.adoption_ask(process.host, session)?;
        let timeout = self.profile_of(process.slot).restore_timeout;
        self.cx.timers.set(Timer::Asked(ask), self.cx.now.after(timeout));
        Some(self.processes.parked(process.slot, session).map_or(0, |parked| parked.bytes))
    }

    pub(crate) fn on_adopt_timer(&mut self, ask: u64, slot: SlotId) {
        let time = duration(self.profile_of(slot).restore_timeout);
        let text = format!("the agent did not load it within {time}");
        self.give_up_adoption(slot, ask, &Fault::new(Reason::AgentTimeout, text));
    }

    /// Answers a cancelled request to open a session. Returns whether there was one.
    pub(crate) fn cancel_opener(&mut self, to: &Requester) -> bool {
        let mut gone = Vec::new();
        for (_, _, adoption) in self.requests.adoptions() {
            gone.extend(adoption.openers.extract_if(.., |opener| opener.to == *to));
        }
        let fault = Fault::new(Reason::Interrupted, "cancelled while the agent was loading it")
            .with_code(code::CANCELLED);
        self.refuse_all(gone.iter().map(|opener| &opener.to), &fault);
        !gone.is_empty()
    }

    fn give_up_adoption(&mut self, slot: SlotId, ask: u64, fault: &Fault) {
        let Some((host, Purpose::Adopt(adoption))) = self.give_up_ask(ask) else { return };
        self.refuse_adoption(&adoption, fault);
        self.processes.take_parked(&mut self.cx, Process { slot, host }, &adoption.id);
    }

    pub(crate) fn refuse_adoption(&mut self, adoption: &Adoption, fault: &Fault) {
        self.refuse_all(adoption.openers.iter().map(|opener| &opener.to), fault);
    }

    pub(crate) fn adoption_too_long(&mut self, process: Process, session: &str) {
        let Some(ask) = self.requests.adoption_ask(process.host, session) else { return };
        let text = format!("the history of `{session}` is over {} MiB", HISTORY_BYTES >> 20);
        let fault = Fault::new(Reason::TooMany, text)
            .session(session)
            .hint("continue it in the agent's own program");
        self.give_up_adoption(process.slot, ask, &fault);
    }

    pub(crate) fn open_adopted(&mut self, openers: &[Opener], key: SessionKey) {
        for Opener { to, style, after } in openers {
            if self.clients.contains_key(&to.client) {
                self.show_session(to, key, *after, *style, String::new());
            }
        }
    }
}

/// Returns the hash of the last prompt in a replay, which tells a later replay from news.
pub(crate) fn last_prompt(replayed: &[Bytes]) -> u64 {
    let mut replay = Replay::new(0, Replayable::default());
    for line in replayed {
        replay.line(line.clone(), user_text(line).as_deref());
    }
    replay.last_seen()
}

pub(crate) fn entry(
    id: &str,
    cwd: &str,
    title: Option<&str>,
    updated_at: Option<&str>,
    archived: bool,
) -> Value {
    // Some clients fail on null, which the schema allows.
    without_nulls(json!({ "sessionId": id, "cwd": cwd, "archived": archived,
        "title": title, "updatedAt": updated_at }))
}
