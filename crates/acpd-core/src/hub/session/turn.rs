//! Turns: prompts, one at a time per session, the others in line.
//!
//! ```text
//! session/prompt ─▶ queued ─▶ dispatched ─▶ ended: stop reason | error | interrupted | unknown
//!                      │           │
//!                      │           └─ session/cancel ─▶ cancelling ── no end in time ─▶ agent
//!                      └─ session/cancel ─▶ answered `cancelled`, never dispatched      stopped
//! ```
//!
//! In ACP v1 the response to `session/prompt` ends a turn; [`Hub::end_turn`] is what any protocol
//! version has to call.
//!
//! Architecture invariant: a prompt is dispatched at most once. Whether an agent that died had read
//! it cannot be known, so it is never sent again by acpd. The one exception is a prompt that the agent
//! has refused, and done nothing for, because its credentials had run out.

use std::fmt::{self, Write as _};

use acp_wire::acp::{PromptParams, SessionUpdate, Update, stop_reason};
use acp_wire::bound::NAME;
use acp_wire::{
    ErrorObject, Id, Message, Outcome as WireOutcome, build, clipped, code, set_id, str_at,
};
use acpd_api::{Outcome, PromptQueued, Reason, Tokens, TurnEnded, TurnStarted, method};
use bytes::Bytes;

use crate::auth::Refusal;
use crate::fault::{Fault, renewed_fault};
use crate::hash::hash;
use crate::hub::Hub;
use crate::hub::session::cancel::{by_user, cancelled};
use crate::hub::session::title::one_line;
use crate::hub::session::usage::tokens_of;
use crate::ids::{ClientId, HostId, Requester, SessionKey, SlotId, duration};
use crate::input::{Batch, Effect};
use crate::own::without_own;
use crate::process::slot::{Asker, State as AgentState, StopWhy};
use crate::profile::OnLost;
use crate::prompt::{
    blocks_text, continues, has_yes, idempotency_key, once, prompt_text, request_in, title,
};
use crate::record::{Canceller, Dormant, EventKind, Record, Replayable, TurnRow, TurnStage};
use crate::requests::purpose::Purpose;
use crate::session::limit::{Held, over};
use crate::session::replay::replayed_as;
use crate::session::turn::GOES_ON;
use crate::session::turn::{Queued, Running, TurnFailure, wait_or_cancel};
use crate::session::work::{TurnEnd, Work, WorkEvent};
use crate::session::{LateReplay, Session, State};
use crate::timers::Timer;
use crate::tool_calls::changed_files::changed_files;

/// Prompts that may wait in one session.
const QUEUE_LIMIT: usize = 32;

/// Bytes of prompts that may wait in one session, beside one line of any length.
const QUEUE_BYTES: usize = 8 << 20;

/// How an agent's answer to a prompt ends the turn.
struct PromptEnd {
    outcome: Outcome,
    /// Replacement for the agent's answer to the sender.
    fault: Option<Fault>,
    refused: Option<ErrorObject>,
}

impl Hub {
    /// A client's `session/prompt`.
    ///
    /// # Errors
    /// When it cannot wait in line.
    pub(crate) fn prompt(
        &mut self,
        to: Requester,
        key: SessionKey,
        line: Bytes,
        out: &mut Batch,
    ) -> Result<(), Fault> {
        if let Some(own) = idempotency_key(&line)?
            && self.prompt_repeated(&to, key, &own, has_yes(&line), out)
        {
            return Ok(());
        }
        let client = to.client;
        let ahead = self.put_in_line(key, Some(to), line, out)?;
        if ahead > 0 {
            self.tell_ahead(client, key, ahead, out);
        }
        self.go_on_with(key, out);
        Ok(())
    }

    /// Tells the sender of a prompt that waits how many others come before it.
    pub(crate) fn tell_ahead(
        &mut self,
        client: ClientId,
        key: SessionKey,
        ahead: u32,
        out: &mut Batch,
    ) {
        let session_id = self.session(key).row.public_id.clone();
        let notice = PromptQueued { session_id: session_id.into(), ahead };
        let line = build::notification(method::PROMPT_QUEUED, &notice);
        self.tell_client(client, &line, out);
    }

