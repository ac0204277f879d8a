//! Brings paths and addresses into one form before they are compared. It never looks at the file system or the
//! network.

use std::path::{Component, Path, PathBuf, is_separator};

/// The absolute form of a path without `.` and `..`, with `/` between the names.
///
/// Nothing if it cannot be known: a relative path in a relative folder, another user's home, an
/// address. Links are not followed.
pub(crate) fn resolve(path: &str, cwd: &str, home: Option<&str>) -> Option<String> {
    if path.is_empty() || path.contains("://") {
        return None;
    }
    let path = match path.strip_prefix('~') {
        None => Path::new(cwd).join(relative_or_absolute(path)?),
        Some("") => PathBuf::from(home?),
        Some(rest) if rest.starts_with(is_separator) => {
            Path::new(home?).join(rest.trim_start_matches(is_separator))
        }
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
    Some(plain.to_str()?.replace(std::path::MAIN_SEPARATOR, "/"))
}

/// The path, unless it depends on a drive that it does not name.
fn relative_or_absolute(path: &str) -> Option<&Path> {
    let path = Path::new(path);
    let starts_somewhere =
        matches!(path.components().next(), Some(Component::Prefix(_) | Component::RootDir));
    (path.is_absolute() || !starts_somewhere).then_some(path)
}

/// What is left of `path` below `folder`; both as [`resolve`] makes them.
pub(crate) fn below<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    Path::new(path).strip_prefix(folder).ok()?.to_str()
}

/// An address that every program reads alike, in its usual form; nothing for all others.
///
/// Not taken: characters that programs repair in their own ways, a user before the host, `.` and
/// `..` in the path.
pub(crate) fn strict_url(url: &str) -> Option<String> {
    if !url.bytes().all(|b| b.is_ascii_graphic() && b != b'\\') {
        return None;
    }
    let (scheme, rest) = url.split_once("://")?;
    let (authority, tail) = split_authority(rest);
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    let is_scheme =
        scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(is_name);
    let path = tail.split(['?', '#']).next().unwrap_or_default();
    let climbs = path
        .split('/')
        .any(|part| matches!(part.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | ".."));
    let is_strict = is_scheme && !authority.is_empty() && !authority.contains('@') && !climbs;
    is_strict.then(|| loose_url(url))
}

/// The address as a forgiving program reads it: no blanks, `\` as `/`, no user before the host, no
/// fragment, scheme and host in small letters.
pub(crate) fn loose_url(url: &str) -> String {
    let url: String = url
        .chars()
        .filter(|c| !c.is_whitespace() && !c.is_control())
        .collect::<String>()
        .replace('\\', "/");
    let url = url.split('#').next().unwrap_or_default();
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (authority, tail) = split_authority(rest);
    let host = authority.rsplit('@').next().unwrap_or_default();
    let slash = if tail.starts_with('/') { "" } else { "/" };
    format!("{}://{}{slash}{tail}", scheme.to_ascii_lowercase(), host.to_ascii_lowercase())
}

fn split_authority(rest: &str) -> (&str, &str) {
    rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()))
}
