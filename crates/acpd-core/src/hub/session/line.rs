//! Prompts in line, until the agent gets them or they are refused, and the rows of turns.
//!
//! Architecture invariant: a prompt that waits is on disk with its place, which no other prompt ever has.

use acp_wire::{Id, build, clipped};
use acpd_api::{PromptQueued, Reason, method};
use bytes::Bytes;
use serde_json::json;

use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::{ClientId, HostId, Requester, SessionKey};
use crate::profile::OnLost;
use crate::prompt::{continues, prompt_text};
use crate::record::{Dormant, Record, TurnRow, TurnStage};
use crate::session::State;
use crate::session::limit::Held;
use crate::session::reseed::GO_ON;
use crate::session::turn::{Queued, wait_or_cancel};
use crate::timers::Timer;

impl Hub {
    /// Puts a prompt into the line; how many are before it.
    ///
    /// # Errors
    /// When too much waits already, or nothing can come of it.
    pub(crate) fn put_in_line(
        &mut self,
        key: SessionKey,
        to: Option<Requester>,
        line: Bytes,
    ) -> Result<u32, Fault> {
        self.has_room(key, line.len())?;
        let session = self.session(key);
        if session.queue.len() >= QUEUE_LIMIT {
            let text = format!("{QUEUE_LIMIT} prompts already wait in this session");
            let hint = wait_or_cancel(&session.row.public_id);
            return Err(Fault::new(Reason::TooMany, text).hint(hint));
        }
        let stays_lost = self.profile_of(session.slot).on_lost == OnLost::Stop;
        if stays_lost
            && session.row.rest == Dormant::Lost
            && matches!(session.state, State::Dormant)
        {
            return Err(self.sessions.lost_fault(key));
        }
        self.forget_held(key);
        let place = self.sessions.place_in_line(key, &line);
        let ahead = place as u32 + u32::from(self.is_busy(key));
        let now = self.cx.now;
        let ticket = self.session_mut(key).next_ticket();
        let prompt = Queued { ticket, senders: to.into_iter().collect(), line, at: now };
        self.session_mut(key).queue.insert(place, prompt);
        self.save_queued(key, place);
        self.renumber(key, place + 1);
        Ok(ahead)
    }

    /// Returns whether this many more bytes of prompts may be queued in a session.
    pub(crate) fn has_room(&self, key: SessionKey, bytes: usize) -> Result<(), Fault> {
        let session = self.session(key);
        let waiting: usize = session.queue.iter().map(|prompt| prompt.line.len()).sum();
        if waiting + bytes <= self.cx.config.line_limit as usize + QUEUE_BYTES {
            return Ok(());
        }
        let text = "too many bytes of prompts already wait";
        Err(Fault::new(Reason::TooMany, text).hint(wait_or_cancel(&session.row.public_id)))
    }

    /// Writes down a prompt that waits.
    pub(crate) fn save_queued(&mut self, key: SessionKey, place: usize) {
        let prompt = &self.sessions[&key].queue[place];
        let senders = prompt.senders.iter().filter_map(|to| self.clients.sender(to)).collect();
        let (line, row) = (Some(prompt.line.clone()), prompt.row(key, TurnStage::Queued));
        self.cx.record(Record::Turn(TurnRow { senders, line, ..row }));
    }

    /// Answers everything that waits in a session with an error. Of a prompt whose sender is not there to hear that, the
    /// conversation tells; when the daemon ends, it is left to the next one with the session.
    pub(crate) fn fail_queue(&mut self, key: SessionKey, fault: &Fault) {
        let is_left = self.shutdown.is_begun() && fault.data.reason != Reason::SessionRemoved;
        for prompt in std::mem::take(&mut self.session_mut(key).queue) {
            if prompt.senders.is_empty() {
                if is_left {
                    self.session_mut(key).queue.push_back(prompt);
                    continue;
                }
                self.tell_not_sent(key, &prompt, fault);
            }
            for sender in &prompt.senders {
                self.refuse(sender, fault);
            }
            self.cx.record(prompt.dropped(key));
        }
        self.refuse_relayed(key, fault);
    }

    /// Answers the requests that wait in a session, other than prompts, with an error.
    pub(crate) fn refuse_relayed(&mut self, key: SessionKey, fault: &Fault) {
        for relayed in std::mem::take(&mut self.session_mut(key).waiting) {
            self.refuse(&relayed.to, fault);
        }
    }

