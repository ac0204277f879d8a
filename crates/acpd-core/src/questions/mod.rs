//! Questions to people: permission requests, forms and pages of agents, and acpd's question about
//! the budget.
//!
//! ```text
//!  request ─▶ policy decides? ─▶ answered at once, and in the journal
//!     │
//!     ▼
//!  reads files that the call overwrites without their old content
//!     │
//!     ▼
//!   open ── first valid answer of a controller, or from a terminal ─▶ answered, withdrawn from the others
//!   │ ├── turn over, process gone, agent's $/cancel_request ─▶ withdrawn
//!   │ └── the agent changes the call ─▶ withdrawn, and asked again under another id
//!   └─── no client there: stays open, offered to each that attaches and can show it
//! ```
//!
//! | Input | Handler |
//! | --- | --- |
//! | request, cancel of an agent; a changed call | `on_request`, `on_agent_cancel`; `withdraw_changed`, `ask_changed` |
//! | acpd asks, acpd has read a file | `ask_own`, `on_file_seen` |
//! | a client comes, returns, leaves a session, is gone | `offer_all`, `was_offered`, `offer_again`, `take_back`, `on_client_gone` |
//! | answer of a client, of a terminal | `on_client_answer`, `on_given_answer` |
//! | a turn or request ends; a process, session is gone | `cancel`, `close` |
//! | a page is done | `on_page_done` |
//!
//! An offer is a request to a client, with the question's own number the first time, which the next
//! daemon knows too, and later with a new one. [`QuestionPlace`] has the facts from other machines,
//! [`question`] the remembered decisions, [`answers`] the answers.
//!
//! Architecture invariants: absence answers no question, and a malformed answer is no consent. Each
//! automatic answer is in the journal with its reason. The answer and the removal of the question's
//! row are one transaction, in this order.

mod answers;
pub(crate) mod question;

use std::collections::{BTreeMap, BTreeSet};

use acp_wire::acp::ElicitationMode;
use acp_wire::dialect::question_again;
use acp_wire::{ErrorObject, Id, build, code, is_legible, lossy_at, set_id, str_at};
use acpd_api::{Doing, Untrusted, method};
use acpd_policy::Remembered;
use bytes::Bytes;
use serde::Serialize;

use crate::cx::Cx;
use crate::event::EngineEvent;
use crate::fault::Fault;
use crate::ids::{ClientId, HostId, InteractionId, SessionKey, Time};
use crate::input::{Effect, FileService, ToClient};
use crate::params::session_roots;
use crate::questions::question::{Decisions, OpenQuestion, QuestionKind};
use crate::record::{EventKind, InteractionRow, RowId, SessionRow};
use crate::tool_calls::call::Call;
use crate::tool_calls::frozen::Frozen;
use crate::views::{Responder, sentence};

pub(crate) use crate::questions::question::{QuestionPlace, QuestionSubject};

/// Open questions of one session, or of one process about requests.
const OPEN: usize = 64;

/// Pages that were shown and are not done.
const PAGES: usize = 256;

/// Changes of a call during its question.
const CHANGES: u32 = 16;

/// For clients that do not see the change in the question itself.
const CHANGED: &str = "The agent changed a tool call while you were asked about it. The question was \
                       withdrawn; look at the new one before you answer it.";

#[derive(Debug, Default)]
pub(crate) struct Questions {
    open: BTreeMap<InteractionId, OpenQuestion>,
    /// Clients that got a page, by the process and id of the page.
    pages: BTreeMap<(HostId, String), BTreeSet<ClientId>>,
    pub(crate) decisions: Decisions,
}

fn notice(cx: &mut Cx, row: &SessionRow, method: &str, params: &impl Serialize) {
    let line = build::notification(method, params);
    cx.report(EngineEvent::SessionLine { session: row.key, kind: EventKind::Notice, line });
}

