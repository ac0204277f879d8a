//! Measures the full screens: until something is on them, and what they take while they change and while they do not.

use std::thread;
use std::time::{Duration, Instant};

use acpd_sys::process::pss_bytes;
use acpd_test::harness::Screen;
use serde_json::json;

use super::process::cpu_micros;
use super::table::{Row, median, ms};
use super::{Bench, configure};
use crate::Result;
use crate::home::Home;
use crate::peer::Peer;

const SIZE: (u16, u16) = (100, 30);
/// Agents that work at the same time.
const AGENTS: usize = 4;
const SESSIONS: usize = 125;
/// Pieces of an answer in a second, from each agent. `top` is told of all of them together 20 times a second.
const PIECES: usize = 20;
/// How long what began with a screen or a turn may go on.
const SETTLES: Duration = Duration::from_secs(2);
const CTRL_D: &str = "\u{4}";

/// A screen, what is on it when it is there, and while turns run, and its rows.
struct Part {
    args: &'static [&'static str],
    rests: &'static str,
    works: &'static str,
    paint: &'static str,
    idle: &'static str,
    memory: &'static str,
    busy: &'static str,
}

const PARTS: [Part; 2] = [
    Part {
        args: &["top"],
        rests: "500 rest",
        works: "4 work",
        paint: "acpctl top, 500 sessions: first paint, p50",
        idle: "the same, nothing happens: CPU",
        memory: "the same: PSS",
        busy: "the same, 20 changes a second: CPU",
    },
    Part {
        args: &["chat", "last-0"],
        rests: "live",
        works: "* works",
        paint: "acpctl chat: first paint, p50",
        idle: "the same, nothing happens: CPU",
        memory: "the same: PSS",
        busy: "the same, 20 pieces a second: CPU",
    },
];

/// `top` with many sessions, and `chat`.
pub(super) fn screens(bench: &mut Bench) -> Result {
    let home = Home::new(&bench.bins)?;
    configure(&home, "shim")?;
    let mut agents = Vec::new();
    for n in 0..AGENTS {
        let mut peer = Bench::client_of(&home, &json!({"agent": format!("bench{n}")}))?;
        for _ in 1..SESSIONS {
            peer.session(&bench.work())?;
        }
        let meta = json!({"_acpd": {"name": format!("last-{n}")}});
        let params = json!({"cwd": bench.work(), "mcpServers": [], "_meta": meta});
        let made = peer.call("session/new", &params)?;
        let session = made["sessionId"].as_str().ok_or("no session id")?.to_owned();
        peer.prompt(&session, "flood 1000", |_| ())?;
        agents.push((peer, session));
    }
    for part in &PARTS {
        measure(part, &home, &mut agents, bench)?;
    }
    drop(agents);
    home.stop()
}

fn measure(part: &Part, home: &Home, agents: &mut [(Peer, String)], bench: &mut Bench) -> Result {
    let mut paints = Vec::new();
    for _ in 0..bench.times(30) {
        let start = Instant::now();
        let mut screen = Screen::start(home.acpctl(part.args), SIZE);
        screen.sees(part.rests);
        paints.push(ms(start.elapsed()));
        leave(&mut screen)?;
    }
    let paint = median(&mut paints);
    bench.row(Row::new(part.paint, format!("{paint:.1} ms")).bar("< 30 ms", paint < 30.0));

    let watched = bench.times(10);
    let mut screen = Screen::start(home.acpctl(part.args), SIZE);
    screen.sees(part.rests);
    thread::sleep(SETTLES);
    let idle = cpu_percent(&screen, watched);
    bench.row(Row::new(part.idle, format!("{idle:.2} %")).bar("< 0.5 %", idle < 0.5));
    let pss = pss_bytes(screen.pid())?;
    bench.row(Row::new(part.memory, format!("{:.1} MB", pss as f64 / 1e6)));

    let pieces = (watched + 8) * PIECES;
    let prompt = format!("pace {pieces} {}", 1_000_000 / PIECES);
    let mut turns = Vec::new();
    for (peer, session) in agents.iter_mut() {
        let prompt = json!([{"type": "text", "text": prompt}]);
        let params = json!({"sessionId": session, "prompt": prompt});
        turns.push(peer.send("session/prompt", &params)?);
    }
    screen.sees(part.works);
    thread::sleep(SETTLES);
    let busy = cpu_percent(&screen, watched);
    bench.row(Row::new(part.busy, format!("{busy:.2} %")).bar("< 3 %", busy < 3.0));
    for ((peer, _), turn) in agents.iter_mut().zip(turns) {
        peer.until(turn, |_| ())?;
    }
    leave(&mut screen)
}

/// The part of a core that a program takes, over so many seconds.
fn cpu_percent(screen: &Screen, seconds: usize) -> f64 {
    let (start, before) = (Instant::now(), cpu_micros(screen.pid()));
    thread::sleep(Duration::from_secs(seconds as u64));
    (cpu_micros(screen.pid()) - before) / 1e6 / start.elapsed().as_secs_f64() * 100.0
}

fn leave(screen: &mut Screen) -> Result {
    screen.types(CTRL_D);
    if screen.ends().success() { Ok(()) } else { Err("a screen has failed".into()) }
}
