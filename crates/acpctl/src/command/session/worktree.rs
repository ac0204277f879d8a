//! `acpctl session worktree`: the git worktree that a session works in.

use std::path::Path;

use acpd_api::{SessionInfo, TurnState, Untrusted};

use crate::cli;
use crate::dirs::directory;
use crate::door::Door;
use crate::error::{CommandError, Result};
use crate::git::Worktree;
use crate::info::session::handle;
use crate::lookup::{Care, find};
use crate::text::{Text, shell_word, text};
use crate::ui::Ui;

/// Shows it, merges it back or removes it.
pub(super) fn worktree(args: &cli::Worktree, door: Door, ui: &mut Ui) -> Result {
    let changes = args.merge || args.remove;
    let care = if changes { Care::Exact } else { Care::Guess };
    let session = find(&mut door.connect()?, &args.which, care, ui)?;
    let worktree = of(&session)?;
    if changes && session.turn.state != TurnState::Idle {
        let word = shell_word(handle(&session));
        return Err(CommandError::usage(text!("a turn runs in {}", handle(&session))).hint(text!(
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

fn of(session: &SessionInfo) -> Result<Worktree> {
    let dir = directory(Path::new(session.cwd.raw()))?;
    Worktree::of(&dir)?.ok_or_else(|| {
        let (name, cwd) = (handle(session), &session.cwd);
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
        count(worktree.changed, "file"),
        count(worktree.unmerged, "commit"),
    )
}

fn count(number: usize, what: &'static str) -> Text {
    let end = if number == 1 { "" } else { "s" };
    text!("{} {}{}", number, what, end)
}

fn merge(session: &SessionInfo, worktree: &Worktree, ui: &mut Ui) -> Result {
    if worktree.changed > 0 {
        let changed = count(worktree.changed, "file");
        let word = shell_word(handle(session));
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
            (count(worktree.changed, "file"), count(worktree.unmerged, "commit"));
        return Err(CommandError::usage(text!(
            "the worktree has work that is nowhere else: {} not committed, {} not merged",
            changed,
            unmerged
        ))
        .hint("merge it first with `--merge`, or lose it with `--force`"));
    }
    worktree.remove()?;
    let word = shell_word(handle(session));
    ui.say(text!(
        "{} and the branch {} are removed; the session has no directory now, delete it with: acpctl session rm {}",
        Untrusted::from(&worktree.path),
        Untrusted::from(&worktree.branch),
        word
    ));
    Ok(())
}
