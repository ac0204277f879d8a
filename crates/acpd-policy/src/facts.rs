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

/// Members with text that is written into files.
const WRITTEN: [&str; 14] = [
    "newcontent",
    "oldcontent",
    "newtext",
    "oldtext",
    "filetext",
    "newstring",
    "oldstring",
    "newstr",
    "oldstr",
    "newsource",
    "diff",
    "unifieddiff",
    "insertline",
    "expectedreplacements",
];

/// The longest text that is looked into in one member that is not understood, in bytes.
const MOST_TEXT: usize = 128 * 1024;

/// A tool call as rules see it.
#[derive(Debug, Default)]
pub(crate) struct Facts<'a> {
    /// The kind that the agent gives; unknown ones are `other`.
    pub(crate) kind: Kind,
    pub(crate) title: Option<&'a str>,
    /// Set if it changes files, whatever its kind.
    pub(crate) edits: bool,
    /// Set if it may be a command, even if none was found.
    pub(crate) may_run: bool,
    /// Its commands, usually one.
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
        let kind = request.kind.as_deref().and_then(Kind::named);
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
            facts.input = text_of(raw, request.tool_call_id.as_deref());
            match serde_json::from_str(raw) {
                // Readers disagree about which of them counts.
                Ok(_) if has_repeated_members(raw) => facts.unread("", "has a member twice"),
                Ok(Value::Object(members)) => facts.read(&members),
                Ok(other) => facts.unclear("", "is not an object", &other),
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
        self.refuse_repeated("", members);
        let is_command = members.iter().any(|(name, value)| {
            matches!(member(name), Some(Member::Command | Member::Commands)) && !value.is_null()
        });
        let is_command = is_command && !self.is_editor(members);
        if is_command {
            self.read_commands(members);
        }
        self.names_paths = self.read_paths("", members, is_command);
        let is_written = |(name, value): (&String, &Value)| {
            let is_whole = self.names_paths && matches!(&*plain(name), "content" | "contents");
            !value.is_null() && (is_whole || writes(name, value))
        };
        self.edits |= members.iter().any(is_written);
        let sees_files_only = !is_command && self.kind != Kind::Execute && self.urls.is_empty();
        for (name, value) in members {
            if value.is_null() {
                continue;
            }
            let is_sound = match member(name) {
                // Read above.
                Some(Member::Command | Member::Commands) => true,
                Some(Member::Args) => is_command,
                Some(Member::Path | Member::Changes | Member::Url) => true,
                Some(Member::Folder) if is_command => {
                    let is_first = self.folder.is_none();
                    self.folder = self.folder.take().or(value.as_str().map(str::to_owned));
                    is_first && value.is_string()
                }
                Some(Member::Folder) => true,
                Some(Member::Shell) => is_command && value.as_str().is_some_and(is_known_shell),
                Some(Member::Idle(is)) => is.fits(value),
                Some(Member::IdleWithoutCommand(is)) => !is_command && is.fits(value),
                Some(Member::OfFiles(is)) => sees_files_only && is.fits(value),
                None => false,
            };
            if !is_sound {
                let is_known = member(name).is_some();
                let why = if is_known { "is not as expected" } else { "is not known" };
                self.unclear(name, why, value);
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

    /// Takes members that are there twice, by whatever spelling, as unclear: only the agent knows which one
    /// counts.
    fn refuse_repeated(&mut self, within: &str, members: &Map<String, Value>) {
        let mut names = BTreeSet::new();
        for (name, value) in members {
            if !names.insert(plain(name)) {
                self.unclear(&format!("{within}{name}"), "is given twice", value);
            }
        }
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

    /// Reads paths and addresses; returns whether there are paths.
    fn read_paths(&mut self, within: &str, members: &Map<String, Value>, is_command: bool) -> bool {
        let before = self.paths.len();
        for (name, value) in members {
            let place = format!("{within}{name}");
            match member(name) {
                Some(Member::Folder) if !is_command => self.read_path(&place, value),
                Some(Member::Path) => self.read_path(&place, value),
                Some(Member::Changes) => match value {
                    Value::Object(changes) => {
                        for (path, change) in changes {
                            self.paths.push(path.clone());
                            self.read_change(&place, change);
                        }
                    }
                    list => self.read_path(&place, list),
                },
                Some(Member::Url) => self.read_url(&place, value),
                _ => {}
            }
        }
        self.paths.len() > before
    }

    fn read_path(&mut self, place: &str, value: &Value) {
        match value {
            Value::Null => {}
            Value::String(path) => self.paths.push(path.clone()),
            Value::Array(items) => items.iter().for_each(|item| self.read_path(place, item)),
            Value::Object(_) => self.read_change(place, value),
            Value::Bool(_) | Value::Number(_) => self.unclear(place, "is not as expected", value),
        }
    }

    /// Reads what is to become of a file.
    fn read_change(&mut self, place: &str, value: &Value) {
        let Value::Object(members) = value else {
            return self.unclear(place, "is not as expected", value);
        };
        let within = format!("{place}.");
        self.refuse_repeated(&within, members);
        self.read_paths(&within, members, false);
        for (name, value) in members {
            let is_sound = match member(name) {
                // Read above.
                Some(Member::Path | Member::Changes | Member::Folder) => true,
                Some(Member::OfFiles(is) | Member::Idle(is) | Member::IdleWithoutCommand(is)) => {
                    is.fits(value) || value.is_null()
                }
                _ => value.is_null(),
            };
            if !is_sound {
                self.unclear(&format!("{within}{name}"), "is not known", value);
            }
        }
    }

    fn read_url(&mut self, place: &str, value: &Value) {
        match value {
            Value::Null => {}
            Value::String(url) => self.urls.push(url.clone()),
            Value::Array(urls) => urls.iter().for_each(|url| self.read_url(place, url)),
            _ => self.unclear(place, "is not as expected", value),
        }
    }
}

/// Returns whether a member says what a file is to become.
fn writes(name: &str, value: &Value) -> bool {
    match member(name) {
        Some(Member::Changes) => true,
        Some(Member::Command) => editor_command(value).is_some_and(|command| command != "view"),
        Some(Member::OfFiles(_)) => WRITTEN.contains(&&*plain(name)),
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
fn text_of(input: &str, call: Option<&str>) -> Option<String> {
    let mut input: Value = serde_json::from_str(input).ok()?;
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
