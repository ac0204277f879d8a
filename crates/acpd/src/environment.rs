//! The variables that agents may inherit: the daemon's own, or those that the user's login shell makes of them
//! ([`login_shell`](crate::login_shell)).
//!
//! Architecture invariant: which of these variables an agent gets is decided elsewhere (`config::environment`), whoever
//! made them. They are in this process's memory and in no file, log or command line.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use acpd_api::LoginShellInfo;

/// Variables by their names.
pub type Variables = BTreeMap<OsString, OsString>;

/// What the login shell has said. As the process's own environment, there is one.
static SAID: RwLock<Said> = RwLock::new(Said { shell: None, variables: None, problem: None });

#[derive(Debug, Default)]
struct Said {
    /// None if it is not asked.
    shell: Option<PathBuf>,
    variables: Option<Variables>,
    /// Why it has not answered the last time.
    problem: Option<String>,
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

/// One of them.
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

/// This shell will be asked.
pub(crate) fn will_ask(shell: &Path) {
    say().shell = Some(shell.to_owned());
}

/// It has answered, or why it has not: then what was known before stays.
pub(crate) fn answered(answer: Result<Variables, String>) {
    let mut said = say();
    said.problem = answer.as_ref().err().cloned();
    if let Ok(variables) = answer {
        said.variables = Some(variables);
    }
}
