//! The hooks of `docs/recipes.md`, as they are there but for the addresses, with the real daemon and its built-in agent.
//! What stands for ntfy, Slack and the desktop takes what it is told.
//!
//! They need `jq` and `curl`. Where one is missing the test is skipped with a line that says so; in continuous integration
//! that is a failure.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use xtask::Result;
use xtask::home::Home;
use xtask::workspace::{self, succeed};

/// Limit for an awaited message.
const DEADLINE: Duration = Duration::from_mins(1);
/// A script that posts its arguments, one per line.
const DESKTOP: &str =
    "#!/bin/sh\nfor word; do printf '%s\\n' \"$word\"; done | curl -fsS --data-binary @- ";

#[test]
fn a_phone_is_told_by_ntfy() {
    hook(None, |home, told| {
        let asked = told.recv_timeout(DEADLINE)?;
        assert_eq!((&*asked.line, asked.has("title: acpd")), ("POST /your-secret-topic", true));
        assert_eq!(asked.body, "a & <b> (demo): asks: Write demo.txt");
        succeed(&mut home.acpctl(&["allow", "a & <b>"]))?;
        assert_eq!(told.recv_timeout(DEADLINE)?.body, "a & <b> (demo): is done: end_turn");
        Ok(())
    })
    .unwrap();
}

#[test]
fn slack_is_told_and_nobody_is_mentioned() {
    hook(Some("hooks.slack.com"), |_, told| {
        let asked = told.recv_timeout(DEADLINE)?;
        assert_eq!(asked.line, "POST /services/your/secret/path");
        assert!(asked.has("content-type: application/json"));
        let text = "a &amp; &lt;b&gt; (demo): asks: Write demo.txt";
        assert_eq!(asked.body.trim(), serde_json::json!({"text": text}).to_string());
        Ok(())
    })
    .unwrap();
}

#[test]
fn the_desktop_is_told() {
    hook(Some("notify-send"), |_, told| {
        let words = "--app-name=acpd\n--\nacpd\na & <b> (demo): asks: Write demo.txt\n";
        assert_eq!(told.recv_timeout(DEADLINE)?.body, words);
        Ok(())
    })
    .unwrap();
}

/// A message that was sent.
struct Told {
    line: String,
    headers: Vec<String>,
    body: String,
}

impl Told {
    fn has(&self, header: &str) -> bool {
        self.headers.iter().any(|line| line.eq_ignore_ascii_case(header))
    }
}

/// Has an agent ask something where the hook is set up, with the last lines that have this word in them.
fn hook(other: Option<&str>, look: impl FnOnce(&Home, &Receiver<Told>) -> Result) -> Result {
    let runs = |program: &&str| {
        Command::new(program).arg("--version").stdout(Stdio::null()).status().is_ok()
    };
    if let Some(program) = ["jq", "curl"].iter().find(|program| !runs(program)) {
        return workspace::skip("hooks of recipes.md", format!("{program} is missing"));
    }
    let page = fs::read_to_string(workspace::root().join("docs/recipes.md"))?;
    let part = page.split("\n## ").find(|part| part.starts_with("On your phone or desktop"));
    let part = part.ok_or("recipes.md has no hooks")?;
    let scripts = blocks(part, "sh\n");
    let mut script = scripts[0].to_owned();
    if let Some(word) = other {
        let lines = scripts.iter().skip(1).find(|it| it.contains(word)).ok_or("no such lines")?;
        let last = script.rfind("\ncurl").ok_or("the last line sends it")?;
        script = format!("{}\n{lines}", &script[..last]);
    }
    let (url, told) = listen()?;
    for address in ["https://ntfy.sh", "https://hooks.slack.com"] {
        script = script.replace(address, &url);
    }
    let home = Home::new(&workspace::bin_dir("debug")?)?;
    write(&home.path(".local/bin/acpd-notify"), &format!("{script}\n"))?;
    write(&home.path("bin/notify-send"), &format!("{DESKTOP}{url}\n"))?;
    let hooks = blocks(part, "toml\n")[0];
    // Programs of this home are found there.
    home.configure(&hooks.replace("\"exec ", "\"PATH=$HOME/bin:$PATH exec "))?;
    succeed(&mut home.acpctl(&[
        "run",
        "--detach",
        "-a",
        "demo",
        "-s",
        "a & <b>",
        "[ask] say #one",
    ]))?;
    look(&home, &told)?;
    home.stop()
}

#[test]
fn node_exporter_finds_a_whole_file_or_the_old_one() {
    let page = fs::read_to_string(workspace::root().join("docs/recipes.md")).unwrap();
    let part = page.split("\n## ").find(|part| part.starts_with("On a dashboard")).unwrap();
    let home = Home::new(&workspace::bin_dir("debug").unwrap()).unwrap();
    let script = home.path(".local/bin/acpd-metrics");
    write(&script, &format!("{}\n", blocks(part, "sh\n")[0])).unwrap();
    let dir = home.path("textfile");
    fs::create_dir(&dir).unwrap();
    let bins = home.program("acpctl").parent().unwrap().display().to_string();
    let write_file = || {
        let mut command = home.command(&script);
        command.arg(&dir).env("PATH", format!("{bins}:/usr/bin:/bin")).stderr(Stdio::null());
        command.status().unwrap().success()
    };
    let files = || fs::read_dir(&dir).unwrap().map(|file| file.unwrap().path()).collect::<Vec<_>>();
    assert!(!write_file(), "without a daemon");
    assert!(files().is_empty());
    succeed(&mut home.acpctl(&["run", "-a", "demo", "say #one"])).unwrap();
    assert!(write_file());
    let [file] = &files()[..] else { panic!("{:?}", files()) };
    assert!(file.extension().is_some_and(|ext| ext == "prom"), "{file:?}");
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o644);
    let text = fs::read_to_string(file).unwrap();
    assert!(text.contains("\nacpd_turns_ended_total{outcome=\"end_turn\"} 1\n"), "{text}");
    let quantile = blocks(part, "promql\n")[0];
    let name = quantile.split_once("rate(").unwrap().1.split_once('[').unwrap().0;
    assert!(text.contains(&format!("\n{name}{{le=")), "{quantile} asks for what there is");
    home.stop().unwrap();
}

/// The blocks of code of a kind.
fn blocks<'a>(part: &'a str, kind: &str) -> Vec<&'a str> {
    part.split("\n```").filter_map(|block| block.strip_prefix(kind)).collect()
}

fn write(path: &Path, text: &str) -> Result {
    fs::create_dir_all(path.parent().ok_or("it is in a folder")?)?;
    fs::write(path, text)?;
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(0o755))?)
}

/// A server that accepts everything.
fn listen() -> Result<(String, Receiver<Told>)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}", listener.local_addr()?);
    let (sender, told) = channel();
    // Ends with the tests.
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let mut lines: Vec<String> = Vec::new();
            while lines.last().is_none_or(|line| !line.is_empty()) {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                lines.push(line.trim_end().to_owned());
            }
            let length = lines.iter().find_map(|line| line.strip_prefix("Content-Length: "));
            let mut body = vec![0; length.unwrap().parse().unwrap()];
            reader.read_exact(&mut body).unwrap();
            reader.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
            let line = lines[0].trim_end_matches(" HTTP/1.1").to_owned();
            let body = String::from_utf8(body).unwrap();
            // The listener may have seen enough.
            let _ = sender.send(Told { line, headers: lines, body });
        }
    });
    Ok((url, told))
}
