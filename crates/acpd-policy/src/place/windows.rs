//! Places on Windows, as text: `C:/names` or `//server/share/names`.
//!
//! Many spellings mean one file there. An `allow` rule compares a path only if every program reads it alike; other rules
//! compare all that it may mean. That a name may be the short name of another file (`SECRET~1.TXT`) cannot be seen in text.

/// Names of devices, in every folder and with any ending; ports have a digit behind `COM` and `LPT`.
const DEVICES: [&str; 6] = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"];
/// Ways to write `C:/` in shells that come from Unix.
const DRIVES_OF_SHELLS: [&str; 3] = ["/", "/mnt/", "/cygdrive/"];

/// The one place that every program understands by this path, if there is one.
pub(crate) fn surely(path: &str, cwd: &str, home: Option<&str>) -> Option<String> {
    let whole = expanded(path, home)?;
    let cwd = plain_start(&slashes(cwd)?);
    let path = plain_start(&slashes(&whole)?);
    let is_relative = !path.starts_with('/') && !path.contains(':');
    let full = if is_relative { format!("{cwd}/{path}") } else { path };
    let place = named(&full, |name| is_plain(name).then_some(name))?;
    let workspace = named(&cwd, Some);
    let rest = workspace.and_then(|cwd| super::below(&place, &cwd, true)).unwrap_or(&place);
    (!has_short_name(rest)).then_some(place)
}

/// Every place that some program may understand by this path.
pub(crate) fn perhaps(path: &str, cwd: &str, home: Option<&str>) -> Vec<String> {
    let whole = expanded(path, home).unwrap_or_else(|| path.to_owned()).replace('\\', "/");
    let of_address = ["file:///", "file:"].iter().find_map(|start| whole.strip_prefix(start));
    let whole = of_address.unwrap_or(&whole);
    let cwd = plain_start(&cwd.replace('\\', "/"));
    let path = plain_start(whole);
    let mut readings = vec![path.clone()];
    match split_drive(&path) {
        Some((_, rest)) if rest.starts_with('/') => {}
        // Relative to the folder of a drive.
        Some((drive, rest)) => {
            readings.extend([format!("{drive}:/{rest}"), format!("{cwd}/{rest}")]);
        }
        None if path.starts_with('/') => {
            readings.extend(drive_of_share(&path));
            let named = DRIVES_OF_SHELLS.iter().filter_map(|start| path.strip_prefix(start));
            readings.extend(named.filter_map(drive_of_shell));
            let drive = split_drive(&cwd);
            readings.extend(drive.map(|(drive, _)| format!("{drive}:/{path}")));
        }
        None => readings.push(format!("{cwd}/{path}")),
    }
    let loose = readings.iter().filter_map(|full| named(full, |name| Some(loose_name(name))));
    let mut places: Vec<String> = loose.collect();
    places.push(path);
    places
}

/// Whether a name in it may be the short one of a file with another name.
pub(crate) fn has_short_name(path: &str) -> bool {
    path.split('/').any(|name| {
        let tail = name.split_once('~').map(|(_, tail)| tail);
        name.len() <= 12 && tail.is_some_and(|tail| tail.starts_with(|c: char| c.is_ascii_digit()))
    })
}

/// A glob in the form of places; nothing for one that depends on a drive that it does not name.
pub(crate) fn glob(text: &str) -> Option<String> {
    let text = plain_start(&text.replace('\\', "/"));
    let drive_is_missing = text.starts_with('/') && !text.starts_with("//");
    let is_relative_to_drive = text.contains(':') && !text.contains(":/");
    (!drive_is_missing && !is_relative_to_drive).then_some(text)
}

/// Whether a glob, as [`glob`] makes them, says where it begins.
pub(crate) fn is_absolute(glob: &str) -> bool {
    glob.starts_with("//") || glob.split('/').next().is_some_and(|first| first.ends_with(':'))
}

fn expanded(path: &str, home: Option<&str>) -> Option<String> {
    match path.strip_prefix('~') {
        None => Some(path.to_owned()),
        Some(rest) if rest.is_empty() || rest.starts_with(['/', '\\']) => {
            Some(format!("{}{rest}", home?))
        }
        Some(_) => None,
    }
}

