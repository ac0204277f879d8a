//! Variables of the daemon's environment that a configuration names.

use acpd_api::is_named;

use crate::config::profile::Profile;
use crate::config::resolved::Config;
use crate::config::secrets::{CredentialSource, SecretSource, Value};

impl Config {
    /// Returns the variables of the daemon's environment that an agent gets in addition to those of
    /// every agent: names, or beginnings of names with a `*`. A lone `*` is left out.
    pub fn inherits<'c>(&'c self, profile: &'c Profile) -> Vec<&'c str> {
        let inherited = profile.inherit_env.iter().map(String::as_str);
        inherited.filter(|name| *name != "*").chain(self.sources(profile)).collect()
    }

    /// Returns the variables that the user wants for an agent, without those of the catalogue
    /// alone.
    pub fn wanted_variables<'c>(&'c self, profile: &'c Profile) -> impl Iterator<Item = &'c str> {
        let written = profile.inherit_env.iter().skip(profile.known_variables).map(String::as_str);
        written.filter(|name| !name.ends_with('*')).chain(self.sources(profile))
    }

    pub fn names_variable(&self, name: &str) -> bool {
        let agents = self.agents.values().filter(|profile| profile.enabled);
        let mut patterns = agents.flat_map(|profile| self.inherits(profile));
        patterns.any(|pattern| is_named(pattern, name.as_bytes()))
    }

    /// Returns variables with credentials of an agent, or with secrets of its MCP servers.
    fn sources<'c>(&'c self, profile: &'c Profile) -> impl Iterator<Item = &'c str> {
        let credentials =
            profile.credentials.values().filter_map(|credential| match &credential.source {
                CredentialSource::Env(name) => Some(name.as_str()),
                _ => None,
            });
        let servers = self.mcp.values().filter(|server| server.is_for(&profile.name));
        let secrets = servers.flat_map(|server| server.env.values().chain(server.headers.values()));
        credentials.chain(secrets.filter_map(|value| match value {
            Value::Reference { source: SecretSource::Env(name), .. } => Some(name.as_str()),
            _ => None,
        }))
    }
}
