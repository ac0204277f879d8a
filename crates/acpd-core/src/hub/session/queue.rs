//! Prompts that wait: shown, changed, moved and taken back by others than their senders. Whoever is waited for by such a
//! prompt is told, and so is the conversation.

use acp_wire::{clipped, code, set_member};
use acpd_api::{
    QueueEditParams, QueueInfo, QueueMoveParams, QueueRemoveParams, QueueStep, QueuedPrompt, Reason,
};

use crate::clients::{Asked, Served};
use crate::fault::Fault;
use crate::hub::Hub;
use crate::hub::session::turn::drop_queued;
use crate::ids::SessionKey;
use crate::input::Batch;
use crate::params::{raw_at, read};
use crate::prompt::prompt_text;
use crate::record::{Record, TurnRow, TurnStage};

/// Characters of a prompt, and of who takes it back, that are told.
const SHOWN: usize = 60;

impl Hub {
    pub(crate) fn session_queue(&mut self, asked: Asked<'_>, out: &mut Batch) -> Served {
        let key = self.resolve(&read(asked.params)?)?;
        let info = self.queue_info(key);
        self.answer(asked.to, &info, out);
        Ok(())
    }

    /// A prompt that waits is taken back: its sender gets an error that says by whom.
    pub(crate) fn queue_remove(&mut self, asked: Asked<'_>, out: &mut Batch) -> Served {
        let QueueRemoveParams { session, ticket, by } = read(asked.params)?;
        let key = self.resolve(&session)?;
        let place = self.place_of(key, ticket)?;
        let Some(prompt) = self.session_mut(key).queue.remove(place) else { return Ok(()) };
        drop_queued(key, &prompt, out);
        let by = by_whom(by.as_deref());
        let shown = clipped(prompt_text(&prompt.line).trim(), SHOWN);
        self.notice(
            key,
            "info",
            &format!("a prompt that waited was taken back by {by}: {shown}"),
            out,
        );
        if let Some(sender) = &prompt.sender {
            let text = format!("the prompt was taken back by {by} while it waited");
            let fault = Fault::new(Reason::Interrupted, text).with_code(code::CANCELLED);
            self.refuse(sender, &fault.session(&self.session(key).row.public_id), out);
        }
        self.tell_queue(asked, key, out);
        Ok(())
    }

    /// Another prompt waits in the place of one.
    pub(crate) fn queue_edit(&mut self, asked: Asked<'_>, out: &mut Batch) -> Served {
        let QueueEditParams { session, ticket, prompt, by } = read(asked.params)?;
        let key = self.resolve(&session)?;
        let place = self.place_of(key, ticket)?;
        let blocks: Vec<serde_json::Map<String, serde_json::Value>> =
            serde_json::from_str(prompt.get()).unwrap_or_default();
        if blocks.is_empty() {
            return Err(Fault::invalid("`prompt` is no list of content blocks"));
        }
        let queued = &mut self.session_mut(key).queue[place];
        queued.line = set_member(&queued.line, &["params", "prompt"], prompt.get().as_bytes());
        let (line, row) = (queued.line.clone(), queued.row(key, TurnStage::Queued));
        let sender = queued.sender.clone();
        let sender = sender.and_then(|sender| self.clients.sender(&sender));
        let shown = clipped(prompt_text(&line).trim(), SHOWN);
        out.records.push(Record::Turn(TurnRow { sender, line: Some(line), ..row }));
        let by = by_whom(by.as_deref());
        self.notice(key, "info", &format!("a prompt that waits was changed by {by}: {shown}"), out);
        self.tell_queue(asked, key, out);
        Ok(())
    }

    /// A prompt that waits gets another place among those.
    pub(crate) fn queue_move(&mut self, asked: Asked<'_>, out: &mut Batch) -> Served {
        let QueueMoveParams { session, ticket, to, by } = read(asked.params)?;
        let key = self.resolve(&session)?;
        let from = self.place_of(key, ticket)?;
        let place = match to {
            QueueStep::First => 0,
            QueueStep::Up => from.saturating_sub(1),
            QueueStep::Down => (from + 1).min(self.session(key).queue.len() - 1),
        };
        let queue = &mut self.session_mut(key).queue;
        if place != from
            && let Some(prompt) = queue.remove(from)
        {
            let shown = clipped(prompt_text(&prompt.line).trim(), SHOWN);
            queue.insert(place, prompt);
            self.number_anew(key, from.min(place), out);
            let by = by_whom(by.as_deref());
            self.notice(
                key,
                "info",
                &format!("a prompt that waits was moved by {by}: {shown}"),
                out,
            );
        }
        self.tell_queue(asked, key, out);
        Ok(())
    }

    /// Gives the prompts from this place on new numbers: those are their order on disk, and an old number never
    /// means another prompt. Their senders are told how many come before them now.
    fn number_anew(&mut self, key: SessionKey, from: usize, out: &mut Batch) {
        let busy = u32::from(self.is_busy(key));
        for place in from..self.session(key).queue.len() {
            let session = self.session_mut(key);
            session.last_ticket += 1;
            let ticket = session.last_ticket;
            let prompt = &mut session.queue[place];
            drop_queued(key, prompt, out);
            prompt.ticket = ticket;
            let (line, row) = (Some(prompt.line.clone()), prompt.row(key, TurnStage::Queued));
            let to = prompt.sender.clone();
            let sender = to.as_ref().and_then(|to| self.clients.sender(to));
            out.records.push(Record::Turn(TurnRow { sender, line, ..row }));
            if let Some(to) = to {
                self.tell_ahead(to.client, key, place as u32 + busy, out);
            }
        }
    }

    /// Answers with what waits now.
    fn tell_queue(&mut self, asked: Asked<'_>, key: SessionKey, out: &mut Batch) {
        self.tell_state(key, out);
        let info = self.queue_info(key);
        self.answer(asked.to, &info, out);
    }

    fn queue_info(&self, key: SessionKey) -> QueueInfo {
        let session = self.session(key);
        let prompts = session.queue.iter().filter_map(|queued| {
            let prompt = raw_at(&queued.line, &["params", "prompt"])?.to_owned();
            Some(QueuedPrompt { ticket: queued.ticket, at: queued.at.0, prompt })
        });
        QueueInfo { session_id: session.row.public_id.clone().into(), prompts: prompts.collect() }
    }

    fn place_of(&self, key: SessionKey, ticket: u64) -> Result<usize, Fault> {
        let session = self.session(key);
        let place = session.queue.iter().position(|queued| queued.ticket == ticket);
        place.ok_or_else(|| {
            let text = format!("no prompt {ticket} waits in session `{}`", session.row.handle());
            let hint = format!("`acpctl queue {}` lists those that wait", session.row.word());
            Fault::invalid(text).session(&session.row.public_id).hint(hint)
        })
    }
}

/// Who it was, as they say it themselves.
fn by_whom(by: Option<&str>) -> String {
    by.map_or_else(|| "another client".to_owned(), |by| clipped(by, SHOWN))
}
