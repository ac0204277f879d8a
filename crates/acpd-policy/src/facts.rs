//! Facts about a tool call, read from its kind, title, input and locations.
//!
//! Architecture invariant: an unknown member of the input is never ignored. All of its texts are
//! kept, so no `allow` rule covers it and every `reject` rule sees it.

use std::collections::BTreeSet;

use acp_wire::acp::PermissionRequest;
use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::command::Command;
use crate::config::Kind;
use crate::members::{Member, is_known_shell, member, plain};
use crate::subject::Subject;

/// Members that change with each call, in inputs that contain the call's id.
const OF_THIS_CALL: [&str; 4] = ["callid", "approvalid", "turnid", "startedatms"];

/// Commands of editing tools, with a path next to them.
const EDITOR_COMMANDS: [&str; 6] =
    ["view", "create", "str_replace", "insert", "undo_edit", "write"];

/// Maximum length of a subject's input in bytes.
const LONGEST_INPUT: usize = 16 * 1024;

/// Maximum searched text of one unknown member in bytes.
const MOST_TEXT: usize = 128 * 1024;

/// A tool call as rules see it. Texts are complete, as the agent wrote them.
#[derive(Debug, Default)]
pub struct Understanding {
    /// The agent's kind; unknown ones are `other`.
    pub kind: Kind,
    pub title: Option<String>,
    /// The call changes files, also if its kind is not `edit`.
    pub(crate) edits: bool,
    pub(crate) may_run: bool,
    pub commands: Vec<Command>,
    /// The folder that the command names.
    pub folder: Option<String>,
    pub paths: Vec<String>,
    /// The input itself names paths, not only the locations.
    pub(crate) names_paths: bool,
    pub urls: Vec<String>,
    /// The sorted input as text, without members that change with each call.
    pub(crate) input: Option<String>,
    /// Parts of the input that are not understood. If there are any, a person must see the input
    /// itself.
    pub unclear: Vec<Unclear>,
    /// The input, or another part of the call, cannot be read and may be anything.
    pub(crate) is_unread: bool,
    pub(crate) is_unread_command: bool,
    /// Subject for "always"; `None` if the call cannot be recognized later.
    pub subject: Option<Subject>,
}

/// Sets of members that are understood together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// Next to a command.
    Command,
    /// In a call that only touches files.
    Files,
    /// In any other call.
    Other,
    /// Within a path or a change: the new content of a file.
    Change,
}

/// A part of the input that is not understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unclear {
    /// Path of the member; empty for the whole input.
    pub member: String,
    /// For people: `is not known`, `is given twice`.
    pub why: &'static str,
    pub(crate) texts: Vec<String>,
}

impl Understanding {
    pub fn of(request: &PermissionRequest<'_>) -> Self {
        let kind = request.kind.as_deref().and_then(|kind| kind.parse().ok());
        let places = request.locations.iter().chain(&request.diffs);
        let mut facts = Self {
            kind: kind.unwrap_or_default(),
            title: request.title.as_deref().map(str::to_owned),
            edits: !request.diffs.is_empty(),
            may_run: matches!(kind, None | Some(Kind::Execute)),
            paths: places.map(|path| path.clone().into_owned()).collect(),
            ..Self::default()
        };
        if let Some(raw) = request.raw_input.map(RawValue::get) {
            match serde_json::from_str::<Value>(raw) {
                Ok(value) => {
                    match &value {
                        // Readers disagree about which of them counts.
                        _ if has_repeated_members(raw) => facts.unread("", "has a member twice"),
                        Value::Object(members) => facts.read(members),
                        other => facts.unclear("", "is not an object", other),
                    }
                    facts.input = text_of(value, request.tool_call_id.as_deref());
                }
                Err(_) => facts.unread("", "cannot be read"),
            }
        }
        for member in &request.unread {
            facts.unread(member, "cannot be read");
        }
        facts.may_run |= !facts.commands.is_empty();
        facts.paths.sort_unstable();
        facts.paths.dedup();
        facts.subject = facts.subject_of(request);
        facts
    }

    /// Returns whether all of the input is understood. Rules on commands, paths or addresses allow
    /// no other call.
    pub fn is_whole(&self) -> bool {
        self.unclear.is_empty()
    }

