//! Lookups before the start of an agent: the environment of a login, if the daemon has none, and
//! the agent's credentials, which only the new process gets.
//!
//! ```text
//!  Effect::Spawn ─▶ the agent has credentials ─▶ files, variables, commands ─▶ the agent is started
//!       │                                            │ one is not found
//!       └─ it has none: started at once              └─▶ HostEvent::Refused
//! ```
//!
//! Architecture invariant: a value is in the memory of this process for its `ttl`, in the
//! environment of the agent, and in no message, log, file or database.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use acpd_core::SpawnError;
use acpd_core::ids::HostId;
use acpd_sys::machine::since_boot;
use tokio::task::spawn_blocking;

use crate::config::{CredentialSource, Profile};
use crate::failure::Failure;
use crate::helper_process::{Helpers, at_home, read};
use crate::locked;
use crate::login_shell::LoginShell;
use crate::mcp::{read_secret, read_variable};

/// Longest run of a command.
const LIMIT: Duration = Duration::from_secs(30);
/// Longest value, in bytes.
const LONGEST: u64 = 64 << 10;

/// Without `Debug`, so that no value is ever shown.
pub struct Ready {
    pub host: HostId,
    pub agent: String,
    pub found: Result<Vec<(String, String)>, SpawnError>,
    /// How long these are valid, if that is known.
    pub left: Option<Duration>,
}

/// Values by agent and variable, and when they expire, counted from the start of the machine.
type KnownValues = BTreeMap<(String, String), (String, Duration)>;

pub struct Credentials {
    helpers: Helpers,
    login_shell: Option<LoginShell>,
    limit: Duration,
    known: Arc<Mutex<KnownValues>>,
}

impl Credentials {
    /// Asks the shell at once. Call it on the runtime.
    pub fn new(helpers: Helpers, login_shell: Option<LoginShell>) -> Credentials {
        if let Some(shell) = login_shell.clone() {
            let helpers = helpers.clone();
            tokio::spawn(async move { shell.ask(&helpers).await });
        }
        Credentials { helpers, login_shell, limit: LIMIT, known: Arc::default() }
    }

    pub fn are_needed(&self, profile: &Profile) -> bool {
        !profile.credentials.is_empty() || self.login_shell.is_some()
    }

    pub fn forget(&mut self, agent: &str) {
        let known = locked(&self.known).clone().into_iter();
        // A new map: a lookup that still runs may bring the value that is forgotten.
        self.known = Arc::new(Mutex::new(known.filter(|((of, _), _)| of != agent).collect()));
    }

    /// Looks up the credentials of an agent.
    pub fn look_up(&self, host: HostId, profile: &Profile) -> impl Future<Output = Ready> + use<> {
        let (agent, wanted) = (profile.name.clone(), profile.credentials.clone());
        let (shell, helpers, limit) = (self.login_shell.clone(), self.helpers.clone(), self.limit);
        let known = Arc::clone(&self.known);
        async move {
            if let Some(shell) = shell {
                shell.ask(&helpers).await;
            }
            let (mut found, mut stale) = (Vec::new(), None::<Duration>);
            for (name, credential) in wanted {
                let key = (agent.clone(), name.clone());
                let cached = locked(&known).get(&key).cloned();
                let (text, until) = match cached {
                    Some((text, until)) if since_boot() < until => (text, Some(until)),
                    _ => {
                        let until = credential.ttl.map(|ttl| since_boot() + ttl);
                        let text = match value(&credential.source, &helpers, limit).await {
                            Ok(text) => text,
                            Err(why) => {
                                let found = Err(refused(&name, &why));
                                return Ready { host, agent, found, left: None };
                            }
                        };
                        if let Some(until) = until {
                            locked(&known).insert(key, (text.clone(), until));
                        }
                        (text, until)
                    }
                };
                if credential.can_change() {
                    stale = stale.into_iter().chain(until).min();
                }
                found.push((name, text));
            }
            let left = stale.map(|stale| stale.saturating_sub(since_boot()));
            Ready { host, agent, found: Ok(found), left }
        }
    }
}

fn refused(name: &str, why: &str) -> SpawnError {
    let hint = "check `credentials` of the agent in the configuration";
    Failure::new(format!("its credential `{name}` cannot be had: {why}"), Some(hint))
        .of_start(false)
}

