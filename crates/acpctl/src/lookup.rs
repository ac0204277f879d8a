//! Finds the session that a text means, with the same rules for all verbs.
//!
//! ```text
//! -   the last one used in this directory, else anywhere
//! 1.  the name of one in this directory   ┐
//! 2.  a name or an id                     │ the first line that any session fits decides;
//! 3.  the beginning of a name or an id    │ if several fit, the user chooses
//! 4.  words of a title                    ┘
//! ```
//!
//! A command that removes something ([`Care::Exact`]) does not guess. It needs a unique whole name,
//! a whole id, or the beginning of an id as lists show it.

use acpd_api::{
    ArchiveFilter, ExitCode, SessionInfo, SessionList, SessionListParams, Untrusted, escape,
    method, nearest,
};
use acpd_client::Connection;
use clap::{Arg, Args};

use crate::dirs::{current_dir, utf8};
use crate::error::{CommandError, Result};
use crate::info::session::SHORT_ID;
use crate::text::{Text, shell_word, text};
use crate::ui::Ui;

#[derive(Debug, Args)]
pub(crate) struct Which {
    /// Name, id, unique prefix of either, words of the title, or `-` for the last used session.
    pub(crate) session: String,
    /// Look only among sessions of this agent.
    #[arg(short, long)]
    pub(crate) agent: Option<String>,
}

/// Makes the session optional, for verbs that change nothing.
pub(crate) fn or_last(session: Arg) -> Arg {
    let help = "Name, id, unique prefix of either, words of the title, or `-` for the last used session [default: `-`]";
    session.required(false).default_value("-").hide_default_value(true).help(help)
}

/// Minimum length at which a new name must not be the beginning of an id, because the user may mean
/// that session. Shorter words match by chance.
const LIKE_AN_ID: usize = 4;
const MAX_LISTED: usize = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Care {
    Guess,
    Exact,
}

#[derive(Debug, Clone)]
pub(crate) struct Wanted<'a> {
    text: &'a str,
    agent: Option<&'a str>,
    /// None if the working directory was deleted.
    cwd: Option<String>,
}

type Rule<'r> = &'r dyn Fn(&SessionInfo) -> bool;

#[derive(Debug, PartialEq)]
pub(crate) enum Named {
    Found(Box<SessionInfo>),
    /// No session yet; sessions with this name in other directories.
    New(Vec<SessionInfo>),
}

/// The last used session first.
pub(crate) fn all(connection: &mut Connection) -> Result<SessionList> {
    let archived = Some(ArchiveFilter::Include);
    let params = SessionListParams { archived, ..SessionListParams::default() };
    Ok(connection.call(method::SESSION_LIST, &params)?)
}

pub(crate) fn find(
    connection: &mut Connection,
    which: &Which,
    care: Care,
    ui: &mut Ui,
) -> Result<SessionInfo> {
    let wanted = Wanted::here(&which.session, which.agent.as_deref());
    wanted.choose(wanted.list(connection)?, care, |note| ui.note(note))
}

pub(crate) fn last_used(
    cwd: Option<&str>,
    agent: Option<&str>,
    connection: &mut Connection,
) -> Result<Option<SessionInfo>> {
    let (agent, cwd) = (agent.map(str::to_owned), cwd.map(str::to_owned));
    let params = SessionListParams { agent, cwd, used: true, limit: Some(1), ..Default::default() };
    let list: SessionList = connection.call(method::SESSION_LIST, &params)?;
    Ok(list.sessions.into_iter().find(is_used))
}

/// Returns the session for `--continue`; fails if none was used in this directory.
pub(crate) fn to_continue(
    cwd: &str,
    agent: Option<&str>,
    connection: &mut Connection,
) -> Result<SessionInfo> {
    last_used(Some(cwd), agent, connection)?.ok_or_else(|| {
        let agent = agent.map(|agent| text!(" of `{}`", escape::one_line(agent)));
        let text = text!("no session{} in `{}` to continue", agent, escape::one_line(cwd));
        CommandError::new(ExitCode::NotFound, text)
            .hint("start one without `--continue`, or name one with `--session`")
    })
}

/// Returns whether an agent has this name, on any machine: `box/claude` is `claude`, too.
pub(crate) fn is_agent(agent: &Untrusted, name: &str) -> bool {
    let there = agent.raw().split_once('/').map(|(_, there)| there);
    *agent == name || there == Some(name)
}

