//! The command line.

mod examples;
#[cfg(test)]
mod examples_tests;
mod keep;
mod later;
mod operations;
mod queue;
mod service;
mod session;

#[cfg(any(feature = "mcp", feature = "web"))]
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use acpd_api::{ExitCode, UsageBy};
use clap::{Args, CommandFactory as _, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::Shell;

use crate::when;
pub(crate) use keep::{Backup, Gc, Restore};
pub(crate) use later::Later;
pub(crate) use operations::{Daemon, Doctor, Report, Trace};
pub(crate) use queue::{Queue, QueueCommand};
pub(crate) use service::{Service, Uninstall};
pub(crate) use session::{Format, Handoff, Log, Remove, Search, Session, SessionCommand, Worktree};

/// Talk to AI coding agents that outlive your terminal.
#[derive(Debug, Parser)]
#[command(
    name = "acpctl",
    bin_name = "acpctl",
    version,
    after_long_help = examples::below(&exit_codes(), "acpctl")
)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Fail instead of starting the daemon.
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) no_spawn: bool,
    /// Colour the output: auto, always or never [default: auto].
    #[arg(
        long,
        global = true,
        help_heading = "Global options",
        value_name = "WHEN",
        default_value = "auto",
        hide_default_value = true,
        hide_possible_values = true
    )]
    pub(crate) color: When,
}

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// All sessions on one screen, what needs you first; answer, prompt and cancel there.
    ///
    /// It is also what `acpctl` alone shows on a terminal.
    #[cfg(feature = "tui")]
    #[command(after_long_help = examples::below("", "top"))]
    Top,
    /// A conversation on the whole screen: read it, write prompts, answer questions.
    #[cfg(feature = "tui")]
    Chat(Later<Chat>),
    /// Prompt an agent and stream its answer; Ctrl-C cancels.
    Run(Later<Run>),
    /// Follow a session: show its history, then what happens.
    Attach(Later<Attach>),
    /// Wait until nothing runs or waits in sessions.
    #[command(after_help = WAIT)]
    Wait(Later<Wait>),
    /// End the running turn of a session, and take back the prompts that wait behind it.
    Cancel(Later<Cancel>),
    /// Serve an editor: speak ACP on stdin and stdout.
    Acp(Later<Acp>),
    /// Lend acpd's tools to an agent: an MCP server on stdin and stdout.
    #[cfg(feature = "mcp")]
    #[command(disable_help_flag = true)]
    Mcp(Later<Beside>),
    /// Serve a page for browsers on which you watch and answer agents, and a socket for ACP clients elsewhere.
    #[cfg(feature = "web")]
    #[command(disable_help_flag = true)]
    Web(Later<Beside>),
    /// Show the daemon, its agents, and the sessions that are active or were used last.
    #[command(visible_alias = "status")]
    Ps(Later<Ps>),
    /// List, show, search, set up, rename, archive, close and delete sessions.
    #[command(subcommand)]
    Session(Later<Session>),
    /// Show the prompts that wait in a session, change them or take them back.
    Queue(Later<Queue>),
    /// Add up the tokens and the cost of turns, as agents tell them.
    Usage(Later<Usage>),
    /// List, start and stop agents.
    #[command(subcommand)]
    Agent(Later<Agent>),
    /// Show the logins of agents, log in and log out.
    #[command(subcommand)]
    Auth(Later<Auth>),
    /// List the open questions of agents.
    Pending(Later<Pending>),
    /// Allow what an agent asks for.
    Allow(Later<Decide>),
    /// Refuse what an agent asks for.
    Deny(Later<Decide>),
    /// Answer a question: choose an option, fill in a form or agree to a page.
    #[command(after_help = ANSWER)]
    Answer(Later<Answer>),
    /// Show and test what is decided without asking you.
    #[command(subcommand)]
    Policy(Later<Policy>),
    /// Start and stop the daemon.
    #[command(subcommand)]
    Daemon(Later<Daemon>),
    /// Look for what is wrong with acpd and its agents, and say what to do; exit with 1 if something does not work.
    Doctor(Later<Doctor>),
    /// Print figures and counters of the daemon for Prometheus: agents, sessions, turns, latencies, queues, the journal.
    #[command(after_help = operations::METRICS)]
    Metrics(Later<Json>),
    /// Show the messages between acpd and an agent as they go: times, methods, sizes, how long answers took.
    Trace(Later<Trace>),
    /// Put together what a report of a bug needs, without secrets and conversations; show it, and write it to a file.
    Report(Later<Report>),
    /// Check, show and edit the configuration.
    #[command(subcommand)]
    Config(Later<Config>),
    /// Have the system start acpd when you log in or first use it, and start it again when it fails.
    #[command(subcommand)]
    Service(Later<Service>),
    /// Write every conversation into a file, while acpd and its agents work.
    Backup(Later<Backup>),
    /// Put a backup in the place of the journal, which is kept beside it.
    Restore(Later<Restore>),
    /// Delete the sessions that are over the limits of the configuration, and show before what that is.
    Gc(Later<Gc>),
    /// Print what makes a shell complete commands, sessions, agents and questions.
    #[command(after_help = COMPLETIONS)]
    Completions(Later<Completions>),
    /// Write a manual page of each command into a folder.
    #[command(hide = true)]
    Man {
        /// The folder.
        dir: PathBuf,
    },
}

