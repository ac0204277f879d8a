//! Several clients at one session, and clients that go or do not keep up.

use std::io::Write as _;
use std::os::unix::net::UnixStream;

use acpd_test::harness::{Client, Config, TestEnv, peak_rss, rss, seq_of, until};
use serde_json::{Value, json};

use crate::{echo, home, home_with};

const MIB: u64 = 1 << 20;

/// A client at session `fix`.
fn at_fix(env: &TestEnv, after: Option<u64>) -> Client {
    let mut client = env.client("echo");
    client.attach("fix", after);
    client
}

/// Every position from 1 to the last, exactly once and in order, and what is in the journal there.
fn assert_whole(env: &TestEnv, view: &[(u64, Value)]) {
    let seqs: Vec<u64> = view.iter().map(|(seq, _)| *seq).collect();
    assert!(seqs.iter().copied().eq(1..=seqs.len() as u64), "gaps or doubles: {seqs:?}");
    let journal = env.journal("fix");
    assert_eq!(journal.len(), view.len());
    for ((_, kept), (seq, shown)) in journal.iter().zip(view) {
        assert_eq!(kept["method"], shown["method"], "at {seq}");
        assert_eq!(kept["params"]["update"], shown["params"]["update"], "at {seq}");
    }
}

#[test]
fn two_clients_see_the_same_in_the_same_order() {
    let env = home([echo()]);
    let mut first = env.client("echo");
    let session = first.new_session(&env.work("main"), Some("fix"));
    let mut second = at_fix(&env, Some(0));
    for n in 0..5 {
        let (asker, other) =
            if n % 2 == 0 { (&mut first, &mut second) } else { (&mut second, &mut first) };
        asker.say(&session, &format!("[plan] [tool Edit] [chunks 20] say #n{n}")).unwrap();
        other.hear(&format!("n{n}\n").replace('\n', ""));
        other.next_of("_acpd/turn_ended");
        asker.next_of("_acpd/turn_ended");
    }
    first.sync();
    second.sync();
    let (first, second) = (first.view(&session), second.view(&session));
    // Each was spared only its own prompts.
    let both = |one: &[(u64, Value)], two: &[(u64, Value)]| -> Vec<(u64, Value)> {
        let there = |seq: u64| two.iter().any(|(other, _)| *other == seq);
        one.iter().filter(|(seq, _)| there(*seq)).cloned().collect()
    };
    assert_eq!(both(&first, &second), both(&second, &first));
    let mut all: Vec<(u64, Value)> = first.iter().chain(&second).cloned().collect();
    all.sort_by_key(|(seq, _)| *seq);
    all.dedup();
    assert_whole(&env, &all);
    assert!(first.iter().map(|(seq, _)| seq).is_sorted());
}

#[test]
fn a_turn_goes_on_when_its_client_is_killed() {
    let env = home([echo()]);
    let mut run = env.spawn_acpctl(&["run", "-s", "fix", "#one [pause middle] [chunks 3]"]);
    run.wait_stdout("paused at middle");
    run.kill();
    until("the client to be forgotten", || (env.session("fix")["clients"] == 0).then_some(()));
    env.release("middle");
    until("the end of the turn", || {
        (env.session("fix")["turn"]["last"] == "end_turn").then_some(())
    });
    let log = env.acpctl(&["session", "log", "fix"]).success();
    assert!(log.stdout().contains("line 3") && log.stdout().contains("tags=one"), "{log:?}");
}

// peers 20
#[test]
fn a_client_that_does_not_read_harms_nobody_and_misses_nothing() {
    const CHUNKS: usize = 200_000;
    let env = home([echo().unrecorded()]);
    let mut fast = env.client("echo");
    let session = fast.new_session(&env.work("main"), Some("fix"));
    let mut slow = at_fix(&env, Some(0));
    let daemon = env.daemon_pid();
    let base = rss(daemon);
    fast.prompt(&session, &format!("[chunks {CHUNKS}]"));
    let mut last = 0;
    let mut chunks = 0;
    loop {
        let line = fast.read_line("the next chunk").expect("the connection goes on");
        let Some(seq) = seq(&line) else {
            if line.windows(10).any(|window| window == b"stopReason") {
                break;
            }
            continue;
        };
        assert!(seq > last, "{seq} after {last}");
        last = seq;
        chunks += usize::from(is_chunk(&line));
    }
    assert!(chunks >= CHUNKS, "the fast one has everything: {chunks}");

    let mut expected = 1;
    let mut chunks = 0;
    while expected <= last {
        let line = slow.read_line("the next line").expect("the connection goes on");
        let Some(seq) = seq(&line) else { continue };
        assert_eq!(seq, expected, "no gap and no double");
        expected += 1;
        chunks += usize::from(is_chunk(&line));
    }
    assert!(chunks >= CHUNKS, "{chunks}");
    let most = peak_rss(daemon);
    assert!(most < base + 64 * MIB, "the daemon grew from {base} to {most}");
}