/// With `/` between the names. Behind `\\?\` nothing is a separator but `\`, and `..` is a name.
fn slashes(path: &str) -> Option<String> {
    let names = path.strip_prefix(r"\\?\");
    let is_odd = |names: &str| {
        names.contains('/') || names.split('\\').any(|name| matches!(name, "." | ".."))
    };
    (!names.is_some_and(is_odd)).then(|| path.replace('\\', "/"))
}

/// Without the prefix of long paths and devices, the drive in upper case.
fn plain_start(path: &str) -> String {
    let prefixes = ["//?/UNC/", "//./UNC/", "/??/UNC/", "//?/", "//./", "/??/"];
    let behind = prefixes.iter().find_map(|prefix| {
        let (start, rest) = path.split_at_checked(prefix.len())?;
        start.eq_ignore_ascii_case(prefix).then_some((prefix.len() > 4, rest))
    });
    match behind {
        Some((true, share)) => format!("//{share}"),
        Some((false, rest)) if split_drive(rest).is_some() => with_drive_in_upper_case(rest),
        _ => with_drive_in_upper_case(path),
    }
}

fn with_drive_in_upper_case(path: &str) -> String {
    match split_drive(path) {
        Some((drive, rest)) => format!("{drive}:{rest}"),
        None => path.to_owned(),
    }
}

/// The letter of the drive and what is behind the colon.
fn split_drive(path: &str) -> Option<(char, &str)> {
    let drive = path.chars().next().filter(char::is_ascii_alphabetic)?;
    Some((drive.to_ascii_uppercase(), path[1..].strip_prefix(':')?))
}

/// `//server/c$/x`, which is `C:/x` of that server.
fn drive_of_share(path: &str) -> Option<String> {
    let (_, share) = path.strip_prefix("//")?.split_once('/')?;
    let (name, rest) = share.split_once('/').unwrap_or((share, ""));
    let drive = name.strip_suffix('$').filter(|drive| drive.len() == 1)?;
    Some(with_drive_in_upper_case(&format!("{drive}:/{rest}")))
}

/// `c/x` behind what a shell writes before its drives.
fn drive_of_shell(path: &str) -> Option<String> {
    let (drive, rest) = path.split_once('/').unwrap_or((path, ""));
    (drive.len() == 1).then(|| with_drive_in_upper_case(&format!("{drive}:/{rest}")))
}

/// An absolute path without `.` and `..`, with each name as `read` has it; nothing if it is not absolute or a name cannot be read.
fn named<'a>(path: &'a str, read: impl Fn(&'a str) -> Option<&'a str>) -> Option<String> {
    let (root, rest) = match path.strip_prefix("//") {
        Some(share) => {
            let (server, rest) = share.split_once('/')?;
            let (share, rest) = rest.split_once('/').unwrap_or((rest, ""));
            let is_share = [server, share].iter().all(|name| is_plain(name) && *name != "..");
            is_share.then(|| (format!("//{server}/{share}"), rest))?
        }
        None => {
            let (drive, rest) = split_drive(path)?;
            (format!("{drive}:"), rest.strip_prefix('/')?)
        }
    };
    let mut names: Vec<&str> = Vec::new();
    for name in rest.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()),
            name => names.extend(Some(read(name)?).filter(|name| !name.is_empty())),
        }
    }
    Some(format!("{root}/{}", names.join("/")))
}

