//! Prompts that wait: shown, changed, moved and taken back by others than their senders. The sender of such a prompt
//! is told, and the conversation gets a notice.

use acp_wire::{clipped, code, locate, set_member};
use acpd_api::{NAMESPACE, QueueEditParams, QueueMoveParams, QueueRemoveParams, QueueStep, Reason};

use crate::clients::{Asked, Served};
use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::{Requester, SessionKey};
use crate::input::Batch;
use crate::params::read;
use crate::prompt::{continues, has_yes, prompt_text, without_once};
use crate::session::turn::Queued;

/// Characters of a prompt, and of who takes it back, that are told.
const SHOWN: usize = 60;
/// Characters of a prompt that was taken back or not sent. Nothing else keeps it, and a notice is shown in one piece.
const SAID: usize = 4_000;

impl Hub {
    pub(crate) fn session_queue(&mut self, asked: Asked<'_>, out: &mut Batch) -> Served {
        let key = self.resolve(&read(asked.params)?)?;
        let info = self.sessions.queue_info(key);
        self.answer(asked.to, &info, out);
        Ok(())
    }

    /// A prompt that waits is taken back: its sender gets an error that says by whom.
    pub(crate) fn queue_remove(&mut self, asked: Asked<'_>, out: &mut Batch) -> Served {
        let QueueRemoveParams { session, ticket, by } = read(asked.params)?;
        let key = self.resolve(&session)?;
        let place = self.sessions.place_of(key, ticket)?;
        let Some(prompt) = self.session_mut(key).queue.remove(place) else { return Ok(()) };
        out.records.push(prompt.dropped(key));
        self.tell_taken_back(key, &prompt, by.as_deref(), out);
        let by = by_whom(by.as_deref());
        let text = format!("the prompt was taken back by {by} while it waited");
        let fault = Fault::new(Reason::Interrupted, text).with_code(code::CANCELLED);
        let fault = fault.session(&self.session(key).row.public_id);
        for sender in &prompt.senders {
            self.refuse(sender, &fault, out);
        }
        self.tell_queue(asked, key, out);
        Ok(())
    }

    /// The beginning of what was taken back stays in the journal, where it can be read and found.
    pub(crate) fn tell_taken_back(
        &mut self,
        key: SessionKey,
        prompt: &Queued,
        by: Option<&str>,
        out: &mut Batch,
    ) {
        let (by, said) = (by_whom(by), said(prompt, SAID));
        let text = format!("a prompt that waited was taken back by {by}{said}");
        self.notice(key, "info", &text, out);
    }

    /// No client waits for the result of a refused prompt: its beginning stays in the journal.
    pub(crate) fn tell_not_sent(
        &mut self,
        key: SessionKey,
        prompt: &Queued,
        fault: &Fault,
        out: &mut Batch,
    ) {
        if continues(&prompt.line) {
            return;
        }
        let said = said(prompt, SAID);
        let text = format!("a prompt that waited was not sent: {}{said}", fault.message);
        self.notice(key, "warning", &text, out);
    }

    /// Another prompt waits in the place of one.
    pub(crate) fn queue_edit(&mut self, asked: Asked<'_>, out: &mut Batch) -> Served {
        let QueueEditParams { session, ticket, prompt, by } = read(asked.params)?;
        let key = self.resolve(&session)?;
        let place = self.sessions.place_of(key, ticket)?;
        let blocks: Vec<serde_json::Map<String, serde_json::Value>> =
            serde_json::from_str(prompt.get()).unwrap_or_default();
        if blocks.is_empty() {
            return Err(Fault::invalid("`prompt` is no list of content blocks"));
        }
        let queued = &self.session(key).queue[place];
        self.has_room(key, prompt.get().len().saturating_sub(queued.line.len()))?;
        let ends_yes = has_yes(&queued.line) && ends_yes(queued.senders.first(), &asked)?;
        let queued = &mut self.session_mut(key).queue[place];
        if ends_yes {
            queued.line = without_once(&queued.line);
        }
        queued.line = set_member(&queued.line, &["params", "prompt"], prompt.get().as_bytes());
        let queued = &self.session(key).queue[place];
        let said = said(queued, SHOWN);
        self.save_queued(key, queued, out);
        let by = by_whom(by.as_deref());
        self.notice(key, "info", &format!("a prompt that waits was changed by {by}{said}"), out);
        if ends_yes {
            let text = format!("`--yes` no longer holds for that prompt: {by} changed it");
            self.notice(key, "warning", &text, out);
        }
        self.tell_queue(asked, key, out);
        Ok(())
    }

    /// A prompt that waits gets another place among those.
    pub(crate) fn queue_move(&mut self, asked: Asked<'_>, out: &mut Batch) -> Served {
        let QueueMoveParams { session, ticket, to, by } = read(asked.params)?;
        let key = self.resolve(&session)?;
        let from = self.sessions.place_of(key, ticket)?;
        let place = match to {
            QueueStep::First => 0,
            QueueStep::Up => from.saturating_sub(1),
            QueueStep::Down => (from + 1).min(self.session(key).queue.len() - 1),
        };
        let queue = &mut self.session_mut(key).queue;
        if place != from
            && let Some(prompt) = queue.remove(from)
        {
            let said = said(&prompt, SHOWN);
            queue.insert(place, prompt);
            self.number_anew(key, from.min(place), out);
            let by = by_whom(by.as_deref());
            self.notice(key, "info", &format!("a prompt that waits was moved by {by}{said}"), out);
        }
        self.tell_queue(asked, key, out);
        Ok(())
    }

    /// Gives the prompts from this place on new numbers: those are their order on disk, and an old number never
    /// means another prompt. Their senders are told how many come before them now.
    pub(crate) fn number_anew(&mut self, key: SessionKey, from: usize, out: &mut Batch) {
        let busy = u32::from(self.is_busy(key));
        for place in from..self.session(key).queue.len() {
            let session = self.session_mut(key);
            let ticket = session.next_ticket();
            out.records.push(session.queue[place].dropped(key));
            session.queue[place].ticket = ticket;
            let prompt = &self.session(key).queue[place];
            self.save_queued(key, prompt, out);
            for client in prompt.senders.iter().map(|to| to.client).collect::<Vec<_>>() {
                self.tell_ahead(client, key, place as u32 + busy, out);
            }
        }
    }

    /// Answers with what waits now.
    fn tell_queue(&mut self, asked: Asked<'_>, key: SessionKey, out: &mut Batch) {
        self.tell_state(key, out);
        let info = self.sessions.queue_info(key);
        self.answer(asked.to, &info, out);
    }
}

/// Returns whether a request ends the yes that the sender of a prompt gave beforehand: it is for the words of that sender
/// alone.
///
/// # Errors
/// When the request may answer nothing (`_meta._acpd.answers`).
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

/// The end of a sentence that tells how a prompt begins; nothing if it has no words.
fn said(prompt: &Queued, most: usize) -> String {
    match clipped(prompt_text(&prompt.line).trim(), most) {
        said if said.is_empty() => said,
        said => format!(": {said}"),
    }
}

/// Name of the caller, as given in the request.
fn by_whom(by: Option<&str>) -> String {
    by.map_or_else(|| "another client".to_owned(), |by| clipped(by, SHOWN))
}
