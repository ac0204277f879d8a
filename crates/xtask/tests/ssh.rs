//! Commands for the daemon of another machine, over the system's ssh and sshd.
//!
//! Outside of continuous integration the tests are skipped, with a line that says so, when
//! openssh-server is not installed.

#![cfg(target_os = "linux")]

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

use acpd_test::harness::{Agent, Config, Running, Sshd, TestEnv, kill9, signal, until};
use nix::sys::signal::Signal;
use xtask::workspace;

/// Longest time for a list of all machines.
const LIST: Duration = Duration::from_millis(2500);

/// A port on which no program listens.
const CLOSED: &str = "1";
/// An option for ssh: the program that connects ends, and a child of it stays.
const LEAVES: &str = "ProxyCommand=sleep 100 >/dev/null & exit 1";

fn home(config: &Config) -> TestEnv {
    TestEnv::new(workspace::bin_dir("debug").expect("a folder").join("acpd"), config)
}

fn far() -> TestEnv {
    home(&Config::new([Agent::new("echo")]))
}

/// A home with other machines only.
fn near(tables: &str) -> TestEnv {
    home(&Config::new([]).tables(tables))
}

fn with_sshd(test: fn()) {
    match Sshd::missing() {
        Some(missing) => workspace::skip("ssh", missing).expect("openssh-server"),
        None => test(),
    }
}

struct Ends<'a> {
    near: &'a TestEnv,
    far: &'a TestEnv,
    sshd: &'a Sshd,
}

