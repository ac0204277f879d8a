//! The clients in `docs/examples`, as they are, with the real programs and the built-in agent.
//!
//! They need Python and Node. Where one is missing, its test is skipped with a line that says so; in
//! continuous integration that is a failure.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::{env, iter};

use xtask::home::Home;
use xtask::{Result, real, workspace};

/// Seconds after which a client hangs.
const LIMIT: &str = "60";

#[test]
fn the_python_example_prompts_asks_the_person_and_goes_on_in_its_session() {
    example("client.py", &["python3".into()]).unwrap();
}

#[test]
fn the_node_example_prompts_asks_the_person_and_goes_on_in_its_session() {
    let installed = real::store().join("py-node/node-bin/node");
    example("client.mjs", &[installed, "node".into()]).unwrap();
}

/// Runs a script with the first of these interpreters that is there.
fn example(script: &str, interpreters: &[PathBuf]) -> Result {
    let Some(interpreter) = interpreters.iter().find(|program| runs(program)) else {
        return workspace::skip(script, format!("none of {interpreters:?} runs"));
    };
    let home = Home::new(&workspace::bin_dir("debug")?)?;
    let script = workspace::root().join("docs/examples").join(script);
    let run = |keys: &str, words: &[&str]| client(&home, interpreter, &script, keys, words);

    // `9` is no choice: the person is asked until there is one.
    let first = run("9\n1\n3\n", &["demo", "main", "[ask] [ask] say #one"])?;
    assert_eq!(
        first.stdout,
        "permission: yes\npermission: no\nYou said: say #one | history=0 tags=one"
    );
    assert_eq!(first.stderr.matches("Write demo.txt?\n  1 Allow\n").count(), 2, "{first:?}");
    assert_eq!((first.code, first.stderr.lines().last()), (Some(0), Some("end_turn")), "{first:?}");

    let second = run("", &["demo", "main", "say #two"])?;
    assert_eq!(second.stdout.trim(), "You said: say #two | history=1 tags=one,two");

    let unknown = run("", &["dmo", "main", "hello"])?;
    assert_eq!(unknown.code, Some(1));
    assert_eq!(unknown.stderr.trim(), "error: no agent `dmo`\ndid you mean `demo`?");

    let broken = run("", &["demo", "main", "[slow 1] [crash]"])?;
    assert_eq!((broken.code, broken.stdout.trim()), (Some(1), "tick 1"));
    assert!(broken.stderr.contains("exit code 3"), "{broken:?}");

    // The question has no answer: the client leaves, and the question is still there.
    let alone = run("", &["demo", "other", "[ask]"])?;
    assert_eq!(alone.code, Some(1), "{alone:?}");
    let other = home.read_json(&["session", "show", "other"])?;
    assert_eq!(other["turn"]["state"], "needs_action", "{other}");
    home.stop()
}

/// Returns whether there is such a program, and it works.
fn runs(program: &Path) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// How a client ended.
#[derive(Debug)]
struct Ended {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

/// Runs a client to its end; `keys` is what the person types.
fn client(
    home: &Home,
    interpreter: &Path,
    script: &Path,
    keys: &str,
    words: &[&str],
) -> Result<Ended> {
    let mut command = home.command(Path::new("timeout"));
    command.arg(LIMIT).arg(interpreter).arg(script).args(words).env("PATH", path(home)?);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    child.stdin.take().ok_or("no pipe")?.write_all(keys.as_bytes())?;
    let Output { status, stdout, stderr } = child.wait_with_output()?;
    let (stdout, stderr) = (String::from_utf8(stdout)?, String::from_utf8(stderr)?);
    Ok(Ended { code: status.code(), stdout, stderr })
}

/// The `PATH` on which the examples find `acpctl`.
fn path(home: &Home) -> Result<OsString> {
    let program = home.program("acpctl");
    let own = program.parent().ok_or("a program without a directory")?.to_owned();
    let others = env::var_os("PATH").unwrap_or_default();
    Ok(env::join_paths(iter::once(own).chain(env::split_paths(&others)))?)
}
