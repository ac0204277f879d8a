//! Locks: one holder, named in the refusal, and gone with its process.

mod common;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use acpd_sys::lock::{InstanceLock, LockError, is_held, signature};
use tempfile::TempDir;

/// Longer than any machine takes; a passing test never waits for it.
const LONG: Duration = Duration::from_mins(1);

#[test]
fn a_held_lock_is_refused_with_its_holders_pid() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("acpd.lock");
    let first = InstanceLock::acquire(&path).unwrap();
    first.add_line("a line").unwrap();
    let error = InstanceLock::acquire(&path).unwrap_err();
    assert_eq!(signature(&path).unwrap().line.unwrap(), "a line");
    let own = std::process::id();
    assert!(matches!(error, LockError::Held { pid: Some(pid), .. } if pid == own));
    assert!(error.to_string().ends_with(&format!("is locked by process {own}")));
    drop(first);
    InstanceLock::acquire(&path).unwrap();
}

#[test]
fn a_wait_ends_with_the_holder_or_with_the_deadline() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("start.lock");
    let first = InstanceLock::acquire(&path).unwrap();
    let late = InstanceLock::acquire_wait(&path, Duration::ZERO);
    assert!(matches!(late, Err(LockError::Held { .. })));

    let (send, receive) = mpsc::channel();
    let waiter = {
        let path = path.clone();
        thread::spawn(move || {
            send.send(()).unwrap();
            InstanceLock::acquire_wait(&path, LONG)
        })
    };
    receive.recv().unwrap();
    drop(first);
    waiter.join().unwrap().unwrap();
}

#[test]
fn a_lock_dies_with_its_process() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("acpd.lock");
    let mut holder = common::helper(path.to_str().unwrap())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(holder.stdout.take().unwrap()).lines();
    assert!(lines.any(|line| line.unwrap().ends_with("locked")));
    let error = InstanceLock::acquire(&path).unwrap_err();
    assert!(matches!(error, LockError::Held { pid, .. } if pid == Some(holder.id())));
    holder.kill().unwrap();
    holder.wait().unwrap();
    InstanceLock::acquire_wait(&path, LONG).unwrap();
}

#[test]
#[cfg(target_os = "linux")]
fn the_lock_of_a_process_that_has_ended_is_waited_for() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("acpd.lock");
    let held = InstanceLock::acquire(&path).unwrap();
    let other = home.path().join("other.lock");
    let mut ended = common::helper(other.to_str().unwrap()).stdin(Stdio::null()).spawn().unwrap();
    ended.wait().unwrap();
    std::fs::write(&path, format!("{}\n", ended.id())).unwrap();
    let successor = thread::spawn(move || InstanceLock::acquire(&path).map(drop));
    // It is refused at least once meanwhile.
    thread::sleep(Duration::from_millis(50));
    drop(held);
    successor.join().unwrap().unwrap();
}

#[test]
#[ignore = "a helper process of the others"]
fn helper() {
    let Some(path) = common::part() else { return };
    let _lock = InstanceLock::acquire(Path::new(&path)).unwrap();
    std::io::stdout().write_all(b"locked\n").unwrap();
    // Until the test kills us, or ends.
    let _ = std::io::stdin().read(&mut [0]);
}

#[cfg(unix)]
#[test]
fn a_lock_file_that_was_replaced_holds_nobody_out() {
    let home = TempDir::new().unwrap();
    let path = home.path().join("acpd.lock");
    let old = InstanceLock::acquire(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let new = InstanceLock::acquire(&path).unwrap();
    drop(old);
    assert!(matches!(InstanceLock::acquire(&path), Err(LockError::Held { .. })));
    drop(new);
}

#[cfg(unix)]
#[test]
fn a_lock_is_not_taken_through_a_link() {
    let home = TempDir::new().unwrap();
    let (target, link) = (home.path().join("target"), home.path().join("link"));
    std::os::unix::fs::symlink(&target, &link).unwrap();
    assert!(matches!(InstanceLock::acquire(&link), Err(LockError::Io { .. })));
    assert!(!target.exists());
}

#[test]
fn who_asks_whether_a_lock_is_held_makes_none_and_waits_for_no_pipe() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("lock");
    assert!(!is_held(&path).unwrap());
    assert!(!path.exists());
    let lock = InstanceLock::acquire(&path).unwrap();
    assert!(is_held(&path).unwrap());
    drop(lock);
    assert!(!is_held(&path).unwrap(), "the file with the pid is still there");
    #[cfg(unix)]
    {
        let pipe = dir.path().join("pipe");
        nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
        is_held(&pipe).unwrap_err();
        acpd_sys::files::open(&pipe).unwrap_err();
    }
}
