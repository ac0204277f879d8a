//! Installed agents, and the default one among them.
//!
//! If the configuration names no default agent, it is the first one of the catalogue that is tried
//! and installed. Agents are installed and removed while the daemon runs. So the daemon looks each
//! time a client depends on the default, and reports the result to the hub before the client's
//! line.

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

/// Longest wait for a disk; then the last known default stays.
const PATIENCE: Duration = Duration::from_secs(1);

const INITIALIZE: &str = "initialize";
/// Methods whose answers depend on the default agent.
const DEPENDENT: [&str; 3] = [INITIALIZE, method::STATUS, method::POLICY_TEST];

/// Returns the default agent, if these lines depend on it and the configuration names none.
pub(crate) async fn default_for(lines: &[Body], config: &Arc<Config>) -> Option<String> {
    if !config.default_is_found {
        return None;
    }
    let methods: Vec<String> = lines.iter().filter_map(method_of).collect();
    if methods.iter().any(|method| method == INITIALIZE) {
        // Before that, the installed programs are not known.
        login_shell::settled().await;
    } else if !methods.iter().any(|method| DEPENDENT.contains(&method.as_str())) {
        return None;
    }
    let config = Arc::clone(config);
    let found = tokio::task::spawn_blocking(move || find_default(&config).to_owned());
    tokio::time::timeout(PATIENCE, found).await.ok()?.ok()
}

fn method_of(body: &Body) -> Option<String> {
    let Body::Line(line) = body else { return None };
    // Other lines are parsed once only, by the hub.
    DEPENDENT.iter().find(|method| memmem::find(line, method.as_bytes()).is_some())?;
    match parse(line) {
        Ok(Message::Request { method, .. }) => Some(method.into_owned()),
        _ => None,
    }
}

/// Returns the default agent, in the environment that agents get now.
pub(crate) fn find_default(config: &Config) -> &str {
    let is_candidate = |profile: &&Profile| profile.tried && profile.enabled && !profile.builtin;
    let mut candidates: Vec<&Profile> = config.agents.values().filter(is_candidate).collect();
    candidates.sort_by_key(|profile| profile.position);
    let found = candidates.into_iter().find(|profile| look_for(profile).is_installed);
    found.map_or(DEMO_AGENT, |profile| &profile.name)
}

#[derive(Default)]
pub(crate) struct Presence {
    pub(crate) is_installed: bool,
    pub(crate) install: Option<String>,
    /// Why the command of the profile cannot run.
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
