//! A hostile agent, seen through every command: nothing that it says reaches a terminal as it is.

use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use std::process::Command;

use acpd_test::harness::{Agent, Config, Output, Running, Screen, TestEnv, until};
use acpd_test::hostile::{EVIL, FORGED, evil};
use serde_json::{Value, json};

use crate::home_with;

/// Sequences of acpctl itself for a terminal: its styles, and the one that clears the spinner's line.
const OURS: [&str; 8] = [
    "\r\u{1b}[K",
    "\u{1b}[0m",
    "\u{1b}[1m",
    "\u{1b}[2m",
    "\u{1b}[31m",
    "\u{1b}[32m",
    "\u{1b}[33m",
    "\u{1b}[36m",
];
/// Commands whose stdout is data, byte for byte, where it is no terminal and no JSON.
const DATA: [&str; 9] = [
    "run",
    "attach",
    "acp",
    "session log",
    "session export",
    "session fork",
    "session handoff",
    "agent logs",
    "daemon logs",
];

/// The commands of `acpctl`, as its own help lists them, and which of them have `--json`.
fn commands(env: &TestEnv, path: &[&str], all: &mut BTreeSet<(String, bool)>) {
    let help = env.acpctl(&[path, &["--help"]].concat()).success();
    let list = help.stdout().split_once("\nCommands:\n").map(|(_, list)| list);
    let Some(list) = list else {
        all.insert((path.join(" "), help.stdout().contains("--json")));
        return;
    };
    if help.stdout().contains("\nArguments:\n") {
        all.insert((path.join(" "), help.stdout().contains("--json")));
    }
    let list = list.split_once("\n\n").map_or(list, |(list, _)| list);
    for line in list.lines() {
        // Continuations of the line before are indented by more.
        if let Some(name) = line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')) {
            let name = name.split_whitespace().next().expect("a name");
            // `help` shows the same as `--help`.
            if name == "help" {
                continue;
            }
            commands(env, &[path, &[name]].concat(), all);
        }
    }
}

/// Fails if this has a byte that only the agent can have sent, or a line that it made up.
fn assert_harmless(what: &[&str], text: &str) {
    assert!(!text.contains('\u{fffd}'), "{what:?} wrote no UTF-8: {text:?}");
    let mut rest = text.replace("\r\n", "\n");
    for ours in OURS {
        rest = rest.replace(ours, "");
    }
    let harmful = |char: char| char != '\n' && (char.is_control() || EVIL.contains(char));
    let found = rest.find(|char: char| !char.is_ascii_graphic() && char != ' ' && harmful(char));
    if let Some(at) = found {
        let from = rest[..at].char_indices().rev().nth(60).map_or(0, |(at, _)| at);
        panic!("{what:?} lets {:?} through: {:?}", rest[at..].chars().next(), &rest[from..]);
    }
    // In a block of code every line is the agent's.
    let is_code = what.contains(&"export");
    let forged = rest.lines().find(|line| !is_code && line.starts_with(FORGED));
    assert_eq!(forged, None, "{what:?} shows a line of the agent's as one of its own: {rest}");
}

/// A home with the hostile agent, and what its commands have shown.
struct Stage {
    env: TestEnv,
    commands: BTreeSet<(String, bool)>,
    /// Commands that ran on a terminal, and those that printed JSON.
    seen: BTreeSet<(String, bool)>,
    /// All that terminals showed.
    shown: String,
}

impl Stage {
    fn new() -> Stage {
        let env = home_with(&Config::new([]).daemon("log_level", "\"debug\""));
        let agent = env.program("acpd-hostile-agent").display().to_string();
        let evil = Agent::new("evil").command(&[&agent]);
        let broken = Agent::new("broken").command(&[&agent, "--broken"]).set("restart_budget", "1");
        env.configure(&Config::new([evil, broken]).daemon("log_level", "\"debug\""));
        let mut all = BTreeSet::new();
        commands(&env, &[], &mut all);
        Stage { env, commands: all, seen: BTreeSet::new(), shown: String::new() }
    }

