//! Requests that wait for an answer, and what they were for.

use std::collections::HashMap;

use acp_wire::acp::NewSessionResult;
use acp_wire::{Id, build};
use acpd_api::{ClientMeta, Role, SessionRef, SessionRowKey, Untrusted, method};
use acpd_client::initialize_params;
use acpd_view::Role as Look;
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::{Effect, State};

/// How we call ourselves.
pub(crate) const CLIENT: &str = "acpctl";

/// A connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Link {
    /// It watches everything, and answers questions.
    Fleet,
    /// It sends one prompt and ends.
    Errand(u32),
}

/// What a request was for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Purpose {
    /// Everything that there is.
    Watch,
    /// The answer to a question.
    Answer(Untrusted),
    /// The end of a turn.
    Cancel,
    /// A session that this prompt begins.
    New {
        /// The prompt.
        prompt: String,
    },
    /// The prompt before it is on disk when this is answered.
    Prompted,
    /// Only an error matters.
    Passing,
}

/// Requests that wait, and the connections that were opened.
#[derive(Debug, Default)]
pub(super) struct Requests {
    last_id: u64,
    errands: u32,
    waiting: HashMap<(Link, u64), Purpose>,
}

impl Requests {
    /// Sends a request.
    pub(super) fn send(
        &mut self,
        link: Link,
        method: &str,
        params: &impl Serialize,
        purpose: Purpose,
    ) -> Effect {
        self.last_id += 1;
        self.waiting.insert((link, self.last_id), purpose);
        Effect::Send(link, build::request(&self.last_id.into(), method, params))
    }

    /// What an answer is for.
    pub(super) fn answered(&mut self, link: Link, id: &Id) -> Option<Purpose> {
        self.waiting.remove(&(link, id.as_u64()?))
    }

    /// Drops the requests of a connection. Returns whether it had any.
    pub(super) fn forget(&mut self, link: Link) -> bool {
        let before = self.waiting.len();
        self.waiting.retain(|(of, _), _| *of != link);
        self.waiting.len() < before
    }

    /// Another connection for an errand.
    fn errand(&mut self) -> Link {
        self.errands += 1;
        Link::Errand(self.errands)
    }
}

impl State {
    /// Sends a prompt to a session, over a connection that is bound to its agent.
    pub(super) fn prompt(&mut self, key: &SessionRowKey, prompt: &str) -> Vec<Effect> {
        let link = self.requests.errand();
        let mut effects = self.open(link, &key.agent);
        effects.extend(self.send_prompt(link, &key.session_id, prompt));
        effects
    }

    /// Begins a session with a prompt.
    pub(super) fn begin(&mut self, agent: &Untrusted, prompt: &str) -> Vec<Effect> {
        let link = self.requests.errand();
        let mut effects = self.open(link, agent);
        let params = json!({"cwd": self.scene.cwd, "mcpServers": []});
        let purpose = Purpose::New { prompt: prompt.to_owned() };
        effects.push(self.requests.send(link, "session/new", &params, purpose));
        effects
    }

    /// A session was begun: sends its first prompt.
    pub(super) fn begun(&mut self, link: Link, result: &RawValue, prompt: &str) -> Vec<Effect> {
        match NewSessionResult::from_raw(result) {
            Ok(new) => {
                let id = Untrusted::from(new.session_id.into_owned());
                self.send_prompt(link, &id, prompt)
            }
            Err(error) => {
                self.flash(Look::Bad, Untrusted::of(error));
                vec![Effect::Leave(link)]
            }
        }
    }

    fn open(&mut self, link: Link, agent: &Untrusted) -> Vec<Effect> {
        let meta = ClientMeta {
            agent: Some(agent.raw().to_owned()),
            role: Some(Role::Controller),
            place: self.scene.who.place.as_ref().map(|place| place.raw().to_owned()),
            ..ClientMeta::default()
        };
        let hello = initialize_params(&meta, CLIENT);
        let hello = self.requests.send(link, "initialize", &hello, Purpose::Passing);
        vec![Effect::Open(link), hello]
    }

    /// The prompt, and a request whose answer says that the prompt is on disk: answers come when everything before
    /// them is.
    fn send_prompt(&mut self, link: Link, session: &Untrusted, prompt: &str) -> Vec<Effect> {
        let params = json!({"sessionId": session,
            "prompt": [{"type": "text", "text": prompt}]});
        let session = SessionRef { session: session.raw().to_owned(), ..SessionRef::default() };
        vec![
            self.requests.send(link, "session/prompt", &params, Purpose::Passing),
            self.requests.send(link, method::SESSION_SHOW, &session, Purpose::Prompted),
        ]
    }
}
