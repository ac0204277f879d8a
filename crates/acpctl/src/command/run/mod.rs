//! `acpctl run`: prompts an agent and streams its answer; `session handoff` does so with a
//! transcript.

mod handoff;
mod opening;
mod steer;
mod target;
mod turn;

use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use acpd_api::{ExitCode, PromptMeta};
use acpd_client::attachment::{self, Attachment};
use acpd_sys::terminal::input_is_fed;
use clap::{Args, ValueHint};

use crate::dirs::current_dir;
use crate::error::{CommandError, Result};
use crate::human;
use crate::text::text;
use crate::ui::Ui;
use opening::{SetUp, open, open_in_worktree};
use target::blocks;
use turn::TurnArgs;

pub(super) use handoff::{Handoff, handoff};

#[derive(Debug, Args)]
#[command(after_long_help = examples!(
    "\
Without PROMPT, or with only `-`, the prompt is read from stdin. With PROMPT, a file or a pipe on stdin is attached. \
PROMPT followed by `-` adds stdin to the text. `-N` ignores stdin, for scripts and loops.

The answer goes to stdout, everything else to stderr. If no turn starts, stdout is empty. With --json, stdout is one \
object at the end of the turn, also after an error:

  sessionId, agent         the session
  answer                   the agent's answer
  stopReason               end_turn, max_tokens, max_turn_requests, refusal, cancelled
  error                    message, reason and hint, instead of stopReason
  exitCode                 exit code of the command
  turn, startedAt, at      number, start and end of the turn (ms since the epoch)
  tools, files             number of tool calls, and the files that they changed
  usage                    tokens and cost, if the agent reported them";
    "acpctl run -s fix 'make the tests pass'" =>
        "Prompt the session `fix` of this directory, or start it",
    "git diff | acpctl run 'review this'" => "Attach the output of another program",
    "id=$(acpctl run -N --detach --worktree=docs --yes 'update the docs')" =>
        "Work in a new worktree, and keep the session's id for `acpctl wait`",
))]
pub(super) struct Run {
    /// Use this agent [default: the session's agent, else the configured one].
    #[arg(short, long)]
    agent: Option<String>,
    /// Continue the session with this name or full id, or start one with this name.
    #[arg(short, long, value_name = "NAME")]
    session: Option<String>,
    /// Continue this session, never start one: name, id, unique prefix of either, words of the title, or `-`
    /// for the last used session.
    #[arg(short, long, value_name = "SESSION", conflicts_with = "session")]
    resume: Option<String>,
    /// Continue the last used session of this directory (and agent).
    #[arg(short = 'c', long = "continue", conflicts_with_all = ["session", "resume"])]
    goes_on: bool,
    #[command(flatten)]
    turn: TurnArgs,
    /// Work in this directory [default: the current one].
    #[arg(short = 'C', long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    cwd: Option<PathBuf>,
    /// Start a session in its own git worktree, `../REPOSITORY.worktrees/NAME`, on the branch `acpd/NAME`
    /// [default: the session's name, else a number].
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true,
        conflicts_with_all = ["resume", "goes_on", "steer"])]
    #[expect(clippy::option_option, reason = "that is how clap tells an option without its value")]
    worktree: Option<Option<String>>,
    #[command(flatten)]
    set_up: SetUp,
    /// Read the prompt from this file; `-` is stdin. PROMPT comes after it.
    #[arg(long = "prompt-file", value_name = "PATH", value_hint = ValueHint::FilePath)]
    prompt_files: Vec<PathBuf>,
    /// Attach a file, or lines of it: PATH, PATH:10 or PATH:10-20.
    #[arg(short = 'F', long = "file", value_name = "PATH[:LINES]", value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,
    /// Attach an image.
    #[arg(short, long = "image", value_name = "FILE", value_hint = ValueHint::FilePath)]
    images: Vec<PathBuf>,
    /// Attach audio.
    #[arg(long = "audio", value_name = "FILE", value_hint = ValueHint::FilePath)]
    sounds: Vec<PathBuf>,
    /// Send the prompt into the running turn. Without `--session` or `--continue`, the first PROMPT is the
    /// session: name, id or unique prefix.
    #[arg(long, conflicts_with_all = ["detach", "thoughts", "json_stream", "yes", "deny", "model", "mode", "set",
        "labels"])]
    steer: bool,
    /// Run the prompt at most once per key and session: a repeated command waits for the first turn or returns
    /// its outcome. Needs `-s` or `-r`.
    #[arg(long, value_name = "KEY", conflicts_with_all = ["steer", "goes_on", "worktree"])]
    key: Option<String>,
    /// The prompt; words are joined.
    #[arg(value_name = "PROMPT")]
    pub(super) prompt: Vec<String>,
}

