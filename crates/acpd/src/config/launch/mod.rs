//! What an agent is started with: its environment, its program, and a fingerprint of both.

pub(crate) mod installed;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use acpd_api::is_named;
use acpd_sys::programs::{NeedsShell, ScriptCommand, without_shell};

use crate::config::launch::installed::Installed;
use crate::config::profile::Profile;
use crate::failure::Failure;

/// The variables that every agent gets from the daemon, as names or beginnings of names.
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
    // What Windows programs do not start without.
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

/// The environment of the agent's process, sorted by name: what it may inherit of `base`, and what
/// its profile sets.
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

/// Returns whether this is a variable that every agent gets, and that holds no secret: proxies may have a password in
/// their addresses.
pub fn every_agent_gets(name: &str) -> bool {
    let is_proxy = name.to_ascii_uppercase().ends_with("_PROXY");
    !is_proxy && is_any(&BASE, OsStr::new(name))
}

/// `base` with a `HOME`, if it has none. Some editors start `acpctl`, and by it the daemon, with nothing
/// but a `PATH`; agents look for their logins at home.
pub fn with_home(
    base: impl Iterator<Item = (OsString, OsString)>,
    home: Option<PathBuf>,
) -> impl Iterator<Item = (OsString, OsString)> {
    let home = home.map(|home| (OsString::from("HOME"), home.into_os_string()));
    // First, because what comes later wins.
    home.into_iter().chain(base)
}

/// Returns whether `name` is what one of the patterns says.
fn is_any(patterns: &[impl AsRef<str>], name: &OsStr) -> bool {
    patterns.iter().any(|pattern| is_named(pattern.as_ref(), name.as_encoded_bytes()))
}

/// The program of an agent and its arguments: no shell and, if the package is installed, no package runner comes between.
///
/// `own` is the daemon's own program, which serves a built-in agent; `env` is what [`environment`] gave.
///
/// # Errors
/// When there is no such program, or a start would have to download it.
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

/// The executable file behind the agent's command, looked up in the agent's own `PATH`.
///
/// `own` is the daemon's own program, which serves a built-in agent; `env` is what [`environment`]
/// gave. The arguments are `profile.command[1..]` in any case.
///
/// # Errors
/// When there is no such executable.
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
    // An empty PATH would be taken for the current directory.
    let path = variable(env, "PATH").filter(|path| !path.is_empty());
    which::which_in(&program, path, profile.start_dir()).map_err(|_| {
        let bare = program.parent() == Some(Path::new(""));
        let searched = path.unwrap_or_default().to_string_lossy();
        not_found(profile, name, bare.then_some(searched.as_ref()))
    })
}

/// The program, with `~/` replaced: without a shell nothing else does that.
pub(crate) fn expand_home(program: &str) -> PathBuf {
    let home = program.strip_prefix("~/").zip(std::env::home_dir());
    home.map_or_else(|| PathBuf::from(program), |(rest, home)| home.join(rest))
}

/// What is started for the file that [`resolve_program`] or [`installed`](installed::installed) has found: no shell
/// comes between, so every argument arrives as it is written.
///
/// # Errors
/// When only a shell can run it, or what is behind it is not there.
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

/// A variable's value; spelt exactly so if there is one, else in any case.
pub(crate) fn variable<'e>(env: &'e [(OsString, OsString)], name: &str) -> Option<&'e OsStr> {
    let exact = env.iter().find(|(key, _)| key == name);
    let found = exact.or_else(|| env.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)));
    found.map(|(_, value)| value.as_os_str())
}

/// A short text that changes when the agent would be started in another way: with another command,
/// with other variables set, or with something else offered to it. Values of variables do not
/// count. It is the same in every version of acpd, and meant for keys of caches.
pub fn fingerprint(profile: &Profile) -> String {
    let command = profile.command.iter().map(|word| ("command", word));
    let variables = profile.env.keys().map(|name| ("env", name));
    let names = variables.chain(profile.credentials.keys().map(|name| ("credential", name)));
    let mut hash = FNV_OFFSET;
    let offers = profile.services.iter().map(|offer| ("service", offer.word()));
    let offers = offers.chain(profile.subagents.then_some(("offer", "subagents")));
    let heard = profile.client_meta.iter().map(|name| ("client_meta", name.as_str()));
    let named = command.chain(names).map(|(kind, text)| (kind, text.as_str()));
    for (kind, text) in named.chain(offers).chain(heard) {
        // The zero bytes keep ["a b"] and ["a", "b"] apart; no argument can hold one.
        let bytes = kind.bytes().chain([0]).chain(text.bytes()).chain([0]);
        hash = bytes.fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_PRIME));
    }
    format!("{hash:016x}")
}

/// Returns whether an agent is started in the same way by both: what differs besides holds for the running one, too.
pub(crate) fn starts_alike(old: &Profile, new: &Profile) -> bool {
    fingerprint(old) == fingerprint(new)
        && (&old.env, &old.inherit_env, &old.cwd) == (&new.env, &new.inherit_env, &new.cwd)
        && old.credentials == new.credentials
        && old.prefer_installed == new.prefer_installed
        && old.transport() == new.transport()
}

/// 64-bit FNV-1a, which unlike the standard library's hasher is the same for ever.
const FNV_OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_PRIME: u64 = 0x0100_0000_01b3;

/// The longest PATH that is shown whole, in bytes: a longer one hides the way out.
const SHOWN_PATH: usize = 120;

/// The package of a catalogued agent is not installed, and a start must not download it.
fn not_downloaded(profile: &Profile, install: &str) -> Failure {
    let name = &profile.name;
    let message = format!("agent `{name}` is not installed, and acpd downloads nothing by itself");
    let hint = format!("install it: `acpctl agent install {name}` (it runs `{install}`)");
    Failure::new(message, Some(hint))
}

/// `program` is not an executable file, or not in the directories of `searched`.
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
