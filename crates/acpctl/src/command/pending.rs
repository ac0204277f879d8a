//! `acpctl pending`, `allow`, `deny` and `answer`: agents' questions, answered from any terminal.

use std::collections::BTreeMap;
use std::time::Duration;

use acp_wire::{Message, parse};
use acpd_api::{
    AnswerParams, AnswerResult, Empty, ExitCode, GivenAnswer, InteractionInfo, InteractionList,
    LogParams, OptionInfo, Question, QuestionAnswered, SessionInfo, SessionRef, Shown, Untrusted,
    Watched, escape, method,
};
use acpd_client::CallError;
use acpd_view::{Sheet, about, person};
use clap::Args;
use serde::Serialize;

use crate::args::Json;
use crate::confirm::{pick, yes};
use crate::daemon::info;
use crate::error::{CommandError, Result};
use crate::info::daemon::unreachable;
use crate::info::question::{asked, asker, described, given, remembered, table};
use crate::live::{Door, RowEvent, RowWatch, me};
use crate::lookup::{self, Care, Wanted};
use crate::text::{BOLD, Role, Text, shell_word, text};
use crate::ui::Ui;
use crate::{form, human};

#[derive(Debug, Args)]
#[command(after_long_help = examples!(
    "acpctl pending" => "List open questions",
    "acpctl pending main" => "Show the question of the session `main`",
    "acpctl pending --follow" => "Print each new question, and who answered it",
))]
pub(super) struct Pending {
    /// Id of a question, or its session: show all of it [default: list open questions].
    id: Option<String>,
    /// Keep printing new questions and their answers.
    #[arg(short, long, conflicts_with = "id")]
    follow: bool,
    /// Look only among questions of this agent.
    #[arg(short, long, requires = "id")]
    agent: Option<String>,
    #[command(flatten)]
    json: Json,
}

// Arguments of `allow` and `deny`.
#[derive(Debug, Args)]
pub(super) struct Decide {
    /// Id of the question, or its session [default: the only open question].
    id: Option<String>,
    /// Remember the decision for this agent and directory.
    #[arg(long)]
    always: bool,
    /// Choose this option, if several allow or deny.
    #[arg(long, value_name = "OPTION")]
    option: Option<String>,
    /// Look only among questions of this agent.
    #[arg(short, long)]
    agent: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UserDecision {
    Allow,
    Deny,
}

#[derive(Debug, Args)]
#[command(after_long_help = examples!(
    "\
On a terminal and without options, it asks for each value. Fields without `--field` get their defaults.";
    "acpctl answer main" => "Fill in the form of `main`, field by field",
    "acpctl answer main --field branch=main" => "Fill in one field; the others get their defaults",
    "acpctl answer main --decline" => "Decline it",
))]
pub(super) struct Answer {
    /// Id of the question, or its session [default: the only open question].
    id: Option<String>,
    /// Choose this option.
    #[arg(long, value_name = "OPTION", conflicts_with_all = ["fields", "accept", "decline"])]
    option: Option<String>,
    /// Fill in a field of the form; repeat it for several values.
    #[arg(long = "field", value_name = "NAME=VALUE", conflicts_with = "decline")]
    fields: Vec<String>,
    /// Agree to open the page, or send the form with its defaults.
    #[arg(long, conflicts_with = "decline")]
    accept: bool,
    /// Decline the form or the page.
    #[arg(long)]
    decline: bool,
    /// Look only among questions of this agent.
    #[arg(short, long)]
    agent: Option<String>,
}

pub(super) fn pending(args: &Pending, ui: &mut Ui) -> Result {
    if args.follow {
        return follow(args.json.json, ui);
    }
    if let Some(id) = &args.id {
        let found = find(Some(id), args.agent.as_deref(), Care::Guess, ui)?;
        let text = text!("{} {}\n{}", found.id, asker(&found), whole(&found, ui));
        return ui.show(args.json.json, &found, text);
    }
    let list: InteractionList = ui.door().connect()?.call(method::INTERACTION_LIST, &Empty {})?;
    let nothing = list.interactions.is_empty().then_some("there are no open questions");
    let table = table(&list.interactions, human::now(), ui.out_width());
    ui.show_list(args.json.json, &list, nothing, table)?;
    if !args.json.json {
        ui.talk(&unreachable(&list.hosts));
    }
    Ok(())
}