    /// Returns whether the next prompt of a session must wait for a turn.
    pub(crate) fn is_busy(&self, key: SessionKey) -> bool {
        let session = self.session(key);
        session.running.is_some() || self.works_on(session.slot, &session.row.agent_id)
    }

    /// A prompt has come into the line.
    pub(crate) fn go_on_with(&mut self, key: SessionKey, out: &mut Batch) {
        self.try_without_login(key, out);
        self.need_session(key, Asker::Person, out);
    }

    /// Puts a prompt into the line; how many are before it.
    ///
    /// # Errors
    /// When too much waits already, or nothing can come of it.
    pub(crate) fn put_in_line(
        &mut self,
        key: SessionKey,
        to: Option<Requester>,
        line: Bytes,
        out: &mut Batch,
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
        self.forget_held(key, out);
        let place = self.sessions.place_in_line(key, &line);
        let ahead = place as u32 + u32::from(self.is_busy(key));
        let now = self.now;
        let ticket = self.session_mut(key).next_ticket();
        let prompt = Queued { ticket, senders: to.into_iter().collect(), line, at: now };
        self.save_queued(key, &prompt, out);
        self.session_mut(key).queue.insert(place, prompt);
        self.number_anew(key, place + 1, out);
        Ok(ahead)
    }

    /// Returns whether this many more bytes of prompts may be queued in a session.
    pub(crate) fn has_room(&self, key: SessionKey, bytes: usize) -> Result<(), Fault> {
        let session = self.session(key);
        let waiting: usize = session.queue.iter().map(|prompt| prompt.line.len()).sum();
        if waiting + bytes <= self.config.line_limit as usize + QUEUE_BYTES {
            return Ok(());
        }
        let text = "too many bytes of prompts already wait";
        Err(Fault::new(Reason::TooMany, text).hint(wait_or_cancel(&session.row.public_id)))
    }

    /// Writes down a prompt that waits.
    pub(crate) fn save_queued(&self, key: SessionKey, prompt: &Queued, out: &mut Batch) {
        let senders = prompt.senders.iter().filter_map(|to| self.clients.sender(to)).collect();
        let (line, row) = (Some(prompt.line.clone()), prompt.row(key, TurnStage::Queued));
        out.records.push(Record::Turn(TurnRow { senders, line, ..row }));
    }

    /// Makes sure that the session is live or on its way; refuses what waits in it otherwise. Who goes on
    /// with a session takes it out of the archive.
    pub(crate) fn need_session(&mut self, key: SessionKey, asker: Asker, out: &mut Batch) {
        self.set_archived(key, false, out);
        let slot = self.session(key).slot;
        let needed = match self.session(key).state {
            State::Dormant => self.need_agent(slot, asker, out),
            State::Live | State::Restoring(_) => self.may_start(slot),
        };
        if let Err(fault) = needed {
            self.session_mut(key).eager = false;
            return self.fail_queue(key, &fault, out);
        }
        self.wake_session(key, out);
    }

    /// Answers everything that waits in a session with an error. Of a prompt whose sender is not there to hear that, the
    /// conversation tells; when the daemon ends, it is left to the next one with the session.
    pub(crate) fn fail_queue(&mut self, key: SessionKey, fault: &Fault, out: &mut Batch) {
        let is_left = self.shutdown.is_begun() && fault.data.reason != Reason::SessionRemoved;
        for prompt in std::mem::take(&mut self.session_mut(key).queue) {
            if prompt.senders.is_empty() {
                if is_left {
                    self.session_mut(key).queue.push_back(prompt);
                    continue;
                }
                self.tell_not_sent(key, &prompt, fault, out);
            }
            for sender in &prompt.senders {
                self.refuse(sender, fault, out);
            }
            out.records.push(prompt.dropped(key));
        }
        self.refuse_relayed(key, fault, out);
    }

    /// Answers what waits in a session beside its prompts with an error.
    pub(crate) fn refuse_relayed(&mut self, key: SessionKey, fault: &Fault, out: &mut Batch) {
        for relayed in std::mem::take(&mut self.session_mut(key).waiting) {
            self.refuse(&relayed.to, fault, out);
        }
    }

