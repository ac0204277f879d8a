//! Queued prompts, which others than their senders can change and move, and the rows of turns.
//!
//! Architecture invariant: a queued prompt is on disk with its place, which no other ever has.

use acp_wire::{Id, build, clipped, code, locate, set_member};
use acpd_api::{
    NAMESPACE, PromptQueued, QueueEditParams, QueueInfo, QueueMoveParams, QueueRemoveParams,
    QueueStep, Reason, SessionRef, method,
};
use bytes::Bytes;
use serde_json::json;

use crate::clients::Asked;
use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::{ClientId, Requester, SessionKey};
use crate::profile::OnLost;
use crate::prompt::{continues, has_yes, prompt_text, without_once};
use crate::record::{Dormant, Row, TurnRow, TurnStage};
use crate::session::Session;
use crate::session::limit::Held;
use crate::session::reseed::GO_ON;
use crate::session::turn::{Queued, wait_or_cancel};
use crate::timers::Timer;

impl Hub {
    /// Returns the number of prompts before it. Fails if too much is queued or the session is lost.
    pub(crate) fn put_in_line(
        &mut self,
        key: SessionKey,
        to: Option<Requester>,
        line: Bytes,
    ) -> Result<u32, Fault> {
        self.has_room(key, line.len())?;
        let session = self.session(key);
        if session.queue.len() >= MAX_QUEUED_PROMPTS {
            let text = format!("{MAX_QUEUED_PROMPTS} prompts already wait in this session");
            let hint = wait_or_cancel(&session.row.public_id);
            return Err(Fault::new(Reason::TooMany, text).hint(hint));
        }
        let stays_lost = self.profile_of(session.slot).on_lost == OnLost::Stop;
        if stays_lost && session.row.rest == Dormant::Lost && session.is_dormant() {
            return Err(session.lost_fault());
        }
        if self.session(key).held().is_some()
            && let Some(held) = self.session_mut(key).queue.pop_front()
        {
            self.cx.record(held.ended(key));
            self.cx.timers.clear(Timer::Limit(key));
        }
        let place = self.session(key).place_in_line(&line);
        let ahead = place as u32 + u32::from(self.is_busy(key));
        self.enqueue(key, place, to, line);
        self.renumber(key, place + 1);
        Ok(ahead)
    }

    pub(crate) fn has_room(&self, key: SessionKey, bytes: usize) -> Result<(), Fault> {
        let session = self.session(key);
        let waiting: usize = session.queue.iter().map(|prompt| prompt.line.len()).sum();
        if waiting + bytes <= self.cx.config.line_limit as usize + QUEUE_BYTES {
            return Ok(());
        }
        let text = "too many bytes of prompts already wait";
        Err(Fault::new(Reason::TooMany, text).hint(wait_or_cancel(&session.row.public_id)))
    }

    pub(crate) fn save_queued(&mut self, key: SessionKey, place: usize) {
        let prompt = &self.sessions[&key].queue[place];
        let (ticket, line) = (prompt.ticket, prompt.line.clone());
        let row = self.turn_row(key, prompt, TurnStage::Queued);
        self.cx.put(Row::Turn(row));
        self.cx.put(Row::Prompt { session: key, ticket, line });
    }

    fn turn_row(&self, key: SessionKey, prompt: &Queued, state: TurnStage) -> TurnRow {
        let (ticket, at) = (prompt.ticket, prompt.at);
        let senders = prompt.senders.iter().filter_map(|to| self.clients.sender(to)).collect();
        TurnRow { session: key, ticket, state, at, senders, cancelling: None }
    }

    /// Answers everything queued in a session with an error. If the sender of a prompt is gone, the
    /// journal gets the error; when the daemon ends, the next one gets such a prompt instead.
    pub(crate) fn fail_queue(&mut self, key: SessionKey, fault: &Fault) {
        let is_left = self.cx.shutdown.is_begun() && fault.data.reason != Reason::SessionRemoved;
        for prompt in std::mem::take(&mut self.session_mut(key).queue) {
            if prompt.senders.is_empty() {
                if is_left {
                    self.session_mut(key).queue.push_back(prompt);
                    continue;
                }
                // The journal gets the error, with the beginning of the prompt.
                if !continues(&prompt.line) {
                    let said = quotation(&prompt, KEPT);
                    let text =
                        format!("a prompt that waited was not sent: {}{said}", fault.message);
                    self.notice(key, "warning", &text);
                }
            }
            self.drop_prompt(key, &prompt, fault);
        }
        self.refuse_relayed(key, fault);
    }

