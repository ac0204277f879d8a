//! Open questions: what the daemon asks this client.

use acp_wire::acp::{ElicitationMode, ElicitationRequest, PermissionRequest};
use acp_wire::{Id as RequestId, legible};
use acpd_api::{Meta, OptionInfo, PermissionMeta, Question as Asked, Untrusted};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::State;
use super::step::Asked as About;
use crate::block::{Block, Id, Kind, Progress, Question};
use crate::lenient;

impl State {
    /// This client has answered a question, or acpd has taken it back.
    pub fn close_question(&mut self, request: u64) -> Vec<Id> {
        self.close_questions(|block| block.id == Id::Question(request))
    }

    /// The connection was lost: what is still open is asked again.
    pub fn close_all_questions(&mut self) -> Vec<Id> {
        self.close_questions(|_| true)
    }

    /// Takes a request of the daemon.
    pub(super) fn asked(&mut self, id: &RequestId, method: &str, params: &RawValue) -> Vec<Id> {
        let Some(number) = id.as_issued() else { return Vec::new() };
        let question = match method {
            "session/request_permission" => permission(params),
            "elicitation/create" => elicitation(params),
            _ => None,
        };
        let Some(question) = question else { return Vec::new() };
        let id = Id::Question(number);
        self.questions.retain(|block| block.id != id);
        let block = Block { id, ..Block::new(0, Kind::Question(question), Progress::Running) };
        self.questions.push(block);
        self.questions_changed(vec![id])
    }

    pub(super) fn withdrawn(&mut self, params: &Map<String, Value>) -> Vec<Id> {
        let request = params.get("requestId").and_then(RequestId::from_value);
        let request = request.and_then(|request| request.as_issued());
        request.map_or_else(Vec::new, |request| self.close_question(request))
    }

    /// Closes a question that is answered according to the journal.
    pub(super) fn answered(&mut self, answered: &Untrusted) -> Vec<Id> {
        self.close_questions(
            |block| matches!(&block.kind, Kind::Question(question) if question.id == *answered),
        )
    }

    /// Returns the tool calls and sessions that open questions are about.
    pub(super) fn asked_about(&self) -> About {
        let questions = self.questions.iter().filter_map(|block| match &block.kind {
            Kind::Question(question) => Some(question),
            _ => None,
        });
        let about = questions.flat_map(|question| {
            [Some(question.session.clone()), question.tool_call.clone()].into_iter().flatten()
        });
        about.collect()
    }

    fn close_questions(&mut self, is_it: impl Fn(&Block) -> bool) -> Vec<Id> {
        let closed = self.questions.iter().filter(|block| is_it(block)).map(|block| block.id);
        let closed: Vec<Id> = closed.collect();
        if closed.is_empty() {
            return closed;
        }
        self.questions.retain(|block| !closed.contains(&block.id));
        self.questions_changed(closed)
    }

    /// Applies the rules of folding again: the subject of a question is open as long as the question is.
    fn questions_changed(&mut self, mut changed: Vec<Id>) -> Vec<Id> {
        let about = self.asked_about();
        for turn in &mut self.turns {
            changed.extend(turn.settle(&about));
        }
        changed
    }
}

fn permission(params: &RawValue) -> Option<Question> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(rename = "_meta", default)]
        meta: Meta<Option<PermissionMeta>>,
    }
    let request = PermissionRequest::from_raw(params).ok()?;
    let meta = serde_json::from_str::<Params>(&legible(params.get())).ok();
    let meta = meta.and_then(|it| it.meta.own);
    let (id, shown, changed) = meta
        .map_or_else(Default::default, |meta| (meta.id, Some(Box::new(meta.shown)), meta.changed));
    let text = |text: std::borrow::Cow<'_, str>| Untrusted::from(text);
    let options = request.options.into_iter().map(|option| OptionInfo {
        option_id: option.option_id.into(),
        name: option.name.into(),
        kind: option.kind.into(),
    });
    let asked = Asked::Permission {
        title: request.title.map(text),
        tool_kind: request.kind.map(text),
        subject: None,
        shown,
        changed,
        options: options.collect(),
    };
    let tool_call = request.tool_call_id.map(text);
    let session = text(request.session_id);
    Some(Question { id: id.into(), session, tool_call, asked, answer: None })
}

fn elicitation(params: &RawValue) -> Option<Question> {
    let request = ElicitationRequest::from_raw(params).ok()?;
    let members = lenient::members(params.get())?;
    let message = Untrusted::from(request.message);
    let asked = match request.mode {
        ElicitationMode::Form(form) => {
            let schema = members.get("requestedSchema").cloned().unwrap_or_default();
            let order = form.fields.iter().map(|field| field.name.as_str().into()).collect();
            Asked::Form { message, schema, order }
        }
        ElicitationMode::Url { url, .. } => Asked::Url { message, url: url.into() },
    };
    let session = request.session_id.map(Untrusted::from).unwrap_or_default();
    let tool_call = super::text(&members, "toolCallId");
    let meta = members.get("_meta").and_then(|meta| meta.get("_acpd"));
    let id = meta.and_then(|meta| meta.get("id")).and_then(Value::as_str).unwrap_or_default();
    Some(Question { id: id.into(), session, tool_call, asked, answer: None })
}