    /// Gives the next prompt to the agent, if the session is free.
    pub(crate) fn dispatch_next(&mut self, key: SessionKey, out: &mut Batch) {
        let session = self.session(key);
        let slot = session.slot;
        let free = matches!(session.state, State::Live)
            && session.running.is_none()
            && !self.sessions.waits_for_login(key)
            && !self.is_logged_in_again(slot)
            && self.is_preset(key);
        let Some(host) = self.processes[&slot].usable_host().filter(|_| free) else { return };
        if self.waits_for_budget(key, out)
            || self.lacks_summary(key, out)
            || self.waits_for_limit(key)
        {
            return;
        }
        let Some(prompt) = self.session_mut(key).queue.pop_front() else { return };
        let ask = self.ask(host, Purpose::Prompt { session: key }, out);
        let said = without_own(&prompt.line);
        let line = self.sessions.with_summary(key, set_id(&said, &Id::issued(ask)));
        let text = prompt_text(&line);
        let line = self.sessions.to_agent_id(key, line);
        let sender = prompt.senders.first().map(|sender| sender.client);
        let title = title(&prompt.line);
        let number = self.journal_prompt(key, &said, title, sender, out);
        let chunk = self.host_write(slot, line, out);
        let host_of = self.processes[&slot].host();
        let runs_out = host_of.is_some_and(|host| host.stale_from.is_some())
            || self.login_to_repeat(slot).is_some();
        out.durable = true;
        let now = self.now;
        let session = self.session_mut(key);
        let row = session.row.edit();
        row.last_prompt = hash(&text);
        row.updated = now;
        // Updates outside of turns belong to none.
        session.calls.clear();
        session.activity.begin_turn(now);
        session.late_replay = LateReplay::None;
        session.running = Some(Running {
            ticket: prompt.ticket,
            line: (runs_out || has_yes(&prompt.line)).then(|| prompt.line.clone()),
            number,
            chunk,
            senders: prompt.senders,
            key: idempotency_key(&prompt.line).ok().flatten(),
            started: now,
            work: Work::Running { touched: false },
            cut_short: None,
            last_line: now,
            replayed_as: replayed_as(&text),
            echo: Some(text),
            added: Vec::new(),
            once: once(&prompt.line),
            whole: true,
            failure: TurnFailure::default(),
            continues: continues(&prompt.line),
            waits: Held::of(&prompt.line).map_or(0, |held| held.waits),
            tokens: Tokens::default(),
        });
        self.save_turn(key, host, None, out);
        self.arm_stall(key);
        self.lease(slot, out);
    }

    /// Drops the answers to a client's prompts.
    pub(crate) fn forget_sender(&mut self, key: SessionKey, client: ClientId, out: &mut Batch) {
        let session = self.session_mut(key);
        let forget = |senders: &mut Vec<Requester>| {
            senders.extract_if(.., |sender| sender.client == client).count() > 0
        };
        let queue = session.queue.iter_mut();
        let changed: Vec<_> = queue.map(|prompt| forget(&mut prompt.senders)).collect();
        let was = session.running.as_mut().is_some_and(|turn| forget(&mut turn.senders));
        for (prompt, _) in self.session(key).queue.iter().zip(changed).filter(|(_, was)| *was) {
            self.save_queued(key, prompt, out);
        }
        if let Some(host) = self.session(key).row.host.filter(|_| was) {
            self.save_turn(key, host, None, out);
        }
    }

    /// Returns the row of the running turn. Its line is on disk already, unless it was replaced.
    pub(crate) fn save_turn(
        &self,
        key: SessionKey,
        host: HostId,
        line: Option<Bytes>,
        out: &mut Batch,
    ) {
        let Some(running) = &self.session(key).running else { return };
        out.records.push(Record::Turn(TurnRow {
            senders: running.senders.iter().filter_map(|to| self.clients.sender(to)).collect(),
            cancelling: running.work.canceller(),
            line,
            ..running.row(key, TurnStage::Dispatched { host, chunk: running.chunk })
        }));
    }

