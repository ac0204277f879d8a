//! Permission questions that nobody has to be asked: rules of the configuration, decisions that were
//! remembered, and the answer that was given for one run.
//!
//! Architecture invariant: every answer that no person gave is in the journal, with what decided.

use acp_wire::acp::{PermissionAnswer, PermissionRequest};
use acp_wire::bound::LONGEST_ID;
use acp_wire::{build, locate, str_at};
use acpd_api::{PermissionDecided, PolicyList, PromptMeta, RememberedInfo, method};
use acpd_policy::{Decision, Remembered, Situation, Verdict, decide, subject_of};
use bytes::Bytes;
use serde_json::value::RawValue;

use crate::agent::AgentId;
use crate::hub::Hub;
use crate::ids::{InteractionId, SessionKey};
use crate::input::Batch;
use crate::params::own_meta;
use crate::question::{Answer, Question, params_of};
use crate::record::{EventKind, Record};
use crate::session::OPEN_TOOLS;

/// Most that is kept of what an agent says about one tool call, for its permission question, in bytes.
const CALL_BYTES: usize = 64 << 10;

impl Hub {
    /// The answer to a permission question if a person has given it before, in one way or another.
    pub(crate) fn decided(
        &mut self,
        key: SessionKey,
        line: &Bytes,
        out: &mut Batch,
    ) -> Option<Answer> {
        let params = params_of(line)?;
        let earlier = self.earlier_call(key, params);
        let request = whole_request(params, &earlier)?;
        let session = self.session(key);
        let situation = Situation {
            agent: &session.row.agent,
            cwd: &session.row.cwd,
            once: session.running.as_ref().and_then(|turn| turn.once),
        };
        let decision = decide(&self.config.policy, &self.remembered, &situation, &request);
        let Decision::Answer { option_id, verdict, by } = decision else { return None };
        let decided = PermissionDecided {
            session_id: session.row.public_id.clone().into(),
            tool_call_id: request.tool_call_id.as_deref().map(Into::into),
            title: request.title.as_deref().map(Into::into),
            subject: subject_of(&request).map(|subject| subject.asked().into()),
            option_id: option_id.clone().into(),
            verdict: verdict.to_string().into(),
            by: by.to_string().into(),
        };
        let line = build::notification(method::PERMISSION_DECIDED, &decided);
        self.append(key, EventKind::Notice, line, None, out);
        out.durable = true;
        Some(Answer::Permission(PermissionAnswer::Selected(option_id)))
    }

    /// Many agents say what a call is about when it begins, and ask with little more than its id.
    /// More than fits is not half known: then only the question itself counts.
    pub(crate) fn note_call(&mut self, key: SessionKey, id: &str, line: &Bytes) {
        let Some(range) = locate(line, &["params", "update"]) else { return };
        let calls = &mut self.session_mut(key).calls;
        if id.len() > LONGEST_ID || (!calls.contains_key(id) && calls.len() >= OPEN_TOOLS) {
            return;
        }
        let said = calls.entry(id.to_owned()).or_insert_with(|| Some(Vec::new()));
        let Some(lines) = said else { return };
        let bytes: usize = lines.iter().map(Bytes::len).sum();
        if bytes + range.len() > CALL_BYTES {
            *said = None;
        } else {
            lines.push(line.slice(range));
        }
    }

    /// Something was taken out of what an agent said about a call: what is left need not be all that there
    /// is to know of it, so no rule decides on it.
    pub(crate) fn doubt_call(&mut self, slot: AgentId, line: &[u8]) {
        let call = str_at(line, &["params", "update", "toolCallId"]);
        let session = str_at(line, &["params", "sessionId"]);
        let (Some(call), Some(session)) = (call, session) else { return };
        let Some(key) = self.routed(slot, &session) else { return };
        let name = self.call_name(key, Some(self.public_of(key, &session)), &call).into_owned();
        let calls = &mut self.session_mut(key).calls;
        if name.len() <= LONGEST_ID && (calls.contains_key(&name) || calls.len() < OPEN_TOOLS) {
            calls.insert(name, None);
        }
    }

    fn earlier_call(&self, key: SessionKey, params: &RawValue) -> Vec<Bytes> {
        let params = params.get().as_bytes();
        let Some(id) = str_at(params, &["toolCall", "toolCallId"]) else { return Vec::new() };
        let name = self.call_name(key, str_at(params, &["sessionId"]).as_deref(), &id);
        self.session(key).calls.get(&*name).cloned().flatten().unwrap_or_default()
    }

