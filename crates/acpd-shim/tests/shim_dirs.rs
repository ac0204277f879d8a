//! Shim directories, as a daemon sees those of shims that are not there.

use std::fs;
use std::io::Read as _;

use acpd_shim::frame::Status;
use acpd_shim::shim_dir::{self, Identity, ShimDir, ShimDirError};
use acpd_sys::lock::InstanceLock;
use acpd_sys::process::ProcessId;
use tempfile::TempDir;

fn created() -> (TempDir, ShimDir) {
    let state = TempDir::new().unwrap();
    let shim_dir = ShimDir::create(state.path(), "7-3").unwrap();
    (state, shim_dir)
}

fn text(shim_dir: &ShimDir, name: &str, text: &str) {
    fs::write(shim_dir.path().join(name), text).unwrap();
}

#[test]
fn shim_directories_are_private_and_found_again() {
    let (state, shim_dir) = created();
    acpd_sys::files::private_dir(shim_dir.path()).unwrap();
    assert_eq!(shim_dir.marker(), "7-3");
    assert_eq!(shim_dir::list(state.path()).unwrap(), [ShimDir::of(state.path(), "7-3")]);
    shim_dir.remove().unwrap();
    shim_dir.remove().unwrap();
    assert_eq!(shim_dir::list(state.path()).unwrap(), []);
    assert_eq!(shim_dir::list(&state.path().join("none")).unwrap(), []);
}

#[test]
#[cfg(unix)]
fn a_directory_takes_the_socket_of_its_shim_with_it() {
    let (state, shim_dir) = created();
    let socket = state.path().join("socket");
    fs::write(&socket, "").unwrap();
    assert_eq!(shim_dir.socket(), None);
    // The shim was killed before it had said who it is.
    text(&shim_dir, "socket", socket.to_str().unwrap());
    assert_eq!(shim_dir.socket().as_ref(), Some(&socket));
    shim_dir.remove().unwrap();
    assert!(!socket.exists());
}

#[test]
fn a_directory_without_files_is_of_a_shim_that_never_was() {
    let (_state, shim_dir) = created();
    assert!(!shim_dir.is_held().unwrap());
    assert_eq!(shim_dir.verify(), Identity::Dead);
    assert_eq!(shim_dir.record().unwrap(), None);
    assert_eq!(shim_dir.exit().unwrap(), None);
    assert_eq!(shim_dir.tree().unwrap(), []);
    assert!(shim_dir.leftover(0).unwrap().is_none());
}

#[test]
fn a_held_lock_is_not_enough_to_be_alive() {
    let (_state, shim_dir) = created();
    let own = ProcessId::of(std::process::id()).unwrap();
    let record = |start| format!("version 1\nshim {} {start}\nagent 0 0\nsocket /s\n", own.pid);
    let lock = InstanceLock::acquire(&shim_dir.path().join("lock")).unwrap();
    assert_eq!(shim_dir.verify(), Identity::Unverifiable);
    text(&shim_dir, "shim", &record(own.start - 1));
    assert_eq!(shim_dir.verify(), Identity::Unverifiable);
    text(&shim_dir, "shim", &record(own.start));
    let Identity::Alive(record) = shim_dir.verify() else { panic!("it is alive") };
    assert_eq!((record.shim, record.agent, record.cgroup), (own, None, None));
    drop(lock);
    assert_eq!(shim_dir.verify(), Identity::Dead);
}

#[test]
fn fields_of_a_newer_shim_are_skipped_and_damage_is_told() {
    let (_state, shim_dir) = created();
    text(
        &shim_dir,
        "shim",
        "version 2\nnew thing\nshim 8 9\nagent 10 11\nsocket /a b\ncgroup /c\n",
    );
    let record = shim_dir.record().unwrap().unwrap();
    assert_eq!(record.version, 2);
    assert_eq!(record.agent, Some(ProcessId { pid: 10, start: 11 }));
    assert_eq!(record.socket.to_str(), Some("/a b"));
    assert_eq!(record.cgroup.unwrap().to_str(), Some("/c"));
    text(&shim_dir, "exit", "kind 1\ncode 9\n");
    assert_eq!(shim_dir.exit().unwrap(), Some(Status::Signal(9)));
    text(&shim_dir, "tree", "4 5\n6 7\n");
    assert_eq!(shim_dir.tree().unwrap().len(), 2);
    for name in ["shim", "exit", "tree"] {
        text(&shim_dir, name, "4\n");
    }
    let damaged = |error| matches!(error, ShimDirError::Damaged { .. });
    assert!(damaged(shim_dir.record().unwrap_err()));
    assert!(damaged(shim_dir.exit().unwrap_err()));
    assert!(damaged(shim_dir.tree().unwrap_err()));
}

#[test]
fn what_is_left_of_the_output_is_read_from_where_it_is_wanted() {
    let (_state, shim_dir) = created();
    let spool = [&100_u64.to_le_bytes()[..], b"0123456789"].concat();
    fs::write(shim_dir.path().join("spool"), spool).unwrap();
    let from = |offset| {
        let mut left = shim_dir.leftover(offset).unwrap()?;
        let mut text = String::new();
        left.bytes.read_to_string(&mut text).unwrap();
        Some((left.offset, text))
    };
    assert_eq!(from(0), Some((100, "0123456789".to_owned())));
    assert_eq!(from(107), Some((107, "789".to_owned())));
    assert_eq!(from(110), None);
    assert_eq!(from(u64::MAX), None);
}
