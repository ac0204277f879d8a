//! What the scripted agent is told at its start: directories, and flags that make it misbehave.

use std::fmt;
use std::num::ParseIntError;
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
    pub(crate) flags: Flags,
}

/// Declares the flags, each with its field.
macro_rules! flags {
    ($($name:literal => $field:ident: $type:ty,)*) => {
        /// One field for each flag of [`HELP`].
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub(crate) struct Flags {
            $(pub(crate) $field: $type,)*
        }

        impl Flags {
            /// Sets one flag, written `name` or `name=value`.
            fn set(&mut self, flag: &str) -> Result<(), OptionsError> {
                let (name, value) =
                    flag.split_once('=').map_or((flag, None), |(name, value)| (name, Some(value)));
                match name {
                    $($name => self.$field.set(flag, value),)*
                    _ => Err(OptionsError::Unknown(flag.to_owned())),
                }
            }
        }
    };
}

flags! {
    "mcp-http" => mcp_http: bool,
    "no-load" => no_load: bool,
    "no-resume" => no_resume: bool,
    "resume-lies" => resume_lies: bool,
    "no-list" => no_list: bool,
    "no-close" => no_close: bool,
    "no-fork" => no_fork: bool,
    "no-steering" => no_steering: bool,
    "mcp-acp" => mcp_acp: bool,
    "protocol" => protocol: Option<u16>,
    "auth-required" => auth_required: bool,
    "auth-list" => auth_list: bool,
    "auth-first" => auth_first: bool,
    "auth-token" => auth_token: Option<String>,
    "auth-once-after" => auth_once_after: Option<u32>,
    "auth-hidden" => auth_hidden: bool,
    "auth-legacy" => auth_legacy: bool,
    "auth-terminal" => auth_terminal: bool,
    "login" => login: bool,
    "load-fails-times" => load_fails_times: u32,
    "load-error" => load_error: Option<i64>,
    "forget" => forget: bool,
    "late-replay" => late_replay: bool,
    "replay-turns" => replay_turns: u32,
    "reset-options" => reset_options: bool,
    "slow-start" => slow_start: Duration,
    "init-delay" => init_delay: Duration,
    "silent-start" => silent_start: bool,
    "crash-on" => crash_on: Option<Nth>,
    "exit-at-start" => exit_at_start: Option<u8>,
    "plain-line-exit" => plain_line_exit: bool,
    "ignore-eof" => ignore_eof: bool,
    "save-on-eof" => save_on_eof: bool,
    "ignore-term" => ignore_term: bool,
    "no-read" => no_read: bool,
    "look-around" => look_around: bool,
    "early-updates" => early_updates: bool,
    "string-ids" => string_ids: bool,
    "count-ids" => count_ids: bool,
    "echo-user" => echo_user: bool,
}

/// The value of a flag.
trait Value {
    fn set(&mut self, flag: &str, value: Option<&str>) -> Result<(), OptionsError>;
}

impl Value for bool {
    fn set(&mut self, flag: &str, value: Option<&str>) -> Result<(), OptionsError> {
        *self = true;
        value.map_or(Ok(()), |_| Err(OptionsError::Unknown(flag.to_owned())))
    }
}

impl<T: FromStr> Value for Option<T> {
    fn set(&mut self, flag: &str, value: Option<&str>) -> Result<(), OptionsError> {
        *self = Some(parse(flag, value)?);
        Ok(())
    }
}

impl Value for u32 {
    fn set(&mut self, flag: &str, value: Option<&str>) -> Result<(), OptionsError> {
        *self = parse(flag, value)?;
        Ok(())
    }
}

/// In milliseconds.
impl Value for Duration {
    fn set(&mut self, flag: &str, value: Option<&str>) -> Result<(), OptionsError> {
        *self = Duration::from_millis(parse(flag, value)?);
        Ok(())
    }
}

/// The nth receipt of a method, from 1: `METHOD[:NTH]`.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// Returns whether the agent has a login to offer.
    pub(crate) fn has_login(&self) -> bool {
        self.auth_required || self.auth_list || self.auth_once_after.is_some()
    }
}

fn parse<T: FromStr>(flag: &str, value: Option<&str>) -> Result<T, OptionsError> {
    let value = value.ok_or_else(|| OptionsError::Unknown(flag.to_owned()))?;
    value.parse().map_err(|_| OptionsError::NotANumber(flag.to_owned()))
}

fn path_var(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}
