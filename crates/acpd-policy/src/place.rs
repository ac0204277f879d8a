//! Brings paths and addresses into one form before they are compared. It never looks at the file system or the
//! network.

use std::path::{Component, Path, PathBuf};

use url::Url;

/// Whether paths are those of Windows.
pub(crate) const IS_WINDOWS: bool = std::path::MAIN_SEPARATOR == '\\';

/// The absolute form of a path without `.` and `..`, with `/` between the names.
///
/// Nothing if it cannot be known: a relative path in a relative folder, another user's home, an
/// address, and on Windows every path that does not begin with a name or a drive. Links are not followed.
pub(crate) fn resolve(path: &str, cwd: &str, home: Option<&str>) -> Option<String> {
    if path.is_empty() || path.contains("://") {
        return None;
    }
    if IS_WINDOWS { on_windows(path, cwd, home) } else { on_unix(path, cwd, home) }
}

/// The path in the form of [`resolve`], or as it is written where that is not possible.
pub(crate) fn reading(path: &str, cwd: &str, home: Option<&str>) -> String {
    resolve(path, cwd, home).unwrap_or_else(|| path.to_owned())
}

fn on_unix(path: &str, cwd: &str, home: Option<&str>) -> Option<String> {
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

fn on_windows(path: &str, cwd: &str, home: Option<&str>) -> Option<String> {
    let path = match path.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with(['/', '\\']) => {
            format!("{}{rest}", home?)
        }
        None if path.contains(':') => path.to_owned(),
        None if !path.starts_with(['/', '\\']) => format!("{cwd}/{path}"),
        _ => return None,
    };
    let path = with_drive_in_upper_case(&path.replace('\\', "/"));
    let (drive, rest) = path.split_at_checked(3)?;
    let is_drive = drive.starts_with(|c: char| c.is_ascii_uppercase()) && drive.ends_with(":/");
    let mut names: Vec<&str> = Vec::new();
    for name in rest.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()),
            name if is_plain(name) => names.push(name),
            _ => return None,
        }
    }
    is_drive.then(|| format!("{drive}{}", names.join("/")))
}

fn with_drive_in_upper_case(path: &str) -> String {
    match path.split_once(':') {
        Some((drive, rest)) if drive.len() == 1 => format!("{}:{rest}", drive.to_ascii_uppercase()),
        _ => path.to_owned(),
    }
}

/// Returns whether Windows takes this for the name of one file: no device, no stream, no short name
/// (`SECRET~1.TXT`), and nothing that is cut off.
fn is_plain(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim_end().to_ascii_uppercase();
    let numbered = stem.strip_prefix("COM").or_else(|| stem.strip_prefix("LPT"));
    let is_device = matches!(&*stem, "CON" | "PRN" | "AUX" | "NUL" | "CONIN$" | "CONOUT$")
        || numbered.is_some_and(|n| n.chars().count() == 1);
    let has_odd_sign = name.contains(|c: char| c.is_control() || r#"<>:"|?*~"#.contains(c));
    !is_device && !has_odd_sign && !name.ends_with(['.', ' '])
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
    if !IS_WINDOWS {
        return Some(text.to_owned());
    }
    let text = with_drive_in_upper_case(&text.replace('\\', "/"));
    let is_relative_to_drive = text.contains(':') && !is_absolute(&text);
    (!text.starts_with('/') && !is_relative_to_drive).then_some(text)
}

/// Whether a glob, as [`glob`] makes it, says where it begins.
pub(crate) fn is_absolute(glob: &str) -> bool {
    let starts_with_drive = || glob.split_once('/').is_some_and(|(first, _)| first.ends_with(':'));
    if IS_WINDOWS { starts_with_drive() } else { glob.starts_with('/') }
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

#[cfg(test)]
mod tests {
    use super::on_windows;

    #[test]
    fn place_on_windows_is_known_from_its_plain_spelling_alone() {
        let place = |path: &str| on_windows(path, r"C:\Users\me\app", Some(r"C:\Users\me"));
        for (path, expected) in [
            (r"src\a.rs", "C:/Users/me/app/src/a.rs"),
            ("src/./b/../a.rs", "C:/Users/me/app/src/a.rs"),
            (r"c:\Users\me", "C:/Users/me"),
            ("c:/", "C:/"),
            (r"C:\..\x", "C:/x"),
            (r"~\notes", "C:/Users/me/notes"),
        ] {
            assert_eq!(place(path).as_deref(), Some(expected), "{path}");
        }
        for path in [
            "C:x",
            r"\x",
            "/c/x",
            "/mnt/c/x",
            "a:b",
            "ä:/x",
            "src/a.rs::$DATA",
            "src/.env.",
            "src/.env ",
            "src/.. /x",
            r"\\?\D:\x",
            r"\\.\pipe\x",
            r"\\server\share\x",
            "//server",
            "src/nul",
            "src/COM1.txt",
            "src/LPT¹",
            "src/SECRET~1.TXT",
            "~you/x",
            "src/a?",
            "src/a\n",
        ] {
            assert_eq!(place(path), None, "{path}");
        }
    }
}