pub(super) fn decide(args: &Decide, decision: UserDecision, ui: &mut Ui) -> Result {
    let found = find(args.id.as_deref(), args.agent.as_deref(), Care::Exact, ui)?;
    let is_by_id = args.id.as_ref().is_some_and(|id| found.id == *id);
    let always = args.always;
    let option = match (&args.option, &found.question) {
        (None, Question::Permission { options, .. }) => {
            of_several(&found, options, decision, always, ui).map_err(or_left_open)?
        }
        (option, _) => option.clone(),
    };
    let (answer, verb) = match (decision, &found.question) {
        // A page only needs a yes.
        (UserDecision::Allow, Question::Url { .. }) if !always && option.is_none() => {
            (GivenAnswer::Accept { content: None }, "allowed")
        }
        (UserDecision::Allow, _) => (GivenAnswer::Allow { always, option }, "allowed"),
        (UserDecision::Deny, _) => (GivenAnswer::Deny { always, option }, "denied"),
    };
    let is_allowed = decision == UserDecision::Allow;
    let is_seen = is_allowed && !is_by_id && confirm(&found, ui)?;
    let verb = text!("{}{}", verb, if always { ", from now on" } else { "" });
    give(&found, answer, verb, ui)?;
    if is_allowed && !is_seen {
        ui.talk(&omitted_details(&found));
    }
    Ok(())
}

pub(super) fn answer(args: &Answer, ui: &mut Ui) -> Result {
    let found = find(args.id.as_deref(), args.agent.as_deref(), Care::Exact, ui)?;
    let answer = chosen(&found, args, ui).map_err(or_left_open)?;
    let verb = if answer == GivenAnswer::Decline { "declined" } else { "answered" };
    give(&found, answer, verb.into(), ui)
}

fn chosen(found: &InteractionInfo, args: &Answer, ui: &mut Ui) -> Result<GivenAnswer> {
    if args.decline {
        return Ok(GivenAnswer::Decline);
    }
    if let Some(option) = &args.option {
        return Ok(GivenAnswer::Option { option: option.clone() });
    }
    match &found.question {
        Question::Form { message, schema, order } => {
            let form = acpd_view::form::read(schema, order)?;
            let content = if args.accept || !args.fields.is_empty() {
                form::filled(&form, &args.fields, &found.id)?
            } else if ui.can_ask() {
                ui.say(Text::styled(BOLD, message));
                let content = form::ask(&form, ui)?;
                if form.fields.is_empty() && !yes(ui, "the form has no fields; send it? y/n > ")? {
                    return Ok(GivenAnswer::Decline);
                }
                content
            } else {
                return Err(CommandError::usage("the question needs a filled-in form")
                    .hint(form::usage(&form, &found.id)));
            };
            Ok(GivenAnswer::Accept { content: Some(content) })
        }
        Question::Permission { .. } if args.accept => {
            Err(CommandError::usage("`--accept` is for forms and pages, and this is neither")
                .hint(text!("`acpctl allow {}` allows it", found.id)))
        }
        _ if !args.fields.is_empty() => Err(CommandError::usage("the question is not a form")
            .hint("`acpctl pending` shows the question")),
        Question::Permission { options, .. } => {
            let all: Vec<&OptionInfo> = options.iter().collect();
            let why = "the question needs an option".into();
            let option = chosen_option(found, &all, why, &"answer".into(), ui)?;
            Ok(GivenAnswer::Option { option })
        }
        Question::Url { .. } if args.accept => Ok(GivenAnswer::Accept { content: None }),
        Question::Url { .. } => page(found, ui),
    }
}

fn page(found: &InteractionInfo, ui: &mut Ui) -> Result<GivenAnswer> {
    let id = &found.id;
    if !ui.can_ask() {
        let text = text!("this needs a look at a page: {}", described(found));
        let hint = text!("then `acpctl allow {}` or `acpctl deny {}`", id, id);
        return Err(CommandError::usage(text).hint(hint));
    }
    ui.say(described(found));
    Ok(if yes(ui, "agree to open it? y/n > ")? {
        GivenAnswer::Accept { content: None }
    } else {
        GivenAnswer::Decline
    })
}

fn left_open() -> CommandError {
    CommandError::new(ExitCode::Cancelled, "nothing was answered; the question stays open")
}

fn or_left_open(error: CommandError) -> CommandError {
    if error.code() == ExitCode::Cancelled { left_open() } else { error }
}

/// Uses a new connection, because the user may have taken long.
fn give(found: &InteractionInfo, answer: GivenAnswer, verb: Text, ui: &mut Ui) -> Result {
    let is_denied = matches!(answer, GivenAnswer::Deny { .. });
    let kind = if is_denied { "reject_always" } else { "allow_always" };
    let params =
        AnswerParams { id: found.id.raw().to_owned(), answer, by: Some(me()), parent: None };
    let given: AnswerResult = ui.door().connect()?.call(method::INTERACTION_ANSWER, &params)?;
    ui.say(text!("{}: {}", verb, described(found)));
    for line in remembered(found, &given, kind) {
        ui.say(line);
    }
    Ok(())
}

