//! Finds out whether a daemon could start here: `acpd check` for people, and for a daemon that is about to put
//! another program in its place.
//!
//! ```text
//!  restart is asked for ─▶ the program is run as `acpd check` ─┬─ it can start ─▶ the daemon leaves
//!                                                              └─ else ─▶ the reason is the answer
//! ```
//!
//! Architecture invariant: the daemon lets go of nothing before the program that is to follow has shown
//! that it can start with these directories, this configuration and this database.

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
use tokio::task::JoinSet;

use crate::config::{self, Config};
use crate::failure::Failure;
use crate::helper_process::{End, Helper, Helpers, read};
use crate::installed_agents::find_default;

/// How long a program may take to say whether it can start.
const LIMIT: Duration = Duration::from_secs(10);
/// The most that is read of what it says, in bytes.
const OUTPUT: u64 = 64 << 10;
/// Last words of a program that can start. Another program does not print them.
const CAN_START: &str = "can start";

/// Returns the mistakes in the configuration.
///
/// # Errors
/// When there is no place for one.
pub fn report() -> Result<ConfigReport, Failure> {
    let file = config_file()?;
    let mistakes = config::load(&file).err().map(|error| error.mistakes().to_vec());
    Ok(ConfigReport {
        file: file.display().to_string().into(),
        exists: file.exists(),
        mistakes: mistakes.unwrap_or_default(),
    })
}

/// Returns the effective values of the configuration, for this directory.
///
/// # Errors
/// When there is no place for one, or something is wrong in it.
pub fn values() -> Result<ConfigValues, Failure> {
    let file = config_file()?;
    let here = std::env::current_dir().unwrap_or_default();
    let found = |config: &Config| find_default(config).to_owned();
    config::values(&file, &here, found).map_err(|e| Failure::new(&e, e.hint()))
}

/// The configuration without what may be a secret.
///
/// # Errors
/// When there is no place for one, or it is no TOML.
pub fn redacted() -> Result<String, Failure> {
    config::redacted(&config_file()?).map_err(|why| Failure::new(why, None::<String>))
}

fn config_file() -> Result<PathBuf, Failure> {
    Ok(paths()?.config_file())
}

/// Finds the directories of this user.
pub(crate) fn paths() -> Result<Paths, Failure> {
    Paths::discover().map_err(|e| Failure::new(&e, e.hint()))
}

/// Finds out whether a daemon could start, without starting one. Returns what to tell then.
///
/// # Errors
/// Why it could not.
pub fn run() -> Result<String, Failure> {
    // Files that are made here are as private as those of a daemon.
    limits::private_files();
    let paths = paths()?;
    private_dirs(&paths)?;
    configuration(&paths)?;
    acpd_store::check(&paths.database(), &paths.search_index())
        .map_err(|e| Failure::new(&e, e.hint()))?;
    Ok(format!("acpd {} {CAN_START}", env!("CARGO_PKG_VERSION")))
}

/// Makes the directories that a daemon writes in.
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

/// A requested restart, and whether it can work.
#[derive(Debug)]
pub struct Tried {
    /// The client that asked, and the request; none for a signal.
    pub asker: Option<(ClientId, Id)>,
    /// Variables that came with it.
    pub brought: Environment,
    pub result: Result<(), Failure>,
}

/// Programs that are tried.
#[derive(Debug)]
pub struct Trials {
    exe: PathBuf,
    helpers: Helpers,
    limit: Duration,
    tasks: JoinSet<Tried>,
}

impl Trials {
    /// Of the program at this path, which is the next one when its turn comes.
    pub fn new(exe: PathBuf, helpers: Helpers) -> Trials {
        Trials { exe, helpers, limit: LIMIT, tasks: JoinSet::new() }
    }

    /// Begins to try the program; [`Trials::next`] tells how that went. Call it on the runtime.
    pub fn begin(&mut self, asker: Option<(ClientId, Id)>, brought: Environment) {
        let (exe, helper, limit) = (self.exe.clone(), self.helpers.helper(), self.limit);
        self.tasks.spawn(async move {
            let result = try_program(&exe, &helper, limit).await;
            Tried { asker, brought, result }
        });
    }

    /// Returns the result of the next trial; none if nothing is being tried.
    pub async fn next(&mut self) -> Option<Tried> {
        self.tasks.join_next().await?.ok()
    }
}

async fn try_program(exe: &Path, helper: &Helper, limit: Duration) -> Result<(), Failure> {
    let path = exe.display();
    let failed = |what: String| Failure::new(what, Some(format!("install acpd again as `{path}`")));
    let mut command = Command::new(exe);
    let prepare = move |output: PipeWriter| {
        command.arg("check").stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output);
        Ok(command)
    };
    let mut said = Vec::new();
    let end = helper.run(prepare, |_, output| read(output, OUTPUT, &mut said), limit).await;
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
            let mut trials = Trials { limit, ..Trials::new(exe, helpers) };
            trials.begin(Some((ClientId(1), Id::from(7))), Environment::default());
            let tried = trials.next().await.expect("it tells");
            assert_eq!(tried.asker, Some((ClientId(1), Id::from(7))));
            tried.result.map_err(|failure| failure.to_string())
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
