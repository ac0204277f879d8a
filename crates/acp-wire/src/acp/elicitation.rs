//! `elicitation/create`: an agent asks a user for more than a yes or no.
//!
//! Forms are flat: each property of the schema is one field. This module checks values against a
//! form, both the answers of clients and typed text.

use std::borrow::Cow;

use hashlink::LinkedHashMap;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::read::{Reader, Unreadable};
use crate::Id;

/// The params of `elicitation/create`.
#[derive(Debug, Clone, PartialEq)]
pub struct ElicitationRequest<'a> {
    /// The session in question.
    pub session_id: Option<Cow<'a, str>>,
    /// The request to the agent in question: only its sender is asked.
    pub request_id: Option<Id>,
    /// Message for the user.
    pub message: Cow<'a, str>,
    /// The form or page.
    pub mode: ElicitationMode,
}

/// Kind of an elicitation.
#[derive(Debug, Clone, PartialEq)]
pub enum ElicitationMode {
    /// A form to fill in.
    Form(Form),
    /// A page to open; the answer is only whether the user agrees.
    Url {
        /// Address of the page.
        url: String,
        /// The id for `elicitation/complete`.
        elicitation_id: String,
    },
}

impl<'a> ElicitationRequest<'a> {
    /// Reads the params. Fails without a scope, for an unknown mode, and for a schema that is no
    /// form.
    pub fn from_raw(raw: &'a RawValue) -> Result<Self, Unreadable> {
        let what = "elicitation/create params";
        let params = Reader::new(raw);
        let need = |field: &'static str| {
            params.text(&[field]).ok_or_else(|| Unreadable::missing(what, field))
        };
        let session_id = params.text(&["sessionId"]);
        let request_id = params.raw(&["requestId"]).and_then(Id::from_raw);
        if session_id.is_none() && request_id.is_none() {
            return Err(Unreadable::missing(what, "sessionId"));
        }
        let mode = match &*need("mode")? {
            "url" => ElicitationMode::Url {
                url: need("url")?.into_owned(),
                elicitation_id: params
                    .id(&["elicitationId"])
                    .ok_or_else(|| Unreadable::missing(what, "elicitationId"))?,
            },
            "form" => {
                let schema = params.raw(&["requestedSchema"]);
                let schema = schema.ok_or_else(|| Unreadable::missing(what, "requestedSchema"))?;
                ElicitationMode::Form(Form::from_raw(schema)?)
            }
            other => {
                return Err(Unreadable { what, reason: format!("the mode `{other}` is unknown") });
            }
        };
        let message = params.lossy(&["message"]).unwrap_or_default();
        Ok(Self { session_id, request_id, message, mode })
    }
}

/// A form without nested fields.
#[derive(Debug, Clone, PartialEq)]
pub struct Form {
    /// Heading of the form.
    pub title: Option<String>,
    /// Description of the form.
    pub description: Option<String>,
    /// The fields, in the order of the schema.
    pub fields: Vec<Field>,
}

/// A field of a form.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// The member of the answer.
    pub name: String,
    /// Label of the field.
    pub title: Option<String>,
    /// Description of the field.
    pub description: Option<String>,
    /// The field must be filled in.
    pub required: bool,
    /// The value without a change by the user.
    pub default: Option<Value>,
    /// Kind of its value.
    pub kind: FieldKind,
}

/// Kind of a field's value.
#[derive(Debug, Clone, PartialEq)]
pub enum FieldKind {
    /// Text; lengths in characters.
    Text {
        /// Minimum length in characters.
        min: Option<u64>,
        /// Maximum length in characters.
        max: Option<u64>,
        /// `email`, `uri`, `date` or `date-time`, for the user; not checked.
        format: Option<String>,
    },
    /// One of the choices.
    One(Vec<Choice>),
    /// Several of the choices.
    Many {
        /// The choices.
        choices: Vec<Choice>,
        /// Minimum number of choices.
        min: Option<u64>,
        /// Maximum number of choices.
        max: Option<u64>,
    },
    /// A number in a range.
    Number {
        /// Only whole numbers.
        whole: bool,
        /// The smallest allowed number.
        min: Option<f64>,
        /// The largest allowed number.
        max: Option<f64>,
    },
    /// A yes or no.
    Boolean,
}

/// A value to choose.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Choice {
    /// The value for the answer.
    #[serde(rename = "const")]
    pub value: String,
    #[serde(default, deserialize_with = "shown")]
    title: Option<String>,
}