/// Finds a question by its id or its session, or else the only question.
fn find(
    wanted: Option<&str>,
    agent: Option<&str>,
    care: Care,
    ui: &mut Ui,
) -> Result<InteractionInfo> {
    let mut connection = ui.door().connect()?;
    let list: InteractionList = connection.call(method::INTERACTION_LIST, &Empty {})?;
    let mut open = list.interactions;
    open.retain(|question| agent.is_none_or(|agent| lookup::is_agent(&question.agent, agent)));
    let by_session = wanted.filter(|wanted| open.iter().all(|question| question.id != **wanted));
    if let Some(wanted) = by_session {
        let asks = |session: &SessionInfo, question: &InteractionInfo| {
            question.is_of(&session.agent, &session.session_id)
        };
        let list = lookup::all(&mut connection)?;
        let mut asking = list.clone();
        asking.sessions.retain(|session| open.iter().any(|open| asks(session, open)));
        let here = Wanted::here(wanted, agent);
        // Sessions without questions are considered only if no session with one matches.
        let found = here.choose(asking, care, |note| ui.note(note));
        let found = found.or_else(|error| match error.code() {
            ExitCode::NotFound => here.choose(list, care, |note| ui.note(note)),
            _ => Err(error),
        });
        let session = found.map_err(|error| match error.code() {
            ExitCode::NotFound => {
                let wanted = escape::one_line(wanted);
                let text = text!("no open question has this id or session: `{}`", wanted);
                CommandError::new(ExitCode::NotFound, text).hint(PENDING)
            }
            _ => error,
        })?;
        open.retain(|question| asks(&session, question));
        if open.is_empty() {
            let text = text!("{} has no open question", session.handle());
            return Err(CommandError::new(ExitCode::NotFound, text).hint(PENDING));
        }
    } else if let Some(wanted) = wanted {
        open.retain(|question| question.id == wanted);
    }
    only(open)
}

fn only(mut open: Vec<InteractionInfo>) -> Result<InteractionInfo> {
    match open.len() {
        1 => Ok(open.remove(0)),
        0 => Err(CommandError::new(ExitCode::NotFound, "there are no open questions")),
        count => {
            let lines = open.iter().map(|open| text!("\n  {}  {}", open.id, described(open)));
            let hint = text!("choose an id:{}", lines.collect::<Text>());
            Err(CommandError::usage(text!("{} questions are open", count)).hint(hint))
        }
    }
}

const PENDING: &str = "it may be answered already; `acpctl pending` lists open questions";

fn whole(open: &InteractionInfo, ui: &Ui) -> Text {
    match call_of(open) {
        Some((_, _, sheet)) => Text::lines(&sheet.whole(ui.out_width())),
        None => text!("{}\n", asked(&open.question)),
    }
}

fn omitted_details(open: &InteractionInfo) -> Text {
    let says_all = |shown: &Shown| {
        let is_line = |text: &Untrusted| !text.raw().contains('\n');
        shown.is_understood() && shown.diffs.is_empty() && shown.commands.iter().all(is_line)
    };
    match call_of(open) {
        Some((shown, _, sheet)) if !says_all(shown) => Text::lines(&sheet.whole(None)),
        _ => Text::new(),
    }
}

/// Shows the call if the user named only its session, and asks for confirmation: a question's id
/// stands for one call, a session's name for any of its questions. Returns whether the user has
/// seen the call.
fn confirm(open: &InteractionInfo, ui: &mut Ui) -> Result<bool> {
    let Some((_, changed, sheet)) = call_of(open) else { return Ok(false) };
    if ui.can_ask() {
        let (width, height) = ui.err_size();
        let (lines, hidden) = sheet.fitting(width, height.saturating_sub(4));
        let text = Text::lines(&lines);
        ui.talk(&text);
        let yes = if sheet.is_easy() { "y" } else { "allow" };
        let view = if hidden > 0 { ", or v to see all of it" } else { "" };
        loop {
            let line = ui.ask(text!("type `{}` to allow it{} > ", yes, view))?;
            match line.as_deref() {
                Some("allow" | "yes") => return Ok(true),
                Some("y" | "Y") if sheet.is_easy() => return Ok(true),
                Some("v") => {
                    ui.talk(&Text::lines(&sheet.whole(Some(width))));
                    ui.talk(&text);
                }
                None | Some("" | "n" | "N" | "no") => return Err(left_open()),
                Some(_) => ui.warn(text!("type `{}`, or nothing to leave", yes)),
            }
        }
    }
    if changed == 0 {
        return Ok(false);
    }
    let text = "the agent has changed its call: nothing was answered";
    let hint = text!(
        "`acpctl pending {}` shows the new call, `acpctl allow {}` allows it",
        open.id,
        open.id
    );
    Err(CommandError::new(ExitCode::Refused, text).hint(hint))
}

