//! An open question, and decisions about it: by rules, or remembered. Each change of the remembered
//! ones is a record.

use std::borrow::Cow;
use std::collections::BTreeMap;

use acp_wire::acp::{
    ClientCapabilities, ElicitationAnswer, ElicitationMode, ElicitationRequest, PermissionAnswer,
    PermissionOption, PermissionRequest,
};
use acp_wire::bound::SENTENCE;
use acp_wire::{Id, Message, build, clipped, locate, lossy_at, set_member};
use acpd_api::{
    AnswerInfo, ClientName, Doing, DoingKind, InteractionInfo, NAMESPACE, OptionInfo,
    PermissionDecided, PolicyList, QuestionAnswered, RememberedInfo,
};
use acpd_policy::{Decision, Explanation, Policy, Remembered, Situation, Verdict, decide, explain};
use bytes::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::cx::Cx;
use crate::event::{ClosedQuestion, EngineEvent};
use crate::fault::Fault;
use crate::gist::gist;
use crate::ids::{ClientId, HostId, InteractionId, Requester, SessionKey, Time};
use crate::record::{InteractionRow, Row, RowId, SessionRow};
use crate::tool_calls::frozen::Frozen;
use crate::views::{Responder, with_known_session, with_own_content};

/// Maximum length of a page's address in bytes.
const LONGEST_URL: usize = 8 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QuestionSubject {
    /// Every controller of the session may answer.
    Session(SessionKey),
    /// The sender of this request to the agent may answer.
    Request(u64),
}

#[derive(Debug, Default)]
pub(crate) struct QuestionPlace<'a> {
    /// The session; none for a question about a request.
    pub(crate) row: Option<&'a SessionRow>,
    pub(crate) is_running: bool,
    pub(crate) is_cancelling: bool,
    /// The sender's answer to all permission questions of the turn.
    pub(crate) once: Option<Verdict>,
    /// The request, unless its sender is gone for good.
    pub(crate) requester: Option<&'a Requester>,
    /// The controllers of the session, or the sender of the request.
    pub(crate) responders: Vec<Responder<'a>>,
}

impl QuestionPlace<'_> {
    /// Returns whether no client can ever answer.
    pub(super) fn is_lost(&self) -> bool {
        self.row.is_none() && self.requester.is_none()
    }

    pub(super) fn responder(&self, client: ClientId) -> Option<&Responder<'_>> {
        self.responders.iter().find(|responder| responder.client == client)
    }
}

#[derive(Debug, Clone)]
pub(crate) enum QuestionKind {
    /// `session/request_permission`, with its options.
    Permission(Vec<PermissionOption>),
    Elicitation(ElicitationMode),
}

/// A valid answer. Serializes to the whole result.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub(crate) enum QuestionAnswer {
    Permission(PermissionAnswer),
    Elicitation(ElicitationAnswer),
}

#[derive(Debug)]
pub(crate) struct OpenQuestion {
    pub(crate) subject: QuestionSubject,
    /// Process and id of the agent's request; none for acpd's own question about the budget.
    pub(super) request: Option<(HostId, Id)>,
    /// The request with the session's public id.
    pub(crate) line: Bytes,
    /// The same as an agent of version 2 has asked it.
    pub(crate) original: Option<Bytes>,
    pub(super) kind: QuestionKind,
    pub(super) at: Time,
    pub(super) frozen: Option<Box<Frozen>>,
    /// The diff whose file is being read. The question waits for it.
    pub(super) looks_at: Option<usize>,
    pub(super) offers: BTreeMap<ClientId, Offer>,
}

#[derive(Debug, Default)]
pub(super) struct Offer {
    /// Number of the request to the client, while it is open.
    pub(super) number: Option<u64>,
    pub(super) invalid: u32,
}

impl Offer {
    pub(super) fn withdrawal(&self) -> Option<Bytes> {
        Some(build::cancel_request(&Id::issued(self.number?)))
    }
}

