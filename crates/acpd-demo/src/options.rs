//! What the scripted agent is told at its start: directories, and flags that make it misbehave.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Usage text of `acpd-scripted-agent`.
pub const HELP: &str = "\
usage: acpd-scripted-agent [--state DIR] [--record FILE] [--FLAG[=VALUE]]...

environment: ACPD_AGENT_STATE   directory of the sessions
             ACPD_AGENT_RECORD  file that gets every line, %p is the process id
             ACPD_AGENT_FLAGS   comma separated flags, without dashes
             ACPD_TEST_POINTS   directory of the [pause NAME] files

flags that change what it offers
  no-load no-resume no-list no-close no-fork no-steering   neither advertised nor served
  resume-lies                          session/resume is advertised, but answers -32601
  protocol=N                           initialize answers this protocol version
  mcp-acp                              MCP servers in the client are taken
  mcp-http                             MCP servers that are reached by HTTP are taken
flags for login
  auth-required      -32000 on new, load, resume and prompt until authenticate `demo-login`
  auth-list          the same on session/list too
  auth-first         -32000 on initialize without the file `authed`
  auth-token=NAME    -32000 on new, load, resume and prompt unless the variable NAME is what the file
                     `token` holds
  auth-once-after=N  -32000 once, on the prompt after the first N of this process
  auth-hidden        with auth-required: -32603 with a text about it in place of -32000
  auth-legacy        the login is a command, told in `_meta` as `terminal-auth`, as some agents do
  auth-terminal      the login is `--login` in a terminal, not authenticate
  login              makes the file `authed` and exits with 0
flags for session/load
  load-fails-times=N -32602 for the first N loads, counted across restarts
  load-error=CODE    every load answers this error
  forget             deletes its sessions at start
  late-replay        half of the replay follows the response
  replay-turns=N     N made-up turns come before the true history
  reset-options      mode and options are back to default after load and resume
flags for the process
  slow-start=MS      waits before it reads anything
  init-delay=MS      waits before it answers initialize
  silent-start       never answers initialize
  crash-on=METHOD[:NTH]  exits with 3 when it gets that request (for the NTH time)
  exit-at-start=CODE exits at once, with a line on stderr
  plain-line-exit    prints a line that is not JSON and exits with 0
  ignore-eof         goes on after the end of stdin
  save-on-eof        writes the file `saved-on-eof` at the end of stdin
  ignore-term        ignores SIGTERM
  no-read            never reads stdin
  look-around        records other processes with its ACPD_AGENT_MARK in their environment
flags for its messages
  early-updates      available_commands_update comes before the session/new response
  string-ids         its own requests have string ids
  count-ids          session ids are 0, 1, 2 after each start
  echo-user          a turn starts with the prompt as user_message_chunk
";

/// Where the agent keeps its sessions, what it records, and how it misbehaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Directory of the sessions and of the counters that outlive a process; made on demand.
    pub state: PathBuf,
    /// File that every line received and sent is appended to; `%p` stands for the process id.
    pub record: Option<PathBuf>,
    /// Directory in which `[pause NAME]` makes `NAME.hit` and waits for `NAME.go`.
    pub points: Option<PathBuf>,
    /// Misbehaviour, none by default.
    pub flags: Flags,
}

