//! The machine that a command works on.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use acpd_client::{Host, Place};

/// Another machine than this one, or several.
#[derive(Debug)]
pub(crate) struct OtherMachine {
    /// Name in the configuration.
    pub(crate) name: String,
    /// Each of them; `None` is this machine.
    pub(crate) hosts: Vec<Option<Host>>,
    pub(crate) place: Place,
    /// Directories here, and where the same is there.
    pub(crate) map: BTreeMap<PathBuf, String>,
    /// Directories here that are the same files there.
    pub(crate) shared: Vec<PathBuf>,
}

impl OtherMachine {
    /// Returns where a directory of this machine is there: by the longest entry of `map`, or else
    /// at the same place.
    pub(crate) fn place_of(&self, dir: &Path) -> PathBuf {
        let inside = |(here, there): (&PathBuf, &String)| {
            let rest = dir.strip_prefix(here).ok()?.to_owned();
            Some((here.components().count(), Path::new(there).join(rest)))
        };
        let longest = self.map.iter().filter_map(inside).max_by_key(|(length, _)| *length);
        longest.map_or_else(|| dir.to_owned(), |(_, place)| place)
    }
}

#[cfg(test)]
impl OtherMachine {
    pub(crate) fn for_tests() -> OtherMachine {
        let nowhere = acpd_client::Machines::new(Vec::new()).expect("no paths");
        OtherMachine {
            name: "box".to_owned(),
            hosts: Vec::new(),
            place: Place::Machines(std::sync::Arc::new(nowhere)),
            map: BTreeMap::new(),
            shared: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_mapped_directory_counts() {
        let map = [("/src", "/code"), ("/src/api", "/srv/api")];
        let map = map.map(|(here, there)| (PathBuf::from(here), there.to_owned())).into();
        let machine = OtherMachine { map, ..OtherMachine::for_tests() };
        let place = |dir: &str| machine.place_of(Path::new(dir)).display().to_string();
        assert_eq!(place("/src/web"), "/code/web");
        assert_eq!(place("/src/api/v1"), "/srv/api/v1");
        assert_eq!(place("/srcs"), "/srcs");
    }
}
