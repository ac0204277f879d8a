//! Commands for the daemon of another machine. The test plays ssh: it runs the command in another
//! home.

use std::collections::BTreeSet;
use std::fs;

use acpd_api::method;
use acpd_test::harness::{Config, Running, Screen, TestEnv, until};
use serde_json::{Value, json};

use crate::web::Web;
use crate::{echo, home, home_with};

/// A home with an ssh that leads to others by their destination, and writes the pid of each relay.
fn near(far: &[(&str, &TestEnv)], config: Config) -> TestEnv {
    let near = home_with(&config);
    let cases = far.iter().map(|(destination, far)| {
        let variables = ["RUNTIME", "STATE", "CONFIG"].map(|name| {
            let folder = name.to_lowercase().replace("runtime", "run");
            format!("ACPD_{name}_DIR={}", far.path(&folder).display())
        });
        let home = far.path("home").display().to_string();
        format!("{destination}) set -- \"$3\" HOME='{home}' {} ;;\n", variables.join(" "))
    });
    let acpctl = near.program("acpctl");
    near.install(
        "ssh",
        &format!(
            "while [ \"$1\" != -- ]; do shift; done\n\
             case \"$2\" in\n{}\
             hangs) exec sleep 100 ;;\n\
             *) echo \"ssh: $2: no such host\" >&2; exit 255 ;;\nesac\n\
             echo $$ >> '{}'\n\
             echo 'Welcome to the box'\n\
             far=$1; shift\n\
             cd / && exec env -i \"$@\" PATH='{}:/usr/bin:/bin' SHLVL=1 sh -c \"$far\"",
            cases.collect::<String>(),
            near.path("relays").display(),
            acpctl.parent().expect("its folder").display(),
        ),
    );
    near
}

fn relays_end(near: &TestEnv) {
    until("the end of all relays", || {
        let mut relays = fs::read_to_string(near.path("relays")).ok()?;
        relays.retain(|c| c.is_ascii_digit() || c == '\n');
        relays.lines().all(|pid| !fs::exists(format!("/proc/{pid}")).unwrap_or(true)).then_some(())
    });
}

const BOX: &str = "[hosts.box]\nssh = \"me@box\"\n";

fn on_box<'a>(args: &[&'a str]) -> Vec<&'a str> {
    [&["--host", "box"], args].concat()
}

/// Kills the first relay.
fn cut(near: &TestEnv) {
    let relays = fs::read_to_string(near.path("relays")).expect("a relay");
    let first = relays.lines().next().expect("a pid");
    near.command("kill").args(["-9", first]).status().expect("a signal");
}

#[test]
fn an_agent_on_another_machine_works_as_one_here_and_outlives_the_connection() {
    let far = home([echo()]);
    let work = far.work("main").display().to_string();
    let map =
        format!("{BOX}start = true\nmap = {{ \"/\" = \"/nowhere\", \"NEAR\" = \"{work}\" }}\n");
    let near = near(&[("me@box", &far)], Config::new([]).tables(&map));
    near.write_config(&map.replace("NEAR", &near.work("main").display().to_string()));

    // The daemon is started there, in the same place of the tree.
    let mut asked =
        near.spawn_acpctl(&on_box(&["run", "-s", "main", "[chunks 2] [pause middle] [chunks 2]"]));
    asked.wait_stdout("line 2");
    far.wait_point("middle");
    let session = far.session("main");
    assert_eq!(session["cwd"], *work);
    assert_eq!(near.json(&on_box(&["session", "show", "main"]))["sessionId"], session["sessionId"]);

    // The way there breaks in the middle of an answer.
    cut(&near);
    far.release("middle");
    let done = asked.finish().success();
    let lines: Vec<_> = done.stdout().lines().filter(|line| line.starts_with("line ")).collect();
    assert_eq!(lines, ["line 1", "line 2", "line 1", "line 2"]);
    assert!(!near.socket().exists(), "nothing is started here");
    far.acpctl(&["daemon", "stop"]).success();
    relays_end(&near);
}

