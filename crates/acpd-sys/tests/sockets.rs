//! Sockets: which are left over, and who is at the other end.
#![cfg(unix)]

use std::fs;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use acpd_sys::socket::{StaleError, clear_stale_socket, connect, other_end};
use acpd_sys::users::{Peer, own_uid};
use tempfile::TempDir;

#[test]
fn only_a_socket_that_nobody_listens_on_is_removed() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("acpd.sock");
    clear_stale_socket(&path).unwrap();

    let listener = UnixListener::bind(&path).unwrap();
    assert!(matches!(clear_stale_socket(&path), Err(StaleError::InUse { .. })));
    assert!(path.exists());

    drop(listener);
    assert!(path.exists());
    clear_stale_socket(&path).unwrap();
    assert!(!path.exists());
}

#[test]
fn what_is_no_socket_is_left_alone() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("acpd.sock");
    fs::write(&path, "precious").unwrap();
    assert!(matches!(clear_stale_socket(&path), Err(StaleError::NotASocket { .. })));
    assert_eq!(fs::read_to_string(&path).unwrap(), "precious");
}

#[test]
fn the_kernel_names_the_peer() {
    let (a, _b) = UnixStream::pair().unwrap();
    let peer = other_end(&a).unwrap();
    assert_eq!(peer, Peer { uid: own_uid(), pid: Some(std::process::id()) });
}

#[cfg(target_os = "linux")]
#[test]
fn l16_a_connection_that_nobody_takes_up_is_given_up() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("acpd.sock");
    assert_eq!(connect(&path, SOON).unwrap_err().kind(), std::io::ErrorKind::NotFound);
    let listener = UnixListener::bind(&path).unwrap();
    // The listener accepts none: these wait, and one more would wait for ever.
    let mut waiting = Vec::new();
    let late = loop {
        match connect(&path, SOON) {
            Ok(stream) => waiting.push(stream),
            Err(error) => break error,
        }
    };
    assert_eq!(late.kind(), std::io::ErrorKind::TimedOut);
    assert!(!waiting.is_empty());
    let (_accepted, _) = listener.accept().unwrap();
    connect(&path, SOON).unwrap();
}

/// Less than anything takes that is waited for, and more than nothing.
#[cfg(target_os = "linux")]
const SOON: Duration = Duration::from_millis(10);
