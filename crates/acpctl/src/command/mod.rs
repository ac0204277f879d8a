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
mod host;
mod metrics;
mod pending;
mod policy;
mod ps;
mod queue;
mod relay;
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

use std::ffi::OsString;
use std::path::PathBuf;

use acpd_api::{ExitCode, Untrusted};
use clap::{ArgMatches, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use crate::args::Global;
use crate::error::{CommandError, Result};
use crate::hosts::KnownHosts;
use crate::machine::OtherMachine;
use crate::manual;
#[cfg(any(feature = "mcp", feature = "web"))]
use crate::programs;
use crate::text::{shell_word, text};
use crate::ui::Ui;
#[cfg(feature = "tui")]
pub(crate) use chat::can_show_screen;
pub(crate) use completions::complete_if_asked;

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
    /// Sessions and questions that the command line names.
    #[arg(skip)]
    named: Vec<String>,
}

impl Cli {
    pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> Result<Cli, clap::Error> {
        let mut definition = Cli::command();
        let mut matches = definition.try_get_matches_from_mut(args)?;
        let named = named_in(&matches);
        let cli = Cli::from_arg_matches_mut(&mut matches);
        cli.map(|cli| Cli { named, ..cli }).map_err(|error| error.format(&mut definition))
    }
}

fn named_in(matches: &ArgMatches) -> Vec<String> {
    if let Some((_, inner)) = matches.subcommand() {
        return named_in(inner);
    }
    let values = ["session", "sessions", "resume", "attach", "id"].into_iter();
    let values = values.filter_map(|arg| matches.try_get_raw(arg).ok().flatten()).flatten();
    let mut named: Vec<_> = values.collect();
    // The session of `run --steer` may be the first word.
    if named.is_empty() && matches!(matches.try_get_one("steer"), Ok(Some(true))) {
        named.extend(matches.get_raw("prompt").into_iter().flatten().take(1));
    }
    named.into_iter().map(|value| value.to_string_lossy().into_owned()).collect()
}

const EXAMPLES: &str = examples!(
    "acpctl run 'why does the build fail?'" => "Ask the default agent about this directory",
    "acpctl run -a claude -s fix --detach 'make the tests pass'" =>
        "Let an agent work without a terminal, in a session named `fix`",
    "acpctl attach --control fix" => "Follow it, and answer its questions with one key",
    "acpctl top" => "See all sessions on one screen",
    "acpctl doctor" => "Find problems, and how to fix them",
);

