//! Places on Unix: names with `/` between them.

use std::path::{Component, Path, PathBuf};

/// The absolute form of a path without `.` and `..`; links are not followed.
pub(crate) fn resolve(path: &str, cwd: &str, home: Option<&str>) -> Option<String> {
    let path = match path.strip_prefix('~') {
        None if path.starts_with('$') => return None,
        None => Path::new(cwd).join(path),
        Some("") => PathBuf::from(home?),
        Some(rest) if rest.starts_with('/') => Path::new(home?).join(rest.trim_start_matches('/')),
        Some(_) => return None,
    };
    if !path.is_absolute() {
        return None;
    }
    // A program may put something else in the place of these.
    let text = path.to_str()?;
    if text.contains("${") || text.contains("$(") || text.contains('`') || text.contains("/$HOME") {
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
    // Links to anywhere.
    Some(plain.to_str()?.to_owned()).filter(|plain| !plain.starts_with("/proc/"))
}
