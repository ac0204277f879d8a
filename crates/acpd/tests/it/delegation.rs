//! `acpctl mcp`: agents work with agents, by real programs.

use acpd_test::harness::{Agent, Config, TestEnv, until};
use serde_json::json;

use crate::mcp_host::{Host, calls};
use crate::{echo, home, home_with};

#[test]
fn a_new_name_begins_a_session_and_a_known_one_continues_it() {
    let env = home([echo()]);
    let mut host = Host::start(&env, &[]);
    let first = host.call(
        "prompt",
        json!({"session_name": "fix", "prompt": "#one [plan] [tool Edit the parser] [cost 0.25]"}),
    );
    assert_eq!(first["status"], "done", "{first}");
    assert_eq!((&first["sessionName"], &first["stopReason"]), (&json!("fix"), &json!("end_turn")));
    assert!(first["answer"].as_str().unwrap().contains("tags=one"), "{first}");
    assert!(first["files"][0].as_str().unwrap().ends_with("demo.txt"), "{first}");
    assert_eq!(first["plan"][2], json!({"step": "Run the tests", "status": "completed"}));
    assert_eq!(first["usage"]["cost"]["amount"], 0.25, "{first}");
    let told = host.told();
    assert!(told.iter().any(|told| told.contains("edited demo.txt")), "{told:?}");

    // The session continues after a restart of everything.
    drop(host);
    env.acpctl(&["daemon", "stop"]).success();
    let mut host = Host::start(&env, &[]);
    let second = host.call("prompt", json!({"session_name": "fix", "prompt": "#two"}));
    assert!(second["answer"].as_str().unwrap().contains("tags=one,two"), "{second}");
    assert_eq!(second["sessionId"], first["sessionId"]);
    let list = host.call("list_sessions", json!({}));
    let names: Vec<_> = list["sessions"].as_array().unwrap().iter().map(|s| &s["name"]).collect();
    assert_eq!(names, ["fix"]);
    let old = host.call("result", json!({"ticket": first["ticket"]}));
    assert_eq!(old["answer"], first["answer"], "a ticket names its turn for good");
    let last = host.call("result", json!({"ticket": "fix"}));
    assert_eq!(last["answer"], second["answer"]);
    let read = host.client().ok("resources/read", json!({"uri": first["ticket"]}));
    let text = read["contents"][0]["text"].as_str().unwrap();
    assert!(text.contains("## Prompt") && text.contains("edited demo.txt"), "{text}");
    let agents = host.call("list_agents", json!({}));
    assert!(agents["agents"].to_string().contains("\"echo\""), "{agents}");
}

#[test]
fn who_does_not_wait_gets_a_ticket_and_can_steer_wait_and_cancel() {
    let env = home([echo()]);
    let mut host = Host::start(&env, &[]);
    let prompt = json!({"session_name": "fix", "prompt": "#one [pause middle]", "wait": false});
    let sent = host.call("prompt", prompt);
    assert_eq!(sent["status"], "working", "{sent}");
    env.wait_point("middle");
    let ticket = json!({"ticket": sent["ticket"]});
    assert_eq!(host.call("result", ticket.clone())["status"], "working");
    let late = host.call("wait", json!({"ticket": sent["ticket"], "timeout_seconds": 0}));
    assert_eq!(late["status"], "working", "the turn runs on");
    let busy = host.refused("prompt", json!({"session_name": "fix", "prompt": "again"}));
    assert!(busy.contains("session `fix` works on another prompt"), "{busy}");
    host.call("steer", json!({"ticket": "fix", "message": "take #two"}));
    let wait = host.begin("wait", ticket.clone());
    env.release("middle");
    let done = host.result(wait);
    assert!(done["answer"].as_str().unwrap().contains("tags=one,two"), "{done}");

    let prompt = json!({"session_name": "fix", "prompt": "[hang-cancel]", "wait": false});
    let sent = host.call("prompt", prompt);
    let ended = host.call("cancel", json!({"ticket": sent["ticket"]}));
    assert_eq!(ended["status"], "cancelled", "{ended}");
    let again = host.refused("cancel", json!({"ticket": sent["ticket"]}));
    assert!(again.contains("no turn runs"), "{again}");

    // A call that the host cancels ends its turn.
    let id = host.begin("prompt", json!({"session_name": "fix", "prompt": "#go [hang-cancel]"}));
    until("the turn to run", || (env.session("fix")["prompts"] == 3).then_some(()));
    host.cancel(id);
    until("the turn to end", || {
        (env.session("fix")["turn"]["last"] == "cancelled"
            && env.session("fix")["turn"]["state"] == "idle")
            .then_some(())
    });
}

#[test]
fn a_daemon_that_is_killed_in_mid_call_costs_nothing_and_nothing_runs_twice() {
    let env = home([echo()]);
    let mut host = Host::start(&env, &[]);
    let id = host.begin("prompt", json!({"session_name": "fix", "prompt": "#one [pause middle]"}));
    env.wait_point("middle");
    env.kill_daemon();
    env.release("middle");
    let done = host.result(id);
    assert!(done["answer"].as_str().unwrap().contains("history=0 tags=one"), "{done}");
    assert_eq!(env.received("echo", "session/prompt").len(), 1);
}

