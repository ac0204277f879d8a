//! Asks the user's login shell for the environment of a terminal.
//!
//! The environment of a terminal (the `PATH` of nvm, Homebrew or cargo) comes from files of the
//! shell. A daemon that a service manager, a desktop or cron has started does not have it, so it
//! asks the shell:
//!
//! ```text
//!  an agent is to be started
//!    └─▶ $SHELL as a login and in a terminal ── answers ──▶ all variables
//!          │ fails, or half of the time is over: it continues, and next to it
//!          ├─▶ $SHELL as a login only, then in a terminal only ──▶ a part of the variables
//!          └─ none answers in time ──────────▶ what was known before, or the daemon's own variables
//!
//!  $SHELL: exec acpd environment ─▶ NAME=VALUE between marks, on a pipe. Its other output is lost.
//! ```
//!
//! All variables replace what was known. A part does so only if nothing whole was known.
//! Each start of an agent begins with the first way: what was slow or broken once may be fixed.
//!
//! The pipe is the stdin of all these shells, open for writing: no shell closes it, nothing else
//! writes to it, and a file that reads from stdin gets an error instead of waiting.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use acpd_api::escape::shell_word;
use acpd_sys::process::{os_string, running_program};
use acpd_sys::programs;
use tokio::sync::{Mutex, SetOnce};
use tokio::time::sleep;

use crate::config::UseLoginShell;
use crate::environment::{Answer, Variables, answered, first_answer, will_ask};
use crate::helper_process::{End, Helpers, at_home, read};

/// Longest time for all ways together. Few shells need more per terminal.
const LIMIT: Duration = Duration::from_secs(5);
/// Agents that start together ask once.
const FRESH: Duration = Duration::from_secs(2);
/// Longest environment, in bytes.
const LONGEST: u64 = 4 << 20;
/// Marks before and behind the variables.
const BEGIN: &[u8] = b"\0acpd environment\0";
const END: &[u8] = b"\0acpd end\0";
/// Set while the shell is asked, so that its files can skip things.
const ASKING: &str = "ACPD_RESOLVING_ENVIRONMENT";
/// Variables of the asked shell and of the service manager, which no agent gets.
const OWN: [&str; 10] = [
    "_",
    "SHLVL",
    "PWD",
    "OLDPWD",
    "NOTIFY_SOCKET",
    "LISTEN_PID",
    "LISTEN_FDS",
    "LISTEN_FDNAMES",
    "WATCHDOG_PID",
    "WATCHDOG_USEC",
];

/// Waits until the shell has answered once, or failed, so that the inherited variables are known.
pub async fn settled() {
    // An ending daemon gets no answer.
    tokio::time::timeout(LIMIT, first_answer()).await.ok();
}

#[derive(Debug, Clone)]
pub struct LoginShell {
    shell: PathBuf,
    /// Prints its environment.
    exe: PathBuf,
    limit: Duration,
    /// Time of the last attempt.
    asked: Arc<Mutex<Option<Instant>>>,
}

impl LoginShell {
    /// Returns the user's shell, if it is to be asked. `managed`: a service manager has started the
    /// daemon.
    pub fn new(use_it: UseLoginShell, managed: bool, exe: PathBuf) -> Option<LoginShell> {
        // Every usual shell sets it.
        let is_from_shell = !managed && std::env::var_os("SHLVL").is_some();
        let is_wanted = match use_it {
            UseLoginShell::Auto => !is_from_shell,
            UseLoginShell::Always => true,
            UseLoginShell::Never => false,
        };
        let shell = programs::login_shell().filter(|_| is_wanted)?;
        will_ask(&shell);
        Some(LoginShell { shell, exe, limit: LIMIT, asked: Arc::default() })
    }

    /// Asks the shell again, unless it was just asked.
    pub async fn ask(&self, helpers: &Helpers) {
        let mut asked = self.asked.lock().await;
        if asked.is_some_and(|at| at.elapsed() < FRESH) {
            return;
        }
        let answer = self.answer(helpers).await;
        *asked = Some(Instant::now());
        // Logged once, not at each start of an agent.
        if let Some(problem) = answered(answer) {
            tracing::warn!(shell = %self.shell.display(), problem, "no environment of a terminal");
        }
    }