type Cut = fn(&Ends<'_>);

#[test]
fn each_line_is_shown_once_whatever_is_cut() {
    with_sshd(|| {
        let cases: [(&str, [Cut; 2]); 3] = [
            ("client", [kill_client, kill_client]),
            ("session", [kill_session, kill_stopped_client]),
            ("daemon", [kill_daemon, kill_both]),
        ];
        let far = far();
        let sshd = Sshd::start(&far);
        let near = near(&sshd.table("box", &[], &format!("start = true\n{}", Sshd::relay(&far))));
        let ends = Ends { near: &near, far: &far, sshd: &sshd };
        for (name, cuts) in cases {
            // At each point all lines before are shown, so the connection that is cut is in use.
            let prompt = format!(
                "[number 3 {name} 0] [pause {name}-0] [number 3 {name} 0] [pause {name}-1] \
                 [number 3 {name} 0]"
            );
            let mut asked = near.spawn_acpctl(&["--host", "box", "run", "-s", name, &prompt]);
            for (at, cut) in cuts.iter().enumerate() {
                far.wait_point(&format!("{name}-{at}"));
                asked.wait_stdout(&format!("{name}/{}\n", 3 * at + 3));
                cut(&ends);
                far.release(&format!("{name}-{at}"));
            }
            let done = asked.finish().success();
            let shown = |text: &str| -> Vec<String> {
                let lines = text.lines().filter(|line| line.contains('/'));
                lines.map(str::to_owned).collect()
            };
            let lines: Vec<_> = (1..=9).map(|n| format!("{name}/{n}")).collect();
            assert_eq!(shown(done.stdout()), lines, "{done:?}\n{}", sshd.log());
            assert_eq!(shown(&far.said(name)), lines);
            sshd.wait_unused(&near, &far);
        }
    });
}

fn kill_client(ends: &Ends<'_>) {
    let clients = Sshd::clients(ends.near);
    assert!(!clients.is_empty(), "an ssh runs");
    clients.into_iter().for_each(kill9);
}

fn kill_session(ends: &Ends<'_>) {
    let sessions = ends.sshd.sessions();
    assert!(!sessions.is_empty(), "a connection is open");
    sessions.into_iter().for_each(kill9);
}

/// Lines go to an ssh that no longer passes them on.
fn kill_stopped_client(ends: &Ends<'_>) {
    let clients = Sshd::clients(ends.near);
    assert!(!clients.is_empty(), "an ssh runs");
    for client in &clients {
        signal(*client, Signal::SIGSTOP);
    }
    ends.far.release("session-1");
    until("the end of the turn", || {
        (ends.far.session("session")["turn"]["state"] == "idle").then_some(())
    });
    clients.into_iter().for_each(kill9);
}

fn kill_daemon(ends: &Ends<'_>) {
    ends.far.kill_daemon();
}

fn kill_both(ends: &Ends<'_>) {
    kill_client(ends);
    kill_daemon(ends);
}

#[test]
fn shells_and_keys_let_the_relay_through() {
    with_sshd(|| {
        let far = far();
        let sshd = Sshd::start(&far);
        let near = near(&sshd.table("box", &[], "start = true"));
        let bin = far.path("home/.local/bin");
        fs::create_dir_all(&bin).expect("a directory");
        symlink(far.program("acpctl"), bin.join("acpctl")).expect("a link");
        let noise = "echo 'You have mail'\necho '{}'\n";
        fs::create_dir_all(far.path("home/.config/fish")).expect("a directory");
        for file in [".bashrc", ".cshrc", ".config/fish/config.fish"] {
            fs::write(far.path("home").join(file), noise).expect("a file");
        }
        let forced = format!("restrict,command=\"{} relay\"", far.program("acpctl").display());
        let mut keys = vec![String::new(), forced];
        for shell in ["csh", "tcsh", "fish"] {
            if fs::exists(format!("/usr/bin/{shell}")).unwrap_or_default() {
                // As for a user with this login shell.
                keys.push(format!(r#"command="exec {shell} -c \"$SSH_ORIGINAL_COMMAND\"""#));
            } else {
                workspace::skip("a login shell", format!("`{shell}` is missing")).expect("a shell");
            }
        }
        for key in keys {
            sshd.restrict_key(&key);
            let done = near.acpctl(&["--host", "box", "run", "say #one"]);
            assert!(done.code_is(0) && done.stdout().contains("tags=one"), "{key}: {done:?}");
            sshd.wait_unused(&near, &far);
        }
    });
}

#[test]
fn ssh_says_why_there_is_no_connection() {
    with_sshd(|| {
        let far = far();
        let sshd = Sshd::start(&far);
        let cases: [(&str, &[&str], &str, &[&str]); 5] = [
            (
                "no-program",
                &[],
                "relay = \"/nowhere/acpctl relay\"",
                &["/nowhere/acpctl", "install acpd there"],
            ),
            ("changed", &["-o", "HostKeyAlias=changed"], "", &["Host key verification failed"]),
            (
                "password",
                &["-o", "PubkeyAuthentication=no"],
                "",
                &["Permission denied (publickey,password"],
            ),
            ("closed", &["-p", CLOSED], "", &["Connection refused", "`ssh -p "]),
            // A process stays, and keeps open where ssh prints its errors.
            ("left", &["-o", LEAVES], "", &["Connection closed"]),
        ];
        let table = |(name, options, keys, _): &(&str, &[&str], &str, &[&str])| {
            sshd.table(name, options, &format!("ssh = \"box\"\n{keys}"))
        };
        let near = near(&cases.iter().map(table).collect::<String>());
        for (name, _, _, words) in cases {
            let start = Instant::now();
            let done = near.acpctl(&["--host", name, "ps"]).code(1);
            done.explains(&[&format!("cannot reach acpd on `{name}`")]).explains(words);
            // Far below the time that ssh waits for a password.
            assert!(start.elapsed() < Duration::from_secs(10), "{name}: {:?}", start.elapsed());
        }
        let left = near.tree().into_iter().filter(|process| process.command.starts_with("sleep "));
        left.for_each(|process| kill9(process.pid));
        assert!(!far.socket().exists(), "nothing is started there");
    });
}

#[test]
fn a_list_waits_neither_for_dead_nor_for_hanging_machines() {
    with_sshd(|| {
        let hanging = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = hanging.local_addr().expect("its address").port().to_string();
        let far = [far(), far()];
        let sshd = far.each_ref().map(Sshd::start);
        let table = |name: &str, at: usize, options: &[&str]| {
            let keys = format!("ssh = \"box\"\nstart = true\n{}", Sshd::relay(&far[at]));
            sshd[at].table(name, options, &keys)
        };
        let near = near(
            &[
                table("box", 0, &[]),
                table("pc", 1, &[]),
                table("dead", 0, &["-p", CLOSED]),
                table("hangs", 0, &["-p", &port]),
            ]
            .concat(),
        );
        for (far, name) in far.iter().zip(["box", "pc"]) {
            near.acpctl(&["--host", name, "run", "-s", "main", "one"]).success();
            assert_eq!(far.session("main")["turn"]["state"], "idle");
        }
        let mut times = Vec::new();
        // On a busy machine one of them may be slow.
        while times.len() < 3 && times.last().is_none_or(|time| *time >= LIST) {
            let start = Instant::now();
            let done =
                Running::start(near.acpctl_command(&["--host", "all", "ps"])).finish().success();
            times.push(start.elapsed());
            let all = format!("{}{}", done.stdout(), done.stderr());
            for words in ["box/main", "pc/main", "Connection refused", "`hangs`"] {
                assert!(all.contains(words), "{all}");
            }
        }
        assert!(times.last().is_some_and(|time| *time < LIST), "{times:?}");
    });
}
