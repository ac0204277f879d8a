//! Telling the others who answered a question, and with what.

use acp_wire::acp::{ElicitationAnswer, PermissionAnswer};
use acp_wire::bound::SENTENCE;
use acp_wire::{build, clipped};
use acpd_api::{AnswerInfo, ClientName, QuestionAnswered, method};

use crate::clients::name::bounded;
use crate::hub::Hub;
use crate::ids::{ClientId, InteractionId};
use crate::input::Batch;
use crate::questions::message_in;
use crate::questions::question::{Answer, Question, option_info};
use crate::record::EventKind;

impl Hub {
    /// The name of a client for people; `said`: its name in this request.
    pub(crate) fn name_of(&self, client: ClientId, said: Option<ClientName>) -> Option<ClientName> {
        let known = || self.clients.get(&client).map(|here| here.name.clone());
        let name = said.map(bounded).or_else(known)?;
        (name != ClientName::default()).then_some(name)
    }

    /// A client has answered a question: that is in the journal of its session.
    pub(crate) fn tell_answered(
        &mut self,
        interaction: InteractionId,
        answer: &Answer,
        by: Option<ClientName>,
        out: &mut Batch,
    ) {
        let Some(open) = self.questions.get(interaction) else { return };
        let (Some(key), Some(answer)) = (open.session, answer_info(&open.question, answer)) else {
            return;
        };
        let frozen = open.frozen.as_ref();
        let answered = QuestionAnswered {
            session_id: self.session(key).row.public_id.clone().into(),
            id: interaction.text().into(),
            tool_call_id: frozen.and_then(|frozen| frozen.tool_call_id()),
            title: match frozen {
                Some(frozen) => frozen.shown.title.clone(),
                None => Some(clipped(&message_in(&open.line), SENTENCE).into()),
            },
            subject: frozen.and_then(|frozen| frozen.asked()).map(Into::into),
            answer,
            by: by.unwrap_or_default(),
            at: self.now.0,
        };
        let line = build::notification(method::ANSWERED, &answered);
        self.append(key, EventKind::Notice, line, None, out);
    }
}

fn answer_info(question: &Question, answer: &Answer) -> Option<AnswerInfo> {
    match (question, answer) {
        (Question::Permission(options), Answer::Permission(PermissionAnswer::Selected(chosen))) => {
            let option = options.iter().find(|option| option.option_id == *chosen)?;
            Some(AnswerInfo::Option { option: option_info(option) })
        }
        (_, Answer::Elicitation(ElicitationAnswer::Accept { .. })) => Some(AnswerInfo::Accept),
        (_, Answer::Elicitation(ElicitationAnswer::Decline)) => Some(AnswerInfo::Decline),
        (_, Answer::Permission(_) | Answer::Elicitation(ElicitationAnswer::Cancel)) => {
            Some(AnswerInfo::Cancel)
        }
    }
}
