//! Files and terminals on Windows: its own behaviour, and that the rest works at all. The confinement of
//! files is tested in `files.rs`, with links that only Unix lets every user make.
#![cfg(windows)]

mod common;

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use acpd_services::fs::{Effort, FsError, Lines, Roots, read_text_file, write_text_file};
use acpd_services::terminal::{CreateTerminal, Exit, TerminalError, Terminals};
use acpd_sys::process::{ExitKind, Liveness, ProcessId};
use tempfile::TempDir;

use common::Own;

/// Names the part that a helper process plays.
const PART: &str = "ACPD_SERVICES_TEST_PART";

#[test]
#[ignore = "a helper process of the others"]
#[expect(clippy::print_stdout, clippy::print_stderr, reason = "the test reads what it says")]
fn helper() {
    match std::env::var(PART).as_deref() {
        Ok("talk") => {
            println!("one");
            eprintln!("two");
            println!("three");
            std::process::exit(7);
        }
        Ok("input") => println!("{:?}", io::stdin().read(&mut [0])),
        Ok("stay") => {
            println!("pid {} ", std::process::id());
            loop {
                std::thread::park();
            }
        }
        Ok("parent") => {
            let mut helper = Command::new(std::env::current_exe().unwrap());
            let child = helper.args(HELPER).env(PART, "stay").spawn().unwrap();
            println!("pid {} ", child.id());
            loop {
                std::thread::park();
            }
        }
        _ => {}
    }
}

/// Arguments that make this program a helper.
const HELPER: [&str; 4] = ["--exact", "helper", "--ignored", "--nocapture"];

/// A request for a helper that plays this part.
fn request(id: &str, part: &str) -> CreateTerminal {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    CreateTerminal {
        id: id.to_owned(),
        owner: 1,
        command: std::env::current_exe().unwrap().to_str().unwrap().to_owned(),
        args: HELPER.map(str::to_owned).into(),
        base_env: std::env::vars_os().collect(),
        env: vec![(PART.to_owned(), part.to_owned())],
        cwd: std::env::temp_dir(),
        output_byte_limit: None,
        marker: format!("terminals-{}-{count}", std::process::id()),
    }
}

fn terminals() -> Terminals {
    Terminals::new(Arc::new(Own), Duration::ZERO, None)
}

fn killed() -> Exit {
    ExitKind::Code(1).into()
}

