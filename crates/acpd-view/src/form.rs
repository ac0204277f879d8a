//! Forms of agents: reading, and words for fields and values.

use acp_wire::acp::{FieldKind, Form, Unreadable};
use acpd_api::Untrusted;
use serde_json::Value;
use serde_json::value::to_raw_value;

use crate::text::Text;

/// Reads a form. `order` has the order of the fields, which the schema has lost.
pub fn read(schema: &Value, order: &[Untrusted]) -> Result<Form, Unreadable> {
    // A value always serializes.
    let schema = to_raw_value(schema).unwrap_or_default();
    let mut form = Form::from_raw(&schema)?;
    form.fields.sort_by_key(|field| order.iter().position(|name| *name == field.name));
    Ok(form)
}

/// Returns what the user may type or choose.
pub fn wanted(kind: &FieldKind) -> Text {
    match kind {
        FieldKind::Text { format: Some(format), .. } => Untrusted::from(format).into(),
        FieldKind::Text { format: None, .. } => "text".into(),
        FieldKind::One(_) => "one of".into(),
        FieldKind::Many { .. } => "some of these, separated by commas:".into(),
        FieldKind::Number { whole: true, .. } => "a whole number".into(),
        FieldKind::Number { .. } => "a number".into(),
        FieldKind::Boolean => "yes or no".into(),
    }
}

/// Describes the value of a field. Each text is cut to `room` columns.
pub fn value(value: &Value, room: usize) -> Text {
    match value {
        Value::String(text) => Text::from(Untrusted::from(text)).cut(room),
        Value::Bool(true) => "yes".into(),
        Value::Bool(false) => "no".into(),
        Value::Array(items) => Text::join(items.iter().map(|item| self::value(item, room)), ", "),
        other => Untrusted::of(other).into(),
    }
}