pub(super) fn run(mut args: Run, ui: &mut Ui) -> Result<ExitCode> {
    if args.steer {
        return steer::steer(&args, ui);
    }
    // Check all arguments before connecting.
    if args.key.is_some() && args.session.is_none() && args.resume.is_none() {
        return Err(CommandError::usage("`--key` needs a session")
            .hint("name a new or existing session: `acpctl run -s NAME --key KEY …`"));
    }
    let begins = args.session.is_none() && args.resume.is_none() && !args.goes_on;
    if args.worktree.is_some() && ui.machine.is_some() {
        return Err(CommandError::usage("`--worktree` makes a worktree on this machine only")
            .hint("make one there, and name it with `--cwd`"));
    }
    let cwd = ui
        .place_of(&args.cwd.clone().map_or_else(current_dir, Ok)?)
        .map_err(|error| if begins { error } else { moved(error) })?;
    let said = Said::read(&args, &args.prompt, ui)?;
    ui.spin("starting");
    let connection = ui.door().connect_lasting()?;
    let turn = match args.worktree.take() {
        Some(name) => open_in_worktree(&mut args, name, Path::new(&cwd), connection, ui)?,
        None => open(&mut args, Path::new(&cwd), false, connection, ui)?,
    };
    let blocks = blocks(&said, &turn.agent, turn.can)?;
    let name = args.session.as_deref().filter(|name| *name != "-");
    let meta = PromptMeta { idempotency_key: args.key.clone(), ..PromptMeta::default() };
    turn.prompt(blocks, &args.turn, meta, name)
}

/// A missing directory may have been renamed.
fn moved(error: CommandError) -> CommandError {
    match error.code() {
        ExitCode::NotFound => error
            .hint("if it was moved, update its sessions: `acpctl session move SESSION --cwd DIR`"),
        _ => error,
    }
}

const REPORT_AFTER: Duration = Duration::from_secs(1);

struct Said {
    prompt: String,
    attachments: Vec<Attachment>,
}

impl Said {
    fn read(args: &Run, words: &[String], ui: &mut Ui) -> Result<Said> {
        let files = args.files.iter().map(|path| Attachment::file(path));
        let images = args.images.iter().map(|path| Attachment::image(path));
        let sounds = args.sounds.iter().map(|path| Attachment::audio(path));
        let attachments = files.chain(images).chain(sounds);
        let mut attachments = attachments.collect::<Result<Vec<_>, _>>()?;
        let (prompt, piped) = prompt(words, &args.prompt_files, !args.turn.no_stdin, ui)?;
        attachments.extend(piped);
        if prompt.trim().is_empty() && attachments.is_empty() {
            let hint = match &args.prompt_files[..] {
                [] => {
                    "give a prompt: `acpctl run 'explain this project'`, or `-` to read it from stdin"
                }
                _ => "the file of `--prompt-file` is empty",
            };
            return Err(CommandError::usage("no prompt given").hint(hint));
        }
        Ok(Said { prompt, attachments })
    }
}

/// Returns the text and the attachment from stdin. With words or files, stdin is attached; without
/// them, or with `-`, stdin is part of the prompt.
fn prompt(
    words: &[String],
    files: &[PathBuf],
    reads_stdin: bool,
    ui: &mut Ui,
) -> Result<(String, Option<Attachment>)> {
    let is_stdin = |path: &PathBuf| path.as_os_str() == "-";
    let (words, is_asked) = match words.split_last() {
        Some((last, words)) if last == "-" => (words, true),
        _ => (words, false),
    };
    let asked = files.iter().filter(|path| is_stdin(path)).count() + usize::from(is_asked);
    if asked > 1 {
        return Err(CommandError::usage("stdin can be read only once").hint("use one `-`"));
    }
    if asked > 0 && !reads_stdin {
        return Err(
            CommandError::usage("`-` contradicts `--no-stdin`").hint("leave out one of them")
        );
    }
    let mut parts = Vec::new();
    for path in files {
        let said = if is_stdin(path) { stdin(ui)? } else { attachment::prompt_file(path)? };
        parts.push(said.trim_end().to_owned());
    }
    let is_all = words.is_empty() && files.is_empty() && !io::stdin().is_terminal();
    parts.push(words.join(" "));
    let mut piped = None;
    if is_asked || is_all && reads_stdin {
        parts.push(stdin(ui)?.trim_end().to_owned());
    } else if asked == 0 && reads_stdin && input_is_fed() {
        let said = stdin(ui)?;
        let size = human::bytes(said.len() as u64);
        piped = Attachment::piped(said);
        // The stdin of a script or a loop may not be meant for the agent.
        if piped.is_some() {
            ui.note(text!("attached stdin, {}; `acpctl run -N` ignores it", size));
        }
    }
    parts.retain(|part| !part.is_empty());
    Ok((parts.join("\n\n"), piped))
}

/// Reads stdin. If that takes long, prints the reason for the wait.
fn stdin(ui: &mut Ui) -> Result<String> {
    let (sender, read) = mpsc::channel();
    thread::Builder::new()
        .name("stdin".to_owned())
        .spawn(move || drop(sender.send(attachment::stdin())))?;
    let read = match read.recv_timeout(REPORT_AFTER) {
        Err(RecvTimeoutError::Timeout) => {
            ui.note("waiting for the end of stdin; `acpctl run -N` ignores it");
            read.recv().map_err(RecvTimeoutError::from)
        }
        read => read,
    };
    let (text, is_mended) =
        read.map_err(|_| CommandError::new(ExitCode::Error, "cannot read stdin"))??;
    if is_mended {
        ui.warn("stdin is not valid UTF-8: invalid bytes become U+FFFD");
    }
    Ok(text)
}
