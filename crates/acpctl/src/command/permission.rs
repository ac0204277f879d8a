//! Questions that an agent asks before it acts.
//!
//! On a terminal the user answers with one key. Elsewhere nobody answers for them: the question is
//! told and stays open for another client.

use std::borrow::Cow;
use std::collections::VecDeque;

use acp_wire::Id;
use acp_wire::acp::{PermissionAnswer, PermissionOption, PermissionRequest};
use acpd_api::{Untrusted, escape};
use acpd_policy::subject_of;
use serde::Deserialize;
use serde_json::value::{RawValue, to_raw_value};

use crate::error::Result;
use crate::live::Live;
use crate::paint::{BOLD, DIM, Paint, YELLOW};
use crate::render::{ToolCall, about, named, request};
use crate::screen::Screen;
use crate::terminal::KeyMode;
use crate::text::{Text, text};
use crate::ui::Ui;

/// The open questions; the first one is on the screen.
#[derive(Debug, Default)]
pub(super) struct Questions {
    open: VecDeque<Question>,
    keys: Option<KeyMode>,
}

#[derive(Debug)]
struct Question {
    id: Id,
    call: ToolCall,
    /// What is asked, in one line.
    asked: Text,
    /// What the title and the places of the call do not say.
    about: Vec<Text>,
    choices: Vec<Choice>,
}

/// An answer and its key.
#[derive(Debug)]
struct Choice {
    key: char,
    option: PermissionOption,
}

impl Questions {
    /// Takes a `session/request_permission`.
    pub(super) fn ask(
        &mut self,
        id: Id,
        params: &RawValue,
        screen: &Screen,
        live: &mut Live,
        ui: &mut Ui,
    ) -> Result {
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Params {
            tool_call: ToolCall,
        }
        let Ok(question) = PermissionRequest::from_raw(params) else { return Ok(()) };
        let params: Params = serde_json::from_str(params.get()).unwrap_or_default();
        // Many agents say what a call is about when it begins, and ask with little more than its id.
        let said = screen.open_call(&question.session_id, &params.tool_call.id);
        let mut call = said.cloned().unwrap_or_default();
        call.change(params.tool_call);
        let question = Question::new(id, call, question);
        self.open.push_back(question);
        if self.open.len() == 1 { self.show(live, ui) } else { Ok(()) }
    }

    /// Whether something waits for an answer.
    pub(super) fn any(&self) -> bool {
        !self.open.is_empty()
    }

    /// Answers the question on the screen, if the key is one of its choices.
    pub(super) fn key(&mut self, key: u8, live: &mut Live, ui: &mut Ui) -> Result {
        let key = char::from(key).to_ascii_lowercase();
        let chosen = match self.open.front().filter(|_| self.keys.is_some()) {
            Some(question) => question.choices.iter().find(|choice| choice.key == key),
            None => None,
        };
        let Some(option) = chosen.map(|choice| choice.option.clone()) else { return Ok(()) };
        let name = text!("  {}", escape::one_line(&option.name));
        ui.say(ui.err_paint().apply(DIM, name));
        if let Some(question) = self.open.pop_front() {
            live.answer(&question.id, &PermissionAnswer::Selected(option.option_id))?;
        }
        self.show(live, ui)
    }

    /// Takes a `$/cancel_request`: somebody else answered a question, or its turn is over.
    pub(super) fn withdraw(&mut self, params: &RawValue, live: &mut Live, ui: &mut Ui) -> Result {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Withdrawn {
            request_id: Id,
        }
        let Ok(Withdrawn { request_id }) = serde_json::from_str(params.get()) else {
            return Ok(());
        };
        let Some(at) = self.open.iter().position(|question| question.id == request_id) else {
            return Ok(());
        };
        self.open.remove(at);
        if at > 0 {
            return Ok(());
        }
        ui.say(ui.err_paint().apply(DIM, "  no longer asked"));
        self.show(live, ui)
    }

    /// Gives every open question the answer that a cancelled turn asks for.
    pub(super) fn cancel(&mut self, live: &mut Live) -> Result {
        self.keys = None;
        for question in self.open.drain(..) {
            live.answer(&question.id, &PermissionAnswer::Cancelled)?;
        }
        Ok(())
    }

    /// Puts the first question on the screen.
    fn show(&mut self, live: &mut Live, ui: &mut Ui) -> Result {
        self.keys = None;
        let Some(question) = self.open.front() else { return Ok(()) };
        ui.stop_spinning();
        let paint = ui.err_paint();
        if ui.can_ask() {
            // What was typed up to now is thrown away before the question can be seen.
            self.keys = Some(KeyMode::enter()?);
            live.listen_to_keys()?;
            ui.talk(&prompt(question, paint));
        } else {
            ui.talk(&waiting(question, paint));
        }
        Ok(())
    }
}

