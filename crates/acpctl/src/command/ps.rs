//! `acpctl ps`: an overview of the daemon, agents and sessions.

use std::time::{Duration, Instant};

use acpd_api::{AgentInfo, SessionInfo, SessionState, Status, StatusParams, Watched, method};
use clap::Args;

use crate::args::Json;
use crate::daemon::IN_USE;
use crate::error::{CommandError, Result};
use crate::live::{RowEvent, RowWatch};
use crate::text::{Role, Text, text};
use crate::ui::Ui;
use crate::{human, info};

#[derive(Debug, Args)]
#[command(after_long_help = examples!(
    "acpctl ps" => "Show active and last used sessions",
    "acpctl ps --watch" => "Update it until Ctrl-C",
    "acpctl ps --tree" => "Show which agent started which session",
))]
pub(super) struct Ps {
    /// Show all sessions that are not archived, not only the last ten.
    #[arg(short = 'A', long)]
    all: bool,
    /// Show delegated sessions below the session that started them.
    #[arg(short, long, conflicts_with = "json")]
    tree: bool,
    /// Only sessions with this label; repeat it for sessions with all of several labels.
    #[arg(long = "label", value_name = "LABEL")]
    labels: Vec<String>,
    /// Update the output as it changes; with `--json`, print all rows and then each change as a line.
    #[arg(short, long)]
    watch: bool,
    #[command(flatten)]
    json: Json,
}

/// Sessions in addition to active ones.
const RECENT: u32 = 10;

/// Intervals of `--watch`: minimum between frames, between frames without changes (with and without
/// active sessions), and between requests for the memory of agents.
const FRAME: Duration = Duration::from_millis(100);
const TICK: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(30);
const MEMORY: Duration = Duration::from_secs(5);

const AWAY: &str = "acpd is not reachable; showing its last state";
const STOPPED: &str = "acpd is not running. Start it: `acpctl daemon start`";

pub(super) fn ps(args: Ps, ui: &mut Ui) -> Result {
    if args.watch {
        return watch(&args, ui);
    }
    // JSON has all agents and sessions; the table only those that it shows.
    let params = StatusParams {
        in_use: !args.json.json,
        recent: (!args.json.json && !args.all && args.labels.is_empty()).then_some(RECENT),
        ..StatusParams::default()
    };
    let mut status: Status = ui.door().connect()?.call(method::STATUS, &params)?;
    status.sessions.retain(|session| has_all(session, &args.labels));
    let overview = overview(&status, &args, human::now(), ui.out_width());
    ui.show(args.json.json, &status, overview)
}

fn watch(args: &Ps, ui: &mut Ui) -> Result {
    if !args.json.json && !ui.can_redraw() {
        return Err(CommandError::usage("`--watch` needs a terminal")
            .hint("`acpctl ps --watch --json` prints a line for each change"));
    }
    if args.json.json && !args.labels.is_empty() {
        return Err(CommandError::usage("`--watch --json` reports all sessions")
            .hint("leave out `--label`, and filter the lines"));
    }
    let mut known: Status = ui.door().connect()?.call(method::STATUS, &IN_USE)?;
    let mut rows = RowWatch::begin(ui)?;
    if args.json.json {
        loop {
            match rows.next(LONG)? {
                Some(RowEvent::All(all)) => ui.json_line(&all)?,
                Some(RowEvent::Changed(changed)) => ui.json_line(&changed)?,
                Some(RowEvent::Stopped) => ui.say(STOPPED),
                Some(RowEvent::Away) | None => {}
            }
            ui.flush()?;
        }
    }
    let (mut all, mut is_stale, mut away) = (Watched::default(), false, None);
    let (mut drawn, mut asked) = (Instant::now(), Instant::now());
    loop {
        // Draw changes soon, and update times.
        let pause = match (is_stale, all.sessions.iter().any(is_active)) {
            (true, _) => FRAME.saturating_sub(drawn.elapsed()),
            (false, true) => TICK,
            (false, false) => LONG,
        };
        match rows.next(pause)? {
            Some(RowEvent::All(new)) => (all, away) = (new, None),
            Some(RowEvent::Changed(changed)) => all.apply(changed),
            Some(RowEvent::Away) => away = away.or(Some(AWAY)),
            Some(RowEvent::Stopped) => away = Some(STOPPED),
            None => {
                if away.is_none() && asked.elapsed() >= MEMORY {
                    asked = Instant::now();
                    let daemon = ui.door_to_running().connect().ok();
                    let status =
                        daemon.and_then(|mut daemon| daemon.call(method::STATUS, &IN_USE).ok());
                    known = status.unwrap_or(known);
                }
                let text = frame(&known, &all, args, away, ui);
                ui.redraw(&text)?;
                (drawn, is_stale) = (Instant::now(), false);
                continue;
            }
        }
        is_stale = true;
    }
}