#[derive(Deserialize)]
struct Schema {
    #[serde(default, deserialize_with = "shown")]
    title: Option<String>,
    #[serde(default, deserialize_with = "shown")]
    description: Option<String>,
    /// In the order of the fields.
    properties: LinkedHashMap<String, Property>,
    #[serde(default)]
    required: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Property {
    /// Absent for the items of some lists.
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default, deserialize_with = "shown")]
    title: Option<String>,
    #[serde(default, deserialize_with = "shown")]
    description: Option<String>,
    #[serde(default, deserialize_with = "any")]
    default: Option<Value>,
    #[serde(default, deserialize_with = "shown")]
    format: Option<String>,
    min_length: Option<u64>,
    max_length: Option<u64>,
    minimum: Option<f64>,
    maximum: Option<f64>,
    min_items: Option<u64>,
    max_items: Option<u64>,
    #[serde(rename = "enum")]
    values: Option<Vec<String>>,
    one_of: Option<Vec<Choice>>,
    any_of: Option<Vec<Choice>>,
    items: Option<Box<Property>>,
}

/// Reads text that is only shown: a value of another type is left out.
fn shown<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?;
    Ok(Reader::new(raw).lossy(&[]).map(Cow::into_owned))
}

/// Reads a value, unless no type of Rust can hold it.
fn any<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    let raw = <&RawValue>::deserialize(deserializer)?;
    Ok(serde_json::from_str(raw.get()).ok().filter(|value: &Value| !value.is_null()))
}

impl Property {
    fn choices(&mut self) -> Option<Vec<Choice>> {
        let plain = |value| Choice { value, title: None };
        let plain = self.values.take().map(|values| values.into_iter().map(plain).collect());
        self.one_of.take().or(self.any_of.take()).or(plain)
    }

    fn field_kind(&mut self) -> Option<FieldKind> {
        Some(match self.kind.as_str() {
            "string" => match self.choices() {
                Some(choices) => FieldKind::One(choices),
                None => FieldKind::Text {
                    min: self.min_length,
                    max: self.max_length,
                    format: self.format.take(),
                },
            },
            "number" | "integer" => FieldKind::Number {
                whole: self.kind == "integer",
                min: self.minimum,
                max: self.maximum,
            },
            "boolean" => FieldKind::Boolean,
            "array" => FieldKind::Many {
                choices: self.items.as_mut()?.choices()?,
                min: self.min_items,
                max: self.max_items,
            },
            _ => return None,
        })
    }
}

impl Form {
    /// Reads a schema. Fails if it is not flat.
    pub fn from_raw(schema: &RawValue) -> Result<Self, Unreadable> {
        let what = "elicitation/create form";
        let schema: Schema = serde_json::from_str(schema.get())
            .map_err(|error| Unreadable { what, reason: error.to_string() })?;
        let required = schema.required.unwrap_or_default();
        let field = |(name, mut property): (String, Property)| match property.field_kind() {
            Some(kind) => Ok(Field {
                required: required.contains(&name),
                title: property.title,
                description: property.description,
                default: property.default,
                name,
                kind,
            }),
            None => Err(Unreadable { what, reason: format!("`{name}` is of no known kind") }),
        };
        let fields = schema.properties.into_iter().map(field).collect::<Result<_, _>>()?;
        Ok(Self { title: schema.title, description: schema.description, fields })
    }

    /// Checks that a client's content fits the form; otherwise returns the reason. Members without
    /// a field are refused, because no user has seen them.
    pub fn check(&self, content: &Value) -> Result<(), String> {
        let members = content.as_object().ok_or("the content is not an object")?;
        if let Some(extra) = members.keys().find(|name| self.field(name).is_none()) {
            return Err(format!("the form has no field `{extra}`"));
        }
        for field in &self.fields {
            match members.get(&field.name) {
                Some(value) => {
                    field.check(value).map_err(|why| format!("`{}`: {why}", field.name))?;
                }
                None if field.required => return Err(format!("`{}` is missing", field.name)),
                None => {}
            }
        }
        Ok(())
    }

    /// The field with this name.
    pub fn field(&self, name: &str) -> Option<&Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

impl Choice {
    /// Label of the choice.
    pub fn label(&self) -> &str {
        self.title.as_deref().unwrap_or(&self.value)
    }
}

impl Field {
    /// The default, if the field takes it.
    pub fn valid_default(&self) -> Option<&Value> {
        self.default.as_ref().filter(|default| self.check(default).is_ok())
    }