impl Question {
    fn new(id: Id, call: ToolCall, question: PermissionRequest<'_>) -> Question {
        let input = call.raw_input.as_ref().and_then(|input| to_raw_value(input).ok());
        let mut question = question;
        question.title = question.title.or(call.title.as_ref().map(borrowed));
        question.kind = question.kind.or(call.kind.as_ref().map(borrowed));
        question.raw_input = question.raw_input.or(input.as_deref());
        let subject = subject_of(&question).map(|subject| subject.asked().into());
        let asked = named(call.title(), subject.as_ref());
        let about = about(&question, &request(&call, Paint::plain()));
        let choices = choices(&question.options);
        Question { id, call, asked, about, choices }
    }
}

fn borrowed(text: &Untrusted) -> Cow<'_, str> {
    Cow::Borrowed(text.raw())
}

fn prompt(question: &Question, paint: Paint) -> Text {
    let choices = question.choices.iter().map(|Choice { key, option }| {
        let key = paint.apply(BOLD, text!("[{}]", *key));
        text!("{} {}", key, escape::one_line(&option.name))
    });
    let choices = Text::join(choices, "  ");
    let call = request(&question.call, paint);
    let about: Text = question.about.iter().map(|line| text!("    {}\n", line)).collect();
    text!("{} {}{}  {}\n", paint.apply(YELLOW, "allow?"), call, about, choices)
}

fn waiting(question: &Question, paint: Paint) -> Text {
    let names = question.choices.iter().map(|choice| escape::one_line(&choice.option.name).into());
    let names = Text::join(names, " / ");
    let line = text!("waiting for permission: {} ({})", question.asked, names);
    let hint = "answer it with `acpctl allow` or `acpctl deny`, or in another client of this session; \
         Ctrl-C cancels the turn";
    text!("{}\n{}\n", paint.apply(YELLOW, line), paint.apply(DIM, hint))
}

/// A key for each option: a letter by its kind, or its number where the letter says too little.
fn choices(options: &[PermissionOption]) -> Vec<Choice> {
    let letter = |kind: &str| match kind {
        "allow_once" => Some('y'),
        "allow_always" => Some('a'),
        "reject_once" => Some('n'),
        "reject_always" => Some('d'),
        _ => None,
    };
    let is_alone = |kind: &str| options.iter().filter(|option| option.kind == kind).count() == 1;
    let keys: Vec<char> = options
        .iter()
        .zip("123456789".chars().chain(std::iter::repeat('?')))
        .map(|(option, digit)| {
            letter(&option.kind).filter(|_| is_alone(&option.kind)).unwrap_or(digit)
        })
        .collect();
    options.iter().cloned().zip(keys).map(|(option, key)| Choice { key, option }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(kinds: &[&str]) -> Question {
        let option = |kind: &&str| PermissionOption {
            option_id: format!("id-{kind}"),
            name: kind.replace('_', " "),
            kind: (*kind).to_owned(),
        };
        let call = ToolCall {
            id: "t".into(),
            title: Some("rm -rf build".into()),
            kind: Some("execute".into()),
            ..ToolCall::default()
        };
        let options: Vec<PermissionOption> = kinds.iter().map(option).collect();
        let question = PermissionRequest { options, ..PermissionRequest::of_call(None) };
        Question::new(1.into(), call, question)
    }

    #[test]
    fn each_kind_has_its_letter() {
        let question = question(&["allow_once", "allow_always", "reject_once", "reject_always"]);
        insta::assert_snapshot!(prompt(&question, Paint::plain()), @"
        allow? $ rm -rf build
          [y] allow once  [a] allow always  [n] reject once  [d] reject always
        ");
        insta::assert_snapshot!(waiting(&question, Paint::plain()), @"
        waiting for permission: rm -rf build (allow once / allow always / reject once / reject always)
        answer it with `acpctl allow` or `acpctl deny`, or in another client of this session; Ctrl-C cancels the turn
        ");
    }

    #[test]
    fn a_question_shows_what_runs_and_not_only_what_the_agent_calls_it() {
        let params = serde_json::json!({"sessionId": "s", "toolCall": {"toolCallId": "t",
            "title": "run the test command", "kind": "execute",
            "rawInput": {"command": "ls; rm -rf nothing", "cwd": "/w"}},
            "options": [{"optionId": "o", "name": "Allow", "kind": "allow_once"}]});
        let call = serde_json::from_value(params["toolCall"].clone()).unwrap();
        let params = serde_json::value::to_raw_value(&params).unwrap();
        let request = PermissionRequest::from_raw(&params).unwrap();
        let question = Question::new(1.into(), call, request);
        insta::assert_snapshot!(prompt(&question, Paint::plain()), @"
        allow? $ run the test command
            ls; rm -rf nothing
            in /w
          [y] Allow
        ");
        assert!(waiting(&question, Paint::plain()).as_str().starts_with(
            "waiting for permission: run the test command: run `ls; rm -rf nothing` in /w (Allow)"
        ));
    }

    #[test]
    fn choosers_and_unknown_kinds_get_numbers() {
        let keys: String =
            question(&["allow_once", "allow_once", "reject_once", "allow_persistent"])
                .choices
                .iter()
                .map(|choice| choice.key)
                .collect();
        assert_eq!(keys, "12n4");
    }
}
