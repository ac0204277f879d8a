//! Messages into a running turn.
//!
//! ```text
//!  _session/steering, session/inject
//!    │ the agent takes none ─▶ an error that names the alternatives
//!    │ no turn runs ─────────▶ late
//!    ▼ a turn runs
//!  asked ── taken ──────────▶ in the journal, as the user's words; the sender is told
//!    │ ├─── came too late ──▶ late: the sender is told, or the message is queued as a prompt
//!    │ └─── refused ────────▶ the sender is told
//!    └ the agent is gone ───▶ the sender is told that the outcome is unknown
//! ```
//!
//! A client that cancels the turn, or closes or archives the session, takes the message back, too:
//! a late message is not queued then.
//!
//! Agents take messages in one of two ways ([`Steering`]), and clients give them in either
//! ([`SteerForm`]). A message is journalled when the agent has taken it. If that is never known, a
//! replay of the agent brings it.
//!
//! Architecture invariant: an agent is never asked to begin a turn with such a message: it would
//! run without acpd's knowledge.

use acp_wire::acp::{Steering, SteeringOutcome, Update};
use acp_wire::bound::LONGEST_ID;
use acp_wire::{
    ErrorObject, Id, Outcome, build, locate, remove_member, set_id, set_member, str_at,
};
use acpd_api::{NAMESPACE, Reason};
use bytes::Bytes;
use serde_json::json;
use serde_json::value::RawValue;

use crate::clients::{Asked, Served};
use crate::fault::{Fault, Refusal, renewed_fault};
use crate::hash::hash;
use crate::hub::Hub;
use crate::hub::session::queue::ends_yes;
use crate::ids::{NOBODY, SessionKey, SlotId};
use crate::own::without_own;
use crate::params::raw;
use crate::prompt::{has_yes, without_once};
use crate::record::{EventKind, Purpose, Steer, SteerForm};

/// Maximum content blocks of one message; each is a line of the journal.
const MAX_BLOCKS: usize = 256;

impl Hub {
    pub(crate) fn steer(&mut self, asked: Asked<'_>, key: SessionKey) -> Served {
        let Asked { to, method, params, .. } = asked;
        let params = params.ok_or_else(|| Fault::invalid("`params` is missing"))?;
        let params = without_own(&Bytes::copy_from_slice(params.get().as_bytes()));
        let form = form_of(method, &params)?;
        let member = if form == SteerForm::Inject { "content" } else { "prompt" };
        let blocks = blocks_of(&params, member)?;
        let agent = &self.session(key).row.agent;
        let Some(way) = self.processes.known(agent).capabilities.steering else {
            return Err(self.session(key).cannot_steer());
        };
        let message = format!("acpd-{}", self.cx.ids.issue());
        let steer = Steer { to: to.clone(), session: key, blocks, message, form };
        let session = self.session(key);
        let slot = session.slot;
        let goes_on = session.running.as_ref().is_some_and(|turn| !turn.work.is_cancelled());
        let host = self.processes[&slot].usable_host();
        let Some(host) = host.filter(|_| goes_on && session.is_live()) else {
            return self.steer_late(steer);
        };
        if self.processes.is_clogged(slot) {
            return Err(self.processes.clogged_fault(slot));
        }
        self.end_yes(key, &asked)?;
        if let Some(running) = self.session_mut(key).running.as_mut() {
            running.added.push(steer.text());
        }
        let (method, params) = for_agent(way, &params, &steer.blocks);
        let ask = self.ask(host, Purpose::Steer(Box::new(steer)));
        let line = build::request(&Id::issued(ask), method, &raw(&params));
        let line = self.session(key).to_agent_id(line);
        self.processes.write(&mut self.cx, slot, line);
        self.cx.out.durable = true;
        Ok(())
    }

