//! Measures how fast programs start, and come back when they are killed.

use std::process::{Command, Stdio};
use std::thread;
use std::time::Instant;

use acpd_sys::process::Liveness;
use nix::sys::signal::{self, Signal};
use nix::unistd::Pid;
use serde_json::json;

use super::Bench;
use super::table::{Row, median, ms};
use crate::Result;
use crate::home::kill_tree;
use crate::workspace::succeed;

/// Milliseconds that a command takes; its output is dropped.
pub(super) fn timed(command: &mut Command) -> Result<f64> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    succeed(command)?;
    Ok(ms(start.elapsed()))
}

/// Whole runs of `acpctl`.
pub(super) fn command_line(bench: &mut Bench) -> Result {
    let (mut nothing, mut warm, mut cold, mut bridge) = (vec![], vec![], vec![], vec![]);
    for _ in 0..bench.times(200) {
        nothing.push(timed(&mut Command::new("true"))?);
        warm.push(timed(&mut bench.home.acpctl(&["ps"]))?);
    }
    for _ in 0..bench.times(100) {
        let start = Instant::now();
        let peer = bench.bridge()?;
        bridge.push(ms(start.elapsed()));
        drop(peer);
    }
    for _ in 0..bench.times(20) {
        bench.home.stop()?;
        cold.push(timed(&mut bench.home.acpctl(&["ps"]))?);
    }
    let [nothing, warm, cold, bridge] =
        [nothing, warm, cold, bridge].map(|mut times| median(&mut times));
    let direct = |row: Row, time: f64| {
        row.direct(format!("true: {nothing:.2} ms"), format!("+{:.2} ms", time - nothing))
    };
    let row = direct(Row::new("acpctl ps, p50", format!("{warm:.2} ms")), warm);
    bench.row(row.bar("< 3 ms", warm < 3.0));
    let row = direct(Row::new("the same, daemon started, p50", format!("{cold:.1} ms")), cold);
    bench.row(row.bar("< 100 ms", cold < 100.0));
    let row = Row::new("acpctl acp until initialize is answered", format!("{bridge:.2} ms"));
    bench.row(direct(row, bridge).bar("< 15 ms", bridge < 15.0));
    Ok(())
}

/// SIGKILL for the agent, then for the daemon.
pub(super) fn deaths(bench: &mut Bench) -> Result {
    let mut watcher = bench.watcher()?;
    let session = watcher.session(&bench.work())?;
    watcher.prompt(&session, "nothing", |_| ())?;
    let (mut own, mut restored) = (Vec::new(), Vec::new());
    for _ in 0..bench.times(20) {
        let start = Instant::now();
        let mut agent = bench.direct()?;
        let params = json!({"sessionId": session, "cwd": bench.work(), "mcpServers": []});
        agent.call("session/resume", &params)?;
        own.push(ms(start.elapsed()));
        let process = bench.home.agent("bench")?;
        let start = Instant::now();
        kill_tree(process);
        watcher.notice("_acpd/restored", |_| ())?;
        restored.push(ms(start.elapsed()));
    }
    let (own, restored) = (median(&mut own), median(&mut restored));
    let added = restored - own;
    let row = Row::new("agent killed, session restored", format!("{restored:.1} ms"))
        .direct(format!("{own:.1} ms"), format!("+{added:.1} ms"));
    bench.row(row.bar("+ < 50 ms", added < 50.0));

    let mut times = Vec::new();
    for _ in 0..bench.times(20) {
        let daemon = bench.home.daemon()?;
        let start = Instant::now();
        signal::kill(Pid::from_raw(daemon.pid as i32), Signal::SIGKILL)?;
        // Until it is gone its socket takes connections that nobody answers.
        while daemon.is_alive() == Liveness::Alive {
            thread::yield_now();
        }
        bench.home.read(&["ps"])?;
        times.push(ms(start.elapsed()));
    }
    let back = median(&mut times);
    let row = Row::new("acpd killed, acpctl ps answered", format!("{back:.1} ms"));
    bench.row(row.bar("< 150 ms", back < 150.0));
    Ok(())
}
