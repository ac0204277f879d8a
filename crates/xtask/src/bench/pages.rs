//! Measures the page's server: many sessions that stream, to many pages.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use acpd_sys::process::pss_bytes;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tungstenite::client::IntoClientRequest as _;
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Message, WebSocket};

use super::process::cpu_micros;
use super::table::Row;
use super::{AGENT, Bench, own_program};
use crate::Result;
use crate::home::Home;
use crate::peer::request;

/// Sessions that stream, each in a process of its own.
const SESSIONS: usize = 50;
/// Pages: each is told of all sessions, and has one of them open.
const PAGES: usize = 10;
/// Pieces of an answer in a second, from each agent.
const PIECES: usize = 20;
/// How long what began with a turn may go on.
const SETTLES: Duration = Duration::from_secs(2);

/// The server of the page while many sessions stream.
pub(super) fn pages(bench: &mut Bench) -> Result {
    let home = Home::new(&bench.bins)?;
    home.configure(&format!(
        "[agents.bench]\ncommand = [\"{}\", {AGENT:?}]\nidle_timeout = \"0\"\nready_after = \"1ms\"\n\
         sharing = \"session\"\n",
        own_program()?.display(),
    ))?;
    let mut peer = Bench::client_of(&home, &json!({"agent": "bench"}))?;
    let sessions =
        (0..SESSIONS).map(|_| peer.session(&bench.work())).collect::<Result<Vec<_>>>()?;
    let server = Server::start(&home)?;
    bench.row(Row::new("acpctl web, nobody looks: PSS", server.pss()?));

    let token = home.read(&["web", "token", "new", "bench"])?;
    let lines = Arc::new(AtomicU64::new(0));
    let mut readers = Vec::new();
    for session in sessions.iter().take(PAGES) {
        for greeting in [
            vec![says(1, "_acpd/watch", &json!({}))],
            vec![
                says(
                    1,
                    "initialize",
                    &json!({"protocolVersion": 1, "clientCapabilities": {},
                    "_meta": {"_acpd": {"agent": "bench", "notices": true, "seq": true}}}),
                ),
                says(2, "_acpd/session/attach", &json!({"ref": {"session": session}})),
            ],
        ] {
            let socket = server.socket(token.trim(), greeting)?;
            readers.push(count(socket, Arc::clone(&lines)));
        }
    }
    let watched = bench.times(10);
    let prompt = format!("pace {} {}", (watched + 8) * PIECES, 1_000_000 / PIECES);
    let prompt = json!([{"type": "text", "text": prompt}]);
    for session in &sessions {
        peer.send("session/prompt", &json!({"sessionId": session, "prompt": prompt}))?;
    }
    thread::sleep(SETTLES);
    let pid = server.child.id();
    let (start, cpu, before) = (Instant::now(), cpu_micros(pid), lines.load(Ordering::Relaxed));
    thread::sleep(Duration::from_secs(watched as u64));
    let cpu = cpu_micros(pid) - cpu;
    let told = lines.load(Ordering::Relaxed) - before;
    let share = cpu / 1e6 / start.elapsed().as_secs_f64() * 100.0 / PAGES as f64;
    let what = "50 sessions stream to 10 pages: CPU per line";
    bench.row(Row::new(what, format!("{:.1} µs of {told} lines", cpu / told.max(1) as f64)));
    bench.row(Row::new("the same: CPU per page", format!("{share:.2} %")));
    bench.row(Row::new("the same: PSS of acpctl web", server.pss()?));
    server.stop()?;
    for reader in readers {
        reader.join().map_err(|_| "a page has failed")?;
    }
    home.stop()
}

type Socket = WebSocket<MaybeTlsStream<std::net::TcpStream>>;

struct Server {
    child: Child,
    host: String,
}

impl Server {
    fn start(home: &Home) -> Result<Server> {
        let mut command = home.acpctl(&["web", "--port", "0"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let stdout = child.stdout.take().ok_or("no stdout")?;
        let mut address = String::new();
        BufReader::new(stdout).read_line(&mut address)?;
        let host = address.split("://").nth(1).and_then(|rest| rest.split('/').next());
        let host = host.ok_or("acpctl web has printed no address")?.to_owned();
        Ok(Server { child, host })
    }

    fn pss(&self) -> Result<String> {
        Ok(format!("{:.1} MB", pss_bytes(self.child.id())? as f64 / 1e6))
    }

    /// A socket that has said this.
    fn socket(&self, token: &str, greeting: Vec<Message>) -> Result<Socket> {
        let mut request = format!("ws://{}/acp", self.host).into_client_request()?;
        request.headers_mut().insert("authorization", format!("Bearer {token}").parse()?);
        let (mut socket, _) = tungstenite::connect(request)?;
        for line in greeting {
            socket.send(line)?;
        }
        Ok(socket)
    }

    fn stop(mut self) -> Result {
        kill(Pid::from_raw(self.child.id().cast_signed()), Signal::SIGTERM)?;
        self.child.wait()?;
        Ok(())
    }
}

fn says(id: u64, method: &str, params: &Value) -> Message {
    Message::text(request(id, method, params).to_string())
}

/// Counts what a page gets, until the server ends.
fn count(mut socket: Socket, lines: Arc<AtomicU64>) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        while let Ok(message) = socket.read() {
            lines.fetch_add(u64::from(message.is_text()), Ordering::Relaxed);
        }
    })
}