/// One field for each flag of [`HELP`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// MCP servers may be reached by HTTP.
    pub mcp_http: bool,
    /// `session/load` is neither advertised nor served.
    pub no_load: bool,
    /// `session/resume` is neither advertised nor served.
    pub no_resume: bool,
    /// `session/resume` is advertised, but answers -32601.
    pub resume_lies: bool,
    /// `session/list` is neither advertised nor served.
    pub no_list: bool,
    /// `session/close` is neither advertised nor served.
    pub no_close: bool,
    /// `session/fork` is neither advertised nor served.
    pub no_fork: bool,
    /// `_session/steering` is neither advertised nor served.
    pub no_steering: bool,
    /// MCP servers in the client are taken.
    pub mcp_acp: bool,
    /// Protocol version that `initialize` answers, 1 without the flag.
    pub protocol: Option<u16>,
    /// -32000 until `authenticate` made the file `authed`.
    pub auth_required: bool,
    /// `session/list` asks for a login as well.
    pub auth_list: bool,
    /// `initialize` asks for a login.
    pub auth_first: bool,
    /// The variable that has to be what the file `token` holds.
    pub auth_token: Option<String>,
    /// The prompt after this many prompts of the process answers -32000, once.
    pub auth_once_after: Option<u32>,
    /// The want of a login is an internal error.
    pub auth_hidden: bool,
    /// The login is a command that `_meta` tells of.
    pub auth_legacy: bool,
    /// The login is a run with `--login`.
    pub auth_terminal: bool,
    /// The process makes the file `authed` and ends.
    pub login: bool,
    /// Number of loads, across restarts, that answer -32602 first.
    pub load_fails_times: u32,
    /// Error code of every load.
    pub load_error: Option<i64>,
    /// The stored sessions are deleted at start.
    pub forget: bool,
    /// Half of the replay follows the response of `session/load`.
    pub late_replay: bool,
    /// Number of made-up turns before the true history in a replay.
    pub replay_turns: u32,
    /// Mode and options are back to default after load and resume.
    pub reset_options: bool,
    /// Wait before anything is read.
    pub slow_start: Duration,
    /// Wait before `initialize` is answered.
    pub init_delay: Duration,
    /// `initialize` is never answered.
    pub silent_start: bool,
    /// Method whose nth receipt (from 1) ends the process with 3.
    pub crash_on: Option<(String, u32)>,
    /// The process ends at once with this code.
    pub exit_at_start: Option<u8>,
    /// The process prints a line that is not JSON and ends with 0.
    pub plain_line_exit: bool,
    /// The end of stdin does not end the process.
    pub ignore_eof: bool,
    /// The end of stdin makes the file `saved-on-eof` in the state directory.
    pub save_on_eof: bool,
    /// SIGTERM is ignored.
    pub ignore_term: bool,
    /// Stdin is never read.
    pub no_read: bool,
    /// At its start the process records every other process with the same `ACPD_AGENT_MARK`.
    pub look_around: bool,
    /// `available_commands_update` comes before the response of `session/new`.
    pub early_updates: bool,
    /// Requests of the agent have string ids.
    pub string_ids: bool,
    /// Session ids count from 0 after each start.
    pub count_ids: bool,
    /// A turn starts with the prompt as `user_message_chunk`.
    pub echo_user: bool,
}

/// An argument or a flag that the agent does not understand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OptionsError {
    /// No such argument or flag, or a value where none belongs, or none where one belongs.
    Unknown(String),
    /// The value of this flag is not a number in range.
    NotANumber(String),
}

impl fmt::Display for OptionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(flag) => write!(f, "unknown or incomplete flag `{flag}`"),
            Self::NotANumber(flag) => {
                write!(f, "the value of flag `{flag}` is not a number in range")
            }
        }
    }
}

impl std::error::Error for OptionsError {}

impl Options {
    /// A well-behaved agent that keeps its sessions in `state`.
    pub fn new(state: PathBuf) -> Self {
        Self { state, record: None, points: None, flags: Flags::default() }
    }

    /// State directory of the demo agent: `$XDG_STATE_HOME/acpd/demo`, by default below `$HOME/.local/state`.
    pub fn default_state() -> PathBuf {
        let base =
            path_var("XDG_STATE_HOME").filter(|path| path.is_absolute()).unwrap_or_else(|| {
                path_var("HOME").map_or_else(std::env::temp_dir, |home| home.join(".local/state"))
            });
        base.join("acpd/demo")
    }