// The arguments of a verb are declared when it is typed, to start faster. So a doc comment on them
// would replace the description of the verb.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
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
    Chat(chat::Chat),
    /// Prompt an agent and stream its answer; Ctrl-C cancels.
    Run(run::Run),
    /// Follow a session: show its history, then live output.
    Attach(attach::Attach),
    /// Wait until sessions are idle.
    Wait(wait::Wait),
    /// Cancel a session's turn and its queued prompts.
    Cancel(cancel::Cancel),
    /// Serve an editor: speak ACP on stdin and stdout.
    Acp(acp::Acp),
    /// Run acpd's MCP server (other agents, history, files).
    #[cfg(feature = "mcp")]
    #[command(disable_help_flag = true)]
    Mcp(programs::ProgramArgs),
    /// Serve a web page to watch and answer agents, and ACP over WebSocket.
    #[cfg(feature = "web")]
    #[command(disable_help_flag = true)]
    Web(programs::ProgramArgs),
    /// Show the daemon, its agents, and the active and last used sessions.
    #[command(visible_alias = "status")]
    Ps(ps::Ps),
    /// List, show, search, set up, rename, archive, close and delete sessions.
    #[command(subcommand)]
    Session(Session),
    /// Show, edit, move and remove a session's queued prompts.
    Queue(queue::Queue),
    /// Show the tokens and the cost that agents reported.
    Usage(usage::Usage),
    /// List, start and stop agents.
    #[command(subcommand)]
    Agent(agent::Agent),
    /// Show logins of agents, log in and log out.
    #[command(subcommand)]
    Auth(auth::Auth),
    /// List open questions of agents.
    Pending(pending::Pending),
    /// Allow what an agent asks for.
    #[command(after_long_help = examples!(
        "acpctl allow" => "Say yes to the only open question",
        "acpctl allow main --always" =>
            "Say yes to `main`, and remember it for this agent and directory",
    ))]
    Allow(pending::Decide),
    /// Refuse what an agent asks for.
    #[command(after_long_help = examples!(
        "acpctl deny" => "Say no to the only open question",
        "acpctl deny main --always" =>
            "Say no to `main`, and remember it for this agent and directory",
    ))]
    Deny(pending::Decide),
    /// Answer a question: choose an option, fill in a form, or agree to open a page.
    Answer(pending::Answer),
    /// Show and test which calls are allowed or refused without asking you.
    #[command(subcommand)]
    Policy(policy::Policy),
    /// Start, stop, restart and inspect the daemon.
    #[command(subcommand)]
    Daemon(daemon::Daemon),
    /// Find problems with acpd and its agents, and how to fix them; exits with 1 if there is one.
    Doctor(doctor::Doctor),
    /// Check the connections to other machines.
    #[command(subcommand)]
    Host(host::HostCommand),
    /// Print metrics of the daemon for Prometheus.
    Metrics(metrics::Metrics),
    /// Show the messages between acpd and an agent as they pass.
    Trace(trace::Trace),
    /// Write a bug report without secrets or conversations.
    Report(report::Report),
    /// Check, show and edit the configuration.
    #[command(subcommand)]
    Config(config::Config),
    /// Install acpd as a user service, which starts at login and restarts after a failure.
    #[command(subcommand)]
    Service(service::ServiceCommand),
    /// Write all conversations to a file, while agents work.
    Backup(backup::Backup),
    /// Restore a backup; the current journal is kept.
    Restore(restore::Restore),
    /// Delete sessions over the configured limits (lists them first).
    Gc(gc::Gc),
    /// Print a shell completion script.
    Completions(completions::Completions),
    /// Connect another machine's `acpctl --host` with the daemon here.
    #[command(hide = true)]
    Relay(relay::Relay),
    /// Write a manual page of each command into a folder.
    #[command(hide = true)]
    Man {
        /// The folder.
        dir: PathBuf,
    },
}

/// `acpctl session …`: what is done with a session itself, and `handoff`, which prompts as `run` does.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
enum Session {
    #[command(flatten)]
    Command(session::SessionCommand),
    /// Let another agent continue in a new session that starts with the transcript.
    Handoff(run::Handoff),
}

/// `--host all`.
const ALL: &str = "all";

/// The machines that a command may work on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MachineScope {
    /// This one.
    Here,
    /// Any one: the command needs only the daemon.
    Any,
    /// All at once, too: the command lists sessions or questions, or is about one that is named.
    All,
}

impl Command {
    fn machine_scope(&self) -> MachineScope {
        match self {
            #[cfg(feature = "tui")]
            Command::Top | Command::Chat(_) => MachineScope::All,
            #[cfg(feature = "web")]
            Command::Web(_) => MachineScope::All,
            Command::Attach(_)
            | Command::Wait(_)
            | Command::Cancel(_)
            | Command::Ps(_)
            | Command::Pending(_)
            | Command::Allow(_)
            | Command::Deny(_)
            | Command::Answer(_) => MachineScope::All,
            Command::Run(_)
            | Command::Acp(_)
            | Command::Session(_)
            | Command::Queue(_)
            | Command::Usage(_)
            | Command::Metrics(_)
            | Command::Trace(_)
            | Command::Gc(_) => MachineScope::Any,
            _ => MachineScope::Here,
        }
    }
}