    /// Writes a prompt into the journal, as the conversation will show it to everyone else.
    fn journal_prompt(
        &mut self,
        key: SessionKey,
        prompt: &Bytes,
        title: Option<String>,
        sender: Option<ClientId>,
        out: &mut Batch,
    ) -> u64 {
        let at = self.now.0;
        let session = self.session_mut(key);
        session.row.edit().prompts += 1;
        let turn = session.row.prompts;
        let session_id = session.row.public_id.clone();
        let started = TurnStarted { session_id: session_id.clone().into(), turn, at };
        let line = build::notification(method::TURN_STARTED, &started);
        self.append(key, EventKind::Notice, line, None, out);
        if let Ok(Message::Request { params: Some(params), .. }) = acp_wire::parse(prompt)
            && let Ok(params) = PromptParams::from_raw(params)
        {
            // Agents that give titles do so later.
            let text = blocks_text(&params.blocks);
            let session = self.session_mut(key);
            session.wrapped = title.as_ref().and_then(|_| one_line(&text).ok());
            if session.row.title.is_none() && turn == 1 {
                let title = title.and_then(|title| one_line(&title).ok());
                let title = title.or_else(|| one_line(request_in(&text)).ok());
                session.row.edit().title = title.or_else(|| one_line(&text).ok());
            }
            for content in params.blocks {
                let update = Update::UserMessageChunk { content, message_id: None };
                let update = SessionUpdate { session_id: &session_id, update };
                let line = build::notification("session/update", &update);
                self.append(key, EventKind::Update, line, sender, out);
            }
        }
        turn
    }

    pub(crate) fn prompt_answered(
        &mut self,
        key: SessionKey,
        line: &Bytes,
        answer: WireOutcome<'_>,
        out: &mut Batch,
    ) {
        // Open questions are answered as for a cancel, because no client will. Those of subagents,
        // which may outlive the turn, stay.
        self.cancel_questions(self.own_questions(key), out);
        let Some(running) = self.session_mut(key).running.as_mut() else { return };
        let again = running.again();
        let (waits, work) = (running.waits, running.work);
        let is_cancelled = work.is_cancelled();
        let senders = std::mem::take(&mut running.senders);
        let own = running.key.take().map(|key| (key, running.number));
        let is_silent = !work.is_touched() && !is_cancelled;
        let slot = self.session(key).slot;
        let PromptEnd { outcome, mut fault, refused } = self.read_prompt_end(key, answer, out);
        self.end_turn(key, outcome.clone(), out);
        // After the turn the process may be free for its restart.
        let refusal =
            refused.as_ref().map(|error| self.note_refusal(slot, "session/prompt", error, out));
        let is_limit = |error| over(error, self.session(key).limit, self.now).is_some();
        let is_refused =
            refusal == Some(Refusal::Other) && is_silent && !refused.as_ref().is_some_and(is_limit);
        self.note_refused(key, is_refused, out);
        if refusal == Some(Refusal::Renewed) {
            match again {
                Some(prompt) => return self.prompt_again(key, prompt, out),
                None if !is_cancelled => fault = Some(renewed_fault()),
                None => {}
            }
        }
        if let (Some(Refusal::NeedsLogin), Some(failed)) = (refusal, &fault)
            && failed.data.reason == Reason::FailedTurn
        {
            fault = Some(self.login_fault(slot, &failed.message));
        }
        // An agent that wants a login, and has said nothing else, has done nothing for the prompt.
        let is_undone = refusal == Some(Refusal::NeedsLogin) && !work.is_touched();
        if let Some(own) = own.filter(|_| !is_undone || is_cancelled) {
            self.keep_outcome(key, own, &outcome, fault.as_ref(), out);
        }
        for sender in senders {
            let line = match &fault {
                Some(fault) => build::error(&sender.id, &fault.object()),
                None if work.canceller() == Some(Canceller::Client) => {
                    cancelled(&sender.id, &self.for_client(slot, &sender, line))
                }
                None => {
                    self.sessions.to_public_id_in_error(key, self.for_client(slot, &sender, line))
                }
            };
            self.respond(&sender, Some(key), line, out);
        }
        match refused {
            Some(error) if says_forgotten(&error) => {
                self.session_forgotten(key, error.message, out);
            }
            Some(error) if refusal == Some(Refusal::NeedsLogin) => {
                self.hold_for_login(key, &error.message, out);
            }
            Some(error) if !is_cancelled => self.wait_for_limit(key, &error, waits, out),
            _ => {}
        }
        self.wake_session(key, out);
        self.turn_ended_while_stopping(slot, out);
        self.check_idle(slot, out);
    }