    /// Ends the running turn's yes, also for the next daemon, if another client adds to it.
    fn end_yes(&mut self, key: SessionKey, asked: &Asked<'_>) -> Served {
        let Some(running) = self.session_mut(key).running.as_mut() else { return Ok(()) };
        let prompt = &mut running.prompt;
        if !has_yes(&prompt.line) || !ends_yes(prompt.senders.first(), asked)? {
            return Ok(());
        }
        prompt.line = without_once(&prompt.line);
        let line = Some(prompt.line.clone());
        self.save_turn(key, line);
        let text = "`--yes` no longer holds for this turn: another client added to it";
        self.notice(key, "warning", text);
        Ok(())
    }

    pub(crate) fn steered(
        &mut self,
        slot: SlotId,
        mut steer: Steer,
        line: &Bytes,
        outcome: Outcome<'_>,
    ) {
        let key = steer.session;
        if !self.sessions.contains_key(&key) {
            let fault = Fault::new(Reason::SessionRemoved, "the session was deleted");
            return self.refuse(&steer.to, &fault);
        }
        let result = match outcome {
            Outcome::Result(result) => result,
            Outcome::Error(error) => {
                let error = ErrorObject::from_raw(error);
                if self.note_refusal(slot, steer.form.method(), &error) == Refusal::Renewed {
                    return self.refuse(&steer.to, &renewed_fault());
                }
                let line = self
                    .sessions
                    .to_public_id_in_error(key, self.for_client(slot, &steer.to, line));
                return self.respond(&steer.to, Some(key), line);
            }
        };
        let id = str_at(result.get().as_bytes(), &["messageId"]);
        if let Some(id) = id.filter(|id| id.len() <= LONGEST_ID) {
            steer.message = id.into_owned();
        }
        let outcome = SteeringOutcome::from_raw(result);
        match &outcome {
            Some(SteeringOutcome::PromptRequired) => {
                let to = steer.to.clone();
                if let Err(fault) = self.steer_late(steer) {
                    self.refuse(&to, &fault);
                }
                return;
            }
            Some(SteeringOutcome::Other(outcome)) if steer.form == SteerForm::Inject => {
                let fault = self.session(key).not_taken(outcome);
                return self.refuse(&steer.to, &fault);
            }
            Some(SteeringOutcome::Other(_)) => {}
            // Every success of `session/inject` means that the message was taken.
            None | Some(SteeringOutcome::Injected) => self.journal_steer(&steer),
            Some(SteeringOutcome::StartedNewTurn) => {
                self.journal_steer(&steer);
                let text = "the agent has begun a turn of its own with that: acpd cannot tell when \
                            it ends";
                self.notice(key, "warning", text);
            }
        }
        let line = match steer.form {
            SteerForm::Inject => {
                let result = json!({ "messageId": steer.message });
                build::response(&steer.to.id, &result)
            }
            _ if outcome.is_some() => set_id(line, &steer.to.id),
            _ => build::response(&steer.to.id, &json!({ "outcome": "injected" })),
        };
        self.respond(&steer.to, Some(key), line);
    }

    fn journal_steer(&mut self, steer: &Steer) {
        let (key, now) = (steer.session, self.cx.now);
        let sender = Some(steer.to.client).filter(|client| *client != NOBODY);
        let blocks: Vec<&RawValue> = serde_json::from_slice(&steer.blocks).unwrap_or_default();
        for content in &blocks {
            let message_id = Some(steer.message.as_str());
            let update = Update::UserMessageChunk { content, message_id };
            let line = self.session(key).update_line(update);
            let line = set_member(&line, &["params", "_meta", NAMESPACE, "steered"], b"true");
            self.append(key, EventKind::Update, line, sender);
        }
        let session = self.session_mut(key);
        // If the agent replays the message, a replay ends with it.
        let row = session.row.edit();
        row.last_prompt = hash(&steer.text());
        row.updated = now;
        let first = session.running.as_mut().and_then(|running| running.touch(now));
        self.tally.first_update(first);
    }

