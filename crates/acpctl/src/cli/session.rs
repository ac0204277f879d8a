//! The command line of `acpctl session …`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum, ValueHint};

use super::{Json, SetUp, Turn, Which, WhichOrLast};
use crate::when;

#[derive(Debug, Subcommand)]
pub(crate) enum Session {
    #[command(flatten)]
    Command(SessionCommand),
    /// Let another agent continue in the same directory, in a new session that begins with the transcript.
    #[command(after_help = HANDOFF)]
    Handoff(Handoff),
}

/// What is done with a session itself.
#[derive(Debug, Subcommand)]
pub(crate) enum SessionCommand {
    /// List sessions, the most recently used first.
    #[command(alias = "list")]
    Ls {
        /// Only sessions of this agent.
        #[arg(short, long)]
        agent: Option<String>,
        /// Only sessions of this directory.
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        cwd: Option<PathBuf>,
        /// List archived sessions instead.
        #[arg(long)]
        archived: bool,
        /// List archived sessions, too.
        #[arg(long, conflicts_with = "archived")]
        all: bool,
        #[command(flatten)]
        json: Json,
    },
    /// Show one session.
    Show {
        #[command(flatten)]
        which: WhichOrLast,
        #[command(flatten)]
        json: Json,
    },
    /// Print what was said and done.
    #[command(after_help = PAGER)]
    Log(Log),
    /// Find what you and your agents said, the best match first.
    #[command(after_help = SEARCH)]
    Search(Search),
    /// Print a session as a transcript or as data.
    #[command(after_help = EXPORT)]
    Export {
        #[command(flatten)]
        which: WhichOrLast,
        /// What to print.
        #[arg(long, value_enum, default_value_t = Format::Md)]
        format: Format,
        /// The same as `--format json`.
        #[arg(long, conflicts_with = "format")]
        json: bool,
    },
    /// Show the modes of a session, or switch to one.
    Mode {
        #[command(flatten)]
        which: Which,
        /// The mode to switch to: its id or its name.
        mode: Option<String>,
        #[command(flatten)]
        json: Json,
    },
    /// Show the options of a session, the values of one, or set it.
    Set {
        #[command(flatten)]
        which: Which,
        /// The option: its id or its name.
        option: Option<String>,
        /// The value to set.
        value: Option<String>,
        #[command(flatten)]
        json: Json,
    },
    /// List the slash commands that a session's agent has.
    Commands {
        #[command(flatten)]
        which: WhichOrLast,
        #[command(flatten)]
        json: Json,
    },
    /// Give a session another name.
    Rename {
        #[command(flatten)]
        which: Which,
        /// The new name.
        #[arg(required_unless_present = "clear")]
        name: Option<String>,
        /// Remove the name.
        #[arg(long, conflicts_with = "name")]
        clear: bool,
    },
    /// Give a session a title, which the agent's own titles do not replace.
    Title {
        #[command(flatten)]
        which: Which,
        /// The title.
        #[arg(required_unless_present = "clear")]
        title: Option<String>,
        /// Remove the title; the agent's own title shows again.
        #[arg(long, conflicts_with = "title")]
        clear: bool,
    },
    /// Copy a session and its history, and print the id of the copy.
    Fork {
        #[command(flatten)]
        which: Which,
        /// Give the new session this name.
        #[arg(long)]
        name: Option<String>,
    },
    /// Show the git worktree of a session that `run --worktree` made, merge it back, or remove it.
    #[command(after_help = WORKTREE)]
    Worktree(Worktree),
    /// Change the directory of a session, after that directory was moved or renamed.
    Move {
        #[command(flatten)]
        which: Which,
        /// The new directory.
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        cwd: PathBuf,
    },
    /// Give up the agent's copy of a session that cannot be restored: the next prompt continues in a new
    /// one, with a summary or a transcript (`reseed`).
    Reseed {
        #[command(flatten)]
        which: Which,
        /// Do it even if the agent may still have the conversation; what it remembers is lost.
        #[arg(long)]
        discard: bool,
    },
    /// Close a session, so that the agent can free it; the next prompt restores it. A running turn is
    /// cut off.
    Close {
        #[command(flatten)]
        which: Which,
    },
    /// Close a session and leave it out of lists; the next prompt takes it out of the archive. A running
    /// turn is cut off.
    Archive {
        #[command(flatten)]
        which: Which,
    },
    /// Take a session out of the archive.
    Unarchive {
        #[command(flatten)]
        which: Which,
    },
    /// Delete sessions and their history. For a day, `session undo` brings them back.
    Rm(Remove),
    /// Bring a deleted session back.
    Undo {
        /// Its name, its id or the beginning of that [default: the one that was deleted last].
        session: Option<String>,
        /// Only among the sessions of this agent.
        #[arg(short, long)]
        agent: Option<String>,
        /// Bring all deleted sessions back.
        #[arg(long, conflicts_with = "session")]
        all: bool,
        /// Only sessions that were deleted since then: 2h, 09:30, 2026-11-22, or '2026-11-22 09:30'.
        #[arg(long, value_name = "TIME", value_parser = when::time, requires = "all")]
        since: Option<u64>,
    },
}

