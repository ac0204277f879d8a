//! Permission questions answered without a person: by rules, remembered decisions, and the answer
//! for one run.
//!
//! Architecture invariant: every answer that no person gave is in the journal, with what decided.

use acp_wire::acp::PermissionAnswer;
use acpd_api::PermissionDecided;
use acpd_policy::{Decision, Remembered, Situation, Verdict, decide};

use crate::hub::Hub;
use crate::ids::{InteractionId, SessionKey};
use crate::input::Batch;
use crate::questions::AskedBy;
use crate::questions::question::{Answer, Question};
use crate::tool_calls::frozen::Frozen;

impl Hub {
    /// The answer to a permission question if a person has given it before, in one way or another.
    pub(crate) fn decided(
        &mut self,
        key: SessionKey,
        frozen: &Frozen,
        question: &Question,
        out: &mut Batch,
    ) -> Option<Answer> {
        let Question::Permission(options) = question else { return None };
        let session = self.session(key);
        let situation = Situation {
            agent: &session.row.agent,
            cwd: &session.row.cwd,
            once: session.running.as_ref().and_then(|turn| turn.once),
        };
        let decision = frozen.with_request(options, |request| {
            decide(&self.config.policy, self.decisions.all(), &situation, request)
        });
        let Decision::Answer { option_id, verdict, by } = decision else { return None };
        let decided = PermissionDecided {
            option_id: option_id.clone().into(),
            verdict: verdict.to_string().into(),
            ..frozen.decided(&session.row.public_id, by.to_string())
        };
        self.tell_decided(key, &decided, out);
        Some(Answer::Permission(PermissionAnswer::Selected(option_id)))
    }

    /// A person chose an option that holds from now on: acpd remembers it, because the agent may not.
    pub(crate) fn remember_choice(
        &mut self,
        interaction: InteractionId,
        answer: &Answer,
        out: &mut Batch,
    ) -> Option<i64> {
        let Answer::Permission(PermissionAnswer::Selected(chosen)) = answer else { return None };
        let Question::Permission(options) = &self.questions.get(interaction)?.question else {
            return None;
        };
        let kind = options.iter().find(|option| option.option_id == *chosen).map(|o| &*o.kind);
        match kind {
            Some("allow_always") => self.remember(interaction, Verdict::Allow, out),
            Some("reject_always") => self.remember(interaction, Verdict::Reject, out),
            _ => None,
        }
    }

    /// Remembers a decision on what a question is about, if that says enough to know it again; its number.
    pub(crate) fn remember(
        &mut self,
        interaction: InteractionId,
        verdict: Verdict,
        out: &mut Batch,
    ) -> Option<i64> {
        let open = self.questions.get(interaction)?;
        let frozen = open.frozen.as_ref().filter(|_| open.asked_by != AskedBy::Budget);
        let subject = frozen.and_then(|frozen| frozen.subject.clone());
        let (subject, key) = (subject?, open.session?);
        let row = &self.session(key).row;
        let (agent, workspace) = (row.agent.clone(), row.cwd.clone());
        let at = self.now.0;
        let new = Remembered { id: 0, agent, workspace, subject, verdict, at };
        Some(self.decisions.remember(new, out))
    }
}
