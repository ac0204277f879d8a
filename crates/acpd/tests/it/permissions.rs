//! Answers to an agent's questions: by people in another terminal, rules, remembered decisions, flags.

use acpd_test::harness::{Agent, Config, Running, TestEnv, until};
use serde_json::{Value, json};

use crate::{echo, home, home_with};

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

const FORM: &str = r#""method":"elicitation/create","params":{"sessionId":"SESSION","mode":"form",
    "message":"Which branch?","requestedSchema":{"type":"object","required":["branch"],
        "properties":{"branch":{"type":"string","enum":["main","next"]}}}}"#;

fn asks(question: &str) -> Agent {
    let question = question.replace('\n', "");
    Agent::new("asks").command(&["sh", "-c", &ASKS.replace("QUESTION", &question)])
}

/// A home with this agent and these rules.
fn with_rules(agent: Agent, rules: &str) -> TestEnv {
    let env = home_with(&Config::new([agent]));
    let config = std::fs::read_to_string(env.path("config").join("config.toml")).unwrap();
    env.write_config(&format!("{config}\n{rules}"));
    env
}

/// The open questions, once there is one.
fn pending(env: &TestEnv) -> Vec<Value> {
    until("a question", || {
        let list = env.connect().ok("_acpd/interaction/list", json!({}));
        list["interactions"].as_array().filter(|open| !open.is_empty()).cloned()
    })
}

/// Returns the answers in the journal that no person gave.
fn decided(env: &TestEnv, session: &str) -> Vec<Value> {
    let journal = env.journal(session).into_iter().map(|(_, line)| line);
    journal
        .filter(|line| line["method"] == "_acpd/permission_decided")
        .map(|line| line["params"].clone())
        .collect()
}

#[test]
fn a_question_is_answered_from_another_terminal_and_the_turn_goes_on() {
    let env = home([echo()]);
    let run = env.spawn_acpctl(&["run", "-s", "fix", "[ask] say #one"]);
    let open = pending(&env);
    assert_eq!(
        (&open[0]["name"], &open[0]["question"]["title"]),
        (&json!("fix"), &json!("Write demo.txt"))
    );
    let listed = env.acpctl(&["pending"]).success();
    assert!(listed.stdout().contains("Write demo.txt"), "{listed:?}");
    let allowed = env.acpctl(&["allow", open[0]["id"].as_str().unwrap()]).success();
    assert_eq!(allowed.stderr(), "allowed: Write demo.txt (echo, fix)\n");
    let run = run.finish().success().explains(&["answered elsewhere, by acpctl: "]);
    assert!(run.stdout().contains("permission: yes"), "{run:?}");
    assert!(!run.stderr().contains("allowed once by"), "it is told once: {run:?}");
    env.acpctl(&["pending"]).success().explains(&["there are no open questions"]);
    env.acpctl(&["allow"]).code(3);
}

#[test]
fn a_question_that_nobody_looks_at_is_denied_by_the_name_of_its_session() {
    let env = home([echo()]);
    let mut run = env.spawn_acpctl(&["run", "-s", "fix", "[ask] say #one"]);
    pending(&env);
    run.kill();
    env.acpctl(&["deny", "fix"]).success().explains(&["denied: Write demo.txt (echo, fix)"]);
    until("the end of the turn", || {
        (env.session("fix")["turn"]["last"] == "end_turn").then_some(())
    });
    assert!(env.said("fix").contains("permission: no\n"), "{}", env.said("fix"));
}