    fn name(&self, args: &[&str]) -> String {
        let line = args.join(" ") + " ";
        let is_it = |(name, _): &&(String, bool)| line.starts_with(&format!("{name} "));
        self.commands
            .iter()
            .rev()
            .find(is_it)
            .unwrap_or_else(|| panic!("no command {args:?}"))
            .0
            .clone()
    }

    fn start(&mut self, args: &[&str]) -> Running {
        self.seen.insert((self.name(args), false));
        let mut command = self.env.acpctl_command(args);
        // A pager has sequences of its own.
        command.env("ACPCTL_PAGER", "cat");
        Running::on_terminal(command)
    }

    fn end(&mut self, args: &[&str], running: Running) {
        let done = running.finish();
        assert_harmless(args, done.stdout());
        self.shown.push_str(done.stdout());
    }

    /// Runs a command on a terminal.
    fn terminal(&mut self, args: &[&str]) {
        self.talk(args, &[]);
    }

    /// Runs a command on a terminal, and types something when something is shown.
    fn talk(&mut self, args: &[&str], talk: &[(&str, &str)]) {
        let mut running = self.start(args);
        for (shown, keys) in talk {
            running.wait_stdout(shown);
            running.types(keys);
        }
        self.end(args, running);
    }

    /// Follows a session on a terminal until this is shown.
    fn follow(&mut self, args: &[&str], until: &str) {
        let mut running = self.start(args);
        running.wait_stdout(until);
        running.interrupt();
        self.end(args, running);
    }

    /// Shows a full screen, and types something when something is on it. What is looked at is the screen: the
    /// sequences that draw it are the program's own.
    fn screen(&mut self, args: &[&str], talk: &[(&str, &str)]) {
        self.seen.insert((self.name(args), false));
        let mut screen = Screen::start(self.env.acpctl_command(args), (120, 40));
        for (shown, keys) in talk {
            let seen = screen.sees(shown);
            assert_harmless(args, &seen);
            self.shown.push_str(&seen);
            screen.types(keys);
        }
        assert!(screen.ends().success());
        screen.gives_back();
    }

    /// Runs a command whose output goes to pipes.
    fn piped(&mut self, args: &[&str]) -> Output {
        self.check(args, self.env.acpctl(args))
    }

    fn check(&mut self, args: &[&str], done: Output) -> Output {
        let name = self.name(args);
        assert_harmless(args, done.stderr());
        let is_json = args.contains(&"--json") || args.contains(&"json");
        if is_json || !DATA.contains(&&*name) {
            assert_harmless(args, done.stdout());
        }
        if is_json {
            let values = serde_json::Deserializer::from_str(done.stdout()).into_iter::<Value>();
            assert!(values.map(Result::unwrap).count() > 0, "{args:?} printed no JSON");
            self.seen.insert((name, true));
        }
        done
    }

    /// Runs a command in both ways.
    fn both(&mut self, args: &[&str]) {
        self.terminal(args);
        self.piped(args);
    }

    /// Runs a command in both ways, and with JSON.
    fn all(&mut self, args: &[&str]) {
        self.both(args);
        self.piped(&[args, &["--json"]].concat());
    }

    /// Starts a turn that asks, does something meanwhile, and waits for its end.
    fn while_asked(&mut self, prompt: &str, act: impl FnOnce(&mut Stage)) {
        let args = ["run", "-s", "fix", prompt];
        let running = self.env.spawn_acpctl(&args);
        self.env.wait_questions();
        act(self);
        self.check(&args, running.finish());
    }
}

