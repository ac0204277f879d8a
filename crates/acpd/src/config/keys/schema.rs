//! Pieces of the JSON schema, which editors read. It takes whatever the reader takes, and refuses what it can tell
//! from a key or a value alone.

use std::collections::BTreeMap;

use serde_json::json;

/// A JSON schema, or a part of one.
pub(crate) type Schema = serde_json::Value;

/// Any text that a program can be given.
pub(crate) const WITHOUT_NUL: &str = "^[^\\x00]*$";
/// The name of an environment variable.
pub(crate) const VARIABLE: &str = "^[^=\\x00]+$";

/// A text of this form.
pub(crate) fn text(pattern: &str) -> Schema {
    json!({"type": "string", "pattern": pattern})
}

/// A list of such items.
pub(crate) fn list_of(items: &Schema) -> Schema {
    json!({"type": "array", "items": items})
}

/// A table with these keys and no others.
pub(crate) fn table_of(keys: BTreeMap<&str, Schema>) -> Schema {
    json!({"type": "object", "properties": keys, "additionalProperties": false})
}

/// A table of entries of one form, whose names have this form.
pub(crate) fn entries_of(name: &str, entry: &Schema) -> Schema {
    json!({"type": "object", "propertyNames": text(name), "additionalProperties": entry})
}
