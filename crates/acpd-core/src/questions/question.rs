//! Questions of agents, and valid answers.

use std::borrow::Cow;

use acp_wire::acp::{
    ClientCapabilities, ElicitationAnswer, ElicitationMode, ElicitationRequest, PermissionAnswer,
    PermissionOption, PermissionRequest,
};
use acp_wire::{Id, Message, locate};
use acpd_api::OptionInfo;
use serde::Serialize;
use serde_json::value::RawValue;

/// The longest address of a page that a person is to open, in bytes.
const LONGEST_URL: usize = 8 << 10;

#[derive(Debug, Clone)]
pub(crate) enum Question {
    /// `session/request_permission`, with the options that may be chosen.
    Permission(Vec<PermissionOption>),
    Elicitation(ElicitationMode),
}

/// Subject of the question.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Scope<'a> {
    /// Every controller of the session may answer.
    Session(Cow<'a, str>),
    /// The sender of this request to the agent may answer.
    Request(Id),
}

/// A valid answer. It serializes to the whole result.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub(crate) enum Answer {
    Permission(PermissionAnswer),
    Elicitation(ElicitationAnswer),
}

/// The params of a request line.
pub(crate) fn params_of(line: &[u8]) -> Option<&RawValue> {
    match acp_wire::parse(line) {
        Ok(Message::Request { params, .. }) => params,
        _ => None,
    }
}

/// An option of a question, for people.
pub(crate) fn option_info(option: &PermissionOption) -> OptionInfo {
    OptionInfo {
        option_id: option.option_id.clone().into(),
        name: option.name.clone().into(),
        kind: option.kind.clone().into(),
    }
}

fn is_empty_list(json: &[u8]) -> bool {
    serde_json::from_slice::<Vec<&RawValue>>(json).is_ok_and(|items| items.is_empty())
}

impl Question {
    /// Reads an agent's request; an error says what is wrong with it.
    pub(crate) fn read(line: &[u8]) -> Result<(Scope<'_>, Question), String> {
        let Ok(Message::Request { method, params: Some(params), .. }) = acp_wire::parse(line)
        else {
            return Err("params are missing".to_owned());
        };
        if method == "elicitation/create" {
            let request = ElicitationRequest::from_raw(params).map_err(|e| e.to_string())?;
            let scope = match (request.session_id, request.request_id) {
                (Some(session), _) => Scope::Session(session),
                (None, Some(id)) => Scope::Request(id),
                (None, None) => return Err("it is about nothing".to_owned()),
            };
            let url = match &request.mode {
                ElicitationMode::Url { url, .. } => url.len(),
                ElicitationMode::Form(_) => 0,
            };
            if url > LONGEST_URL {
                return Err(format!("`url` has {url} bytes, and {LONGEST_URL} are the most"));
            }
            return Ok((scope, Question::Elicitation(request.mode)));
        }
        let request = PermissionRequest::from_raw(params).map_err(|e| e.to_string())?;
        let given = locate(line, &["params", "options"]).map(|range| &line[range]);
        if request.options.is_empty() && given.is_some_and(|given| !is_empty_list(given)) {
            return Err("`options` is no list of objects with an `optionId`".to_owned());
        }
        Ok((Scope::Session(request.session_id), Question::Permission(request.options)))
    }

    /// A client's result as an answer; nothing if it is none.
    pub(crate) fn answer(&self, result: &RawValue) -> Option<Answer> {
        match self {
            Question::Permission(options) => {
                let answer = PermissionAnswer::from_raw(result).ok()?;
                let is_offered = match &answer {
                    PermissionAnswer::Selected(chosen) => {
                        options.iter().any(|option| option.option_id == *chosen)
                    }
                    PermissionAnswer::Cancelled => true,
                };
                is_offered.then_some(Answer::Permission(answer))
            }
            Question::Elicitation(mode) => {
                ElicitationAnswer::from_raw(result, mode).ok().map(Answer::Elicitation)
            }
        }
    }

    /// The form of a result that answers it, for the authors of clients.
    pub(crate) fn form_of_answers(&self) -> &'static str {
        match self {
            Question::Permission(_) => {
                r#"{"outcome":{"outcome":"selected","optionId":…}} with an offered option, nor {"outcome":{"outcome":"cancelled"}}"#
            }
            Question::Elicitation(_) => r#"{"action":"accept","content":…} that fits the form"#,
        }
    }

    /// The answer when no client can give one any longer.
    pub(crate) fn cancelled(&self) -> Answer {
        match self {
            Question::Permission(_) => Answer::Permission(PermissionAnswer::Cancelled),
            Question::Elicitation(_) => Answer::Elicitation(ElicitationAnswer::Cancel),
        }
    }

    /// Returns whether a client with these capabilities can show it.
    pub(crate) fn is_for(&self, client: &ClientCapabilities) -> bool {
        match self {
            Question::Permission(_) => true,
            Question::Elicitation(ElicitationMode::Form(_)) => client.elicitation_form,
            Question::Elicitation(ElicitationMode::Url { .. }) => client.elicitation_url,
        }
    }
}
