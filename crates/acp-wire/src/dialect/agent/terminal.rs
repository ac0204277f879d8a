//! Terminals that the agent shows: version 1 gets their output as text in tool calls.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use hashlink::LinkedHashMap;

use super::{id_at, recent};
use crate::dialect::objects::value_at;
use crate::{locate, str_at};

/// The last bytes of a terminal's output that a tool call shows.
const SHOWN: usize = 16 << 10;
/// Terminals of one session that are remembered.
const MOST: usize = 256;

#[derive(Debug, Clone, Default)]
pub(super) struct Terminals {
    all: LinkedHashMap<String, Terminal>,
}

#[derive(Debug, Clone, Default)]
struct Terminal {
    /// The end of the output.
    output: Vec<u8>,
    /// Bytes before `output`.
    cut: usize,
    /// Bytes of output since a tool call has shown it.
    news: usize,
    is_over: bool,
}

impl Terminals {
    /// Takes an update of a terminal. Returns its id if the tool calls must show it now: each step
    /// repeats the output, so the steps grow with it.
    pub(super) fn told(&mut self, update: &Bytes) -> Option<String> {
        let id = id_at(update, &["terminalId"])?;
        let terminal = recent(&mut self.all, &id, MOST);
        let data = |path: &[&str]| BASE64_STANDARD.decode(str_at(update, path)?.as_bytes()).ok();
        if let Some(output) = data(&["output", "data"]) {
            let known = terminal.cut + terminal.output.len();
            let goes_on = terminal.cut == 0 && output.starts_with(&terminal.output);
            terminal.news += if goes_on { output.len() - known } else { output.len().max(1) };
            (terminal.output, terminal.cut) = (output, 0);
        } else if locate(update, &["output"]).is_some_and(|at| &update[at] == b"null") {
            (terminal.output, terminal.cut, terminal.news) = (Vec::new(), 0, 0);
        }
        if let Some(more) = data(&["data"]) {
            terminal.news += more.len();
            terminal.output.extend_from_slice(&more);
        }
        terminal.is_over |= value_at(update, &["exitStatus"]).is_some();
        // Twice, so that bytes are seldom moved.
        if terminal.output.len() > 2 * SHOWN {
            let cut = terminal.output.len() - SHOWN;
            terminal.output = terminal.output.split_off(cut);
            terminal.cut += cut;
        }
        let shown = terminal.output.len().saturating_sub(terminal.news).min(SHOWN);
        let is_due = terminal.news > shown / 2 || terminal.is_over && terminal.news > 0;
        is_due.then(|| id.into_owned())
    }

    pub(super) fn has_news(&self, id: &str) -> bool {
        self.all.get(id).is_some_and(|terminal| terminal.news > 0)
    }

    /// The agent has said how the terminal's command ended, or has never named the terminal.
    pub(super) fn is_over(&self, id: &str) -> bool {
        self.all.get(id).is_none_or(|terminal| terminal.is_over)
    }

    /// Forgets terminals that are over and that no call shows.
    pub(super) fn turn_ended(&mut self, shown: &BTreeSet<&str>) {
        self.all.retain(|id, terminal| !terminal.is_over || shown.contains(id.as_str()));
    }

    pub(super) fn set_shown(&mut self, id: &str) {
        if let Some(terminal) = self.all.get_mut(id) {
            terminal.news = 0;
        }
    }

    /// The end of a terminal's output. `None`: there is none.
    pub(super) fn text(&self, id: &str) -> Option<String> {
        let terminal = self.all.get(id)?;
        let from = terminal.output.len().saturating_sub(SHOWN);
        let is_part = |byte: &u8| byte & 0xC0 == 0x80;
        let output = &terminal.output[from..];
        let begun =
            if from > 0 { output.iter().take_while(|byte| is_part(byte)).count() } else { 0 };
        let text = String::from_utf8_lossy(&output[begun..]);
        // The rest of a half character comes with the next output.
        let text = if terminal.is_over { &*text } else { text.trim_end_matches('\u{FFFD}') };
        let mark = if terminal.cut + from > 0 { "…\n" } else { "" };
        (!text.is_empty()).then(|| format!("{mark}{text}"))
    }
}