/// Machine-readable output.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Json {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of a program beside this one, which reads them itself.
#[cfg(any(feature = "mcp", feature = "web"))]
#[derive(Debug, Args)]
pub(crate) struct Beside {
    /// `--help` shows them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS")]
    pub(crate) args: Vec<OsString>,
}

/// Arguments of `ps`.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Ps {
    /// Show all sessions but those in the archive, not only the last ten.
    #[arg(short = 'A', long)]
    pub(crate) all: bool,
    /// Show sessions that an agent has begun below the session that the agent works in.
    #[arg(short, long, conflicts_with = "json")]
    pub(crate) tree: bool,
    /// Keep showing it as it changes; with `--json`, a line for all rows and then one for each change.
    #[arg(short, long)]
    pub(crate) watch: bool,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// Arguments of `usage`.
#[derive(Debug, Args)]
pub(crate) struct Usage {
    /// Only turns that ended since then: how long ago (7d, 12h), a day, or a time [default: all].
    #[arg(long, value_name = "TIME", value_parser = when::time)]
    pub(crate) since: Option<u64>,
    /// What is added up.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) by: By,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// What belongs together in `usage`.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum By {
    #[default]
    Agent,
    Session,
    Workspace,
    Day,
}

impl From<By> for UsageBy {
    fn from(by: By) -> UsageBy {
        match by {
            By::Agent => UsageBy::Agent,
            By::Session => UsageBy::Session,
            By::Workspace => UsageBy::Workspace,
            By::Day => UsageBy::Day,
        }
    }
}

/// Arguments of `run`.
#[derive(Debug, Args)]
#[command(after_help = "\
Without PROMPT, or with `-` alone, the prompt is read from stdin. With PROMPT, a file or a pipe on \
stdin is attached to it. A `-` after the words puts stdin into \
the text of the prompt. A script or a loop keeps its own stdin out of it with `-n`.

The answer goes to stdout, everything else to stderr. Where no turn began, stdout is empty, and stderr and the exit \
code say why. With --json, stdout is one object once the turn is over, also if it ended with an error:

  sessionId, agent         the session
  answer                   what the agent said
  stopReason               end_turn, max_tokens, max_turn_requests, refusal, cancelled
  error                    message, reason and hint, in the place of stopReason
  exitCode                 that of the command
  turn, startedAt, at      its number, its beginning and its end (ms since the epoch)
  tools, files             how many tool calls, and the files that they changed
  usage                    tokens and cost, if the agent told")]
