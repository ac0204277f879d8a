//! `acpctl service`, with programs of the test instead of the daemon's and `systemctl`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use acpd_api::method;
use acpd_sys::lock::InstanceLock;
use serde_json::json;

use crate::support::{Client, Done, Home, status};

/// File with the arguments of each call of `systemctl`.
const CALLS: &str = "calls";

fn script(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("#!/bin/sh\n{text}\n")).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A home with a daemon's program that can start, and a `systemctl` that does this.
fn home(systemctl: &str) -> Home {
    let home = Home::new();
    script(&home.path("bin/acpd"), "exit 0");
    let calls = home.path(CALLS).display().to_string();
    script(&home.path("bin/systemctl"), &format!("echo \"$*\" >>'{calls}'\n{systemctl}"));
    home
}

/// `acpctl service` with the usual directories.
fn service(home: &Home, args: &[&str]) -> Done {
    home.wait(command(home, args).spawn().unwrap())
}

fn command(home: &Home, args: &[&str]) -> Command {
    let mut command = home.acpctl([&["service"], args].concat());
    command
        .env("ACPD_EXE", home.path("bin/acpd"))
        .env("PATH", format!("{}:/usr/bin:/bin", home.path("bin").display()))
        .env_remove("ACPD_STATE_DIR")
        .env_remove("ACPD_CONFIG_DIR");
    command
}

fn units(home: &Home) -> [PathBuf; 2] {
    ["acpd.service", "acpd.socket"].map(|name| home.path(".config/systemd/user").join(name))
}

