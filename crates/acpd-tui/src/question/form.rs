//! A form on the screen. Setting a field is no answer; sending the form is a choice.

use std::collections::BTreeMap;

use acp_wire::acp::{self, Field, FieldKind, Form};
use acpd_api::{GivenAnswer, InteractionInfo, Question, Untrusted};
use acpd_view::text::Text;
use acpd_view::{form, text};
use serde_json::{Value, json};

use super::{Choice, ChoiceEffect, MAX_VALUE_WIDTH};
use crate::input::Input;

#[derive(Debug, Default)]
pub(crate) struct Filled {
    values: BTreeMap<String, Value>,
    pub(super) typing: Option<(String, Input)>,
}

impl Filled {
    /// Null empties the field.
    pub(super) fn put(&mut self, field: String, value: Value) {
        if value.is_null() {
            self.values.remove(&field);
        } else {
            self.values.insert(field, value);
        }
    }

    pub(super) fn begin(&mut self, field: String) {
        let mut input = Input::default();
        match self.values.get(&field) {
            Some(Value::String(text)) => input.insert(text),
            Some(value) => input.insert(&value.to_string()),
            None => {}
        }
        self.typing = Some((field, input));
    }

    pub(super) fn end(&mut self, question: &InteractionInfo) -> Result<(), Text> {
        let Some((name, input)) = &self.typing else { return Ok(()) };
        let form = read(question);
        let field = form.as_ref().and_then(|form| form.field(name));
        let value = match (field, input.text().trim()) {
            (None, _) | (_, "") => Value::Null,
            (Some(field), text) => {
                field.parse(text).map_err(|why| Text::from(&Untrusted::from(why)))?
            }
        };
        let name = name.clone();
        self.typing = None;
        self.put(name, value);
        Ok(())
    }

    /// Unset fields have their defaults.
    fn content(&self, form: &Form) -> Value {
        let defaults =
            form.fields.iter().filter_map(|field| Some((&field.name, field.valid_default()?)));
        let mut content: BTreeMap<&String, &Value> = defaults.collect();
        content.extend(&self.values);
        json!(content)
    }
}

/// Returns the form with its fields in the agent's order; none if it cannot be filled in here.
pub(super) fn read(question: &InteractionInfo) -> Option<Form> {
    let Question::Form { schema, order, .. } = &question.question else { return None };
    form::read(schema, order).ok()
}

pub(super) fn choices(form: &Form, filled: &Filled) -> Vec<Choice> {
    // A form with a single choice is sent at once.
    if let [field] = &form.fields[..]
        && let Some(values) = values(field)
    {
        let choice = |(label, value): (Text, Value)| {
            let content = Some(json!({ &field.name: value }));
            Choice::answer(label, GivenAnswer::Accept { content })
        };
        return values.into_iter().map(choice).collect();
    }
    let fields = form.fields.iter().flat_map(|field| of_field(field, filled));
    let mut choices: Vec<Choice> = fields.collect();
    let content = filled.content(form);
    choices.push(match form.check(&content) {
        Ok(()) => Choice::answer("send".into(), GivenAnswer::Accept { content: Some(content) }),
        Err(why) => {
            let why = Text::from(&Untrusted::from(why));
            let label = text!("send: {}", why);
            Choice { label, does: ChoiceEffect::Refuse(why), ..Choice::default() }
        }
    });
    choices
}

/// Returns the values of a field that has one of them.
fn values(field: &Field) -> Option<Vec<(Text, Value)>> {
    match &field.kind {
        FieldKind::One(values) => {
            Some(values.iter().map(|value| (label(value), json!(value.value))).collect())
        }
        FieldKind::Boolean => Some(vec![("yes".into(), json!(true)), ("no".into(), json!(false))]),
        _ => None,
    }
}

fn of_field(field: &Field, filled: &Filled) -> Vec<Choice> {
    let value = filled.values.get(&field.name);
    let put = |label: Text, is_set: bool, value: Value| {
        let does = ChoiceEffect::Put(field.name.clone(), value);
        Choice { label, does, is_set: Some(is_set), ..Choice::default() }
    };
    // Setting the same value again empties the field.
    let radio = |(label, this): (Text, Value)| {
        let is_set = value == Some(&this);
        put(label, is_set, if is_set { Value::Null } else { this })
    };
    let mut choices: Vec<Choice> = match &field.kind {
        FieldKind::One(_) | FieldKind::Boolean => {
            values(field).into_iter().flatten().map(radio).collect()
        }
        FieldKind::Many { choices, .. } => {
            let now = value.and_then(Value::as_array).into_iter().flatten();
            let now: Vec<&str> = now.filter_map(Value::as_str).collect();
            let toggle = |choice: &acp::Choice| {
                let is_set = now.contains(&choice.value.as_str());
                // In the order of the form.
                let then = choices.iter().map(|other| other.value.as_str());
                let then = then.filter(|other| (*other == choice.value) != now.contains(other));
                let then: Vec<&str> = then.collect();
                let then = if then.is_empty() { Value::Null } else { json!(then) };
                put(label(choice), is_set, then)
            };
            choices.iter().map(toggle).collect()
        }
        FieldKind::Text { .. } | FieldKind::Number { .. } => {
            let typed = filled.typing.as_ref().filter(|(name, _)| *name == field.name);
            let label = match (typed, value) {
                (Some((_, input)), _) => text!("> {}█", input.shown(MAX_VALUE_WIDTH).0),
                (None, Some(value)) => text!("> {}", form::value(value, MAX_VALUE_WIDTH)),
                (None, None) => "> (type it)".into(),
            };
            let does = ChoiceEffect::Type(field.name.clone());
            vec![Choice { label, does, ..Choice::default() }]
        }
    };
    if let Some(first) = choices.first_mut() {
        first.heading = Some(heading(field));
    }
    choices
}

fn heading(field: &Field) -> Text {
    let name = field.title.as_deref().unwrap_or(&field.name);
    let wanted = match &field.kind {
        FieldKind::Many { .. } => Some("any of these".into()),
        FieldKind::Text { format: Some(_), .. } | FieldKind::Number { .. } => {
            Some(form::wanted(&field.kind))
        }
        _ => None,
    };
    let default = match field.valid_default() {
        Some(default) => Some(text!("else {}", form::value(default, MAX_VALUE_WIDTH))),
        None => (!field.required).then(|| "optional".into()),
    };
    let notes = Text::join(wanted.into_iter().chain(default), "; ");
    let notes = Some(notes).filter(|notes| !notes.is_empty());
    let description =
        field.description.as_deref().map(|about| text!(": {}", Untrusted::from(about)));
    text!("{}{}{}", Untrusted::from(name), notes.map(|notes| text!(" ({})", notes)), description)
}

fn label(choice: &acp::Choice) -> Text {
    Untrusted::from(choice.label()).into()
}