#[test]
fn m5_m6_l5_nothing_of_a_hostile_agent_reaches_a_terminal_as_it_is() {
    let mut stage = Stage::new();
    stage.both(&["daemon", "start"]);
    turns(&mut stage);
    stage.screen(
        &["top"],
        &[("RECENT", "\u{1b}[B\u{1b}[B"), ("RECENT", "?"), ("KEYS", "\u{1b}"), ("RECENT", "q")],
    );
    stage.screen(&["chat", "fix"], &[("live", "\t"), ("fold", "Z"), ("fold", "g"), ("fold", "q")]);
    stage.screen(&["chat", "fix", "--plain"], &[("each line is a prompt", "\u{4}")]);
    questions(&mut stage);
    tools(&mut stage);
    traces(&mut stage);
    sessions(&mut stage);
    agents(&mut stage);
    web(&mut stage);
    stage.both(&["completions", "bash"]);
    stage.all(&["daemon", "status"]);
    stage.both(&["daemon", "logs"]);
    stage.all(&["daemon", "log-level"]);
    stage.both(&["daemon", "log-level", &evil("level")]);
    stage.both(&["service", "install", "--dry-run"]);
    stage.both(&["service", "uninstall", "--purge", "--dry-run"]);
    stage.piped(&["service", "uninstall", "--purge"]);
    stage.talk(&["service", "uninstall", "--purge"], &[("y/n", "n\n")]);
    stage.all(&["service", "status"]);
    stage.both(&["service", "logs"]);
    stage.both(&["daemon", "restart"]);
    stage.both(&["daemon", "reload"]);
    stage.all(&["config", "check"]);
    stage.all(&["doctor"]);
    stage.all(&["metrics"]);
    stage.all(&["host", "check", "nowhere.invalid"]);
    stage.both(&["report", "--output", "-"]);
    stage.all(&["config", "show"]);
    stage.both(&["config", "show", "--file"]);
    stage.both(&["config", "schema"]);
    stage.both(&["config", "path"]);
    let edit = &["config", "edit"];
    let mut command = stage.env.acpctl_command(edit);
    command.env("EDITOR", "true");
    stage.end(edit, Running::on_terminal(command));
    stage.seen.insert(("config edit".to_owned(), false));
    let limits = stage.env.path("config").join("config.toml");
    let config = std::fs::read_to_string(&limits).unwrap();
    std::fs::write(&limits, config + "\n[retention]\nmax_size = 4096\n").unwrap();
    stage.both(&["daemon", "reload"]);
    stage.all(&["gc", "--dry-run"]);
    stage.talk(&["gc"], &[("y/n", "n\n")]);
    let file = stage.env.path("backup.db").display().to_string();
    stage.all(&["backup", &file]);
    stage.talk(&["restore", &file], &[("y/n", "n\n")]);
    stage.all(&["restore", &file, "--yes", "--force"]);
    stage.both(&["daemon", "stop"]);

    for (command, has_json) in &stage.commands {
        assert!(stage.seen.contains(&(command.clone(), false)), "`{command}` was not tried");
        let has_shown = stage.seen.contains(&(command.clone(), true));
        assert!(!has_json || has_shown, "`{command} --json` was not tried");
    }
    let escaped = |field: &&&str| {
        let escaped = format!("{field}<U+001B>]52;c;eA==<U+0007><U+001B>[31m");
        !stage.shown.contains(&escaped)
    };
    assert_eq!(FIELDS.iter().filter(escaped).collect::<Vec<_>>(), [&""; 0], "never shown");
}

/// An agent reads what the hostile one did; a person may have started the server on a terminal.
fn tools(stage: &mut Stage) {
    let call = |id: u32, name: &str, arguments: Value| {
        let params = json!({"name": name, "arguments": arguments});
        format!(
            "{}\n",
            json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
        )
    };
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "host", "version": "1"}});
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let began = [hello.to_string(), ready.to_string()].join("\n") + "\n";
    stage.talk(
        &["mcp"],
        &[
            ("", &began),
            ("serverInfo", &call(2, "result", json!({"ticket": "fix"}))),
            ("stopReason", &call(3, "list_sessions", json!({}))),
            ("leftOut", &call(4, "list_agents", json!({}))),
            ("broken", &call(5, "read_history", json!({"session": "fix"}))),
            ("nextSeq", "\u{4}"),
        ],
    );
}

