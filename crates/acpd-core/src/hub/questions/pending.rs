//! `_acpd/interaction/*` and `_acpd/policy/*`: what waits for a person, answered from a terminal.

use std::collections::BTreeSet;

use acp_wire::acp::{
    ElicitationAnswer, ElicitationMode, ElicitationRequest, PermissionAnswer, PermissionOption,
    PermissionRequest,
};
use acpd_api::escape::shell_word;
use acpd_api::{
    AnswerParams, AnswerResult, ClientName, Empty, ForgetParams, GivenAnswer, InteractionInfo,
    InteractionList, PolicyTestParams,
};
use acpd_policy::{Situation, Verdict, explain};
use serde_json::json;

use crate::clients::{Asked, Served};
use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::{ClientId, InteractionId, Requester};
use crate::input::Batch;
use crate::params::{path, read};
use crate::questions::Interaction;
use crate::questions::question::{Answer, Question, option_info, params_of};

impl Hub {
    /// The refusal to answer a question that its agent has put without answers.
    fn offers_nothing(&self, open: &Interaction) -> Fault {
        let fault = Fault::invalid("the agent offers no answers to this question");
        let Some(session) = open.session.map(|key| self.session(key)) else { return fault };
        // A cancel ends what a turn asks, and a subagent may ask without one.
        fault.session(&session.row.public_id).hint(match session.running {
            Some(_) => format!("`acpctl cancel {}` ends the turn that asks", session.row.word()),
            None => format!("`acpctl agent restart {}` ends it", session.row.agent),
        })
    }

    pub(crate) fn list_interactions(&mut self, to: &Requester, out: &mut Batch) {
        let open = self.questions.iter();
        let mut interactions: Vec<_> =
            open.filter_map(|(id, open)| self.interaction_info(id, open)).collect();
        interactions.sort_by_key(|info| info.at);
        self.answer(to, &InteractionList { interactions }, out);
    }

    pub(crate) fn interaction_info(
        &self,
        id: InteractionId,
        open: &Interaction,
    ) -> Option<InteractionInfo> {
        if open.looks_at.is_some() {
            return None;
        }
        let row = open.session.map(|key| &self.session(key).row);
        let profile = || {
            let slot = self.processes.slot_of(open.host()?)?;
            Some(self.processes[&slot].profile().to_owned())
        };
        let agent = row.map(|row| row.agent.clone()).or_else(profile)?;
        Some(InteractionInfo {
            id: id.text().into(),
            agent: agent.into(),
            session_id: row.map(|row| row.public_id.clone().into()),
            name: row.and_then(|row| row.name.clone()).map(Into::into),
            cwd: row.map(|row| row.cwd.clone().into()),
            parent: open.session.and_then(|key| self.sessions.parent_handle(key)).map(Into::into),
            at: open.at.0,
            question: question_info(open)?,
        })
    }

    /// A person who looks at no conversation answers.
    pub(crate) fn answer_from_outside(&mut self, asked: Asked<'_>, out: &mut Batch) -> Served {
        let Asked { to, params, .. } = asked;
        let AnswerParams { id, answer, by, parent } = read(params)?;
        let found = InteractionId::parse(&id).and_then(|id| Some((id, self.questions.get(id)?)));
        let found = found.filter(|(_, open)| open.looks_at.is_none());
        let (id, open) = found.ok_or_else(|| {
            Fault::invalid("no such question is open; it may be answered already")
                .hint("`acpctl pending` lists the open questions")
        })?;
        if matches!(&open.question, Question::Permission(options) if options.is_empty()) {
            return Err(self.offers_nothing(open));
        }
        let is_named = matches!(
            &answer,
            GivenAnswer::Allow { option: Some(_), .. } | GivenAnswer::Deny { option: Some(_), .. }
        );
        let (answer, always) = chosen(id, &open.question, answer)?;
        let own_option = lasting(&open.question, &answer);
        let remembered = if let Some(verdict) = always {
            // An option of the agent that was named is sent, even if acpd cannot remember the call.
            let is_enough = is_named && own_option.is_some();
            let refusal = not_remembered(id, verdict, &open.question);
            let remembered = self.remember(id, verdict, out);
            if remembered.is_none() && !is_enough {
                return Err(refusal);
            }
            remembered
        } else {
            self.remember_choice(id, &answer, out)
        };
        let by = self.who_answers(to.client, by, parent);
        self.tell_answered(id, &answer, by, out);
        self.answer_interaction(id, &answer, out);
        let own_option = own_option.map(Into::into);
        self.answer(to, &AnswerResult { own_option, remembered }, out);
        Ok(())
    }

