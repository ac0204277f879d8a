//! The agents that acpd knows how to start, from `catalogue.toml`, which is built in.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::LazyLock;

use crate::config::file;
use crate::config::tables::profile::Profile;

pub(super) const TEXT: &str = include_str!("../../catalogue.toml");

/// Every known agent by its name, as the catalogue has it.
pub(super) static KNOWN: LazyLock<BTreeMap<String, Profile>> = LazyLock::new(|| {
    file::read_catalogue(Path::new("catalogue.toml"), TEXT)
        .expect("the built-in catalogue is tested")
});
