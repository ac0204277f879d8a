//! Credentials by reference: an agent gets them, and nothing else that acpd writes does.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use acpd_test::harness::{Config, TestEnv};
use serde_json::json;

use crate::{echo, home};

/// Part of every secret of these tests.
const CANARY: &str = "canary-91f4";

/// A file that only its owner may read.
fn secret(env: &TestEnv, name: &str, text: &str) -> String {
    let path = env.path(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    path.display().to_string()
}

fn credentials(env: &TestEnv, list: &str) {
    let agent = echo().flags("mcp-http").set("credentials", list);
    env.configure(&Config::new([agent]).daemon("log_level", "\"trace\""));
}

/// Returns the value of a variable in the agent.
fn variable(env: &TestEnv, name: &str) -> String {
    env.acpctl(&["run", &format!("[env {name}]")]).success().stdout().to_owned()
}

#[test]
fn each_source_is_looked_up_and_beats_a_variable_of_the_same_name() {
    let env = home([]);
    let file = secret(&env, "given/token", "of the file\n");
    let list = format!(
        "{{ A = {{ file = '{file}' }}, B = {{ command = ['printf', 'of the command'] }}, \
         HOME = {{ env = 'SOME_TOKEN' }}, D = {{ systemd = 'token' }} }}"
    );
    credentials(&env, &list);
    let mut start = env.acpctl_command(&["daemon", "start"]);
    start.env("SOME_TOKEN", "of the variable");
    start.env("CREDENTIALS_DIRECTORY", env.path("given"));
    assert!(start.output().unwrap().status.success());
    for (name, value) in [
        ("A", "of the file"),
        ("B", "of the command"),
        ("HOME", "of the variable"),
        ("D", "of the file"),
    ] {
        let said = variable(&env, name);
        assert!(said.contains(value), "{name}: {said}");
    }
}

#[test]
fn a_credential_that_is_not_found_is_a_failed_start_that_names_it_and_no_value() {
    for (source, why) in [
        ("command = 'echo canary-91f4; echo canary-91f4 >&2; exit 3'", "exit code 3"),
        ("command = ['/no/such/program', 'canary-91f4']", "cannot start `/no/such/program`"),
        ("command = 'true'", "wrote nothing"),
        ("file = '/no/such/file'", "cannot open `/no/such/file`"),
        ("env = 'NO_SUCH_VARIABLE'", "`NO_SUCH_VARIABLE` is not set"),
        ("systemd = 'token'", "`$CREDENTIALS_DIRECTORY` is not set"),
    ] {
        let env = home([]);
        credentials(&env, &format!("{{ TOKEN = {{ {source} }} }}"));
        let start = env.acpctl(&["agent", "start", "echo"]).code(1);
        let start = start.explains(&["echo", "TOKEN", why]);
        assert!(!start.stderr().contains(CANARY), "{start:?}");
        assert!(!env.daemon_log().contains(CANARY), "{}", env.daemon_log());
    }
}

/// The files below a directory that hold this text.
fn holders(dir: &Path, text: &str, found: &mut Vec<String>) {
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() {
            holders(&path, text, found);
        } else if kind.is_file()
            && fs::read(&path).is_ok_and(|bytes| {
                bytes.windows(text.len()).any(|window| window == text.as_bytes())
            })
        {
            found.push(path.display().to_string());
        }
    }
}

/// Returns the files and commands of acpd that show this text.
fn leaks(env: &TestEnv, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for name in ["state", "run"] {
        holders(&env.path(name), text, &mut found);
    }
    for args in [
        &["ps", "--json"][..],
        &["agent", "show", "echo", "--json"],
        &["auth", "status", "--json"],
        &["session", "show", "fix", "--json"],
        &["session", "log", "fix", "--json"],
        &["session", "export", "fix", "--format", "json"],
        &["agent", "show", "echo"],
    ] {
        let said = env.acpctl(args);
        if said.stdout().contains(text) || said.stderr().contains(text) {
            found.push(format!("{args:?}"));
        }
    }
    found
}

