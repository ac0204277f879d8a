//! `acpctl session worktree`: the git worktree of a session.

use std::path::Path;

use acpd_api::{SessionInfo, TurnState, Untrusted};
use acpd_client::worktree::{Worktree, worktree_of};
use clap::Args;
use serde::Serialize;

use crate::args::Json;
use crate::dirs::directory;
use crate::error::{CommandError, Result};
use crate::human::counted;
use crate::lookup::{self, Care, Which, find};
use crate::text::{BOLD, Cut, Table, Text, shell_word, text};
use crate::ui::Ui;

#[derive(Debug, Args)]
#[command(after_long_help = examples!(
    "\
JSON has path, branch, from (the branch it started from, or null), changed (number of uncommitted files) and unmerged \
(number of commits on no other branch).";
    "acpctl session worktree" => "List the worktrees of all sessions",
    "acpctl session worktree fix" => "Show uncommitted and unmerged work",
    "acpctl session worktree fix --merge --remove" => "Merge its branch, then remove it",
))]
pub(in crate::command) struct WorktreeArgs {
    /// Name, id, unique prefix of either, words of the title, or `-` for the last used session [default: list the
    /// worktrees of all sessions].
    session: Option<String>,
    /// Look only among sessions of this agent.
    #[arg(short, long)]
    agent: Option<String>,
    /// Merge its branch into the branch that it started from.
    #[arg(long, requires = "session")]
    merge: bool,
    /// Remove the directory and the branch; with `--merge`, after the merge.
    #[arg(long, requires = "session")]
    remove: bool,
    /// Also remove work that is not committed or not merged.
    #[arg(long, requires = "remove")]
    force: bool,
    #[command(flatten)]
    json: Json,
}

pub(super) fn worktree(args: &WorktreeArgs, ui: &mut Ui) -> Result {
    let Some(session) = args.session.clone() else { return list(args, ui) };
    let changes = args.merge || args.remove;
    let care = if changes { Care::Exact } else { Care::Guess };
    let which = Which { session, agent: args.agent.clone() };
    let session = find(&mut ui.door().connect()?, &which, care, ui)?;
    let worktree = of(&session)?;
    if changes && session.turn.state != TurnState::Idle {
        let word = shell_word(session.handle());
        return Err(CommandError::usage(text!("a turn is running in {}", session.handle()))
            .hint(text!("wait: `acpctl wait {}`, or cancel it: `acpctl cancel {}`", word, word)));
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
    if args.merge { Ok(()) } else { Ok(ui.print(card(&worktree))?) }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed {
    session_id: Untrusted,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<Untrusted>,
    worktree: Worktree,
}

fn list(args: &WorktreeArgs, ui: &mut Ui) -> Result {
    let all = lookup::all(&mut ui.door().connect()?)?;
    let is_wanted =
        |session: &SessionInfo| args.agent.as_ref().is_none_or(|agent| session.agent == *agent);
    let mut found = Vec::new();
    for session in all.sessions.into_iter().filter(is_wanted) {
        // A missing directory, or one without a repository, has no worktree.
        if let Ok(Some(worktree)) = worktree_of(Path::new(session.cwd.raw())) {
            found.push(Listed { session_id: session.session_id, name: session.name, worktree });
        }
    }
    let nothing = "no session has a worktree; start one: `acpctl run --worktree=NAME PROMPT`";
    let nothing = found.is_empty().then_some(nothing);
    let row = |Listed { session_id, name, worktree }: &Listed| {
        [
            Text::styled(BOLD, name.as_ref().unwrap_or(session_id)),
            Text::from(&Untrusted::from(&worktree.branch)),
            text!("{}", worktree.changed),
            text!("{}", worktree.unmerged),
            Text::from(&Untrusted::from(&worktree.path)),
        ]
    };
    let titles = ["SESSION", "BRANCH", "NOT COMMITTED", "NOT MERGED", "DIRECTORY"];
    let table = Table::new(titles, found.iter().map(row)).cut("DIRECTORY", Cut::Middle(12));
    ui.show_list(args.json.json, &found, nothing, table.render(ui.out_width()))
}

fn of(session: &SessionInfo) -> Result<Worktree> {
    let dir = directory(Path::new(session.cwd.raw()))?;
    Worktree::of(&dir)?.ok_or_else(|| {
        let (name, cwd) = (session.handle(), &session.cwd);
        CommandError::usage(text!("{} has no worktree: it works in `{}`", name, cwd))
            .hint("start a session in one: `acpctl run --worktree=NAME PROMPT`")
    })
}

fn card(worktree: &Worktree) -> Text {
    let from = worktree.from.as_ref().map(|from| text!(", from {}", Untrusted::from(from)));
    text!(
        "directory: {}\nbranch: {}{}\nnot committed: {}\nnot merged: {}\n",
        Untrusted::from(&worktree.path),
        Untrusted::from(&worktree.branch),
        from,
        counted(worktree.changed, "file"),
        counted(worktree.unmerged, "commit"),
    )
}

fn merge(session: &SessionInfo, worktree: &Worktree, ui: &mut Ui) -> Result {
    if worktree.changed > 0 {
        let changed = counted(worktree.changed, "file");
        let word = shell_word(session.handle());
        return Err(CommandError::usage(text!(
            "the worktree has uncommitted changes: {}",
            changed
        ))
        .hint(text!("let the agent do it: `acpctl run --resume {} 'commit your work'`", word)));
    }
    let into = Untrusted::from(worktree.merge()?);
    ui.done(text!("{} is merged into {}", Untrusted::from(&worktree.branch), into))
}

fn remove(session: &SessionInfo, force: bool, ui: &mut Ui) -> Result {
    // A merge just before may have changed it.
    let worktree = of(session)?;
    if !force && (worktree.changed > 0 || worktree.unmerged > 0) {
        let (changed, unmerged) =
            (counted(worktree.changed, "file"), counted(worktree.unmerged, "commit"));
        return Err(CommandError::usage(text!(
            "the worktree has unsaved work: {} not committed, {} not merged",
            changed,
            unmerged
        ))
        .hint("merge it first (`--merge`), or discard it (`--force`)"));
    }
    worktree.remove()?;
    ui.done(text!(
        "removed {} and the branch {}; the session has no directory now, delete it with: acpctl session rm {}",
        Untrusted::from(&worktree.path),
        Untrusted::from(&worktree.branch),
        shell_word(session.handle())
    ))
}
