//! Content of calls: terminals, which each editor knows under its own ids, and items that only some
//! clients take.

use std::fmt;

use acp_wire::{locate, set_member, splice, str_at};
use bytes::Bytes;
use serde_json::json;
use serde_json::value::RawValue;

use crate::ids::InteractionId;
use crate::input::View;

pub(crate) fn with_own_content(json: &Bytes, path: &[&str], view: &View) -> Bytes {
    let json = with_own_terminals(json, path, view.editor);
    // The content of another session, unknown to clients without subagents.
    if view.capabilities.subagents { json } else { without_type(&json, path, "session") }
}

/// Gives this editor's terminals its own ids. Other terminals become text.
fn with_own_terminals(json: &Bytes, path: &[&str], editor: u64) -> Bytes {
    replace_terminals(json, path, |item, name| match TerminalName::parse(name)? {
        TerminalName::Editor { editor: of, id } if of == editor => {
            let id = json!(id).to_string();
            Some(set_member(item, &["terminalId"], id.as_bytes()))
        }
        TerminalName::Editor { .. } => Some(text_item("(a terminal of another editor)")),
        // acpd adds the output later, but not to every tool call that shows the terminal.
        TerminalName::Own(_) => Some(text_item("(a terminal of acpd)")),
    })
}

/// `with` gets each terminal and its id.
pub(crate) fn replace_terminals(
    json: &Bytes,
    path: &[&str],
    mut with: impl FnMut(&Bytes, &str) -> Option<Bytes>,
) -> Bytes {
    let Some(range) = locate(json, path) else { return json.clone() };
    let Ok(items) = serde_json::from_slice::<Vec<&RawValue>>(&json[range.clone()]) else {
        return json.clone();
    };
    let mut edits = Vec::new();
    for item in items {
        let item = json.slice_ref(item.get().as_bytes());
        let is_terminal = str_at(&item, &["type"]).as_deref() == Some("terminal");
        let name = str_at(&item, &["terminalId"]).filter(|_| is_terminal);
        if let Some(other) = name.and_then(|name| with(&item, &name)) {
            let start = item.as_ptr() as usize - json.as_ptr() as usize;
            edits.push((start..start + item.len(), other));
        }
    }
    if edits.is_empty() {
        return json.clone();
    }
    let edits: Vec<_> = edits.iter().map(|(at, other)| (at.clone(), &other[..])).collect();
    splice(json, &edits)
}

pub(crate) fn text_item(text: &str) -> Bytes {
    let content = json!({ "type": "text", "text": text });
    json!({ "type": "content", "content": content }).to_string().into()
}

pub(crate) fn without_boolean_options(json: &Bytes, path: &[&str]) -> Bytes {
    without_type(json, path, "boolean")
}

fn without_type(json: &Bytes, path: &[&str], kind: &str) -> Bytes {
    retain_items(json, path, |item| str_at(item, &["type"]).as_deref() != Some(kind))
}

/// Removes the other items of the list at a path.
pub(crate) fn retain_items(json: &Bytes, path: &[&str], keep: impl Fn(&[u8]) -> bool) -> Bytes {
    let Some(range) = locate(json, path) else { return json.clone() };
    let Ok(items) = serde_json::from_slice::<Vec<&RawValue>>(&json[range.clone()]) else {
        return json.clone();
    };
    let texts = items.iter().map(|item| item.get());
    let kept: Vec<&str> = texts.filter(|item| keep(item.as_bytes())).collect();
    if kept.len() == items.len() {
        return json.clone();
    }
    let list = format!("[{}]", kept.join(","));
    splice(json, &[(range, list.as_bytes())])
}

/// Id of a terminal for agents, which names the owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TerminalName<'a> {
    /// A terminal of acpd, named after the request that created it.
    Own(InteractionId),
    Editor {
        editor: u64,
        id: &'a str,
    },
}

impl<'a> TerminalName<'a> {
    pub(crate) fn parse(text: &'a str) -> Option<TerminalName<'a>> {
        if let Some(number) = text.strip_prefix("acpd-") {
            return InteractionId::parse(number).map(TerminalName::Own);
        }
        let text = text.strip_prefix("editor-")?;
        let (end, _) = text.match_indices('-').nth(1)?;
        let InteractionId(editor) = InteractionId::parse(&text[..end])?;
        // A client without terminals has this number.
        (editor != 0).then_some(TerminalName::Editor { editor, id: &text[end + 1..] })
    }
}

impl fmt::Display for TerminalName<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TerminalName::Own(number) => write!(f, "acpd-{}", number.text()),
            TerminalName::Editor { editor, id } => {
                write!(f, "editor-{}-{id}", InteractionId(*editor).text())
            }
        }
    }
}
