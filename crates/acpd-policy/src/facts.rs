//! What is known about a tool call that waits: read from its kind, title, input and places.
//!
//! ACP does not say what is in `rawInput`; the names here are those that agents use. Upper case and
//! underscores do not count, so `file_path` and `filePath` are one name.

use acp_wire::acp::PermissionRequest;
use serde_json::{Map, Value};

use crate::command::Command;
use crate::config::Kind;

/// Members with a command, best first: a string, or a list of arguments.
const COMMAND: [&str; 3] = ["command", "cmd", "commands"];
/// Members with the folder of a command; with a path in other calls.
const FOLDER: [&str; 6] =
    ["cwd", "workdir", "workingdirectory", "workingdir", "directory", "dirpath"];
/// Members with a path, a list of paths, or objects with such members.
const PATH: [&str; 20] = [
    "path",
    "paths",
    "filepath",
    "filepaths",
    "file",
    "files",
    "filename",
    "absolutepath",
    "relativepath",
    "notebookpath",
    "targetfile",
    "edits",
    "source",
    "destination",
    "sourcepath",
    "destinationpath",
    "oldpath",
    "newpath",
    "movepath",
    "targetpath",
];
/// Members whose keys are paths, or with a list of objects with paths.
const CHANGES: [&str; 2] = ["changes", "filechanges"];
/// Members with an address or a list of them.
const URL: [&str; 3] = ["url", "urls", "uri"];
/// Members that say nothing about what the call does: words for people, identities, time limits.
const IDLE: [&str; 22] = [
    "description",
    "reason",
    "justification",
    "explanation",
    "timeout",
    "timeoutms",
    "callid",
    "approvalid",
    "turnid",
    "threadid",
    "itemid",
    "startedatms",
    "parsedcmd",
    "commandactions",
    "proposedexecpolicyamendment",
    "proposednetworkpolicyamendments",
    "availabledecisions",
    "runinbackground",
    "isbackground",
    "prompt",
    "format",
    "maxlength",
];

/// Members that are new with each call, in inputs that name the call itself.
const OF_THIS_CALL: [&str; 4] = ["callid", "approvalid", "turnid", "startedatms"];

/// A tool call as rules see it.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    /// Its kind; unknown ones are `other`.
    pub(crate) kind: Kind,
    /// Its title.
    pub(crate) title: Option<&'a str>,
    /// Whether it may be a command even if none was found.
    pub(crate) may_run: bool,
    /// Its commands, usually one.
    pub(crate) commands: Vec<Command>,
    /// The folder that the command names.
    pub(crate) folder: Option<String>,
    /// The paths that it touches, as the agent wrote them.
    pub(crate) paths: Vec<String>,
    /// The addresses that it fetches, as the agent wrote them.
    pub(crate) urls: Vec<String>,
    /// The input, sorted, as text, without what is new with each call.
    pub(crate) input: Option<String>,
    /// Whether something of the input could not be read: then there may be more than is known.
    pub(crate) is_partial: bool,
    /// Whether the input holds more than commands, places and idle members.
    pub(crate) has_more: bool,
}

impl<'a> Facts<'a> {
    pub(crate) fn of(request: &'a PermissionRequest<'_>) -> Self {
        let kind = request.kind.as_deref().and_then(Kind::named);
        let places = request.locations.iter().chain(&request.diffs);
        let mut facts = Self {
            kind: kind.unwrap_or_default(),
            title: request.title.as_deref(),
            may_run: matches!(kind, None | Some(Kind::Execute)),
            commands: Vec::new(),
            folder: None,
            paths: places.map(|path| path.clone().into_owned()).collect(),
            urls: Vec::new(),
            input: None,
            is_partial: false,
            has_more: false,
        };
        if let Some(raw) = request.raw_input {
            let input = serde_json::from_str(raw.get()).unwrap_or_default();
            facts.read(input, request.tool_call_id.as_deref());
        }
        facts.may_run |= !facts.commands.is_empty();
        facts.paths.sort_unstable();
        facts.paths.dedup();
        facts
    }