    /// Returns the subject of a call; `None` if the call cannot be recognized later.
    ///
    /// A completely understood call is recognized by its effect, any other by the whole text of its
    /// input.
    fn subject_of(&self, request: &PermissionRequest<'_>) -> Option<Subject> {
        if self.is_unread || request.tool_call_id.is_none() {
            return None;
        }
        let names_more = self.names_paths || !self.urls.is_empty();
        if let ([command], true) = (self.commands.as_slice(), self.is_whole() && !names_more) {
            let line = command.line.clone();
            return Some(Subject::Command { line, folder: self.folder.clone() });
        }
        let only_touches = self.is_whole() && self.commands.is_empty();
        if only_touches && self.kind == Kind::Fetch && !self.names_paths && !self.urls.is_empty() {
            return Some(Subject::Urls { urls: self.urls.iter().cloned().collect() });
        }
        let is_file = matches!(self.kind, Kind::Read | Kind::Edit | Kind::Delete);
        if only_touches && is_file && self.urls.is_empty() && !self.paths.is_empty() {
            let paths = self.paths.iter().cloned().collect();
            return Some(Subject::Paths { kind: self.kind, paths });
        }
        let title = self.title.clone().filter(|title| !title.trim().is_empty())?;
        // A title alone may be as broad as `bash`, because the rest was in an earlier update.
        let input = self.input.clone().filter(|input| input != "{}");
        let input = match (input, request.content.map(RawValue::get)) {
            (Some(input), _) => input,
            (None, Some(shown)) if shown != "[]" && self.is_whole() => shown.to_owned(),
            (None, _) => return None,
        };
        let size = title.len() + input.len();
        (size <= LONGEST_INPUT).then_some(Subject::Call { kind: self.kind, title, input })
    }

    fn unread(&mut self, member: &str, why: &'static str) {
        self.is_unread = true;
        self.unclear(member, why, &Value::Null);
    }

    fn unclear(&mut self, member: &str, why: &'static str, value: &Value) {
        let mut texts = texts_in(value);
        if texts.iter().map(String::len).sum::<usize>() > MOST_TEXT {
            self.is_unread = true;
            texts.clear();
        }
        self.unclear.push(Unclear { member: member.to_owned(), why, texts });
    }

    fn read(&mut self, members: &Map<String, Value>) {
        let has = |wanted: &[Member]| {
            let is_it = |name| member(name).is_some_and(|member| wanted.contains(&member));
            members.iter().any(|(name, value)| is_it(name) && !value.is_null())
        };
        let is_command = has(&[Member::Command, Member::Commands]) && !self.is_editor(members);
        let scope = match self.kind {
            _ if is_command => Scope::Command,
            Kind::Execute => Scope::Other,
            _ if has(&[Member::Url]) => Scope::Other,
            _ => Scope::Files,
        };
        if is_command {
            self.read_commands(members);
        }
        let before = self.paths.len();
        self.read_members("", members, scope);
        self.names_paths = self.paths.len() > before;
        let is_written = |(name, value): (&String, &Value)| {
            let is_whole = self.names_paths && matches!(&*plain(name), "content" | "contents");
            !value.is_null() && (is_whole || writes(name, value))
        };
        self.edits |= members.iter().any(is_written);
    }

    fn read_members(&mut self, within: &str, members: &Map<String, Value>, scope: Scope) {
        let mut names = BTreeSet::new();
        for (name, value) in members {
            let place = format!("{within}{name}");
            // Only the agent knows which spelling counts.
            if !names.insert(plain(name)) {
                self.unclear(&place, "is given twice", value);
            }
            if value.is_null() {
                continue;
            }
            let is_command = scope == Scope::Command;
            let is_change = scope == Scope::Change;
            let is_sound = match member(name) {
                Some(Member::Command | Member::Commands) => !is_change,
                Some(Member::Args) => is_command,
                Some(Member::Shell) => is_command && value.as_str().is_some_and(is_known_shell),
                Some(Member::Folder) if is_command => self.read_folder(value),
                Some(Member::Folder | Member::Path) => self.read_path(&place, value),
                Some(Member::Changes) => self.read_changes(&place, value),
                Some(Member::Url) => self.read_url(value) && !is_change,
                Some(Member::Idle(is)) => is.fits(value),
                Some(Member::IdleWithoutCommand(is)) => !is_command && is.fits(value),
                Some(Member::OfFiles(is) | Member::Written(is)) => {
                    matches!(scope, Scope::Files | Scope::Change) && is.fits(value)
                }
                None => false,
            };
            if !is_sound {
                let is_known = member(name).is_some();
                let why = if is_known { "is not as expected" } else { "is not known" };
                self.unclear(&place, why, value);
            }
        }
    }

    fn is_editor(&self, members: &Map<String, Value>) -> bool {
        matches!(self.kind, Kind::Read | Kind::Edit)
            && members.keys().any(|name| member(name) == Some(Member::Path))
            && members.iter().all(|(name, value)| match member(name) {
                Some(Member::Command) => editor_command(value).is_some(),
                Some(Member::Commands | Member::Args) => false,
                _ => true,
            })
    }

