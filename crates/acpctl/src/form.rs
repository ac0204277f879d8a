//! Forms of agents, filled in on the command line or field by field on a terminal.

use acp_wire::acp::{Field, FieldKind, Form};
use acpd_api::{Untrusted, escape};
use serde_json::value::to_raw_value;
use serde_json::{Map, Value};

use crate::confirm;
use crate::error::{CommandError, Result};
use crate::text::{BOLD, Role, Text, text};
use crate::ui::Ui;

/// Reads a form. `order` has the order of the fields, which the schema has lost.
pub(crate) fn read(schema: &Value, order: &[Untrusted]) -> Result<Form> {
    let raw = to_raw_value(schema).map_err(std::io::Error::from)?;
    let mut form = Form::from_raw(&raw)?;
    form.fields.sort_by_key(|field| order.iter().position(|name| *name == field.name));
    Ok(form)
}

/// Returns the content for `NAME=VALUE` arguments; other fields have their defaults.
pub(crate) fn filled(form: &Form, fields: &[String], id: &Untrusted) -> Result<Value> {
    let wrong = |why: Text| CommandError::usage(why).hint(usage(form, id));
    let mut content = Map::new();
    for given in fields {
        let (name, value) = given
            .split_once('=')
            .ok_or_else(|| wrong(text!("`{}` is not `NAME=VALUE`", escape::one_line(given))))?;
        let shown = escape::one_line(name);
        let field =
            form.field(name).ok_or_else(|| wrong(text!("the form has no field `{}`", shown)))?;
        let value = field
            .parse(value)
            .map_err(|why| wrong(text!("`{}`: {}", shown, escape::one_line(&why))))?;
        match (content.get_mut(name), value) {
            // A repeated field adds a value.
            (Some(Value::Array(all)), Value::Array(more)) => all.extend(more),
            (_, value) => drop(content.insert(name.to_owned(), value)),
        }
    }
    for field in &form.fields {
        if let (Some(default), false) = (&field.default, content.contains_key(&field.name)) {
            content.insert(field.name.clone(), default.clone());
        }
    }
    let content = Value::Object(content);
    form.check(&content).map_err(|why| wrong(escape::one_line(&why).into()))?;
    Ok(content)
}

pub(crate) fn usage(form: &Form, id: &Untrusted) -> Text {
    let lines = form.fields.iter().map(|field| {
        let mut notes = vec![wanted(&field.kind)];
        match &field.default {
            Some(default) => notes.push(text!("default: {}", shown(default))),
            None if field.required => notes.push("required".into()),
            None => {}
        }
        text!("\n  {}  {}", escape::one_line(&field.name), Text::join(notes, "; "))
    });
    text!(
        "`acpctl answer {} --field NAME=VALUE` for each field, `--accept` for the defaults, or `--decline`:{}",
        id,
        lines.collect::<Text>()
    )
}

pub(crate) fn ask(form: &Form, ui: &mut Ui) -> Result<Value> {
    for text in form.title.iter().chain(&form.description) {
        ui.say(escape::one_line(text));
    }
    let mut content = Map::new();
    for field in &form.fields {
        let label = field.title.as_deref().unwrap_or(&field.name);
        let optional = if field.required { "" } else { " (optional)" };
        let label = Text::styled(BOLD, escape::one_line(label));
        ui.say(text!("{}{}", label, Text::styled(Role::Dim, optional)));
        if let Some(description) = &field.description {
            ui.say(text!("  {}", escape::one_line(description)));
        }
        if let FieldKind::One(choices) | FieldKind::Many { choices, .. } = &field.kind {
            for (number, choice) in (1..).zip(choices) {
                ui.say(text!("  {}  {}", number, escape::one_line(&choice.title)));
            }
        }
        if let Some(value) = ask_field(field, ui)? {
            content.insert(field.name.clone(), value);
        }
    }
    Ok(Value::Object(content))
}

/// Returns none if the user skips the field.
fn ask_field(field: &Field, ui: &mut Ui) -> Result<Option<Value>> {
    let default = field.default.as_ref().filter(|default| field.check(default).is_ok());
    let shown = default.map(|default| text!(" [{}]", shown(default)));
    let wanted = Text::styled(Role::Dim, wanted_short(&field.kind));
    let prompt = text!("{}{} > ", wanted, shown);
    loop {
        let line = confirm::ask(ui, &prompt)?;
        match default {
            Some(default) if line.is_empty() => return Ok(Some(default.clone())),
            None if line.is_empty() && !field.required => return Ok(None),
            None if line.is_empty() => {
                ui.warn("this field is required");
                continue;
            }
            _ => {}
        }
        match field.parse(&line) {
            Ok(value) => return Ok(Some(value)),
            Err(why) => ui.warn(escape::one_line(&why)),
        }
    }
}

fn wanted(kind: &FieldKind) -> Text {
    match kind {
        FieldKind::One(choices) | FieldKind::Many { choices, .. } => {
            let values = choices.iter().map(|choice| escape::one_line(&choice.value).into());
            text!("{} {}", wanted_short(kind), Text::join(values, ", "))
        }
        _ => wanted_short(kind),
    }
}

fn wanted_short(kind: &FieldKind) -> Text {
    match kind {
        FieldKind::Text { format: Some(format), .. } => escape::one_line(format).into(),
        FieldKind::Text { format: None, .. } => "text".into(),
        FieldKind::One(_) => "one of".into(),
        FieldKind::Many { .. } => "some of these, separated by commas:".into(),
        FieldKind::Number { whole: true, .. } => "a whole number".into(),
        FieldKind::Number { .. } => "a number".into(),
        FieldKind::Boolean => "yes or no".into(),
    }
}

fn shown(value: &Value) -> Text {
    match value {
        Value::String(text) => escape::one_line(text).into(),
        Value::Bool(true) => "yes".into(),
        Value::Bool(false) => "no".into(),
        Value::Array(items) => Text::join(items.iter().map(shown), ", "),
        other => Untrusted::of(other).into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn form() -> Form {
        let order = ["branch", "count", "tags", "really"].map(Untrusted::from);
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

    fn fill(fields: &[&str]) -> Result<Value, String> {
        let fields: Vec<String> = fields.iter().map(|field| (*field).to_owned()).collect();
        filled(&form(), &fields, &"1-2".into()).map_err(|error| error.render().to_string())
    }

    #[test]
    fn named_fields_are_parsed_and_the_others_have_their_defaults() {
        let tags = |fields: &[&str]| fill(fields).unwrap()["tags"].clone();
        assert_eq!(tags(&["count=3", "tags=b", "tags=a"]), json!(["b", "a"]));
        assert_eq!(
            fill(&["count=3", "tags=b,a"]).unwrap(),
            json!({"branch": "main", "count": 3, "tags": ["b", "a"], "really": false})
        );
    }
}
