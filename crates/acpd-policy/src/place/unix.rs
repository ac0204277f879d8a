//! Places on Unix: names with `/` between them.

use std::path::{Component, Path, PathBuf};

/// The absolute form of a path without `.` and `..`; links are not followed.
pub(crate) fn resolve(path: &str, cwd: &str, home: Option<&str>) -> Option<String> {
    let path = match path.strip_prefix('~') {
        None => Path::new(cwd).join(path),
        Some("") => PathBuf::from(home?),
        Some(rest) if rest.starts_with('/') => Path::new(home?).join(rest.trim_start_matches('/')),
        Some(_) => return None,
    };
    if !path.is_absolute() {
        return None;
    }
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    Some(plain.to_str()?.to_owned())
}
