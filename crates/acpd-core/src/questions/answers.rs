//! Answers of people: from clients, and from outside of the conversation.

use std::collections::BTreeSet;

use acp_wire::acp::{ElicitationAnswer, ElicitationMode, PermissionAnswer, PermissionOption};
use acp_wire::bound::NAME;
use acp_wire::{ErrorObject, Id, Outcome, build, clipped, code, locate, set_id};
use acpd_api::escape::shell_word;
use acpd_api::{AnswerResult, ClientName, GivenAnswer, method};
use acpd_policy::Verdict;
use bytes::Bytes;

use crate::cx::Cx;
use crate::event::EngineEvent;
use crate::fault::Fault;
use crate::ids::{ClientId, InteractionId};
use crate::input::{Effect, ToClient};
use crate::questions::question::{OpenQuestion, QuestionAnswer, QuestionKind, QuestionPlace};
use crate::questions::{Questions, notice};

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
            if let Some(verdict) = open.chosen(&answer).and_then(lasting) {
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
        let (answer, always) = meant(id, &open.kind, given)?;
        let chosen = open.chosen(&answer);
        let own = chosen.and_then(|option| Some((lasting(option)?, option.name.clone())));
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

/// Returns the verb of a verdict, and its option kinds: once and always.
fn words(verdict: Verdict) -> (&'static str, &'static str, &'static str) {
    match verdict {
        Verdict::Allow => ("allow", "allow_once", "allow_always"),
        Verdict::Reject => ("deny", "reject_once", "reject_always"),
    }
}

/// Returns the verdict of an option for always.
fn lasting(option: &PermissionOption) -> Option<Verdict> {
    let verdicts = [Verdict::Allow, Verdict::Reject];
    verdicts.into_iter().find(|verdict| words(*verdict).2 == option.kind)
}

fn meant(
    id: InteractionId,
    kind: &QuestionKind,
    given: GivenAnswer,
) -> Result<(QuestionAnswer, Option<Verdict>), Fault> {
    match (kind, given) {
        (QuestionKind::Permission(options), GivenAnswer::Option { option }) => {
            if !options.iter().any(|known| known.option_id == option) {
                return Err(Fault::invalid(format!("there is no option `{option}`"))
                    .hint(choosing(&format!("answer {}", id.text()), options)));
            }
            Ok((QuestionAnswer::Permission(PermissionAnswer::Selected(option)), None))
        }
        (QuestionKind::Permission(options), GivenAnswer::Allow { always, option }) => {
            option_for(Verdict::Allow, id, options, always, option.as_deref())
        }
        (QuestionKind::Permission(options), GivenAnswer::Deny { always, option }) => {
            option_for(Verdict::Reject, id, options, always, option.as_deref())
        }
        (QuestionKind::Elicitation(mode), GivenAnswer::Accept { content }) => {
            let accepted = ElicitationAnswer::accept(content, mode).map_err(Fault::invalid)?;
            Ok((QuestionAnswer::Elicitation(accepted), None))
        }
        (
            QuestionKind::Elicitation(_),
            GivenAnswer::Decline | GivenAnswer::Deny { always: false, option: None },
        ) => Ok((QuestionAnswer::Elicitation(ElicitationAnswer::Decline), None)),
        (QuestionKind::Permission(_), _) => {
            Err(Fault::invalid("this question is answered by one of its options"))
        }
        (QuestionKind::Elicitation(_), _) => {
            Err(Fault::invalid("this question is answered by a form, or by accepting a page"))
        }
    }
}

impl OpenQuestion {
    /// Allowing for once needs a call that is shown completely, and a question without a page.
    pub(crate) fn is_for_once(&self, given: &GivenAnswer) -> bool {
        let offers = |verdict| self.options().iter().any(|option| option.kind == words(verdict).1);
        let is_whole = || self.frozen.as_ref().is_some_and(|frozen| frozen.shown.is_whole());
        match given {
            GivenAnswer::Allow { always: false, option: None } => {
                offers(Verdict::Allow) && is_whole()
            }
            GivenAnswer::Deny { always: false, option: None } => offers(Verdict::Reject),
            GivenAnswer::Accept { .. } => {
                matches!(&self.kind, QuestionKind::Elicitation(ElicitationMode::Form(_)))
            }
            GivenAnswer::Decline => true,
            _ => false,
        }
    }

    fn not_remembered(&self, id: InteractionId, verdict: Verdict) -> Fault {
        let (word, _, forever) = words(verdict);
        let own: Vec<_> = self.options().iter().filter(|option| option.kind == forever).collect();
        let own = if own.is_empty() {
            String::new()
        } else {
            let own = choosing(&format!("{word} --always {}", id.text()), own);
            format!("; the agent's own option for that: {own}")
        };
        let text = "the question does not say enough to know it again, so it cannot be remembered";
        Fault::invalid(text)
            .hint(format!("answer it without `--always`, or write a rule under `[policy]`{own}"))
    }
}

/// Of several options the user must choose. A lasting answer takes the option for once if there is
/// one: acpd remembers exactly this call, but the agent's option for always may cover more, and the
/// agent would no longer ask.
fn option_for(
    verdict: Verdict,
    id: InteractionId,
    options: &[PermissionOption],
    always: bool,
    wanted: Option<&str>,
) -> Result<(QuestionAnswer, Option<Verdict>), Fault> {
    let (word, once, forever) = words(verdict);
    let of_kind = |kind| distinct(options.iter().filter(move |option| option.kind == kind));
    let is_for_once = !always || of_kind(once).len() == 1 && of_kind(forever).len() < 2;
    let kinds = if is_for_once { [once, forever] } else { [forever, once] };
    let fitting: Vec<&PermissionOption> = match wanted {
        Some(wanted) => {
            let all = kinds.into_iter().flat_map(of_kind);
            distinct(all.filter(|option| option.option_id == wanted))
        }
        None => {
            let mut by_kind = kinds.into_iter().map(of_kind);
            by_kind.find(|found| !found.is_empty()).unwrap_or_default()
        }
    };
    let id = id.text();
    match fitting.as_slice() {
        [option] => {
            let chosen = PermissionAnswer::Selected(option.option_id.clone());
            Ok((QuestionAnswer::Permission(chosen), always.then_some(verdict)))
        }
        [] => {
            let text = format!("no such option of the question means `{word}`");
            Err(Fault::invalid(text).hint(choosing(&format!("answer {id}"), options)))
        }
        several => {
            let always = if always { " --always" } else { "" };
            let text = format!("several options of the question mean `{word}{always}`");
            let command = format!("{word}{always} {id}");
            Err(Fault::invalid(text).hint(choosing(&command, several.iter().copied())))
        }
    }
}

fn choosing<'a>(command: &str, options: impl IntoIterator<Item = &'a PermissionOption>) -> String {
    let lines = distinct(options)
        .into_iter()
        .map(|option| format!("`acpctl {command} --option {}`", shell_word(&option.option_id)));
    lines.collect::<Vec<_>>().join(" or ")
}

/// The agent gets only the id, so options with one id are the same answer.
fn distinct<'a>(
    options: impl IntoIterator<Item = &'a PermissionOption>,
) -> Vec<&'a PermissionOption> {
    let mut known = BTreeSet::new();
    options.into_iter().filter(|option| known.insert(&option.option_id)).collect()
}