pub(crate) struct Run {
    /// Use this agent [default: the session's, else the configured one].
    #[arg(short, long)]
    pub(crate) agent: Option<String>,
    /// Continue the session with this name or full id, or start one with this name.
    #[arg(short, long, value_name = "NAME")]
    pub(crate) session: Option<String>,
    /// Continue this session, and never start one: a name, an id, a unique prefix of either, words of a
    /// title, or `-` for the last one used.
    #[arg(short, long, value_name = "SESSION", conflicts_with = "session")]
    pub(crate) resume: Option<String>,
    /// Continue the last used session of this directory (and agent).
    #[arg(short = 'c', long = "continue", conflicts_with_all = ["session", "resume"])]
    pub(crate) goes_on: bool,
    #[command(flatten)]
    pub(crate) turn: Turn,
    /// Work in this directory [default: the current one].
    #[arg(short = 'C', long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) cwd: Option<PathBuf>,
    /// Begin a session in a git worktree of its own, `../REPOSITORY.worktrees/NAME`, on the branch
    /// `acpd/NAME` [default: the session's name, else a number].
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true,
        conflicts_with_all = ["resume", "goes_on", "steer"])]
    #[expect(clippy::option_option, reason = "that is how clap tells an option without its value")]
    pub(crate) worktree: Option<Option<String>>,
    #[command(flatten)]
    pub(crate) set_up: SetUp,
    /// Read the prompt from this file; `-` is stdin. What PROMPT says comes after it.
    #[arg(long = "prompt-file", value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) prompt_files: Vec<PathBuf>,
    /// Add a file to the prompt, or lines of a text: PATH, PATH:10 or PATH:10-20.
    #[arg(short = 'F', long = "file", value_name = "PATH[:LINES]", value_hint = ValueHint::FilePath)]
    pub(crate) files: Vec<PathBuf>,
    /// Add an image to the prompt.
    #[arg(short, long = "image", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) images: Vec<PathBuf>,
    /// Add a sound to the prompt.
    #[arg(long = "audio", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) sounds: Vec<PathBuf>,
    /// Send the prompt into the running turn of a session, while the agent works. Without `--session`
    /// or `--continue`, the first PROMPT is the session: its name, its id or a unique prefix.
    #[arg(long, conflicts_with_all = ["detach", "thoughts", "json_stream", "yes", "deny", "model", "mode", "set"])]
    pub(crate) steer: bool,
    /// Execute the prompt at most once in its session, however often the command is repeated with this
    /// key: a repetition waits for the first one's turn, or returns its outcome. Needs `-s` or `-r`.
    #[arg(long, value_name = "KEY", conflicts_with_all = ["steer", "goes_on", "worktree"])]
    pub(crate) key: Option<String>,
    /// The prompt; several words are joined.
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Vec<String>,
}

/// How a turn is run and shown.
#[derive(Debug, Args)]
pub(crate) struct Turn {
    /// Return when the prompt is on disk, and print the session's id; the turn runs without a terminal.
    #[arg(short, long, conflicts_with = "thoughts")]
    pub(crate) detach: bool,
    /// Show what the agent thinks.
    #[arg(long)]
    pub(crate) thoughts: bool,
    /// Print one JSON object at the end: the answer, how the turn ended, the session, what was used.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print each relayed message as one line of JSON, as it comes.
    #[arg(long, conflicts_with_all = ["json", "detach"])]
    pub(crate) json_stream: bool,
    /// Allow what the agent asks for in this turn, unless a `reject` rule matches or might match.
    #[arg(long, conflicts_with = "deny")]
    pub(crate) yes: bool,
    /// Refuse what the agent asks for in this turn.
    #[arg(long)]
    pub(crate) deny: bool,
    /// Do not read stdin, for loops such as `while read`.
    #[arg(short = 'N', long)]
    pub(crate) no_stdin: bool,
}

/// Settings of a session, made before the prompt is sent.
#[derive(Debug, Args)]
pub(crate) struct SetUp {
    /// Use this model: its id or its name.
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// Switch to this mode: its id or its name.
    #[arg(long)]
    pub(crate) mode: Option<String>,
    /// Set an option, as `session set` does.
    #[arg(long, value_name = "OPTION=VALUE", value_parser = setting)]
    pub(crate) set: Vec<(String, String)>,
}

fn setting(text: &str) -> Result<(String, String), &'static str> {
    let (option, value) = text.split_once('=').ok_or("give an option and a value: OPTION=VALUE")?;
    Ok((option.to_owned(), value.to_owned()))
}

fn decision(text: &str) -> Result<i64, &'static str> {
    text.parse().map_err(|_| "decisions have numbers: `acpctl policy ls` lists them")
}

