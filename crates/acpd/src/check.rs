//! Checks whether a daemon could start here: `acpd check` for users, and for a daemon before
//! another program replaces it.
//!
//! ```text
//!  restart is asked for ─▶ the program is run as `acpd check` ─┬─ it can start ─▶ the daemon leaves
//!                                                              └─ else ─▶ the reason is the answer
//! ```
//!
//! Architecture invariant: the daemon releases nothing before the next program has shown that it
//! can start with these directories, this configuration and this database.

use std::io::PipeWriter;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use acp_wire::Id;
use acpd_api::{ConfigReport, ConfigValues, Environment};
use acpd_core::ids::ClientId;
use acpd_sys::files::private_dir;
use acpd_sys::limits;
use acpd_sys::paths::Paths;
use acpd_sys::process::ExitKind;

use crate::config::{self, Config};
use crate::failure::Failure;
use crate::helper_process::{End, Helpers, read};
use crate::installed_agents::find_default;

/// Longest time for a program to report whether it can start.
pub(crate) const LIMIT: Duration = Duration::from_secs(10);
/// Longest output that is read, in bytes.
const OUTPUT: u64 = 64 << 10;
/// Last words of a program that can start; other programs do not print them.
const CAN_START: &str = "can start";

pub fn report() -> Result<ConfigReport, Failure> {
    let file = config_file()?;
    let mistakes = config::load(&file).err().map(|error| error.mistakes().to_vec());
    Ok(ConfigReport {
        file: file.display().to_string().into(),
        exists: file.exists(),
        mistakes: mistakes.unwrap_or_default(),
    })
}

/// Returns the effective values of the configuration for the current directory.
pub fn values() -> Result<ConfigValues, Failure> {
    let file = config_file()?;
    let here = std::env::current_dir().unwrap_or_default();
    let found = |config: &Config| find_default(config).to_owned();
    config::values(&file, &here, found).map_err(|e| Failure::new(&e, e.hint()))
}

pub fn redacted() -> Result<String, Failure> {
    config::redacted(&config_file()?).map_err(|why| Failure::new(why, None::<String>))
}

fn config_file() -> Result<PathBuf, Failure> {
    Ok(paths()?.config_file())
}

pub(crate) fn paths() -> Result<Paths, Failure> {
    Paths::discover().map_err(|e| Failure::new(&e, e.hint()))
}

/// Checks whether a daemon could start, without starting one. Returns a message for the user.
pub fn run() -> Result<String, Failure> {
    // New files are as private as those of a daemon.
    limits::private_files();
    let paths = paths()?;
    private_dirs(&paths)?;
    configuration(&paths)?;
    acpd_store::check(&paths.database(), &paths.search_index())
        .map_err(|e| Failure::new(&e, e.hint()))?;
    Ok(format!("acpd {} {CAN_START}", env!("CARGO_PKG_VERSION")))
}

pub(crate) fn private_dirs(paths: &Paths) -> Result<(), Failure> {
    let logs = paths.agent_log("agent");
    let agent_logs = logs.parent().unwrap_or(&paths.state);
    for dir in [&paths.runtime, &paths.state, &paths.state.join("log"), agent_logs] {
        private_dir(dir).map_err(|e| Failure::new(&e, e.hint()))?;
    }
    Ok(())
}

pub(crate) fn configuration(paths: &Paths) -> Result<Config, Failure> {
    config::load(&paths.config_file()).map_err(|e| Failure::new(&e, e.hint()))
}

/// Result of the check of a program for a restart.
#[derive(Debug)]
pub struct Tried {
    /// The client and its request; `None` for a signal.
    pub asker: Option<(ClientId, Id)>,
    pub brought: Environment,
    pub result: Result<(), Failure>,
}

/// Checks whether the next daemon can start from this program.
pub(crate) async fn try_program(
    exe: &Path,
    helpers: &Helpers,
    limit: Duration,
) -> Result<(), Failure> {
    let path = exe.display();
    let failed = |what: String| Failure::new(what, Some(format!("install acpd again as `{path}`")));
    let mut command = Command::new(exe);
    let prepare = move |output: PipeWriter| {
        command.arg("check").stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        Ok(command)
    };
    let mut said = Vec::new();
    let late = tokio::time::sleep(limit);
    let end = helpers.run(prepare, |_, output| read(output, OUTPUT, &mut said), late).await;
    let end = end.map_err(|error| failed(format!("cannot start `{path}`: {error}")))?;
    let said = String::from_utf8_lossy(&said);
    match end {
        End::Exit(ExitKind::Code(0)) if said.trim_end().ends_with(CAN_START) => Ok(()),
        End::Exit(ExitKind::Code(0)) => Err(failed(format!("`{path}` is another program"))),
        End::Exit(exit) => match said.trim().strip_prefix("error: ") {
            Some(words) => {
                let (message, hint) = words.split_once("\n\nhint: ").unzip();
                Err(Failure::new(message.unwrap_or(words), hint))
            }
            None => Err(failed(format!("`{path}` ends with {exit}"))),
        },
        End::Late => {
            let seconds = limit.as_secs_f32();
            Err(failed(format!("`{path}` has not said in {seconds} s whether it can start")))
        }
        End::Stopped | End::Unknown => Err(failed(format!("`{path}` could not be tried"))),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use tokio::sync::mpsc;

    use super::*;
    use crate::host::Reaper;

    /// Returns the result of a trial with this shell script as the program. All trials of a process have one reaper:
    /// another one would take their children for orphans.
    fn tried(reaper: &Reaper, script: &str, limit: Duration) -> Result<(), String> {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let exe = dir.path().join("acpd");
        fs::write(&exe, format!("#!/bin/sh\n{script}\n")).expect("a script");
        fs::set_permissions(&exe, fs::Permissions::from_mode(0o700)).expect("its mode");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime").block_on(async {
            let helpers = Helpers::new(reaper.clone());
            let tried = try_program(&exe, &helpers, limit).await;
            tried.map_err(|failure| failure.to_string())
        })
    }

    #[test]
    fn l18_only_a_program_that_says_that_it_can_start_may_follow() {
        let reaper = Reaper::start(mpsc::channel(1).0).expect("a thread");
        let tried = |script: &str, limit| tried(&reaper, script, limit);
        assert_eq!(tried("echo acpd 9.9.9 can start", LIMIT), Ok(()));
        let refused = |script: &str| tried(script, LIMIT).expect_err("it cannot start");
        let told = refused("printf 'error: no room\\n\\nhint: make some\\n' >&2; exit 1");
        assert_eq!(told, "no room\n\nhint: make some");
        assert!(refused("exit 0").contains("is another program"));
        assert!(refused("kill -9 $$").contains("ends with signal 9"));
        assert!(refused("exit 3").contains("ends with exit code 3"));
        let late =
            tried("exec sleep 1000", Duration::from_millis(20)).expect_err("it says nothing");
        assert!(
            late.contains("has not said") && late.contains("hint: install acpd again"),
            "{late}"
        );
    }
}
