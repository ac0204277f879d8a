//! Small files: what is read, and what must not hold the reader up.
#![cfg(unix)]

use std::fs;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

use acpd_sys::files::{ReadError, read, read_trusted};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use tempfile::TempDir;

#[test]
fn a_regular_file_is_read_up_to_the_limit_also_through_a_link() {
    let home = TempDir::new().unwrap();
    let (path, link) = (home.path().join("file"), home.path().join("link"));
    fs::write(&path, "12345").unwrap();
    symlink(&path, &link).unwrap();
    assert_eq!(read(&link, 5).unwrap(), b"12345");
    assert!(matches!(read(&path, 4), Err(ReadError::TooLong { limit: 4 })));
}

#[test]
fn l15_what_would_hold_the_reader_up_is_refused_at_once() {
    let home = TempDir::new().unwrap();
    let place = |name: &str| home.path().join(name);
    mkfifo(&place("pipe"), Mode::S_IRWXU).unwrap();
    let _listener = UnixListener::bind(place("socket")).unwrap();
    symlink("/dev/zero", place("zero")).unwrap();
    for path in [place("pipe"), place("socket"), place("zero"), home.path().to_owned()] {
        assert!(matches!(read(&path, 5), Err(ReadError::NotAFile)), "{}", path.display());
    }
    let missing = read(Path::new("/no/such/file"), 5);
    assert!(
        matches!(missing, Err(ReadError::Io(error)) if error.kind() == std::io::ErrorKind::NotFound)
    );
}

#[cfg(unix)]
#[test]
fn file_that_everybody_may_write_is_not_trusted() {
    use std::os::unix::fs::PermissionsExt as _;

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("config.toml");
    std::fs::write(&path, "x").unwrap();
    for (mode, is_trusted) in [(0o600, true), (0o664, true), (0o666, false), (0o602, false)] {
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let read = read_trusted(&path, 4);
        assert_eq!(read.is_ok(), is_trusted, "{mode:o}");
        assert!(is_trusted || matches!(read, Err(ReadError::OpenToAll)), "{mode:o}");
    }
}