    /// Reads the answer to the running prompt. The agent does not decide the outcome of a turn that
    /// was ended by others.
    fn read_prompt_end(
        &mut self,
        key: SessionKey,
        answer: WireOutcome<'_>,
        out: &mut Batch,
    ) -> PromptEnd {
        let answered = self.read_prompt_answer(key, answer, out);
        let slot = self.session(key).slot;
        let stops = matches!(self.processes[&slot].state, AgentState::Stopping { .. });
        let running = self.session_mut(key).running.as_mut();
        match running.map(|running| running.end(WorkEvent::Ended { stops })) {
            Some(TurnEnd::Cancelled) => {
                PromptEnd { outcome: by_user(), fault: None, refused: answered.refused }
            }
            Some(TurnEnd::CutOff) => {
                let fault = self.cut_off_fault(key);
                let outcome = Outcome::Interrupted { reason: fault.message.clone().into() };
                PromptEnd { outcome, fault: Some(fault), refused: answered.refused }
            }
            _ => answered,
        }
    }

    fn read_prompt_answer(
        &mut self,
        key: SessionKey,
        answer: WireOutcome<'_>,
        out: &mut Batch,
    ) -> PromptEnd {
        let result = match answer {
            WireOutcome::Result(result) => result,
            WireOutcome::Error(error) => {
                let error = ErrorObject::from_raw(error);
                let (code, message) = (error.code, error.texts().join(": ").into());
                let outcome = Outcome::Error { code, message };
                return PromptEnd { outcome, fault: None, refused: Some(error) };
            }
        };
        // A prompt that is refused has not been taken in, nor has the summary before it.
        self.sessions.note_spoken(key);
        if let Some(running) = self.session_mut(key).running.as_mut() {
            running.tokens = tokens_of(result);
        }
        let stop_reason = stop_reason(result).map_or_else(String::new, |why| clipped(&why, NAME));
        if let Some(fault) = self.empty_turn_fault(key, &stop_reason) {
            let (code, message) = (fault.code, fault.message.clone().into());
            let outcome = Outcome::Error { code, message };
            return PromptEnd { outcome, fault: Some(fault), refused: None };
        }
        if let Some(fault) = self.failed_turn_fault(key, &stop_reason, result.get()) {
            let (code, message) = (fault.code, fault.message.clone().into());
            let outcome = Outcome::Error { code, message };
            // The text of the error may want a login.
            let refused = Some(fault.object());
            return PromptEnd { outcome, fault: Some(fault), refused };
        }
        let slot = self.session(key).slot;
        self.slot_mut(slot).renewed = false;
        self.note_success(slot, "session/prompt", out);
        let outcome = Outcome::Stopped { stop_reason: stop_reason.into() };
        PromptEnd { outcome, fault: None, refused: None }
    }

    /// The agent asks for something: in the turn of the session that this is about, or in any turn of the
    /// process if it does not say which.
    pub(crate) fn touch_turns(&mut self, slot: SlotId, request: &[u8]) {
        let id = str_at(request, &["params", "sessionId"]);
        let meant = match id.and_then(|id| self.sessions.routed(slot, &id)) {
            Some(key) => vec![key],
            None => self.sessions.of_slot(slot),
        };
        let now = self.now;
        for key in meant {
            let running = self.session_mut(key).running.as_mut();
            let first = running.and_then(|running| running.touch(now));
            self.tally.first_update(first);
        }
    }

