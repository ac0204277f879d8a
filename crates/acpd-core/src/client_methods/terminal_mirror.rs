//! What tool calls show of commands that run, and how far each is shown.

use std::collections::BTreeSet;

use bytes::Bytes;

use crate::ids::{InteractionId, Time};
use crate::input::{TerminalEnd, TerminalTail};

/// A tool call that shows commands that run.
#[derive(Debug)]
pub(crate) struct Mirror {
    /// As the agent gave it.
    pub(crate) content: Bytes,
    pub(crate) running: BTreeSet<InteractionId>,
    /// The row of its last word.
    pub(crate) last_word: InteractionId,
}

/// How far a command that runs is shown.
#[derive(Debug)]
pub(crate) struct Growth {
    pub(crate) tail: TerminalTail,
    pub(crate) looked: Time,
    pub(crate) looks: u32,
    pub(crate) steps: u32,
    /// A call that was shown anew lacks what was shown before.
    pub(crate) again: bool,
}

impl Growth {
    /// Of a command that is made now.
    pub(crate) fn new(now: Time) -> Growth {
        Growth { tail: TerminalTail::default(), looked: now, looks: 0, steps: 0, again: false }
    }
}

impl TerminalTail {
    /// As it is shown in a conversation, with what there is to say about the command itself.
    pub(crate) fn shown(&self, how: Option<&str>) -> String {
        let mut text = String::new();
        if self.truncated {
            text.push_str("…\n");
        }
        text.push_str(&self.output);
        let Some(how) = how else { return text };
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text + "(" + how + ")"
    }
}

impl TerminalEnd {
    pub(crate) fn shown(&self) -> String {
        let how = match (&self.signal, self.code) {
            (Some(signal), _) => Some(format!("ended by {signal}")),
            (None, Some(code)) if code != 0 => Some(format!("exit code {code}")),
            _ => self.tail.output.is_empty().then(|| "no output".to_owned()),
        };
        self.tail.shown(how.as_deref())
    }
}
