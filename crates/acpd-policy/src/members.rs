//! Meaning of the members of a tool call's input.
//!
//! ACP does not define `rawInput`; these names are used by agents. Case and underscores are
//! ignored, so `file_path` and `filePath` are one name.

use serde_json::Value;

use crate::shell::SHELLS;

/// Folders whose shells are trusted to be shells.
const SHELL_FOLDERS: [&str; 5] =
    ["/bin/", "/usr/bin/", "/usr/local/bin/", "/opt/homebrew/bin/", "/run/current-system/sw/bin/"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Member {
    /// A line or a list of arguments.
    Command,
    Commands,
    /// Arguments of the command next to it.
    Args,
    /// Folder of the command; a path in other calls.
    Folder,
    Shell,
    /// A path, a list of paths, or objects with such members.
    Path,
    /// An object whose members are named by paths, or a list of objects with paths.
    Changes,
    Url,
    /// Without effect: words for people, ids, limits.
    Idle(Is),
    /// Without effect, except next to a command.
    IdleWithoutCommand(Is),
    /// Describes what happens to the files of a call that only touches files.
    OfFiles(Is),
    /// The same, for written files.
    Written(Is),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Is {
    Text,
    /// A number, also as text.
    Number,
    Flag,
    Option,
    Off,
    List,
    /// A pattern of names that stays inside its folder.
    Inside,
}

pub(crate) fn member(name: &str) -> Option<Member> {
    use Is::{Flag, Inside, List, Number, Off, Option, Text};
    use Member as M;
    Some(match plain(name).as_str() {
        "command" | "cmd" => M::Command,
        "commands" => M::Commands,
        "args" => M::Args,
        "shell" => M::Shell,
        "cwd" | "workdir" | "workingdirectory" | "workingdir" | "directory" | "dirpath" => {
            M::Folder
        }
        "path" | "paths" | "filepath" | "filepaths" | "file" | "files" | "filename"
        | "absolutepath" | "relativepath" | "notebookpath" | "targetfile" | "edits" | "source"
        | "destination" | "sourcepath" | "destinationpath" | "oldpath" | "newpath" | "movepath"
        | "targetpath" => M::Path,
        "changes" | "filechanges" => M::Changes,
        "url" | "urls" | "uri" => M::Url,

        "description" | "reason" | "justification" | "explanation" | "intention" | "summary"
        | "securityrisk" => M::Idle(Text),
        "callid" | "approvalid" | "turnid" | "threadid" | "itemid" => M::Idle(Text),
        "startedatms" | "timeout" | "timeoutms" | "timeoutsecs" => M::Idle(Number),
        "runinbackground" | "isbackground" | "reset" => M::Idle(Flag),
        "isinput" | "dangerouslydisablesandbox" => M::Idle(Off),
        "parsedcmd"
        | "commandactions"
        | "proposedexecpolicyamendment"
        | "proposednetworkpolicyamendments"
        | "availabledecisions" => M::Idle(List),

        "prompt" | "format" | "type" | "outputmode" | "pages" => M::IdleWithoutCommand(Text),
        "maxlength" | "offset" | "limit" | "startindex" | "headlimit" | "context" | "line" => {
            M::IdleWithoutCommand(Number)
        }
        "raw" | "multiline" | "allowlarge" => M::IdleWithoutCommand(Flag),

        "newcontent" | "oldcontent" | "newtext" | "oldtext" | "filetext" | "newstring"
        | "oldstring" | "newstr" | "oldstr" | "newsource" | "diff" | "unifieddiff" => {
            M::Written(Text)
        }
        "expectedreplacements" | "insertline" => M::Written(Number),
        "content" | "contents" | "text" | "instruction" | "cellid" | "celltype" | "editmode" => {
            M::OfFiles(Text)
        }
        "replaceall" | "casesensitive" => M::OfFiles(Flag),
        "viewrange" => M::OfFiles(List),
        "pattern" | "glob" | "include" | "exclude" | "query" | "regex" => M::OfFiles(Inside),
        "-a" | "-b" | "-c" | "-n" | "-i" | "-o" => M::OfFiles(Option),
        _ => return None,
    })
}

impl Is {
    pub(crate) fn fits(self, value: &Value) -> bool {
        let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        match (self, value) {
            (Self::Text, Value::String(_))
            | (Self::Number | Self::Option, Value::Number(_))
            | (Self::Flag | Self::Option, Value::Bool(_))
            | (Self::Off, Value::Bool(false))
            | (Self::List, Value::Array(_)) => true,
            (Self::Number, Value::String(text)) => is_digits(text),
            (Self::Inside, Value::String(pattern)) => is_inside(pattern),
            _ => false,
        }
    }
}

fn is_inside(pattern: &str) -> bool {
    let leaves = |part: &str| part == ".." || part.ends_with(':');
    !pattern.starts_with(['/', '\\', '~']) && !pattern.split(['/', '\\']).any(leaves)
}

/// Returns whether this is the name, or an absolute path, of a shell whose grammar acpd parses.
pub(crate) fn is_known_shell(shell: &str) -> bool {
    let name = SHELL_FOLDERS.iter().find_map(|folder| shell.strip_prefix(folder)).unwrap_or(shell);
    name != "fish" && SHELLS.contains(&name)
}

pub(crate) fn plain(name: &str) -> String {
    name.chars().filter(|c| *c != '_').map(|c| c.to_ascii_lowercase()).collect()
}