fn option_info(option: &PermissionOption) -> OptionInfo {
    OptionInfo {
        option_id: option.option_id.clone().into(),
        name: option.name.clone().into(),
        kind: option.kind.clone().into(),
    }
}

impl OpenQuestion {
    /// `host`: `None` for acpd's own question.
    ///
    /// # Errors
    /// When the request cannot be read, or is about no session.
    pub(crate) fn read(
        host: Option<HostId>,
        line: &Bytes,
        at: Time,
        route: impl FnOnce(&str) -> Option<SessionKey>,
    ) -> Result<OpenQuestion, String> {
        let Ok(Message::Request { id, method, params: Some(params) }) = acp_wire::parse(line)
        else {
            return Err("params are missing".to_owned());
        };
        let (session, request, kind) = if method == "elicitation/create" {
            let request = ElicitationRequest::from_raw(params).map_err(|e| e.to_string())?;
            let url = match &request.mode {
                ElicitationMode::Url { url, .. } => url.len(),
                ElicitationMode::Form(_) => 0,
            };
            if url > LONGEST_URL {
                return Err(format!("`url` has {url} bytes, and {LONGEST_URL} are the most"));
            }
            (request.session_id, request.request_id, QuestionKind::Elicitation(request.mode))
        } else {
            let request = PermissionRequest::from_raw(params).map_err(|e| e.to_string())?;
            let given = locate(line, &["params", "options"]).map(|range| &line[range]);
            let items = given.map(serde_json::from_slice::<Vec<&RawValue>>);
            let is_none = items.is_none_or(|items| items.is_ok_and(|items| items.is_empty()));
            if request.options.is_empty() && !is_none {
                return Err("`options` is no list of objects with an `optionId`".to_owned());
            }
            (Some(request.session_id), None, QuestionKind::Permission(request.options))
        };
        let subject = match (session, request) {
            (Some(session), _) => {
                let key = route(&session).ok_or_else(|| format!("no session `{session}`"))?;
                QuestionSubject::Session(key)
            }
            // No request has the number 0.
            (None, Some(id)) => QuestionSubject::Request(id.as_issued().unwrap_or_default()),
            (None, None) => return Err("it is about nothing".to_owned()),
        };
        Ok(OpenQuestion {
            subject,
            request: host.map(|host| (host, id)),
            line: line.clone(),
            original: None,
            kind,
            at,
            frozen: None,
            looks_at: None,
            offers: BTreeMap::new(),
        })
    }

    pub(crate) fn session(&self) -> Option<SessionKey> {
        match self.subject {
            QuestionSubject::Session(key) => Some(key),
            QuestionSubject::Request(_) => None,
        }
    }

    pub(crate) fn host(&self) -> Option<HostId> {
        self.request.as_ref().map(|(host, _)| *host)
    }

    pub(crate) fn is_own(&self) -> bool {
        self.request.is_none()
    }

    /// Returns whether people are asked: no file is being read.
    pub(super) fn is_asked(&self) -> bool {
        self.looks_at.is_none()
    }

    pub(super) fn options(&self) -> &[PermissionOption] {
        match &self.kind {
            QuestionKind::Permission(options) => options,
            QuestionKind::Elicitation(_) => &[],
        }
    }

    pub(super) fn chosen(&self, answer: &QuestionAnswer) -> Option<&PermissionOption> {
        self.options().iter().find(|option| answer.option() == Some(&*option.option_id))
    }

    pub(super) fn request_to(&self, client: ClientId) -> Option<u64> {
        self.offers.get(&client)?.number
    }

    /// acpd's own question has no row.
    pub(super) fn save(&self, cx: &mut Cx, id: InteractionId) {
        let Some(host) = self.host() else { return };
        let (session, line, frozen) = (self.session(), self.line.clone(), self.frozen.clone());
        let original =
            self.original.as_ref().map(|line| String::from_utf8_lossy(line).into_owned());
        let row = InteractionRow { id, session, host, line, original, at: self.at, frozen };
        cx.put(Row::Interaction(row));
    }