    fn steer_late(&mut self, steer: Steer) -> Result<(), Fault> {
        let Steer { to, session: key, blocks, form, .. } = steer;
        match form {
            SteerForm::Inject => {
                let session = self.session(key);
                let hint = format!("send it as a prompt: `acpctl run -s {} …`", session.row.word());
                return Err(session.no_turn().hint(hint));
            }
            SteerForm::PromptRequired => {
                let result = json!({ "outcome": "promptRequired", "reason": "noRunningTurn" });
                self.respond(&to, Some(key), build::response(&to.id, &result));
            }
            SteerForm::Extension => {
                let session_id = &self.session(key).row.public_id;
                let params = json!({ "sessionId": session_id, "prompt": raw(&blocks) });
                let line = build::request(&Id::from(0), "session/prompt", &params);
                // No client waits for the end of the turn: this is the answer.
                self.put_in_line(key, None, line)?;
                let result = json!({ "outcome": "startedNewTurn" });
                self.respond(&to, Some(key), build::response(&to.id, &result));
                self.on_prompt_queued(key);
            }
        }
        Ok(())
    }

    pub(crate) fn steer_lost(&mut self, steer: &Steer, fault: &Fault) {
        let text = format!("{}; it is not known whether the agent got the message", fault.message);
        let mut fault = Fault { message: text, ..fault.clone() };
        fault.data.reason = Reason::OutcomeUnknown;
        if let Some(session) = self.sessions.get(&steer.session) {
            fault = fault.session(&session.row.public_id);
        }
        let fault = fault.hint("say it with the next prompt, which brings the conversation back");
        self.refuse(&steer.to, &fault);
    }
}

fn form_of(method: &str, params: &[u8]) -> Result<SteerForm, Fault> {
    if method == "session/inject" {
        return match str_at(params, &["mode"]).as_deref() {
            Some("steer") => Ok(SteerForm::Inject),
            _ => Err(Fault::invalid("the only `mode` is `steer`")
                .hint("`session/prompt` waits until the turn is over")),
        };
    }
    let path = ["_meta", "steering", "idleBehavior"];
    match (locate(params, &path), str_at(params, &path).as_deref()) {
        (None, _) => Ok(SteerForm::Extension),
        (_, Some("promptRequired")) => Ok(SteerForm::PromptRequired),
        _ => Err(Fault::invalid("the only `_meta.steering.idleBehavior` is `promptRequired`")),
    }
}

fn blocks_of(params: &Bytes, member: &str) -> Result<Bytes, Fault> {
    let blocks = locate(params, &[member]).map(|range| params.slice(range));
    let number =
        |blocks: &Bytes| Some(serde_json::from_slice::<Vec<&RawValue>>(blocks).ok()?.len());
    match blocks.as_ref().and_then(number) {
        None | Some(0) => Err(Fault::invalid(format!("`{member}` is no list of blocks"))),
        Some(number) if number > MAX_BLOCKS => {
            let text = format!("`{member}` has {number} blocks, and {MAX_BLOCKS} are the most");
            Err(Fault::invalid(text).hint("say it in several messages, or in fewer blocks"))
        }
        Some(_) => Ok(blocks.unwrap_or_default()),
    }
}

/// Returns the request as the agent takes it. Other members of the client's params stay.
fn for_agent(way: Steering, params: &Bytes, blocks: &[u8]) -> (&'static str, Bytes) {
    let (method, kept, other) = match way {
        Steering::Extension => ("_session/steering", "prompt", "content"),
        Steering::Inject => ("session/inject", "content", "prompt"),
    };
    let mut params = set_member(&remove_member(params, &[other]), &[kept], blocks);
    params = match way {
        Steering::Extension => {
            let idle = ["_meta", "steering", "idleBehavior"];
            set_member(&remove_member(&params, &["mode"]), &idle, b"\"promptRequired\"")
        }
        Steering::Inject => {
            set_member(&remove_member(&params, &["_meta", "steering"]), &["mode"], b"\"steer\"")
        }
    };
    (method, params)
}
