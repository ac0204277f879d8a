//! Answers to an agent's questions: by people in another terminal, rules, remembered decisions, flags.

use acpd_test::harness::{Agent, Config, Running, until};
use serde_json::{Value, json};

use crate::{home, home_with};

/// A shell that asks one question in each turn, and says what was answered.
const ASKS: &str = r#"
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
while read -r line; do
    id=$(printf '%s' "$line" | sed 's/.*"id":\("[0-9]*-[0-9]*"\).*/\1/')
    case $line in
    *'"initialize"'*) answer '{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}' ;;
    *'"session/new"'*) answer '{"sessionId":"s'$$-$(printf %s "$id" | tr -d '"')'"}' ;;
    *'"session/load"'*) answer '{}' ;;
    *'"session/prompt"'*)
        session=$(printf '%s' "$line" | sed 's/.*"sessionId":"\([^"]*\)".*/\1/')
        echo '{"jsonrpc":"2.0","id":"ask",QUESTION}' | sed "s/SESSION/$session/"
        read -r said
        said=$(printf '%s' "$said" | sed 's/.*"\(optionId\|branch\)":"\([a-z]*\)".*/\2/')
        echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"'$session'",'\
'"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"got $said"'"}}}}'
        answer '{"stopReason":"end_turn"}' ;;
    esac
done
"#;

/// Unlike the scripted agent it tells the command, so that a decision on it can be remembered.
const PERMISSION: &str = r#""method":"session/request_permission","params":{"sessionId":"SESSION",
    "toolCall":{"toolCallId":"t","kind":"execute","title":"Test","rawInput":{"command":"make test"}},
    "options":[{"optionId":"yes","name":"Allow","kind":"allow_once"},
        {"optionId":"always","name":"Always allow","kind":"allow_always"},
        {"optionId":"no","name":"Reject","kind":"reject_once"}]}"#;

fn asks(question: &str) -> Agent {
    let question = question.replace('\n', "");
    Agent::new("asks").command(&["sh", "-c", &ASKS.replace("QUESTION", &question)])
}

#[test]
fn a_yes_for_always_holds_over_a_restart_until_it_is_forgotten() {
    let env = home([asks(PERMISSION)]);
    let run = env.spawn_acpctl(&["run", "-s", "one", "go"]);
    env.wait_questions();
    let allowed = env.acpctl(&["allow", "--always"]).success();
    assert_eq!(
        allowed.stderr(),
        "allowed, from now on: run `make test` (asks, one)\n\
         acpd remembers exactly this call; to undo it: acpctl policy forget 1\n\
         asks keeps asking, and acpd answers; its own option `Always allow` (`--option always`) may \
         cover more\n"
    );
    let run = run.finish().success();
    assert!(run.stdout().contains("got yes"), "{run:?}");

    env.acpctl(&["daemon", "restart"]).success();
    let run = env.acpctl(&["run", "-s", "two", "go"]).success();
    assert!(run.stdout().contains("got yes"), "{run:?}");
    assert!(run.stderr().contains("allowed by remembered decision 1: Test"), "{run:?}");
    let listed = env.acpctl(&["policy", "ls"]).success();
    assert!(listed.stdout().contains("run `make test`"), "{listed:?}");

    // The decision is for this directory.
    let mut other = env.acpctl_command(&["run", "-s", "three", "go"]);
    other.current_dir(env.work("other"));
    let other = Running::start(other);
    env.wait_questions();
    env.acpctl(&["deny"]).success();
    other.finish().success();

    env.acpctl(&["policy", "forget", "1"]).success().explains(&["forgot decision 1"]);
    env.acpctl(&["policy", "forget", "1"]).code(3).explains(&["acpctl policy ls"]);
    let run = env.spawn_acpctl(&["run", "-s", "two", "go"]);
    env.wait_questions();
    env.acpctl(&["deny"]).success();
    let run = run.finish().success();
    assert!(run.stdout().contains("got no"), "{run:?}");
}

#[test]
fn a_rule_that_allows_answers_with_nobody_there_and_the_journal_names_it() {
    let rules =
        "[[policy.rules]]\nname = \"tests\"\ndecision = \"allow\"\ncommand = \"make test\"\n";
    let env = home_with(&Config::new([asks(PERMISSION)]).tables(rules));
    let told = env.acpctl(&["policy", "test", "--command", "make test"]).success();
    assert!(told.stdout().ends_with("\nallow: by rule `tests`\n"), "{told:?}");
    let told = env.acpctl(&["policy", "test", "--command", "make install"]).success();
    assert!(told.stdout().starts_with("- `tests` (allow) does not match: "), "{told:?}");
    assert!(told.stdout().ends_with("\nask: no rule matches\n"), "{told:?}");

    let mut client = env.client("asks");
    let session = client.new_session(&env.work("main"), Some("fix"));
    client.prompt(&session, "go");
    drop(client);
    until("the end of the turn", || {
        (env.session("fix")["turn"]["last"] == "end_turn").then_some(())
    });
    assert!(env.said("fix").contains("got yes"), "{}", env.said("fix"));
    // The answer that no person gave.
    let journal = env.journal("fix");
    let is_decision = |line: &Value| line["method"] == "_acpd/permission_decided";
    let decided: Vec<_> = journal.iter().filter(|(_, line)| is_decision(line)).collect();
    let [(_, one)] = decided[..] else { panic!("one decision: {decided:?}") };
    let decided = (&one["params"]["by"], &one["params"]["optionId"]);
    assert_eq!(decided, (&json!("rule `tests`"), &json!("yes")));
}
