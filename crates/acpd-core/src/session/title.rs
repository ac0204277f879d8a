//! Titles of sessions, and the patches in `session_info_update`. The rules are in
//! `hub/session/methods.rs`.

use std::collections::BTreeMap;

use acp_wire::{locate, lossy_at, set_member};
use bytes::Bytes;
use serde_json::json;
use serde_json::value::RawValue;

use crate::fault::Fault;
use crate::prompt::is_wrapped;
use crate::session::reseed::is_of_summary;
use crate::session::{Session, TITLE};

/// Members of an object, as raw JSON.
type Members = BTreeMap<String, Box<RawValue>>;

const IN_UPDATE: &[&str] = &["params", "update", "title"];

const IN_INFO: &[&str] = &["params", "update"];

/// Maximum size of stored info in bytes.
const INFO: usize = 16 << 10;

/// # Errors
/// When nothing of the title is left.
pub(crate) fn one_line(text: &str) -> Result<String, Fault> {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let title: String = words.join(" ").chars().take(TITLE).collect();
    if title.is_empty() {
        return Err(Fault::invalid("the title is empty")
            .hint("`acpctl session title SESSION --clear` takes a title away"));
    }
    Ok(title.trim_end().to_owned())
}

fn members(object: &[u8]) -> Members {
    serde_json::from_slice(object).unwrap_or_default()
}

/// `prompt`: one line, possibly clipped.
fn is_beginning(title: &str, prompt: &str) -> bool {
    let words: Vec<&str> = title.trim_end_matches(['.', '…']).split_whitespace().collect();
    let title = words.join(" ");
    !title.is_empty() && (prompt.starts_with(&title) || title.starts_with(prompt))
}

impl Session {
    pub(crate) fn note_title(&mut self, line: &Bytes) {
        let Some(range) = locate(line, IN_UPDATE) else { return };
        let title = lossy_at(line, IN_UPDATE);
        if title.is_none() && &line[range] != b"null" {
            // An unreadable title changes nothing.
            return;
        }
        let title: Option<String> = title.map(|title| title.chars().take(TITLE).collect());
        let is_none = title.as_deref().is_some_and(|title| self.is_of_prompt(title));
        let row = &mut self.row;
        // The agent may only repeat the user's title.
        let is_given = title.is_some() && title == row.own_title;
        if !is_given && !is_none {
            row.edit().title = title;
        }
    }

    /// Many agents use the first words that they get, which may be acpd's or a client's.
    fn is_of_prompt(&self, title: &str) -> bool {
        is_of_summary(title)
            || is_wrapped(title)
            || self.wrapped.as_deref().is_some_and(|prompt| is_beginning(title, prompt))
    }

    /// Adds the values in force to an update: each is a patch, in `_meta` for each member, but
    /// newcomers get only the last one.
    pub(crate) fn merge_info(&mut self, mut line: Bytes) -> Bytes {
        let Some(at) = locate(&line, IN_INFO) else { return line };
        let said = members(&line[at]);
        let kept = self.row.info.as_deref().unwrap_or("{}");
        for (name, kept) in members(kept.as_bytes()) {
            let Some(now) = said.get(&name) else {
                line = set_member(&line, &["params", "update", &name], kept.get().as_bytes());
                continue;
            };
            if name == "_meta" && now.get().starts_with('{') {
                let now = members(now.get().as_bytes());
                let kept = members(kept.get().as_bytes());
                for (name, value) in kept.iter().filter(|(name, _)| !now.contains_key(*name)) {
                    let path = ["params", "update", "_meta", name];
                    line = set_member(&line, &path, value.get().as_bytes());
                }
            }
        }
        let mut info = locate(&line, IN_INFO).map(|at| members(&line[at])).unwrap_or_default();
        info.retain(|name, value| {
            !["sessionUpdate", "title"].contains(&name.as_str()) && value.get() != "null"
        });
        let info = (!info.is_empty()).then(|| serde_json::to_string(&info).unwrap_or_default());
        let info = info.filter(|info| info.len() <= INFO);
        let row = &mut self.row;
        if row.info != info {
            row.edit().info = info;
        }
        line
    }

    /// Sets the user's title, else the agent's last one, but none made from acpd's own words.
    pub(crate) fn with_title_that_counts(&self, line: Bytes) -> Bytes {
        let row = &self.row;
        let title = lossy_at(&line, IN_UPDATE);
        let sets_title =
            title.is_some() || locate(&line, IN_UPDATE).is_some_and(|at| &line[at] == b"null");
        // Only the last of these lines is replayed, so each needs the title.
        let is_missing = !sets_title && row.title.is_some();
        if row.own_title.is_none()
            && !is_missing
            && !title.is_some_and(|title| self.is_of_prompt(&title))
        {
            return line;
        }
        set_member(&line, IN_UPDATE, json!(row.shown_title()).to_string().as_bytes())
    }
}