/// Returns whether the session was prompted and is not archived. So a session that an editor only
/// opened does not count.
fn is_used(session: &SessionInfo) -> bool {
    session.prompts > 0 && !session.archived
}

impl<'a> Wanted<'a> {
    pub(crate) fn here(text: &'a str, agent: Option<&'a str>) -> Wanted<'a> {
        let cwd = current_dir().and_then(|dir| utf8(&dir)).ok();
        Wanted { text, agent, cwd }
    }

    pub(crate) fn new(text: &'a str, agent: Option<&'a str>, cwd: String) -> Wanted<'a> {
        Wanted { text, agent, cwd: Some(cwd) }
    }

    /// Returns the sessions for [`Wanted::choose`].
    pub(crate) fn list(&self, connection: &mut Connection) -> Result<SessionList> {
        let some = self.beginning(connection)?;
        let fits =
            |one: &SessionInfo| self.is_of_agent(one) && (self.is_whole(one) || self.begins(one));
        let is_there = self.text == "-" || some.sessions.iter().any(fits);
        if is_there { Ok(some) } else { all(connection) }
    }

    /// Returns the sessions for [`Wanted::named`]: their names or ids begin with the text. For `-`,
    /// the last one used.
    pub(crate) fn beginning(&self, connection: &mut Connection) -> Result<SessionList> {
        if self.text == "-" {
            let here = last_used(self.cwd.as_deref(), self.agent, connection)?;
            let used = if here.is_some() { here } else { last_used(None, self.agent, connection)? };
            return Ok(SessionList { sessions: used.into_iter().collect() });
        }
        let (begins, archived) = (Some(self.text.to_owned()), Some(ArchiveFilter::Include));
        let params = SessionListParams { begins, archived, ..SessionListParams::default() };
        Ok(connection.call(method::SESSION_LIST, &params)?)
    }

    /// Fails if no session matches, or several do. `note` gets what the user should know about a
    /// guess.
    pub(crate) fn choose(
        &self,
        list: SessionList,
        care: Care,
        note: impl FnOnce(Text),
    ) -> Result<SessionInfo> {
        let sessions = self.of_agent(list);
        match (self.text, care) {
            ("-", Care::Guess) => self.last_used(&sessions, note),
            ("-", Care::Exact) => Err(CommandError::usage(
                "`-` is not allowed here: another session may be the last used by now",
            )
            .hint("name the session")),
            (_, Care::Guess) => self.guess(&sessions, note),
            (_, Care::Exact) => self.exact(&sessions),
        }
    }

    /// Returns the session with this name, or [`Named::New`]. Fails if several match, or if the
    /// name looks like an id.
    pub(crate) fn named(&self, list: SessionList, note: impl FnOnce(Text)) -> Result<Named> {
        let sessions = self.of_agent(list);
        if self.text == "-" {
            return self.last_used(&sessions, note).map(|session| Named::Found(Box::new(session)));
        }
        let has_id = |session: &SessionInfo| session.session_id == self.text;
        if let Some(session) = self.first(&sessions, &[&|one| self.is_here(one), &has_id])? {
            return Ok(Named::Found(Box::new(session)));
        }
        if self.text.len() >= LIKE_AN_ID
            && let Some(session) = sessions.iter().find(|session| self.begins_id(session))
            // Some agents begin every id with their name.
            && session.agent != self.text
        {
            let typed = Untrusted::from(self.text);
            let id = &session.session_id;
            return Err(CommandError::usage(text!("`{}` is a prefix of the id {}", typed, id))
                .hint(text!(
                    "continue it with `acpctl run --resume {} …`, or choose another name",
                    shell_word(&typed)
                )));
        }
        Ok(Named::New(fitting(&sessions, |session| self.has_name(session))))
    }

    /// Returns the session with this name in this directory that belongs to another agent.
    pub(crate) fn of_others<'s>(&self, list: &'s SessionList) -> Option<&'s SessionInfo> {
        let agent = self.agent?;
        list.sessions.iter().find(|one| !is_agent(&one.agent, agent) && self.is_here(one))
    }

    fn of_agent(&self, list: SessionList) -> Vec<SessionInfo> {
        list.sessions.into_iter().filter(|session| self.is_of_agent(session)).collect()
    }

    fn is_of_agent(&self, session: &SessionInfo) -> bool {
        self.agent.is_none_or(|agent| is_agent(&session.agent, agent))
    }

    /// Expects the last used session first.
    fn last_used(&self, sessions: &[SessionInfo], note: impl FnOnce(Text)) -> Result<SessionInfo> {
        let used = || sessions.iter().filter(|session| is_used(session));
        let mut here =
            used().filter(|session| self.cwd.as_ref().is_some_and(|cwd| session.cwd == *cwd));
        let Some(session) = here.next().or_else(|| used().next()) else {
            return Err(CommandError::new(ExitCode::NotFound, "no session has been used yet")
                .hint("start one with `acpctl run -s NAME PROMPT`"));
        };
        note(described(session));
        Ok(session.clone())
    }

    fn guess(&self, sessions: &[SessionInfo], note: impl FnOnce(Text)) -> Result<SessionInfo> {
        // Archived sessions count only if nothing else matches.
        let found = self.first(
            sessions,
            &[
                &|one| self.is_here(one),
                &|one| self.is_whole(one),
                &|one| self.begins(one) && !one.archived,
                &|one| self.begins(one),
                &|one| self.has_words(one) && !one.archived,
                &|one| self.has_words(one),
            ],
        )?;
        let session = found.ok_or_else(|| self.none(sessions))?;
        if self.is_here(&session) {
            let others = fitting(sessions, |other| self.has_name(other) && !self.is_here(other));
            if let Some(said) = elsewhere(&others, self.text) {
                note(said);
            }
        } else if !self.is_whole(&session) && !self.begins(&session) {
            note(described(&session));
        }
        Ok(session)
    }

    fn exact(&self, sessions: &[SessionInfo]) -> Result<SessionInfo> {
        let is_shown = |one: &SessionInfo| self.text.len() >= SHORT_ID && self.begins_id(one);
        if let Some(session) = self.first(sessions, &[&|one| self.is_whole(one), &is_shown])? {
            return Ok(session);
        }
        let session = self.guess(sessions, drop)?;
        let typed = Untrusted::from(self.text);
        let text = text!("no session has exactly this name or id: `{}`", typed);
        let word = shell_word(session.handle());
        let hint = text!("if you mean {}, type `{}`", described(&session), word);
        Err(CommandError::new(ExitCode::NotFound, text).hint(hint))
    }

    /// Returns the session that matches the first rule with any match; fails if several match it.
    fn first(&self, sessions: &[SessionInfo], rules: &[Rule<'_>]) -> Result<Option<SessionInfo>> {
        let found =
            rules.iter().map(|fits| fitting(sessions, fits)).find(|found| !found.is_empty());
        self.one(found.unwrap_or_default())
    }

    fn is_whole(&self, session: &SessionInfo) -> bool {
        self.has_name(session) || session.session_id == self.text
    }

    fn has_name(&self, session: &SessionInfo) -> bool {
        session.name.as_ref().is_some_and(|name| *name == self.text)
    }

    fn is_here(&self, session: &SessionInfo) -> bool {
        self.has_name(session) && self.cwd.as_ref().is_some_and(|cwd| session.cwd == *cwd)
    }

    fn begins(&self, session: &SessionInfo) -> bool {
        let name = session.name.as_ref().map_or("", Untrusted::raw);
        !self.text.is_empty() && (name.starts_with(self.text) || self.begins_id(session))
    }

    /// The part before a number of acpd (`x.7`) is another session's id, even if that session is
    /// gone.
    fn begins_id(&self, session: &SessionInfo) -> bool {
        let rest = session.session_id.raw().strip_prefix(self.text);
        let is_number = |rest: &str| {
            let digits = rest.strip_prefix('.').unwrap_or_default();
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        };
        !self.text.is_empty() && rest.is_some_and(|rest| !is_number(rest))
    }

    fn has_words(&self, session: &SessionInfo) -> bool {
        let words = |text: &str| -> Vec<String> {
            let words = text.split(|char: char| !char.is_alphanumeric());
            words.filter(|word| !word.is_empty()).map(str::to_lowercase).collect()
        };
        let title = words(session.title.as_ref().map_or("", Untrusted::raw));
        let wanted = words(self.text);
        !wanted.is_empty() && wanted.iter().all(|word| title.contains(word))
    }

    fn one(&self, mut found: Vec<SessionInfo>) -> Result<Option<SessionInfo>> {
        match found.len() {
            0 => Ok(None),
            1 => Ok(found.pop()),
            several => {
                let shown = Untrusted::from(self.text);
                let text = text!("`{}` is ambiguous: matches {} sessions", shown, several);
                let lines = found
                    .iter()
                    .take(MAX_LISTED)
                    .map(|session| text!("\n  {}  {}", session.session_id, described(session)));
                let more = several.checked_sub(MAX_LISTED).filter(|more| *more > 0);
                let more = more.map(|more| text!("\n  and {} more", more));
                let hint = text!("choose an id:{}{}", lines.collect::<Text>(), more);
                Err(CommandError::usage(text).hint(hint))
            }
        }
    }

    fn none(&self, sessions: &[SessionInfo]) -> CommandError {
        let agent = self.agent.map(|agent| text!(" of agent `{}`", escape::one_line(agent)));
        let text = text!("no session `{}`{}", Untrusted::from(self.text), agent);
        let error = CommandError::new(ExitCode::NotFound, text);
        let names = sessions.iter().filter_map(|session| Some(session.name.as_ref()?.raw()));
        match nearest(self.text, names) {
            Some(name) => error.hint(text!("did you mean `{}`?", escape::one_line(name))),
            None => error.hint("list the sessions with `acpctl session ls`"),
        }
    }
}

