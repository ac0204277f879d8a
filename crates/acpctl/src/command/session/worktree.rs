//! `acpctl session worktree`: the git worktree that a session works in.

use std::path::Path;

use acpd_api::{SessionInfo, SessionList, TurnState, Untrusted, method};
use clap::Args;
use serde::Serialize;

use crate::args::Json;
use crate::dirs::directory;
use crate::door::Door;
use crate::error::{CommandError, Result};
use crate::git::{self, Worktree};
use crate::human::counted;
use crate::lookup::{self, Care, Which, find};
use crate::paint::BOLD;
use crate::table::{Cell, Cut, Table};
use crate::text::{Text, shell_word, text};
use crate::ui::Ui;

#[derive(Debug, Args)]
#[command(after_long_help = examples!(
    "\
JSON has path, branch, from (the branch it came from, or null), changed (files that are not committed) and \
unmerged (commits that no other branch has).";
    "acpctl session worktree" => "List the worktrees of all sessions",
    "acpctl session worktree fix" => "Show what is not committed and not merged",
    "acpctl session worktree fix --merge --remove" => "Merge its branch; then it goes",
))]
pub(in crate::command) struct WorktreeArgs {
    /// A name, an id, a unique prefix of either, words of a title, or `-` for the last one used [default:
    /// list the worktrees of all sessions].
    session: Option<String>,
    /// Only among the sessions of this agent.
    #[arg(short, long)]
    agent: Option<String>,
    /// Merge its branch into the one that it came from.
    #[arg(long, requires = "session")]
    merge: bool,
    /// Remove the directory and the branch; with `--merge`, after that.
    #[arg(long, requires = "session")]
    remove: bool,
    /// Remove also what is not committed or not merged.
    #[arg(long, requires = "remove")]
    force: bool,
    #[command(flatten)]
    json: Json,
}

/// Lists all, or shows one, merges it back or removes it.
pub(super) fn worktree(args: &WorktreeArgs, door: Door, ui: &mut Ui) -> Result {
    let Some(session) = args.session.clone() else { return list(args, door, ui) };
    let changes = args.merge || args.remove;
    let care = if changes { Care::Exact } else { Care::Guess };
    let which = Which { session, agent: args.agent.clone() };
    let session = find(&mut door.connect()?, &which, care, ui)?;
    let worktree = of(&session)?;
    if changes && session.turn.state != TurnState::Idle {
        let word = shell_word(session.handle());
        return Err(CommandError::usage(text!("a turn runs in {}", session.handle())).hint(text!(
            "wait for it with `acpctl wait {}`, or end it with `acpctl cancel {}`",
            word,
            word
        )));
    }
    if args.merge {
        merge(&session, &worktree, ui)?;
    }
    if args.remove {
        return remove(&session, args.force, ui);
    }
    if args.json.json {
        return Ok(ui.json(&of(&session)?)?);
    }
    if args.merge {
        return Ok(());
    }
    Ok(ui.print(card(&worktree))?)
}

/// A session and its worktree, in JSON.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    session_id: Untrusted,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Untrusted>,
    worktree: Worktree,
}

fn list(args: &WorktreeArgs, door: Door, ui: &mut Ui) -> Result {
    let all: SessionList = door.connect()?.call(method::SESSION_LIST, &lookup::all())?;
    let is_wanted =
        |session: &SessionInfo| args.agent.as_ref().is_none_or(|agent| session.agent == *agent);
    let mut found = Vec::new();
    for session in all.sessions.into_iter().filter(is_wanted) {
        // A directory that is gone, or no repository any more, has none.
        if let Ok(Some(worktree)) = git::worktree_of(Path::new(session.cwd.raw())) {
            found.push(Listed { session_id: session.session_id, name: session.name, worktree });
        }
    }
    if args.json.json {
        return Ok(ui.json(&found)?);
    }
    if found.is_empty() {
        ui.say("no session works in a worktree; `acpctl run --worktree=NAME PROMPT` begins one");
        return Ok(());
    }
    let mut table = Table::new(["SESSION", "BRANCH", "NOT COMMITTED", "NOT MERGED", "DIRECTORY"])
        .cut("DIRECTORY", Cut::Middle(12));
    for Listed { session_id, name, worktree } in &found {
        table.row([
            Cell::new(name.as_ref().unwrap_or(session_id), BOLD),
            Cell::from(&Untrusted::from(&worktree.branch)),
            text!("{}", worktree.changed).into(),
            text!("{}", worktree.unmerged).into(),
            Cell::from(&Untrusted::from(&worktree.path)),
        ]);
    }
    Ok(ui.print(table.render(ui.out_paint(), ui.out_width()))?)
}

fn of(session: &SessionInfo) -> Result<Worktree> {
    let dir = directory(Path::new(session.cwd.raw()))?;
    Worktree::of(&dir)?.ok_or_else(|| {
        let (name, cwd) = (session.handle(), &session.cwd);
        CommandError::usage(text!("{} works in no worktree of acpctl: `{}`", name, cwd))
            .hint("`acpctl run --worktree=NAME PROMPT` begins a session in one")
    })
}

fn card(worktree: &Worktree) -> Text {
    let from = match &worktree.from {
        Some(from) => text!(", from {}", Untrusted::from(from)),
        None => Text::new(),
    };
    text!(
        "directory: {}\nbranch: {}{}\nnot committed: {}\nnot merged: {}\n",
        Untrusted::from(&worktree.path),
        Untrusted::from(&worktree.branch),
        from,
        counted(worktree.changed as u64, "file"),
        counted(worktree.unmerged as u64, "commit"),
    )
}

fn merge(session: &SessionInfo, worktree: &Worktree, ui: &mut Ui) -> Result {
    if worktree.changed > 0 {
        let changed = counted(worktree.changed as u64, "file");
        let word = shell_word(session.handle());
        return Err(CommandError::usage(text!("not committed in the worktree: {}", changed)).hint(
            text!("let the agent do it: `acpctl run --resume {} 'commit your work'`", word),
        ));
    }
    let into = Untrusted::from(worktree.merge()?);
    ui.say(text!("{} is merged into {}", Untrusted::from(&worktree.branch), into));
    Ok(())
}

fn remove(session: &SessionInfo, force: bool, ui: &mut Ui) -> Result {
    // A merge before it counts.
    let worktree = of(session)?;
    if !force && (worktree.changed > 0 || worktree.unmerged > 0) {
        let (changed, unmerged) =
            (counted(worktree.changed as u64, "file"), counted(worktree.unmerged as u64, "commit"));
        return Err(CommandError::usage(text!(
            "the worktree has work that is nowhere else: {} not committed, {} not merged",
            changed,
            unmerged
        ))
        .hint("merge it first with `--merge`, or lose it with `--force`"));
    }
    worktree.remove()?;
    let word = shell_word(session.handle());
    ui.say(text!(
        "{} and the branch {} are removed; the session has no directory now, delete it with: acpctl session rm {}",
        Untrusted::from(&worktree.path),
        Untrusted::from(&worktree.branch),
        word
    ));
    Ok(())
}
