//! `acpctl session rm`: deletes sessions, after listing them.

use std::path::Path;
use std::time::Duration;

use acpd_api::{ExitCode, RemoveParams, RemoveResult, SessionInfo, SessionList, Untrusted, method};
use acpd_client::Connection;
use acpd_client::worktree::worktree_of;
use clap::Args;
use glob::Pattern;

use crate::confirm::{ADD_YES_OR_DRY_RUN, confirm, yes};
use crate::error::{CommandError, Result};
use crate::human;
use crate::info::session::{is_at_work, table};
use crate::lookup::{self, Care, Wanted};
use crate::text::{Text, shell_word, text};
use crate::ui::Ui;

#[derive(Debug, Args)]
#[command(after_long_help = examples!(
    "acpctl session rm main" => "Delete a session, after confirmation",
    "acpctl session rm --older-than 30d --dry-run" => "List sessions that were not used for a month",
    "acpctl session rm --glob 'ci-*' --yes" => "Delete sessions by name in a script",
))]
pub(in crate::command) struct Rm {
    /// Full names, full ids, or ids as lists show them.
    #[arg(value_name = "SESSION", required_unless_present_any = ["older_than", "glob", "agent"],
        conflicts_with_all = ["older_than", "glob"])]
    sessions: Vec<String>,
    /// Only sessions of this agent; without other filters, all of them.
    #[arg(short, long)]
    agent: Option<String>,
    /// All that were not used for this long, such as 30d.
    #[arg(long, value_name = "DURATION", value_parser = human::read_duration)]
    older_than: Option<Duration>,
    /// All with a matching name, such as 'ci-*'.
    #[arg(long)]
    glob: Option<String>,
    /// Only list what would be deleted.
    #[arg(long)]
    dry_run: bool,
    /// Also delete sessions that work or have queued prompts.
    #[arg(long)]
    force: bool,
    /// Delete permanently, without `session undo`.
    #[arg(long)]
    now: bool,
    /// Do not ask for confirmation.
    #[arg(short, long)]
    yes: bool,
}

/// Prints an earlier error, which decides the exit code. The other sessions are deleted anyway.
fn next_error(done: Result, error: CommandError, ui: &mut Ui) -> CommandError {
    let Err(before) = done else { return error };
    ui.talk(&before.render());
    error.with_code(before.code())
}

pub(super) fn rm(args: &Rm, ui: &mut Ui) -> Result {
    let glob = args
        .glob
        .as_deref()
        .map(Pattern::new)
        .transpose()
        .map_err(|error| CommandError::usage(text!("`--glob`: {}", Untrusted::of(&error))))?;
    let mut connection = ui.door().connect()?;
    let list = lookup::all(&mut connection)?;
    let (gone, mut done) = if args.sessions.is_empty() {
        (matching(args, glob.as_ref(), &list, ui), Ok(()))
    } else {
        named(args, &list, ui)
    };
    if gone.is_empty() {
        if done.is_ok() {
            ui.say("no session matches");
        }
        return done;
    }
    if args.dry_run {
        ui.print(table(&gone, false, human::now(), ui.out_width()))?;
        return done;
    }
    if !args.yes {
        ask(&gone, ui)?;
    }
    let is_left = |cwd: &Untrusted| {
        let is_gone = |other: &SessionInfo| gone.iter().any(|one| one.row_key() == other.row_key());
        list.sessions.iter().any(|other| other.cwd == *cwd && !is_gone(other))
    };
    for session in &gone {
        match delete(&mut connection, session, args.now) {
            Ok(None) => ui.say(text!("deleted {}", session.handle())),
            Ok(Some(until)) => ui.say(text!(
                "deleted {}; until {}, `acpctl session undo {}` restores it",
                session.handle(),
                human::clock(until),
                shell_word(session.handle())
            )),
            Err(error) => {
                done = Err(next_error(done, error, ui));
                continue;
            }
        }
        if !is_left(&session.cwd) {
            offer_worktree(session, args.yes, ui)?;
        }
    }
    done
}

