//! All verbs. Each has its arguments, help and examples at the top of its file.

mod acp;
mod agent;
mod attach;
mod auth;
mod backup;
mod cancel;
#[cfg(feature = "tui")]
mod chat;
mod completions;
mod config;
mod daemon;
mod doctor;
mod gc;
mod metrics;
mod pending;
mod policy;
mod ps;
mod queue;
mod report;
mod restore;
mod run;
mod service;
mod session;
#[cfg(test)]
mod tests;
mod trace;
mod usage;
mod wait;

use std::path::PathBuf;

use acpd_api::ExitCode;
use clap::{CommandFactory as _, Parser, Subcommand};

use crate::args::{Global, LazyArgs};
use crate::error::Result;
#[cfg(feature = "tui")]
use crate::full_screen;
use crate::manual;
#[cfg(any(feature = "mcp", feature = "web"))]
use crate::programs;
use crate::ui::Ui;
pub(crate) use completions::complete_if_asked;
use pending::Decision;

/// Talk to AI coding agents that outlive your terminal.
#[derive(Debug, Parser)]
#[command(
    name = "acpctl",
    bin_name = "acpctl",
    version,
    after_long_help = format!("{}\n\n{EXAMPLES}", exit_codes())
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = examples!(
    "acpctl run 'why does the build fail?'" => "Ask the default agent about this directory",
    "acpctl run -a claude -s fix --detach 'make the tests pass'" =>
        "Let an agent work without a terminal, in a session named `fix`",
    "acpctl attach --control fix" => "Follow it, and answer its questions with one key",
    "acpctl top" => "See all sessions on one screen",
    "acpctl doctor" => "Find problems, and how to fix them",
);

#[derive(Debug, Subcommand)]
enum Command {
    /// Show all sessions on one screen; answer, prompt and cancel there.
    ///
    /// `acpctl` without a command does the same on a terminal.
    #[cfg(feature = "tui")]
    #[command(after_long_help = examples!(
        "acpctl top" => "Show all sessions; Enter opens one, `?` shows the keys",
    ))]
    Top,
    /// Open a conversation on the whole screen: read it, write prompts, answer questions.
    #[cfg(feature = "tui")]
    Chat(LazyArgs<chat::Chat>),
    /// Prompt an agent and stream its answer; Ctrl-C cancels.
    Run(LazyArgs<run::Run>),
    /// Follow a session: show its history, then live output.
    Attach(LazyArgs<attach::Attach>),
    /// Wait until sessions are idle.
    Wait(LazyArgs<wait::Wait>),
    /// Cancel a session's turn and its queued prompts.
    Cancel(LazyArgs<cancel::Cancel>),
    /// Serve an editor: speak ACP on stdin and stdout.
    Acp(LazyArgs<acp::Acp>),
    /// Run acpd's MCP server (other agents, history, files).
    #[cfg(feature = "mcp")]
    #[command(disable_help_flag = true)]
    Mcp(LazyArgs<programs::ProgramArgs>),
    /// Serve a web page to watch and answer agents, and ACP over WebSocket.
    #[cfg(feature = "web")]
    #[command(disable_help_flag = true)]
    Web(LazyArgs<programs::ProgramArgs>),
    /// Show the daemon, its agents, and the active and last used sessions.
    #[command(visible_alias = "status")]
    Ps(LazyArgs<ps::Ps>),
    /// List, show, search, set up, rename, archive, close and delete sessions.
    #[command(subcommand)]
    Session(LazyArgs<Session>),
    /// Show, edit, move and remove a session's queued prompts.
    Queue(LazyArgs<queue::Queue>),
    /// Show the tokens and the cost that agents reported.
    Usage(LazyArgs<usage::Usage>),
    /// List, start and stop agents.
    #[command(subcommand)]
    Agent(LazyArgs<agent::Agent>),
    /// Show logins of agents, log in and log out.
    #[command(subcommand)]
    Auth(LazyArgs<auth::Auth>),
    /// List open questions of agents.
    Pending(LazyArgs<pending::Pending>),
    /// Allow what an agent asks for.
    #[command(after_long_help = examples!(
        "acpctl allow" => "Say yes to the only open question",
        "acpctl allow main --always" =>
            "Say yes to `main`, and remember it for this agent and directory",
    ))]
    Allow(LazyArgs<pending::Decide>),
    /// Refuse what an agent asks for.
    #[command(after_long_help = examples!(
        "acpctl deny" => "Say no to the only open question",
        "acpctl deny main --always" =>
            "Say no to `main`, and remember it for this agent and directory",
    ))]
    Deny(LazyArgs<pending::Decide>),
    /// Answer a question: choose an option, fill in a form, or agree to open a page.
    Answer(LazyArgs<pending::Answer>),
    /// Show and test which calls are allowed or refused without asking you.
    #[command(subcommand)]
    Policy(LazyArgs<policy::Policy>),
    /// Start, stop, restart and inspect the daemon.
    #[command(subcommand)]
    Daemon(LazyArgs<daemon::Daemon>),
    /// Find problems with acpd and its agents, and how to fix them; exits with 1 if there is one.
    Doctor(LazyArgs<doctor::Doctor>),
    /// Print metrics of the daemon for Prometheus.
    Metrics(LazyArgs<metrics::Metrics>),
    /// Show the messages between acpd and an agent as they pass.
    Trace(LazyArgs<trace::Trace>),
    /// Write a bug report without secrets or conversations.
    Report(LazyArgs<report::Report>),
    /// Check, show and edit the configuration.
    #[command(subcommand)]
    Config(LazyArgs<config::Config>),
    /// Install acpd as a user service, which starts at login and restarts after a failure.
    #[command(subcommand)]
    Service(LazyArgs<service::ServiceCommand>),
    /// Write all conversations to a file, while agents work.
    Backup(LazyArgs<backup::Backup>),
    /// Restore a backup; the current journal is kept.
    Restore(LazyArgs<restore::Restore>),
    /// Delete sessions over the configured limits (lists them first).
    Gc(LazyArgs<gc::Gc>),
    /// Print a shell completion script.
    Completions(LazyArgs<completions::Completions>),
    /// Write a manual page of each command into a folder.
    #[command(hide = true)]
    Man {
        /// The folder.
        dir: PathBuf,
    },
}