    fn message(&self) -> Cow<'_, str> {
        lossy_at(&self.line, &["params", "message"]).unwrap_or_default()
    }

    pub(super) fn doing(&self) -> Doing {
        let text = self.frozen.as_ref().map_or_else(|| self.message(), |frozen| frozen.gist());
        Doing { kind: DoingKind::Waiting, text: gist(&text).into(), since: self.at.0 }
    }

    pub(super) fn reply(&self, cx: &mut Cx, line: impl FnOnce(&Id) -> Bytes) {
        if let Some((host, id)) = &self.request {
            cx.answer(*host, line(id));
        }
    }

    pub(super) fn cancel(&self, cx: &mut Cx) {
        self.reply(cx, |id| match &self.kind {
            QuestionKind::Permission(_) => build::response(id, &PermissionAnswer::Cancelled),
            QuestionKind::Elicitation(_) => build::response(id, &ElicitationAnswer::Cancel),
        });
    }

    pub(super) fn close(&self, cx: &mut Cx, id: InteractionId) {
        let offers = self.offers.iter();
        let withdrawals = offers.filter_map(|(client, offer)| Some((*client, offer.withdrawal()?)));
        let is_permission = matches!(self.kind, QuestionKind::Permission(_));
        let closed = ClosedQuestion {
            question: id,
            session: self.session(),
            permission: is_permission.then(|| cx.now.since(self.at)),
            withdrawals: withdrawals.collect(),
        };
        cx.report(EngineEvent::QuestionClosed(closed));
    }

    /// Returns the request with the ids that the client knows.
    pub(super) fn line_for(
        &self,
        id: InteractionId,
        place: &QuestionPlace<'_>,
        to: &Responder<'_>,
    ) -> Bytes {
        if let Some(request) = place.requester {
            return set_member(&self.line, &["params", "requestId"], request.id.raw().as_bytes());
        }
        let line = with_own_content(&self.line, &["params", "toolCall", "content"], to.view);
        let turn = place.row.map_or(0, |row| row.prompts);
        let line = to.view.version.question(&line, self.original.as_ref(), turn);
        let public_id = place.row.map_or("", |row| &row.public_id);
        let line = with_known_session(line, public_id, to.view.capabilities.subagents);
        if !to.view.notices {
            return line;
        }
        let meta = match &self.frozen {
            Some(frozen) => json!(frozen.meta(id.text())),
            None => json!({ "id": id.text() }),
        };
        set_member(&line, &["params", "_meta", NAMESPACE], meta.to_string().as_bytes())
    }

    pub(super) fn answered_info(
        &self,
        id: InteractionId,
        row: &SessionRow,
        answer: &QuestionAnswer,
        by: ClientName,
        at: Time,
    ) -> Option<QuestionAnswered> {
        let frozen = self.frozen.as_ref();
        Some(QuestionAnswered {
            session_id: row.public_id.clone().into(),
            id: id.text().into(),
            tool_call_id: frozen.and_then(|frozen| frozen.tool_call_id()),
            title: match frozen {
                Some(frozen) => frozen.shown.title.clone(),
                None => Some(clipped(&self.message(), SENTENCE).into()),
            },
            subject: frozen.and_then(|frozen| frozen.asked()).map(Into::into),
            answer: match answer {
                QuestionAnswer::Permission(PermissionAnswer::Selected(_)) => {
                    AnswerInfo::Option { option: option_info(self.chosen(answer)?) }
                }
                QuestionAnswer::Elicitation(ElicitationAnswer::Accept { .. }) => AnswerInfo::Accept,
                QuestionAnswer::Elicitation(ElicitationAnswer::Decline) => AnswerInfo::Decline,
                QuestionAnswer::Permission(PermissionAnswer::Cancelled)
                | QuestionAnswer::Elicitation(ElicitationAnswer::Cancel) => AnswerInfo::Cancel,
            },
            by,
            at: at.0,
        })
    }

    /// Returns `None` if people are not asked yet.
    pub(crate) fn info(
        &self,
        id: InteractionId,
        agent: String,
        row: Option<&SessionRow>,
        parent: Option<&str>,
    ) -> Option<InteractionInfo> {
        self.is_asked().then_some(())?;
        Some(InteractionInfo {
            id: id.text().into(),
            agent: agent.into(),
            session_id: row.map(|row| row.public_id.clone().into()),
            name: row.and_then(|row| row.name.clone()).map(Into::into),
            cwd: row.map(|row| row.cwd.clone().into()),
            parent: parent.map(Into::into),
            at: self.at.0,
            question: self.shown()?,
        })
    }

    fn shown(&self) -> Option<acpd_api::Question> {
        Some(match &self.kind {
            QuestionKind::Permission(options) => {
                let frozen = self.frozen.as_ref()?;
                acpd_api::Question::Permission {
                    title: frozen.shown.title.clone(),
                    tool_kind: Some(frozen.shown.kind.clone()),
                    subject: frozen.asked().map(Into::into),
                    shown: Some(Box::new(frozen.shown.clone())),
                    changed: frozen.changed,
                    options: options.iter().map(option_info).collect(),
                }
            }
            QuestionKind::Elicitation(mode) => {
                let message = self.message().into_owned().into();
                match mode {
                    ElicitationMode::Url { url, .. } => {
                        acpd_api::Question::Url { message, url: url.clone().into() }
                    }
                    ElicitationMode::Form(form) => {
                        let order = form.fields.iter().map(|field| (&field.name).into()).collect();
                        let schema = locate(&self.line, &["params", "requestedSchema"])?;
                        let schema = serde_json::from_slice(&self.line[schema]).ok()?;
                        acpd_api::Question::Form { message, schema, order }
                    }
                }
            }
        })
    }
}

