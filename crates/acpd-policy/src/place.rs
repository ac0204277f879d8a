//! Normal forms of paths and addresses for comparisons, without the file system or the network.

use url::Url;

pub(crate) const IS_WINDOWS: bool = std::path::MAIN_SEPARATOR == '\\';

/// Returns the absolute form of a path without `.` and `..`, with `/` between names.
///
/// Returns `None` if it is unknown: a relative path in a relative folder, another user's home, an
/// address, and on Windows every path that does not begin with a name or a drive. Links are not
/// followed.
pub(crate) fn resolve(path: &str, cwd: &str, home: Option<&str>) -> Option<String> {
    resolve_on(IS_WINDOWS, path, cwd, home)
}

/// Like [`resolve`]; returns other paths unchanged.
pub(crate) fn reading(path: &str, cwd: &str, home: Option<&str>) -> String {
    resolve(path, cwd, home).unwrap_or_else(|| path.to_owned())
}

fn resolve_on(windows: bool, path: &str, cwd: &str, home: Option<&str>) -> Option<String> {
    let is_separator = |c| c == '/' || windows && c == '\\';
    if path.is_empty() || path.contains("://") || !windows && may_be_filled_in(path) {
        return None;
    }
    let path = match path.strip_prefix('~') {
        Some(rest) if rest.is_empty() || rest.starts_with(is_separator) => {
            format!("{}{rest}", home?)
        }
        Some(_) => return None,
        None if path.starts_with(is_separator) && windows => return None,
        None if path.starts_with('/') || windows && path.contains(':') => path.to_owned(),
        None => format!("{cwd}/{path}"),
    };
    let (root, rest) = path.split_at_checked(if windows { 3 } else { 1 })?;
    let root = root.replace(is_separator, "/").to_ascii_uppercase();
    let is_root = root == "/"
        || windows && root.starts_with(|c: char| c.is_ascii_uppercase()) && root.ends_with(":/");
    let mut names: Vec<&str> = Vec::new();
    for name in rest.split(is_separator) {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()),
            name if windows && !is_plain_name(name) => return None,
            name => names.push(name),
        }
    }
    let is_anywhere = !windows && names.len() > 1 && names[0] == "proc";
    (is_root && !is_anywhere).then(|| format!("{root}{}", names.join("/")))
}

fn may_be_filled_in(path: &str) -> bool {
    path.starts_with('$') || ["${", "$(", "`", "/$HOME"].iter().any(|sign| path.contains(sign))
}

/// A plain name is no stream, no short name (`SECRET~1.TXT`), and has nothing that Windows removes.
fn is_plain_name(name: &str) -> bool {
    let has_odd_sign = name.contains(|c: char| c.is_control() || r#"<>:"|?*~"#.contains(c));
    !has_odd_sign && !name.ends_with(['.', ' '])
}

/// Returns the rest of `path`; both are in the form of [`resolve`].
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

/// Returns `None` if the glob lacks a required drive.
pub(crate) fn glob(text: &str) -> Option<String> {
    if !IS_WINDOWS {
        return Some(text.to_owned());
    }
    let text = text.replace('\\', "/");
    let text = match text.split_once(':') {
        Some((drive, rest)) if drive.len() == 1 => format!("{}:{rest}", drive.to_ascii_uppercase()),
        _ => text,
    };
    let is_relative_to_drive = text.contains(':') && !is_absolute(&text);
    (!text.starts_with('/') && !is_relative_to_drive).then_some(text)
}

pub(crate) fn is_absolute(glob: &str) -> bool {
    let starts_with_drive = || glob.split_once('/').is_some_and(|(first, _)| first.ends_with(':'));
    if IS_WINDOWS { starts_with_drive() } else { glob.starts_with('/') }
}

pub(crate) fn is_file(address: &str) -> bool {
    address.trim_start().get(..5).is_some_and(|start| start.eq_ignore_ascii_case("file:"))
}

/// Returns the normal form of an address, as in browsers, without user and fragment.
pub(crate) fn usual_url(url: &str) -> Option<String> {
    let mut url = Url::parse(url).ok().filter(Url::has_host)?;
    url.set_fragment(None);
    url.set_username("").and_then(|()| url.set_password(None)).ok()?;
    Some(url.into())
}

/// Returns the normal form of an address that every program reads alike: it differs from the
/// written form only in case, fragment and a `/` at the end. A dot after the host and escapes of
/// letters, digits and `-._~/\` are ambiguous.
pub(crate) fn strict_url(url: &str) -> Option<String> {
    let usual = usual_url(url)?;
    let written = url.split('#').next().unwrap_or_default();
    let is_usual = [&*usual, usual.trim_end_matches('/')]
        .iter()
        .any(|form| form.eq_ignore_ascii_case(written));
    let is_hidden = |escape: &str| {
        let code = escape.get(..2).and_then(|code| u8::from_str_radix(code, 16).ok());
        code.is_some_and(|code| code.is_ascii_alphanumeric() || br"-._~/\".contains(&code))
    };
    let host_ends_in_dot = || usual.split('/').nth(2).is_some_and(|host| host.ends_with('.'));
    (is_usual && !host_ends_in_dot() && !usual.split('%').skip(1).any(is_hidden)).then_some(usual)
}

#[cfg(test)]
mod tests {
    use super::resolve_on;

    #[test]
    fn place_on_windows_is_known_from_its_plain_spelling_alone() {
        let place = |path: &str| resolve_on(true, path, r"C:\Users\me\app", Some(r"C:\Users\me"));
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
            "a:b",
            "ä:/x",
            "src/a.rs::$DATA",
            "src/.env.",
            "src/.env ",
            "src/.. /x",
            r"\\?\D:\x",
            r"\\server\share\x",
            "src/SECRET~1.TXT",
            "~you/x",
            "src/a?",
            "src/a\n",
        ] {
            assert_eq!(place(path), None, "{path}");
        }
    }
}