/// `acpctl session …`: what is done with a session itself, and `handoff`, which prompts as `run` does.
#[derive(Debug, Subcommand)]
enum Session {
    #[command(flatten)]
    Command(session::SessionCommand),
    /// Let another agent continue in a new session that starts with the transcript.
    Handoff(run::Handoff),
}

pub(crate) fn dispatch(cli: Cli, ui: &mut Ui) -> Result<ExitCode> {
    match cli.command {
        #[cfg(feature = "tui")]
        Command::Top => {
            let start = full_screen::start(ui, "without one: `acpctl ps`")?;
            full_screen::run(start, ui)?;
        }
        #[cfg(feature = "tui")]
        Command::Chat(LazyArgs(args)) => return chat::chat(&args, ui),
        Command::Run(LazyArgs(args)) => return run::run(args, ui),
        Command::Attach(LazyArgs(args)) => return attach::attach(&args, ui),
        Command::Wait(LazyArgs(args)) => return wait::wait(&args, ui),
        Command::Cancel(LazyArgs(args)) => cancel::cancel(&args, ui)?,
        Command::Acp(LazyArgs(args)) => acp::acp(&args, ui.door())?,
        #[cfg(feature = "mcp")]
        Command::Mcp(LazyArgs(args)) => {
            return Err(programs::become_companion("acpctl-mcp", &args, ui.may_start));
        }
        #[cfg(feature = "web")]
        Command::Web(LazyArgs(args)) => {
            return Err(programs::become_companion("acpctl-web", &args, ui.may_start));
        }
        Command::Ps(LazyArgs(args)) => ps::ps(args, ui)?,
        Command::Queue(LazyArgs(args)) => queue::queue(args, ui)?,
        Command::Usage(LazyArgs(args)) => usage::usage(&args, ui)?,
        Command::Session(LazyArgs(Session::Command(command))) => {
            session::session(command, ui)?;
        }
        Command::Session(LazyArgs(Session::Handoff(args))) => return run::handoff(&args, ui),
        Command::Agent(LazyArgs(command)) => agent::agent(command, ui)?,
        Command::Auth(LazyArgs(command)) => auth::auth(command, ui)?,
        Command::Pending(LazyArgs(args)) => pending::pending(&args, ui)?,
        Command::Allow(LazyArgs(args)) => pending::decide(&args, Decision::Allow, ui)?,
        Command::Deny(LazyArgs(args)) => pending::decide(&args, Decision::Deny, ui)?,
        Command::Answer(LazyArgs(args)) => pending::answer(&args, ui)?,
        Command::Policy(LazyArgs(command)) => policy::policy(command, ui)?,
        Command::Daemon(LazyArgs(command)) => daemon::daemon(command, ui)?,
        Command::Doctor(LazyArgs(args)) => doctor::doctor(args, ui)?,
        Command::Metrics(LazyArgs(args)) => metrics::metrics(args, ui)?,
        Command::Trace(LazyArgs(args)) => return trace::trace(&args, ui),
        Command::Report(LazyArgs(args)) => report::report(&args, ui)?,
        Command::Config(LazyArgs(command)) => config::config(&command, ui)?,
        Command::Service(LazyArgs(command)) => service::service(command, ui)?,
        Command::Backup(LazyArgs(args)) => backup::backup(&args, ui)?,
        Command::Restore(LazyArgs(args)) => restore::restore(&args, ui)?,
        Command::Gc(LazyArgs(args)) => gc::gc(args, ui)?,
        Command::Completions(LazyArgs(args)) => completions::completions(args, ui)?,
        Command::Man { dir } => manual::write(Cli::command(), &dir)?,
    }
    Ok(ExitCode::Ok)
}

/// Returns the whole definition, including lazy arguments.
pub(crate) fn definition() -> clap::Command {
    let mut command = Cli::command();
    command.build();
    command
}

fn exit_codes() -> String {
    let lines = ExitCode::ALL.iter().map(|(code, what)| format!("\n  {:<4} {what}", code.code()));
    format!("Exit codes:{}", lines.collect::<String>())
}