#[test]
fn a_dry_run_tells_of_a_daemon_that_runs_and_connects_to_nobody() {
    let home = home("exit 1");
    // Where a package has the system listen, a connection starts a daemon.
    let listener = home.listen();
    listener.set_nonblocking(true).unwrap();
    let state = home.path(".local/state/acpd");
    fs::create_dir_all(&state).unwrap();
    let dry_run = || {
        let done = service(&home, &["install", "--dry-run"]);
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
fn without_a_service_manager_nothing_is_written() {
    let home = home("echo 'Failed to connect to bus: No medium found' >&2; exit 1");
    let done = service(&home, &["install"]);
    assert_eq!(done.code, Some(1), "{done:?}");
    assert!(done.err.contains("No medium found") && done.err.contains("hint: log in"), "{done:?}");
    assert!(!home.path(".config").exists());
    let none = service(&home, &["status"]);
    assert_eq!(none.code, Some(3), "{none:?}");
    assert!(none.err.contains("hint: install it: `acpctl service install`"), "{none:?}");
    script(&home.path("bin/journalctl"), "echo another service");
    for args in [&["logs"][..], &["logs", "-f"]] {
        let none = service(&home, args);
        assert_eq!((none.code, none.out.as_str()), (Some(3), ""), "{none:?}");
        assert!(none.err.contains("not installed as a service"), "{none:?}");
        assert!(none.err.contains("`acpctl daemon logs`"), "{none:?}");
    }
}

#[test]
fn a_program_that_cannot_start_is_no_service() {
    let home = home("exit 0");
    script(&home.path("bin/acpd"), "printf 'error: no room\\n\\nhint: make some\\n' >&2; exit 1");
    let done = service(&home, &["install"]);
    assert!(done.err.contains("no room") && done.err.contains("hint: make some"), "{done:?}");
    assert!(!home.path(".config").exists() && !home.path(CALLS).exists());
}

#[test]
fn installing_twice_is_installing_once_and_uninstalling_is_the_way_back() {
    let show = "case \"$2\" in show) printf 'Id=acpd.service\\nUnitFileState=enabled\\nMainPID=0\\n\\n\
                Id=acpd.socket\\nActiveState=active\\n';; esac";
    let home = home(show);
    let done = service(&home, &["install"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(units(&home).iter().all(|unit| unit.is_file()), "{done:?}");
    let calls = || fs::read_to_string(home.path(CALLS)).unwrap();
    let began = "--user daemon-reload\n--user enable acpd.service\n\
                 --user stop acpd.socket acpd.service\n--user start acpd.socket\n";
    assert!(calls().ends_with(began), "{}", calls());
    let again = service(&home, &["install"]);
    assert!(again.err.contains("already installed as a service"), "{again:?}");
    assert!(calls().lines().last().unwrap().contains("show"), "{}", calls());
    let status = service(&home, &["status", "--json"]);
    let status: serde_json::Value = serde_json::from_str(&status.out).unwrap();
    assert_eq!(status["files"][0]["state"], "current", "{status}");
    assert_eq!([&status["enabled"], &status["listens"]], [true, true], "{status}");

    fs::write(&units(&home)[0], "[Service]\n").unwrap();
    let other = service(&home, &["install"]);
    assert!(other.err.contains("replaced"), "{other:?}");

    let gone = service(&home, &["uninstall"]);
    assert_eq!(gone.code, Some(0), "{gone:?}");
    let ended = "--user stop acpd.socket acpd.service\n--user disable acpd.service\n\
                 --user daemon-reload\n";
    assert!(calls().ends_with(ended), "{}", calls());
    assert!(!home.path(".config/systemd").exists());
}

#[test]
fn a_client_that_gets_no_answer_of_a_service_is_told_why_acpd_does_not_start() {
    let home = home("exit 0");
    let refusal = "printf 'error: unknown key `bad` (config.toml:1:1)\n\nhint: none\n' >&2; exit 1";
    script(&home.path("bin/acpd"), refusal);
    // As a service manager does: it accepts connections, and no daemon answers.
    let _listener = home.listen();
    let mut command = home.acpctl(["ps"]);
    command.env("ACPD_EXE", home.path("bin/acpd"));
    let done = home.wait(command.spawn().unwrap());
    assert_eq!(done.code, Some(1), "{done:?}");
    for words in ["does not answer: it cannot start: unknown key `bad`", "`acpctl doctor`"] {
        assert!(done.err.contains(words), "{words}: {done:?}");
    }
}

#[test]
fn a_purge_asks_and_leaves_nothing() {
    let home = home("exit 0");
    for file in ["acpd.db", "acpd-before-restore-1.db", "log/acpd.log", "web/tokens"] {
        let file = home.path(".local/state/acpd").join(file);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, "x").unwrap();
    }
    fs::create_dir_all(home.path(".config/acpd")).unwrap();
    fs::write(home.path(".config/acpd/config.toml"), "").unwrap();
    fs::write(home.path(".bashrc"), "source <(acpctl completions bash)\n").unwrap();
    let units = home.path(".config/systemd/user");
    fs::create_dir_all(units.join("acpd.service.d")).unwrap();
    for file in ["acpd.service", "acpd.socket", "acpd.service.d/override.conf"] {
        fs::write(units.join(file), "[Service]\n").unwrap();
    }
    let asked = service(&home, &["uninstall", "--purge"]);
    assert_eq!(asked.code, Some(2), "{asked:?}");
    assert!(asked.err.contains("hint: add `--yes`"), "{asked:?}");
    let shown = service(&home, &["uninstall", "--purge", "--dry-run"]);
    assert!(shown.out.contains(".local/state/acpd  4 B\n"), "{shown:?}");
    assert!(home.path(".local/state/acpd/acpd.db").exists());
    let done = service(&home, &["uninstall", "--purge", "--yes", "--no-spawn"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.err.contains(".bashrc"), "{done:?}");
    let deleted =
        [".local/state/acpd  4 B\n", "user/acpd.service\n", "user/acpd.service.d/override.conf\n"];
    for said in deleted {
        let before = done.err.split("removed").next().unwrap();
        assert!(shown.out.contains(said) && before.contains(said), "{said}: {done:?}");
    }
    for left in [".local/state/acpd", ".config/acpd", "run", ".config/systemd"] {
        assert!(!home.path(left).exists(), "{left} is left");
    }
}

#[test]
fn a_socket_on_which_nobody_answers_any_more_does_not_stop_a_purge() {
    let home = home("exit 0");
    fs::create_dir_all(home.path(".local/state/acpd")).unwrap();
    fs::write(home.path(".local/state/acpd/acpd.db"), "x").unwrap();
    let listener = home.listen();
    // Ends with the test.
    thread::spawn(move || listener.incoming().map_while(Result::ok).for_each(drop));
    let done = service(&home, &["uninstall", "--purge", "--yes", "--no-spawn"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(!home.path(".local/state/acpd").exists());
}

#[test]
fn the_log_of_a_daemon_that_the_system_has_started_is_the_systems() {
    let show =
        "printf 'MainPID=812\\nId=acpd.service\\nActiveState=active\\nUnitFileState=enabled\\n'";
    let home = home(show);
    script(&home.path("bin/journalctl"), "echo \"journal $*\"");
    fs::create_dir_all(home.path("state/log")).unwrap();
    fs::write(home.path("state/log/acpd.log"), "the file\n").unwrap();
    let daemon = |args: &[&str]| {
        let mut command = home.acpctl([&["daemon"], args].concat());
        command.env("ACPD_EXE", home.path("bin/acpd"));
        command.env("PATH", format!("{}:/usr/bin:/bin", home.path("bin").display()));
        home.wait(command.spawn().unwrap())
    };
    let logs = || daemon(&["logs", "-n", "7"]);
    let listener = home.listen();
    let place = || {
        let mut status = status(812, 1);
        status["daemon"]["log"] = json!("/l/acpd.log");
        thread::scope(|scope| {
            scope.spawn(|| Client::accept(&listener).answer(method::STATUS, status));
            let done = daemon(&["status"]);
            let place = done.out.lines().find_map(|line| line.strip_prefix("log"));
            place.unwrap_or_else(|| panic!("{done:?}")).trim().to_owned()
        })
    };
    assert_eq!(logs().out, "the file\n", "there is no service");
    assert_eq!(place(), "/l/acpd.log");
    let [unit, _] = units(&home);
    fs::create_dir_all(unit.parent().unwrap()).unwrap();
    fs::write(unit, "").unwrap();
    let done = logs();
    assert_eq!(done.out, "journal --user --quiet --unit acpd.service --lines 7\n", "{done:?}");
    assert_eq!(place(), "journalctl --user -u acpd");
}
