//! What acpd knows about a tool call: read from its kind, title, input and locations.
//!
//! Architecture invariant: a member of the input that is not understood is never passed over. It is
//! kept with every text in it, so that no `allow` rule covers it and every `reject` rule sees it.

use std::collections::BTreeSet;

use acp_wire::acp::PermissionRequest;
use serde_json::Value;

use crate::command::Command;
use crate::config::Kind;
use crate::json::Json;
use crate::members::{Member, is_known_shell, member, plain};

/// Members that are new with each call, in inputs that name the call itself.
const OF_THIS_CALL: [&str; 4] = ["callid", "approvalid", "turnid", "startedatms"];

/// What editing tools name with `command`, beside a path.
const EDITOR_COMMANDS: [&str; 6] =
    ["view", "create", "str_replace", "insert", "undo_edit", "write"];

/// Members that hold what is written into files.
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
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    /// Its kind; unknown ones are `other`.
    pub(crate) kind: Kind,
    pub(crate) title: Option<&'a str>,
    /// Whether it changes files, whatever kind the agent says it is.
    pub(crate) edits: bool,
    /// Whether it may be a command even if none was found.
    pub(crate) may_run: bool,
    /// Its commands, usually one.
    pub(crate) commands: Vec<Command>,
    /// The folder that the command names.
    pub(crate) folder: Option<String>,
    /// The paths that it touches, as the agent wrote them.
    pub(crate) paths: Vec<String>,
    /// Whether its input names paths, and not only its places do.
    pub(crate) names_paths: bool,
    /// The addresses that it fetches, as the agent wrote them.
    pub(crate) urls: Vec<String>,
    /// The input, sorted, as text, without what is new with each call.
    pub(crate) input: Option<String>,
    /// What in the input is not understood.
    pub(crate) unclear: Vec<Unclear>,
    /// Whether the input, or a part of the call beside it, cannot be read at all: it might be anything.
    pub(crate) is_unread: bool,
    /// Whether it names a command that cannot be read.
    pub(crate) is_unread_command: bool,
    /// Whether not even the text of the input says what it is: members are repeated.
    pub(crate) is_ambiguous: bool,
}

