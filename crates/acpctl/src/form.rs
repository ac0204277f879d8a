//! Forms of agents, filled in on the command line or field by field on a terminal.

use acp_wire::acp::{Field, FieldKind, Form};
use acpd_api::{Untrusted, escape};
use acpd_view::form::{value, wanted};
use serde_json::{Map, Value};

use crate::confirm;
use crate::error::{CommandError, Result};
use crate::text::{BOLD, Role, Text, text};
use crate::ui::Ui;

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
        let mut notes = vec![wanted_values(&field.kind)];
        match &field.default {
            Some(default) => notes.push(text!("default: {}", value(default, usize::MAX))),
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
                ui.say(text!("  {}  {}", number, escape::one_line(choice.label())));
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
    let default = field.valid_default();
    let shown = default.map(|default| text!(" [{}]", value(default, usize::MAX)));
    let wanted = Text::styled(Role::Dim, wanted(&field.kind));
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

fn wanted_values(kind: &FieldKind) -> Text {
    match kind {
        FieldKind::One(choices) | FieldKind::Many { choices, .. } => {
            let values = choices.iter().map(|choice| escape::one_line(&choice.value).into());
            text!("{} {}", wanted(kind), Text::join(values, ", "))
        }
        _ => wanted(kind),
    }
}