/// Returns the tool call of a question, how often it has changed, and its description.
fn call_of(open: &InteractionInfo) -> Option<(&Shown, u32, Sheet)> {
    let Question::Permission { shown, changed, .. } = &open.question else { return None };
    let shown = shown.as_deref()?;
    Some((shown, *changed, Sheet::new("", shown, *changed)))
}

/// Returns the option for the decision if several match and acpd must know which.
fn of_several(
    found: &InteractionInfo,
    options: &[OptionInfo],
    decision: UserDecision,
    always: bool,
    ui: &mut Ui,
) -> Result<Option<String>> {
    let several = meant(options, decision, always);
    if several.len() < 2 {
        return Ok(None);
    }
    let verb = if decision == UserDecision::Allow { "allow" } else { "deny" };
    let command = text!("{}{}", verb, if always { " --always" } else { "" });
    let why = text!("{} options of the question mean `{}`", several.len(), command);
    chosen_option(found, &several, why, &command, ui).map(Some)
}

/// Returns the options that the decision can mean: those of the matching kind, or else of the next
/// kind.
fn meant(options: &[OptionInfo], decision: UserDecision, always: bool) -> Vec<&OptionInfo> {
    let (once, forever) = match decision {
        UserDecision::Allow => ("allow_once", "allow_always"),
        UserDecision::Deny => ("reject_once", "reject_always"),
    };
    let kinds = if always { [forever, once] } else { [once, forever] };
    let of_kind = kinds.map(|kind| options.iter().filter(|option| option.kind == kind).collect());
    of_kind.into_iter().find(|of: &Vec<_>| !of.is_empty()).unwrap_or_default()
}

/// Asks on a terminal; otherwise fails with the list of commands. acpctl never guesses.
fn chosen_option(
    found: &InteractionInfo,
    options: &[&OptionInfo],
    why: Text,
    command: &Text,
    ui: &mut Ui,
) -> Result<String> {
    if !ui.can_ask() {
        let lines = options.iter().map(|option| {
            let chosen = shell_word(&option.option_id);
            let label = about::option(option.kind.raw(), &option.name);
            text!("\n  acpctl {} {} --option {}  # {}", command, found.id, chosen, label)
        });
        let hint = text!("choose one:{}", lines.collect::<Text>());
        return Err(CommandError::usage(why).hint(hint));
    }
    ui.say(described(found));
    ui.talk(&omitted_details(found));
    let labels = options.iter().map(|option| about::option(option.kind.raw(), &option.name));
    let at = pick(ui, "> ", labels, |_| None)?;
    Ok(options[at].option_id.raw().to_owned())
}

/// Arbitrary, because nothing happens without an event.
const LONG: Duration = Duration::from_hours(1);

#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum Event<'a> {
    Opened {
        interaction: &'a InteractionInfo,
    },
    Closed {
        id: &'a Untrusted,
        /// None if the question was withdrawn.
        #[serde(skip_serializing_if = "Option::is_none")]
        answered: Option<&'a QuestionAnswered>,
    },
}