/// Arguments of `session handoff`.
#[derive(Debug, Args)]
pub(crate) struct Handoff {
    #[command(flatten)]
    pub(crate) which: Which,
    /// The agent that continues.
    #[arg(long, value_name = "AGENT")]
    pub(crate) to: String,
    /// Give the new session this name.
    #[arg(short = 's', long = "name", value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Hand over all turns, not only the last ones.
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) set_up: SetUp,
    #[command(flatten)]
    pub(crate) turn: Turn,
    /// What the agent shall do; several words are joined [default: tell where the work stands].
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Vec<String>,
}

/// Arguments of `session worktree`.
#[derive(Debug, Args)]
pub(crate) struct Worktree {
    /// A name, an id, a unique prefix of either, words of a title, or `-` for the last one used [default:
    /// list the worktrees of all sessions].
    pub(crate) session: Option<String>,
    /// Only among the sessions of this agent.
    #[arg(short, long)]
    pub(crate) agent: Option<String>,
    /// Merge its branch into the one that it came from.
    #[arg(long, requires = "session")]
    pub(crate) merge: bool,
    /// Remove the directory and the branch; with `--merge`, after that.
    #[arg(long, requires = "session")]
    pub(crate) remove: bool,
    /// Remove also what is not committed or not merged.
    #[arg(long, requires = "remove")]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// What `session worktree --json` prints.
const WORKTREE: &str = "\
JSON has path, branch, from (the branch it came from, or null), changed (files that are not committed) and \
unmerged (commits that no other branch has).";

/// What `session handoff` hands over.
const HANDOFF: &str = "\
The transcript is that of `session export`: the last turns, up to 64 KiB. The old session stays. Without PROMPT, \
stdin is read unless it is a terminal. Output and exit codes are those of `run`.";

/// Arguments of `session log`.
#[derive(Debug, Args)]
pub(crate) struct Log {
    #[command(flatten)]
    pub(crate) which: WhichOrLast,
    /// Only the last turn.
    #[arg(long, conflicts_with_all = ["turns", "since"])]
    pub(crate) last: bool,
    /// Only the last N turns.
    #[arg(short = 'n', long, value_name = "N", conflicts_with = "since",
        value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) turns: Option<u32>,
    /// Only turns that began since then: 2h, 09:30, 2026-11-22, or '2026-11-22 09:30'.
    #[arg(long, value_name = "TIME", value_parser = when::time)]
    pub(crate) since: Option<u64>,
    /// Only what the agent said, as `run` prints it to stdout.
    #[arg(long, conflicts_with_all = ["thoughts", "json"])]
    pub(crate) answer: bool,
    /// Show what the agent thought.
    #[arg(long)]
    pub(crate) thoughts: bool,
    /// Print each entry as one line of JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// How `session log` is shown.
const PAGER: &str = "\
On a terminal a pager shows it: $ACPCTL_PAGER, else $PAGER, else less. `ACPCTL_PAGER=cat` means none.";

/// Arguments of `session rm`.
#[derive(Debug, Args)]
pub(crate) struct Remove {
    /// Whole names, whole ids, or ids as lists show them.
    #[arg(value_name = "SESSION", required_unless_present_any = ["older_than", "glob", "agent"],
        conflicts_with_all = ["older_than", "glob"])]
    pub(crate) sessions: Vec<String>,
    /// Only among the sessions of this agent; all of them, if nothing else chooses.
    #[arg(short, long)]
    pub(crate) agent: Option<String>,
    /// All that were last used longer ago than this, such as 30d.
    #[arg(long, value_name = "DURATION", value_parser = when::duration)]
    pub(crate) older_than: Option<Duration>,
    /// All whose name matches, such as 'ci-*'.
    #[arg(long)]
    pub(crate) glob: Option<String>,
    /// Only list what would be deleted.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Also those in which a turn runs or waits.
    #[arg(long)]
    pub(crate) force: bool,
    /// Delete them for good, at once.
    #[arg(long)]
    pub(crate) now: bool,
    /// Do not ask for confirmation.
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// Arguments of `session search`.
#[derive(Debug, Args)]
pub(crate) struct Search {
    /// Words to find; a match has all of them.
    #[arg(required = true, value_name = "WORDS")]
    pub(crate) words: Vec<String>,
    /// Only in sessions of this agent.
    #[arg(short, long)]
    pub(crate) agent: Option<String>,
    /// Only in sessions of the current directory.
    #[arg(long)]
    pub(crate) here: bool,
    /// Show at most N matches.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20,
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) limit: u32,
    #[command(flatten)]
    pub(crate) json: Json,
}

/// How `session search` reads words.
const SEARCH: &str = "\
The search covers messages and the titles of tool calls. Case, accents and punctuation do not matter. \
Quoted words must follow each other: 'merge conflict'. A `*` stands for the rest of a word: 'pars*'. \
A turn is found only after it has ended.";

/// What `session export --format json` prints.
const EXPORT: &str = "\
JSON is one array. Each item has `type` and, but for the first, `seq`: its first line in the journal.

  session       the session, as `session show --json` prints it
  user          content: what the user said, in content blocks of ACP
  agent         content: what the agent said
  thought       content: what the agent thought
  tool_call     toolCallId, title, kind, status, locations, content, rawInput, rawOutput, as in ACP
  plan          entries: the last plan, as in ACP; at the end
  turn_started  turn, at
  turn_ended    turn, at, outcome, usage (tokens and cost, if the agent told)
  restored      level, at, reason
  notice        severity, text
  skipped       bytes, limit

The last five are notices of acpd without their sessionId. More types may come.";

/// A format of `session export`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A transcript in Markdown.
    Md,
    /// Everything as one array.
    Json,
}