#[test]
fn h2_a_call_that_changes_is_asked_about_anew_and_its_old_id_allows_nothing() {
    let change = r#"read -r go < FIFO
        echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"'$session'",'\
'"update":{"sessionUpdate":"tool_call_update","toolCallId":"t","rawInput":{"command":"rm -rf all"}}}}'
        read -r said"#;
    let question = PERMISSION.replace('\n', "");
    let dir = tempfile::tempdir().unwrap();
    let fifo = dir.path().join("go");
    assert!(std::process::Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let change = change.replace("FIFO", fifo.to_str().unwrap());
    let script = ASKS.replace("QUESTION", &question).replacen("read -r said", &change, 1);
    let env = with_rules(Agent::new("asks").command(&["sh", "-c", &script]), "");
    let run = env.spawn_acpctl(&["run", "-s", "fix", "go"]);
    let old = pending(&env)[0]["id"].as_str().unwrap().to_owned();
    std::fs::write(&fifo, "go\n").unwrap();
    let new = until("the new question", || {
        pending(&env).into_iter().find(|open| open["question"]["changed"] == 1)
    });
    assert_eq!(new["question"]["shown"]["commands"], json!(["rm -rf all"]));
    env.acpctl(&["allow", &old]).code(3).explains(&["it may be answered already"]);
    let new = new["id"].as_str().unwrap();
    let hint = format!("`acpctl allow {new}` allows it");
    env.acpctl(&["allow", "fix"]).code(5).explains(&["the agent has changed its call", &hint]);
    let shown = env.acpctl(&["pending", "fix"]).success();
    assert!(shown.stdout().contains("changed while you looked"), "{shown:?}");
    env.acpctl(&["allow", new]).success().explains(&["allowed: run `rm -rf all`"]);
    let run = run.finish().success().explains(&["changed while you looked", "  │ rm -rf all"]);
    assert!(run.stdout().contains("got yes"), "{run:?}");
}

#[test]
fn an_option_is_chosen_from_another_terminal() {
    let env = home([echo()]);
    let run = env.spawn_acpctl(&["run", "-s", "fix", "[ask] say #one"]);
    pending(&env);
    let wrong = env.acpctl(&["answer", "fix", "--option", "maybe"]).code(2);
    wrong.explains(&["no option `maybe`", "hint: `acpctl answer ", "--option never`"]);
    env.acpctl(&["answer", "fix", "--option", "never"]).success();
    let run = run.finish().success();
    assert!(run.stdout().contains("permission: never"), "{run:?}");
}

#[test]
fn what_cannot_be_known_again_is_not_allowed_for_always() {
    let env = home([echo()]);
    let run = env.spawn_acpctl(&["run", "-s", "fix", "[ask] say #one"]);
    pending(&env);
    env.acpctl(&["allow", "--always"]).code(2).explains(&["cannot be remembered"]);
    env.acpctl(&["allow"]).success();
    run.finish().success();
}

#[test]
fn who_remembers_a_yes_for_always_is_told_whatever_the_agent_offers() {
    let answered = |question: &str, args: &[&str]| {
        let env = home([asks(question)]);
        let run = env.spawn_acpctl(&["run", "-s", "one", "go"]);
        pending(&env);
        let allowed = env.acpctl(args).success();
        (allowed.stderr().to_owned(), run.finish().success().stdout().to_owned())
    };
    let own = r#"{"optionId":"always","name":"Always allow","kind":"allow_always"},"#;
    let (told, got) = answered(&PERMISSION.replace(own, ""), &["allow", "--always"]);
    assert_eq!(
        told,
        "allowed, from now on: run `make test` (asks, one)\n\
         acpd remembers exactly this call; to undo it: acpctl policy forget 1\n"
    );
    assert!(got.contains("got yes"), "{got}");
    let named = ["allow", "--always", "one", "--option", "always"];
    let (told, got) = answered(PERMISSION, &named);
    assert_eq!(
        told,
        "allowed, from now on: run `make test` (asks, one)\n\
         the agent remembers its own option `Always allow`: it may not ask again, and \
         `policy forget` does not undo that\n\
         acpd remembers exactly this call; to undo it: acpctl policy forget 1\n"
    );
    assert!(got.contains("got always"), "{got}");
}

#[test]
fn a_yes_for_always_holds_over_a_restart_until_it_is_forgotten() {
    let env = home([asks(PERMISSION)]);
    let run = env.spawn_acpctl(&["run", "-s", "one", "go"]);
    pending(&env);
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
    pending(&env);
    env.acpctl(&["deny"]).success();
    other.finish().success();

    env.acpctl(&["policy", "forget", "1"]).success().explains(&["forgot decision 1"]);
    env.acpctl(&["policy", "forget", "1"]).code(3).explains(&["acpctl policy ls"]);
    let run = env.spawn_acpctl(&["run", "-s", "two", "go"]);
    pending(&env);
    env.acpctl(&["deny"]).success();
    let run = run.finish().success();
    assert!(run.stdout().contains("got no"), "{run:?}");
}