/// Waits until `count` processes have printed their pids.
async fn ids(terminals: &Terminals, id: &str, count: usize) -> Vec<ProcessId> {
    loop {
        let text = terminals.output(id).unwrap().text;
        let pids = text.split("pid ").skip(1).filter_map(|rest| rest.split_once(' '));
        let pids: Vec<u32> = pids.map(|(pid, _)| pid.parse().unwrap()).collect();
        if pids.len() == count {
            return pids.into_iter().map(|pid| ProcessId::of(pid).unwrap()).collect();
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn both_outputs_come_in_order_and_all_is_there_when_the_exit_is_told() {
    let mut terminals = terminals();
    terminals.create(request("a", "talk")).unwrap();
    let output = terminals.wait("a").unwrap().await;
    assert_eq!(output.exit, Some(Exit { code: Some(7), signal: None }));
    let lines: Vec<&str> = output.text.lines().filter(|line| line.len() < 6).collect();
    assert_eq!(lines.iter().filter(|line| !line.is_empty()).count(), 3, "{}", output.text);
    for (before, after) in [("one", "two"), ("two", "three")] {
        assert!(output.text.find(before) < output.text.find(after), "{}", output.text);
    }
    terminals.create(request("b", "input")).unwrap();
    assert!(terminals.wait("b").unwrap().await.text.contains("Ok(0)"), "it has no input");
    terminals.end().await;
}

#[tokio::test]
async fn nothing_is_left_after_a_kill_a_release_and_the_end() {
    for way in ["kill", "release", "end"] {
        let mut terminals = terminals();
        terminals.create(request("a", "parent")).unwrap();
        let ids = ids(&terminals, "a", 2).await;
        match way {
            "kill" => {
                terminals.kill("a").unwrap();
                assert_eq!(terminals.wait("a").unwrap().await.exit, Some(killed()));
                terminals.release("a").unwrap().await;
            }
            "release" => terminals.release("a").unwrap().await,
            _ => terminals.end().await,
        }
        assert!(ids.iter().all(|id| id.is_alive() == Liveness::Gone), "{way}");
    }
}

#[tokio::test]
async fn a_whole_line_without_arguments_is_for_the_shell_and_names_of_variables_have_no_case() {
    let mut terminals = terminals();
    let line = CreateTerminal {
        command: "echo \"3 4\" & exit 5".to_owned(),
        args: Vec::new(),
        ..request("a", "")
    };
    terminals.create(line).unwrap();
    let output = terminals.wait("a").unwrap().await;
    assert_eq!(output.exit, Some(Exit { code: Some(5), signal: None }));
    assert_eq!(output.text.trim_end(), "\"3 4\"");

    // Found by the path that the request gives, in letters of any case.
    let dir = TempDir::new().unwrap();
    let shell = Path::new(&std::env::var("SystemRoot").unwrap()).join(r"system32\cmd.exe");
    fs::copy(shell, dir.path().join("my program.exe")).unwrap();
    let mut named = request("b", "");
    named.command = "my program".to_owned();
    named.args.clear();
    named.env.push(("Path".to_owned(), dir.path().to_str().unwrap().to_owned()));
    terminals.create(named).unwrap();
    let output = terminals.wait("b").unwrap().await;
    assert_eq!(output.exit, Some(Exit { code: Some(0), signal: None }), "{}", output.text);
    terminals.end().await;
}

#[tokio::test]
async fn what_cannot_be_started_is_named() {
    let mut terminals = terminals();
    let mut missing = request("a", "");
    missing.command = "no-such-program".to_owned();
    let error = terminals.create(missing.clone()).unwrap_err();
    assert!(error.to_string().contains("`no-such-program`") && error.hint().is_some(), "{error}");
    missing.cwd.push("gone");
    let error = terminals.create(missing).unwrap_err();
    assert!(matches!(error, TerminalError::NoDirectory { .. }), "{error}");
}

#[test]
fn a_code_of_the_system_is_told_as_it_is_written() {
    let broken = Exit::from(ExitKind::Code(0xc000_0005_u32.cast_signed()));
    assert_eq!(broken, Exit { code: Some(0xc000_0005), signal: None });
}

/// `in` is a session's directory, `out` is not and has the file `secret`.
struct World {
    dir: TempDir,
    roots: Roots,
}

impl World {
    fn new() -> World {
        let dir = TempDir::new().unwrap();
        for name in ["in", "out"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        fs::write(dir.path().join("out/secret"), "secret").unwrap();
        let roots = Roots::open(&dir.path().join("in"), &[], 0).unwrap();
        World { dir, roots }
    }

    fn path(&self, path: &str) -> PathBuf {
        self.dir.path().join(path)
    }

    fn read(&self, path: impl AsRef<Path>) -> Result<String, FsError> {
        let effort = Effort::most(Arc::default());
        read_text_file(&self.roots, &self.dir.path().join(path), Lines::default(), effort)
    }

    fn write(&self, path: impl AsRef<Path>, text: &str) -> Result<(), FsError> {
        write_text_file(&self.roots, &self.dir.path().join(path), text)
    }
}

#[test]
fn files_are_made_replaced_and_read() {
    let world = World::new();
    world.write("in/x/y/z.txt", "one\r\ntwo").unwrap();
    assert_eq!(world.read(r"in\x\..\x\y\z.txt").unwrap(), "one\r\ntwo");
    world.write("in/x/y/z.txt", "new").unwrap();
    assert_eq!(world.read("in/X/Y/Z.TXT").unwrap(), "new");
    assert_eq!(fs::read_dir(world.path("in/x/y")).unwrap().count(), 1, "nothing else is left");
    assert!(matches!(world.read("in/gone"), Err(FsError::NotFound { .. })));
    let real = world.path("in/x/y/z.txt").canonicalize().unwrap();
    assert_eq!(world.read(real).unwrap(), "new", "the long spelling of a path is the same path");
}

#[test]
#[expect(clippy::print_stderr, reason = "a test that did not run must be seen")]
fn a_file_that_may_not_be_written_is_not_replaced() {
    if Path::new(r"C:\windows\system32\winecfg.exe").exists() {
        eprintln!("SKIPPED: Wine lets root write what is marked as read-only");
        return;
    }
    let world = World::new();
    world.write("in/a", "old").unwrap();
    let set = |read_only| {
        let mut permissions = world.path("in/a").metadata().unwrap().permissions();
        permissions.set_readonly(read_only);
        fs::set_permissions(world.path("in/a"), permissions).unwrap();
    };
    set(true);
    world.write("in/a", "new").unwrap_err();
    assert_eq!(world.read("in/a").unwrap(), "old");
    set(false);
}

#[test]
fn whatever_leads_out_is_refused_however_it_is_spelt() {
    let world = World::new();
    let share = r"\\localhost\C$\windows\win.ini";
    for path in [
        "out/secret",
        "in/../out/secret",
        r"in\..\out\secret",
        "in/..",
        "/",
        r"C:\windows\win.ini",
        r"\\?\C:\windows\win.ini",
        r"\\.\C:\windows\win.ini",
        r"\\.\pipe\acpd",
        share,
    ] {
        for error in [world.read(path).unwrap_err(), world.write(path, "x").unwrap_err()] {
            assert!(matches!(error, FsError::Outside { .. }), "{path}: {error}");
        }
    }
    assert_eq!(fs::read_to_string(world.path("out/secret")).unwrap(), "secret");
}

#[test]
fn names_of_devices_and_streams_are_no_files() {
    let world = World::new();
    world.write("in/a", "text").unwrap();
    for path in ["in/NUL", "in/con", "in/a:stream", "in/a::$DATA", "in/<a>", "in/a\0"] {
        world.write(path, "x").unwrap_err();
    }
    assert_eq!(world.read("in/a").unwrap(), "text");
    assert_eq!(fs::read_dir(world.path("in")).unwrap().count(), 1, "nothing else is left");
}
