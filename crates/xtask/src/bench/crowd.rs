//! Measures how fast many sessions come back when all agents die at once.

use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::process::peak_rss_bytes;
use super::table::{Row, ms};
use super::{Bench, configure};
use crate::Result;
use crate::home::{Home, kill_tree};
use crate::peer::Peer;

/// Agents, of which fewer than all are started at the same time.
const AGENTS: usize = 5;
/// Named sessions of each.
const SESSIONS: usize = 40;
/// From one look at the sessions to the next.
const LOOK: Duration = Duration::from_millis(2);

/// SIGKILL for five agents with 200 sessions. Of each agent the last session that was made is open in a
/// client, and the one before it gets a prompt: the order of their ids would bring them back last.
pub(super) fn deaths(bench: &mut Bench) -> Result {
    let home = Home::new(&bench.bins)?;
    configure(&home, "shim")?;
    let mut clients = Vec::new();
    for n in 0..AGENTS {
        clients.push(client(&home, n, &bench.work())?);
    }
    let daemon = home.daemon()?.pid;
    let before = peak_rss_bytes(daemon)?;
    let mut look = Bench::client_of(&home, &json!({"agent": "bench0"}))?;

    let leaders = (0..AGENTS).map(|n| home.agent(&format!("bench{n}")));
    let leaders = leaders.collect::<Result<Vec<_>>>()?;
    let start = Instant::now();
    for leader in leaders {
        kill_tree(leader);
    }
    for Client { peer, prompted } in &mut clients {
        let prompt = json!([{"type": "text", "text": "nothing"}]);
        peer.send("session/prompt", &json!({"sessionId": prompted, "prompt": prompt}))?;
    }
    for Client { peer, .. } in &mut clients {
        peer.notice("_acpd/restored", |_| ())?;
    }
    let wanted = ms(start.elapsed());
    let is_back = |session: &Value| session["restore"] == "resumed" && session["state"] == "live";
    loop {
        let list = look.call("_acpd/session/list", &json!({}))?;
        let back = list["sessions"].as_array().into_iter().flatten().filter(|one| is_back(one));
        if back.count() == AGENTS * SESSIONS {
            break;
        }
        thread::sleep(LOOK);
    }
    let all = ms(start.elapsed());
    let grown = (peak_rss_bytes(daemon)? - before) as f64 / 1e6;
    let peak = peak_rss_bytes(daemon)? as f64 / 1e6;
    bench.row(Row::new("5 agents killed: the 5 open sessions back", format!("{wanted:.0} ms")));
    bench.row(Row::new("the same: all 200 sessions back", format!("{all:.0} ms")));
    let text = format!("{peak:.1} MB, {grown:+.1} MB");
    bench.row(Row::new("the same: most memory of the daemon, and by that", text));
    home.stop()
}

/// A client of one agent, all of whose sessions were used.
struct Client {
    peer: Peer,
    prompted: String,
}

fn client(home: &Home, n: usize, cwd: &std::path::Path) -> Result<Client> {
    let agent = format!("bench{n}");
    let mut maker = Bench::client_of(home, &json!({"agent": agent}))?;
    let mut ids = Vec::new();
    for name in 0..SESSIONS {
        let meta = json!({"_acpd": {"name": format!("task-{name}")}});
        let params = json!({"cwd": cwd, "mcpServers": [], "_meta": meta});
        let made = maker.call("session/new", &params)?;
        let id = made["sessionId"].as_str().ok_or("no session id")?.to_owned();
        maker.prompt(&id, "nothing", |_| ())?;
        ids.push(id);
    }
    let (Some(open), Some(prompted)) = (ids.pop(), ids.pop()) else {
        return Err("no sessions".into());
    };
    // Who made them has them open.
    drop(maker);
    let mut peer = Bench::client_of(home, &json!({"agent": agent, "notices": true, "seq": true}))?;
    peer.watch(&open)?;
    Ok(Client { peer, prompted })
}