/// One session.
#[derive(Debug, Args)]
pub(crate) struct Which {
    /// A name, an id, a unique prefix of either, words of a title, or `-` for the last one used.
    pub(crate) session: String,
    /// Only among the sessions of this agent.
    #[arg(short, long)]
    pub(crate) agent: Option<String>,
}

/// One session, for what only looks.
#[derive(Debug, Args)]
pub(crate) struct WhichOrLast {
    /// A name, an id, a unique prefix of either, words of a title, or `-` for the last one used [default: `-`].
    #[arg(default_value = "-", hide_default_value = true)]
    pub(crate) session: String,
    /// Only among the sessions of this agent.
    #[arg(short, long)]
    pub(crate) agent: Option<String>,
}

impl From<&WhichOrLast> for Which {
    fn from(which: &WhichOrLast) -> Which {
        Which { session: which.session.clone(), agent: which.agent.clone() }
    }
}

/// Arguments of `chat`.
#[cfg(feature = "tui")]
#[derive(Debug, Args)]
pub(crate) struct Chat {
    /// A name, an id, a unique prefix of either, words of a title, or `-` for the last one used [default: the
    /// last one used here, else a new one].
    pub(crate) session: Option<String>,
    /// Only among the sessions of this agent; the agent of a new one.
    #[arg(short, long)]
    pub(crate) agent: Option<String>,
    /// Begin a new session.
    #[arg(long, conflicts_with = "session")]
    pub(crate) new: bool,
    /// Line by line, in place of a full screen: for screen readers and simple terminals.
    #[arg(long)]
    pub(crate) plain: bool,
}

