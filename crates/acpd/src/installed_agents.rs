//! Installed agents, and the default one among them.
//!
//! Where the configuration names no default, it is the first one of the catalogue that is tried and installed. Agents are installed and removed while the daemon runs. So it looks each time a client depends on the default, and
//! reports what it has found to the hub before the client's line.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use acp_wire::{Body, Message, parse};
use acpd_api::method;
use memchr::memmem;

use crate::config::{self, Config, DEMO_AGENT, Installed, Profile};
use crate::environment::environment_of;
use crate::failure::Failure;
use crate::login_shell;

/// Limit for a disk that does not answer; after that the last known default stays.
const PATIENCE: Duration = Duration::from_secs(1);

const INITIALIZE: &str = "initialize";
/// Methods whose answers depend on the default agent.
const DEPENDENT: [&str; 3] = [INITIALIZE, method::STATUS, method::POLICY_TEST];

/// Returns the agent for clients that name none, if these lines depend on it and the configuration does not say it.
pub(crate) async fn default_for(lines: &[Body], config: &Arc<Config>) -> Option<String> {
    if !config.default_is_found {
        return None;
    }
    let methods: Vec<String> = lines.iter().filter_map(method_of).collect();
    if methods.iter().any(|method| method == INITIALIZE) {
        // Until then it is not known which programs are there.
        login_shell::settled().await;
    } else if !methods.iter().any(|method| DEPENDENT.contains(&method.as_str())) {
        return None;
    }
    let config = Arc::clone(config);
    let found = tokio::task::spawn_blocking(move || find_default(&config).to_owned());
    tokio::time::timeout(PATIENCE, found).await.ok()?.ok()
}

/// Returns the method of a line that names one of those that depend on the default.
fn method_of(body: &Body) -> Option<String> {
    let Body::Line(line) = body else { return None };
    // Most lines are parsed once, by the hub.
    DEPENDENT.iter().find(|method| memmem::find(line, method.as_bytes()).is_some())?;
    match parse(line) {
        Ok(Message::Request { method, .. }) => Some(method.into_owned()),
        _ => None,
    }
}

/// The agent for clients that name none, by the environment that agents get now.
pub(crate) fn find_default(config: &Config) -> &str {
    let is_candidate = |profile: &&Profile| profile.tried && profile.enabled && !profile.builtin;
    let mut candidates: Vec<&Profile> = config.agents.values().filter(is_candidate).collect();
    candidates.sort_by_key(|profile| profile.position);
    let found = candidates.into_iter().find(|profile| look_for(profile).is_installed);
    found.map_or(DEMO_AGENT, |profile| &profile.name)
}

/// What was found of an agent's program.
#[derive(Default)]
pub(crate) struct Presence {
    pub(crate) is_installed: bool,
    /// The command that installs it.
    pub(crate) install: Option<String>,
    /// Why the command line of the profile cannot be run.
    pub(crate) problem: Option<Failure>,
}

pub(crate) fn look_for(profile: &Profile) -> Presence {
    let env = environment_of(profile);
    let installed = config::installed(profile, &env);
    if profile.is_remote() || matches!(installed, Installed::Here { .. }) {
        return Presence { is_installed: true, ..Presence::default() };
    }
    let file = config::resolve_program(profile, &env, Path::new(""));
    let problem = file.and_then(|file| config::executable(profile, &env, file)).err();
    match installed {
        Installed::Missing { install } => {
            Presence { is_installed: false, install: Some(install), problem }
        }
        _ => {
            let install = profile.install.clone().filter(|_| problem.is_some());
            Presence { is_installed: problem.is_none(), install, problem }
        }
    }
}