    /// Options from arguments (without the program's name) and the `ACPD_*` environment variables of [`HELP`].
    pub fn from_env(args: impl IntoIterator<Item = String>) -> Result<Self, OptionsError> {
        let mut options = Self {
            record: path_var("ACPD_AGENT_RECORD"),
            points: path_var("ACPD_TEST_POINTS"),
            ..Self::new(path_var("ACPD_AGENT_STATE").unwrap_or_else(Self::default_state))
        };
        for flag in std::env::var("ACPD_AGENT_FLAGS").unwrap_or_default().split(',') {
            if !flag.trim().is_empty() {
                options.flags.set(flag.trim())?;
            }
        }
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            let mut path =
                || args.next().map(PathBuf::from).ok_or_else(|| OptionsError::Unknown(arg.clone()));
            match arg.strip_prefix("--") {
                Some("state") => options.state = path()?,
                Some("record") => options.record = Some(path()?),
                Some(flag) => options.flags.set(flag)?,
                None => return Err(OptionsError::Unknown(arg)),
            }
        }
        Ok(options)
    }
}

impl Flags {
    /// Sets one flag, written `name` or `name=value`.
    pub fn set(&mut self, flag: &str) -> Result<(), OptionsError> {
        let (name, value) =
            flag.split_once('=').map_or((flag, None), |(name, value)| (name, Some(value)));
        match (name, value) {
            ("mcp-http", None) => self.mcp_http = true,
            ("no-load", None) => self.no_load = true,
            ("no-resume", None) => self.no_resume = true,
            ("resume-lies", None) => self.resume_lies = true,
            ("no-list", None) => self.no_list = true,
            ("no-close", None) => self.no_close = true,
            ("no-fork", None) => self.no_fork = true,
            ("no-steering", None) => self.no_steering = true,
            ("mcp-acp", None) => self.mcp_acp = true,
            ("protocol", Some(value)) => self.protocol = Some(number(flag, value)?),
            ("auth-required", None) => self.auth_required = true,
            ("auth-list", None) => self.auth_list = true,
            ("auth-first", None) => self.auth_first = true,
            ("auth-token", Some(name)) => self.auth_token = Some(name.to_owned()),
            ("auth-once-after", Some(value)) => self.auth_once_after = Some(number(flag, value)?),
            ("auth-hidden", None) => self.auth_hidden = true,
            ("auth-legacy", None) => self.auth_legacy = true,
            ("auth-terminal", None) => self.auth_terminal = true,
            ("login", None) => self.login = true,
            ("load-fails-times", Some(value)) => self.load_fails_times = number(flag, value)?,
            ("load-error", Some(value)) => self.load_error = Some(number(flag, value)?),
            ("forget", None) => self.forget = true,
            ("late-replay", None) => self.late_replay = true,
            ("replay-turns", Some(value)) => self.replay_turns = number(flag, value)?,
            ("reset-options", None) => self.reset_options = true,
            ("slow-start", Some(value)) => {
                self.slow_start = Duration::from_millis(number(flag, value)?);
            }
            ("init-delay", Some(value)) => {
                self.init_delay = Duration::from_millis(number(flag, value)?);
            }
            ("silent-start", None) => self.silent_start = true,
            ("crash-on", Some(value)) => {
                let (method, nth) = value.split_once(':').unwrap_or((value, "1"));
                self.crash_on = Some((method.to_owned(), number(flag, nth)?));
            }
            ("exit-at-start", Some(value)) => self.exit_at_start = Some(number(flag, value)?),
            ("plain-line-exit", None) => self.plain_line_exit = true,
            ("ignore-eof", None) => self.ignore_eof = true,
            ("save-on-eof", None) => self.save_on_eof = true,
            ("ignore-term", None) => self.ignore_term = true,
            ("no-read", None) => self.no_read = true,
            ("look-around", None) => self.look_around = true,
            ("early-updates", None) => self.early_updates = true,
            ("string-ids", None) => self.string_ids = true,
            ("count-ids", None) => self.count_ids = true,
            ("echo-user", None) => self.echo_user = true,
            _ => return Err(OptionsError::Unknown(flag.to_owned())),
        }
        Ok(())
    }

    /// Returns whether the agent has a login to offer.
    pub(crate) fn has_login(&self) -> bool {
        self.auth_required || self.auth_list || self.auth_once_after.is_some()
    }
}

fn number<T: FromStr>(flag: &str, value: &str) -> Result<T, OptionsError> {
    value.parse().map_err(|_| OptionsError::NotANumber(flag.to_owned()))
}

fn path_var(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}
