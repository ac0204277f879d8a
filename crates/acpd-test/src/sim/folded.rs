//! Folded lines of a load, taken apart with the journal.

use std::ops::Range;

use acp_wire::{set_member, str_at};
use acpd_core::View;
use acpd_core::record::{EventKind, EventRow};
use acpd_core::views::render;
use bytes::Bytes;
use serde_json::{Value, json};

use super::client::committed;
use super::store::Store;

/// Returns the first of the lines whose texts together are a folded line's.
pub(super) fn first_of_message(
    session: &str,
    seq: u64,
    (whole, bytes): (&Value, &Bytes),
    view: &View,
    store: &Store,
) -> Result<u64, String> {
    let path = ["params", "update", "content", "text"];
    let whole_text = &whole["params"]["update"]["content"]["text"];
    let mut rest = whole_text.as_str().unwrap_or_default();
    for first in (1..=seq).rev() {
        let row = committed(session, first, store)?;
        if is_apart(row, view) {
            continue;
        }
        let Some(before) = text_of(row).and_then(|text| rest.strip_suffix(&text)) else {
            break;
        };
        rest = before;
        let line = set_member(&row.line, &path, whole_text.to_string().as_bytes());
        let shown = render(&EventRow { line, seq, ..row.clone() }, None, session, view);
        if rest.is_empty() && shown.as_ref() == Some(bytes) {
            return Ok(first);
        }
    }
    Err(format!("{session} {seq}: shown {whole}, which is not in the journal"))
}

/// Returns the first of the lines whose newest members together are a folded call's.
pub(super) fn first_of_call(
    session: &str,
    lines: Range<u64>,
    call: &Value,
    view: &View,
    store: &Store,
) -> Result<u64, String> {
    let (mut merged, mut found) = (json!({}), None);
    for first in (lines.start + 1..=lines.end).rev() {
        let row = committed(session, first, store)?;
        if is_apart(row, view) {
            continue;
        }
        let line = render(row, None, session, view).unwrap_or_default();
        let line: Value = serde_json::from_slice(&line).unwrap_or_default();
        let earlier = line["params"]["update"].as_object();
        let Some(earlier) = earlier.filter(|of| of.get("toolCallId") == call.get("toolCallId"))
        else {
            break;
        };
        for (name, value) in earlier {
            if name == "sessionUpdate" || merged[name].is_null() {
                merged[name] = value.clone();
            }
        }
        if merged == *call {
            found = Some(first);
        }
        let kind = str_at(&row.line, &["params", "update", "sessionUpdate"]);
        if kind.as_deref() == Some("tool_call") {
            break;
        }
    }
    found.ok_or_else(|| format!("{session} {}: {call} is not in the journal", lines.end))
}

/// Returns whether a load shows a row apart from its neighbours.
fn is_apart(row: &EventRow, view: &View) -> bool {
    matches!(row.kind, EventKind::State(_) | EventKind::Live) || !row.form.is_for(view.reads())
}

pub(super) fn text_of(row: &EventRow) -> Option<String> {
    let line: Value = serde_json::from_slice(&row.line).ok()?;
    Some(line["params"]["update"]["content"]["text"].as_str()?.to_owned())
}
