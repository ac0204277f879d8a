//! `acpctl service` and sockets of a service, with programs of the test instead of the daemon's and `systemctl`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::thread;

use acpd_sys::lock::InstanceLock;

use crate::support::{Done, Home};

/// A home with a daemon's program and a `systemctl` that do this.
fn home(acpd: &str, systemctl: &str) -> Home {
    let home = Home::new();
    fs::create_dir(home.path("bin")).unwrap();
    for (name, text) in [("acpd", acpd), ("systemctl", systemctl)] {
        let path = home.path("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    home
}

/// `acpctl` with the usual directories.
fn run(home: &Home, args: &[&str]) -> Done {
    let mut command = home.acpctl(args);
    command
        .env("ACPD_EXE", home.path("bin/acpd"))
        .env("PATH", format!("{}:/usr/bin:/bin", home.path("bin").display()))
        .env_remove("ACPD_STATE_DIR")
        .env_remove("ACPD_CONFIG_DIR");
    home.wait(command.spawn().unwrap())
}

#[test]
fn a_dry_run_tells_of_a_daemon_that_runs_and_connects_to_nobody() {
    let home = home("exit 0", "exit 1");
    // Where a package has the system listen, a connection starts a daemon.
    let listener = home.listen();
    listener.set_nonblocking(true).unwrap();
    let state = home.path(".local/state/acpd");
    fs::create_dir_all(&state).unwrap();
    let dry_run = || {
        let done = run(&home, &["service", "install", "--dry-run"]);
        assert_eq!(done.code, Some(0), "{done:?}");
        assert!(listener.accept().is_err(), "{done:?}");
        done.err
    };
    assert_eq!(dry_run(), "");
    let _daemon = InstanceLock::acquire(&state.join("acpd.lock")).unwrap();
    let pid = std::process::id();
    let said = format!("acpd is running (pid {pid}): the service takes it over");
    assert_eq!(dry_run().trim(), said);
}

#[test]
fn a_client_that_gets_no_answer_of_a_service_is_told_why_acpd_does_not_start() {
    let refusal = "printf 'error: unknown key `bad` (config.toml:1:1)\n\nhint: none\n' >&2; exit 1";
    let home = home(refusal, "exit 0");
    // As a service manager does: it accepts connections, and no daemon answers.
    let _listener = home.listen();
    let done = run(&home, &["ps"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    for words in ["does not answer: it cannot start: unknown key `bad`", "`acpctl doctor`"] {
        assert!(done.err.contains(words), "{words}: {done:?}");
    }
}

#[test]
fn a_socket_on_which_nobody_answers_any_more_does_not_stop_a_purge() {
    let home = home("exit 0", "exit 0");
    fs::create_dir_all(home.path(".local/state/acpd")).unwrap();
    fs::write(home.path(".local/state/acpd/acpd.db"), "x").unwrap();
    let listener = home.listen();
    // Ends with the test.
    thread::spawn(move || listener.incoming().map_while(Result::ok).for_each(drop));
    let done = run(&home, &["service", "uninstall", "--purge", "--yes", "--no-spawn"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(!home.path(".local/state/acpd").exists());
}
