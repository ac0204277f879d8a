//! Turns: one at a time per session, the other prompts are queued.
//!
//! ```text
//! session/prompt ─▶ queued ─▶ dispatched ─▶ ended: stop reason | error | interrupted | unknown
//!                      │           │
//!                      │           └─ session/cancel ─▶ cancelling ── no end in time ─▶ agent
//!                      └─ session/cancel ─▶ answered `cancelled`, never dispatched      stopped
//! ```
//!
//! Architecture invariant: a prompt is dispatched at most once. Whether an agent that died had read
//! it cannot be known, so acpd never sends it again. The one exception is a prompt that the agent
//! has refused, and done nothing for, because its credentials had run out.

use acp_wire::acp::{PromptParams, Update};
use acp_wire::{Id, Message, build, set_id, set_member, str_at};
use acpd_api::{TurnStarted, TurnState, method};
use bytes::Bytes;
use serde_json::json;

use crate::hash::hash;
use crate::hub::Hub;
use crate::ids::{ClientId, HostId, Requester, Seq, SessionKey, SlotId, duration};
use crate::input::Effect;
use crate::own::without_own;
use crate::prompt::{blocks_text, idempotency_key, meta, prompt_text, request_in};
use crate::record::{EventKind, LineForm, PromptMessage, Purpose};
use crate::requests::Asked;
use crate::session::LateReplay;
use crate::session::reseed::Summary;
use crate::session::title::one_line;
use crate::session::turn::{Queued, Running};
use crate::timers::Timer;

impl Hub {
    pub(crate) fn free_host(&self, key: SessionKey) -> Option<HostId> {
        let session = self.session(key);
        let slot = session.slot;
        let free = session.is_live()
            && session.running.is_none()
            && !session.waits_for_login()
            && !self.processes[&slot].is_logged_in_again()
            && !self.requests.preset_is_open(key);
        self.processes[&slot].usable_host().filter(|_| free)
    }

    pub(crate) fn dispatch_next(&mut self, key: SessionKey) {
        let Some(host) = self.free_host(key) else { return };
        if self.session(key).queue.is_empty()
            || self.budget.hold(&self.cx.config, self.cx.now).is_some()
            || self.awaits_summary(key)
            || self.waits_for_limit(key)
        {
            return;
        }
        let Some(mut prompt) = self.session_mut(key).queue.pop_front() else { return };
        let slot = self.session(key).slot;
        let ask = self.ask(host, Purpose::Prompt { session: key, inserted: false });
        let said = without_own(&prompt.line);
        let line = self.session_mut(key).with_summary(set_id(&said, &Id::issued(ask)));
        let text = prompt_text(&line);
        let line = match idempotency_key(&prompt.line) {
            Ok(Some(own)) if self.keeps_originals(key) => {
                set_member(&line, &["params", "idempotencyKey"], json!(own).to_string().as_bytes())
            }
            _ => line,
        };
        let line = self.session(key).to_agent_id(line);
        let (number, message) = self.journal_prompt(key, &prompt, &said);
        // An agent of version 2 says itself when it has the prompt.
        let message = (!self.keeps_originals(key)).then_some(PromptMessage::Own(message));
        let is_promised = message
            .as_ref()
            .is_some_and(|message| self.answer_inserted(key, &mut prompt.senders, message));
        let chunk = self.processes.write(&mut self.cx, slot, line);
        let host_of = self.processes[&slot].host();
        let runs_out =
            host_of.is_some_and(|host| host.stale_from.is_some()) || self.may_log_in_again(slot);
        self.cx.out.durable = true;
        let now = self.cx.now;
        let session = self.session_mut(key);
        let row = session.row.edit();
        row.last_prompt = hash(&text);
        row.updated = now;
        // Calls from before the turn do not belong to it.
        session.calls.clear();
        session.activity.begin_turn(now);
        session.late_replay = LateReplay::None;
        let prompt = Queued { at: now, ..prompt };
        let running = Running::new(prompt, (number, chunk), text, now, runs_out);
        session.running = Some(Box::new(Running { message, is_promised, ..running }));
        self.tell_turn_state(key);
        self.save_turn(key, None);
        self.arm_stall(key);
        self.lease(slot);
    }

    /// Answers the senders that want to know when the prompt is in the history, and not how its turn
    /// ends. Returns whether there were any.
    fn answer_inserted(
        &mut self,
        key: SessionKey,
        senders: &mut Vec<Requester>,
        message: &PromptMessage,
    ) -> bool {
        let clients = &self.clients;
        let wants = |to: &mut Requester| clients.version_of(to.client).answers_insertion();
        let answered: Vec<_> = senders.extract_if(.., wants).collect();
        for to in &answered {
            self.respond(to, Some(key), message.answer(&to.id));
        }
        !answered.is_empty()
    }

    /// The next daemon has to know that the answer to a prompt comes with the end of its turn.
    pub(crate) fn prompt_inserted(&mut self, host: HostId, id: &Id, message: Option<String>) {
        let Some(ask) = id.as_issued() else { return };
        let asked = self.requests.asked.get_mut(&ask).filter(|asked| asked.host == host);
        let Some(Asked { purpose, .. }) = asked else { return };
        let (Purpose::Prompt { inserted, .. } | Purpose::Abandoned { inserted, .. }) = purpose
        else {
            return;
        };
        *inserted = true;
        // The session of an abandoned prompt is gone.
        let session = purpose.session();
        self.save_asked(ask);
        let Some(key) = session.filter(|key| self.sessions.contains_key(key)) else { return };
        let Some(running) = self.session_mut(key).running.as_mut() else { return };
        let message = message.map_or(PromptMessage::Own(0), PromptMessage::Agents);
        let mut senders = std::mem::take(&mut running.prompt.senders);
        running.message = Some(message.clone());
        let is_promised = self.answer_inserted(key, &mut senders, &message);
        if let Some(running) = self.session_mut(key).running.as_mut() {
            running.prompt.senders = senders;
            running.is_promised |= is_promised;
        }
        self.save_turn(key, None);
    }

