//! The start of an agent: its environment, its program, and a fingerprint of both.

pub(crate) mod installed;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use acpd_api::is_named;
use acpd_sys::programs::{NeedsShell, ScriptCommand, without_shell};

use crate::config::launch::installed::Installed;
use crate::config::profile::Profile;
use crate::failure::Failure;

/// Variables that every agent gets from the daemon, as names or beginnings of names.
pub(crate) const BASE: [&str; 54] = [
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "PATH",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TZ",
    "TMPDIR",
    "TERM",
    "COLORTERM",
    "XDG_*",
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "DBUS_SESSION_BUS_ADDRESS",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "NODE_EXTRA_CA_CERTS",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    // Windows programs do not start without these.
    "ALLUSERSPROFILE",
    "APPDATA",
    "COMMONPROGRAMFILES",
    "COMMONPROGRAMFILES(X86)",
    "COMMONPROGRAMW6432",
    "COMPUTERNAME",
    "COMSPEC",
    "DRIVERDATA",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "NUMBER_OF_PROCESSORS",
    "OS",
    "PATHEXT",
    "PROCESSOR_*",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "PROGRAMFILES(X86)",
    "PROGRAMW6432",
    "PUBLIC",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "TEMP",
    "TMP",
    "USERDOMAIN",
    "USERNAME",
    "USERPROFILE",
    "WINDIR",
];

/// Returns the agent's environment, sorted by name: the variables of `base` that it may inherit,
/// and those of its profile.
pub fn environment(
    profile: &Profile,
    base: impl Iterator<Item = (OsString, OsString)>,
) -> Vec<(OsString, OsString)> {
    let inherited = profile.inherit_env.iter().map(String::as_str);
    let allowed: Vec<&str> = BASE.into_iter().chain(inherited).collect();
    let mut environment: BTreeMap<OsString, OsString> =
        base.filter(|(name, _)| is_any(&allowed, name)).collect();
    for (name, value) in profile.env.iter() {
        environment.insert(name.into(), value.into());
    }
    environment.into_iter().collect()
}

/// Returns whether every agent gets the variable and its value is no secret. Addresses of proxies
/// may contain passwords.
pub fn every_agent_gets(name: &str) -> bool {
    let is_proxy = name.to_ascii_uppercase().ends_with("_PROXY");
    !is_proxy && is_any(&BASE, OsStr::new(name))
}

/// Adds a `HOME` to `base` if it has none. Some editors start `acpctl`, and so the daemon, with
/// nothing but a `PATH`; agents look for their logins at home.
pub fn with_home(
    base: impl Iterator<Item = (OsString, OsString)>,
    home: Option<PathBuf>,
) -> impl Iterator<Item = (OsString, OsString)> {
    let home = home.map(|home| (OsString::from("HOME"), home.into_os_string()));
    // First, because later variables win.
    home.into_iter().chain(base)
}

fn is_any(patterns: &[impl AsRef<str>], name: &OsStr) -> bool {
    patterns.iter().any(|pattern| is_named(pattern.as_ref(), name.as_encoded_bytes()))
}

/// Returns the program of an agent and its arguments, without a shell, and without a package runner
/// if the package is installed. Fails if there is no such program, or a start would have to
/// download it.
///
/// `own` is the daemon's program, which serves a built-in agent; `env` is from [`environment`].
pub fn command_line(
    profile: &Profile,
    env: &[(OsString, OsString)],
    own: &Path,
) -> Result<(PathBuf, Vec<String>), Failure> {
    let (file, first) = match installed::installed(profile, env) {
        Installed::Here { program, args } => (program, args),
        Installed::Missing { install } if profile.is_known_command => {
            return Err(not_downloaded(profile, &install));
        }
        Installed::Missing { .. } | Installed::Other => (resolve_program(profile, env, own)?, 1),
    };
    let started = executable(profile, env, file)?;
    let args = started.args.into_iter().chain(profile.command.iter().skip(first).cloned());
    Ok((started.program, args.collect()))
}

/// Returns the executable of the agent's command, looked up in the agent's own `PATH`. Its
/// arguments are `profile.command[1..]`. `own` and `env` are as in [`command_line`].
pub fn resolve_program(
    profile: &Profile,
    env: &[(OsString, OsString)],
    own: &Path,
) -> Result<PathBuf, Failure> {
    if profile.builtin {
        return Ok(own.to_owned());
    }
    let name = profile.command.first().map_or("", String::as_str);
    let program = expand_home(name);
    // An empty PATH would mean the current directory.
    let path = variable(env, "PATH").filter(|path| !path.is_empty());
    which::which_in(&program, path, profile.start_dir()).map_err(|_| {
        let bare = program.parent() == Some(Path::new(""));
        let searched = path.unwrap_or_default().to_string_lossy();
        not_found(profile, name, bare.then_some(searched.as_ref()))
    })
}

/// Replaces `~/`, because there is no shell that does.
pub(crate) fn expand_home(program: &str) -> PathBuf {
    let home = program.strip_prefix("~/").zip(std::env::home_dir());
    home.map_or_else(|| PathBuf::from(program), |(rest, home)| home.join(rest))
}

