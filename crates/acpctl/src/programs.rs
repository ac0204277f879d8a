//! Other programs that verbs run: the daemon's, and those of the system.

use std::ffi::OsStr;
use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, ExitStatus, Output, Stdio};

use acpd_api::{ConfigReport, ConfigValues, CopyLine, CopyReport, ExitCode, Untrusted};
use acpd_client::{daemon_exe, program_error};
use acpd_sys::process;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::json;

use crate::error::{CommandError, Result, paragraph};
use crate::human;
use crate::text::{Text, text};
use crate::ui::Ui;

pub(crate) fn daemon(args: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    let mut command = Command::new(daemon_exe());
    command.args(args).stdin(Stdio::null());
    command
}

/// Runs a program without stdin, and returns its output. A failure has the program's own words.
pub(crate) fn output_of(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| cannot_run(command, &error))?;
    let said = || String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() { Ok(said()) } else { Err(failed(command, &output)) }
}

pub(crate) fn status_of(command: &mut Command) -> Result<ExitStatus> {
    command.status().map_err(|error| cannot_run(command, &error))
}

/// Returns only if that fails.
pub(crate) fn become_program(command: &mut Command) -> CommandError {
    let error = process::become_program(command);
    cannot_run(command, &error)
}

pub(crate) fn cannot_run(command: &Command, error: &io::Error) -> CommandError {
    CommandError::file("run", Path::new(command.get_program()), error)
}

/// Returns the error in the program's own words. acpd's programs print a reason and a hint.
pub(crate) fn failed(command: &Command, output: &Output) -> CommandError {
    let said = String::from_utf8_lossy(&output.stderr);
    let Some((reason, hint)) = program_error(&said) else {
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let line =
            Text::join(words.map(|word| Untrusted::from(word.to_string_lossy()).into()), " ");
        let mut text = text!("`{}` failed ({})", line, Untrusted::of(output.status));
        if !said.trim().is_empty() {
            text = text!("{}: {}", text, paragraph(&said.trim().into()));
        }
        let is_ours = command.get_program() == daemon_exe();
        let hint = "acpctl and acpd may differ in version: install both again";
        return CommandError::new(ExitCode::Error, text).hint_if(is_ours.then_some(hint));
    };
    let code = match output.status.code() {
        Some(code) if code == i32::from(ExitCode::NotFound.code()) => ExitCode::NotFound,
        _ => ExitCode::Error,
    };
    CommandError::new(code, paragraph(&reason.into())).hint_if(hint)
}

/// Runs the daemon's program that copies a journal, and shows its progress.
pub(crate) fn copy<'a>(
    args: impl IntoIterator<Item = &'a OsStr>,
    doing: &'static str,
    ui: &mut Ui,
) -> Result<CopyReport> {
    let mut command = daemon(args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| cannot_run(&command, &error))?;
    let broken = |error| cannot_run(&command, &error);
    let mut done = None;
    for line in child.stdout.take().map(BufReader::new).into_iter().flat_map(BufReader::lines) {
        match serde_json::from_str(&line.map_err(broken)?) {
            Ok(CopyLine::Progress { done, of }) => {
                let percent = u64::from(done) * 100 / u64::from(of.max(1));
                ui.spin(text!("{} {} %", doing, percent));
                ui.tick();
            }
            Ok(CopyLine::Done(report)) => done = Some(report),
            Err(_) => {}
        }
    }
    let output = child.wait_with_output().map_err(broken)?;
    ui.stop_spinning();
    match done {
        Some(report) if output.status.success() => Ok(report),
        _ => Err(failed(&command, &output)),
    }
}

pub(crate) fn contents(copy: &CopyReport) -> Text {
    let used = copy.updated.map(|at| text!(", last used {}", human::ago(at, human::now())));
    text!("{}, {}{}", human::counted(copy.sessions, "session"), human::bytes(copy.bytes), used)
}

// Arguments of `acpctl mcp` and `acpctl web`, which are programs of their own. These read them.
#[cfg(any(feature = "mcp", feature = "web"))]
#[derive(Debug, clap::Args)]
pub(crate) struct ProgramArgs {
    /// `--help` shows them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "OPTIONS")]
    args: Vec<std::ffi::OsString>,
}

#[cfg(any(feature = "mcp", feature = "web"))]
impl ProgramArgs {
    /// Takes the value of the option `--host`, which the program does not have.
    pub(crate) fn take_host(&mut self) -> Option<String> {
        let at = self.args.iter().position(|arg| arg.as_encoded_bytes().starts_with(b"--host"))?;
        let option = self.args[at].to_str()?.strip_prefix("--host")?.to_owned();
        if let Some(name) = option.strip_prefix('=') {
            self.args.remove(at);
            return Some(name.to_owned());
        }
        let name = self.args.get(at + 1).filter(|_| option.is_empty())?.to_str()?.to_owned();
        self.args.drain(at..=at + 1);
        Some(name)
    }
}

/// Becomes a program that is installed next to this one, so that other verbs do not need its
/// libraries.
#[cfg(any(feature = "mcp", feature = "web"))]
pub(crate) fn become_companion(
    name: &str,
    ProgramArgs { args }: &ProgramArgs,
    ui: &Ui,
) -> CommandError {
    let mut command = Command::new(acpd_client::beside(name));
    command.args(args).args((!ui.may_start).then_some("--no-spawn"));
    if let Some(machine) = &ui.machine {
        command.arg("--machines").arg(json!(machine.hosts).to_string());
    }
    let hint = "install it: `cargo install acpctl`";
    become_program(&mut command).hint(hint)
}

pub(crate) const SCHEMA: &str = "config.schema.json";
/// The first line of a new file, for editors that know TOML.
pub(crate) const BEGIN: &str = "#:schema ./config.schema.json\n";

/// Returns the configuration as `acpd config` reads it; needs no daemon.
pub(crate) fn config_report() -> Result<ConfigReport> {
    config(&[]).map(|(report, _)| report)
}

pub(crate) fn config_values() -> Result<ConfigValues> {
    config(&["--values"]).map(|(values, _)| values)
}

pub(crate) fn config_schema() -> Result<Vec<u8>> {
    config::<IgnoredAny>(&["--schema"]).map(|(_, text)| text)
}

/// Returns the parsed answer of `acpd config`, and its text. The command fails if the file has
/// mistakes, and lists them.
fn config<T: DeserializeOwned>(args: &[&str]) -> Result<(T, Vec<u8>)> {
    let mut command = daemon(["config"].iter().chain(args));
    let output = command.output().map_err(|error| cannot_run(&command, &error))?;
    let answer = serde_json::from_slice(&output.stdout);
    Ok((answer.map_err(|_| failed(&command, &output))?, output.stdout))
}

/// Writes this version's schema for a file that refers to it. Errors are ignored, because the file
/// can be edited without a schema.
pub(crate) fn offer_schema(file: &Path, schema_file: &Path) {
    if fs::read_to_string(file).is_ok_and(|text| text.starts_with(BEGIN))
        && let Ok(schema) = config_schema()
    {
        fs::write(schema_file, schema).ok();
    }
}
