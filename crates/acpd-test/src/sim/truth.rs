//! True events of a run, to compare with the hub's reports, and their number.

use std::collections::{BTreeMap, BTreeSet};

use acpd_api::HookEvent;
use serde_json::Value;

#[derive(Debug, Default)]
pub(super) struct Truth {
    /// Prompts that an agent has read.
    pub(super) read: BTreeSet<String>,
    /// Prompts that an agent accepted.
    pub(super) received: BTreeSet<String>,
    pub(super) steered: BTreeSet<String>,
    /// Messages that were returned to their senders: no agent gets them.
    pub(super) given_back: BTreeSet<String>,
    /// Prompts that an agent has refused for a login: their keys are free, and they may come again.
    pub(super) refused: BTreeSet<String>,
    /// Those that came again since.
    pub(super) repeated: BTreeSet<String>,
    /// Ids of the messages of prompts, as clients of version 2 were told.
    pub(super) inserted: BTreeMap<String, String>,
    /// Prompts that several requests have sent under their key.
    pub(super) shared: BTreeSet<String>,
    /// Prompts that an agent has answered, and the number of its lines.
    pub(super) ended: BTreeMap<String, u64>,
    /// Valid answers of a client: effect of the tool call, and option.
    pub(super) consents: BTreeSet<(String, String)>,
    /// Ids of acpd's requests to clients, and the effect of the tool call of each.
    pub(super) asked: BTreeMap<String, String>,
    /// Questions for which a hook has run.
    told: BTreeSet<String>,
    pub(super) hits: BTreeMap<&'static str, u64>,
}

/// The text of an id of acpd, as an SDK reads it: a string or a 32-bit integer.
pub(super) fn wire_id(id: &Value) -> Result<String, String> {
    let fits = id.is_string() || id.as_i64().is_some_and(|number| i32::try_from(number).is_ok());
    if fits { Ok(id.to_string()) } else { Err(format!("no SDK of 32 bits reads the id {id}")) }
}

impl Truth {
    pub(super) fn hit(&mut self, what: &'static str) {
        *self.hits.entry(what).or_default() += 1;
    }

    /// An agent reads a client's text, as a prompt or into a turn.
    pub(super) fn reads(&mut self, text: &str) -> Result<(), String> {
        let is_new = self.read.insert(text.to_owned());
        if !(is_new || self.refused.contains(text) && self.repeated.insert(text.to_owned())) {
            return Err(format!("{text} reached an agent twice"));
        }
        if self.given_back.contains(text) {
            return Err(format!("{text} reached an agent, and was given back to its sender"));
        }
        Ok(())
    }

    /// A hook runs; never twice for one question, however often the daemon dies.
    pub(super) fn tell(&mut self, event: HookEvent, about: &[u8]) -> Result<(), String> {
        self.hit("hook run");
        if event != HookEvent::Permission {
            return Ok(());
        }
        let id = acp_wire::str_at(about, &["id"]).ok_or("a hook without a question")?;
        if self.told.insert(id.to_string()) {
            Ok(())
        } else {
            Err(format!("a hook is run again for question {id}"))
        }
    }
}