/// Returns the value, or an error that quotes nothing of it.
async fn value(
    source: &CredentialSource,
    helpers: &Helpers,
    limit: Duration,
) -> Result<String, String> {
    let text = match source.clone() {
        CredentialSource::Command(words) => output(words, helpers, limit).await?,
        CredentialSource::Env(name) => read_variable(&name)?,
        // Off the runtime: the file may be on a disk that does not answer.
        CredentialSource::File(path) => off_runtime(move || read_secret(&path)).await?,
        CredentialSource::Systemd(name) => {
            let dir = std::env::var_os("CREDENTIALS_DIRECTORY")
                .ok_or("`$CREDENTIALS_DIRECTORY` is not set: systemd gave the daemon none")?;
            off_runtime(move || read_secret(&Path::new(&dir).join(name))).await?
        }
    };
    if text.contains('\0') {
        return Err("it holds a NUL character".to_owned());
    }
    Ok(text)
}

async fn off_runtime<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    spawn_blocking(work).await.map_err(|error| error.to_string())?
}

/// Returns the output of a command, without the end of its last line. Its stderr is not read,
/// because it may contain secrets.
async fn output(words: Vec<String>, helpers: &Helpers, limit: Duration) -> Result<String, String> {
    let program = words.first().cloned().unwrap_or_default();
    let prepare = move |output| {
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).stdin(Stdio::null()).stdout(output).stderr(Stdio::null());
        at_home(&mut command);
        Ok(command)
    };
    let mut said = Vec::new();
    let late = tokio::time::sleep(limit);
    let end = helpers.run(prepare, |_, output| read(output, LONGEST + 1, &mut said), late).await;
    let end = end.map_err(|error| format!("cannot start `{program}`: {error}"))?;
    if let Some(problem) = end.problem(&program, limit) {
        return Err(problem);
    }
    if said.len() as u64 > LONGEST {
        return Err(format!("`{program}` wrote more than {LONGEST} bytes"));
    }
    let text = String::from_utf8(said).map_err(|_| format!("`{program}` wrote no text"))?;
    let text = text.strip_suffix('\n').unwrap_or(&text);
    let text = text.strip_suffix('\r').unwrap_or(text);
    if text.is_empty() {
        return Err(format!("`{program}` wrote nothing"));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;

    use super::*;
    use crate::config;
    use crate::host::Reaper;

    fn helpers() -> Helpers {
        Helpers::new(Reaper::start(mpsc::channel(1).0).unwrap())
    }

    #[tokio::test]
    async fn a_value_that_is_forgotten_is_looked_up_again() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("token");
        let text = format!(
            "[agents.a]\ncommand = 'a'\ncredentials.TOKEN = {{ command = ['cat', '{}'], ttl = '1h' }}",
            file.display()
        );
        let config = config::parse(Path::new("config.toml"), &text).unwrap();
        let mut credentials = Credentials::new(helpers(), None);
        for (written, forget, found) in [("1", false, "1"), ("2", false, "1"), ("2", true, "2")] {
            std::fs::write(&file, written).unwrap();
            if forget {
                credentials.forget("a");
            }
            let ready = credentials.look_up(HostId(1), config.agent("a").unwrap()).await;
            assert_eq!(ready.found.unwrap(), [("TOKEN".to_owned(), found.to_owned())]);
            assert!(ready.left.is_some());
        }
        credentials.helpers.end().await;
    }

    #[tokio::test]
    async fn a_command_that_takes_too_long_is_ended_and_named() {
        let text = "[agents.a]\ncommand = 'a'\ncredentials.TOKEN = { command = ['sleep', '600'] }";
        let config = config::parse(Path::new("config.toml"), text).unwrap();
        let mut credentials = Credentials::new(helpers(), None);
        credentials.limit = Duration::from_millis(1);
        let ready = credentials.look_up(HostId(1), config.agent("a").unwrap()).await;
        let error = ready.found.unwrap_err();
        assert!(error.message.contains("`TOKEN`"), "{}", error.message);
        assert!(error.message.contains("`sleep` took longer than"), "{}", error.message);
        credentials.helpers.end().await;
    }
}
