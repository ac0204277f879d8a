//! Programs that npm or uv installed, and those that the user chose: editor, pager, login shell.
//!
//! On Windows npm makes a command script for each program of a package (`claude.cmd`), which runs
//! `node` with a file next to it. cmd.exe cannot pass every argument, and would stay between acpd
//! and the agent. So acpd starts the command of the script. A script that differs from npm's is
//! refused, because it may do anything.
//!
//! ```text
//! "%_prog%"  --no-warnings "%dp0%\node_modules\pkg\cli.js" %*
//!  node       arguments     a file next to the script       the arguments of the call
//! ```

use std::path::{Path, PathBuf};

use thiserror::Error;

use crate::files;

#[cfg_attr(unix, path = "unix.rs")]
#[cfg_attr(windows, path = "windows.rs")]
mod system;

pub use system::*;

/// Longest script in bytes.
const LONGEST: u64 = 4 << 10;

/// Text before the call, by version of npm: it ends the script's own variables.
const KNOWN_STARTS: [&str; 3] =
    ["", "endLocal &", "endLocal & goto #_undefined_# 2>NUL || title %COMSPEC% &"];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("it is a script for a shell, which would read more into its arguments than what they say")]
pub struct NeedsShell;

/// Returns the command of a file: the file itself, or the command in a script of npm. Fails for
/// another script on a system where it needs a shell.
pub fn without_shell(file: PathBuf) -> Result<ScriptCommand, NeedsShell> {
    if !system::needs_shell(&file) {
        return Ok(ScriptCommand { program: file, args: Vec::new() });
    }
    // npm writes one script per shell.
    let is_for_powershell = file.extension().is_some_and(|found| found.eq_ignore_ascii_case("ps1"));
    let script = if is_for_powershell { file.with_extension("cmd") } else { file };
    script_command(&script).ok_or(NeedsShell)
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptCommand {
    /// The interpreter: a path if it is installed next to the script, else a name.
    pub program: PathBuf,
    /// The last argument is the file that is run.
    pub args: Vec<String>,
}

/// Returns `None` unless npm has written the script and its file exists.
fn script_command(script: &Path) -> Option<ScriptCommand> {
    let is_script = script.extension().is_some_and(|found| found.eq_ignore_ascii_case("cmd"));
    let dir = script.parent().filter(|_| is_script)?;
    let text = String::from_utf8(files::read(script, LONGEST).ok()?).ok()?;
    let Call { program, mut args, file } = parse(&text)?;
    let file = file.split('\\').fold(dir.to_owned(), |path, part| path.join(part));
    if !file.is_file() {
        return None;
    }
    args.push(file.to_str()?.to_owned());
    let own = dir.join(format!("{program}.exe"));
    let program = if own.is_file() { own } else { program.into() };
    Some(ScriptCommand { program, args })
}

/// The call in a script; `file` is relative to the script.
#[derive(Debug, PartialEq, Eq)]
struct Call {
    program: String,
    args: Vec<String>,
    file: String,
}

fn parse(text: &str) -> Option<Call> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let is_npms = lines.next()?.eq_ignore_ascii_case("@echo off") && lines.next()? == "GOTO start";
    let program = text.lines().find_map(|line| {
        let name = line.trim().strip_prefix(r#"SET "_prog="#)?.strip_suffix('"')?;
        (!name.contains('%')).then_some(name)
    })?;
    let last = lines.next_back().filter(|_| is_npms && is_plain(program))?;
    let (before, call) = last.split_once(r#""%_prog%""#)?;
    let (args, file) = call.trim().strip_suffix(" %*")?.trim().split_once(r#""%dp0%\"#)?;
    let file = file.strip_suffix('"')?;
    let args: Vec<String> = args.split_whitespace().map(str::to_owned).collect();
    // `endLocal & …` or what comes after it; a quotation mark would begin another command.
    let before = before.trim();
    let starts_the_call = KNOWN_STARTS.contains(&before);
    let is_name = |part: &str| !part.is_empty() && !part.contains(is_special);
    let is_file = file.split('\\').all(is_name);
    let all = starts_the_call && is_file && args.iter().all(|arg| is_plain(arg));
    all.then(|| Call { program: program.to_owned(), args, file: file.to_owned() })
}

/// Returns whether a file name cannot have this character, or cmd.exe gives it a meaning.
fn is_special(c: char) -> bool {
    c.is_control() || "\"%:/*?<>|".contains(c)
}

/// Returns whether a word means itself to any shell.
fn is_plain(word: &str) -> bool {
    !word.is_empty()
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.=,/".contains(&byte))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use proptest::prelude::*;

    use super::*;

    /// As npm 10 writes it, with this between program and file.
    fn script(args: &str, file: &str) -> String {
        [
            "@ECHO off",
            "GOTO start",
            ":find_dp0",
            "SET dp0=%~dp0",
            "EXIT /b",
            ":start",
            "SETLOCAL",
            "CALL :find_dp0",
            "",
            r#"IF EXIST "%dp0%\node.exe" ("#,
            r#"  SET "_prog=%dp0%\node.exe""#,
            ") ELSE (",
            r#"  SET "_prog=node""#,
            "  SET PATHEXT=%PATHEXT:;.JS;=;%",
            ")",
            "",
            &format!(
                r#"endLocal & goto #_undefined_# 2>NUL || title %COMSPEC% & "%_prog%" {args} "%dp0%\{file}" %*"#
            ),
            "",
        ]
        .join("\r\n")
    }

    #[test]
    fn the_command_of_a_script_of_npm_is_found() {
        let home = tempfile::TempDir::new().unwrap();
        let (cmd, file) = (home.path().join("agent.CMD"), home.path().join("node_modules"));
        fs::create_dir_all(file.join("@a b")).unwrap();
        let file = file.join("@a b").join("cli.js");
        fs::write(&cmd, script("--no-warnings", r"node_modules\@a b\cli.js")).unwrap();
        assert_eq!(script_command(&cmd), None, "the file is missing");
        fs::write(&file, "").unwrap();
        let args = vec!["--no-warnings".to_owned(), file.to_str().unwrap().to_owned()];
        assert_eq!(
            script_command(&cmd),
            Some(ScriptCommand { program: "node".into(), args: args.clone() })
        );
        let node = home.path().join("node.exe");
        fs::write(&node, "").unwrap();
        assert_eq!(script_command(&cmd), Some(ScriptCommand { program: node, args }));
        let other = home.path().join("agent.bat");
        fs::rename(&cmd, &other).unwrap();
        assert_eq!(script_command(&other), None);
    }

    #[test]
    fn a_script_that_does_more_is_refused() {
        let good = script("", r"node_modules\a\cli.js");
        assert!(parse(&good).is_some());
        for (from, to) in [
            ("GOTO start", "calc.exe"),
            (r#""%_prog%""#, r#"calc & "%_prog%" "--x""#),
            (" %*", " %* & calc"),
            (r"node_modules\a\cli.js", r"%TEMP%\cli.js"),
            (r"node_modules\a\cli.js", r"a\\cli.js"),
            (r"node_modules\a\cli.js", "a\rcli.js"),
            (r#"_prog=node""#, r#"_prog=node & calc""#),
        ] {
            let bad = good.replace(from, to);
            assert_ne!(bad, good);
            assert_eq!(parse(&bad), None, "{to}");
        }
        assert_eq!(parse(&script("%X%", "cli.js")), None);
        assert_eq!(parse(&script(r#"" & calc & ""#, "cli.js")), None);
    }

    proptest! {
        #[test]
        fn nothing_that_cmd_would_read_gets_into_what_is_started(args in ".{0,20}", file in ".{1,20}") {
            if let Some(call) = parse(&script(&args, &file)) {
                for word in call.args.iter().chain([&call.file]) {
                    prop_assert!(!word.contains(['%', '"', '\n', '\r']), "{word:?}");
                }
                prop_assert!(call.args.iter().all(|arg| is_plain(arg)));
            }
        }

        #[test]
        fn no_text_upsets_the_reader(text in ".{0,400}") {
            let _ = parse(&text);
        }
    }
}
