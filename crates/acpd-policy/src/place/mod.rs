//! Brings paths and addresses into one form before they are compared. It never looks at the file system or the
//! network.

mod unix;
mod windows;

use url::Url;

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

/// Returns whether an address is that of a file.
pub(crate) fn is_file(address: &str) -> bool {
    address.trim_start().get(..5).is_some_and(|start| start.eq_ignore_ascii_case("file:"))
}

/// An address that every program reads alike, in its usual form; nothing for all others.
///
/// Not taken: characters that programs repair in their own ways, a user before the host, `.` and
/// `..` in the path.
pub(crate) fn strict_url(url: &str) -> Option<String> {
    if !url.bytes().all(|b| b.is_ascii_graphic() && b != b'\\') {
        return None;
    }
    let (_, rest) = url.split_once("://")?;
    let (authority, tail) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let path = tail.split(['?', '#']).next().unwrap_or_default();
    let climbs = path
        .split('/')
        .any(|part| matches!(part.to_ascii_lowercase().replace("%2e", ".").as_str(), "." | ".."));
    let is_strict = !authority.is_empty() && !authority.contains('@') && !climbs;
    if is_strict { usual_url(url) } else { None }
}

/// All that an address may mean, as browsers read it: also one without a scheme. None if it cannot be told.
pub(crate) fn loose_urls(url: &str) -> Vec<String> {
    let url = url.trim();
    let is_whole = url.find(':').is_some_and(|at| url[at + 1..].starts_with(['/', '\\']));
    let guesses = [format!("https://{url}"), format!("http://{url}")];
    let guessed = guesses.iter().filter(|_| !is_whole).filter_map(|url| usual_url(url));
    usual_url(url).into_iter().chain(guessed).collect()
}

/// An address in the form that addresses are compared in: as browsers normalise it, without user and fragment, without
/// a dot behind the host, and with no character escaped that need not be.
fn usual_url(url: &str) -> Option<String> {
    if host_like(url).is_none_or(is_beyond_ascii) {
        return None;
    }
    let mut url = Url::parse(url).ok().filter(Url::has_host)?;
    url.set_fragment(None);
    url.set_username("").and_then(|()| url.set_password(None)).ok()?;
    if let Some(host) = url.host_str().and_then(|host| host.strip_suffix('.')).map(str::to_owned) {
        url.set_host(Some(&host)).ok()?;
    }
    Some(unescaped(url.as_str()))
}

/// About where the host is in an address.
fn host_like(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once(':')?;
    let is_before = |c: char| matches!(c, '/' | '\\') || c.is_control() || c.is_whitespace();
    rest.trim_start_matches(is_before).split(['/', '\\', '?', '#']).next()
}

/// Returns whether a host has characters beyond ASCII, which the library is built without the tables for.
fn is_beyond_ascii(host: &str) -> bool {
    let is_high =
        |pair: &[u8]| pair[0] == b'%' && matches!(pair[1], b'8' | b'9' | b'a'..=b'f' | b'A'..=b'F');
    !host.is_ascii() || host.as_bytes().windows(2).any(is_high)
}

/// The text with letters, digits and the signs `-._~` in place of their escapes.
fn unescaped(url: &str) -> String {
    let mut parts = url.split('%');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let code = part.get(..2).and_then(|code| u8::from_str_radix(code, 16).ok());
        let plain = code.map(char::from);
        match plain.filter(|c| c.is_ascii_alphanumeric() || "-._~".contains(*c)) {
            Some(c) => {
                text.push(c);
                text.push_str(&part[2..]);
            }
            None => {
                text.push('%');
                text.push_str(part);
            }
        }
    }
    text
}
