//! Queued prompts that others than their senders list, change, move or take back.

use acp_wire::{code, locate, set_member};
use acpd_api::{NAMESPACE, QueueEditParams, QueueMoveParams, QueueRemoveParams, QueueStep, Reason};

use crate::clients::{Asked, Served};
use crate::fault::Fault;
use crate::hub::Hub;
use crate::hub::session::line::{SHOWN, by_whom, quotation};
use crate::ids::{Requester, SessionKey};
use crate::params::read;
use crate::prompt::{has_yes, without_once};

impl Hub {
    pub(crate) fn session_queue(&mut self, asked: Asked<'_>) -> Served {
        let key = self.resolve(&read(asked.params)?)?;
        let info = self.sessions.queue_info(key);
        self.answer(asked.to, &info);
        Ok(())
    }

    pub(crate) fn queue_remove(&mut self, asked: Asked<'_>) -> Served {
        let QueueRemoveParams { session, ticket, by } = read(asked.params)?;
        let key = self.resolve(&session)?;
        let place = self.sessions.place_of(key, ticket)?;
        let Some(prompt) = self.session_mut(key).queue.remove(place) else { return Ok(()) };
        self.cx.record(prompt.dropped(key));
        self.tell_taken_back(key, &prompt, by.as_deref());
        let by = by_whom(by.as_deref());
        let text = format!("the prompt was taken back by {by} while it waited");
        let fault = Fault::new(Reason::Interrupted, text).with_code(code::CANCELLED);
        let fault = fault.session(&self.session(key).row.public_id);
        for sender in &prompt.senders {
            self.refuse(sender, &fault);
        }
        self.tell_queue(asked, key);
        Ok(())
    }

    pub(crate) fn queue_edit(&mut self, asked: Asked<'_>) -> Served {
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
        let said = quotation(queued, SHOWN);
        self.save_queued(key, place);
        let by = by_whom(by.as_deref());
        self.notice(key, "info", &format!("a prompt that waits was changed by {by}{said}"));
        if ends_yes {
            let text = format!("`--yes` no longer holds for that prompt: {by} changed it");
            self.notice(key, "warning", &text);
        }
        self.tell_queue(asked, key);
        Ok(())
    }

    pub(crate) fn queue_move(&mut self, asked: Asked<'_>) -> Served {
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
            let said = quotation(&prompt, SHOWN);
            queue.insert(place, prompt);
            self.renumber(key, from.min(place));
            let by = by_whom(by.as_deref());
            self.notice(key, "info", &format!("a prompt that waits was moved by {by}{said}"));
        }
        self.tell_queue(asked, key);
        Ok(())
    }

    fn tell_queue(&mut self, asked: Asked<'_>, key: SessionKey) {
        self.tell_state(key);
        let info = self.sessions.queue_info(key);
        self.answer(asked.to, &info);
    }
}

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
