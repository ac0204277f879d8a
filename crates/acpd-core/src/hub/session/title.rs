//! Titles of sessions: the agent's, and before it one that a person gave.
//!
//! What a person gave stays until a person changes it or takes it away. Whatever the agent tells about
//! the session meanwhile is shown with that title; its own is remembered for when the person's is gone. An
//! agent that repeats the person's title has not given it one of its own. No more has one that calls a session by
//! acpd's own words, with which a summary begins, or by what a client put around those of its user.
//!
//! A title is text for people. A name is a handle: short, unique, and given to commands.

use std::collections::BTreeMap;

use acp_wire::acp::{SessionUpdate, SetTitleParams, Update};
use acp_wire::{Id, StateKey, build, locate, lossy_at, set_member, str_at};
use acpd_api::TitleParams;
use bytes::Bytes;
use serde_json::json;
use serde_json::value::RawValue;

use crate::clients::{Asked, Served};
use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::{ClientId, SessionKey};
use crate::input::Batch;
use crate::params::read;
use crate::prompt::is_wrapped;
use crate::record::EventKind;
use crate::requests::purpose::{Purpose, SET_TITLE};
use crate::session::reseed::is_of_summary;
use crate::session::{State, TITLE};

/// Facts of a session.
const IN_INFO: &[&str] = &["params", "update"];
/// Bytes of them that are kept.
const INFO: usize = 16 << 10;
/// Where an agent gives one.
const IN_UPDATE: &[&str] = &["params", "update", "title"];

impl Hub {
    /// `session/set_title`: no agent is started or woken for it.
    pub(crate) fn set_title(
        &mut self,
        asked: Asked<'_>,
        key: SessionKey,
        out: &mut Batch,
    ) -> Served {
        let Asked { to, params, .. } = asked;
        let title = params.and_then(|params| str_at(params.get().as_bytes(), &["title"]));
        let title = title.ok_or_else(|| Fault::invalid("`title` is missing, or is no text"))?;
        let title = one_line(&title)?;
        self.give_title(key, Some(title.clone()), to.client, out);
        self.answer(to, &json!({ "title": title }), out);
        Ok(())
    }

    /// `_acpd/session/title`, which can take the title away, too.
    pub(crate) fn session_title(&mut self, asked: Asked<'_>, out: &mut Batch) -> Served {
        let Asked { to, params, .. } = asked;
        let params: TitleParams = read(params)?;
        let key = self.resolve(&params.session)?;
        let title = params.title.as_deref().map(one_line).transpose()?;
        self.give_title(key, title, to.client, out);
        let info = self.session_info(key);
        self.answer(to, &info, out);
        Ok(())
    }

    /// Shows a person's title to everyone but who gave it, and hands it to the agent that holds the
    /// session, if it takes titles.
    fn give_title(
        &mut self,
        key: SessionKey,
        title: Option<String>,
        by: ClientId,
        out: &mut Batch,
    ) {
        let row = &mut self.session_mut(key).row;
        if row.own_title == title {
            return;
        }
        row.edit().own_title = title;
        let row = &self.session(key).row;
        let update = Update::SessionInfoUpdate { title: row.shown_title() };
        let update = SessionUpdate { session_id: &row.public_id, update };
        let line = build::notification("session/update", &update);
        let line = self.merge_info(key, line);
        self.append(key, EventKind::State(StateKey::Info), line, Some(by), out);
        self.hand_title_over(key, out);
    }

    fn hand_title_over(&mut self, key: SessionKey, out: &mut Batch) {
        let session = self.session(key);
        let (slot, known) = (session.slot, self.processes.known(&session.row.agent));
        let takes = known.capabilities.title && !self.is_clogged(slot);
        let is_live = matches!(session.state, State::Live);
        let Some(host) = self.processes[&slot].usable_host().filter(|_| takes && is_live) else {
            return;
        };
        let Some(title) = session.row.own_title.clone() else { return };
        let session_id = session.row.agent_id.clone();
        // The answer does not matter: the title counts here in any case.
        let ask = self.ask(host, Purpose::Title { session: key }, out);
        let params = SetTitleParams { session_id: &session_id, title: &title };
        self.host_write(slot, build::request(&Id::issued(ask), SET_TITLE, &params), out);
    }

    /// Keeps the title that an agent gives.
    pub(crate) fn note_title(&mut self, key: SessionKey, line: &Bytes) {
        let Some(range) = locate(line, IN_UPDATE) else { return };
        let title = lossy_at(line, IN_UPDATE);
        if title.is_none() && &line[range] != b"null" {
            // Nothing was said that can be read, so nothing has changed.
            return;
        }
        let title: Option<String> = title.map(|title| title.chars().take(TITLE).collect());
        let is_none = title.as_deref().is_some_and(|title| self.is_of_prompt(key, title));
        let row = &mut self.session_mut(key).row;
        // The agent may only repeat the title that it got.
        let is_given = title.is_some() && title == row.own_title;
        if !is_given && !is_none {
            row.edit().title = title;
        }
    }

    /// Returns whether an agent has made a title of what acpd or a client put around a user's words.
    fn is_of_prompt(&self, key: SessionKey, title: &str) -> bool {
        let wrapped = self.session(key).wrapped.as_deref();
        is_of_summary(title)
            || is_wrapped(title)
            || wrapped.is_some_and(|prompt| is_beginning(title, prompt))
    }

    /// Adds what an update of a session's facts does not speak of, and keeps what is in force then: each is a
    /// patch, in `_meta` for each member, and newcomers get only the last one.
    pub(crate) fn merge_info(&mut self, key: SessionKey, mut line: Bytes) -> Bytes {
        let Some(at) = locate(&line, IN_INFO) else { return line };
        let said = members(&line[at]);
        let kept = self.session(key).row.info.as_deref().unwrap_or("{}");
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
        let row = &mut self.session_mut(key).row;
        if row.info != info {
            row.edit().info = info;
        }
        line
    }

    /// An agent's news of a session as clients get it: with the title that a person gave or that the agent gave before,
    /// and without one that acpd's own words are.
    pub(crate) fn with_title_that_counts(&self, key: SessionKey, line: Bytes) -> Bytes {
        let row = &self.session(key).row;
        let title = lossy_at(&line, IN_UPDATE);
        let is_told =
            title.is_some() || locate(&line, IN_UPDATE).is_some_and(|at| &line[at] == b"null");
        // Only the last of these lines is replayed, so it has the title also if the agent speaks of something else.
        let is_missing = !is_told && row.title.is_some();
        if row.own_title.is_none()
            && !is_missing
            && !title.is_some_and(|title| self.is_of_prompt(key, &title))
        {
            return line;
        }
        set_member(&line, IN_UPDATE, json!(row.shown_title()).to_string().as_bytes())
    }
}

/// Members of an object, as they stand there.
type Members = BTreeMap<String, Box<RawValue>>;

fn members(object: &[u8]) -> Members {
    serde_json::from_slice(object).unwrap_or_default()
}

/// Returns whether a title is the beginning of a prompt, which has one line here and may be cut itself.
fn is_beginning(title: &str, prompt: &str) -> bool {
    let words: Vec<&str> = title.trim_end_matches(['.', '…']).split_whitespace().collect();
    let title = words.join(" ");
    !title.is_empty() && (prompt.starts_with(&title) || title.starts_with(prompt))
}

/// A title as it is stored: one line, and not too long.
///
/// # Errors
/// When nothing of it is left.
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
