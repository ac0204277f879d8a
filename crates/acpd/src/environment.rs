//! The variables that agents may inherit: the daemon's own, or those of the user's login shell
//! ([`login_shell`](crate::login_shell)).
//!
//! Architecture invariant: `config::environment` decides which of these variables an agent gets, wherever
//! they come from. They are in this process's memory and in no file, log or command line.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use acpd_api::LoginShellInfo;
use tokio::sync::SetOnce;

use crate::config::{self, Profile};
use crate::locked;

pub type Variables = BTreeMap<OsString, OsString>;

/// The answer of the login shell: one per process, like its environment.
static SHELL_STATE: Mutex<ShellState> =
    Mutex::new(ShellState { shell: None, variables: None, is_whole: false, problem: None });

/// Set when the shell was asked once, with or without success.
static ANSWERED: SetOnce<()> = SetOnce::const_new();

#[derive(Debug, Default)]
struct ShellState {
    /// `None` if no shell is asked.
    shell: Option<PathBuf>,
    variables: Option<Variables>,
    /// The variables are of a login and a terminal: none are better.
    is_whole: bool,
    problem: Option<String>,
}

#[derive(Debug)]
pub(crate) enum Answer {
    Whole(Variables),
    /// Variables that a part of the shell's files sets, and the reason.
    Part(Variables, String),
    None(String),
}

pub fn variables() -> impl Iterator<Item = (OsString, OsString)> {
    let said = locked(&SHELL_STATE).variables.clone();
    let own = said.is_none().then(std::env::vars_os);
    said.into_iter().flatten().chain(own.into_iter().flatten())
}

pub(crate) fn environment_of(profile: &Profile) -> Vec<(OsString, OsString)> {
    config::environment(profile, config::with_home(variables(), std::env::home_dir()))
}

pub fn variable(name: &str) -> Option<OsString> {
    match &locked(&SHELL_STATE).variables {
        Some(variables) => variables.get(OsStr::new(name)).cloned(),
        None => std::env::var_os(name),
    }
}

/// Returns the shell that is asked, and its problem; `None` if no shell is asked.
pub fn told() -> Option<LoginShellInfo> {
    let said = locked(&SHELL_STATE);
    let program = said.shell.as_ref()?.display().to_string().into();
    Some(LoginShellInfo { program, problem: said.problem.clone().map(Into::into) })
}

pub(crate) fn will_ask(shell: &Path) {
    locked(&SHELL_STATE).shell = Some(shell.to_owned());
}

/// Waits until the shell was asked once; returns at once if no shell is asked.
pub(crate) async fn first_answer() {
    if told().is_some() {
        ANSWERED.wait().await;
    }
}

/// Records an answer. Known variables stay until better ones are known. Returns the problem if it
/// is a new one.
pub(crate) fn answered(answer: Answer) -> Option<String> {
    let mut said = locked(&SHELL_STATE);
    let problem = match answer {
        Answer::Whole(variables) => {
            (said.variables, said.is_whole) = (Some(variables), true);
            None
        }
        Answer::Part(_, why) if said.is_whole => {
            Some(format!("{why}; agents get what it said before"))
        }
        Answer::Part(variables, why) => {
            said.variables = Some(variables);
            Some(format!("{why}; agents get only what a part of its files set"))
        }
        Answer::None(why) => Some(why),
    };
    let before = std::mem::replace(&mut said.problem, problem.clone());
    // Later answers change nothing.
    ANSWERED.set(()).ok();
    problem.filter(|now| Some(now) != before.as_ref())
}
