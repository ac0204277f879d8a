//! The variables that agents may inherit: the daemon's own, or those that the user's login shell makes of them
//! ([`login_shell`](crate::login_shell)).
//!
//! Architecture invariant: `config::environment` decides which of these variables an agent gets, wherever
//! they come from. They are in this process's memory and in no file, log or command line.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use acpd_api::LoginShellInfo;
use tokio::sync::SetOnce;

use crate::config::{self, Profile};

pub type Variables = BTreeMap<OsString, OsString>;

/// The answer of the login shell. As the process's own environment, there is one.
static SAID: RwLock<Said> =
    RwLock::new(Said { shell: None, variables: None, is_whole: false, problem: None });

/// Set when the shell has been asked once, with or without success.
static ANSWERED: SetOnce<()> = SetOnce::const_new();

#[derive(Debug, Default)]
struct Said {
    /// None if it is not asked.
    shell: Option<PathBuf>,
    variables: Option<Variables>,
    /// The variables are of a login and of a terminal: nothing is better.
    is_whole: bool,
    /// The error of the last time.
    problem: Option<String>,
}

/// Result of asking the shell.
#[derive(Debug)]
pub(crate) enum Answer {
    /// Variables of a login and a terminal.
    Whole(Variables),
    /// Variables that a part of its files set, and why not the whole.
    Part(Variables, String),
    /// Why there is none.
    None(String),
}

fn said() -> RwLockReadGuard<'static, Said> {
    SAID.read().unwrap_or_else(PoisonError::into_inner)
}

fn say() -> RwLockWriteGuard<'static, Said> {
    SAID.write().unwrap_or_else(PoisonError::into_inner)
}

/// The variables that agents may inherit.
pub fn variables() -> impl Iterator<Item = (OsString, OsString)> {
    let said = said().variables.clone();
    let own = said.is_none().then(std::env::vars_os);
    said.into_iter().flatten().chain(own.into_iter().flatten())
}

/// The environment of an agent's process.
pub(crate) fn environment_of(profile: &Profile) -> Vec<(OsString, OsString)> {
    config::environment(profile, config::with_home(variables(), std::env::home_dir()))
}

pub fn variable(name: &str) -> Option<OsString> {
    match &said().variables {
        Some(variables) => variables.get(OsStr::new(name)).cloned(),
        None => std::env::var_os(name),
    }
}

/// The shell that is asked, and what came of it; `None` if none is.
pub fn told() -> Option<LoginShellInfo> {
    let said = said();
    let program = said.shell.as_ref()?.display().to_string().into();
    Some(LoginShellInfo { program, problem: said.problem.clone().map(Into::into) })
}

pub(crate) fn will_ask(shell: &Path) {
    say().shell = Some(shell.to_owned());
}

/// Returns when the shell has been asked once, at once if none is.
pub(crate) async fn first_answer() {
    if told().is_some() {
        ANSWERED.wait().await;
    }
}

/// This came of asking it. What is known stays until something is known that is not less. Returns the problem, if it is
/// not that of the last time.
pub(crate) fn answered(answer: Answer) -> Option<String> {
    let mut said = say();
    let (variables, problem) = match answer {
        Answer::Whole(variables) => (Some((variables, true)), None),
        Answer::Part(_, why) if said.is_whole => {
            (None, Some(format!("{why}; agents get what it said before")))
        }
        Answer::Part(variables, why) => {
            let text = format!("{why}; agents get only what a part of its files set");
            (Some((variables, false)), Some(text))
        }
        Answer::None(why) => (None, Some(why)),
    };
    if let Some((variables, is_whole)) = variables {
        (said.variables, said.is_whole) = (Some(variables), is_whole);
    }
    let before = std::mem::replace(&mut said.problem, problem.clone());
    // Only the first answer sets it.
    ANSWERED.set(()).ok();
    problem.filter(|now| Some(now) != before.as_ref())
}
