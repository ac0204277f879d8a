//! Brings paths and addresses into one form before they are compared. It never looks at the file system or the
//! network.

mod unix;
mod windows;

/// Whether paths are those of Windows.
pub(crate) const IS_WINDOWS: bool = std::path::MAIN_SEPARATOR == '\\';

/// The absolute form of a path without `.` and `..`, with `/` between the names.
///
/// Nothing if it cannot be known: a relative path in a relative folder, another user's home, an
/// address, and on Windows what programs read in different ways. Links are not followed.
pub(crate) fn resolve(path: &str, cwd: &str, home: Option<&str>) -> Option<String> {
    if path.is_empty() || path.contains("://") {
        return None;
    }
    if IS_WINDOWS { windows::surely(path, cwd, home) } else { unix::resolve(path, cwd, home) }
}

/// All that the path may mean, in the form of [`resolve`] where that is possible.
pub(crate) fn readings(path: &str, cwd: &str, home: Option<&str>) -> Vec<String> {
    if IS_WINDOWS {
        return windows::perhaps(path, cwd, home);
    }
    vec![resolve(path, cwd, home).unwrap_or_else(|| path.to_owned())]
}

/// Whether a name in the path may be another name of a file.
pub(crate) fn has_short_name(path: &str) -> bool {
    IS_WINDOWS && windows::has_short_name(path)
}

/// What is left of `path` below `folder`; both as [`resolve`] makes them.
pub(crate) fn below<'a>(path: &'a str, folder: &str, is_case_sensitive: bool) -> Option<&'a str> {
    let is_same =
        |a: &str, b: &str| a == b || !is_case_sensitive && a.to_lowercase() == b.to_lowercase();
    let mut rest = path;
    for name in folder.trim_end_matches('/').split('/') {
        let (first, after) = rest.split_once('/').unwrap_or((rest, ""));
        if !is_same(first, name) {
            return None;
        }
        rest = after;
    }
    Some(rest)
}

/// A glob of paths in the form of [`resolve`]; nothing if it names no drive and has to.
pub(crate) fn glob(text: &str) -> Option<String> {
    if IS_WINDOWS { windows::glob(text) } else { Some(text.to_owned()) }
}

/// Whether a glob, as [`glob`] makes it, says where it begins.
pub(crate) fn is_absolute(glob: &str) -> bool {
    if IS_WINDOWS { windows::is_absolute(glob) } else { glob.starts_with('/') }
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