#[test]
fn a_client_that_has_lagged_gets_live_lines_again() {
    let config = Config::new([echo().unrecorded()]).daemon("client_queue", "\"64KiB\"");
    let env = home_with(&config);
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), Some("fix"));
    let turn = client.prompt(&session, "[chunks 20000] [pause held] say #one");
    // The client has read nothing so far, and what is asked for comes last in its queue.
    env.wait_point("held");
    let asked = client.request("_acpd/session/log", json!({"ref": {"session": session}}));
    env.status();
    client.answer(asked).expect("an answer");
    env.release("held");
    assert_eq!(client.answer(turn).unwrap()["stopReason"], "end_turn");
    assert_eq!(env.said("fix"), client.said(&session));
}

#[test]
fn a_client_that_asks_and_asks_and_reads_nothing_is_let_go() {
    let config = Config::new([echo()]);
    let env =
        home_with(&config.daemon("client_queue", "\"64KiB\"").daemon("line_limit", "\"64KiB\""));
    let mut other = env.client("echo");
    let mut greedy = UnixStream::connect(env.socket()).unwrap();
    let question = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"_acpd/status\",\"params\":{}}\n";
    let questions = question.repeat(1000);
    let cut = (0..1000).find_map(|_| greedy.write_all(&questions).err());
    assert!(cut.is_some(), "the connection is closed");
    other.sync();
    until("the client to be gone", || (env.status()["daemon"]["clients"] == 2).then_some(()));
}

fn seq(line: &[u8]) -> Option<u64> {
    seq_of(&serde_json::from_slice(line).expect("JSON"))
}

fn is_chunk(line: &[u8]) -> bool {
    line.windows(19).any(|window| window == b"agent_message_chunk")
}

#[test]
fn a_question_waits_for_a_person_and_takes_one_answer() {
    let env = home([echo()]);
    let mut run = env.client("echo");
    let session = run.new_session(&env.work("main"), Some("fix"));
    run.prompt(&session, "[ask] say #one");
    run.next_of("session/request_permission");
    drop(run);
    until("the client to be forgotten", || (env.session("fix")["clients"] == 0).then_some(()));
    assert_eq!(env.session("fix")["turn"]["state"], "needs_action");
    // Other sessions go on meanwhile.
    env.acpctl(&["run", "-s", "docs", "say #other"]).success();

    let mut first = at_fix(&env, None);
    let mut second = at_fix(&env, None);
    let mut watcher = env.client("echo");
    let watch = json!({"ref": {"session": "fix"}, "role": "observer"});
    watcher.ok("_acpd/session/attach", watch);
    let asked = first.next_of("session/request_permission");
    let also = second.next_of("session/request_permission");
    first.permit(&asked, "yes");
    let withdrawn = second.next_of("$/cancel_request");
    assert_eq!(withdrawn["params"]["requestId"], also["id"]);
    second.permit(&also, "no");
    second.permit(&also, "never");
    first.next_of("_acpd/turn_ended");
    first.sync();
    second.sync();
    watcher.sync();
    assert!(env.said("fix").contains("permission: yes"), "{}", env.said("fix"));
    let record = env.record("echo");
    let answers = record.iter().filter(|line| line.line.contains("\"outcome\":\"selected\""));
    assert_eq!(answers.count(), 1);
    let asked = |client: &Client| {
        client.seen().iter().any(|message| message["method"] == "session/request_permission")
    };
    assert!(!asked(&watcher), "a watcher is not asked");
    // An answer that makes no sense is no consent.
    let id = first.prompt(&session, "[ask]");
    let question = first.next_of("session/request_permission");
    first.permit(&question, "no-such-option");
    first.sync();
    assert_eq!(env.session("fix")["turn"]["state"], "needs_action");
    let mut third = at_fix(&env, None);
    let question = third.next_of("session/request_permission");
    third.permit(&question, "no");
    first.answer(id).unwrap();
}