/// Browsers and programs from elsewhere may have any name.
fn web(stage: &mut Stage) {
    let mut server = stage.env.spawn_acpctl(&["web", "--port", "0"]);
    server.wait_stderr("The code lets one browser in");
    let name = evil("token");
    stage.both(&["web", "pair", "--name", &name]);
    stage.terminal(&["web", "token", "new", &name]);
    stage.all(&["web", "token", "list"]);
    stage.piped(&["web", "token", "revoke", &name, "--json"]);
    stage.both(&["web", "token", "revoke", &name]);
}

/// The agent's fields that some view shows.
const FIELDS: [&str; 67] = [
    "agent name",
    "agent version",
    "answer ",
    "authenticate error",
    "authenticate error details",
    "call title",
    "choice",
    "choice title",
    "command",
    "compaction",
    "currency",
    "diff path",
    "ended call",
    "field",
    "field default",
    "field format",
    "field text",
    "field title",
    "folder",
    "form message",
    "form text",
    "form title",
    "initialize error",
    "kind",
    "link",
    "link name",
    "login id",
    "login name",
    "mime",
    "mode id",
    "mode name",
    "mode text",
    "new line ",
    "new mode",
    "new value",
    "no",
    "no name",
    "notice",
    "notice text",
    "option id",
    "option name",
    "option text",
    "other",
    "other call id",
    "other name",
    "page message",
    "page url",
    "place",
    "plan entry",
    "priority",
    "prompt error",
    "prompt error details",
    "second login",
    "session id",
    "session title",
    "slash",
    "slash hint",
    "slash text",
    "stderr ",
    "stop reason",
    "subagent",
    "subagent state",
    "thought ",
    "value",
    "value name",
    "yes",
    "yes name",
];

fn turns(stage: &mut Stage) {
    stage.terminal(&["run", "-s", "fix", "--thoughts", "say"]);
    let answer = stage.piped(&["run", "-s", "fix", "say"]).success();
    assert!(answer.stdout().contains(&format!("answer {EVIL}\n")), "{answer:?}");
    let object = stage.piped(&["run", "-s", "fix", "--json", "say"]).success();
    let object: Value = serde_json::from_str(object.stdout()).unwrap();
    assert_eq!(object["answer"], format!("answer {EVIL}"));
    let lines = stage.piped(&["run", "-s", "fix", "--json-stream", "say"]).success();
    let says = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        line["params"]["update"]["content"]["text"] == format!("answer {EVIL}\n")
    };
    assert!(lines.stdout().lines().any(says), "{lines:?}");
    stage.terminal(&["run", "say"]);
    stage.both(&["run", "-s", "fix", "fail"]);
    stage.follow(&["attach", "fix", "--thoughts"], "turn failed");
    let mut json = stage.env.spawn_acpctl(&["attach", "fix", "--json"]);
    json.wait_stdout("prompt error");
    json.interrupt();
    stage.check(&["attach", "fix", "--json"], json.finish());
    let initialize = json!({"id": 0, "method": "initialize", "params": {"protocolVersion": 1}});
    stage.talk(&["acp"], &[("", &format!("{initialize}\n")), ("agent version", "\u{4}")]);
}

fn traces(stage: &mut Stage) {
    let full = ["trace", "fix", "--full"];
    let mut tracing = stage.start(&full);
    tracing.wait_stdout("Ctrl-C ends it");
    stage.piped(&["run", "-s", "fix", "say"]);
    tracing.wait_stdout("stopReason");
    tracing.interrupt();
    stage.end(&full, tracing);
    let json = ["trace", "--agent", "evil", "--full", "--clients", "--json"];
    let mut tracing = stage.env.spawn_acpctl(&json);
    tracing.wait_stderr("Ctrl-C ends it");
    stage.piped(&["run", "-s", "fix", "say"]);
    tracing.wait_stdout("\"took\"");
    tracing.interrupt();
    stage.check(&json, tracing.finish());
}