fn fitting(sessions: &[SessionInfo], fits: impl Fn(&SessionInfo) -> bool) -> Vec<SessionInfo> {
    sessions.iter().filter(|session| fits(session)).cloned().collect()
}

pub(crate) fn described(session: &SessionInfo) -> Text {
    let title = session.title.as_ref().filter(|_| session.name.is_none());
    let title = title.map(|title| text!(", {}", title));
    text!("{} ({}, in {}{})", session.handle(), session.agent, session.cwd, title)
}

pub(crate) fn elsewhere(others: &[SessionInfo], name: &str) -> Option<Text> {
    let name = Untrusted::from(name);
    match others {
        [] => None,
        [other] => Some(text!(
            "another session `{}` of {} is in {}: {}",
            name,
            other.agent,
            other.cwd,
            other.session_id
        )),
        several => {
            Some(text!("{} other sessions `{}` are in other directories", several.len(), name))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Sessions as (id, name, title, directory).
    fn list() -> SessionList {
        let session = |id: &str, name: Option<&str>, title: &str, cwd: &str, more: Value| {
            let mut session = json!({"sessionId": id, "name": name, "title": title, "agent": "demo",
                "cwd": cwd, "state": "live", "turn": {"state": "idle", "since": 0}, "queued": 0,
                "clients": 0, "prompts": 1, "seq": 4, "created": 0, "updated": 0});
            session.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            session
        };
        let none = json!({});
        serde_json::from_value(json!({"sessions": [
            session("ffff0001-9", None, "Rename the parser", "/other", none.clone()),
            session("aaaa0001-1", Some("fix"), "Fix the login page", "/here", none.clone()),
            session("bbbb0001-2", Some("fix"), "Fix the logout page", "/other", none.clone()),
            session("cccc0001-3", Some("docs"), "", "/other", json!({"agent": "claude"})),
            session("cccc0001-3.7", Some("twin"), "", "/here", json!({"prompts": 0})),
            session("dddd0001-4", Some("docket"), "", "/other", json!({"archived": true})),
        ]}))
        .unwrap()
    }

    fn wanted(text: &str) -> Wanted<'_> {
        Wanted::new(text, None, "/here".to_owned())
    }

    fn chosen(text: &str, care: Care) -> String {
        match wanted(text).choose(list(), care, drop) {
            Ok(session) => session.session_id.into_raw(),
            Err(error) => error.render().as_str().lines().next().unwrap().to_owned(),
        }
    }

    #[test]
    fn an_agent_of_another_machine_has_its_name_there() {
        for (agent, name, is_it) in [
            ("box/claude", "claude", true),
            ("box/claude", "box/claude", true),
            ("claude", "claude", true),
            ("claude", "box/claude", false),
            ("box/claude", "pc/claude", false),
        ] {
            assert_eq!(is_agent(&agent.into(), name), is_it, "{agent} {name}");
        }
    }

    #[test]
    fn the_name_here_comes_before_ids_beginnings_and_words_of_titles() {
        let guess = |text| chosen(text, Care::Guess);
        for (text, meant) in [
            ("fix", "aaaa0001-1"),
            ("docs", "cccc0001-3"),
            ("cccc0001-3", "cccc0001-3"),
            ("cccc0001-3.", "cccc0001-3.7"),
            ("bb", "bbbb0001-2"),
            ("tw", "cccc0001-3.7"),
            // Sessions that are not archived come first.
            ("doc", "cccc0001-3"),
            ("docke", "dddd0001-4"),
            ("parser", "ffff0001-9"),
            ("LOGOUT fix", "bbbb0001-2"),
            // The last used session here has no prompt.
            ("-", "aaaa0001-1"),
        ] {
            assert_eq!(guess(text), meant, "{text}");
        }
        for nothing in ["", "parse", "nope", "?"] {
            assert_eq!(guess(nothing), format!("error: no session `{nothing}`"));
        }
    }

    #[test]
    fn what_takes_something_away_does_not_guess() {
        let exact = |text| chosen(text, Care::Exact);
        assert_eq!(exact("docs"), "cccc0001-3");
        assert_eq!(exact("bbbb0001-2"), "bbbb0001-2");
        assert_eq!(exact("bbbb0001"), "bbbb0001-2");
        assert_eq!(exact("fix"), "error: `fix` is ambiguous: matches 2 sessions");
        for guessed in ["bb", "parser", "docke"] {
            let error = format!("error: no session has exactly this name or id: `{guessed}`");
            assert_eq!(exact(guessed), error);
        }
        assert!(exact("-").starts_with("error: `-` is not allowed here"));
    }

    #[test]
    fn the_person_hears_of_a_twin_and_of_what_was_guessed() {
        let note = |text: &str| {
            let mut said = None;
            let note = |note: Text| said = Some(note.to_string());
            wanted(text).choose(list(), Care::Guess, note).unwrap();
            said
        };
        assert_eq!(note("fix").unwrap(), "another session `fix` of demo is in /other: bbbb0001-2");
        assert_eq!(note("-").unwrap(), "fix (demo, in /here)");
        assert_eq!(note("parser").unwrap(), "ffff0001-9 (demo, in /other, Rename the parser)");
        assert_eq!((note("docs"), note("bbbb")), (None, None));
    }

    #[test]
    fn a_name_is_a_new_session_unless_it_looks_like_an_id() {
        let named = |text: &str| wanted(text).named(list(), drop);
        let found = |text: &str| match named(text) {
            Ok(Named::Found(session)) => session.session_id.into_raw(),
            other => panic!("{other:?}"),
        };
        assert_eq!(found("fix"), "aaaa0001-1");
        assert_eq!(found("bbbb0001-2"), "bbbb0001-2");
        assert_eq!(found("-"), "aaaa0001-1");
        // A name counts in its directory; the one elsewhere is reported.
        assert!(matches!(named("docs"), Ok(Named::New(others)) if others.len() == 1));
        for new in ["parser", "do", "bbb", "cccc0001-3-b"] {
            assert_eq!(named(new).unwrap(), Named::New(Vec::new()), "{new}");
        }
        let refused = named("bbbb").unwrap_err();
        insta::assert_snapshot!(refused.render(), @"
        error: `bbbb` is a prefix of the id bbbb0001-2

        hint: continue it with `acpctl run --resume bbbb …`, or choose another name
        ");
    }

    #[test]
    fn what_is_ambiguous_or_unknown_is_told_with_the_way_out() {
        let fails = |text: &str| wanted(text).choose(list(), Care::Guess, drop).unwrap_err();
        insta::assert_snapshot!(fails("page").render(), @"
        error: `page` is ambiguous: matches 2 sessions

        hint: choose an id:
          aaaa0001-1  fix (demo, in /here)
          bbbb0001-2  fix (demo, in /other)
        ");
        assert_eq!(fails("page").code(), ExitCode::Usage);
        insta::assert_snapshot!(fails("dosc").render(), @"
        error: no session `dosc`

        hint: did you mean `docs`?
        ");
        assert_eq!(fails("dosc").code(), ExitCode::NotFound);
        let other = Wanted::new("docs", Some("demo"), "/here".to_owned());
        insta::assert_snapshot!(other.choose(list(), Care::Exact, drop).unwrap_err().render(), @"
        error: no session `docs` of agent `demo`

        hint: list the sessions with `acpctl session ls`
        ");
    }
}
