//! Terminals with real processes.
//!
//! Processes that must stay read a pipe that this program holds open, so none outlives it after a failure.
#![cfg(target_os = "linux")]

mod common;

use std::fs::{File, OpenOptions};
use std::io::{BufRead as _, BufReader};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use acpd_services::terminal::{
    CreateTerminal, Exit, MOST_IN_ALL, MOST_OF_OWNER, MOST_OUTPUT, TerminalError, Terminals,
};
use acpd_sys::process::{Liveness, ProcessId};
use acpd_sys::tree::Tree;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use tempfile::TempDir;

use common::Own;

/// Longer than any test: what ends within it ended by SIGTERM.
const FOREVER: Duration = Duration::from_hours(1);

struct World {
    dir: TempDir,
    terminals: Terminals,
    /// Each line comes from a process that is ready.
    ready: BufReader<File>,
    _hold: File,
}

impl World {
    fn new(grace: Duration) -> World {
        let dir = TempDir::new().unwrap();
        let fifo = |name: &str| {
            let path = dir.path().join(name);
            mkfifo(&path, Mode::from_bits_truncate(0o600)).unwrap();
            OpenOptions::new().read(true).write(true).open(path).unwrap()
        };
        let (ready, hold) = (BufReader::new(fifo("ready")), fifo("hold"));
        World { terminals: Terminals::new(Arc::new(Own), grace, None), ready, _hold: hold, dir }
    }

    /// A request whose command is a line. `STAY` in it tells the pid and stays until it is killed.
    fn request(&self, id: &str, line: &str) -> CreateTerminal {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        CreateTerminal {
            id: id.to_owned(),
            owner: 1,
            command: "sh".to_owned(),
            args: vec!["-c".to_owned(), line.replace("STAY", "echo $$ >ready; exec cat hold")],
            base_env: std::env::vars_os().collect(),
            env: Vec::new(),
            cwd: self.dir.path().to_owned(),
            output_byte_limit: None,
            marker: format!("terminals-{}-{count}", std::process::id()),
        }
    }

    fn create(&mut self, id: &str, line: &str) {
        let request = self.request(id, line);
        self.terminals.create(request).unwrap();
    }

    /// Waits until `N` processes are there.
    fn ready<const N: usize>(&mut self) -> [ProcessId; N] {
        [(); N].map(|()| {
            let mut line = String::new();
            self.ready.read_line(&mut line).unwrap();
            ProcessId::of(line.trim().parse().unwrap()).unwrap()
        })
    }

    async fn exit(&self, id: &str) -> Exit {
        self.terminals.wait(id).unwrap().await.exit.unwrap()
    }

    /// Waits for the end, and returns the output.
    async fn text(&self, id: &str) -> String {
        self.exit(id).await;
        self.terminals.output(id).unwrap().text
    }
}

fn code(code: u32) -> Exit {
    Exit { code: Some(code), signal: None }
}

fn signal(name: &str) -> Exit {
    Exit { code: None, signal: Some(name.to_owned()) }
}

fn assert_gone(ids: &[ProcessId]) {
    for id in ids {
        assert_eq!(id.is_alive(), Liveness::Gone, "{id:?}");
    }
}

#[tokio::test]
async fn both_outputs_come_in_order_and_all_is_there_when_the_exit_is_told() {
    let mut world = World::new(FOREVER);
    world.create("a", "cat; echo one; echo two >&2; echo three; exit 7");
    assert_eq!(world.exit("a").await, code(7));
    let output = world.terminals.output("a").unwrap();
    assert_eq!(output.text, "one\ntwo\nthree\n");
    assert_eq!((output.truncated, output.exit), (false, Some(code(7))));
    world.terminals.release("a").unwrap().await;
    assert!(matches!(world.terminals.output("a"), Err(TerminalError::Unknown { .. })));
    assert!(matches!(world.terminals.kill("a"), Err(TerminalError::Unknown { .. })));
}