#[test]
fn a_server_outside_of_its_agent_begins_no_sessions() {
    let env = lent([echo()], "max_depth = 1\nmax_sessions = 1");
    env.acpctl(&["run", "-s", "lead", "#one"]).success();
    let own = |args: &[&str]| {
        let mut command = env.acpctl_command(&["mcp"]);
        // As a process that an agent has started has it.
        command.args(args).env("ACPD_HOST", "an-agent");
        Host::run(command)
    };
    let new = |name: &str| json!({"session_name": name, "prompt": "#two"});
    let mut host = own(&[]);
    let refused = host.refused("prompt", new("other"));
    assert!(refused.contains("which session this server belongs to"), "{refused}");
    assert_eq!(host.call("prompt", new("lead"))["status"], "done", "what is there is continued");
    drop(host);
    let made = env.received("echo", "session/new");
    let args = made[0]["params"]["mcpServers"][0]["args"].clone();
    let number = args.as_array().unwrap().last().unwrap().as_str().unwrap().to_owned();
    // The number of a session of another process lends nothing of it.
    let mut host = own(&["--session", &number]);
    let refused = host.refused("prompt", new("helper"));
    assert!(refused.contains("for a session of another agent"), "{refused}");
}

/// The id of the question that is open in a session.
fn question_of(env: &TestEnv, session: &str) -> Option<String> {
    let list = env.connect().ok("_acpd/interaction/list", json!({}));
    let open = list["interactions"].as_array()?.iter().find(|one| one["name"] == session)?;
    Some(open["id"].as_str().unwrap().to_owned())
}

#[test]
fn m1_an_agent_answers_what_its_helper_asks_where_a_person_has_said_so() {
    let env = lent([echo()], "answer = true");
    let asks = json!({"session_name": "helper", "prompt": "[ask] #one"});
    let ask = calls(&env, "ask", "prompt", asks);
    // The tool returns with the question although the turn is not over.
    let run = env.acpctl(&["run", "-s", "lead", &ask]).success();
    let question = question_of(&env, "helper").unwrap();
    assert!(run.stdout().contains("waits_for_person"), "{run:?}");
    assert!(run.stdout().contains("\"toAnswer\""), "{run:?}");
    assert!(run.stdout().contains("\"diffs\""), "it is shown whole: {run:?}");
    let answer = json!({"ticket": "helper", "question": question, "answer": "allow"});
    let answer = calls(&env, "answer", "answer", answer);
    let run = env.acpctl(&["run", "-s", "lead", &answer]).success();
    assert!(run.stdout().contains("permission: yes"), "{run:?}");
    let journal = env.journal("helper");
    let told = journal.iter().find(|(_, line)| line["method"] == "_acpd/answered").unwrap();
    assert_eq!(told.1["params"]["by"]["title"], "agent `echo` of session `lead`", "{told:?}");
}

/// A home whose agents are lent acpd's own server.
fn lent(agents: impl IntoIterator<Item = Agent>, more: &str) -> TestEnv {
    let table = format!("[mcp.acpd]\nbuiltin = [\"delegate\", \"history\"]\n{more}");
    home_with(&Config::new(agents).tables(&table))
}

#[test]
fn an_agent_delegates_and_the_tree_is_seen() {
    let env = lent([echo()], "");
    let ask =
        calls(&env, "ask", "prompt", json!({"session_name": "helper", "prompt": "[ask] #one"}));
    let run = env.spawn_acpctl(&["run", "-s", "lead", &ask]);
    until("the helper to ask", || {
        let pending = env.acpctl(&["pending"]).success();
        pending.stdout().contains("helper, for lead").then_some(())
    });
    let lead = env.session("lead");
    let parent = json!({"agent": "echo", "sessionId": lead["sessionId"]});
    assert_eq!(env.session("helper")["parent"], parent);
    let tree = env.acpctl(&["ps", "--tree"]).success();
    let names: Vec<_> = tree
        .stdout()
        .lines()
        .filter(|line| line.contains("lead") || line.contains("helper"))
        .collect();
    assert!(names[0].starts_with("lead") && names[1].starts_with("└ helper"), "{names:?}");
    env.acpctl(&["allow", "helper"]).success();
    let run = run.finish().success();
    assert!(run.stdout().contains("permission: yes"), "{run:?}");

    // Over a restart of everything it is the same session, with the same tools.
    env.acpctl(&["daemon", "stop"]).success();
    let more = calls(&env, "more", "prompt", json!({"session_name": "helper", "prompt": "#two"}));
    let run = env.acpctl(&["run", "-s", "lead", &more]).success();
    assert!(run.stdout().contains("tags=one,two"), "{run:?}");
    assert_eq!(env.session("helper")["parent"], parent);
}

#[test]
fn an_agent_reads_what_was_said_before() {
    let env = home([echo()]);
    env.acpctl(&["run", "-s", "old", "the parser is decided: recursive descent"]).success();
    let mut host = Host::start(&env, &["--tools", "history"]);
    assert_eq!(host.tools(), ["read_history", "search_history"]);
    let found = until("the index to have it", || {
        let found = host.call("search_history", json!({"words": ["recursive", "descent"]}));
        found["hits"].get(0).cloned()
    });
    assert_eq!((&found["sessionName"], &found["agent"]), (&json!("old"), &json!("echo")));
    let read = json!({"session": found["sessionId"], "from_seq": found["seq"]});
    let read = host.call("read_history", read);
    assert!(read["parts"][0]["text"].as_str().unwrap().contains("recursive descent"), "{read}");
    assert_eq!(read["parts"][0]["by"], "user", "{read}");
    let refused = host.refused("read_history", json!({"session": "nothing"}));
    assert!(refused.starts_with("error: "), "{refused}");
}
