use std::num::ParseIntError;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, Parser, ValueEnum};

/// The scripted agent.
#[derive(Clone, Debug, Parser)]
#[command(name = "acpd-scripted-agent", args_override_self = true)]
pub struct Options {
    /// Directory of the sessions and of the counters that outlive a process; made on demand.
    #[arg(long, value_name = "DIR", default_value_os_t = Options::default_state())]
    pub state: PathBuf,
    /// Every line received and sent is appended to this file; `%p` stands for the process id.
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,
    /// Directory in which `[pause NAME]` makes `NAME.hit` and waits for `NAME.go`.
    #[arg(skip = path_var("ACPD_TEST_POINTS"))]
    pub points: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) flags: Flags,
}

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct Flags {
    /// session/resume is neither advertised nor served.
    #[arg(long)]
    pub(crate) no_resume: bool,
    /// The same for session/list.
    #[arg(long)]
    pub(crate) no_list: bool,
    /// initialize answers this protocol version.
    #[arg(long)]
    pub(crate) protocol: Option<u16>,
    /// A client that asks for version 2 gets it, with its messages in the order of this agent.
    #[arg(long, value_name = "AGENT", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "claude")]
    pub(crate) v2: Option<MessageOrder>,
    /// With v2: `replay_complete` follows each replay.
    #[arg(long)]
    pub(crate) replay_complete: bool,
    /// MCP servers that are reached by HTTP are taken.
    #[arg(long)]
    pub(crate) mcp_http: bool,

    /// -32000 on new, load, resume and prompt until authenticate `demo-login`.
    #[arg(long)]
    pub(crate) auth_required: bool,
    /// -32000 on new, load, resume and prompt unless the variable NAME is what the file `token`
    /// holds.
    #[arg(long, value_name = "NAME")]
    pub(crate) auth_token: Option<String>,
    /// With auth-required: -32603 with a text about it in place of -32000.
    #[arg(long)]
    pub(crate) auth_hidden: bool,
    /// The login is `--login` in a terminal, not authenticate.
    #[arg(long)]
    pub(crate) auth_terminal: bool,
    /// Makes the file `authed` and exits with 0.
    #[arg(long)]
    pub(crate) login: bool,

    /// Every load answers this error.
    #[arg(long, value_name = "CODE")]
    pub(crate) load_error: Option<i64>,
    /// Deletes its sessions at start.
    #[arg(long)]
    pub(crate) forget: bool,
    /// Half of the replay follows the response.
    #[arg(long)]
    pub(crate) late_replay: bool,
    /// N made-up turns come before the true history (version 1 only).
    #[arg(long, value_name = "N")]
    pub(crate) replay_turns: Option<u32>,

    /// Never answers initialize.
    #[arg(long)]
    pub(crate) silent_start: bool,
    /// Exits with 3 when it gets that request (for the NTH time).
    #[arg(long, value_name = "METHOD[:NTH]")]
    pub(crate) crash_on: Option<Nth>,
    /// Prints a line that is not JSON and exits with 0.
    #[arg(long)]
    pub(crate) plain_line_exit: bool,
    /// Goes on after the end of stdin.
    #[arg(long)]
    pub(crate) ignore_eof: bool,
    /// Writes the file `saved-on-eof` at the end of stdin.
    #[arg(long)]
    pub(crate) save_on_eof: bool,
    /// Ignores SIGTERM.
    #[arg(long)]
    pub(crate) ignore_term: bool,
    /// Records other processes with its ACPD_AGENT_MARK in their environment.
    #[arg(long)]
    pub(crate) look_around: bool,
}

/// Order of the messages of version 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MessageOrder {
    /// `user_message`, answer, `running`. Thoughts have the id of the message after them; a prompt
    /// that waits cannot be withdrawn.
    Claude,
    /// `running`, a chunk for each block, answer.
    Codex,
}

/// The nth receipt of a method, from 1: `METHOD[:NTH]`.
#[derive(Clone, Debug)]
pub(crate) struct Nth {
    pub(crate) method: String,
    pub(crate) nth: u32,
}

impl FromStr for Nth {
    type Err = ParseIntError;

    fn from_str(text: &str) -> Result<Nth, ParseIntError> {
        let (method, nth) = text.split_once(':').unwrap_or((text, "1"));
        Ok(Nth { method: method.to_owned(), nth: nth.parse()? })
    }
}

impl Options {
    /// A well-behaved agent that keeps its sessions in `state`.
    pub fn new(state: PathBuf) -> Self {
        Self { state, record: None, points: None, flags: Flags::default() }
    }

    /// The options on this program's command line. Ends the program if it cannot read them.
    pub fn from_args() -> Self {
        Self::parse()
    }

    /// State directory of the demo agent: `$XDG_STATE_HOME/acpd/demo`, by default below `$HOME/.local/state`.
    pub fn default_state() -> PathBuf {
        let base =
            path_var("XDG_STATE_HOME").filter(|path| path.is_absolute()).unwrap_or_else(|| {
                path_var("HOME").map_or_else(std::env::temp_dir, |home| home.join(".local/state"))
            });
        base.join("acpd/demo")
    }
}

fn path_var(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}
