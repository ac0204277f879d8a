//! Effects of an update, and requests without an answer.

use std::collections::HashMap;

use acp_wire::{Id, build};
use acpd_api::{
    CancelParams, ClientMeta, NAMESPACE, PromptMeta, Role, SessionRowKey, Untrusted, method,
};
use acpd_client::initialize_params;
use acpd_view::Role as Look;
use acpd_view::text::Text;
use serde::Serialize;
use serde_json::json;

use super::prompt_draft::{PromptDraft, SessionDraft};
use super::{AppState, Effect};

pub(crate) const CLIENT: &str = "acpctl";
/// Longest time between two presses of a key that asks for the second one.
const SECOND_PRESS_MS: u64 = 3000;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) enum LinkId {
    /// Watches all rows, and answers questions.
    #[default]
    Fleet,
    /// Follows a conversation as an observer.
    Chat(u32),
    /// Sends one request, then ends.
    Errand(u32),
}

#[derive(Debug)]
pub(super) enum Purpose {
    Watch,
    Answer(Untrusted),
    Cancel,
    New,
    /// The text, unless the conversation keeps it.
    Prompt(Option<SessionDraft>),
    Steer(SessionDraft),
    Queue(SessionRowKey),
    TakeBack(SessionDraft),
    Hello,
    Attach,
    /// A page of the journal before the first line that was read.
    Older(SessionRowKey),
    Usage,
    Restart,
    Options(SessionRowKey),
    Rename,
    Set(SessionRowKey),
    /// Confirms that the prompt before it is on disk.
    Prompted,
    /// Like `Prompted`; the next prompt may follow.
    NextWaiting,
}

/// An action that needs a second press.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Twice {
    Cancel(SessionRowKey),
    Restart(Untrusted),
}

#[derive(Debug, Default)]
pub(super) struct Outbox {
    effects: Vec<Effect>,
    last_id: u64,
    links: u32,
    waiting: HashMap<(LinkId, u64), Purpose>,
}

impl Outbox {
    pub(super) fn push(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    pub(super) fn take(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    pub(super) fn send(
        &mut self,
        link: LinkId,
        method: &str,
        params: &impl Serialize,
        purpose: Purpose,
    ) {
        self.last_id += 1;
        self.waiting.insert((link, self.last_id), purpose);
        self.push(Effect::Send(link, build::request(&self.last_id.into(), method, params)));
    }

    /// Ends a connection. Returns the purposes of its requests.
    pub(super) fn leave(&mut self, link: LinkId) -> Vec<Purpose> {
        self.push(Effect::Leave(link));
        self.forget(link)
    }

    pub(super) fn answered(&mut self, link: LinkId, id: &Id) -> Option<Purpose> {
        self.waiting.remove(&(link, id.as_u64()?))
    }

    pub(super) fn forget(&mut self, link: LinkId) -> Vec<Purpose> {
        self.waiting.extract_if(|(of, _), _| *of == link).map(|(_, purpose)| purpose).collect()
    }

    pub(super) fn new_chat_link(&mut self) -> LinkId {
        self.links += 1;
        LinkId::Chat(self.links)
    }
}

impl AppState {
    pub(super) fn prompt(&mut self, key: &SessionRowKey, prompt: &str) {
        let link = self.errand(&key.agent);
        let words = SessionDraft { key: key.clone(), said: PromptDraft::from(prompt) };
        let said = words.said.clone();
        self.send_prompt(link, &key.session_id, &said, Some(words));
        // The answer arrives after everything before it is on disk.
        self.out.send(link, method::SESSION_SHOW, &key.exactly(), Purpose::Prompted);
    }

    /// The daemon groups this program's connections by their place.
    pub(super) fn our_place(&self) -> Option<String> {
        self.scene.who.place.as_ref().map(|place| place.raw().to_owned())
    }

    pub(super) fn errand(&mut self, agent: &Untrusted) -> LinkId {
        self.out.links += 1;
        let link = LinkId::Errand(self.out.links);
        let meta = ClientMeta {
            agent: Some(agent.raw().to_owned()),
            role: Some(Role::Controller),
            place: self.our_place(),
            ..ClientMeta::default()
        };
        self.out.push(Effect::Open(link));
        self.out.send(link, "initialize", &initialize_params(&meta, CLIENT), Purpose::Hello);
        link
    }

    /// Returns whether this is the second press. The first press shows `words`.
    pub(super) fn is_second(&mut self, what: Twice, words: Text) -> bool {
        let before = self.twice.take();
        let is_second = before.is_some_and(|(of, until)| of == what && until >= self.now);
        if !is_second {
            self.flash(Look::Warning, words);
            self.twice = Some((what, self.now + SECOND_PRESS_MS));
        }
        is_second
    }

    /// Cancels the turn of a session at the second press. The first press shows `words`.
    pub(super) fn cancel_session(&mut self, key: SessionRowKey, words: Text) {
        let (session, by) = (key.exactly(), Some(self.scene.who.clone()));
        if !self.is_second(Twice::Cancel(key), words) {
            return;
        }
        let params = CancelParams { session, turn_only: false, background: false, by };
        self.out.send(LinkId::Fleet, method::SESSION_CANCEL, &params, Purpose::Cancel);
    }

    /// If the prompt is refused, `words` become the draft again.
    pub(super) fn send_prompt(
        &mut self,
        link: LinkId,
        session: &Untrusted,
        said: &PromptDraft,
        words: Option<SessionDraft>,
    ) {
        if !said.text.trim().is_empty() {
            self.said.push(said.text.clone());
        }
        let mut params = json!({"sessionId": session, "prompt": said.blocks()});
        if said.in_place_of.is_some() {
            let meta = PromptMeta { in_place_of: said.in_place_of, ..PromptMeta::default() };
            params["_meta"] = json!({NAMESPACE: meta});
        }
        self.out.send(link, "session/prompt", &params, Purpose::Prompt(words));
    }
}