impl Questions {
    pub(crate) fn new(known: Vec<Remembered>) -> Questions {
        Questions { decisions: Decisions { known }, ..Questions::default() }
    }

    pub(crate) fn get(&self, id: InteractionId) -> Option<&OpenQuestion> {
        self.open.get(&id)
    }

    pub(crate) fn named(&self, name: &str) -> Result<(InteractionId, &OpenQuestion), Fault> {
        let named = InteractionId::parse(name).and_then(|id| Some((id, self.get(id)?)));
        named.filter(|(_, open)| open.is_asked()).ok_or_else(|| {
            Fault::invalid("no such question is open; it may be answered already")
                .hint("`acpctl pending` lists the open questions")
        })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (InteractionId, &OpenQuestion)> {
        self.open.iter().map(|(id, open)| (*id, open))
    }

    pub(crate) fn which(&self, is_meant: impl Fn(&OpenQuestion) -> bool) -> Vec<InteractionId> {
        self.iter().filter(|(_, open)| is_meant(open)).map(|(id, _)| id).collect()
    }

    pub(crate) fn of_session(&self, key: SessionKey) -> Vec<InteractionId> {
        self.which(|open| open.session() == Some(key))
    }

    /// `public_id`: of the asking session or child.
    pub(crate) fn of_asker(&self, key: SessionKey, public_id: &str) -> Vec<InteractionId> {
        self.which(|open| {
            let asker = || str_at(&open.line, &["params", "sessionId"]);
            open.session() == Some(key) && asker().is_some_and(|asker| asker == public_id)
        })
    }

    pub(crate) fn are_asked(&self, key: SessionKey) -> bool {
        self.waiting(key).is_some()
    }

    pub(crate) fn asked_about(&self, key: SessionKey, session: &Untrusted) -> Vec<Untrusted> {
        let open = self.open.values();
        let open = open.filter(|open| open.session() == Some(key) && open.is_asked());
        let about = open.flat_map(|open| {
            let text = |path: &[&str]| lossy_at(&open.line, path).map(Untrusted::from);
            let call = match &open.frozen {
                Some(frozen) => frozen.tool_call_id(),
                None => text(&["params", "toolCallId"]),
            };
            let asks = text(&["params", "sessionId"]).filter(|asks| asks != session);
            call.into_iter().chain(asks)
        });
        about.collect()
    }

    pub(crate) fn are_open(&self, key: SessionKey) -> bool {
        self.open.values().any(|open| open.session() == Some(key))
    }

    pub(crate) fn about(&self, request: &Id) -> Vec<InteractionId> {
        let subject = request.as_issued().map(QuestionSubject::Request);
        self.which(|open| Some(open.subject) == subject)
    }

    pub(crate) fn waiting(&self, key: SessionKey) -> Option<Doing> {
        let is_asked = |open: &&OpenQuestion| open.session() == Some(key) && open.is_asked();
        self.open.values().find(is_asked).map(OpenQuestion::doing)
    }

    /// # Errors
    /// When the request cannot be read, its id is open, or too many questions are open.
    pub(crate) fn read(
        &self,
        now: Time,
        host: HostId,
        line: &Bytes,
        route: impl FnOnce(&str) -> Option<SessionKey>,
    ) -> Result<OpenQuestion, String> {
        let new = OpenQuestion::read(Some(host), line, now, route)?;
        let is_same = |open: &OpenQuestion| open.request == new.request;
        if let Some((_, id)) = new.request.as_ref().filter(|_| self.open.values().any(is_same)) {
            return Err(format!("the id {id} is open already"));
        }
        let competes = |open: &OpenQuestion| {
            open.session() == new.session()
                && (new.session().is_some() || open.host() == Some(host))
        };
        if self.which(competes).len() >= OPEN {
            return Err(format!("{OPEN} questions are open already"));
        }
        Ok(new)
    }

    /// The line has the session's public id. `known`: the announced call; `is_intact`: acpd removed
    /// nothing.
    pub(crate) fn on_request(
        &mut self,
        cx: &mut Cx,
        place: &QuestionPlace<'_>,
        mut new: OpenQuestion,
        mut known: Call,
        is_intact: bool,
    ) {
        if place.is_cancelling {
            // The turn is going to end, and a question would delay that.
            return new.cancel(cx);
        }
        if let (QuestionKind::Permission(_), Some(session)) = (&new.kind, new.session()) {
            // Readers may understand such a call differently, so a person must decide.
            let is_intact = is_intact && std::str::from_utf8(&new.line).is_ok_and(is_legible);
            if !is_intact {
                known.doubt();
            }
            new.frozen = Some(Box::new(Frozen::of_question(known, &new.line)));
            cx.report(EngineEvent::CallAsked { session, line: new.line.clone() });
        }
        self.decide_or_ask(cx, place, new);
    }

    /// Continues a question of the last daemon. `is_held`: the process still has its session.
    pub(crate) fn recover(&mut self, cx: &mut Cx, row: InteractionRow, is_held: bool) {
        let read = OpenQuestion::read(Some(row.host), &row.line, row.at, |_| row.session);
        let Ok(mut question) = read else { return };
        if !is_held {
            // The question came during a restore, which starts over.
            cx.delete(RowId::Interaction(row.id));
            return question.cancel(cx);
        }
        let is_permission = matches!(question.kind, QuestionKind::Permission(_));
        let old =
            || is_permission.then(|| Box::new(Frozen::of_question(Call::unknown(), &row.line)));
        question.frozen = row.frozen.or_else(old);
        question.original = row.original.map(Bytes::from);
        self.open.insert(row.id, question);
    }

    pub(crate) fn ask_own(&mut self, cx: &mut Cx, place: &QuestionPlace<'_>, line: &Bytes) {
        let key = place.row.map(|row| row.key);
        let Ok(mut question) = OpenQuestion::read(None, line, cx.now, |_| key) else { return };
        question.frozen = Some(Box::new(Frozen::of_question(Call::default(), line)));
        let id = InteractionId(cx.ids.issue());
        self.open.insert(id, question);
        self.ask_people(cx, place, id);
    }

    fn decide_or_ask(&mut self, cx: &mut Cx, place: &QuestionPlace<'_>, question: OpenQuestion) {
        cx.out.durable = true;
        let decided = self.decisions.decide(&cx.config.policy, place, &question);
        if let (Some((answer, decided)), Some(row)) = (decided, place.row) {
            notice(cx, row, method::PERMISSION_DECIDED, &decided);
            return question.reply(cx, |id| build::response(id, &answer));
        }
        let id = InteractionId(cx.ids.issue());
        question.save(cx, id);
        self.open.insert(id, question);
        self.look_or_ask(cx, place, id, 0);
    }

    fn look_or_ask(
        &mut self,
        cx: &mut Cx,
        place: &QuestionPlace<'_>,
        id: InteractionId,
        from: usize,
    ) {
        let Some(open) = self.open.get_mut(&id) else { return };
        let next = open.frozen.as_ref().and_then(|frozen| frozen.unseen_file(from));
        let (Some((at, path)), Some(host), Some(row)) = (next, open.host(), place.row) else {
            open.looks_at = None;
            return self.ask_people(cx, place, id);
        };
        let is_whole = path.starts_with(['/', '\\']) || path.get(1..2) == Some(":");
        let path = if is_whole { path.to_owned() } else { format!("{}/{path}", row.cwd) };
        let roots = session_roots(&row.cwd, &row.params);
        let service = FileService::ReadTextFile { path, line: None, limit: None };
        open.looks_at = Some(at);
        cx.send_behind(Effect::Serve { host, request: id, roots, service });
    }

    /// Returns whether a question waits for the file.
    pub(crate) fn on_file_seen(
        &mut self,
        cx: &mut Cx,
        place: &QuestionPlace<'_>,
        id: InteractionId,
        result: &Result<Bytes, ErrorObject>,
    ) -> bool {
        let Some(open) = self.open.get_mut(&id) else { return false };
        let Some(at) = open.looks_at else { return false };
        let seen = match result {
            Ok(result) => str_at(result, &["content"]).map(|content| Some(content.into_owned())),
            Err(error) => (error.code == code::NOT_FOUND).then_some(None),
        };
        if let (Some(frozen), Some(content)) = (&mut open.frozen, seen) {
            frozen.take_file(at, content);
        }
        // The question is on disk before it is shown.
        open.save(cx, id);
        cx.out.durable = true;
        self.look_or_ask(cx, place, id, at + 1);
        true
    }

    fn ask_people(&mut self, cx: &mut Cx, place: &QuestionPlace<'_>, id: InteractionId) {
        if place.is_lost() {
            return self.cancel(cx, id);
        }
        let responders = place.responders.iter();
        let offers = responders.filter_map(|to| self.offer(cx, place, to, id)).collect();
        let session = place.row.map(|row| row.key);
        cx.report(EngineEvent::QuestionAsked { question: id, session, offers });
    }

    fn offer(
        &mut self,
        cx: &mut Cx,
        place: &QuestionPlace<'_>,
        to: &Responder<'_>,
        id: InteractionId,
    ) -> Option<(ClientId, Bytes)> {
        let open = self.open.get_mut(&id)?;
        let is_offered = open.request_to(to.client).is_some();
        if is_offered || !open.is_asked() || !open.kind.is_for(&to.view.capabilities) {
            return None;
        }
        if let QuestionKind::Elicitation(ElicitationMode::Url { elicitation_id, .. }) = &open.kind
            && let Some(host) = open.host()
        {
            let page = (host, elicitation_id.clone());
            self.pages.entry(page).or_default().insert(to.client);
            while self.pages.len() > PAGES {
                self.pages.pop_first();
            }
        }
        let line = open.line_for(id, place, to);
        let is_known = open.offers.contains_key(&to.client);
        let number = if is_known { cx.ids.issue() } else { id.0 };
        open.offers.entry(to.client).or_default().number = Some(number);
        Some((to.client, set_id(&line, &Id::issued(number))))
    }

    pub(crate) fn offer_again(
        &mut self,
        cx: &mut Cx,
        place: &QuestionPlace<'_>,
        client: ClientId,
        id: InteractionId,
    ) {
        if place.is_lost() {
            return self.cancel(cx, id);
        }
        let offer = place.responder(client).and_then(|to| self.offer(cx, place, to, id));
        if let Some((client, line)) = offer {
            let session = place.row.map(|row| row.key);
            cx.report(EngineEvent::ClientLine { client, session, line });
        }
    }

    pub(crate) fn offer_all(&mut self, cx: &mut Cx, place: &QuestionPlace<'_>, client: ClientId) {
        for id in place.row.map(|row| self.of_session(row.key)).unwrap_or_default() {
            self.offer_again(cx, place, client, id);
        }
    }

    /// Returns whether the question is open.
    pub(crate) fn was_offered(&mut self, client: ClientId, id: InteractionId) -> bool {
        let Some(open) = self.open.get_mut(&id) else { return false };
        open.offers.entry(client).or_default().number = Some(id.0);
        true
    }

    pub(crate) fn take_back(
        &mut self,
        cx: &mut Cx,
        client: ClientId,
        is_meant: impl Fn(SessionKey) -> bool,
    ) {
        for open in self.open.values_mut() {
            let session = open.session().filter(|key| is_meant(*key));
            let offer = open.offers.get_mut(&client).filter(|_| session.is_some());
            let Some(offer) = offer else { continue };
            if let Some(line) = offer.withdrawal() {
                offer.number = None;
                cx.report(EngineEvent::ClientLine { client, session, line });
            }
        }
    }

    pub(crate) fn on_client_gone(&mut self, client: ClientId) {
        for open in self.open.values_mut() {
            open.offers.remove(&client);
        }
        for shown in self.pages.values_mut() {
            shown.remove(&client);
        }
    }

    pub(crate) fn offered(
        &self,
        client: ClientId,
        id: &Id,
    ) -> Option<(InteractionId, &OpenQuestion)> {
        let number = id.as_issued()?;
        self.iter().find(|(_, open)| open.request_to(client) == Some(number))
    }

    /// Answers a question with the protocol's cancel, and closes it.
    pub(crate) fn cancel(&mut self, cx: &mut Cx, id: InteractionId) {
        if let Some(question) = self.open.remove(&id) {
            cx.out.durable |= !question.is_own();
            question.cancel(cx);
            question.close(cx, id);
        }
    }

    pub(crate) fn close(&mut self, cx: &mut Cx, id: InteractionId) {
        if let Some(question) = self.open.remove(&id) {
            question.close(cx, id);
        }
    }

    pub(crate) fn on_agent_cancel(&mut self, cx: &mut Cx, host: HostId, request: &Id) {
        let request = Some((host, request.clone()));
        let is_it = |_: &InteractionId, open: &mut OpenQuestion| open.request == request;
        for (id, question) in self.open.extract_if(.., is_it) {
            let error = ErrorObject::new(code::CANCELLED, "cancelled by the agent");
            question.reply(cx, |id| build::error(id, &error));
            question.close(cx, id);
        }
    }

    /// Returns the question and the new call, if the change makes it another question.
    pub(crate) fn withdraw_changed(
        &mut self,
        cx: &mut Cx,
        id: InteractionId,
        change: impl Fn(&mut Call),
    ) -> Option<(OpenQuestion, Call)> {
        let old = &self.open.get(&id)?.frozen.as_ref()?.call;
        let mut call = old.clone();
        change(&mut call);
        if call.asks_the_same(old) {
            return None;
        }
        let mut question = self.open.remove(&id)?;
        cx.out.durable = true;
        question.close(cx, id);
        question.offers.clear();
        Some((question, call))
    }

    pub(crate) fn ask_changed(
        &mut self,
        cx: &mut Cx,
        place: &QuestionPlace<'_>,
        mut question: OpenQuestion,
        call: Call,
    ) {
        let (Some(frozen), Some(row)) = (&question.frozen, place.row) else { return };
        let changes = frozen.changed;
        if changes >= CHANGES {
            let why =
                format!("the agent changed the call {CHANGES} times while a person was asked");
            let error = ErrorObject::new(code::INVALID_PARAMS, format!("refused: {why}"));
            question.reply(cx, |id| build::error(id, &error));
            let decided = frozen.decided(&row.public_id, why);
            return notice(cx, row, method::PERMISSION_DECIDED, &decided);
        }
        let (kind, line) = (EventKind::Banner, sentence(&row.public_id, CHANGED));
        cx.report(EngineEvent::SessionLine { session: row.key, kind, line });
        // The agent's last values replace those of the question.
        question.line = call.put_into(&question.line);
        let original = question.original.as_ref();
        question.original = original.map(|original| question_again(original, &question.line));
        question.frozen = Some(Box::new(Frozen::of(call, changes + 1)));
        question.at = cx.now;
        self.decide_or_ask(cx, place, question);
    }

    /// Handles `elicitation/complete`.
    pub(crate) fn on_page_done(&mut self, cx: &mut Cx, host: HostId, line: &Bytes) {
        let Some(page) = str_at(line, &["params", "elicitationId"]) else { return };
        let shown = self.pages.remove(&(host, page.into_owned())).unwrap_or_default();
        for client in shown {
            cx.send_behind(Effect::Client(client, ToClient::Line(line.clone())));
        }
    }
}