fn follow(json: bool, ui: &mut Ui) -> Result {
    // Starts the daemon if allowed.
    info(&mut ui.door().connect()?)?;
    let mut rows = RowWatch::begin(ui)?;
    let mut all = Watched::default();
    // Printed questions, with the last line of the session's journal at that time.
    let mut printed: BTreeMap<Untrusted, (InteractionInfo, u64)> = BTreeMap::new();
    loop {
        match rows.next(LONG)? {
            Some(RowEvent::All(new)) => all = new,
            Some(RowEvent::Changed(changed)) => all.apply(changed),
            Some(RowEvent::Stopped) => {
                ui.say("acpd is not running. Start it: `acpctl daemon start`");
                continue;
            }
            Some(RowEvent::Away) | None => continue,
        }
        let is_open = |id: &Untrusted| all.interactions.iter().any(|open| open.id == *id);
        let gone: Vec<_> = printed.extract_if(.., |id, _| !is_open(id)).collect();
        for (id, (open, seq)) in gone {
            let answered = answer_of(&open, seq, &ui.door_to_running());
            if json {
                ui.json_line(&Event::Closed { id: &id, answered: answered.as_ref() })?;
                continue;
            }
            let end = match &answered {
                Some(it) => text!("answered by {}: {}", person(&it.by), given(it)),
                None => "withdrawn".into(),
            };
            ui.print(text!("{}  {}\n", id, Text::styled(Role::Dim, end)))?;
        }
        for open in &all.interactions {
            if printed.contains_key(&open.id) {
                continue;
            }
            let asks = |session: &&SessionInfo| open.is_of(&session.agent, &session.session_id);
            let seq = all.sessions.iter().find(asks).map_or(0, |session| session.seq);
            printed.insert(open.id.clone(), (open.clone(), seq));
            if json {
                ui.json_line(&Event::Opened { interaction: open })?;
            } else {
                let id = Text::styled(BOLD, &open.id);
                ui.print(text!("{}  {}\n", id, described(open)))?;
            }
        }
        ui.flush()?;
    }
}

/// Finds the answer to a question in its session's journal, after a line; none if it cannot be
/// found.
fn answer_of(open: &InteractionInfo, after: u64, door: &Door) -> Option<QuestionAnswered> {
    let session = SessionRef::to(open.agent.raw(), open.session_id.as_ref()?.raw());
    let mut daemon = door.connect().ok()?;
    let mut found = None;
    let read = daemon.read_log(LogParams::after(session, after), |page| {
        for entry in page.entries {
            let line = parse(entry.line.get().as_bytes());
            let Ok(Message::Notification { method, params: Some(params) }) = line else { continue };
            if method != method::ANSWERED {
                continue;
            }
            let answered: Option<QuestionAnswered> = serde_json::from_str(params.get()).ok();
            found = found.take().or_else(|| answered.filter(|answered| answered.id == open.id));
        }
        Ok::<(), CallError>(())
    });
    read.ok().and(found)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn list() -> InteractionList {
        let question = |id: &str, session: &str, name: Option<&str>, question: Value| {
            json!({"id": id, "agent": "demo", "sessionId": session, "name": name, "cwd": "/w",
                "at": 40_000, "question": question})
        };
        let call = |subject: Option<&str>| {
            json!({"kind": "permission", "title": "Push\u{1b}it", "toolKind": "execute",
                "subject": subject, "options": []})
        };
        let form = json!({"kind": "form", "message": "Which\nbranch?", "schema": {}});
        let page = json!({"kind": "url", "message": "Log in", "url": "https://a.example/x"});
        serde_json::from_value(json!({"interactions": [
            question("1-4", "s-1", Some("fix"), call(Some("run `git push`"))),
            question("1-5", "s-2", None, call(None)),
            question("1-6", "s-1", Some("fix"), form),
            question("1-7", "s-3", Some("docs"), page),
        ]}))
        .unwrap()
    }

    #[test]
    fn the_only_question_need_not_be_named_and_several_are_listed() {
        let mut one = list();
        one.interactions.truncate(1);
        let described = described(&only(one.interactions).unwrap());
        assert_eq!(described.as_str(), "run `git push` (demo, fix)");
        insta::assert_snapshot!(only(list().interactions).unwrap_err().render(), @"
        error: 4 questions are open

        hint: choose an id:
          1-4  run `git push` (demo, fix)
          1-5  Push<U+001B>it (demo, s-2)
          1-6  Which branch? (demo, fix)
          1-7  open a page on a.example: Log in (https://a.example/x) (demo, docs)
        ");
        assert_eq!(only(Vec::new()).unwrap_err().code(), ExitCode::NotFound);
    }

    fn options(kinds: &[&str]) -> Vec<OptionInfo> {
        let option = |kind: &&str| {
            let option_id = format!("o-{kind}").into();
            OptionInfo { option_id, name: (*kind).into(), kind: (*kind).into() }
        };
        kinds.iter().map(option).collect()
    }

    #[test]
    fn the_kind_that_says_so_comes_before_the_other_one() {
        let all = options(&["allow_once", "allow_always", "allow_always", "reject_once"]);
        let count = |decision, always| meant(&all, decision, always).len();
        assert_eq!(count(UserDecision::Allow, false), 1, "the one plain yes");
        assert_eq!(count(UserDecision::Allow, true), 2);
        assert_eq!(count(UserDecision::Deny, true), 1);
        assert!(meant(&options(&["chooser"]), UserDecision::Allow, false).is_empty());
    }
}