fn questions(stage: &mut Stage) {
    stage.talk(&["run", "-s", "fix", "ask"], &[("[n]", "n")]);
    stage.while_asked("ask", |stage| {
        stage.all(&["pending"]);
        stage.both(&["answer", "fix", "--option", "none"]);
        stage.piped(&["answer", "fix"]);
        stage.talk(&["answer", "fix"], &[("> ", "2\n")]);
    });
    stage.while_asked("plain", |stage| {
        stage.all(&["pending", "fix"]);
        stage.talk(&["allow", "fix", "--always"], &[("to allow it", "v\nallow\n")]);
    });
    stage.both(&["run", "-s", "fix", "plain"]);
    stage.all(&["policy", "ls"]);
    stage.terminal(&["policy", "forget", "1"]);
    stage.all(&["policy", "test", "--command", &evil("ls"), "--title", &evil("title")]);
    stage.while_asked("ask", |stage| {
        let mut attached = stage.start(&["attach", "fix", "--control", "--tail"]);
        attached.wait_stdout("[n]");
        stage.terminal(&["deny", "fix"]);
        attached.wait_stdout("answered elsewhere, by acpctl");
        attached.interrupt();
        stage.end(&["attach"], attached);
    });
    stage.while_asked("form", |stage| {
        stage.both(&["pending"]);
        stage.piped(&["answer", "fix"]);
        stage.both(&["answer", "fix", "--field", "choice=nothing"]);
        stage.both(&["answer", "fix", "--field", &evil("no")]);
        stage.talk(&["answer", "fix"], &[("choice title", "x\n1\n"), ("field text", "\n")]);
    });
    stage.while_asked("page", |stage| {
        stage.both(&["pending"]);
        stage.piped(&["answer", "fix"]);
        stage.talk(&["answer", "fix"], &[("y/n", "?\nn\n")]);
    });
}