    /// The error for a turn that its agent ended because acpd asked for that, on its way to stop the
    /// agent: no user cancelled the turn.
    fn cut_off_fault(&self, key: SessionKey) -> Fault {
        let Session { slot, row, .. } = self.session(key);
        let agent = &self.processes[slot];
        let why = agent.reason.as_deref().unwrap_or("it is being stopped");
        let text = format!("agent `{}` was stopped in the turn: {why}", agent.profile);
        Fault::new(Reason::Interrupted, text).session(&row.public_id).hint(GOES_ON)
    }

    /// The process no longer knows a session that it held: the next prompt restores it. That may
    /// fail in the same process, so it is restarted unless it works for another session.
    fn session_forgotten(&mut self, key: SessionKey, reason: String, out: &mut Batch) {
        let slot = self.session(key).slot;
        self.make_dormant(key, Dormant::Parked, Some(reason), out);
        if !self.sessions.is_at_work(slot) && self.processes[&slot].is_up() {
            let reason = Some("it forgot a session that it held".to_owned());
            self.begin_stop(slot, StopWhy::Wedged, reason, out);
        }
    }

    /// Records and announces the end of the running turn. Does not answer the prompt: take `sender` out before
    /// and answer it after.
    pub(crate) fn end_turn(&mut self, key: SessionKey, outcome: Outcome, out: &mut Batch) {
        let now = self.now;
        let Some(mut running) = self.session_mut(key).running.take() else { return };
        self.tally.turn_ended(&outcome, now.since(running.started));
        let usage = self.book_turn(key, running.number, running.tokens, out);
        let session = self.session_mut(key);
        let row = session.row.edit();
        if let Some(last) = running.replayed_as.filter(|_| is_kept(&outcome)) {
            let Replayable { prompts, answered, .. } = row.replayable;
            let answered = answered || running.work.is_touched();
            row.replayable = Replayable { prompts: prompts + 1, last, answered };
        }
        row.last_outcome = Some(outcome.word().to_owned());
        session.why_cut_off = outcome.reason().map(str::to_owned);
        let row = session.row.edit();
        // The agent ended the turn: what it left open is not going to be closed, nor to fail later.
        row.open_tools.clear();
        row.updated = now;
        let calls = std::mem::take(&mut session.calls);
        session.activity.end_turn();
        let files = if running.whole { changed_files(&calls) } else { Vec::new() };
        let ended = TurnEnded {
            cut_short: running.cut_short.take(),
            session_id: session.row.public_id.clone().into(),
            turn: running.number,
            started_at: running.started.0,
            at: now.0,
            outcome,
            tools: running.whole.then_some(calls.len() as u32),
            files: files.into_iter().map(Into::into).collect(),
            usage,
        };
        self.timers.clear(Timer::Cancel(key));
        self.timers.clear(Timer::Stall(key));
        self.close_questions(self.own_questions(key), out);
        let line = build::notification(method::TURN_ENDED, &ended);
        self.append(key, EventKind::Notice, line, None, out);
        self.hook_turn_end(key, &ended, out);
        if self.keeps_history(key) {
            out.effects.push(Effect::Index(key));
        }
        self.lease(self.session(key).slot, out);
        out.records.push(Record::Turn(running.row(key, TurnStage::Ended)));
    }

