//! Everything but `acpctl run` and `acpctl acp`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Command;
use std::thread;

use acpd_api::method;
use serde_json::{Value, json};

use crate::run::interrupt;
use crate::support::{Client, Home, capable, run_against, session, status};

fn agent(state: &str, log: &str) -> Value {
    json!({"name": "demo", "title": "Demo", "state": state, "since": 0, "restarts": 0,
        "command": ["demo"], "sessions": 0, "log": log, "tried": true})
}

#[test]
fn a_daemon_that_is_on_its_way_is_waited_for() {
    let home = Home::new();
    let (starts, listening) = (home.path("starts"), home.path("listening"));
    // Twice another one holds the lock; the second time it listens by then.
    home.install_daemon(&format!(
        "echo start >> {}; [ $(wc -l < {0}) = 2 ] && while [ ! -e {} ]; do sleep 0.01; done
         printf 'error `{}` is locked by process 7' >&$ACPD_STARTUP_FD; exit 1",
        starts.display(),
        listening.display(),
        home.path("state").join("acpd.lock").display(),
    ));
    let child = home.acpctl(["ps", "--json"]).spawn().unwrap();
    while std::fs::read_to_string(&starts).unwrap_or_default().lines().count() < 2 {
        thread::yield_now();
    }
    let listener = home.listen();
    std::fs::write(&listening, "now\n").unwrap();
    Client::accept(&listener).answer(method::STATUS, status(4711, 3));
    assert_eq!(home.wait(child).code, Some(0));
}

#[test]
fn the_log_ends_in_what_its_turn_waits_for() {
    let (home, listener) = Home::listening();
    let daemon = thread::spawn(move || {
        let question = |id: &str, session: &str| {
            json!({"id": id, "agent": "demo", "sessionId": session, "cwd": "/w", "at": 1,
                "question": {"kind": "permission", "title": "Push it", "toolKind": "execute",
                    "subject": "run `git push`", "options": []}})
        };
        let entry = |seq: u64, method: &str| {
            json!({"seq": seq, "kind": "notice", "at": 1, "turn": 1, "line": {"jsonrpc": "2.0",
                "method": method, "params": {"sessionId": "s-1"}}})
        };
        let mut client = Client::accept(&listener);
        client.finds(&session("s-1"));
        let page = json!({"sessionId": "s-1", "entries": [entry(1, method::TURN_STARTED)]});
        client.answer(method::SESSION_LOG, page);
        let open = [question("1-4", "s-1"), question("1-5", "s-2")];
        client.answer(method::INTERACTION_LIST, json!({"interactions": open}));
        let mut client = Client::accept(&listener);
        client.finds(&session("s-1"));
        let entries = [entry(1, method::TURN_STARTED), entry(2, method::TURN_ENDED)];
        client.answer(method::SESSION_LOG, json!({"sessionId": "s-1", "entries": entries}));
        client.closed();
    });
    let done = home.run(&["session", "log", "fix"]);
    assert_eq!(
        done.err,
        "waiting for permission: run `git push` (`acpctl allow` or `acpctl deny` 1-4)\n"
    );
    assert_eq!(home.run(&["session", "log", "fix"]).err, "");
    daemon.join().unwrap();
}