    async fn answer(&self, helpers: &Helpers) -> Answer {
        // An upgrade may have removed the program. Its output is the same in all releases.
        let exe = if self.exe.is_file() { self.exe.clone() } else { running_program(&self.exe) };
        let (whole, parts) = match ways(&self.shell, &exe) {
            Ok(ways) => ways,
            Err(why) => return Answer::None(why),
        };
        let end = Instant::now() + self.limit;
        let mut whole = pin!(self.run(whole, sleep(self.limit), helpers));
        let early = tokio::time::timeout(self.limit / 2, &mut whole).await.ok();
        if let Some(Ok(variables)) = early {
            return Answer::Whole(variables);
        }
        let is_whole = SetOnce::new();
        let parts = async {
            for (left, words) in (1..=PARTS).rev().zip(parts) {
                let time = end.saturating_duration_since(Instant::now()) / left;
                // A part is not needed once the whole is there.
                let late = tokio::time::timeout(time, is_whole.wait());
                if let Ok(variables) = self.run(words, late, helpers).await {
                    return Some(variables);
                }
            }
            None
        };
        let whole = async {
            let whole = match early {
                Some(failed) => failed,
                None => whole.await,
            };
            if whole.is_ok() {
                is_whole.set(()).ok();
            }
            whole
        };
        match tokio::join!(whole, parts) {
            (Ok(variables), _) => Answer::Whole(variables),
            // The reason of the first way, which users know.
            (Err(why), Some(variables)) => Answer::Part(variables, why),
            (Err(why), None) => Answer::None(why),
        }
    }

    async fn run(
        &self,
        words: Vec<String>,
        late: impl Future,
        helpers: &Helpers,
    ) -> Result<Variables, String> {
        let shell = self.shell.clone();
        let prepare = move |answer| {
            let mut command = Command::new(&shell);
            command.args(words).env(ASKING, "1");
            command.stdin(answer).stdout(Stdio::null()).stderr(Stdio::null());
            for name in OWN {
                command.env_remove(name);
            }
            at_home(&mut command);
            Ok(command)
        };
        let mut said = Vec::new();
        let shell = self.shell.display().to_string();
        let end = helpers.run(prepare, |_, answer| read(answer, LONGEST, &mut said), late).await;
        let end = end.map_err(|error| format!("cannot start `{shell}`: {error}"))?;
        if let Some(variables) = parse(&said) {
            return Ok(variables);
        }
        Err(match end {
            End::Late => {
                format!("its files let `{shell}` take more than {} s", self.limit.as_secs())
            }
            end => end.problem(&shell, self.limit).unwrap_or_else(|| {
                format!("`{shell}` did not come to its command: a file of it ends or replaces it")
            }),
        })
    }
}

type Words = Vec<String>;
/// Number of ways to a part of the environment.
const PARTS: u32 = 2;

/// Returns the command lines by which a shell prints its environment: as a login and in a terminal;
/// then without the one or the other, for files that hang or replace the shell there.
fn ways(shell: &Path, exe: &Path) -> Result<(Words, [Words; PARTS as usize]), String> {
    let name = shell.file_name().unwrap_or_default().to_string_lossy();
    let word = |path: &Path| path.to_str().map(shell_word).ok_or("its path is not UTF-8 text");
    let print = format!("exec {} environment", word(exe)?);
    let line = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let whole = match &*name {
        // As a login shell, bash skips the files that it reads in a terminal.
        "bash" => line(&["-lc", &format!("exec {} -ic {}", word(shell)?, shell_word(&print))]),
        "zsh" | "fish" | "sh" | "dash" | "ash" | "ksh" | "mksh" => {
            line(&["-l", "-i", "-c", &print])
        }
        _ => return Err(format!("acpd does not know how to ask `{}`", shell.display())),
    };
    Ok((whole, [line(&["-l", "-c", &print]), line(&["-i", "-c", &print])]))
}

/// Writes the environment of this process to its stdin, the pipe of a [`LoginShell`].
pub fn print() -> io::Result<()> {
    let mut text = BEGIN.to_vec();
    for (name, value) in std::env::vars_os() {
        let (name, value) = (name.as_encoded_bytes(), value.as_encoded_bytes());
        text.extend([name, b"=", value, b"\0"].concat());
    }
    text.extend(END);
    programs::answer_from_shell(&text)
}

/// Returns the variables between the marks; `None` if a mark is missing.
fn parse(said: &[u8]) -> Option<Variables> {
    let at = |mark: &[u8]| said.windows(mark.len()).position(|found| found == mark);
    let said = said.get(at(BEGIN)? + BEGIN.len()..at(END)?)?;
    let is_own =
        |name: &[u8]| OWN.iter().any(|own| own.as_bytes() == name) || name.starts_with(b"ACPD_");
    let pairs = said.split(|byte| *byte == 0).filter_map(|pair| {
        // A name may begin with `=` on some systems.
        let at = pair.iter().skip(1).position(|byte| *byte == b'=')? + 1;
        let (name, value) = (&pair[..at], &pair[at + 1..]);
        Some((os_string(name)?, os_string(value)?)).filter(|_| !is_own(name))
    });
    let is_acpds = |name: &OsStr| name.as_encoded_bytes().starts_with(b"ACPD_");
    let acpds = std::env::vars_os().filter(|(name, _)| is_acpds(name));
    Some(pairs.chain(acpds).collect())
}