    /// Ends a prompt that was taken out of the queue.
    pub(crate) fn drop_prompt(&mut self, key: SessionKey, prompt: &Queued, fault: &Fault) {
        self.cx.record(prompt.ended(key));
        self.refuse_all(&prompt.senders, fault);
    }

    pub(crate) fn refuse_relayed(&mut self, key: SessionKey, fault: &Fault) {
        let waiting = std::mem::take(&mut self.session_mut(key).waiting);
        self.refuse_all(waiting.iter().map(|relayed| &relayed.to), fault);
    }

    pub(crate) fn tell_ahead(&mut self, client: ClientId, key: SessionKey, ahead: u32) {
        let session_id = self.session(key).row.public_id.clone();
        let notice = PromptQueued { session_id: session_id.into(), ahead };
        let line = build::notification(method::PROMPT_QUEUED, &notice);
        self.clients.tell(&mut self.cx, client, &line);
    }

    pub(crate) fn tell_taken_back(&mut self, key: SessionKey, prompt: &Queued, by: Option<&str>) {
        let (by, said) = (by_whom(by), quotation(prompt, KEPT));
        let text = format!("a prompt that waited was taken back by {by}{said}");
        self.notice(key, "info", &text);
    }

    /// Numbers are the order on disk, and are never reused. Senders get their new places.
    pub(crate) fn renumber(&mut self, key: SessionKey, from: usize) {
        let busy = u32::from(self.is_busy(key));
        for place in from..self.session(key).queue.len() {
            let session = self.sessions.session_mut(key);
            let ticket = session.next_ticket();
            self.cx.record(session.queue[place].ended(key));
            session.queue[place].ticket = ticket;
            self.save_queued(key, place);
            let prompt = &self.session(key).queue[place];
            for client in prompt.senders.iter().map(|to| to.client).collect::<Vec<_>>() {
                self.tell_ahead(client, key, place as u32 + busy);
            }
        }
    }

    /// Queues acpd's own prompt, which asks the agent to continue.
    pub(crate) fn queue_continue(&mut self, key: SessionKey, held: Option<Held>) {
        let session = self.session(key);
        let params = json!({
            "sessionId": session.row.public_id,
            "prompt": [{ "type": "text", "text": GO_ON }],
            "_meta": { acpd_api::NAMESPACE: held.map_or(json!({ "continues": true }), Held::meta) },
        });
        let line = build::request(&Id::from(0), "session/prompt", &params);
        self.enqueue(key, session.queue.len(), None, line);
    }

    fn enqueue(&mut self, key: SessionKey, place: usize, to: Option<Requester>, line: Bytes) {
        let at = self.cx.now;
        let session = self.session_mut(key);
        let ticket = session.next_ticket();
        let prompt = Queued { ticket, senders: to.into_iter().collect(), line, at };
        session.queue.insert(place, prompt);
        self.save_queued(key, place);
    }

    /// Records the running turn. `line`: its new line, if it was replaced.
    pub(crate) fn save_turn(&mut self, key: SessionKey, line: Option<Bytes>) {
        let Session { row, running, messages, .. } = self.session(key);
        let (Some(host), Some(running)) = (row.host, running) else { return };
        let open = messages.named().filter(|_| self.cx.config.newest.names_messages()).cloned();
        let (chunk, message) = (running.chunk, running.message.clone());
        let state = TurnStage::Dispatched { host, chunk, message, open };
        let (ticket, cancelling) = (running.prompt.ticket, running.work.canceller());
        let row = TurnRow { cancelling, ..self.turn_row(key, &running.prompt, state) };
        self.cx.put(Row::Turn(row));
        if let Some(line) = line {
            self.cx.put(Row::Prompt { session: key, ticket, line });
        }
    }

    pub(crate) fn queue_remove(&mut self, params: QueueRemoveParams) -> Result<QueueInfo, Fault> {
        let QueueRemoveParams { session, ticket, by } = params;
        let (key, place) = self.place_of(&session, ticket)?;
        let prompt = self.session_mut(key).queue.remove(place).expect("a prompt at its place");
        self.tell_taken_back(key, &prompt, by.as_deref());
        let by = by_whom(by.as_deref());
        let text = format!("the prompt was taken back by {by} while it waited");
        let fault = Fault::new(Reason::Interrupted, text).with_code(code::CANCELLED);
        let fault = fault.session(&self.session(key).row.public_id);
        self.drop_prompt(key, &prompt, &fault);
        Ok(self.tell_queue(key))
    }