    /// Returns the answering client for people. A tool answers for its agent, under any name.
    fn who_answers(
        &self,
        client: ClientId,
        said: Option<ClientName>,
        parent: Option<u64>,
    ) -> Option<ClientName> {
        if self.may_decide(client) {
            return self.name_of(client, said);
        }
        let row = &self.session(self.sessions.by_number(parent?).ok()?).row;
        let title = format!("agent `{}` of session `{}`", row.agent, row.handle());
        Some(ClientName { name: row.agent.clone().into(), title: Some(title.into()), place: None })
    }

    pub(crate) fn forget_remembered(&mut self, asked: Asked<'_>, out: &mut Batch) -> Served {
        let Asked { to, params, .. } = asked;
        let ForgetParams { id } = read(params)?;
        if !self.decisions.forget(id, out) {
            return Err(Fault::invalid(format!("no decision {id} is remembered"))
                .hint("`acpctl policy ls` lists them"));
        }
        self.answer(to, &Empty {}, out);
        Ok(())
    }

    /// Explains who would answer a question about a tool call.
    pub(crate) fn test_policy(&mut self, asked: Asked<'_>, out: &mut Batch) -> Served {
        let Asked { to, params, .. } = asked;
        let PolicyTestParams { agent, cwd, tool_call } = read(params)?;
        path("cwd", &cwd)?;
        let agent = agent.unwrap_or_else(|| self.config.agent_for(Some(&cwd)).to_owned());
        if !self.config.agents.contains_key(&agent) {
            return Err(self.unknown_agent(&agent));
        }
        let option = |id: &str, kind: &str| json!({"optionId":id,"name":id,"kind":kind});
        let options = [option("allow", "allow_once"), option("reject", "reject_once")];
        let question = json!({"sessionId":"","toolCall":tool_call,"options":options});
        let question = serde_json::value::to_raw_value(&question).unwrap_or_default();
        let request = PermissionRequest::from_raw(&question)
            .map_err(|error| Fault::invalid(error.to_string()))?;
        let situation = Situation { agent: &agent, cwd: &cwd, once: None };
        let explained = explain(&self.config.policy, self.decisions.all(), &situation, &request);
        self.answer(to, &explained, out);
        Ok(())
    }
}

fn question_info(open: &Interaction) -> Option<acpd_api::Question> {
    let params = params_of(&open.line)?;
    Some(match &open.question {
        Question::Permission(options) => {
            let frozen = open.frozen.as_ref()?;
            acpd_api::Question::Permission {
                title: frozen.shown.title.clone(),
                tool_kind: Some(frozen.shown.kind.clone()),
                subject: frozen.asked().map(Into::into),
                shown: Some(Box::new(frozen.shown.clone())),
                changed: frozen.changed,
                options: options.iter().map(option_info).collect(),
            }
        }
        Question::Elicitation(mode) => {
            let request = ElicitationRequest::from_raw(params).ok()?;
            let message = request.message.into_owned();
            match mode {
                ElicitationMode::Url { url, .. } => {
                    acpd_api::Question::Url { message: message.into(), url: url.clone().into() }
                }
                ElicitationMode::Form(form) => {
                    let order = form.fields.iter().map(|field| (&field.name).into()).collect();
                    let schema = acp_wire::locate(&open.line, &["params", "requestedSchema"])?;
                    let schema = serde_json::from_slice(&open.line[schema]).ok()?;
                    acpd_api::Question::Form { message: message.into(), schema, order }
                }
            }
        }
    })
}

/// The answer that a person means, and what to remember of it.
fn chosen(
    id: InteractionId,
    question: &Question,
    given: GivenAnswer,
) -> Result<(Answer, Option<Verdict>), Fault> {
    match (question, given) {
        (Question::Permission(options), GivenAnswer::Option { option }) => {
            if !options.iter().any(|known| known.option_id == option) {
                return Err(Fault::invalid(format!("there is no option `{option}`"))
                    .hint(choosing(&format!("answer {}", id.text()), options)));
            }
            Ok((Answer::Permission(PermissionAnswer::Selected(option)), None))
        }
        (Question::Permission(options), GivenAnswer::Allow { always, option }) => {
            let option = ALLOW.option_of(id, options, always, option.as_deref())?;
            Ok((option, always.then_some(Verdict::Allow)))
        }
        (Question::Permission(options), GivenAnswer::Deny { always, option }) => {
            let option = DENY.option_of(id, options, always, option.as_deref())?;
            Ok((option, always.then_some(Verdict::Reject)))
        }
        (Question::Elicitation(mode), GivenAnswer::Accept { content }) => {
            let accepted = ElicitationAnswer::accept(content, mode).map_err(Fault::invalid)?;
            Ok((Answer::Elicitation(accepted), None))
        }
        (
            Question::Elicitation(_),
            GivenAnswer::Decline | GivenAnswer::Deny { always: false, option: None },
        ) => Ok((Answer::Elicitation(ElicitationAnswer::Decline), None)),
        (Question::Permission(_), _) => {
            Err(Fault::invalid("this question is answered by one of its options"))
        }
        (Question::Elicitation(_), _) => {
            Err(Fault::invalid("this question is answered by a form, or by accepting a page"))
        }
    }
}