#[test]
fn what_keeps_a_command_from_another_machine_is_told() {
    let far = home([echo()]);
    let near = near(&[("me@box", &far)], Config::new([]).tables(BOX));
    let cases: [(&[&str], i32, &[&str]); 4] = [
        (&["--host", "box", "ps"], 3, &["acpd is not running on `box`", "start = true"]),
        (&["--host", "other", "ps"], 1, &["`other`: ssh: other: no such host", "ssh other"]),
        (&["--host", "box", "backup", "x"], 2, &["`--host` is not for this command", "ssh box"]),
        (&["--host=-oProxyCommand=x", "ps"], 2, &["is not a host"]),
    ];
    for (args, code, words) in cases {
        near.acpctl(args).code(code).explains(words);
    }
    let checked = near.acpctl(&["host", "check"]).code(1);
    assert!(checked.stdout().starts_with("problem  box"), "{checked:?}");
    assert!(!far.socket().exists());
    // On a terminal, the user is asked.
    let mut asked = Running::on_terminal(near.acpctl_command(&on_box(&["pending"])));
    asked.wait_stdout("start it there? y/n > ");
    asked.types("y\n");
    assert!(asked.finish().success().stdout().contains("there are no open questions"));
    let checked = near.json(&["host", "check", "box"]);
    assert_eq!(checked["findings"][0]["state"], "ok", "{checked}");
    let done = near.acpctl_command(&["ps"]).env("ACPCTL_HOST", "box").output().expect("ps");
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(said.contains(&format!("pid {}", far.daemon_pid())), "{done:?}");
}

