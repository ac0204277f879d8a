//! Remembered decisions, and the answers by them and by rules. Each change is a record.

use acp_wire::acp::{PermissionAnswer, PermissionRequest};
use acpd_api::{PermissionDecided, PolicyList, RememberedInfo};
use acpd_policy::{Decision, Explanation, Policy, Remembered, Situation, Verdict, decide, explain};
use serde_json::{Value, json};

use crate::cx::Cx;
use crate::fault::Fault;
use crate::questions::question::{OpenQuestion, QuestionPlace};
use crate::record::Record;

#[derive(Debug, Default)]
pub(crate) struct Decisions {
    pub(super) known: Vec<Remembered>,
}

impl Decisions {
    pub(super) fn decide(
        &self,
        policy: &Policy,
        place: &QuestionPlace<'_>,
        question: &OpenQuestion,
    ) -> Option<(PermissionAnswer, PermissionDecided)> {
        let (row, frozen) = (place.row?, question.frozen.as_ref()?);
        let situation = Situation { agent: &row.agent, cwd: &row.cwd, once: place.once };
        let decision = frozen.call.with_question(|mut request| {
            request.options = question.options().to_vec();
            decide(policy, &self.known, &situation, &request)
        });
        let Decision::Answer { option_id, verdict, by } = decision else { return None };
        let decided = PermissionDecided {
            option_id: option_id.clone().into(),
            verdict: verdict.to_string().into(),
            ..frozen.decided(&row.public_id, by.to_string())
        };
        Some((PermissionAnswer::Selected(option_id), decided))
    }

    /// # Errors
    /// When it is no tool call.
    pub(crate) fn explain(
        &self,
        policy: &Policy,
        agent: &str,
        cwd: &str,
        tool_call: &Value,
    ) -> Result<Explanation, Fault> {
        let option = |id: &str, kind: &str| json!({"optionId":id,"name":id,"kind":kind});
        let options = [option("allow", "allow_once"), option("reject", "reject_once")];
        let question = json!({"sessionId":"","toolCall":tool_call,"options":options});
        let question = serde_json::value::to_raw_value(&question).unwrap_or_default();
        let request = PermissionRequest::from_raw(&question)
            .map_err(|error| Fault::invalid(error.to_string()))?;
        Ok(explain(policy, &self.known, &Situation { agent, cwd, once: None }, &request))
    }

    /// Replaces an earlier decision. Returns `None` if the subject cannot be recognised later.
    pub(super) fn remember(
        &mut self,
        cx: &mut Cx,
        place: &QuestionPlace<'_>,
        question: &OpenQuestion,
        verdict: Verdict,
    ) -> Option<i64> {
        let call = question.frozen.as_ref().filter(|_| !question.is_own())?;
        let (row, subject) = (place.row?, call.subject.clone()?);
        let (agent, workspace) = (row.agent.clone(), row.cwd.clone());
        let mut new = Remembered { id: 0, agent, workspace, subject, verdict, at: cx.now.0 };
        let same = self.known.iter_mut().find(|known| {
            known.agent == new.agent
                && known.workspace == new.workspace
                && known.subject == new.subject
        });
        if let Some(known) = same {
            new.id = known.id;
            *known = new.clone();
        } else {
            new.id = self.known.iter().map(|known| known.id).max().unwrap_or(0) + 1;
            self.known.push(new.clone());
        }
        let id = new.id;
        cx.record(Record::Remembered(new));
        Some(id)
    }

    pub(crate) fn forget(&mut self, cx: &mut Cx, id: i64) -> Result<(), Fault> {
        if self.known.extract_if(.., |known| known.id == id).count() == 0 {
            return Err(Fault::invalid(format!("no decision {id} is remembered"))
                .hint("`acpctl policy ls` lists them"));
        }
        cx.record(Record::Unremembered { id });
        Ok(())
    }

    pub(crate) fn info(&self) -> PolicyList {
        let info = |known: &Remembered| RememberedInfo {
            id: known.id,
            agent: known.agent.clone().into(),
            workspace: known.workspace.clone().into(),
            subject: known.subject.to_string().into(),
            verdict: known.verdict.to_string().into(),
            at: known.at,
        };
        PolicyList { remembered: self.known.iter().map(info).collect() }
    }
}