impl Interaction {
    /// Returns whether this answer holds once. A yes is only for a call that is shown completely;
    /// no page is opened.
    pub(crate) fn is_for_once(&self, given: &GivenAnswer) -> bool {
        let offers = |kind: &str| match &self.question {
            Question::Permission(options) => options.iter().any(|option| option.kind == kind),
            Question::Elicitation(_) => false,
        };
        let is_whole = || self.frozen.as_ref().is_some_and(|frozen| frozen.shown.is_whole());
        match given {
            GivenAnswer::Allow { always: false, option: None } => offers(ALLOW.once) && is_whole(),
            GivenAnswer::Deny { always: false, option: None } => offers(DENY.once),
            GivenAnswer::Accept { .. } => {
                matches!(&self.question, Question::Elicitation(ElicitationMode::Form(_)))
            }
            GivenAnswer::Decline => true,
            _ => false,
        }
    }
}

/// The name of the option that was chosen, if the agent means it to hold from now on.
fn lasting(question: &Question, answer: &Answer) -> Option<String> {
    let Question::Permission(options) = question else { return None };
    let Answer::Permission(PermissionAnswer::Selected(chosen)) = answer else { return None };
    let option = options.iter().find(|option| option.option_id == *chosen)?;
    matches!(&*option.kind, "allow_always" | "reject_always").then(|| option.name.clone())
}

/// The refusal to remember what cannot be known again.
fn not_remembered(id: InteractionId, verdict: Verdict, question: &Question) -> Fault {
    let Plain { word, forever, .. } = if verdict == Verdict::Allow { ALLOW } else { DENY };
    let options = if let Question::Permission(options) = question { &**options } else { &[] };
    let own: Vec<_> = options.iter().filter(|option| option.kind == forever).collect();
    let id = id.text();
    let own = if own.is_empty() {
        String::new()
    } else {
        let own = choosing(&format!("{word} --always {id}"), own);
        format!("; the agent's own option for that: {own}")
    };
    let hint = format!("answer it without `--always`, or write a rule under `[policy]`{own}");
    Fault::invalid("the question does not say enough to know it again, so it cannot be remembered")
        .hint(hint)
}

const ALLOW: Plain = Plain { word: "allow", once: "allow_once", forever: "allow_always" };

const DENY: Plain = Plain { word: "deny", once: "reject_once", forever: "reject_always" };

/// A plain yes or no.
struct Plain {
    /// The command that says so.
    word: &'static str,
    /// The kind of the options that say so for once.
    once: &'static str,
    /// The kind of those that say so from now on.
    forever: &'static str,
}

impl Plain {
    /// The one option that says so. Of several a person has to choose.
    ///
    /// What is to hold from now on is said for once where that can be: acpd remembers it for exactly what was
    /// asked, while an agent's own option may cover more, and the agent asks acpd no more.
    fn option_of(
        &self,
        id: InteractionId,
        options: &[PermissionOption],
        always: bool,
        wanted: Option<&str>,
    ) -> Result<Answer, Fault> {
        let of_kind = |kind| distinct(options.iter().filter(move |option| option.kind == kind));
        let is_for_once =
            !always || of_kind(self.once).len() == 1 && of_kind(self.forever).len() < 2;
        let kinds = if is_for_once { [self.once, self.forever] } else { [self.forever, self.once] };
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
        let word = self.word;
        match fitting.as_slice() {
            [option] => {
                let chosen = PermissionAnswer::Selected(option.option_id.clone());
                Ok(Answer::Permission(chosen))
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
}

/// The command lines that choose one of these, to be copied.
fn choosing<'a>(command: &str, options: impl IntoIterator<Item = &'a PermissionOption>) -> String {
    let lines = distinct(options)
        .into_iter()
        .map(|option| format!("`acpctl {command} --option {}`", shell_word(&option.option_id)));
    lines.collect::<Vec<_>>().join(" or ")
}

/// The first option of each id: an agent hears nothing but the id, so all of one id are one answer.
fn distinct<'a>(
    options: impl IntoIterator<Item = &'a PermissionOption>,
) -> Vec<&'a PermissionOption> {
    let mut known = BTreeSet::new();
    options.into_iter().filter(|option| known.insert(&option.option_id)).collect()
}
