//! Forms of agents: filled in by options of the command line, or field by field on a terminal.

use acp_wire::acp::{Field, FieldKind, Form};
use acpd_api::ExitCode;
use serde_json::value::to_raw_value;
use serde_json::{Map, Value};

use super::{nothing, wrong};
use crate::error::{CommandError, Result};
use crate::paint::{BOLD, DIM, one_line};
use crate::ui::Ui;

/// Reads the schema of a form. The order of its fields is not in it any more.
pub(super) fn read(schema: &Value, order: &[String]) -> Result<Form> {
    let raw = to_raw_value(schema).map_err(std::io::Error::from)?;
    let form = Form::from_raw(&raw);
    let mut form = form.map_err(|error| CommandError::new(ExitCode::Error, error.to_string()))?;
    form.fields.sort_by_key(|field| order.iter().position(|name| *name == field.name));
    Ok(form)
}

/// The content that `NAME=VALUE` says; fields that are not named have their defaults.
pub(super) fn filled(form: &Form, fields: &[String], id: &str) -> Result<Value> {
    let wrong = |why: String| CommandError::usage(why).hint(usage(form, id));
    let mut content = Map::new();
    for given in fields {
        let (name, text) = given
            .split_once('=')
            .ok_or_else(|| wrong(format!("`{given}` is not of the form `NAME=VALUE`")))?;
        let field =
            form.field(name).ok_or_else(|| wrong(format!("the form has no field `{name}`")))?;
        let value = field.parse(text).map_err(|why| wrong(format!("`{name}`: {why}")))?;
        content.insert(name.to_owned(), value);
    }
    for field in &form.fields {
        if let (Some(default), false) = (&field.default, content.contains_key(&field.name)) {
            content.insert(field.name.clone(), default.clone());
        }
    }
    let content = Value::Object(content);
    form.check(&content).map_err(wrong)?;
    Ok(content)
}

/// How to fill the form in from the command line.
pub(super) fn usage(form: &Form, id: &str) -> String {
    let lines = form.fields.iter().map(|field| {
        let mut notes = vec![wanted(&field.kind)];
        match &field.default {
            Some(default) => notes.push(format!("else {}", shown(default))),
            None if field.required => notes.push("required".to_owned()),
            None => {}
        }
        format!("\n  {}  {}", one_line(&field.name), notes.join("; "))
    });
    format!(
        "`acpctl answer {id} --field NAME=VALUE` for each of the fields, or `--decline`:{}",
        lines.collect::<String>()
    )
}

/// Asks a person for each field.
pub(in crate::command) fn ask(form: &Form, ui: &mut Ui) -> Result<Value> {
    let paint = ui.err_paint();
    for text in form.title.iter().chain(&form.description) {
        ui.say(&one_line(text));
    }
    let mut content = Map::new();
    for field in &form.fields {
        let label = field.title.as_deref().unwrap_or(&field.name);
        let optional = if field.required { "" } else { " (optional)" };
        ui.say(&format!("{}{}", paint.apply(BOLD, &one_line(label)), paint.apply(DIM, optional)));
        if let Some(description) = &field.description {
            ui.say(&format!("  {}", one_line(description)));
        }
        if let FieldKind::One(choices) | FieldKind::Many { choices, .. } = &field.kind {
            for (number, choice) in (1..).zip(choices) {
                ui.say(&format!("  {number}  {}", one_line(&choice.title)));
            }
        }
        if let Some(value) = ask_field(field, ui)? {
            content.insert(field.name.clone(), value);
        }
    }
    Ok(Value::Object(content))
}

/// The value of a field; nothing if it is left out.
fn ask_field(field: &Field, ui: &mut Ui) -> Result<Option<Value>> {
    let default = field.default.as_ref().filter(|default| field.check(default).is_ok());
    let shown = default.map(|default| format!(" [{}]", shown(default))).unwrap_or_default();
    let prompt = format!("{}{shown} > ", ui.err_paint().apply(DIM, &wanted_short(&field.kind)));
    loop {
        let Some(line) = ui.ask(&prompt)? else { return Err(nothing()) };
        match default {
            Some(default) if line.is_empty() => return Ok(Some(default.clone())),
            None if line.is_empty() && !field.required => return Ok(None),
            None if line.is_empty() => {
                wrong(ui, "it must be filled in");
                continue;
            }
            _ => {}
        }
        match field.parse(&line) {
            Ok(value) => return Ok(Some(value)),
            Err(why) => wrong(ui, &why),
        }
    }
}

/// What a field takes, with its choices.
fn wanted(kind: &FieldKind) -> String {
    match kind {
        FieldKind::One(choices) | FieldKind::Many { choices, .. } => {
            let values: Vec<String> =
                choices.iter().map(|choice| one_line(&choice.value)).collect();
            format!("{} {}", wanted_short(kind), values.join(", "))
        }
        _ => wanted_short(kind),
    }
}

/// What a field takes, beside its choices.
fn wanted_short(kind: &FieldKind) -> String {
    match kind {
        FieldKind::Text { format, .. } => {
            format.as_deref().map_or_else(|| "text".to_owned(), one_line)
        }
        FieldKind::One(_) => "one of".to_owned(),
        FieldKind::Many { .. } => "some of, with commas between:".to_owned(),
        FieldKind::Number { whole: true, .. } => "a whole number".to_owned(),
        FieldKind::Number { .. } => "a number".to_owned(),
        FieldKind::Boolean => "yes or no".to_owned(),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => one_line(text),
        Value::Bool(true) => "yes".to_owned(),
        Value::Bool(false) => "no".to_owned(),
        Value::Array(items) => items.iter().map(shown).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn form() -> Form {
        let order = ["branch", "count", "tags", "really"].map(str::to_owned);
        read(
            &json!({"type": "object", "required": ["branch", "count"], "properties": {
            "branch": {"type": "string", "enum": ["main", "next"], "default": "main"},
            "count": {"type": "integer", "minimum": 1},
            "tags": {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}},
            "really": {"type": "boolean", "default": false}}}),
            &order,
        )
        .unwrap()
    }

    fn fill(fields: &[&str]) -> std::result::Result<Value, String> {
        let fields: Vec<String> = fields.iter().map(|field| (*field).to_owned()).collect();
        filled(&form(), &fields, "1-2").map_err(|error| error.render(crate::paint::Paint::plain()))
    }

    #[test]
    fn named_fields_are_parsed_and_the_others_have_their_defaults() {
        assert_eq!(
            fill(&["count=3", "tags=b,a"]).unwrap(),
            json!({"branch": "main", "count": 3, "tags": ["b", "a"], "really": false})
        );
    }

    #[test]
    fn what_does_not_fit_is_told_with_all_fields() {
        insta::assert_snapshot!(fill(&["count=0"]).unwrap_err(), @"
        error: `count`: 0 is below 1

        hint: `acpctl answer 1-2 --field NAME=VALUE` for each of the fields, or `--decline`:
          branch  one of main, next; else main
          count  a whole number; required
          tags  some of, with commas between: a, b
          really  yes or no; else no
        ");
        assert!(fill(&["branch=next"]).unwrap_err().starts_with("error: `count` is missing\n"));
        assert!(fill(&["colour=1"]).unwrap_err().contains("the form has no field `colour`"));
        assert!(fill(&["count"]).unwrap_err().contains("is not of the form `NAME=VALUE`"));
    }
}
