//! The agents that acpd knows how to start, from `catalogue.toml`, which is built in.

use std::collections::BTreeMap;
use std::path::Path;

use super::{ConfigError, Profile, file};

const TEXT: &str = include_str!("../../catalogue.toml");

/// Every known agent by its name, as the catalogue has it.
pub(super) fn load() -> Result<BTreeMap<String, Profile>, ConfigError> {
    file::read_catalogue(Path::new("catalogue.toml"), TEXT)
}
