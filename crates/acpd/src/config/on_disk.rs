//! Changes of the configuration file after the daemon has read it. The file is not watched: each
//! question looks at it.

use std::path::{Path, PathBuf};

use acpd_api::ConfigChanged;
use acpd_sys::files::{Version, version};

use crate::config::launch::starts_alike;
use crate::config::{Config, load};

#[derive(Debug)]
pub struct OnDisk {
    path: PathBuf,
    version: Option<Version>,
}

impl OnDisk {
    /// Call it before the file is read, so that no change is missed.
    pub fn now(path: &Path) -> OnDisk {
        OnDisk { path: path.to_owned(), version: version(path) }
    }

    pub fn change(&self, known: &Config) -> Option<ConfigChanged> {
        let now = version(&self.path);
        if now == self.version {
            return None;
        }
        let at = now.map(|version| version.changed_at());
        match load(&self.path) {
            Ok(config) if config == *known => None,
            Ok(config) => {
                let agents = known.agents.values().filter(|old| old.enabled);
                let agents = agents
                    .filter(|old| config.agent(&old.name).is_ok_and(|new| !starts_alike(old, new)));
                let agents = agents.map(|agent| agent.name.clone().into()).collect();
                Some(ConfigChanged { at, mistakes: Vec::new(), agents })
            }
            Err(error) => {
                let mistakes = error.mistakes().to_vec();
                Some(ConfigChanged { at, mistakes, agents: Vec::new() })
            }
        }
    }
}
