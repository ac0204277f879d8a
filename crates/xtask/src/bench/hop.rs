//! Measures what the shim between agent and daemon costs, and how fast clients go on when the daemon is
//! killed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread;

use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
use serde_json::json;

use super::Bench;
use super::agent::{nanos, stamp};
use super::stream::{RUNS, Spread, ages, in_turn, timed_flood};
use super::table::{Row, median};
use crate::Result;
use crate::peer::Peer;

/// Editors whose daemon is killed.
const EDITORS: usize = 8;
/// Lines of the answer.
const LINES: usize = 1_500;

/// The same line with a shim between agent and daemon, and without.
pub(super) fn latency(bench: &mut Bench) -> Result {
    let prompt = format!("pace {} 200", bench.times(3000));
    let mut peers = both(bench)?;
    let cwd = bench.work();
    let peers = peers.each_mut();
    let runs = in_turn(peers, &cwd, RUNS, |peer, session| ages(peer, session, &prompt))?;
    let [with, without] = runs.map(|runs| Spread::median(&runs));
    let added = format!("+{}", with.beyond(&without).text());
    let row = Row::new("the hop through the shim, p50 / p99", with.text());
    bench.row(row.direct(format!("host = direct: {}", without.text()), added));
    Ok(())
}

/// The same stream with a shim and without.
pub(super) fn throughput(bench: &mut Bench) -> Result {
    let count = bench.times(200_000);
    let mut peers = both(bench)?;
    let cwd = bench.work();
    let rates = in_turn(peers.each_mut(), &cwd, RUNS, |peer, session| {
        Ok(count as f64 / timed_flood(peer, session, count)?)
    })?;
    let [with, without] = rates.map(|mut rates| median(&mut rates));
    let row = Row::new("stream through the shim", format!("{with:.0} lines/s"));
    let direct = format!("host = direct: {without:.0} lines/s");
    bench.row(row.direct(direct, format!("{:.2} of it", with / without)));
    Ok(())
}

fn both(bench: &Bench) -> Result<[Peer; 2]> {
    let bound = json!({"agent": "bench"});
    Ok([Bench::client_of(&bench.home, &bound)?, Bench::client_of(&bench.without, &bound)?])
}

/// SIGKILL for the daemon in the middle of an answer that several editors follow: until each of them
/// has read something that the agent wrote after that. All lines must come, to everyone.
pub(super) fn daemon_killed(bench: &mut Bench) -> Result {
    let mut times = Vec::new();
    for _ in 0..bench.times(10) {
        times.push(kill_once(bench)?);
    }
    let whole = median(&mut times);
    let row = Row::new("acpd killed, 8 editors whole again", format!("{whole:.1} ms"));
    bench.row(row.bar("< 300 ms", whole < 300.0));
    Ok(())
}

/// The time of day in nanoseconds; good until the year 2554.
fn now() -> u64 {
    nanos() as u64
}

fn kill_once(bench: &Bench) -> Result<f64> {
    let cwd = bench.work();
    let killed = Arc::new(AtomicU64::new(u64::MAX));
    let (tell, told) = mpsc::channel();
    let mut first = bench.bridge()?;
    let session = first.session(&cwd)?;
    let mut editors = vec![(first, true)];
    for _ in 1..EDITORS {
        let mut editor = bench.bridge()?;
        let params = json!({"sessionId": session, "cwd": cwd, "mcpServers": []});
        editor.call("session/load", &params)?;
        editors.push((editor, false));
    }
    let following: Vec<_> = editors
        .into_iter()
        .map(|(editor, prompts)| {
            let (session, killed, tell) = (session.clone(), Arc::clone(&killed), tell.clone());
            thread::spawn(move || {
                follow(editor, prompts, &session, &killed, &tell).map_err(|e| e.to_string())
            })
        })
        .collect();
    drop(tell);
    let daemon = bench.home.daemon()?;
    // Everybody follows; then it dies.
    for _ in 0..EDITORS {
        told.recv()?;
    }
    let start = now();
    killed.store(start, Ordering::Release);
    signal::kill(Pid::from_raw(daemon.pid as i32), Signal::SIGKILL)?;
    let back = (0..EDITORS).map(|_| told.recv()).collect::<std::result::Result<Vec<u64>, _>>()?;
    for editor in following {
        editor.join().map_err(|_| "an editor panicked")??;
    }
    let last = back.into_iter().max().unwrap_or(start);
    Ok((last - start) as f64 / 1e6)
}

/// Reads a stream to its end. Tells the time of its 100th line, and of the first one that was
/// written after the daemon was killed.
fn follow(
    mut editor: Peer,
    prompts: bool,
    session: &str,
    killed: &AtomicU64,
    tell: &Sender<u64>,
) -> Result {
    let (mut seen, mut is_back) = (0, false);
    let mut look = |line: &[u8]| {
        let Some(then) = stamp(line) else { return seen };
        seen += 1;
        let after = then as u64 > killed.load(Ordering::Acquire);
        if seen == 100 || (after && !is_back) {
            is_back |= after;
            tell.send(now()).ok();
        }
        seen
    };
    if prompts {
        editor.prompt(session, &format!("pace {LINES} 500"), |line| {
            look(line);
        })?;
    } else {
        while look(editor.line()?) < LINES {}
    }
    match look(b"") {
        LINES => Ok(()),
        seen => Err(format!("an editor read {seen} of {LINES} lines").into()),
    }
}