/// Draws the rows. They lack the agents' memory, which comes from `status`.
fn frame(status: &Status, rows: &Watched, how: &Ps, away: Option<&'static str>, ui: &Ui) -> Text {
    let with_memory = |agent: &AgentInfo| {
        let is_it = |known: &&AgentInfo| known.name == agent.name && known.pid == agent.pid;
        let known = status.agents.iter().find(is_it);
        let (rss, processes) = known.map_or((None, None), |known| (known.rss, known.processes));
        AgentInfo { rss, processes, ..agent.clone() }
    };
    let mut sessions = rows.sessions.clone();
    sessions.retain(|session| has_all(session, &how.labels));
    sessions.sort_by_key(|session| std::cmp::Reverse(session.updated));
    let agents = rows.agents.iter().map(with_memory).collect();
    let (daemon, hosts) = (status.daemon.clone(), rows.hosts.clone());
    let now = Status { daemon, agents, sessions, hosts, ..Status::default() };
    let text = overview(&now, how, human::now(), ui.out_width());
    match away {
        Some(away) => Text::styled(Role::Warning, away) + "\n" + text,
        None => text,
    }
}

fn overview(status: &Status, how: &Ps, now: u64, width: Option<usize>) -> Text {
    let mut text = info::daemon::line(&status.daemon, now);
    text += info::daemon::unreachable(&status.hosts);
    let agents: Vec<_> = status.agents.iter().filter(|agent| agent.is_in_use()).collect();
    let unused =
        u64::from(status.unused.unwrap_or(0)) + (status.agents.len() - agents.len()) as u64;
    if !agents.is_empty() {
        text += text!("\n{}", info::agent::table(agents.iter().copied(), now, width));
    }
    for agent in agents {
        if let Some(hint) = &agent.hint {
            text += Text::styled(Role::Warning, text!("{}: {}", agent.name, hint)) + "\n";
        }
        let age = Some(now.saturating_sub(status.daemon.since));
        if let Some(lacking) = info::environment::lacking(agent, age) {
            text += Text::styled(Role::Warning, text!("{}: {}", agent.name, lacking)) + "\n";
        }
    }
    let mut recent = 0;
    let is_shown = |session: &&SessionInfo| {
        let is_recent = !is_active(session) && {
            recent += 1;
            recent <= RECENT
        };
        how.all || is_recent || is_active(session)
    };
    let shown: Vec<_> = status.sessions.iter().filter(is_shown).collect();
    let left = status.sessions.len() - shown.len() + status.omitted.unwrap_or(0) as usize;
    if !shown.is_empty() {
        let table = info::session::table(shown, how.tree, now, width);
        text += text!("\n{}", table);
    }
    if left > 0 {
        let more = human::counted(left, "more session");
        text += Text::styled(Role::Dim, text!("{}: acpctl ps --all", more)) + "\n";
    }
    if unused > 0 {
        let more = human::counted(unused, "more agent");
        let line = text!("\n{} without sessions: acpctl agent ls --all", more);
        text += Text::styled(Role::Dim, line) + "\n";
    }
    text
}

fn has_all(session: &SessionInfo, labels: &[String]) -> bool {
    labels.iter().all(|label| session.labels.iter().any(|has| *has == **label))
}

fn is_active(session: &SessionInfo) -> bool {
    info::session::is_at_work(session)
        || matches!(session.state, SessionState::Restoring | SessionState::Blocked)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_active_is_shown_and_the_last_ten() {
        let session = |name: &str, turn: &str| {
            json!({"sessionId": name, "name": name, "agent": "demo", "cwd": "/work/app",
                "state": "live", "turn": {"state": turn, "since": 90_000}, "queued": 0,
                "clients": 1, "prompts": 3, "seq": 40, "created": 1000, "updated": 90_000})
        };
        let old = (0..12).map(|number| session(&format!("old-{number}"), "idle"));
        let sessions: Vec<_> = old.chain([session("fix", "working")]).collect();
        let status: Status = serde_json::from_value(json!({
            "daemon": {"version": "0.1.0", "api": 1, "pid": 7, "since": 10_000, "clients": 2,
                "store": {"state": "ok"}, "defaultAgent": "demo", "socket": "/s",
                "database": "/d", "log": "/l", "config": "/c"},
            "agents": [],
            "sessions": sessions,
        }))
        .unwrap();
        let shown = |all| {
            let (tree, watch, json) = (false, false, Json { json: false });
            let how = Ps { all, tree, labels: Vec::new(), watch, json };
            overview(&status, &how, 100_000, None).to_string()
        };
        let (some, all) = (shown(false), shown(true));
        let names = |text: &str| text.lines().filter(|line| line.starts_with("old-")).count();
        assert_eq!((names(&some), names(&all)), (10, 12));
        assert!(some.contains("\nfix ") && some.contains("\n2 more sessions: acpctl ps --all\n"));
        assert!(!all.contains("more sessions"));
    }
}