    /// Tells the sender of a prompt that waits how many others come before it.
    pub(crate) fn tell_ahead(&mut self, client: ClientId, key: SessionKey, ahead: u32) {
        let session_id = self.session(key).row.public_id.clone();
        let notice = PromptQueued { session_id: session_id.into(), ahead };
        let line = build::notification(method::PROMPT_QUEUED, &notice);
        self.clients.tell(&mut self.cx, client, &line);
    }

    /// The beginning of what was taken back stays in the journal, where it can be read and found.
    pub(crate) fn tell_taken_back(&mut self, key: SessionKey, prompt: &Queued, by: Option<&str>) {
        let (by, said) = (by_whom(by), said(prompt, SAID));
        let text = format!("a prompt that waited was taken back by {by}{said}");
        self.notice(key, "info", &text);
    }

    /// No client waits for the result of a refused prompt: its beginning stays in the journal.
    fn tell_not_sent(&mut self, key: SessionKey, prompt: &Queued, fault: &Fault) {
        if continues(&prompt.line) {
            return;
        }
        let said = said(prompt, SAID);
        let text = format!("a prompt that waited was not sent: {}{said}", fault.message);
        self.notice(key, "warning", &text);
    }

    /// Gives the prompts from this place on new numbers: those are their order on disk, and an old number never
    /// means another prompt. Their senders are told how many come before them now.
    pub(crate) fn renumber(&mut self, key: SessionKey, from: usize) {
        let busy = u32::from(self.is_busy(key));
        for place in from..self.session(key).queue.len() {
            let session = self.sessions.session_mut(key);
            let ticket = session.next_ticket();
            self.cx.record(session.queue[place].dropped(key));
            session.queue[place].ticket = ticket;
            self.save_queued(key, place);
            let prompt = &self.session(key).queue[place];
            for client in prompt.senders.iter().map(|to| to.client).collect::<Vec<_>>() {
                self.tell_ahead(client, key, place as u32 + busy);
            }
        }
    }

    /// Puts acpd's own prompt into the line, held if something has to pass before.
    pub(crate) fn queue_continue(&mut self, key: SessionKey, held: Option<Held>) {
        let now = self.cx.now;
        let session = self.session_mut(key);
        let ticket = session.next_ticket();
        let params = json!({
            "sessionId": session.row.public_id,
            "prompt": [{ "type": "text", "text": GO_ON }],
            "_meta": { acpd_api::NAMESPACE: held.map_or(json!({ "continues": true }), Held::meta) },
        });
        let line = build::request(&Id::from(0), "session/prompt", &params);
        let prompt = Queued { ticket, senders: Vec::new(), line, at: now };
        session.queue.push_back(prompt);
        let place = session.queue.len() - 1;
        self.save_queued(key, place);
    }

    /// A person says something new: acpd's own prompt is taken back.
    fn forget_held(&mut self, key: SessionKey) {
        if self.session(key).held().is_none() {
            return;
        }
        if let Some(prompt) = self.session_mut(key).queue.pop_front() {
            self.cx.record(Record::Turn(prompt.row(key, TurnStage::Ended)));
        }
        self.cx.timers.clear(Timer::Limit(key));
    }

    /// Returns the row of the running turn. Its line is on disk already, unless it was replaced.
    pub(crate) fn save_turn(&mut self, key: SessionKey, host: HostId, line: Option<Bytes>) {
        let Some(running) = &self.session(key).running else { return };
        self.cx.record(Record::Turn(TurnRow {
            senders: running.senders.iter().filter_map(|to| self.clients.sender(to)).collect(),
            cancelling: running.work.canceller(),
            line,
            ..running.row(key, TurnStage::Dispatched { host, chunk: running.chunk })
        }));
    }
}

/// Prompts that may wait in one session.
const QUEUE_LIMIT: usize = 32;

/// Bytes of prompts that may wait in one session, besides one line of any length.
const QUEUE_BYTES: usize = 8 << 20;

/// The end of a sentence that tells how a prompt begins; nothing if it has no words.
pub(crate) fn said(prompt: &Queued, most: usize) -> String {
    match clipped(prompt_text(&prompt.line).trim(), most) {
        said if said.is_empty() => said,
        said => format!(": {said}"),
    }
}

/// Name of the caller, as given in the request.
pub(crate) fn by_whom(by: Option<&str>) -> String {
    by.map_or_else(|| "another client".to_owned(), |by| clipped(by, SHOWN))
}

/// Characters of a prompt, and of the name of the client that takes it back, that are shown.
pub(crate) const SHOWN: usize = 60;

/// Characters of a prompt that was taken back or not sent. Nothing else keeps it, and a notice is shown in one piece.
const SAID: usize = 4_000;