fn sessions(stage: &mut Stage) {
    stage.all(&["ps"]);
    stage.all(&["queue", "fix"]);
    stage.both(&["queue", "rm", "fix", "7"]);
    stage.both(&["queue", "edit", "fix", "7", &evil("words")]);
    stage.both(&["queue", "move", "fix", "7", "up"]);
    for by in ["agent", "session", "workspace", "day"] {
        stage.all(&["usage", "--by", by]);
    }
    stage.all(&["session", "ls"]);
    stage.all(&["session", "show", "fix"]);
    stage.all(&["session", "log", "fix", "--thoughts"]);
    stage.both(&["session", "export", "fix"]);
    stage.both(&["session", "export", "fix", "--format", "json"]);
    stage.all(&["session", "mode", "fix"]);
    stage.both(&["session", "mode", "fix", "none"]);
    stage.both(&["session", "mode", "fix", &evil("mode name")]);
    stage.all(&["session", "set", "fix"]);
    stage.both(&["session", "set", "fix", "none"]);
    stage.both(&["session", "set", "fix", &evil("option name")]);
    stage.both(&["session", "set", "fix", &evil("option name"), "none"]);
    stage.both(&["session", "set", "fix", &evil("option id"), "v2"]);
    stage.all(&["session", "commands", "fix"]);
    until("the index", || {
        let found = stage.env.acpctl(&["session", "search", "answer"]).success();
        (!found.stdout().is_empty()).then_some(())
    });
    stage.all(&["session", "search", "answer"]);
    stage.both(&["session", "search", "call"]);
    stage.both(&["session", "rename", "fix", &evil("name")]);
    stage.both(&["session", "label", "fix", &evil("label")]);
    stage.all(&["session", "label", "fix", "urgent"]);
    stage.both(&["session", "show", &evil("nobody")]);
    stage.both(&["session", "fork", "fix", "--name", "two"]);
    let dir = stage.env.work("elsewhere").display().to_string();
    stage.terminal(&["session", "move", "two", "--cwd", &dir]);
    stage.both(&["session", "title", "fix", &evil("title")]);
    stage.both(&["session", "title", "fix", "--clear"]);
    stage.both(&["session", "archive", "fix"]);
    stage.all(&["session", "ls", "--archived"]);
    stage.both(&["session", "unarchive", "fix"]);
    stage.both(&["run", "--steer", "fix", "say"]);
    stage.all(&["session", "handoff", "fix", "--to", "evil", "say"]);
    stage.both(&["session", "worktree", "fix"]);
    let repository = repository(&stage.env);
    stage.terminal(&["run", "--cwd", &repository, "--worktree=tree", "say"]);
    stage.all(&["session", "worktree", "tree"]);
    stage.all(&["session", "worktree"]);
    stage.both(&["session", "reseed", "fix"]);
    stage.both(&["session", "reseed", "fix", "--discard"]);
    stage.terminal(&["session", "close", "fix"]);
    stage.terminal(&["run", "-s", "fix", "say"]);
    stage.terminal(&["run", "-s", "fix", "die"]);
    stage.piped(&["run", "-s", "fix", "die"]);
    stage.all(&["wait", "fix"]);
    stage.both(&["cancel", "fix"]);
    stage.both(&["session", "rm", "--dry-run", "fix"]);
    stage.piped(&["session", "rm", "fix"]);
    stage.talk(&["session", "rm", "fix", &evil("nobody")], &[("y/n", "y\n")]);
    stage.both(&["session", "undo", &evil("nobody")]);
    stage.both(&["session", "undo", "fix"]);
}

/// A git repository with one commit.
fn repository(env: &TestEnv) -> String {
    let dir = env.work("repository");
    let who = ["-c", "user.name=n", "-c", "user.email=n@example.org"];
    for args in [&["init", "--quiet"][..], &["commit", "--quiet", "--allow-empty", "-m", "one"]] {
        let status = Command::new("git").current_dir(&dir).args(who).args(args).status();
        assert!(status.unwrap().success(), "git {args:?}");
    }
    dir.display().to_string()
}

fn agents(stage: &mut Stage) {
    stage.both(&["agent", "start", "broken"]);
    stage.both(&["run", "-a", "broken", "say"]);
    stage.all(&["agent", "ls"]);
    stage.both(&["agent", "ls", "--all"]);
    stage.all(&["agent", "show", "evil"]);
    stage.both(&["agent", "install", "evil"]);
    stage.all(&["agent", "show", "broken"]);
    stage.all(&["agent", "env", "evil"]);
    stage.both(&["agent", "logs", "evil"]);
    stage.both(&["agent", "restart", "evil"]);
    stage.both(&["agent", "stop", "evil"]);
    stage.both(&["agent", "start", "evil"]);
    let login =
        [("second login", "1\n"), ("choice title", "1\n"), ("field text", "\n"), ("y/n", "n\n")];
    stage.talk(&["auth", "login", "evil"], &login);
    stage.both(&["auth", "login", "evil", "--method", "none"]);
    stage.piped(&["auth", "login", "evil"]);
    stage.all(&["auth", "status"]);
    stage.all(&["auth", "status", "evil"]);
    stage.piped(&["auth", "logout", "evil"]);
    stage.talk(&["auth", "logout", "evil"], &[("y/n", "y\n")]);
    let agent = stage.env.program("acpd-hostile-agent");
    symlink(agent, stage.env.path("bin").join("copilot")).unwrap();
    stage.all(&["agent", "discover"]);
}