/// Whether this names one file of that very name: no stream of a file, no device, nothing that the system cuts off.
fn is_plain(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim_end().to_ascii_uppercase();
    let numbered = stem.strip_prefix("COM").or_else(|| stem.strip_prefix("LPT"));
    let is_device = DEVICES.contains(&&*stem) || numbered.is_some_and(|n| n.chars().count() == 1);
    !name.is_empty()
        && !is_device
        && !name.ends_with(['.', ' '])
        && !name.contains(|c: char| c.is_control() || r#"<>:"|?*"#.contains(c))
}

/// The name without what the system cuts off: a stream, and dots and blanks at its end.
fn loose_name(name: &str) -> &str {
    name.split(':').next().unwrap_or_default().trim_end_matches(['.', ' '])
}

#[cfg(test)]
mod tests {
    use super::{glob, has_short_name, is_absolute, perhaps, surely};

    const CWD: &str = r"c:\Users\me\app";
    const HOME: Option<&str> = Some(r"C:\Users\me");

    #[test]
    fn one_place_has_one_form() {
        for (path, place) in [
            (r"src\a.rs", "C:/Users/me/app/src/a.rs"),
            ("src/./b/../a.rs", "C:/Users/me/app/src/a.rs"),
            (r"c:\Users\me", "C:/Users/me"),
            ("c:/", "C:/"),
            (r"C:\..\x", "C:/x"),
            (r"\\?\D:\x\y", "D:/x/y"),
            (r"~\notes", "C:/Users/me/notes"),
            (r"\\server\share\x\..\..\y", "//server/share/y"),
            (r"\\?\UNC\server\share\x", "//server/share/x"),
        ] {
            assert_eq!(surely(path, CWD, HOME).as_deref(), Some(place), "{path}");
            assert!(perhaps(path, CWD, HOME).contains(&place.to_owned()), "{path}");
        }
    }

    #[test]
    fn what_programs_read_in_their_own_ways_is_no_sure_place() {
        for path in [
            "C:x",
            r"\x",
            "/c/x",
            "/mnt/c/x",
            "a:b",
            "src/a.rs::$DATA",
            "src/.env.",
            "src/.env ",
            "src/.. /x",
            r"\\?\C:\a\..\b",
            r"\\?\C:\a/b",
            r"\\.\pipe\x",
            "src/nul",
            "src/COM1.txt",
            "src/LPT¹",
            "src/SECRET~1.TXT",
            "~you/x",
            "//server",
            "src/a?",
            "src/a\n",
        ] {
            assert_eq!(surely(path, CWD, HOME), None, "{path}");
        }
    }

    #[test]
    fn a_place_is_seen_behind_each_of_its_spellings() {
        for path in [
            r"C:\x\.env",
            "c:/x/.env",
            "c:/x/.env.",
            "c:/x/.env ",
            "c:/x/.env::$DATA",
            "/x/.env",
            r"\x\.env",
            "/c/x/.env",
            "/mnt/c/x/.env",
            "/cygdrive/c/x/.env",
            r"\\?\C:\x\.env",
            r"\\.\C:\x\.env",
            r"\??\C:\x\.env",
            r"\\localhost\c$\x\.env",
            r"\\?\unc\localhost\c$\x\.env",
            "../../../x/.env",
            "c:../../../x/.env",
            "c:x/.env",
            "file:///c:/x/.env",
            "c:/x./.env",
        ] {
            let places = perhaps(path, CWD, HOME);
            assert!(places.contains(&"C:/x/.env".to_owned()), "{path}: {places:?}");
        }
    }

    #[test]
    fn a_workspace_may_have_short_names_and_what_is_named_below_it_may_not() {
        let cwd = r"C:\RUNNER~1\app";
        assert_eq!(surely(cwd, cwd, None).as_deref(), Some("C:/RUNNER~1/app"));
        assert_eq!(surely("a", cwd, None).as_deref(), Some("C:/RUNNER~1/app/a"));
        assert_eq!(surely("A~1", cwd, None), None);
        assert!(
            has_short_name("C:/x/SECRET~1.TXT") && !has_short_name("C:/x/a~b/longer-than-short~1")
        );
    }

    #[test]
    fn a_glob_names_its_drive() {
        assert_eq!(glob(r"c:\src\**").as_deref(), Some("C:/src/**"));
        assert_eq!(glob(r"\\?\C:\src").as_deref(), Some("C:/src"));
        assert_eq!(glob(r"src\*.rs").as_deref(), Some("src/*.rs"));
        assert_eq!((glob("/tmp/**"), glob("C:src")), (None, None));
        for (text, is) in [("C:/x", true), ("[CD]:/x", true), ("//a/b", true), ("a/b:/c", false)] {
            assert_eq!(is_absolute(text), is, "{text}");
        }
    }
}
