//! Facts about a tool call, read from its kind, title, input and locations.
//!
//! Architecture invariant: a member of the input that is not understood is never passed over. It is
//! kept with every text in it, so that no `allow` rule covers it and every `reject` rule sees it.

use std::collections::BTreeSet;

use acp_wire::acp::PermissionRequest;
use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::command::Command;
use crate::config::Kind;
use crate::members::{Member, is_known_shell, member, plain};

/// Members that are new with each call, in inputs that name the call itself.
const OF_THIS_CALL: [&str; 4] = ["callid", "approvalid", "turnid", "startedatms"];

/// Commands of editing tools, with a path next to them.
const EDITOR_COMMANDS: [&str; 6] =
    ["view", "create", "str_replace", "insert", "undo_edit", "write"];

/// The longest text that is looked into in one member that is not understood, in bytes.
const MOST_TEXT: usize = 128 * 1024;

/// A tool call as rules see it.
#[derive(Debug, Default)]
pub(crate) struct Facts<'a> {
    /// The kind that the agent gives; unknown ones are `other`.
    pub(crate) kind: Kind,
    pub(crate) title: Option<&'a str>,
    /// Set if it changes files, even if its kind is another.
    pub(crate) edits: bool,
    /// Set if it may be a command, even if none was found.
    pub(crate) may_run: bool,
    /// Commands that it runs, usually one.
    pub(crate) commands: Vec<Command>,
    /// The folder that the command names.
    pub(crate) folder: Option<String>,
    /// The paths that it touches, as the agent wrote them.
    pub(crate) paths: Vec<String>,
    /// Set if its input names paths, and not only its locations do.
    pub(crate) names_paths: bool,
    /// The addresses that it fetches, as the agent wrote them.
    pub(crate) urls: Vec<String>,
    /// The input, sorted, as text, without what is new with each call.
    pub(crate) input: Option<String>,
    /// Parts of the input that are not understood.
    pub(crate) unclear: Vec<Unclear>,
    /// Set if the input, or another part of the call, cannot be read at all: it might be anything.
    pub(crate) is_unread: bool,
    /// Set if it names a command that cannot be read.
    pub(crate) is_unread_command: bool,
}

/// Sets of members that are understood together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// Those next to a command.
    Command,
    /// Those of a call that only touches files.
    Files,
    /// Those of any other call.
    Other,
    /// Those within a path or a change: what is to become of a file.
    Change,
}

/// A part of an input that is not understood.
#[derive(Debug)]
pub(crate) struct Unclear {
    /// The name of the member, with the names of those that it is in; empty for the whole input.
    pub(crate) member: String,
    /// The reason, for people.
    pub(crate) why: &'static str,
    /// Every text in it.
    pub(crate) texts: Vec<String>,
}

impl<'a> Facts<'a> {
    pub(crate) fn of(request: &'a PermissionRequest<'_>) -> Self {
        let kind = request.kind.as_deref().and_then(|kind| kind.parse().ok());
        let places = request.locations.iter().chain(&request.diffs);
        let mut facts = Self {
            kind: kind.unwrap_or_default(),
            title: request.title.as_deref(),
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
        facts
    }

    /// Returns whether all of the input is understood.
    pub(crate) fn is_whole(&self) -> bool {
        self.unclear.is_empty()
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

    /// Reads all members but those of commands, and takes as unclear what is not as it has to be.
    fn read_members(&mut self, within: &str, members: &Map<String, Value>, scope: Scope) {
        let mut names = BTreeSet::new();
        for (name, value) in members {
            let place = format!("{within}{name}");
            // Only the agent knows which of two spellings counts.
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

    /// Returns whether the command is that of an editing tool, not of a shell.
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
        // Arguments are understood next to the one program that they can be of.
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
            // A blank line runs nothing.
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

    /// Reads a path, a list of paths, or an object with paths; returns whether it is one of these. All of it
    /// is read, even if a part is wrong.
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

/// Returns whether a member says what a file is to become.
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

/// Returns the words of a list of arguments.
fn words(list: &Value) -> Option<Vec<String>> {
    list.as_array()?.iter().map(|item| item.as_str().map(str::to_owned)).collect()
}

/// Returns every text in a value, names of members included.
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

/// Returns the input as text with sorted members, or `None` for `null`.
///
/// Some agents give their own record of the call as its input, which then is new each time. A record is
/// known by the id of the call in it: in any other input these names may be what a tool acts on.
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