#[test]
fn a_session_can_be_looked_at_from_a_deleted_directory() {
    let home = Home::new();
    let daemon = home.daemon(|mut client| {
        client.finds(&session("s-1"));
    });
    let acpctl = home.acpctl([""; 0]);
    let done = Command::new("/bin/sh")
        .args(["-c", r#"rmdir "$PWD"; exec "$0" session show s-1"#])
        .arg(acpctl.get_program())
        .env_clear()
        .envs(acpctl.get_envs().filter_map(|(name, value)| Some((name, value?))))
        .current_dir(home.work())
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    daemon.join().unwrap();
}

#[test]
fn what_is_left_of_an_agent_is_told_and_a_restart_by_force_does_not_wait_for_it() {
    let (home, listener) = Home::listening();
    let daemon = std::thread::spawn(move || {
        let hint = "`acpctl agent restart demo --force` starts the agent beside it";
        let data = json!({"reason": "agent_leftovers", "hint": hint});
        let text = "agent `demo`: process 7 (`cat`) of its last run does not end";
        Client::accept(&listener).fail(method::AGENT_RESTART, text, data);
        Client::accept(&listener).answer(method::AGENT_RESTART, agent("ready", "/l"))["params"]
            .clone()
    });
    let done = home.run(&["agent", "restart", "demo"]);
    assert_eq!(done.code, Some(1));
    assert!(done.err.contains("process 7 (`cat`)"), "{}", done.err);
    assert!(done.err.contains("acpctl agent restart demo --force"), "{}", done.err);
    let done = home.run(&["agent", "restart", "demo", "--force"]);
    assert_eq!((done.code, done.err.as_str()), (Some(0), "demo is ready\n"));
    assert_eq!(daemon.join().unwrap(), json!({"agent": "demo", "force": true}));
}

#[test]
fn a_followed_log_goes_on_with_what_is_written_later() {
    let home = Home::new();
    let logs = home.path("state/log");
    std::fs::create_dir_all(&logs).unwrap();
    let log = logs.join("acpd.log");
    std::fs::write(&log, "one\n").unwrap();
    let mut child = home.acpctl(["daemon", "logs", "-f"]).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let mut next = || {
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        line
    };
    assert_eq!(next(), "one\n");
    let mut file = std::fs::File::options().append(true).open(&log).unwrap();
    file.write_all(b"two\n").unwrap();
    assert_eq!(next(), "two\n");
    // The last lines of the old file are not lost when another takes its place.
    std::fs::rename(&log, logs.join("acpd.log.1")).unwrap();
    file.write_all(b"three\n").unwrap();
    std::fs::write(&log, "four\n").unwrap();
    assert_eq!((next(), next()), ("three\n".to_owned(), "four\n".to_owned()));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn ctrl_c_ends_attach_without_an_error() {
    let (home, listener) = Home::listening();
    let child = home.acpctl(["attach", "fix", "--tail", "--json"]).spawn().unwrap();
    let mut client = Client::accept(&listener);
    let attach = client.follows(&session("s-1"));
    assert_eq!(attach["params"].get("after"), None);
    // Answered only by a client that already listens to Ctrl-C.
    client.send(json!({"jsonrpc": "2.0", "id": 1, "method": "unknown"}));
    client.read().unwrap();
    interrupt(child.id());
    client.closed();
    let done = home.wait(child);
    assert_eq!((done.code, done.out.as_str(), done.err.as_str()), (Some(0), "", ""));
}

#[test]
fn help_that_cannot_be_written_is_an_error() {
    let home = Home::new();
    for args in [&["help"][..], &["help", "run"], &["--version"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let done = home.wait(home.acpctl(args).stdout(full).spawn().unwrap());
        assert_eq!(done.code, Some(1), "{args:?}: {done:?}");
        assert!(done.err.starts_with("error: cannot write: "), "{done:?}");
    }
}

#[test]
fn times_are_those_of_the_persons_clock() {
    let home = Home::new();
    let daemon = home.daemon(|mut client| {
        client.finds(&session("s-1"));
    });
    let done = home.acpctl(["session", "show", "fix"]).env("TZ", "JST-9").output().unwrap();
    let shown = String::from_utf8(done.stdout).unwrap();
    assert!(shown.contains("created    1970-01-01 09:00:01\n"), "{shown}");
    daemon.join().unwrap();
}

#[test]
fn the_last_session_used_is_shown_if_none_is_named() {
    let home = Home::new();
    let cwd = home.work();
    let daemon = home.daemon(move |mut client| {
        let mut here = session("s-1");
        here["cwd"] = json!(cwd);
        client.lists(&[&here]);
        client.closed();
    });
    let done = home.run(&["session", "show"]);
    assert!(done.out.contains("s-1") && done.code == Some(0), "{done:?}");
    daemon.join().unwrap();
}

#[test]
fn a_message_that_the_agent_does_not_take_is_told() {
    let done = run_against(&["run", "--steer", "fix", "more"], |mut client| {
        client.finds(&session("s-1"));
        client.answer("initialize", capable());
        client.answer("_session/steering", json!({"outcome": "failed", "reason": "busy"}));
        client.closed();
    });
    let told = "error: demo did not accept the message: busy\n\n\
                hint: send it as a prompt: `acpctl run -s fix …`\n";
    assert_eq!((done.err.as_str(), done.code), (told, Some(1)));
}
