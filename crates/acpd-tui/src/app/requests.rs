//! Requests that wait for an answer, and what they were for.

use std::collections::HashMap;

use acp_wire::{Id, build};
use acpd_api::{ClientMeta, Role, SessionRef, SessionRowKey, Untrusted, method};
use acpd_client::initialize_params;
use serde::Serialize;
use serde_json::{Value, json};

use super::said::Said;
use super::{Effect, State};

/// How we call ourselves.
pub(crate) const CLIENT: &str = "acpctl";

/// A connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Link {
    /// It watches everything, and answers questions.
    Fleet,
    /// It follows a conversation, and says nothing.
    Chat(u32),
    /// It asks one thing of an agent, and ends.
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
    /// A session that begins.
    New,
    /// A turn.
    Prompt,
    /// A message into the running turn.
    Steer(Said),
    /// What waits in a session.
    Queue(SessionRowKey),
    /// A prompt that waits, back.
    TakeBack {
        /// Of this session.
        key: SessionRowKey,
        /// What it says.
        said: Said,
    },
    /// What the agent of a conversation can do.
    Hello,
    /// The journal of a conversation.
    Attach,
    /// A part of the journal that is older than what was read.
    Older(SessionRowKey),
    /// Lines of blocks whose bodies were dropped.
    Body(SessionRowKey),
    /// What was used today.
    Usage,
    /// Another process of an agent.
    Restart,
    /// What there is to choose, and what of it is wanted.
    Options(Option<Wish>),
    /// Another name for a session.
    Rename,
    /// A choice.
    Set,
    /// The prompt before it is on disk when this is answered.
    Prompted,
    /// The prompt before it is on disk when this is answered, and the next one may follow.
    NextWaiting,
    /// Only an error matters.
    Passing,
}

/// A model or a mode, as a person names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wish {
    /// `model` or `mode`.
    pub(super) category: &'static str,
    /// Its id or its name.
    pub(super) words: String,
}

/// Requests that wait, and the connections that were opened.
#[derive(Debug, Default)]
pub(super) struct Requests {
    last_id: u64,
    links: u32,
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

    /// Another connection for a conversation.
    pub(super) fn chat(&mut self) -> Link {
        self.links += 1;
        Link::Chat(self.links)
    }
}

/// The parameters of our `initialize`.
pub(super) fn hello(meta: &ClientMeta) -> Value {
    initialize_params(meta, CLIENT)
}

impl State {
    /// Sends a prompt to a session, and leaves it alone.
    pub(super) fn prompt(&mut self, key: &SessionRowKey, prompt: &str) -> Vec<Effect> {
        let (mut effects, link) = self.errand(&key.agent);
        effects.push(self.send_prompt(link, &key.session_id, &Said::from(prompt)));
        // Answers come when everything before them is on disk; so does this one.
        let id = key.session_id.raw().to_owned();
        let session = SessionRef { session: id, ..SessionRef::default() };
        let show = self.requests.send(link, method::SESSION_SHOW, &session, Purpose::Prompted);
        effects.push(show);
        effects
    }

    /// Another connection, bound to an agent, and what opens it.
    pub(super) fn errand(&mut self, agent: &Untrusted) -> (Vec<Effect>, Link) {
        self.requests.links += 1;
        let link = Link::Errand(self.requests.links);
        let meta = ClientMeta {
            agent: Some(agent.raw().to_owned()),
            role: Some(Role::Controller),
            place: self.scene.who.place.as_ref().map(|place| place.raw().to_owned()),
            ..ClientMeta::default()
        };
        let hello = self.requests.send(link, "initialize", &hello(&meta), Purpose::Passing);
        (vec![Effect::Open(link), hello], link)
    }

    /// A prompt.
    pub(super) fn send_prompt(&mut self, link: Link, session: &Untrusted, said: &Said) -> Effect {
        if !said.text.trim().is_empty() {
            self.said.push(said.text.clone());
        }
        let params = json!({"sessionId": session, "prompt": said.blocks()});
        self.requests.send(link, "session/prompt", &params, Purpose::Prompt)
    }
}