    /// Reads the input. Whatever is not an object that can be read leaves the facts partial.
    fn read(&mut self, mut input: Value, call: Option<&str>) {
        input.sort_all_objects();
        forget_this_call(&mut input, call);
        if !input.is_null() {
            self.input = Some(input.to_string());
        }
        let Value::Object(input) = input else {
            self.is_partial = true;
            return;
        };
        self.read_command(&input);
        for (name, value) in &input {
            let plain = plain(name);
            let plain = plain.as_str();
            if value.is_null() || COMMAND.contains(&plain) || IDLE.contains(&plain) {
            } else if FOLDER.contains(&plain) && !self.commands.is_empty() {
                match value.as_str() {
                    Some(folder) if self.folder.is_none() => self.folder = Some(folder.to_owned()),
                    _ => self.has_more = true,
                }
            } else if URL.contains(&plain) {
                self.read_urls(value);
            } else if plain != "args" {
                self.has_more = true;
            }
        }
        self.read_paths(&input);
    }

    fn read_command(&mut self, input: &Map<String, Value>) {
        let named = |wanted: &str| -> Vec<&Value> {
            let members =
                input.iter().filter(|(name, value)| plain(name) == wanted && !value.is_null());
            members.map(|(_, value)| value).collect()
        };
        let args = named("args");
        let [command, cmd, commands] = COMMAND.map(named);
        let mut several = [command, cmd].concat();
        if several.is_empty() {
            let lists = commands.into_iter();
            several = lists
                .flat_map(|list| list.as_array().map_or(vec![list], |l| l.iter().collect()))
                .collect();
        }
        self.is_partial |= args.len() > 1;
        let args = args.first().copied();
        if several.is_empty() {
            self.has_more |= args.is_some();
        }
        for value in several {
            match command_of(value, args) {
                Some(command) => self.commands.push(command),
                None => self.is_partial = true,
            }
        }
        self.commands.dedup();
    }

    fn read_urls(&mut self, value: &Value) {
        match value {
            Value::String(url) => self.urls.push(url.clone()),
            Value::Array(urls) => urls.iter().for_each(|url| self.read_urls(url)),
            _ => self.is_partial = true,
        }
    }

    fn read_paths(&mut self, object: &Map<String, Value>) {
        for (name, value) in object {
            let plain = plain(name);
            let plain = plain.as_str();
            let is_folder = FOLDER.contains(&plain) && self.commands.is_empty();
            if is_folder || PATH.contains(&plain) {
                self.read_path(value);
            } else if CHANGES.contains(&plain) {
                if let Value::Object(changes) = value {
                    self.paths.extend(changes.keys().cloned());
                    changes.values().filter_map(Value::as_object).for_each(|c| self.read_paths(c));
                } else {
                    self.read_path(value);
                }
            }
        }
    }

    fn read_path(&mut self, value: &Value) {
        match value {
            Value::String(path) => self.paths.push(path.clone()),
            Value::Array(items) => items.iter().for_each(|item| self.read_path(item)),
            Value::Object(object) => self.read_paths(object),
            _ => {}
        }
    }
}

/// Some agents give their own record of the call as its input, which then is new each time. A record
/// is known by the id of the call in it: in any other input these names may be what a tool acts on.
fn forget_this_call(input: &mut Value, call: Option<&str>) {
    let Value::Object(members) = input else { return };
    let names_it =
        |(name, value): (&String, &Value)| plain(name) == "callid" && value.as_str() == call;
    if call.is_some() && members.iter().any(names_it) {
        members.retain(|name, _| !OF_THIS_CALL.contains(&plain(name).as_str()));
    }
}

/// The command of a string with its arguments beside it, or of a list of arguments.
fn command_of(command: &Value, args: Option<&Value>) -> Option<Command> {
    let words = |list: &Value| -> Option<Vec<String>> {
        list.as_array()?.iter().map(|word| word.as_str().map(str::to_owned)).collect()
    };
    match (command, args) {
        (Value::String(line), None) => Command::line(line),
        (Value::String(program), Some(args)) => Command::program(program, &words(args)?),
        (list, None) => Command::words(&words(list)?),
        (_, Some(_)) => None,
    }
}

fn plain(name: &str) -> String {
    name.chars().filter(|c| *c != '_').map(|c| c.to_ascii_lowercase()).collect()
}
