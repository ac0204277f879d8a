use acp_wire::bound::NAME;
use acp_wire::{ErrorObject, Id, Outcome, build, clipped, code, locate, set_id};
use acpd_api::{AnswerResult, ClientName, GivenAnswer, method};
use bytes::Bytes;

use crate::cx::Cx;
use crate::event::EngineEvent;
use crate::fault::Fault;
use crate::ids::{ClientId, InteractionId};
use crate::input::{Effect, ToClient};
use crate::questions::question::{QuestionAnswer, QuestionKind, QuestionPlace};
use crate::questions::{Questions, choice, notice};

/// Invalid answers of a client to a question before the client is no longer asked.
const INVALID: u32 = 3;

impl Questions {
    pub(crate) fn on_client_answer(
        &mut self,
        cx: &mut Cx,
        place: &QuestionPlace<'_>,
        client: ClientId,
        id: InteractionId,
        outcome: &Outcome<'_>,
        line: &Bytes,
    ) {
        let Some(open) = self.open.get_mut(&id) else { return };
        let offer = open.offers.entry(client).or_default();
        let number = offer.number.take().map_or_else(Id::null, Id::issued);
        // An error: this client cannot show the question, which waits for another one.
        let (Some(by), Outcome::Result(result)) = (place.responder(client), *outcome) else {
            return;
        };
        if let Some(answer) = open.kind.answer(result) {
            if let Some(verdict) = open.chosen(&answer).and_then(choice::lasting) {
                self.decisions.remember(cx, place, open, verdict);
            }
            // The client's line is forwarded with its other members, because its option was checked
            // exactly.
            let own = matches!(answer, QuestionAnswer::Permission(_)).then_some(line);
            return self.answer(cx, place, id, &answer, by.name.clone(), own);
        }
        // A line that is no message has its own error.
        if locate(line, &["result"]).is_some() {
            let form = open.kind.form_of_answers();
            let text =
                format!("the answer to request {number} does not count: its result is no {form}");
            let error = build::error(&Id::null(), &ErrorObject::new(code::INVALID_PARAMS, text));
            cx.send_behind(Effect::Client(client, ToClient::Line(error)));
        }
        offer.invalid += 1;
        if offer.invalid < INVALID {
            return self.offer_again(cx, place, client, id);
        }
        let Some(session) = open.session() else { return };
        let by = if *by.name == ClientName::default() {
            "a client".to_owned()
        } else {
            format!("client `{}`", clipped(by.name.name.raw(), NAME))
        };
        let text = format!(
            "{by} gave no answer that can be read, and is not asked again; answer with `acpctl answer {}`",
            id.text()
        );
        cx.report(EngineEvent::SessionNoticed { session, severity: "warning", text });
    }

    /// Handles an answer from outside of the conversation.
    ///
    /// # Errors
    /// When it does not fit the question, or cannot be remembered.
    pub(crate) fn on_given_answer(
        &mut self,
        cx: &mut Cx,
        place: &QuestionPlace<'_>,
        id: InteractionId,
        given: GivenAnswer,
        by: ClientName,
    ) -> Result<AnswerResult, Fault> {
        let Some(open) = self.open.get(&id) else { return Ok(AnswerResult::default()) };
        if matches!(&open.kind, QuestionKind::Permission(options) if options.is_empty()) {
            let fault = Fault::invalid("the agent offers no answers to this question");
            let Some(row) = place.row else { return Err(fault) };
            // A subagent may ask without a turn, which a cancel could end.
            let hint = if place.is_running {
                format!("`acpctl cancel {}` ends the turn that asks", row.word())
            } else {
                format!("`acpctl agent restart {}` ends it", row.agent)
            };
            return Err(fault.session(&row.public_id).hint(hint));
        }
        let is_named = matches!(
            &given,
            GivenAnswer::Allow { option: Some(_), .. } | GivenAnswer::Deny { option: Some(_), .. }
        );
        let (answer, always) = choice::meant(id, &open.kind, given)?;
        let chosen = open.chosen(&answer);
        let own = chosen.and_then(|option| Some((choice::lasting(option)?, option.name.clone())));
        let lasting = always.or(own.as_ref().map(|(verdict, _)| *verdict));
        let remembered =
            lasting.and_then(|verdict| self.decisions.remember(cx, place, open, verdict));
        // The agent's option is sent if the user named it, even if acpd cannot remember the call.
        let is_enough = remembered.is_some() || is_named && own.is_some();
        if let Some(verdict) = always.filter(|_| !is_enough) {
            return Err(open.not_remembered(id, verdict));
        }
        self.answer(cx, place, id, &answer, by, None);
        let own_option = own.map(|(_, name)| name.into());
        Ok(AnswerResult { own_option, remembered })
    }

    /// `own`: the client's line.
    fn answer(
        &mut self,
        cx: &mut Cx,
        place: &QuestionPlace<'_>,
        id: InteractionId,
        answer: &QuestionAnswer,
        by: ClientName,
        own: Option<&Bytes>,
    ) {
        let Some(question) = self.open.remove(&id) else { return };
        cx.out.durable |= !question.is_own();
        if let Some(row) = place.row
            && let Some(answered) = question.answered_info(id, row, answer, by, cx.now)
        {
            notice(cx, row, method::ANSWERED, &answered);
        }
        question.reply(cx, |id| match own {
            Some(line) => set_id(line, id),
            None => build::response(id, answer),
        });
        question.close(cx, id);
        if let Some(session) = question.session().filter(|_| question.is_own()) {
            let option = answer.option().map(str::to_owned);
            cx.report(EngineEvent::BudgetAnswered { session, option });
        }
    }
}
