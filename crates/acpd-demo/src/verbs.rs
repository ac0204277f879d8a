//! The verbs in a prompt: `[slow 5]`, `[tool Edit the file]`, or `/plan` at its start.

use crate::session::COMMANDS;

/// One thing that a prompt tells the agent to do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Verb {
    /// `[slow N]`: N chunks, one each 100 ms.
    Slow(u64),
    /// `[chunks N]`: N numbered lines as fast as possible.
    Chunks(u64),
    /// `[number N NAME MICROS]`: N chunks `NAME/1`, `NAME/2`, … with a pause after each; the count
    /// continues over the whole turn.
    Number(u64, String, u64),
    /// `[big N]`: one chunk of N bytes.
    Big(usize),
    /// `[think TEXT]`: a thought.
    Think(String),
    /// `[plan]`: a plan whose entries get done.
    Plan,
    /// `[tool TITLE]`: a tool call with a diff.
    Tool(String),
    /// `[ask]`: asks for a permission.
    Ask,
    /// `[hang]`: never ends, not even when cancelled.
    Hang,
    /// `[hang-cancel]`: ends only when cancelled.
    HangCancel,
    /// `[crash]`: exits with 3.
    Crash,
    /// `[crash-kill]`: kills itself with SIGKILL.
    CrashKill,
    /// `[half]`: exits with 3 within a line.
    Half,
    /// `[noise]`: lines that are no messages, and messages in odd lines.
    Noise,
    /// `[auth]`: the prompt fails with -32000.
    Auth,
    /// `[error CODE TEXT]`: the prompt fails with this error.
    Error(i64, String),
    /// `[stop REASON]`: the turn ends with this stop reason.
    Stop(String),
    /// `[child]`: leaves a process behind that holds stdout.
    Child,
    /// `[child-setsid]`: the same in a session of its own, whose parent is gone.
    ChildSetsid,
    /// `[stderr N]`: N bytes on stderr.
    Stderr(usize),
    /// `[fs-read PATH]`: reads a file through the client.
    FsRead(String),
    /// `[terminal CALL FILE]`: `terminal/CALL` for the last terminal; `create` has its params in a
    /// file, and shows the terminal in a tool call.
    Terminal(String, String),
    /// `[mcp-tool SERVER FILE]`: calls a tool of an MCP server that the agent starts; the file has
    /// its name and arguments. A cancelled turn ends without notifying the server.
    McpTool(String, String),
    /// `[env NAME]`: reports an environment variable.
    Env(String),
    /// `[cost N]`: reports that the session has cost N US dollars more, and with the turn's end the
    /// tokens of that.
    Cost(f64),
    /// `[pause NAME]`: waits for the file `NAME.go`.
    Pause(String),
    /// `[raw FILE]`: sends the bytes of a file, with the session's id for `$SESSION` and that of the
    /// prompt's request for `$REQUEST`.
    Raw(String),
    /// `[tool-run FILE]`: runs a file with `sh`, as a tool of the agent, and prints its output.
    ToolRun(String),
}

/// Splits a prompt into its verbs and the text around them. Brackets without a verb are text.
pub(crate) fn parse(prompt: &str) -> (Vec<Verb>, String) {
    if let Some(verb) = slash_command(prompt) {
        return (vec![verb], String::new());
    }
    let mut verbs = Vec::new();
    let mut text = String::new();
    let mut rest = prompt;
    while let Some((before, bracket)) = rest.split_once('[') {
        text.push_str(before);
        match bracket.split_once(']').and_then(|(inner, after)| Some((verb(inner)?, after))) {
            Some((verb, after)) => {
                verbs.push(verb);
                rest = after;
            }
            None => {
                text.push('[');
                rest = bracket;
            }
        }
    }
    text.push_str(rest);
    (verbs, text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn slash_command(prompt: &str) -> Option<Verb> {
    let command = prompt.trim().strip_prefix('/')?;
    let name = command.split_whitespace().next()?;
    COMMANDS.iter().any(|(known, ..)| *known == name).then(|| verb(command))?
}

fn verb(inner: &str) -> Option<Verb> {
    let (name, arg) = inner.split_once(char::is_whitespace).unwrap_or((inner, ""));
    let arg = arg.trim();
    let text = || (!arg.is_empty()).then(|| arg.to_owned());
    Some(match name {
        "slow" => Verb::Slow(arg.parse().ok()?),
        "chunks" => Verb::Chunks(arg.parse().ok()?),
        "number" => {
            let mut words = arg.split_whitespace();
            let (count, name) = (words.next()?.parse().ok()?, words.next()?.to_owned());
            Verb::Number(count, name, words.next()?.parse().ok()?)
        }
        "big" => Verb::Big(arg.parse().ok()?),
        "think" => Verb::Think(text()?),
        "plan" => Verb::Plan,
        "tool" => Verb::Tool(text()?),
        "ask" => Verb::Ask,
        "hang" => Verb::Hang,
        "hang-cancel" => Verb::HangCancel,
        "crash" => Verb::Crash,
        "crash-kill" => Verb::CrashKill,
        "half" => Verb::Half,
        "noise" => Verb::Noise,
        "auth" => Verb::Auth,
        "error" => {
            let (code, message) = arg.split_once(' ').unwrap_or((arg, "error on demand"));
            Verb::Error(code.parse().ok()?, message.to_owned())
        }
        "stop" => Verb::Stop(text()?),
        "child" => Verb::Child,
        "child-setsid" => Verb::ChildSetsid,
        "stderr" => Verb::Stderr(arg.parse().ok()?),
        "fs-read" => Verb::FsRead(text()?),
        "terminal" => {
            let (call, file) = arg.split_once(' ').unwrap_or((arg, ""));
            Verb::Terminal(call.to_owned(), file.to_owned())
        }
        "mcp-tool" => {
            let (server, file) = arg.split_once(' ')?;
            Verb::McpTool(server.to_owned(), file.to_owned())
        }
        "env" => Verb::Env(text()?),
        "cost" => Verb::Cost(arg.parse().ok()?),
        "pause" => Verb::Pause(text()?),
        "raw" => Verb::Raw(text()?),
        "tool-run" => Verb::ToolRun(text()?),
        _ => return None,
    })
}