/// Returns the other machine that the command works on: `--host`, or else that of a session such
/// as `box/main`, or else `ACPCTL_HOST`.
fn machine_of(cli: &Cli) -> Result<Option<OtherMachine>> {
    let scope = cli.command.machine_scope();
    let is_possible = scope != MachineScope::Here;
    let fits = |name: &str| is_possible && (name != ALL || scope == MachineScope::All);
    if let Some(name) = cli.global.host.as_deref().filter(|name| !name.is_empty()) {
        let shown = Untrusted::from(name);
        return if fits(name) {
            machine(name).map(Some)
        } else if is_possible {
            Err(CommandError::usage(text!("`--host {}` is not for this command", shown))
                .hint("name one machine, or a session such as `box/main`"))
        } else {
            let hint = text!("run it there: `ssh {} acpctl …`", shell_word(&shown));
            Err(CommandError::usage("`--host` is not for this command").hint(hint))
        };
    }
    if is_possible && cli.named.iter().any(|name| name.contains('/')) {
        let named = KnownHosts::read()?.of_names(&cli.named)?;
        if named.is_some() {
            return Ok(named);
        }
    }
    let set = std::env::var("ACPCTL_HOST").ok().filter(|name| !name.is_empty() && fits(name));
    set.map(|name| machine(&name)).transpose()
}

fn machine(name: &str) -> Result<OtherMachine> {
    let known = KnownHosts::read()?;
    if name == ALL { known.all() } else { known.find(name) }
}

pub(crate) fn dispatch(mut cli: Cli, ui: &mut Ui) -> Result<ExitCode> {
    #[cfg(feature = "web")]
    if let Command::Web(args) = &mut cli.command {
        cli.global.host = args.take_host().or(cli.global.host);
    }
    ui.machine = machine_of(&cli)?;
    match cli.command {
        #[cfg(feature = "tui")]
        Command::Top => {
            let start = chat::start_screen(ui, "without one: `acpctl ps`")?;
            chat::run_screen(start, ui)?;
        }
        #[cfg(feature = "tui")]
        Command::Chat(args) => return chat::chat(&args, ui),
        Command::Run(args) => return run::run(args, ui),
        Command::Attach(args) => return attach::attach(&args, ui),
        Command::Wait(args) => return wait::wait(&args, ui),
        Command::Cancel(args) => cancel::cancel(&args, ui)?,
        Command::Acp(args) => acp::acp(&args, ui)?,
        #[cfg(feature = "mcp")]
        Command::Mcp(args) => {
            return Err(programs::become_companion("acpctl-mcp", &args, ui));
        }
        #[cfg(feature = "web")]
        Command::Web(args) => {
            return Err(programs::become_companion("acpctl-web", &args, ui));
        }
        Command::Ps(args) => ps::ps(args, ui)?,
        Command::Queue(args) => queue::queue(args, ui)?,
        Command::Usage(args) => usage::usage(&args, ui)?,
        Command::Session(Session::Command(command)) => {
            session::session(command, ui)?;
        }
        Command::Session(Session::Handoff(args)) => return run::handoff(&args, ui),
        Command::Agent(command) => agent::agent(command, ui)?,
        Command::Auth(command) => auth::auth(command, ui)?,
        Command::Pending(args) => pending::pending(&args, ui)?,
        Command::Allow(args) => pending::decide(&args, pending::UserDecision::Allow, ui)?,
        Command::Deny(args) => pending::decide(&args, pending::UserDecision::Deny, ui)?,
        Command::Answer(args) => pending::answer(&args, ui)?,
        Command::Policy(command) => policy::policy(command, ui)?,
        Command::Daemon(command) => daemon::daemon(command, ui)?,
        Command::Doctor(args) => doctor::doctor(args, ui)?,
        Command::Host(command) => host::host(command, ui)?,
        Command::Metrics(args) => metrics::metrics(args, ui)?,
        Command::Trace(args) => return trace::trace(&args, ui),
        Command::Report(args) => report::report(&args, ui)?,
        Command::Config(command) => config::config(&command, ui)?,
        Command::Service(command) => service::service(command, ui)?,
        Command::Backup(args) => backup::backup(&args, ui)?,
        Command::Restore(args) => restore::restore(&args, ui)?,
        Command::Gc(args) => gc::gc(args, ui)?,
        Command::Completions(args) => completions::completions(args, ui)?,
        Command::Relay(args) => return relay::relay(&args),
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