    /// `said`: the prompt's line without acpd's members. Returns the number of the turn, and the
    /// position of the prompt.
    fn journal_prompt(&mut self, key: SessionKey, prompt: &Queued, said: &Bytes) -> (u64, Seq) {
        let sender = prompt.senders.first().map(|sender| sender.client);
        let title = meta(&prompt.line).title;
        let at = self.cx.now.0;
        let session = self.session_mut(key);
        session.row.edit().prompts += 1;
        let turn = session.row.prompts;
        let started = TurnStarted { session_id: session.row.public_id.clone().into(), turn, at };
        let line = build::notification(method::TURN_STARTED, &started);
        let form = self.form_without_agent(key);
        if form == LineForm::default() {
            self.session_mut(key).told = TurnState::Working;
        }
        self.append_as(key, form, (EventKind::Notice, None), line, None);
        let message = self.session(key).head + 1;
        if let Ok(Message::Request { params: Some(params), .. }) = acp_wire::parse(said)
            && let Ok(params) = PromptParams::from_raw(params)
        {
            // The first prompt is the title until the agent gives one.
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
                let line = self.session(key).update_line(update);
                self.append_as(key, form, (EventKind::Update, None), line, sender);
            }
        }
        (turn, message)
    }

    pub(crate) fn arm_stall(&mut self, key: SessionKey) {
        let notice = self.profile_of(self.session(key).slot).stall_notice;
        if notice > 0 {
            self.cx.timers.set(Timer::Stall(key), self.cx.now.after(notice));
        }
    }

    /// Reports a turn without output. Waiting for the user or for a tool is not silence.
    pub(crate) fn on_stall_timer(&mut self, key: SessionKey) {
        let session = self.session(key);
        let notice = self.profile_of(session.slot).stall_notice;
        let Some(running) = &session.running else { return };
        let silent = self.cx.now.since(running.last_line);
        // A call of an earlier turn may never end. After a restart the turn's own are not known.
        let is_its = |call: &String| !running.whole || session.calls.contains_key(call);
        let calls = session.row.open_tools.iter().any(is_its);
        if self.questions.are_open(key) || calls || silent < notice {
            let from = if silent < notice { running.last_line } else { self.cx.now };
            return self.cx.timers.set(Timer::Stall(key), from.after(notice));
        }
        let since = running.last_line;
        let others = self.sessions.of_slot(session.slot).into_iter().filter(|other| *other != key);
        let newer = others.map(|other| self.session(other)).find(|other| other.held_since >= since);
        // Some agents serve one session, and forget the others without a word.
        let newer = newer.map_or_else(String::new, |newer| {
            format!(
                ". The silence began when the same process got session `{}`: if cancelling and a new prompt \
                 help, set `sharing = \"session\"` for agent `{}`",
                newer.row.word(),
                session.row.agent
            )
        });
        let text = format!(
            "stalled: no output for {}; the turn continues until it is cancelled: in its client, or \
             with `acpctl cancel {}`{newer}",
            duration(silent),
            session.row.word()
        );
        self.notice(key, "warning", &text);
        self.cx.timers.set(Timer::Stall(key), self.cx.now.after(notice));
    }

    /// Touches the turn of the session that a request names, or else all turns of the process.
    pub(crate) fn touch_turns(&mut self, slot: SlotId, request: &[u8]) {
        let id = str_at(request, &["params", "sessionId"]);
        let meant = match id.and_then(|id| self.sessions.routed(slot, &id)) {
            Some(key) => vec![key],
            None => self.sessions.of_slot(slot),
        };
        let now = self.cx.now;
        for key in meant {
            let running = self.session_mut(key).running.as_mut();
            let first = running.and_then(|running| running.touch(now));
            self.tally.first_update(first);
        }
    }

    pub(crate) fn forget_sender(&mut self, key: SessionKey, client: ClientId) {
        let forget = |prompt: &mut Queued| {
            prompt.senders.extract_if(.., |sender| sender.client == client).count() > 0
        };
        for place in 0..self.session(key).queue.len() {
            if forget(&mut self.session_mut(key).queue[place]) {
                self.save_queued(key, place);
            }
        }
        if self.session_mut(key).running.as_mut().is_some_and(|turn| forget(&mut turn.prompt)) {
            self.save_turn(key, None);
        }
    }

    /// Returns whether the next prompt waits for a summary, which is requested if necessary.
    fn awaits_summary(&mut self, key: SessionKey) -> bool {
        if !self.session(key).owes_summary() || self.session(key).queue.is_empty() {
            return false;
        }
        let session = self.session_mut(key);
        if session.summary == Summary::Unknown {
            session.summary = Summary::Asked;
            let upto = session.head;
            let what = self.reseeds_with(key);
            self.cx.send(Effect::Summarize { session: key, upto, what });
        }
        self.session(key).summary == Summary::Asked
    }

    fn waits_for_limit(&mut self, key: SessionKey) -> bool {
        let held = self.session(key).held().filter(|held| held.until > self.cx.now);
        if let Some(held) = held {
            self.cx.timers.set(Timer::Limit(key), held.until);
        }
        held.is_some()
    }
}