#[test]
fn a_cancel_takes_the_question_back_from_everyone() {
    let env = home([echo()]);
    let mut first = env.client("echo");
    let session = first.new_session(&env.work("main"), Some("fix"));
    let mut second = at_fix(&env, None);
    let turn = first.prompt(&session, "[ask]");
    let asked = first.next_of("session/request_permission");
    let also = second.next_of("session/request_permission");
    first.cancel(&session);
    for (client, question) in [(&mut first, &asked), (&mut second, &also)] {
        let withdrawn = client.next_of("$/cancel_request");
        assert_eq!(withdrawn["params"]["requestId"], question["id"]);
    }
    second.permit(&also, "yes");
    assert_eq!(first.answer(turn).unwrap()["stopReason"], "cancelled");
    first.say(&session, "go on").unwrap();
    assert!(!env.said("fix").contains("permission: yes"), "too late is too late");
}

#[test]
fn who_comes_in_the_middle_of_a_stream_gets_history_and_what_follows_without_a_gap() {
    let env = home([echo()]);
    let mut first = env.client("echo");
    let session = first.new_session(&env.work("main"), Some("fix"));
    let turn = first.prompt(&session, "[chunks 2000] [pause half] [chunks 5000]");
    let early = at_fix(&env, Some(0));
    first.hear("paused at half");
    let middle = at_fix(&env, Some(0));
    let tail = at_fix(&env, None);
    env.release("half");
    let mut late: Vec<Client> = vec![early, middle];
    for _ in 0..4 {
        late.push(at_fix(&env, Some(0)));
    }
    first.answer(turn).unwrap();
    for client in &mut late {
        client.next_of("_acpd/turn_ended");
        assert_whole(&env, &client.view(&session));
    }
    let mut tail = tail;
    tail.next_of("_acpd/turn_ended");
    let seqs: Vec<u64> = tail.view(&session).iter().map(|(seq, _)| *seq).collect();
    assert!(seqs[0] > 2000 && seqs.iter().copied().eq(seqs[0]..seqs[0] + seqs.len() as u64));
    // And from a place in between.
    let mut from = at_fix(&env, Some(3000));
    from.sync();
    let seqs: Vec<u64> = from.view(&session).iter().map(|(seq, _)| *seq).collect();
    assert_eq!((seqs.first(), seqs.len() as u64 + 3000), (Some(&3001), *seqs.last().unwrap()));
}

#[test]
fn loading_a_live_session_never_reaches_the_agent_and_shows_the_same() {
    let env = home([echo()]);
    let mut first = env.client("echo");
    let session = first.new_session(&env.work("main"), Some("fix"));
    first.say(&session, "say #one [plan] [tool Edit]").unwrap();
    let turn = first.prompt(&session, "[chunks 50] [pause half] say #two");
    first.hear("paused at half");
    let mut second = env.client("echo");
    let params = json!({"sessionId": session, "cwd": env.work("main"), "mcpServers": []});
    second.ok("session/load", params.clone());
    env.release("half");
    first.answer(turn).unwrap();
    second.hear("tags=one,two");
    assert_eq!(first.said(&session), second.said(&session));
    let prompts = |client: &Client| {
        let chunk = |m: &&Value| m["params"]["update"]["sessionUpdate"] == "user_message_chunk";
        client.seen().iter().filter(chunk).count()
    };
    assert_eq!(prompts(&second), 2);
    assert!(env.received("echo", "session/load").is_empty());
    assert!(env.received("echo", "session/resume").is_empty());
    let mut wrong = params;
    wrong["cwd"] = json!(env.work("other"));
    assert_eq!(second.call("session/load", wrong).unwrap_err()["code"], -32602);
}

#[test]
fn attach_follows_a_session_from_the_terminal() {
    let env = home([echo()]);
    env.acpctl(&["run", "-s", "fix", "say #one"]).success();
    let mut attach = env.spawn_acpctl(&["attach", "fix"]);
    attach.wait_stdout("tags=one");
    let run = env.acpctl(&["run", "-s", "fix", "say #two"]).success();
    assert!(run.stdout().contains("tags=one,two"));
    let all = attach.wait_stdout("tags=one,two");
    assert_eq!(all.matches("You said: say #one").count(), 1, "{all}");
    attach.interrupt();
    attach.finish().success();
}