#[tokio::test]
async fn the_last_bytes_are_kept_and_cut_at_a_character() {
    let mut world = World::new(FOREVER);
    let mut request =
        world.request("a", "i=0; while [ $i -lt 999 ]; do printf äöü; i=$((i+1)); done");
    request.output_byte_limit = Some(9);
    world.terminals.create(request).unwrap();
    assert_eq!(world.text("a").await, "üäöü");
    world.create("b", "printf 'a\\377b'");
    assert_eq!(world.text("b").await, "a\u{fffd}b");
    assert!(world.terminals.output("a").unwrap().truncated);
    let mut request = world.request("c", "head -c 20000000 /dev/zero");
    request.output_byte_limit = Some(u64::MAX);
    world.terminals.create(request).unwrap();
    assert_eq!(world.text("c").await.len() as u64, MOST_OUTPUT);
    world.terminals.end().await;
}

#[tokio::test]
async fn many_wait_and_all_are_told_even_of_what_is_released() {
    let mut world = World::new(FOREVER);
    world.create("a", "STAY");
    let waiters: Vec<_> =
        (0..50).map(|_| tokio::spawn(world.terminals.wait("a").unwrap())).collect();
    world.ready::<1>();
    world.terminals.release("a").unwrap().await;
    for waiter in waiters {
        assert_eq!(waiter.await.unwrap().exit, Some(signal("SIGTERM")));
    }
}

#[tokio::test]
async fn a_terminal_can_be_asked_while_it_runs_and_after_its_kill() {
    let mut world = World::new(FOREVER);
    world.create("a", "echo so far; STAY");
    let ids = world.ready::<1>();
    while world.terminals.output("a").unwrap().text.is_empty() {
        tokio::task::yield_now().await;
    }
    let output = world.terminals.output("a").unwrap();
    assert_eq!((output.text.as_str(), output.exit), ("so far\n", None));
    world.terminals.kill("a").unwrap();
    world.terminals.kill("a").unwrap();
    assert_eq!(world.exit("a").await, signal("SIGTERM"));
    assert_eq!(world.terminals.output("a").unwrap().text, "so far\n");
    world.terminals.kill("a").unwrap();
    world.terminals.release("a").unwrap().await;
    assert_gone(&ids);
    assert_eq!(ProcessId::of(ids[0].pid), None, "it is reaped");

    // What closes its outputs is still waited for.
    world.create("a", "exec >/dev/null 2>&1; STAY");
    world.ready::<1>();
    world.terminals.kill("a").unwrap();
    assert_eq!(world.exit("a").await, signal("SIGTERM"));
    world.terminals.end().await;
}

/// A child in the group; one in a session of its own; one that lost its parent besides.
const HIDING: &str = "
sh -c 'STAY' &
setsid sh -c 'STAY' &
(setsid sh -c 'trap \"\" TERM; STAY' &)
";

#[tokio::test]
async fn nothing_is_left_after_a_kill_a_release_and_the_end() {
    for way in ["kill", "release", "end", "drop"] {
        let mut world = World::new(Duration::ZERO);
        let request = world.request("a", &format!("{HIDING} STAY"));
        let marker = request.marker.clone();
        world.terminals.create(request).unwrap();
        let ids = world.ready::<4>();
        match way {
            "kill" => {
                world.terminals.kill("a").unwrap();
                let exit = world.exit("a").await;
                assert!(exit.signal.is_some(), "{exit:?}");
                world.terminals.release("a").unwrap().await;
            }
            "release" => world.terminals.release("a").unwrap().await,
            "end" => {
                drop(world.terminals.release("a").unwrap());
                world.terminals.end().await;
            }
            _ => {
                let exit = world.terminals.wait("a").unwrap();
                drop(world.terminals);
                exit.await;
                let mut tree = Tree::leftovers(&marker, ids[0], &[]);
                while !tree.is_empty() {
                    tokio::task::yield_now().await;
                }
            }
        }
        assert_gone(&ids);
    }
}