/// Offers to remove a deleted session's worktree if it has no unsaved work.
fn offer_worktree(session: &SessionInfo, is_sure: bool, ui: &mut Ui) -> Result {
    let Ok(Some(worktree)) = worktree_of(Path::new(session.cwd.raw())) else { return Ok(()) };
    let (path, branch) = (Untrusted::from(&worktree.path), Untrusted::from(&worktree.branch));
    let is_clean = worktree.changed == 0 && worktree.unmerged == 0;
    let prompt = text!("also remove its worktree {} and the branch {}? y/n > ", path, branch);
    if is_clean && !is_sure && ui.can_ask() && yes(ui, prompt).unwrap_or(false) {
        worktree.remove()?;
        return ui.done(text!("removed {} and the branch {}", path, branch));
    }
    let work = if is_clean { "" } else { " with unmerged work" };
    let word = shell_word(&path);
    ui.done(text!("kept its worktree{}; to remove it: git worktree remove {}", work, word))
}

/// Returns the time until which the session can be restored.
fn delete(connection: &mut Connection, session: &SessionInfo, now: bool) -> Result<Option<u64>> {
    let params = RemoveParams { session: session.exactly(), now };
    let result: RemoveResult = connection.call(method::SESSION_REMOVE, &params)?;
    Ok(result.until)
}

/// Returns sessions with exactly these names and ids, and the last error.
fn named(args: &Rm, list: &SessionList, ui: &mut Ui) -> (Vec<SessionInfo>, Result) {
    let (mut found, mut done): (Vec<SessionInfo>, _) = (Vec::new(), Ok(()));
    for name in &args.sessions {
        match Wanted::here(name, args.agent.as_deref()).choose(list.clone(), Care::Exact, drop) {
            Ok(session) if is_at_work(&session) && !args.force => {
                let name = session.handle();
                let text = text!("session `{}` is working or has queued prompts", name);
                let word = shell_word(name);
                let hint = text!("`acpctl cancel {}` first, or add `--force`", word);
                let error = CommandError::new(ExitCode::Error, text).hint(hint);
                done = Err(next_error(done, error, ui));
            }
            Ok(session) if found.iter().any(|one| one.row_key() == session.row_key()) => {}
            Ok(session) => found.push(session),
            Err(error) => done = Err(next_error(done, error, ui)),
        }
    }
    (found, done)
}

fn matching(
    args: &Rm,
    glob: Option<&Pattern>,
    list: &SessionList,
    ui: &mut Ui,
) -> Vec<SessionInfo> {
    let now = human::now();
    let old = args.older_than.map(|age| u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
    let matches = |session: &&SessionInfo| {
        let name = session.name.as_ref().map(Untrusted::raw);
        args.agent.as_ref().is_none_or(|agent| lookup::is_agent(&session.agent, agent))
            && old.is_none_or(|age| now.saturating_sub(session.updated) > age)
            && glob.is_none_or(|glob| name.is_some_and(|name| glob.matches(name)))
    };
    let (busy, found): (Vec<_>, Vec<_>) = (list.sessions.iter().filter(matches))
        .partition(|session| is_at_work(session) && !args.force);
    for session in busy {
        ui.say(text!("skipped {}: it is working or has queued prompts", session.handle()));
    }
    found.into_iter().cloned().collect()
}

fn ask(sessions: &[SessionInfo], ui: &mut Ui) -> Result {
    let now = human::now();
    let names = Text::join(sessions.iter().map(|session| session.handle().into()), ", ");
    let (shown, what) = match sessions {
        [session] => (Text::new(), line(session, now)),
        several => {
            let lines = several.iter().map(|session| text!("  {}\n", line(session, now)));
            (lines.collect(), text!("these {} sessions", several.len()))
        }
    };
    let prompt = text!("delete {} with all history? y/n > ", what);
    confirm(ui, text!("deleting {}", names), ADD_YES_OR_DRY_RUN, &shown, prompt)
}

fn line(session: &SessionInfo, now: u64) -> Text {
    text!(
        "{} ({}, in {}, {}, used {})",
        session.handle(),
        session.agent,
        session.cwd,
        human::counted(session.prompts, "prompt"),
        human::ago(session.updated, now)
    )
}