#[test]
fn a_flag_answers_the_turn_and_no_other() {
    let env = home([echo()]);
    let yes = env.acpctl(&["run", "-s", "fix", "--yes", "[ask] say #one"]).success();
    assert!(yes.stdout().contains("permission: yes"), "{yes:?}");
    assert!(yes.stderr().contains("allowed by --yes: Write demo.txt"), "{yes:?}");
    let no = env.acpctl(&["run", "-s", "fix", "--deny", "[ask] say #two"]).success();
    assert!(no.stdout().contains("permission: no"), "{no:?}");
    assert!(no.stderr().contains("denied by --deny: Write demo.txt"), "{no:?}");
    let by: Vec<Value> = decided(&env, "fix").into_iter().map(|one| one["by"].clone()).collect();
    assert_eq!(by, ["--yes", "--deny"]);
    // The history tells it, too.
    let log = env.acpctl(&["session", "log", "fix"]).success();
    assert!(log.stdout().contains("allowed by --yes: Write demo.txt"), "{log:?}");
    let run = env.spawn_acpctl(&["run", "-s", "fix", "[ask] say #three"]);
    pending(&env);
    env.acpctl(&["allow"]).success();
    run.finish().success();
}

#[test]
fn run_tells_how_a_form_is_answered_and_the_answer_comes_from_elsewhere() {
    let env = home([asks(FORM)]);
    let mut run = env.spawn_acpctl(&["run", "-s", "fix", "go"]);
    run.wait_stderr("the agent asks: Which branch? (asks, fix)");
    run.wait_stderr("answer it with: acpctl answer ");
    env.acpctl(&["answer", "fix", "--field", "branch=third"]).code(2).explains(&["main, next"]);
    env.acpctl(&["answer", "fix", "--field", "branch=next"]).success();
    let run = run.finish().success();
    assert!(run.stdout().contains("got next"), "{run:?}");
}

#[test]
fn a_rule_that_rejects_beats_yes() {
    let rules = "[[policy.rules]]\nname = \"no writes\"\ndecision = \"reject\"\nkind = \"edit\"\n";
    let env = with_rules(echo(), rules);
    let run = env.acpctl(&["run", "-s", "fix", "--yes", "[ask] say #one"]).success();
    assert!(run.stdout().contains("permission: no"), "{run:?}");
    assert!(run.stderr().contains("denied by rule `no writes`: Write demo.txt"), "{run:?}");
    assert_eq!(decided(&env, "fix")[0]["verdict"], "reject");
}

#[test]
fn a_rule_that_allows_answers_with_nobody_there_and_the_journal_names_it() {
    let rules =
        "[[policy.rules]]\nname = \"tests\"\ndecision = \"allow\"\ncommand = \"make test\"\n";
    let env = with_rules(asks(PERMISSION), rules);
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
    let decided = decided(&env, "fix");
    let [one] = &decided[..] else { panic!("one decision: {decided:?}") };
    assert_eq!((&one["by"], &one["optionId"]), (&json!("rule `tests`"), &json!("yes")));
}

#[test]
fn what_runs_under_an_agent_may_look_and_not_decide() {
    let env = home([echo()]);
    let run = env.spawn_acpctl(&["run", "-s", "fix", "[ask] say #one"]);
    pending(&env);
    let under = |args: &[&str]| {
        let mut command = env.acpctl_command(args);
        command.env("ACPD_HOST", "7-1");
        Running::start(command).finish()
    };
    under(&["pending"]).success();
    under(&["allow"]).code(5).explains(&["a process that runs under an agent"]);
    under(&["answer", "--option", "yes"]).code(5);
    under(&["policy", "forget", "1"]).code(5);
    assert_eq!(env.session("fix")["turn"]["state"], "needs_action");
    env.acpctl(&["deny"]).success();
    run.finish().success();
}