#[test]
fn sessions_of_all_machines_are_in_one_list() {
    let far = [home([echo()]), home([echo()])];
    let hosts = format!("{BOX}[hosts.pc]\nssh = \"me@pc\"\n");
    let config = |more: &str| Config::new([echo()]).tables(&format!("{hosts}{more}"));
    let dead = "[hosts.dead]\n";
    let unreachable = config(&format!("{dead}[hosts.late]\nssh = \"hangs\"\n"));
    let near = near(&[("me@box", &far[0]), ("me@pc", &far[1])], unreachable);
    for home in far.iter().chain([&near]) {
        home.acpctl(&["run", "-s", "main", "one"]).success();
    }

    let all = near.json(&["--host", "all", "ps"]);
    let names = |list: &Value| -> BTreeSet<String> {
        let rows = list["sessions"].as_array().expect("sessions").iter();
        rows.map(|row| row["name"].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!(names(&all), ["main", "box/main", "pc/main"].map(str::to_owned).into());
    let errors = all["hosts"].as_array().expect("hosts").iter();
    let errors: Vec<_> = errors.filter_map(|host| host["error"].as_str()).collect();
    assert_eq!(errors.len(), 2, "{all}");
    assert!(errors[0].contains("ssh: dead: no such host"), "{errors:?}");
    assert!(errors[1].contains("`late`"), "{errors:?}");
    near.configure(&config(dead));
    let shown = near.acpctl(&["--host", "all", "ps"]).success();
    assert!(shown.stdout().contains("\nbox/main  box/echo"), "{}", shown.stdout());
    let mut top = Screen::start(near.acpctl_command(&["--host", "all", "top"]), (100, 24));
    top.sees("box/main");
    top.sees("not reachable: dead");
    top.types("q");
    assert!(top.ends().success());

    let page = Web::start_with(&near, &["--host", "all"]);
    let watched = page.sign_in().socket().expect("a socket").call(method::WATCH, json!({}));
    assert_eq!(names(&watched.expect("rows")).len(), 3);

    // A name of another machine works as any name.
    let asked = near.spawn_acpctl(&["run", "-s", "box/asks", "[ask]"]);
    far[0].wait_questions();
    let open = near.json(&["--host", "all", "pending"]);
    let id = open["interactions"][0]["id"].as_str().expect("an id");
    assert!(id.starts_with("box/"), "{id}");
    near.acpctl(&["allow", id]).success();
    asked.finish().success();
    let mut by_agent = near.acpctl_command(&["session", "rename", "box/asks", "taken"]);
    let refused = by_agent.env("ACPD_HOST", "agent-1").output().expect("acpctl");
    let refused = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.contains("under an agent"), "{refused}");
    let waited = near.acpctl(&["wait", "box/asks", "main", "pc/main"]).success();
    let waited: BTreeSet<_> = waited.stdout().lines().collect();
    assert_eq!(waited, ["box/asks end_turn", "main end_turn", "pc/main end_turn"].into());
    near.acpctl(&["session", "rm", "--yes", "pc/main"]).success();
    assert_eq!(names(&near.json(&["--host", "all", "ps"])).len(), 3);
    near.acpctl(&["session", "rename", "main", "box/main"]).success();
    let shown = near.json(&["session", "show", "/box/main"]);
    assert_eq!((&shown["name"], &shown["agent"]), (&"/box/main".into(), &"echo".into()));
    near.acpctl(&["attach", "box/none"]).code(3).explains(&["box/none"]);
    near.acpctl(&["--host", "all", "gc"]).code(2).explains(&["--host all", "box/main"]);
    relays_end(&near);
}

#[test]
fn an_editor_works_with_an_agent_on_another_machine() {
    let far = home([echo()]);
    let work = far.work("main").canonicalize().expect("a directory").display().to_string();
    let near = near(&[("me@box", &far)], Config::new([]).tables(BOX));
    let here = near.work("main");
    near.write_config(&format!(
        "{BOX}start = true\nmap = {{ \"{}\" = \"{work}\" }}\n",
        here.display()
    ));
    let mut command = near.acpctl_command(&on_box(&["acp", "echo"]));
    command.current_dir(near.path("home"));
    let (mut bridge, mut editor) = Running::start_editor(command);
    let can = json!({"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true});
    editor.ok("initialize", json!({"protocolVersion": 1, "clientCapabilities": can}));
    bridge.wait_stderr("the agent on `box` cannot use files, terminals of this machine");

    let missing = editor.call("session/new", json!({"cwd": "/not/there", "mcpServers": []}));
    let missing = missing.expect_err("there is no such directory");
    let said = missing["message"].as_str().expect("a message");
    assert!(said.starts_with("the directory `/not/there` does not exist on `box`"), "{said}");
    assert!(said.ends_with("`map` in `[hosts.box]`"), "{said}");

    let servers = json!([{"name": "files", "command": "files", "args": [], "env": []}]);
    let made = editor.ok("session/new", json!({"cwd": here, "mcpServers": servers}));
    let session = made["sessionId"].as_str().expect("an id").to_owned();
    assert_eq!(far.session(&session)["cwd"], work);
    bridge.wait_stderr("MCP servers `files`");

    // The file travels, and the way there breaks in the turn.
    let note = near.path("home").join("a note.txt");
    fs::write(&note, "of the laptop\n").expect("a file");
    let uri = format!("file://{}", note.display().to_string().replace(' ', "%20"));
    let link = json!({"type": "resource_link", "uri": uri, "name": "note"});
    let text = json!({"type": "text", "text": "[chunks 2] [pause middle] [chunks 2]"});
    let prompt = json!({"sessionId": session, "prompt": [text, link]});
    let prompt = editor.request("session/prompt", prompt);
    editor.hear("line 2");
    far.wait_point("middle");
    cut(&near);
    far.release("middle");
    assert_eq!(editor.answer(prompt).expect("an answer")["stopReason"], "end_turn");
    assert_eq!(editor.said(&session).matches("line ").count(), 4, "{:?}", editor.seen());

    let prompts = far.received("echo", "session/prompt");
    assert_eq!(prompts.len(), 1);
    let file = &prompts[0]["params"]["prompt"][1]["resource"];
    let place = file["uri"].as_str().expect("an address");
    assert!(place.starts_with("acpd-near://") && place.ends_with("/a%20note.txt"), "{place}");
    assert_eq!(file["text"], "of the laptop\n");
    assert_eq!(far.received("echo", "session/new")[0]["params"]["mcpServers"], json!([]));
    let listed = editor.ok("session/list", json!({"cwd": here}));
    assert_eq!(listed["sessions"][0]["cwd"], here.display().to_string());
    editor.close();
    let done = bridge.finish().success();
    assert_eq!(done.stderr().lines().count(), 2, "{done:?}");
    assert!(!near.socket().exists(), "nothing is started here");
}