    pub(crate) fn queue_edit(
        &mut self,
        params: QueueEditParams,
        asked: &Asked<'_>,
    ) -> Result<QueueInfo, Fault> {
        let QueueEditParams { session, ticket, prompt, by } = params;
        let (key, place) = self.place_of(&session, ticket)?;
        let blocks: Vec<serde_json::Map<String, serde_json::Value>> =
            serde_json::from_str(prompt.get()).unwrap_or_default();
        if blocks.is_empty() {
            return Err(Fault::invalid("`prompt` is no list of content blocks"));
        }
        let queued = &self.session(key).queue[place];
        self.has_room(key, prompt.get().len().saturating_sub(queued.line.len()))?;
        let ends_yes = has_yes(&queued.line) && ends_yes(queued.senders.first(), asked)?;
        let queued = &mut self.session_mut(key).queue[place];
        if ends_yes {
            queued.line = without_once(&queued.line);
        }
        queued.line = set_member(&queued.line, &["params", "prompt"], prompt.get().as_bytes());
        let said = quotation(queued, SHOWN);
        self.save_queued(key, place);
        let by = by_whom(by.as_deref());
        self.notice(key, "info", &format!("a prompt that waits was changed by {by}{said}"));
        if ends_yes {
            let text = format!("`--yes` no longer holds for that prompt: {by} changed it");
            self.notice(key, "warning", &text);
        }
        Ok(self.tell_queue(key))
    }

    pub(crate) fn queue_move(&mut self, params: QueueMoveParams) -> Result<QueueInfo, Fault> {
        let QueueMoveParams { session, ticket, to, by } = params;
        let (key, from) = self.place_of(&session, ticket)?;
        let place = match to {
            QueueStep::First => 0,
            QueueStep::Up => from.saturating_sub(1),
            QueueStep::Down => (from + 1).min(self.session(key).queue.len() - 1),
        };
        let queue = &mut self.session_mut(key).queue;
        if place != from
            && let Some(prompt) = queue.remove(from)
        {
            let said = quotation(&prompt, SHOWN);
            queue.insert(place, prompt);
            self.renumber(key, from.min(place));
            let by = by_whom(by.as_deref());
            self.notice(key, "info", &format!("a prompt that waits was moved by {by}{said}"));
        }
        Ok(self.tell_queue(key))
    }

    fn place_of(&self, session: &SessionRef, ticket: u64) -> Result<(SessionKey, usize), Fault> {
        let key = self.resolve(session)?;
        let Session { row, queue, .. } = self.session(key);
        if let Some(place) = queue.iter().position(|queued| queued.ticket == ticket) {
            return Ok((key, place));
        }
        let text = format!("that prompt does not wait in session `{}`", row.handle());
        let hint = format!("`acpctl queue {}` lists those that wait", row.word());
        Err(Fault::invalid(text).session(&row.public_id).hint(hint))
    }

    fn tell_queue(&mut self, key: SessionKey) -> QueueInfo {
        self.tell_state(key);
        self.session(key).queue_info()
    }
}

const MAX_QUEUED_PROMPTS: usize = 32;

/// Bytes of queued prompts in one session, in addition to one line of any length.
const QUEUE_BYTES: usize = 8 << 20;

/// Returns the end of a sentence that quotes a prompt; empty if the prompt has no words.
fn quotation(prompt: &Queued, most: usize) -> String {
    match clipped(prompt_text(&prompt.line).trim(), most) {
        said if said.is_empty() => said,
        said => format!(": {said}"),
    }
}

fn by_whom(by: Option<&str>) -> String {
    by.map_or_else(|| "another client".to_owned(), |by| clipped(by, SHOWN))
}

/// Characters shown of a prompt, and of the name of the client that takes it back.
const SHOWN: usize = 60;

/// Characters kept of a prompt that was taken back or not sent: nothing else keeps it.
const KEPT: usize = 4_000;

/// Returns whether a request ends the sender's yes, which holds for the sender's own words only.
/// Fails if the request may not answer questions (`_meta._acpd.answers`).
pub(crate) fn ends_yes(sender: Option<&Requester>, asked: &Asked<'_>) -> Result<bool, Fault> {
    if sender.is_some_and(|sender| sender.client == asked.to.client) {
        return Ok(false);
    }
    let params = asked.params.map_or(&[][..], |params| params.get().as_bytes());
    let answers = locate(params, &["_meta", NAMESPACE, "answers"]);
    if answers.is_none_or(|answers| &params[answers] != b"false") {
        return Ok(true);
    }
    let text = "the sender allowed beforehand what this prompt asks for: changing it needs the scope `answer`";
    Err(Fault::new(Reason::OutOfScope, text)
        .with_code(code::INVALID_PARAMS)
        .hint("do it at the terminal, or pair again with more scopes: `acpctl web pair --scope …`"))
}