    /// Checks that the field takes a value; otherwise returns the reason.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        match (&self.kind, value) {
            (FieldKind::Text { min, max, .. }, Value::String(text)) => {
                within(text.chars().count() as u64, *min, *max, "characters")
            }
            (FieldKind::One(choices), Value::String(value)) => chosen(choices, value),
            (FieldKind::Many { choices, min, max }, Value::Array(values)) => {
                for value in values {
                    chosen(choices, value.as_str().ok_or("a choice is not text")?)?;
                }
                within(values.len() as u64, *min, *max, "choices")
            }
            (FieldKind::Number { whole, min, max }, Value::Number(number)) => {
                let number = number.as_f64().unwrap_or(f64::NAN);
                if *whole && number.fract() != 0.0 {
                    return Err(format!("{number} is not a whole number"));
                }
                match (min, max) {
                    (Some(min), _) if number < *min => Err(format!("{number} is below {min}")),
                    (_, Some(max)) if number > *max => Err(format!("{number} is above {max}")),
                    _ => Ok(()),
                }
            }
            (FieldKind::Boolean, Value::Bool(_)) => Ok(()),
            (kind, _) => Err(format!("{} is wanted", kind.wanted())),
        }
    }

    /// Reads a typed value: a choice by number, value or label, several of them separated by
    /// commas, yes or no. Otherwise returns the reason.
    pub fn parse(&self, text: &str) -> Result<Value, String> {
        let text = text.trim();
        let value = match &self.kind {
            FieldKind::Text { .. } => Value::from(text),
            FieldKind::One(choices) => Value::from(find(choices, text)?),
            FieldKind::Many { choices, .. } => {
                let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
                let found: Result<Vec<&str>, String> =
                    parts.map(|part| find(choices, part)).collect();
                Value::from(found?)
            }
            FieldKind::Number { whole: true, .. } => Value::from(
                text.parse::<i64>().map_err(|_| format!("`{text}` is no whole number"))?,
            ),
            FieldKind::Number { .. } => {
                let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
                Value::from(number.ok_or_else(|| format!("`{text}` is no number"))?)
            }
            FieldKind::Boolean => match text.to_ascii_lowercase().as_str() {
                "y" | "yes" | "true" | "1" => Value::Bool(true),
                "n" | "no" | "false" | "0" => Value::Bool(false),
                _ => return Err(format!("`{text}` is neither yes nor no")),
            },
        };
        self.check(&value).map(|()| value)
    }
}

impl FieldKind {
    fn wanted(&self) -> &'static str {
        match self {
            FieldKind::Text { .. } => "text",
            FieldKind::One(_) => "one of the choices",
            FieldKind::Many { .. } => "a list of choices",
            FieldKind::Number { .. } => "a number",
            FieldKind::Boolean => "yes or no",
        }
    }
}

fn within(count: u64, min: Option<u64>, max: Option<u64>, of: &str) -> Result<(), String> {
    match (min, max) {
        (Some(min), _) if count < min => Err(format!("{count} {of} are fewer than {min}")),
        (_, Some(max)) if count > max => Err(format!("{count} {of} are more than {max}")),
        _ => Ok(()),
    }
}

fn chosen(choices: &[Choice], value: &str) -> Result<(), String> {
    let known = choices.iter().any(|choice| choice.value == value);
    known.then_some(()).ok_or_else(|| format!("`{value}` is not one of the choices"))
}

fn find<'a>(choices: &'a [Choice], text: &str) -> Result<&'a str, String> {
    let fits = |choice: &&Choice| choice.value == text || choice.label() == text;
    let number = || choices.get(text.parse::<usize>().ok()?.checked_sub(1)?);
    let found = choices.iter().find(fits).or_else(number);
    found
        .map(|choice| choice.value.as_str())
        .ok_or_else(|| format!("`{text}` is not one of the choices"))
}

/// The answer to `elicitation/create`. It serializes to the whole result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "action", rename_all = "lowercase")]
pub enum ElicitationAnswer {
    /// The user filled in the form, or agreed to open the page.
    Accept {
        /// The content of the form; `None` for a page.
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<Value>,
    },
    /// The user refused.
    Decline,
    /// The user did not answer.
    Cancel,
}

impl ElicitationAnswer {
    /// Reads a client's result strictly: content for which the form does not ask is an error, and
    /// an error is never consent.
    pub fn from_raw(raw: &RawValue, mode: &ElicitationMode) -> Result<Self, Unreadable> {
        let what = "elicitation/create result";
        let result = Reader::new(raw);
        let action = result.text(&["action"]);
        match action.as_deref() {
            Some("decline") => Ok(Self::Decline),
            Some("cancel") => Ok(Self::Cancel),
            Some("accept") => {
                let content = result.raw(&["content"]);
                let content = content.and_then(|raw| serde_json::from_str(raw.get()).ok());
                Self::accept(content, mode).map_err(|reason| Unreadable { what, reason })
            }
            _ => Err(Unreadable::missing(what, "action")),
        }
    }

    /// Consent with this content, if the mode takes it.
    pub fn accept(content: Option<Value>, mode: &ElicitationMode) -> Result<Self, String> {
        match mode {
            ElicitationMode::Url { .. } => Ok(Self::Accept { content: None }),
            ElicitationMode::Form(form) => {
                let content = content.unwrap_or_else(|| Value::Object(serde_json::Map::new()));
                form.check(&content)?;
                Ok(Self::Accept { content: Some(content) })
            }
        }
    }
}