/// A part of an input that is not understood.
#[derive(Debug)]
pub(crate) struct Unclear {
    /// The name of the member, with the names of those that it is in; empty for the whole input.
    pub(crate) member: String,
    /// What is wrong with it.
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
            commands: Vec::new(),
            folder: None,
            paths: places.map(|path| path.clone().into_owned()).collect(),
            names_paths: false,
            urls: Vec::new(),
            input: None,
            unclear: Vec::new(),
            is_unread: false,
            is_unread_command: false,
            is_ambiguous: false,
        };
        if let Some(raw) = request.raw_input {
            let input = Json::parse(raw.get());
            facts.input = text_of(raw.get(), request.tool_call_id.as_deref());
            facts.is_ambiguous = input.as_ref().is_some_and(Json::has_repeated_members);
            facts.is_unread = input.is_none();
            match input {
                Some(Json::Object(members)) => facts.read(&members),
                Some(other) => facts.unclear("", "is not an object", &other),
                None => facts.unclear("", "cannot be read", &Json::Null),
            }
        }
        for member in &request.unread {
            facts.is_unread = true;
            facts.unclear(member, "cannot be read", &Json::Null);
        }
        facts.may_run |= !facts.commands.is_empty();
        facts.paths.sort_unstable();
        facts.paths.dedup();
        facts
    }

    /// Whether all of the input is understood.
    pub(crate) fn is_whole(&self) -> bool {
        self.unclear.is_empty()
    }

    fn unclear(&mut self, member: &str, why: &'static str, value: &Json) {
        let texts = value.texts();
        // More than that is not looked into.
        self.is_unread |= texts.iter().map(String::len).sum::<usize>() > MOST_TEXT;
        let texts = if self.is_unread { Vec::new() } else { texts };
        self.unclear.push(Unclear { member: member.to_owned(), why, texts });
    }

    fn read(&mut self, members: &[(String, Json)]) {
        self.refuse_repeated("", members);
        let is_command = members.iter().any(|(name, value)| {
            matches!(member(name), Some(Member::Command | Member::Commands)) && *value != Json::Null
        });
        let is_command = is_command && !self.is_editor(members);
        if is_command {
            self.read_commands(members);
        }
        self.names_paths = self.read_paths("", members, is_command);
        let is_written = |(name, value): &(String, Json)| {
            let is_whole = self.names_paths && matches!(&*plain(name), "content" | "contents");
            *value != Json::Null && (is_whole || writes(name, value))
        };
        self.edits |= members.iter().any(is_written);
        let sees_files_only = !is_command && self.kind != Kind::Execute && self.urls.is_empty();
        for (name, value) in members {
            if *value == Json::Null {
                continue;
            }
            let is_sound = match member(name) {
                // Read above.
                Some(Member::Command | Member::Commands) => true,
                Some(Member::Args) => is_command,
                Some(Member::Path | Member::Changes | Member::Url) => true,
                Some(Member::Folder) => !is_command || self.read_folder(value),
                Some(Member::Shell) => is_command && value.as_text().is_some_and(is_known_shell),
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

    /// Whether the command is that of an editing tool, not of a shell.
    fn is_editor(&self, members: &[(String, Json)]) -> bool {
        let is_verb = |value: &Json| value.as_text().is_some_and(|v| EDITOR_COMMANDS.contains(&v));
        matches!(self.kind, Kind::Read | Kind::Edit)
            && members.iter().any(|(name, _)| member(name) == Some(Member::Path))
            && members.iter().all(|(name, value)| match member(name) {
                Some(Member::Command) => is_verb(value),
                Some(Member::Commands | Member::Args) => false,
                _ => true,
            })
    }

    /// Members that are there twice, by whatever spelling: which one counts, only the agent knows.
    fn refuse_repeated(&mut self, within: &str, members: &[(String, Json)]) {
        let mut names = BTreeSet::new();
        for (name, value) in members {
            if !names.insert(plain(name)) {
                self.unclear(&format!("{within}{name}"), "is given twice", value);
            }
        }
    }

    fn read_folder(&mut self, value: &Json) -> bool {
        match value {
            Json::Text(folder) if self.folder.is_none() => {
                self.folder = Some(folder.clone());
                true
            }
            _ => false,
        }
    }

    fn read_commands(&mut self, members: &[(String, Json)]) {
        let is_set = |(_, value): &&(String, Json)| *value != Json::Null;
        let of = |wanted: Member| -> Vec<&(String, Json)> {
            let named = members.iter().filter(|(name, _)| member(name) == Some(wanted));
            named.filter(is_set).collect()
        };
        let several = [of(Member::Command), of(Member::Commands)].concat();
        let args = of(Member::Args);
        // Arguments are understood beside the one program that they can be of.
        let program = match (&*several, &*args) {
            ([(_, Json::Text(program))], [(_, args)]) => {
                words(args).and_then(|args| Command::program(program, &args))
            }
            _ => None,
        };
        if program.is_some() {
            self.commands.extend(program);
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

    fn read_command(&mut self, name: &str, value: &Json) {
        match value {
            // A blank line runs nothing.
            Json::Text(line) => self.commands.extend(Command::line(line)),
            Json::List(lines) if member(name) == Some(Member::Commands) => {
                for line in lines {
                    match line {
                        Json::List(_) | Json::Text(_) => self.read_command("command", line),
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

    fn unread_command(&mut self, name: &str, value: &Json) {
        self.is_unread_command = true;
        self.unclear(name, "is not as expected", value);
    }

    /// Reads paths and addresses; returns whether there are paths.
    fn read_paths(&mut self, within: &str, members: &[(String, Json)], is_command: bool) -> bool {
        let before = self.paths.len();
        for (name, value) in members {
            let place = format!("{within}{name}");
            match member(name) {
                Some(Member::Folder) if !is_command => self.read_path(&place, value),
                Some(Member::Path) => self.read_path(&place, value),
                Some(Member::Changes) => match value {
                    Json::Object(changes) => {
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

    fn read_path(&mut self, place: &str, value: &Json) {
        match value {
            Json::Null => {}
            Json::Text(path) => self.paths.push(path.clone()),
            Json::List(items) => items.iter().for_each(|item| self.read_path(place, item)),
            Json::Object(_) => self.read_change(place, value),
            Json::Flag(_) | Json::Number => self.unclear(place, "is not as expected", value),
        }
    }

    /// What is to become of a file.
    fn read_change(&mut self, place: &str, value: &Json) {
        let Json::Object(members) = value else {
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
                    is.fits(value) || *value == Json::Null
                }
                _ => *value == Json::Null,
            };
            if !is_sound {
                self.unclear(&format!("{within}{name}"), "is not known", value);
            }
        }
    }

    fn read_url(&mut self, place: &str, value: &Json) {
        match value {
            Json::Null => {}
            Json::Text(url) => self.urls.push(url.clone()),
            Json::List(urls) => urls.iter().for_each(|url| self.read_url(place, url)),
            _ => self.unclear(place, "is not as expected", value),
        }
    }
}

/// Returns whether a member says what a file is to become.
fn writes(name: &str, value: &Json) -> bool {
    let is_verb = |value: &Json| value.as_text().is_some_and(|verb| verb != EDITOR_COMMANDS[0]);
    match member(name) {
        Some(Member::Changes) => true,
        Some(Member::Command) => {
            is_verb(value) && value.as_text().is_some_and(|verb| EDITOR_COMMANDS.contains(&verb))
        }
        Some(Member::OfFiles(_)) => WRITTEN.contains(&&*plain(name)),
        _ => plain(name) == "edits",
    }
}

/// The words of a list of arguments.
fn words(list: &Json) -> Option<Vec<String>> {
    let Json::List(items) = list else { return None };
    items.iter().map(|item| item.as_text().map(str::to_owned)).collect()
}

/// The input as text with sorted members. Nothing for one that is not there.
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
