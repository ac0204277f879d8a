//! Directories of sockets, and who may use them.
#![cfg(unix)]

use std::os::unix::fs::{PermissionsExt as _, symlink};

use acpd_client::{ConnectError, connect};
use acpd_sys::lock::InstanceLock;
use acpd_sys::socket::Listener;

use crate::support::{listen, options, paths};

#[test]
fn a_directory_that_others_could_use_is_refused_before_a_word() {
    let home = tempfile::tempdir().unwrap();
    let options = options(home.path());
    let runtime = &paths(home.path()).runtime;
    let listener = listen(home.path());

    std::fs::set_permissions(runtime, std::fs::Permissions::from_mode(0o770)).unwrap();
    let error = connect(&options).unwrap_err();
    assert!(matches!(error, ConnectError::Dir(_)), "{error:?}");
    assert!(error.hint().unwrap().contains("chmod 700"), "{error:?}");

    std::fs::set_permissions(runtime, std::fs::Permissions::from_mode(0o700)).unwrap();
    std::fs::rename(runtime, home.path().join("elsewhere")).unwrap();
    symlink(home.path().join("elsewhere"), runtime).unwrap();
    assert!(matches!(connect(&options).unwrap_err(), ConnectError::Dir(_)));
    assert!(listener.accept().is_err(), "nobody may have connected");
}

#[test]
fn a_daemon_of_another_login_is_found_by_its_lock_file() {
    let home = tempfile::tempdir().unwrap();
    let options = options(home.path());
    acpd_sys::files::private_dir(&paths(home.path()).state).unwrap();
    let other = home.path().join("other");
    acpd_sys::files::private_dir(&other).unwrap();
    let socket = other.join("acpd.sock");
    let lock = format!("4711\n{}\n", socket.display());
    std::fs::write(paths(home.path()).lock(), lock).unwrap();
    let error = connect(&options).unwrap_err();
    assert!(matches!(error, ConnectError::NotRunning), "a dead daemon's word: {error:?}");

    let _listener = Listener::bind(&socket).unwrap();
    connect(&options).unwrap();

    std::fs::set_permissions(&other, std::fs::Permissions::from_mode(0o777)).unwrap();
    assert!(matches!(connect(&options).unwrap_err(), ConnectError::Dir(_)));
}

#[test]
fn a_daemon_without_a_socket_is_reported_as_running() {
    let home = tempfile::tempdir().unwrap();
    let options = options(home.path());
    acpd_sys::files::private_dir(&paths(home.path()).state).unwrap();
    let lock = InstanceLock::acquire(&paths(home.path()).lock()).unwrap();
    let error = connect(&options).unwrap_err();
    let own = Some(std::process::id());
    assert!(matches!(error, ConnectError::NoSocket { pid, .. } if pid == own), "{error:?}");
    drop(lock);
    let error = connect(&options).unwrap_err();
    assert!(matches!(error, ConnectError::NotRunning), "{error:?}");
}
