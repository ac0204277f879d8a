//! Terminals that an agent shows in its tool calls.

use acpd_api::Untrusted;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value};

use crate::lenient::text;

/// Bytes of output that are kept, from the end.
const MOST: usize = 64 << 10;

#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Terminal {
    pub(crate) id: Untrusted,
    output: Vec<u8>,
    is_cut: bool,
    pub(crate) exit_code: Option<i64>,
}

impl Terminal {
    pub(crate) fn new(id: Untrusted) -> Terminal {
        Terminal { id, ..Terminal::default() }
    }

    /// Takes a `terminal_update` or a `terminal_output_chunk`.
    pub(crate) fn change(&mut self, update: &Map<String, Value>) {
        let data = |of: &Map<String, Value>| {
            text(of, "data").and_then(|data| BASE64_STANDARD.decode(data.raw()).ok())
        };
        let whole = match update.get("output") {
            Some(Value::Object(output)) => data(output),
            Some(Value::Null) => Some(Vec::new()),
            _ => None,
        };
        if let Some(output) = whole {
            (self.output, self.is_cut) = (output, false);
        }
        self.output.extend(data(update).unwrap_or_default());
        // Twice, so that bytes are seldom moved.
        if self.output.len() > 2 * MOST {
            self.output.drain(..self.output.len() - MOST);
            self.is_cut = true;
        }
        if let Some(exit) = update.get("exitStatus") {
            self.exit_code = exit.get("exitCode").and_then(Value::as_i64);
        }
    }

    /// Returns the end of the output. `None`: there is none.
    pub(crate) fn text(&self) -> Option<Untrusted> {
        let from = self.output.len().saturating_sub(MOST);
        let shown = String::from_utf8_lossy(&self.output[from..]);
        // Half characters at the ends.
        let shown = shown.trim_matches('\u{FFFD}');
        let mark = if self.is_cut || from > 0 { "…\n" } else { "" };
        (!shown.is_empty()).then(|| format!("{mark}{shown}").into())
    }
}