impl QuestionAnswer {
    pub(super) fn option(&self) -> Option<&str> {
        match self {
            QuestionAnswer::Permission(PermissionAnswer::Selected(option)) => Some(option),
            _ => None,
        }
    }
}

impl QuestionKind {
    /// Returns `None` for an invalid answer.
    pub(super) fn answer(&self, result: &RawValue) -> Option<QuestionAnswer> {
        match self {
            QuestionKind::Permission(options) => {
                let answer = QuestionAnswer::Permission(PermissionAnswer::from_raw(result).ok()?);
                let is_offered = |id: &str| options.iter().any(|option| option.option_id == *id);
                answer.option().is_none_or(is_offered).then_some(answer)
            }
            QuestionKind::Elicitation(mode) => {
                ElicitationAnswer::from_raw(result, mode).ok().map(QuestionAnswer::Elicitation)
            }
        }
    }

    pub(super) fn form_of_answers(&self) -> &'static str {
        match self {
            QuestionKind::Permission(_) => {
                r#"{"outcome":{"outcome":"selected","optionId":…}} with an offered option, nor {"outcome":{"outcome":"cancelled"}}"#
            }
            QuestionKind::Elicitation(_) => r#"{"action":"accept","content":…} that fits the form"#,
        }
    }

    pub(super) fn is_for(&self, client: &ClientCapabilities) -> bool {
        match self {
            QuestionKind::Permission(_) => true,
            QuestionKind::Elicitation(ElicitationMode::Form(_)) => client.elicitation_form,
            QuestionKind::Elicitation(ElicitationMode::Url { .. }) => client.elicitation_url,
        }
    }
}

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
        cx.put(Row::Remembered(new));
        Some(id)
    }

    pub(crate) fn forget(&mut self, cx: &mut Cx, id: i64) -> Result<(), Fault> {
        if self.known.extract_if(.., |known| known.id == id).count() == 0 {
            return Err(Fault::invalid(format!("no decision {id} is remembered"))
                .hint("`acpctl policy ls` lists them"));
        }
        cx.delete(RowId::Remembered(id));
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