    fn read_commands(&mut self, members: &Map<String, Value>) {
        let of = |wanted: Member| {
            let is_it = move |(name, value): &(&String, &Value)| {
                member(name) == Some(wanted) && !value.is_null()
            };
            members.iter().filter(is_it).collect::<Vec<_>>()
        };
        let several = [of(Member::Command), of(Member::Commands)].concat();
        let args = of(Member::Args);
        // Arguments are understood only next to a single program.
        if let ([(_, Value::String(program))], [(_, args)]) = (&*several, &*args)
            && let Some(args) = words(args)
            && let Some(command) = Command::program(program, &args)
        {
            self.commands.push(command);
            return;
        }
        for (name, value) in args {
            self.unread_command(name, value);
        }
        for (name, value) in several {
            self.read_command(name, value);
        }
        let mut seen = BTreeSet::new();
        self.commands.retain(|command| seen.insert(command.line.clone()));
    }

    fn read_command(&mut self, name: &str, value: &Value) {
        match value {
            Value::String(line) => self.commands.extend(Command::line(line)),
            Value::Array(lines) if member(name) == Some(Member::Commands) => {
                for line in lines {
                    match line {
                        Value::Array(_) | Value::String(_) => self.read_command("command", line),
                        other => self.unread_command(name, other),
                    }
                }
            }
            list => match words(list).and_then(|words| Command::words(&words)) {
                Some(command) => self.commands.push(command),
                None => self.unread_command(name, value),
            },
        }
    }

    fn unread_command(&mut self, name: &str, value: &Value) {
        self.is_unread_command = true;
        self.unclear(name, "is not as expected", value);
    }

    fn read_folder(&mut self, value: &Value) -> bool {
        let is_first = self.folder.is_none();
        self.folder = self.folder.take().or(value.as_str().map(str::to_owned));
        is_first && value.is_string()
    }

    /// Returns whether the value is a path, a list of paths, or an object with paths. Reads all of
    /// it, even if a part is wrong.
    fn read_path(&mut self, place: &str, value: &Value) -> bool {
        match value {
            Value::Null => {}
            Value::String(path) => self.paths.push(path.clone()),
            Value::Array(items) => {
                return items.iter().filter(|item| !self.read_path(place, item)).count() == 0;
            }
            Value::Object(members) => {
                self.read_members(&format!("{place}."), members, Scope::Change);
            }
            Value::Bool(_) | Value::Number(_) => return false,
        }
        true
    }

    /// Reads an object whose members are named by paths, or a list of objects with paths.
    fn read_changes(&mut self, place: &str, value: &Value) -> bool {
        let Value::Object(changes) = value else { return self.read_path(place, value) };
        self.paths.extend(changes.keys().cloned());
        let is_odd = |change: &&Value| !(change.is_object() && self.read_path(place, change));
        changes.values().filter(is_odd).count() == 0
    }

    fn read_url(&mut self, value: &Value) -> bool {
        match value {
            Value::Null => {}
            Value::String(url) => self.urls.push(url.clone()),
            Value::Array(urls) => {
                return urls.iter().filter(|url| !self.read_url(url)).count() == 0;
            }
            _ => return false,
        }
        true
    }
}

fn writes(name: &str, value: &Value) -> bool {
    match member(name) {
        Some(Member::Changes | Member::Written(_)) => true,
        Some(Member::Command) => editor_command(value).is_some_and(|command| command != "view"),
        _ => plain(name) == "edits",
    }
}

fn editor_command(value: &Value) -> Option<&str> {
    value.as_str().filter(|command| EDITOR_COMMANDS.contains(command))
}

fn words(list: &Value) -> Option<Vec<String>> {
    list.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}

/// Returns all texts in a value, with the names of members.
fn texts_in(value: &Value) -> Vec<String> {
    let mut texts = Vec::new();
    let mut open = vec![value];
    while let Some(value) = open.pop() {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
            Value::String(text) => texts.push(text.clone()),
            Value::Array(items) => open.extend(items),
            Value::Object(members) => {
                texts.extend(members.keys().cloned());
                open.extend(members.values());
            }
        }
    }
    texts
}

fn has_repeated_members(input: &str) -> bool {
    acp_wire::tidy(&Bytes::copy_from_slice(input.as_bytes()), None) != Ok(None)
}

/// Returns the input as text with sorted members; `None` for `null`.
///
/// Some agents send their own record of the call as the input, which changes each time. Such a
/// record contains the call's id. In other inputs these members may be what a tool acts on.
fn text_of(mut input: Value, call: Option<&str>) -> Option<String> {
    input.sort_all_objects();
    if let Value::Object(members) = &mut input {
        let names_it =
            |(name, value): (&String, &Value)| plain(name) == "callid" && value.as_str() == call;
        if call.is_some() && members.iter().any(names_it) {
            members.retain(|name, _| !OF_THIS_CALL.contains(&plain(name).as_str()));
        }
    }
    (!input.is_null()).then(|| input.to_string())
}