#[cfg(all(test, unix))]
mod tests {
    use std::ffi::OsString;
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;
    use crate::host::Reaper;

    fn helpers() -> Helpers {
        Helpers::new(Reaper::start(tokio::sync::mpsc::channel(1).0).unwrap())
    }

    #[test]
    fn what_is_between_the_marks_is_the_environment_whatever_is_around_it() {
        let text = |inside: &[u8]| [b"hello\n", BEGIN, inside, END, b"bye"].concat();
        let inside = b"PATH=/a:/b\0MANY=one\ntwo=2\0EMPTY=\0SHLVL=1\0ACPD_HOST=-\0";
        let found = parse(&text(inside)).unwrap();
        let get = |name: &str| found.get(OsStr::new(name)).and_then(|value| value.to_str());
        assert_eq!(get("PATH"), Some("/a:/b"));
        assert_eq!(get("MANY"), Some("one\ntwo=2"));
        assert_eq!(get("EMPTY"), Some(""));
        assert_eq!((get("SHLVL"), get("ACPD_HOST")), (None, None));
        assert!(parse(&text(inside)[..60]).is_none() && parse(b"").is_none());
    }

    /// A shell, which is this script, that is asked for the environment of a program that prints `A=b`.
    fn asked(dir: &Path, shell: &str, limit: Duration) -> LoginShell {
        let script = |name: &str, text: &str| {
            let path = dir.join(name);
            std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
            path
        };
        let exe = script("acpd", "printf '\\0acpd environment\\0A=b\\0\\0acpd end\\0' >&0");
        LoginShell { shell: script("zsh", shell), exe, limit, asked: Arc::default() }
    }

    fn is_it(variables: &Variables) -> bool {
        variables.get(OsStr::new("A")) == Some(&OsString::from("b"))
    }

    #[tokio::test]
    async fn a_shell_that_hangs_as_in_a_terminal_is_asked_without_and_as_before_the_next_time() {
        let dir = tempfile::tempdir().unwrap();
        let hang = "[ \"$2\" = -i ] && [ -e \"$(dirname \"$0\")/hang\" ] && exec sleep 1000\n\
                    [ \"$2\" = -i ] && shift\neval \"$3\"";
        let shell = asked(dir.path(), hang, Duration::from_secs(4));
        let helpers = helpers();
        std::fs::write(dir.path().join("hang"), "").unwrap();
        let Answer::Part(found, why) = shell.answer(&helpers).await else { panic!("a part") };
        assert!(is_it(&found) && why.contains("take more than 4 s"), "{why}");
        std::fs::remove_file(dir.path().join("hang")).unwrap();
        let answer = shell.answer(&helpers).await;
        assert!(matches!(&answer, Answer::Whole(found) if is_it(found)), "{answer:?}");
        std::fs::write(&shell.exe, "#!/bin/sh\nexit 3\n").unwrap();
        let Answer::None(why) = shell.answer(&helpers).await else { panic!("no answer") };
        assert!(why.contains("ended with exit code 3"), "{why}");
    }

    #[tokio::test]
    async fn a_shell_that_takes_long_has_all_the_time_and_one_that_hangs_no_more() {
        let dir = tempfile::tempdir().unwrap();
        // The shell answers when it is asked without a terminal already, and hangs there.
        let slow = "begun=$(dirname \"$0\")/begun\n\
                    [ \"$2\" = -i ] || { : >\"$begun\"; exec sleep 1000; }\n\
                    until [ -e \"$begun\" ]; do sleep 0.02; done\neval \"$4\"";
        let shell = asked(dir.path(), slow, Duration::from_secs(4));
        let helpers = helpers();
        let start = Instant::now();
        let answer = shell.answer(&helpers).await;
        assert!(matches!(&answer, Answer::Whole(found) if is_it(found)), "{answer:?}");
        // The ways that were tried at the same time are not waited for.
        assert!(start.elapsed() < shell.limit, "{:?}", start.elapsed());

        let limit = Duration::from_secs(2);
        let shell = asked(dir.path(), "exec sleep 1000", limit);
        let start = Instant::now();
        let Answer::None(why) = shell.answer(&helpers).await else { panic!("no answer") };
        assert!(why.contains("take more than"), "{why}");
        assert!(start.elapsed() < 2 * limit, "{:?}", start.elapsed());
    }

    #[test]
    fn a_shell_that_is_not_known_is_not_asked() {
        let refused = ways(Path::new("/usr/bin/nu"), Path::new("/acpd")).unwrap_err();
        assert!(refused.contains("/usr/bin/nu"), "{refused}");
        let bash = ways(Path::new("/bin/bash"), Path::new("/my tools/acpd")).unwrap();
        assert_eq!(bash.1[0], ["-l", "-c", "exec '/my tools/acpd' environment"]);
        assert!(bash.0[1].starts_with("exec /bin/bash -ic "), "{bash:?}");
    }
}
