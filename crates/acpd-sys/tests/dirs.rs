//! Private directories and files: what is made, and what is refused.
#![cfg(unix)]

use std::fs::{self, Permissions};
use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::Path;

use acpd_sys::files::{DirError, private_dir, private_file};
use acpd_sys::socket::check_place;
use acpd_sys::users::own_uid;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use tempfile::TempDir;

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

#[expect(clippy::print_stderr, reason = "a test that did not run must be seen")]
fn skip(why: &str) {
    eprintln!("SKIPPED: {why}");
}

#[test]
fn a_missing_directory_is_made_with_its_parents_for_the_owner_alone() {
    let home = TempDir::new().unwrap();
    let dir = home.path().join("a/b");
    private_dir(&dir).unwrap();
    assert_eq!(mode(&dir), 0o700);
    assert_eq!(mode(dir.parent().unwrap()), 0o700);
    private_dir(&dir).unwrap();
    assert!(check_place(&dir.join("socket")).unwrap());
}

#[test]
fn a_directory_open_to_others_is_refused_with_the_command_that_closes_it() {
    let home = TempDir::new().unwrap();
    for open in [0o755, 0o710, 0o701, 0o1777] {
        let dir = home.path().join(format!("d {open:o}"));
        fs::create_dir(&dir).unwrap();
        set_mode(&dir, open);
        for error in [private_dir(&dir).unwrap_err(), check_place(&dir.join("socket")).unwrap_err()]
        {
            assert!(matches!(error, DirError::OpenToOthers { mode, .. } if mode == open));
            let hint = format!("run `chmod 700 '{}'`", dir.display());
            assert_eq!(error.hint(), Some(hint));
        }
        assert_eq!(mode(&dir), open, "a refusal changes nothing");
    }
}

#[test]
fn a_link_to_a_good_directory_is_refused() {
    let home = TempDir::new().unwrap();
    let (real, link) = (home.path().join("real"), home.path().join("link"));
    private_dir(&real).unwrap();
    symlink(&real, &link).unwrap();
    let error = private_dir(&link).unwrap_err();
    assert!(matches!(error, DirError::Symlink { .. }));
    assert!(error.hint().unwrap().contains("mv "));

    let dangling = home.path().join("dangling");
    symlink(home.path().join("elsewhere"), &dangling).unwrap();
    assert!(matches!(private_dir(&dangling), Err(DirError::Symlink { .. })));
    assert!(!home.path().join("elsewhere").exists());
}

#[test]
fn a_file_in_the_place_of_a_directory_is_refused() {
    let home = TempDir::new().unwrap();
    let file = home.path().join("file");
    fs::write(&file, "").unwrap();
    assert!(matches!(private_dir(&file), Err(DirError::WrongKind { .. })));
    let below = file.join("below");
    assert!(matches!(private_dir(&below), Err(DirError::Create { .. })));
}

#[test]
fn a_missing_directory_is_no_servers() {
    let home = TempDir::new().unwrap();
    assert!(!check_place(&home.path().join("none/socket")).unwrap());
}

#[test]
fn a_strangers_directory_and_file_are_refused() {
    if own_uid() != 0 {
        return skip("only root can give files away");
    }
    let home = TempDir::new().unwrap();
    let (dir, file) = (home.path().join("dir"), home.path().join("file"));
    private_dir(&dir).unwrap();
    drop(private_file(&file).unwrap());
    for path in [&dir, &file] {
        chown(path, Some(65534), None).unwrap();
    }
    let error = private_dir(&dir).unwrap_err();
    assert!(matches!(error, DirError::ForeignOwner { owner: 65534, .. }));
    assert!(error.hint().unwrap().contains("ACPD_RUNTIME_DIR"));
    assert!(matches!(private_file(&file), Err(DirError::ForeignOwner { .. })));
}

#[test]
fn a_private_file_is_appended_to_and_tightened() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("log");
    private_file(&path).unwrap().write_all(b"one ").unwrap();
    assert_eq!(mode(&path), 0o600);
    set_mode(&path, 0o644);
    private_file(&path).unwrap().write_all(b"two").unwrap();
    assert_eq!(mode(&path), 0o600);
    assert_eq!(fs::read_to_string(&path).unwrap(), "one two");
}

#[test]
fn what_is_no_regular_file_is_not_opened_as_one() {
    let home = TempDir::new().unwrap();
    let (target, link, pipe) =
        (home.path().join("target"), home.path().join("link"), home.path().join("pipe"));
    symlink(&target, &link).unwrap();
    assert!(matches!(private_file(&link), Err(DirError::Symlink { .. })));
    assert!(!target.exists());
    mkfifo(&pipe, Mode::S_IRWXU).unwrap();
    private_file(&pipe).unwrap_err();
}