    /// A person chose an option that holds from now on: acpd remembers it, because the agent may not.
    pub(crate) fn remember_choice(
        &mut self,
        interaction: InteractionId,
        answer: &Answer,
        out: &mut Batch,
    ) {
        let Answer::Permission(PermissionAnswer::Selected(chosen)) = answer else { return };
        let Some(open) = self.interactions.get(&interaction) else { return };
        let Question::Permission(options) = &open.question else { return };
        let kind = options.iter().find(|option| option.option_id == *chosen).map(|o| &*o.kind);
        match kind {
            Some("allow_always") => self.remember(interaction, Verdict::Allow, out),
            Some("reject_always") => self.remember(interaction, Verdict::Reject, out),
            _ => false,
        };
    }

    /// Remembers a decision on what a question is about; whether that says enough to know it again.
    pub(crate) fn remember(
        &mut self,
        interaction: InteractionId,
        verdict: Verdict,
        out: &mut Batch,
    ) -> bool {
        let Some(subject) = self.subject_of_question(interaction) else { return false };
        let Some(key) = self.interactions[&interaction].session else { return false };
        let row = &self.session(key).row;
        let (agent, workspace) = (row.agent.clone(), row.cwd.clone());
        let same = self.remembered.iter().position(|known| {
            known.agent == agent && known.workspace == workspace && known.subject == subject
        });
        let last = self.remembered.iter().map(|known| known.id).max().unwrap_or(0);
        let id = same.map_or(last + 1, |place| self.remembered[place].id);
        let at = self.now.0;
        let new = Remembered { id, agent, workspace, subject, verdict, at };
        out.records.push(Record::Remembered(new.clone()));
        match same {
            Some(place) => self.remembered[place] = new,
            None => self.remembered.push(new),
        }
        true
    }

    /// What exactly a permission question is about.
    pub(crate) fn subject_of_question(
        &self,
        interaction: InteractionId,
    ) -> Option<acpd_policy::Subject> {
        let open = self.interactions.get(&interaction)?;
        let params = params_of(&open.line)?;
        let earlier = self.earlier_call(open.session?, params);
        subject_of(&whole_request(params, &earlier)?)
    }

    /// Takes a remembered decision back; whether there was one.
    pub(crate) fn forget_decision(&mut self, id: i64, out: &mut Batch) -> bool {
        let before = self.remembered.len();
        self.remembered.retain(|known| known.id != id);
        let was_there = self.remembered.len() < before;
        if was_there {
            out.records.push(Record::Unremembered { id });
        }
        was_there
    }

    pub(crate) fn remembered_list(&self) -> PolicyList {
        let info = |known: &Remembered| RememberedInfo {
            id: known.id,
            agent: known.agent.clone().into(),
            workspace: known.workspace.clone().into(),
            subject: known.subject.to_string().into(),
            verdict: known.verdict.to_string().into(),
            at: known.at,
        };
        PolicyList { remembered: self.remembered.iter().map(info).collect() }
    }
}

/// A permission question with what the agent has said about its call before: what is newest counts.
fn whole_request<'a>(params: &'a RawValue, earlier: &'a [Bytes]) -> Option<PermissionRequest<'a>> {
    let mut request = PermissionRequest::from_raw(params).ok()?;
    for said in earlier.iter().rev() {
        let call = PermissionRequest::of_call(Some(serde_json::from_slice(said).ok()?));
        request.title = request.title.or(call.title);
        request.kind = request.kind.or(call.kind);
        request.raw_input = request.raw_input.or(call.raw_input);
        if request.content.is_none() {
            (request.content, request.diffs) = (call.content, call.diffs);
        }
        if request.locations.is_empty() {
            request.locations = call.locations;
        }
    }
    Some(request)
}

/// The answer that the sender of a prompt gave beforehand to all questions of its turn.
pub(crate) fn once(prompt: &[u8]) -> Option<Verdict> {
    let meta = locate(prompt, &["params", "_meta"])?;
    let meta = std::str::from_utf8(&prompt[meta]).ok()?;
    match own_meta::<PromptMeta>(meta).ok()??.permissions?.as_str() {
        "allow" => Some(Verdict::Allow),
        "reject" => Some(Verdict::Reject),
        _ => None,
    }
}
