//! Blocks as JSON for the page. Texts are safe to show; only messages are raw, as they were said.

use acpd_api::{Cost, Question, TurnEnded, Untrusted};
use acpd_view::text::Text;
use acpd_view::{
    Block, CallBody, Change, Choice, ConfigOption, Content, DiffLine, Folding, Header, Id, Kind,
    Message, PlanEntry, State, ToolCall, about, asked_change, describe,
};
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

/// Most lines of output, and of one changed file.
const MOST_LINES: usize = 4000;
/// Most places, and changed files of a turn.
const MOST_PLACES: usize = 200;
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/// Bytes of base64 of a picture.
const LONGEST_PICTURE: usize = (8 << 20) / 3 * 4;

/// The id of a block: the number of its line, or `a` and a number.
pub(super) fn id(id: Id) -> Value {
    match id {
        Id::Line(seq) => seq.into(),
        Id::Around(seq) => format!("a{seq}").into(),
    }
}

pub(super) fn read_id(value: &Value) -> Option<Id> {
    match value {
        Value::String(text) => text.strip_prefix('a')?.parse().ok().map(Id::Around),
        other => other.as_u64().map(Id::Line),
    }
}

/// The spans of a line: meaning and text.
pub(super) fn line(line: &Text) -> Value {
    line.parts().map(|(text, style)| json!([style.role, text])).collect()
}

/// A block in a turn, by its first line, and in a subagent; `is_open` if the user has unfolded it.
/// `has` says how much of its body is sent.
pub(super) fn block(
    (block, turn, of): (&Block, u64, Option<Id>),
    state: &State,
    is_open: bool,
) -> Value {
    let folding = if is_open { Folding::Open } else { block.folding };
    let mut drawn = json!({
        "id": id(block.id), "turn": turn, "seq": block.id.seq(), "last": block.last,
        "kind": block.kind.name(), "progress": block.progress, "folding": block.folding,
        "has": "whole",
    });
    if !matches!(block.kind, Kind::Prompt(_) | Kind::Answer(_)) {
        drawn["line"] = line(&block.summary());
    }
    if let Some(consent) = block.consent() {
        drawn["consent"] = json!(consent);
    }
    if let Some(of) = of {
        drawn["of"] = id(of);
    }
    let body = match &block.kind {
        Kind::Thought(_) | Kind::Plan(_) | Kind::Subagent(_) if folding == Folding::Closed => {
            json!({"has": "line"})
        }
        Kind::Prompt(message) | Kind::Answer(message) | Kind::Thought(message) => said(message),
        Kind::Call(call) | Kind::Edit(call) => tool_call(call, false, folding),
        Kind::Command(call) => tool_call(call, true, folding),
        Kind::Plan(plan) => json!({
            "entries": entries(&plan.entries), "text": plan.text,
        }),
        Kind::Question(question) => json!({
            "asked": question.id, "refused": question.is_refused,
            "answer": format!("{} by {}", question.verdict, question.by),
        }),
        Kind::Subagent(_) | Kind::Gap(_) => json!({}),
        Kind::Notice(notice) => json!({"severity": notice.severity}),
        Kind::Turn(end) => turn_end(end, state),
    };
    extend(&mut drawn, body);
    drawn
}

pub(super) fn extend(drawn: &mut Value, more: Value) {
    if let (Some(drawn), Value::Object(more)) = (drawn.as_object_mut(), more) {
        drawn.extend(more);
    }
}

fn said(message: &Message) -> Value {
    let content = message.content.iter().map(|part| match part {
        Content::Text(text) => json!(text),
        Content::Other(other) => {
            let words = describe(other);
            let is_picture = other["type"] == "image"
                && other["mimeType"].as_str().is_some_and(|kind| PICTURES.contains(&kind))
                && other["data"].as_str().is_some_and(|data| data.len() <= LONGEST_PICTURE);
            if is_picture {
                json!({"words": words.as_str(), "mimeType": other["mimeType"], "data": other["data"]})
            } else {
                json!({"words": words.as_str()})
            }
        }
    });
    json!({"content": content.collect::<Value>(), "steered": message.steered})
}

fn tool_call(call: &ToolCall, is_command: bool, folding: Folding) -> Value {
    let mut drawn = json!({"tool": call.kind()});
    if let Some(delegation) = call.delegation() {
        drawn["delegate"] = delegation.session_name.raw().into();
    }
    if folding == Folding::Closed {
        drawn["has"] = "line".into();
        return drawn;
    }
    let CallBody { commands, files, output } = call.body(is_command);
    let most = match folding {
        Folding::Last(most) => most,
        _ => MOST_LINES,
    };
    let hidden = output.len().saturating_sub(most);
    if hidden > 0 && folding != Folding::Open {
        drawn["has"] = "part".into();
    }
    let places = call.locations();
    let places = places.iter().filter(|_| files.is_empty() && !is_command).take(MOST_PLACES);
    let places: Vec<Text> = places.map(|place| call.place(place)).collect();
    let has_heads = files.len() > 1;
    extend(
        &mut drawn,
        json!({
            "commands": texts(&commands),
            "files": files.iter().map(|(path, change)| file(path, change, has_heads)).collect::<Value>(),
            "places": texts(&places),
            "output": output[hidden..].iter().map(|line| line.as_str().into()).collect::<Vec<Value>>(),
            "hidden": hidden,
            "exit": call.exit_code(),
        }),
    );
    drawn
}