/// Returns the command for the file that [`resolve_program`] or [`installed`](installed::installed)
/// has found, without a shell, so that arguments arrive as written. Fails if only a shell can run
/// the file, or if its program is missing.
pub fn executable(
    profile: &Profile,
    env: &[(OsString, OsString)],
    file: PathBuf,
) -> Result<ScriptCommand, Failure> {
    let found = without_shell(file.clone()).map_err(|why| refused(profile, &file, why))?;
    if found.program.parent() != Some(Path::new("")) {
        return Ok(found);
    }
    let path = variable(env, "PATH");
    let program = which::which_in(&found.program, path, profile.start_dir()).ok();
    match program.map(without_shell) {
        Some(Ok(ScriptCommand { program, args })) if args.is_empty() => {
            Ok(ScriptCommand { program, args: found.args })
        }
        _ => {
            let path = path.unwrap_or_default().to_string_lossy();
            Err(not_found(profile, &found.program.to_string_lossy(), Some(&path)))
        }
    }
}

fn refused(profile: &Profile, file: &Path, why: NeedsShell) -> Failure {
    let (name, file) = (&profile.name, file.display());
    let message = format!("cannot start `{file}`, the command of agent `{name}`: {why}");
    let hint = format!(
        "set `command` in `[agents.{name}]` to the program that the script starts, and its arguments"
    );
    Failure::new(message, Some(hint))
}

/// Returns the variable of exactly this name, else of this name in any case.
pub(crate) fn variable<'e>(env: &'e [(OsString, OsString)], name: &str) -> Option<&'e OsStr> {
    let exact = env.iter().find(|(key, _)| key == name);
    let found = exact.or_else(|| env.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)));
    found.map(|(_, value)| value.as_os_str())
}

/// Returns a short text that depends on the command, the names of variables, and the offers to the
/// agent. Values of variables do not count. Keys of caches use it, so it is the same in every
/// version of acpd.
pub fn fingerprint(profile: &Profile) -> String {
    let command = profile.command.iter().map(|word| ("command", word));
    let variables = profile.env.keys().map(|name| ("env", name));
    let names = variables.chain(profile.credentials.keys().map(|name| ("credential", name)));
    let mut hash = FNV_OFFSET;
    let offers = profile.services.iter().map(|offer| ("service", offer.word()));
    let offers = offers.chain(profile.subagents.then_some(("offer", "subagents")));
    let offers = offers.chain(profile.protocol.asks_for_2().then_some(("protocol", "2")));
    let heard = profile.client_meta.iter().map(|name| ("client_meta", name.as_str()));
    let named = command.chain(names).map(|(kind, text)| (kind, text.as_str()));
    for (kind, text) in named.chain(offers).chain(heard) {
        // The zero bytes keep ["a b"] and ["a", "b"] apart; no argument can hold one.
        let bytes = kind.bytes().chain([0]).chain(text.bytes()).chain([0]);
        hash = bytes.fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME));
    }
    format!("{hash:016x}")
}

/// Returns whether both start the agent in the same way. Other differences apply to a running
/// agent, too.
pub(crate) fn starts_alike(old: &Profile, new: &Profile) -> bool {
    fingerprint(old) == fingerprint(new)
        && (&old.env, &old.inherit_env, &old.cwd) == (&new.env, &new.inherit_env, &new.cwd)
        && old.credentials == new.credentials
        && old.prefer_installed == new.prefer_installed
        && old.transport() == new.transport()
}

/// 64-bit FNV-1a, which never changes, unlike the standard library's hasher.
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

/// Longest PATH shown in full, in bytes: a longer one hides the hint.
const SHOWN_PATH: usize = 120;

fn not_downloaded(profile: &Profile, install: &str) -> Failure {
    let name = &profile.name;
    let message = format!("agent `{name}` is not installed, and acpd downloads nothing by itself");
    let hint = format!("install it: `acpctl agent install {name}` (it runs `{install}`)");
    Failure::new(message, Some(hint))
}

/// `searched` is the PATH in which a bare name was searched.
fn not_found(profile: &Profile, program: &str, searched: Option<&str>) -> Failure {
    let name = &profile.name;
    let reason = match searched {
        None => "it does not exist or is not executable".to_owned(),
        Some("") => "the agent's PATH is empty".to_owned(),
        Some(path) if path.len() <= SHOWN_PATH => {
            format!("it is not in the agent's PATH, {path}")
        }
        Some(path) => {
            let directories = path.split(':').filter(|part| !part.is_empty()).count();
            format!("it is in none of the {directories} directories of the agent's PATH")
        }
    };
    let hint = if program.contains(char::is_whitespace) {
        let words: Vec<_> = program.split_whitespace().collect();
        format!("write the command as a list: `command = {words:?}`")
    } else if let Some(install) = &profile.install {
        format!("install it (`{install}`), or set `command` in `[agents.{name}]` to its path")
    } else if searched.is_some() {
        format!("set `command` in `[agents.{name}]` to its path, or `env.PATH`")
    } else {
        format!("set `command` in `[agents.{name}]` to where the program is")
    };
    let message = format!("cannot find `{program}`, the command of agent `{name}`: {reason}");
    Failure::new(message, Some(hint))
}