#[tokio::test]
async fn what_a_command_leaves_in_the_background_lives_until_the_release() {
    let mut world = World::new(Duration::ZERO);
    world.create("a", &format!("{HIDING} echo done"));
    assert_eq!(world.exit("a").await, code(0));
    assert_eq!(world.terminals.output("a").unwrap().text, "done\n");
    let ids = world.ready::<3>();
    assert!(ids.iter().all(|id| id.is_alive() == Liveness::Alive));
    world.terminals.release("a").unwrap().await;
    assert_gone(&ids);
}

#[tokio::test]
async fn a_whole_line_without_arguments_is_for_the_shell() {
    let mut world = World::new(FOREVER);
    let mut request = world.request("a", "");
    request.args.clear();
    request.command = "X=$(echo 3 4); echo \"$X\" && exit 5".to_owned();
    world.terminals.create(request).unwrap();
    assert_eq!(world.exit("a").await, code(5));
    assert_eq!(world.terminals.output("a").unwrap().text, "3 4\n");

    let program = world.dir.path().join("my program");
    std::os::unix::fs::symlink("/bin/echo", &program).unwrap();
    let mut request = world.request("b", "");
    request.args.clear();
    request.command = program.to_str().unwrap().to_owned();
    world.terminals.create(request).unwrap();
    assert_eq!((world.exit("b").await, world.text("b").await), (code(0), "\n".to_owned()));
    world.terminals.end().await;
}

#[tokio::test]
async fn the_environment_is_the_agents_then_the_requests_then_the_mark() {
    let mut world = World::new(FOREVER);
    let mut request = world.request("a", "echo $A $B $ACPD_HOST ${HOME-none}; pwd");
    let path = std::env::var_os("PATH").unwrap();
    request.base_env =
        vec![("PATH".into(), path), ("A".into(), "1".into()), ("B".into(), "1".into())];
    request.env = [("B", "2"), ("ACPD_HOST", "forged")].map(|(k, v)| (k.into(), v.into())).into();
    let (marker, cwd) = (request.marker.clone(), request.cwd.canonicalize().unwrap());
    world.terminals.create(request).unwrap();
    assert_eq!(world.text("a").await, format!("1 2 {marker} none\n{}\n", cwd.display()));
    world.terminals.end().await;
}

#[tokio::test]
async fn what_cannot_be_started_is_named() {
    let mut world = World::new(FOREVER);
    let mut request = world.request("a", "");
    request.command = "no-such-program".to_owned();
    let error = world.terminals.create(request.clone()).unwrap_err();
    assert!(error.to_string().contains("`no-such-program`") && error.hint().is_some(), "{error}");
    request.cwd.push("gone");
    let error = world.terminals.create(request).unwrap_err();
    assert!(matches!(error, TerminalError::NoDirectory { .. }), "{error}");
    for name in ["", "ACPD_HOST=forged"] {
        let mut request = world.request("a", "");
        request.env = vec![(name.to_owned(), String::new())];
        let error = world.terminals.create(request).unwrap_err();
        assert!(matches!(error, TerminalError::BadVariable { .. }), "{error}");
    }
}

#[tokio::test]
async fn there_are_so_many_of_one_owner_and_so_many_in_all() {
    let mut world = World::new(FOREVER);
    let create = |world: &mut World, owner: u64, index: usize| {
        let mut request = world.request(&format!("{owner}-{index}"), "exit");
        request.owner = owner;
        world.terminals.create(request)
    };
    let owners = (MOST_IN_ALL / MOST_OF_OWNER) as u64;
    for owner in 0..owners {
        for index in 0..MOST_OF_OWNER {
            create(&mut world, owner, index).unwrap();
        }
        let more = create(&mut world, owner, MOST_OF_OWNER);
        assert!(matches!(more, Err(TerminalError::TooManyOfOwner)));
    }
    assert!(matches!(create(&mut world, owners, 0), Err(TerminalError::TooMany)));
    for index in 0..MOST_OF_OWNER {
        world.terminals.release(&format!("0-{index}")).unwrap().await;
    }
    create(&mut world, owners, 0).unwrap();
    world.terminals.end().await;
}