#[test]
fn secrets_are_in_nothing_that_acpd_writes() {
    let env = home([]);
    let of = |slot: &str| format!("{CANARY}-{slot}");
    let file = secret(&env, "given/file", &of("file"));
    let shown = secret(&env, "given/shown", &of("command"));
    let list = format!(
        "{{ A = {{ file = '{file}', ttl = '1h' }}, B = {{ command = ['cat', '{shown}'] }}, \
         C = {{ env = 'SOME_TOKEN' }} }}"
    );
    credentials(&env, &list);
    let config = env.path("config").join("config.toml");
    let text = fs::read_to_string(&config).unwrap();
    let server = format!(
        "\n[mcp.files]\ncommand = 'files'\n\
         env = {{ TOKEN = {{ file = '{file}' }}, TEXT = '{}' }}\n",
        of("mcp-env"),
    );
    let far = format!(
        "\n[mcp.web]\nurl = 'https://example.com/web'\n\
         headers = {{ Authorization = {{ file = '{file}', prefix = 'Bearer ' }}, Plain = '{}' }}\n",
        of("mcp-header"),
    );
    let text = text.replace("env = {", &format!("env = {{ PLAIN = '{}',", of("env")));
    env.write_config(&format!("{text}{server}{far}"));
    let mut start = env.acpctl_command(&["daemon", "start"]);
    assert!(start.env("SOME_TOKEN", of("variable")).output().unwrap().status.success());

    let mut client = env.client("echo");
    let servers = json!([{"name": "mine", "command": "mine", "args": [],
        "env": [{"name": "TOKEN", "value": "client-canary-77ab"}]},
        {"type": "http", "name": "far", "url": "https://example.com/mcp",
        "headers": [{"name": "Authorization", "value": "Bearer client-canary-77ab"}]}]);
    let cwd = env.work("main");
    let new = json!({"cwd": cwd, "mcpServers": servers, "_meta": {"_acpd": {"name": "fix"}}});
    let made = client.ok("session/new", new);
    let session = made["sessionId"].as_str().unwrap().to_owned();
    let got = env.received("echo", "session/new")[0].to_string();
    for slot in ["mcp-env", "mcp-header"] {
        assert!(got.contains(&of(slot)), "{slot} reaches the agent: {got}");
    }
    assert_eq!(got.matches("client-canary-77ab").count(), 2, "{got}");
    assert!(got.contains(&format!("Bearer {}", of("file"))), "{got}");
    client.say(&session, "say #one").unwrap();
    env.kill_agent("echo");
    client.say(&session, "say #two").unwrap();
    env.acpctl(&["run", "-s", "fix", "[auth]"]).code(4);
    assert_eq!(leaks(&env, CANARY), Vec::<String>::new());

    // Values of a client are sent again at a restore: they are in the database, and go with the session.
    let mut held = leaks(&env, "client-canary-77ab");
    assert!(held.iter().any(|place| place.contains("acpd.db")), "{held:?}");
    held.retain(|place| !place.contains("acpd.db"));
    assert_eq!(held, Vec::<String>::new());
    env.acpctl(&["session", "rm", "--yes", "--now", "fix"]).success();
    env.acpctl(&["daemon", "stop"]).success();
    let mut held = Vec::new();
    holders(&env.path("state"), "client-canary-77ab", &mut held);
    assert_eq!(held, Vec::<String>::new());
}

/// The next daemon sends a line again with its secrets, which no journal has.
#[cfg(feature = "crash-points")]
#[test]
fn a_daemon_that_dies_around_a_line_loses_no_server_of_it() {
    for (count, point) in
        (1..=8).flat_map(|count| ["after-commit", "host-write"].map(|point| (count, point)))
    {
        let env = home([]);
        let file = secret(&env, "given/token", CANARY);
        let server =
            format!("[mcp.files]\ncommand = 'files'\nenv = {{ TOKEN = {{ file = '{file}' }} }}");
        env.configure(&Config::new([echo()]).tables(&server));
        let what = format!("{point}:{count}");
        // The daemon may die on its way to being ready.
        let mut start = env.acpctl_command(&["daemon", "start"]);
        start.env("ACPD_CRASH", &what).output().unwrap();
        let _ = env.acpctl(&["run", "-s", "fix", "say #one"]);

        let requests =
            ["session/new", "session/resume"].map(|method| env.received("echo", method)).concat();
        assert!(!requests.is_empty(), "{what}");
        for request in requests {
            assert_eq!(
                request["params"]["mcpServers"][0]["env"][0]["value"], CANARY,
                "{what}: {request}"
            );
        }
        let mut held = Vec::new();
        holders(&env.path("state"), CANARY, &mut held);
        assert_eq!(held, Vec::<String>::new(), "{what}");
    }
}

/// An agent that works only with the newest token, which a command gives to it.
fn token_of(env: &TestEnv, ttl: &str) {
    let given = env.path("token").display().to_string();
    let list = format!("{{ TOKEN = {{ command = ['cat', '{given}'], ttl = '{ttl}' }} }}");
    env.configure(&Config::new([echo().flags("auth-token=TOKEN").set("credentials", &list)]));
}

/// Sets the token that the agent accepts from now on, and the one that the command gives.
fn set_token(env: &TestEnv, wanted: &str, given: &str) {
    fs::create_dir_all(env.agent_state("echo")).unwrap();
    fs::write(env.agent_state("echo").join("token"), wanted).unwrap();
    fs::write(env.path("token"), given).unwrap();
}

#[test]
fn a_token_that_ran_out_heals_by_itself() {
    let env = home([]);
    token_of(&env, "1ms");
    set_token(&env, "one", "one");
    let mut client = env.client("echo");
    let session = client.new_session(&env.work("main"), Some("fix"));
    client.say(&session, "say #one").unwrap();
    let first = env.agent_pid("echo");
    set_token(&env, "two", "two");
    client.say(&session, "say #two").unwrap();
    assert!(client.said(&session).contains("tags=one,two"), "{}", client.said(&session));
    assert_ne!(env.agent_pid("echo"), first);
    assert_eq!(env.agent("echo")["restarts"], 0);

    // A new session finds it so as well.
    set_token(&env, "three", "three");
    env.acpctl(&["run", "say #one"]).success();

    // A command that gives no better one is asked once.
    set_token(&env, "four", "old");
    let starts = env.received("echo", "initialize").len();
    env.acpctl(&["run", "-s", "fix", "say #three"]).code(4);
    assert_eq!(env.received("echo", "initialize").len(), starts + 1);
    env.acpctl(&["run", "-s", "fix", "say #three"]).code(4);
    assert_eq!(env.received("echo", "initialize").len(), starts + 1);
    assert_eq!(env.agent("echo")["auth"]["state"], "needs_login");
}