fn texts(texts: &[Text]) -> Value {
    texts.iter().map(|text| Value::from(text.as_str())).collect()
}

/// A changed file: numbers, signs and texts of its lines.
fn file(path: &Text, change: &Change, has_head: bool) -> Value {
    let lines = change.lines.iter().take(MOST_LINES).map(|line| match line {
        DiffLine::Gap => json!([0, "⋮", ""]),
        DiffLine::Text { number, sign, text } => json!([number, sign, text.as_str()]),
    });
    let head = has_head.then(|| line(&change.head));
    json!({"path": path.as_str(), "head": head, "lines": lines.collect::<Value>()})
}

fn turn_end(end: &TurnEnded, state: &State) -> Value {
    let files = end.files.iter().take(MOST_PLACES).map(|file| Text::from(state.short(file)));
    let cost = end.usage.as_ref().and_then(|usage| usage.cost.as_ref()).map(cost);
    json!({"changed": texts(&files.collect::<Vec<_>>()), "cost": cost})
}

fn cost(cost: &Cost) -> Value {
    json!({"amount": cost.amount, "currency": text(&cost.currency)})
}

fn entries(entries: &[PlanEntry]) -> Value {
    let entries = entries.iter().map(|entry| {
        json!({"content": text(&entry.content), "status": entry.status, "priority": text(&entry.priority)})
    });
    entries.collect()
}

/// Adds to open questions the compared changes, and the effect of each answer.
pub(super) fn questions(interactions: &mut Value) {
    let all = interactions.as_array_mut();
    for question in all.into_iter().flatten().filter_map(|row| row.get_mut("question")) {
        let Ok(Question::Permission { shown, options, .. }) = Question::deserialize(&*question)
        else {
            continue;
        };
        for (at, option) in options.iter().enumerate() {
            let kind = option.kind.raw();
            let drawn = &mut question["options"][at];
            drawn["words"] = about::option(kind, &option.name).as_str().into();
            drawn["isOpposite"] = about::says_the_opposite(kind, &option.name).into();
        }
        for (at, diff) in shown.iter().flat_map(|shown| &shown.diffs).enumerate() {
            let drawn = file(&Text::from(&diff.path), &asked_change(diff), true);
            extend(&mut question["shown"]["diffs"][at], drawn);
        }
    }
}

/// A text on one line, safe to show.
fn text(text: &Untrusted) -> Value {
    Text::from(text).as_str().into()
}

pub(super) fn header(header: &Header) -> Map<String, Value> {
    let modes = header.modes.iter();
    let modes = modes
        .map(|mode| json!({"id": mode.id, "name": text(mode.name.as_ref().unwrap_or(&mode.id))}));
    let commands = header.commands.iter().flatten().map(|command| {
        let hint = command.input.as_ref().map(|input| text(&input.hint));
        json!({"name": text(&command.name), "description": text(&command.description), "hint": hint})
    });
    let usage = header.usage.as_ref().map(|usage| {
        let [used, size] = [usage.used, usage.size].map(Option::unwrap_or_default);
        json!({"used": used, "size": size, "cost": usage.cost.as_ref().map(cost)})
    });
    let plan = header.plan.as_ref().filter(|plan| !plan.is_empty());
    let plan =
        plan.map(|plan| json!({"line": acpd_view::plan(plan).as_str(), "entries": entries(plan)}));
    let drawn = json!({
        "mode": header.mode, "modes": modes.collect::<Value>(),
        "modeName": header.mode.as_ref().map(|mode| text(header.mode_name(mode))),
        "options": header.options.iter().flatten().map(option).collect::<Value>(),
        "commands": commands.collect::<Value>(),
        "usage": usage, "plan": plan, "working": header.working.unwrap_or_default(),
    });
    match drawn {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

fn option(option: &ConfigOption) -> Value {
    let choice = |choice: &Choice| json!({"value": choice.value, "name": text(choice.name.as_ref().unwrap_or(&choice.value))});
    json!({
        "id": option.id, "name": text(option.name.as_ref().unwrap_or(&option.id)),
        "category": option.category, "value": option.current_value,
        "valueName": text(&option.value_name()),
        "choices": option.choices().map(choice).collect::<Value>(),
    })
}