/// Arguments of `attach`.
#[derive(Debug, Args)]
pub(crate) struct Attach {
    #[command(flatten)]
    pub(crate) which: WhichOrLast,
    /// Leave out the history.
    #[arg(long)]
    pub(crate) tail: bool,
    /// Answer the agent's questions here, with one key.
    #[arg(long)]
    pub(crate) control: bool,
    /// Show what the agent thinks.
    #[arg(long)]
    pub(crate) thoughts: bool,
    /// End when nothing runs or waits in the session, with the exit code that `run` has.
    #[arg(long)]
    pub(crate) until_idle: bool,
    /// Print each relayed message as one line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `wait`.
#[derive(Debug, Args)]
pub(crate) struct Wait {
    /// Names, ids, unique prefixes of either, words of a title, or `-` for the last one used [default: `-`].
    #[arg(value_name = "SESSION", default_value = "-", hide_default_value = true)]
    pub(crate) sessions: Vec<String>,
    /// Only among the sessions of this agent.
    #[arg(short, long)]
    pub(crate) agent: Option<String>,
    /// Wait for one of them, not for all.
    #[arg(long)]
    pub(crate) any: bool,
    /// Wait at most this long, such as 90s or 10m; then exit with 124.
    #[arg(long, value_name = "DURATION", value_parser = when::duration)]
    pub(crate) timeout: Option<Duration>,
    /// Print a line of JSON for each session that is over.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Arguments of `completions`.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Completions {
    /// The shell.
    pub(crate) shell: Shell,
}

/// How completion is installed.
const COMPLETIONS: &str = "\
Bash, in ~/.bashrc:                 source <(acpctl completions bash)
Zsh, in ~/.zshrc after compinit:    source <(acpctl completions zsh)
Fish, in ~/.config/fish/config.fish: acpctl completions fish | source
PowerShell, in $PROFILE:            acpctl completions powershell | Out-String | Invoke-Expression

It asks the daemon that runs, and never starts one.";

const WAIT: &str = "\
Prints a line for each session that is over: its name, or its id if it has none, and how its last turn \
ended (`end_turn`, `cancelled`, `interrupted`, …). The exit code is that of `run`; of several sessions, \
the first that did not end well decides.";

/// Arguments of `cancel`.
#[derive(Debug, Args)]
pub(crate) struct Cancel {
    #[command(flatten)]
    pub(crate) which: Which,
    /// End only the running turn; queued prompts stay, and the next one begins.
    #[arg(long, conflicts_with = "queued")]
    pub(crate) turn: bool,
    /// Take queued prompts back, too [default without a terminal; on one, it asks].
    #[arg(long)]
    pub(crate) queued: bool,
}

/// Arguments of `acp`.
#[derive(Debug, Args)]
pub(crate) struct Acp {
    /// The agent [default: the configured one].
    pub(crate) agent: Option<String>,
    /// Give new sessions this name; if a session has it already, continue that one.
    #[arg(short, long, value_name = "NAME")]
    pub(crate) session: Option<String>,
    /// Continue the last used session of the editor's directory in place of its first new one.
    #[arg(short = 'c', long = "continue", conflicts_with = "session")]
    pub(crate) goes_on: bool,
    /// Continue this session (name, id or unique prefix) in place of the editor's first new one.
    #[arg(long, value_name = "SESSION", conflicts_with_all = ["session", "goes_on"])]
    pub(crate) attach: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Agent {
    /// List the agents that are installed, and those with sessions.
    #[command(alias = "list")]
    Ls {
        /// List also those that acpd knows and that are not installed, with how to install them.
        #[arg(short = 'A', long)]
        all: bool,
        #[command(flatten)]
        json: Json,
    },
    /// Show one agent.
    Show {
        /// Its name.
        agent: String,
        #[command(flatten)]
        json: Json,
    },
    /// Show the environment that an agent gets, and who sets what in it; secrets are left out.
    Env {
        /// Its name.
        agent: String,
        #[command(flatten)]
        json: Json,
    },
    /// Find installed agents, ask each what it can do, and suggest a configuration.
    Discover(Json),
    /// Install an agent that acpd knows; the command is shown first.
    Install {
        /// Its name.
        agent: String,
        /// Do not ask for confirmation.
        #[arg(long)]
        yes: bool,
    },
    /// Start an agent and clear a crash loop.
    Start {
        /// Its name.
        agent: String,
    },
    /// Stop an agent and keep it down.
    Stop {
        /// Its name.
        agent: String,
    },
    /// Stop an agent and start it again; its sessions are restored. Running turns are cut off.
    Restart {
        /// Its name.
        agent: String,
        /// Start even while processes of its last run are left that SIGKILL does not end.
        #[arg(long)]
        force: bool,
    },
    /// Print what an agent wrote to stderr.
    Logs {
        /// Its name.
        agent: String,
        #[command(flatten)]
        tail: Tail,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Auth {
    /// Show which agents are logged in, and how acpd knows it.
    Status {
        /// Only this agent.
        agent: Option<String>,
        #[command(flatten)]
        json: Json,
    },
    /// Log in to an agent; what waited for the login continues.
    Login {
        /// Its name.
        agent: String,
        /// The login method, by its id.
        #[arg(long, value_name = "M")]
        method: Option<String>,
    },
    /// Log out of an agent, for all its clients and sessions.
    Logout {
        /// Its name.
        agent: String,
        /// Do not ask for confirmation.
        #[arg(long)]
        yes: bool,
    },
}

/// Arguments of `allow` and `deny`.
#[derive(Debug, Args)]
pub(crate) struct Decide {
    /// Id of the question, or the session that asks it [default: the only open question].
    pub(crate) id: Option<String>,
    /// Remember the decision for this agent and directory.
    #[arg(long)]
    pub(crate) always: bool,
    /// The option to choose, if several allow or deny.
    #[arg(long, value_name = "OPTION")]
    pub(crate) option: Option<String>,
    /// Only among the questions of this agent.
    #[arg(short, long)]
    pub(crate) agent: Option<String>,
}

/// Arguments of `pending`.
#[derive(Debug, Args)]
pub(crate) struct Pending {
    /// Id of a question, or the session that asks it: show all of it [default: list the open questions].
    pub(crate) id: Option<String>,
    /// List them, then each new one as it comes, and how it ends.
    #[arg(short, long, conflicts_with = "id")]
    pub(crate) follow: bool,
    /// Only among the questions of this agent.
    #[arg(short, long, requires = "id")]
    pub(crate) agent: Option<String>,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// Arguments of `answer`.
#[derive(Debug, Args)]
pub(crate) struct Answer {
    /// Id of the question, or the session that asks it [default: the only open question].
    pub(crate) id: Option<String>,
    /// Choose this option.
    #[arg(long, value_name = "OPTION", conflicts_with_all = ["fields", "accept", "decline"])]
    pub(crate) option: Option<String>,
    /// Fill in a field of the form; once for each value where several can be chosen.
    #[arg(long = "field", value_name = "NAME=VALUE", conflicts_with = "decline")]
    pub(crate) fields: Vec<String>,
    /// Say yes to the page, or to the form with its defaults.
    #[arg(long, conflicts_with = "decline")]
    pub(crate) accept: bool,
    /// Say no to the form or the page.
    #[arg(long)]
    pub(crate) decline: bool,
    /// Only among the questions of this agent.
    #[arg(short, long)]
    pub(crate) agent: Option<String>,
}

const ANSWER: &str = "\
Without options, on a terminal, it asks for each field of a form, for an option, or whether you agree \
to open a page. Fields that no `--field` names get their defaults.";

#[derive(Debug, Subcommand)]
pub(crate) enum Policy {
    /// List the decisions that acpd remembers.
    #[command(alias = "list")]
    Ls(Json),
    /// Forget a remembered decision.
    Forget {
        /// Its id, as `policy ls` shows it.
        #[arg(value_parser = decision)]
        id: i64,
    },
    /// Show who would answer a question about a tool call in this directory, and why.
    Test(PolicyTest),
}

/// A tool call that might be asked about.
#[derive(Debug, Args)]
pub(crate) struct PolicyTest {
    /// The agent [default: the configured one].
    #[arg(short, long)]
    pub(crate) agent: Option<String>,
    /// Kind of the call [default: execute with `--command`, fetch with `--url`, else other].
    #[arg(long, value_parser = acp_wire::acp::TOOL_KINDS)]
    pub(crate) kind: Option<String>,
    /// Title of the call.
    #[arg(long)]
    pub(crate) title: Option<String>,
    /// Command line that it runs.
    #[arg(long)]
    pub(crate) command: Option<String>,
    /// A path that it touches.
    #[arg(long = "path", value_name = "PATH")]
    pub(crate) paths: Vec<String>,
    /// Address that it fetches.
    #[arg(long)]
    pub(crate) url: Option<String>,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Config {
    /// Tell every mistake in it; exit with 1 if there is one.
    Check(Json),
    /// Tell the value that each key comes to, and who says so: the file, the catalogue, the default.
    ///
    /// Without a key: all but those of agents about which the file says nothing. What may be a secret is hidden.
    Show(ConfigShow),
    /// Print where the file is, or would be.
    Path,
    /// Open the file in $VISUAL or $EDITOR, then check it.
    ///
    /// A new file begins with a line that tells editors of TOML what may be in it.
    Edit,
    /// Print the JSON schema of the file, which editors check it with.
    Schema,
}

/// What of the configuration is shown, and how.
#[derive(Debug, Args)]
pub(crate) struct ConfigShow {
    /// A key or a table, as in `daemon`, `agents.claude` or `agents.claude.env`.
    pub(crate) key: Option<String>,
    /// Print the file as it is.
    #[arg(long, conflicts_with_all = ["key", "json"])]
    pub(crate) file: bool,
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Which part of a log.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Tail {
    /// Keep printing what is written later.
    #[arg(short, long)]
    pub(crate) follow: bool,
    /// Start with the last N lines.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    pub(crate) lines: usize,
}

/// The whole definition, with what is declared later.
pub(crate) fn whole() -> clap::Command {
    let mut command = Cli::command();
    command.build();
    command
}

/// The exit codes, for `--help`.
fn exit_codes() -> String {
    let lines = ExitCode::ALL.iter().map(|(code, what)| format!("\n  {:<4} {what}", code.code()));
    format!("Exit codes:{}", lines.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_holds_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_prompt_may_be_words_or_a_dash() {
        let parse = |args: &[&str]| {
            let args = ["acpctl", "run"].iter().chain(args);
            match Cli::try_parse_from(args).unwrap().command {
                Command::Run(Later(run)) => run.prompt,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(parse(&["fix", "it"]), ["fix", "it"]);
        assert_eq!(parse(&["review", "-"]), ["review", "-"]);
        assert_eq!(parse(&["--", "--help me"]), ["--help me"]);
    }
}
