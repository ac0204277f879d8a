//! Measures how fast a session's journal is read back.

use std::time::Instant;

use serde_json::json;

use super::Bench;
use super::table::{Row, median, ms};
use crate::Result;

/// A session of 100,000 events: all of it again, and only what comes.
pub(super) fn replay(bench: &mut Bench) -> Result {
    let events = bench.times(100_000);
    let mut client = bench.client()?;
    let session = client.session(&bench.work())?;
    client.prompt(&session, &format!("flood {events}"), |_| ())?;
    let (mut rates, mut tails) = (Vec::new(), Vec::new());
    for _ in 0..5 {
        let all = json!({"ref": {"session": session}, "after": 0, "role": "observer"});
        let mut watcher = bench.watcher()?;
        let (mut lines, start) = (0, Instant::now());
        watcher.call("_acpd/session/attach", &all)?;
        watcher.notice("_acpd/caught_up", |_| lines += 1)?;
        rates.push(f64::from(lines) / start.elapsed().as_secs_f64());
        if lines < events as i32 {
            return Err(format!("{lines} of {events} events came").into());
        }
        let mut watcher = bench.watcher()?;
        let start = Instant::now();
        watcher.watch(&session)?;
        tails.push(ms(start.elapsed()));
    }
    let (rate, tail) = (median(&mut rates), median(&mut tails));
    let row = Row::new("replay of 100,000 events", format!("{rate:.0} events/s"));
    bench.row(row.bar("≥ 300000 events/s", rate >= 300_000.0));
    let row = Row::new("attach to them at the tail", format!("{tail:.2} ms"));
    bench.row(row.bar("< 10 ms", tail < 10.0));
    Ok(())
}
