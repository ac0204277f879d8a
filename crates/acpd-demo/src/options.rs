use std::fmt::Write as _;
use std::num::ParseIntError;
use std::path::PathBuf;
use std::str::FromStr;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// Directory of the sessions and of the counters that outlive a process; made on demand.
    pub state: PathBuf,
    /// Every line received and sent is appended to this file; `%p` stands for the process id.
    pub record: Option<PathBuf>,
    /// Directory in which `[pause NAME]` makes `NAME.hit` and waits for `NAME.go`.
    pub points: Option<PathBuf>,
    pub(crate) flags: Flags,
}

/// Declares the flags: name, form of the value, field, and what the flag does.
macro_rules! flags {
    ($($title:literal {
        $($name:literal $($form:literal)? => $field:ident: $type:ty, $effect:literal;)*
    })*) => {
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub(crate) struct Flags {
            $($(#[doc = $effect] pub(crate) $field: $type,)*)*
        }

        impl Flags {
            /// Sets one flag, written `name` or `name=value`.
            fn set(&mut self, flag: &str) -> Result<(), String> {
                let (name, value) =
                    flag.split_once('=').map_or((flag, None), |(name, value)| (name, Some(value)));
                match name {
                    $($($name => self.$field.set(value),)*)*
                    _ => None,
                }
                .ok_or_else(|| format!("unknown flag `{flag}`, or not such a value as it has"))
            }
        }

        /// All flags with their forms and effects, by topic.
        const FLAGS: &[(&str, &[(&str, &str)])] =
            &[$(($title, &[$((concat!($name, $($form)?), $effect),)*]),)*];
    };
}

flags! {
    "what it offers" {
        "no-resume" => no_resume: bool, "session/resume is neither advertised nor served";
        "no-list" => no_list: bool, "the same for session/list";
        "protocol" "=N" => protocol: Option<u16>, "initialize answers this protocol version";
        "mcp-http" => mcp_http: bool, "MCP servers that are reached by HTTP are taken";
    }
    "login" {
        "auth-required" => auth_required: bool,
            "-32000 on new, load, resume and prompt until authenticate `demo-login`";
        "auth-token" "=NAME" => auth_token: Option<String>,
            "-32000 on new, load, resume and prompt unless the variable NAME is what the file `token` holds";
        "auth-hidden" => auth_hidden: bool,
            "with auth-required: -32603 with a text about it in place of -32000";
        "auth-terminal" => auth_terminal: bool,
            "the login is `--login` in a terminal, not authenticate";
        "login" => login: bool, "makes the file `authed` and exits with 0";
    }
    "session/load" {
        "load-error" "=CODE" => load_error: Option<i64>, "every load answers this error";
        "forget" => forget: bool, "deletes its sessions at start";
        "late-replay" => late_replay: bool, "half of the replay follows the response";
        "replay-turns" "=N" => replay_turns: Option<u32>,
            "N made-up turns come before the true history";
    }
    "the process" {
        "silent-start" => silent_start: bool, "never answers initialize";
        "crash-on" "=METHOD[:NTH]" => crash_on: Option<Nth>,
            "exits with 3 when it gets that request (for the NTH time)";
        "plain-line-exit" => plain_line_exit: bool,
            "prints a line that is not JSON and exits with 0";
        "ignore-eof" => ignore_eof: bool, "goes on after the end of stdin";
        "save-on-eof" => save_on_eof: bool, "writes the file `saved-on-eof` at the end of stdin";
        "ignore-term" => ignore_term: bool, "ignores SIGTERM";
        "look-around" => look_around: bool,
            "records other processes with its ACPD_AGENT_MARK in their environment";
    }
}

pub fn help() -> String {
    let mut text = "\
usage: acpd-scripted-agent [--state DIR] [--record FILE] [--FLAG[=VALUE]]...

  --state DIR       directory of the sessions
  --record FILE     gets every line, %p is the process id
  ACPD_TEST_POINTS  in the environment: directory of the [pause NAME] files
"
    .to_owned();
    for (title, flags) in FLAGS {
        let _ = writeln!(text, "\nflags for {title}");
        for (form, effect) in *flags {
            let _ = writeln!(text, "  {form:<22} {effect}");
        }
    }
    text
}

/// A flag, set with or without a value; `None` if the value is malformed.
trait Flag {
    fn set(&mut self, value: Option<&str>) -> Option<()>;
}

impl Flag for bool {
    fn set(&mut self, value: Option<&str>) -> Option<()> {
        *self = true;
        value.is_none().then_some(())
    }
}

impl<T: FromStr> Flag for Option<T> {
    fn set(&mut self, value: Option<&str>) -> Option<()> {
        *self = Some(value?.parse().ok()?);
        Some(())
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

    /// Options from arguments (without the program's name), as in [`help`]. The error names the
    /// argument that the agent does not understand.
    pub fn from_args(args: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let points = path_var("ACPD_TEST_POINTS");
        let mut options = Self { points, ..Self::new(Self::default_state()) };
        let mut args = args.into_iter();
        while let Some(arg) = args.next() {
            let mut path =
                || args.next().map(PathBuf::from).ok_or_else(|| format!("`{arg}` needs a path"));
            match arg.strip_prefix("--") {
                Some("state") => options.state = path()?,
                Some("record") => options.record = Some(path()?),
                Some(flag) => options.flags.set(flag)?,
                None => return Err(format!("unknown argument `{arg}`")),
            }
        }
        Ok(options)
    }
}

fn path_var(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}