    /// Ends the running turn without the agent's answer, and answers its sender: the process is gone, or acpd
    /// abandons the turn.
    pub(crate) fn interrupt_turn(&mut self, key: SessionKey, fault: &Fault, out: &mut Batch) {
        let Some(running) = self.session_mut(key).running.as_mut() else { return };
        let chunk = running.chunk;
        let senders = std::mem::take(&mut running.senders);
        let own = running.key.take().map(|key| (key, running.number));
        let mut fault = fault.clone();
        // Why it ended is why others cannot begin; of this one it is told that it had begun.
        if matches!(fault.data.reason, Reason::AgentStopped | Reason::SessionBlocked) {
            fault.data.reason = Reason::Interrupted;
        }
        let slot = self.session(key).slot;
        let wedged = matches!(
            self.processes[&slot].state,
            AgentState::Stopping { why: StopWhy::Wedged, .. }
        );
        self.log_failure(slot, Some(key), "turn interrupted", None, out);
        let undecided = self.is_undecided(slot, chunk);
        let Some(running) = self.session_mut(key).running.as_mut() else { return };
        let is_cancelled = running.work.canceller() == Some(Canceller::Client);
        let end = running.end(WorkEvent::Lost { undecided, wedged });
        if end == TurnEnd::Unknown {
            let reason = "acpd ended before it knew that the agent had got the prompt";
            fault = Fault::new(Reason::OutcomeUnknown, reason);
        }
        let reason = fault.message.clone().into();
        let outcome = match end {
            TurnEnd::Unknown => Outcome::OutcomeUnknown { reason },
            TurnEnd::Unwedged => Outcome::Unwedged { reason },
            TurnEnd::Cancelled => by_user(),
            TurnEnd::CutOff | TurnEnd::Answered => Outcome::Interrupted { reason },
        };
        self.end_turn(key, outcome, out);
        // A user who wanted it to end hears that it has ended.
        let fault = (!is_cancelled).then(|| self.sessions.interrupted_fault(key, fault));
        if let Some(own) = own {
            self.keep_outcome(key, own, &by_user(), fault.as_ref(), out);
        }
        for to in senders {
            let line = match &fault {
                Some(fault) => build::error(&to.id, &fault.object()),
                None => cancelled(&to.id, b""),
            };
            self.respond(&to, Some(key), line, out);
        }
    }

    /// Returns whether a lost process may or may not have got this line.
    pub(crate) fn is_undecided(&self, slot: SlotId, chunk: u64) -> bool {
        let agent = &self.processes[&slot];
        agent.host().is_some_and(|host| host.lost && host.outbox.has(chunk))
    }

    pub(crate) fn arm_stall(&mut self, key: SessionKey) {
        let notice = self.profile_of(self.session(key).slot).stall_notice;
        if notice > 0 {
            self.timers.set(Timer::Stall(key), self.now.after(notice));
        }
    }

    /// A turn may have been silent for long. Waiting for a person or for a tool is not silence.
    pub(crate) fn on_stall_timer(&mut self, key: SessionKey, out: &mut Batch) {
        let session = self.session(key);
        let notice = self.profile_of(session.slot).stall_notice;
        let Some(running) = &session.running else { return };
        let silent = self.now.since(running.last_line);
        if self.questions.are_open(key) || !session.row.open_tools.is_empty() || silent < notice {
            let from = if silent < notice { running.last_line } else { self.now };
            return self.timers.set(Timer::Stall(key), from.after(notice));
        }
        let time = duration(silent);
        let mut text = format!(
            "stalled: no output for {time}; the turn continues until it is cancelled: in its client, or \
             with `acpctl cancel {}`",
            session.row.word()
        );
        let since = running.last_line;
        let others = self.sessions.of_slot(session.slot).into_iter().filter(|other| *other != key);
        let newer = others.map(|other| self.session(other)).find(|other| other.held_since >= since);
        if let Some(newer) = newer {
            // Some agents serve one session, and forget the others without a word.
            // Writing to a string does not fail.
            let _: fmt::Result = write!(
                text,
                ". The silence began when the same process got session `{}`: if cancelling and a new prompt \
                 help, set `sharing = \"session\"` for agent `{}`",
                newer.row.word(),
                session.row.agent
            );
        }
        self.notice(key, "warning", &text, out);
        self.timers.set(Timer::Stall(key), self.now.after(notice));
    }
}

/// Returns whether an agent no longer knows a session that it held. Copilot does so after the
/// connection was lost over which the session was made, and keeps doing so.
fn says_forgotten(error: &ErrorObject) -> bool {
    let message = error.message.to_ascii_lowercase();
    error.code == code::NOT_FOUND || message.contains("session not found")
}

/// Returns whether an agent keeps the prompt of a turn that ended like this.
fn is_kept(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Stopped { stop_reason } => !matches!(stop_reason.raw(), "cancelled" | "refusal"),
        Outcome::Interrupted { .. } | Outcome::OutcomeUnknown { .. } => true,
        Outcome::Error { .. } | Outcome::Unwedged { .. } => false,
    }
}
