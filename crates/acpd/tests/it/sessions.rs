//! Sessions: names, ends, processes of their own, and unused agents.

use acpd_test::harness::{TestEnv, kill9, reason};
use serde_json::{Value, json};

use crate::{echo, home};

/// The processes of agents.
fn agents(env: &TestEnv) -> Vec<u32> {
    let tree = env.tree().into_iter();
    tree.filter(|p| p.command.contains("scripted-agent")).map(|process| process.pid).collect()
}

#[test]
fn sessions_with_a_process_each_do_not_die_together() {
    let env = home([echo().set("sharing", "\"session\"")]);
    let mut client = env.client("echo");
    let one = client.new_session(&env.work("main"), Some("one"));
    let two = client.new_session(&env.work("main"), Some("two"));
    client.say(&one, "say #one").unwrap();
    client.say(&two, "say #two").unwrap();
    let first = client.prompt(&one, "#three [pause one]");
    let second = client.prompt(&two, "#four [pause two]");
    env.wait_point("one");
    env.wait_point("two");
    let worker = |prompt: &str| {
        let record = env.record("echo").into_iter();
        let mut line = record.filter(|line| line.line.contains(prompt));
        line.next().expect("a prompt in the record").pid
    };
    let (victim, other) = (worker("#three"), worker("#four"));
    assert_ne!(victim, other);
    let shown = env.json(&["agent", "show", "echo"]);
    let others = shown["otherPids"].as_array().expect("others").iter();
    let pids: Vec<_> = others.chain([&shown["pid"]]).filter_map(Value::as_u64).collect();
    assert!([victim, other].iter().all(|pid| pids.contains(&u64::from(*pid))), "{shown}");
    assert_eq!(shown["processes"], pids.len(), "of all of them");
    kill9(victim);
    let error = client.answer(first).unwrap_err();
    assert_eq!(reason(&error), "agent_exited", "{error}");
    env.release("two");
    assert_eq!(client.answer(second).unwrap()["stopReason"], "end_turn");
    client.say(&one, "say #five").unwrap();
    assert!(client.said(&one).contains("tags=one,three,five"), "{}", client.said(&one));
    assert!(agents(&env).contains(&other));
}

#[test]
fn a_directory_reached_by_a_link_is_the_same_one() {
    let env = home([echo()]);
    let (real, link) = (env.path("data/src"), env.path("src"));
    std::fs::create_dir_all(&real).unwrap();
    std::os::unix::fs::symlink(&real, &link).unwrap();
    let mut client = env.client("echo");
    let session = client.new_session(&link, Some("main"));
    client.prompt(&session, "say #one");
    client.sync();
    let meta = json!({"_acpd": {"name": "main", "reuse": true}});
    let again = json!({"cwd": real, "mcpServers": [], "_meta": meta});
    assert_eq!(client.ok("session/new", again)["sessionId"], session);
    for cwd in [link.clone(), real.clone(), link.join(""), env.path("./src")] {
        let load = json!({"sessionId": session, "cwd": cwd, "mcpServers": []});
        client.ok("session/load", load);
        let listed = client.ok("session/list", json!({"cwd": cwd}));
        assert_eq!(listed["sessions"][0]["sessionId"], session, "{cwd:?}");
        assert_eq!(listed["sessions"][0]["cwd"], json!(real));
    }
}

/// Names of the sessions in a list.
fn names(list: &Value) -> Vec<&str> {
    let sessions = list["sessions"].as_array().expect("a list").iter();
    let mut names: Vec<_> = sessions.map(|one| one["name"].as_str().expect("a name")).collect();
    names.sort_unstable();
    names
}

#[test]
fn labels_find_sessions_and_go_with_copies() {
    let env = home([echo()]);
    let run = |args: &[&str]| env.acpctl(&[&["run", "-N"], args].concat()).success();
    run(&["-s", "fix", "--label", "team=infra", "say #one"]);
    // This session exists.
    run(&["-s", "fix", "--label", "urgent", "--label", "team=infra", "say #two"]);
    run(&["-s", "other", "say #one"]);
    env.kill_daemon();
    let listed = env.json(&["session", "ls", "--label", "urgent", "--label", "team=infra"]);
    assert_eq!(names(&listed), ["fix"]);
    let nothing = env.acpctl(&["session", "ls", "--label", "urgen"]).success();
    nothing.explains(&["no session matches"]);

    env.acpctl(&["session", "fork", "fix", "--name", "copy"]).success();
    let handoff = ["session", "handoff", "fix", "--to", "echo", "-s", "next", "--label", "taken"];
    env.acpctl(&[&handoff[..], &["say #three"]].concat()).success();
    assert_eq!(names(&env.json(&["session", "ls", "--label", "urgent"])), ["copy", "fix", "next"]);
    assert_eq!(names(&env.json(&["session", "ls", "--label", "taken"])), ["next"]);

    let label = |args: &[&str]| env.acpctl(&[&["session", "label"], args].concat());
    label(&["fix", "v1.2", "--remove", "urgent"]).success().explains(&["team=infra, v1.2"]);
    assert_eq!(label(&["fix"]).success().stdout(), "team=infra\nv1.2\n");
    assert_eq!(env.json(&["session", "label", "other"]), json!([]));
    let shown = env.acpctl(&["session", "show", "fix"]).success();
    assert!(shown.stdout().contains("team=infra, v1.2"), "{shown:?}");
    let table = env.acpctl(&["session", "ls"]).success();
    assert!(table.stdout().contains("LABELS") && table.stdout().contains("team=infra, v1.2"));
    label(&["copy", "--remove", "urgent", "--remove", "team=infra"]).success();
    label(&["copy"]).success().explains(&["copy has no labels"]);

    let refused = env.acpctl(&["run", "-N", "-s", "new", "--label", "a b", "say #one"]);
    refused.code(2).explains(&["`a b` is not a label", "1 to 64 ASCII letters"]);
    assert_eq!(names(&env.json(&["session", "ls"])), ["copy", "fix", "next", "other"]);
}
