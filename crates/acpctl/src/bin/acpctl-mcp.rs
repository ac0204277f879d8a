//! `acpctl mcp` as a separate program, so that other verbs do not need tokio and the MCP library.
//! The daemon also gives it to agents.

#[macro_use]
#[path = "../manual.rs"]
mod manual;

use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use acpd_api::Tools;
use acpd_mcp::{Options, serve};
use acpd_sys::keeper;
use clap::{CommandFactory as _, FromArgMatches as _, Parser};

/// Run acpd's MCP server (other agents, history, files).
#[derive(Debug, Parser)]
#[command(name = "acpctl mcp", bin_name = "acpctl mcp", version)]
#[command(after_long_help = examples!(
    "claude mcp add acpd -- acpctl mcp" => "Add it to an agent",
    "acpctl mcp --tools delegate,history" => "Provide only these tools",
    "acpctl mcp --diagnostics detect" => "Find mistakes with the tools of the project",
))]
struct Args {
    /// Tools: `delegate` works with other agents, `history` searches and reads conversations, `workspace` searches
    /// files [default: all].
    #[arg(long, value_name = "TOOLS", value_delimiter = ',', value_parser = tools)]
    tools: Vec<Tools>,
    /// The number of the session that acpd lends it to.
    #[arg(long, hide = true)]
    session: Option<u64>,
    /// The agent of that session may answer what is asked in the turns that it has begun.
    #[arg(long, hide = true, requires = "session")]
    answer: bool,
    /// A folder for the file tools, the working directory first; can be repeated [default: the current directory].
    #[arg(long, value_name = "DIR")]
    folder: Vec<PathBuf>,
    /// A command that finds mistakes in the working directory, or `detect` to choose by its files; can be repeated.
    /// The command may run code of the directory. `editor:TOOL` asks this tool of an
    /// editor first [default: none].
    #[arg(long, value_name = "COMMAND")]
    diagnostics: Vec<String>,
    /// Fail instead of starting the daemon.
    #[arg(long)]
    no_spawn: bool,
    /// Write a manual page of this command into a folder, and do nothing else.
    #[arg(long, hide = true, value_name = "DIR")]
    man: Option<PathBuf>,
}

fn tools(word: &str) -> Result<Tools, String> {
    let known = Tools::ALL.iter().find(|(known, _)| *known == word);
    let words = Tools::ALL.map(|(word, _)| word).join(", ");
    known.map(|(_, tools)| *tools).ok_or_else(|| format!("the tools are: {words}"))
}

fn main() -> ExitCode {
    if std::env::args_os().skip(1).eq([keeper::ARGUMENT]) {
        return keeper::run();
    }
    let typed = Args::from_arg_matches(&Args::command().get_matches());
    let Args { tools, session, answer, folder, diagnostics, no_spawn, man } =
        typed.unwrap_or_else(|error| error.exit());
    if let Some(dir) = man {
        return ended(manual::write(Args::command().name("acpctl-mcp"), &dir));
    }
    let all = Tools::ALL.map(|(_, tools)| tools).to_vec();
    let tools = if tools.is_empty() { all } else { tools };
    let options = Options {
        tools: tools.into_iter().collect(),
        session,
        answer,
        spawn: !no_spawn,
        folders: folder,
        diagnostics,
        // Without a keeper, detached processes of a command may outlive it.
        keeper: std::env::current_exe().ok(),
    };
    ended(serve(&options))
}

#[expect(
    clippy::disallowed_methods,
    reason = "stdout is the protocol's, and stderr takes one line"
)]
fn ended(done: io::Result<()>) -> ExitCode {
    let Err(error) = done else { return ExitCode::SUCCESS };
    anstream::eprintln!("error: {}", acpd_api::escape::one_line(&error.to_string()));
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_what_it_reads() {
        let examples = manual::examples_of(&Args::command());
        let own = examples.iter().filter_map(|(line, _)| line.split_once("acpctl "));
        for (_, args) in own {
            let parsed = Args::try_parse_from(args.split(' '));
            assert!(parsed.is_ok(), "{args}: {}", parsed.unwrap_err());
        }
    }
}
