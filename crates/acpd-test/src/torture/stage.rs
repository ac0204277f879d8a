//! The clients of a home, the agents' records, the journals, and the queue of events.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::check::Answer;
use super::clients::{Attach, Editor, Observer, Run};
use super::ledger::Ledger;
use super::lines::{Event, What, Who, connect};
use super::plan::{AGENTS, By};
use super::scene::Scene;
use super::token::Token;
use super::view::{Heard, Journal, View};
use crate::home::Result;
use crate::peer::Peer;

/// Longest wait of a round, even on a busy machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);
/// Time for others to start a daemon before the tool does.
const LEFT_TO_OTHERS: Duration = Duration::from_millis(300);
/// Connections of the bridge, `attach`, the token, the observer, the tool.
const CONNECTIONS: u64 = 5;

pub(super) struct Stage {
    pub(super) scene: Scene,
    pub(super) editor: Editor,
    pub(super) run: Option<Run>,
    pub(super) attach: Attach,
    pub(super) token: Token,
    pub(super) observer: Observer,
    pub(super) ledgers: [Ledger; 3],
    pub(super) journals: [Journal; 3],
    /// Ids of the sessions, in the order of [`By::ALL`].
    pub(super) sessions: [String; 3],
    /// Answers of this round, by the tags of the prompts.
    pub(super) answers: BTreeMap<String, Answer>,
    /// Prompts without an answer yet, by the client's request.
    pub(super) asked: BTreeMap<(By, u64), String>,
    /// Leaders that were killed, or whose shim was.
    pub(super) killed: BTreeSet<u32>,
    /// Daemons that the tool has ended: none of them died at a crash point.
    pub(super) shot: BTreeSet<u32>,
    /// Running `acpctl daemon …`.
    pub(super) beside: Vec<Child>,
    pub(super) seen: u64,
    /// Number of ends of a daemon.
    pub(super) losses: u64,
    pub(super) starts_daemon: bool,
    lives: u32,
    life: BTreeMap<u8, u32>,
    /// The tool's own connection, for requests with an immediate answer.
    control: Option<Peer>,
    sync: Option<u64>,
    /// From here on no daemon may be started.
    over: Arc<AtomicBool>,
    pub(super) to: Sender<Event>,
    events: Receiver<Event>,
}

impl Stage {
    pub(super) fn set(bins: &Path) -> Result<Stage> {
        let scene = Scene::new(bins)?;
        let (to, events) = channel();
        scene.start_daemon();
        let editor = Editor::start(scene.acpctl(&["acp", AGENTS[0]]), 1, &to)?;
        let name = format!("torture-{}", scene.home.path("").display()).replace(['/', '.'], "-");
        let token = Token::new(name.chars().take(64).collect(), AGENTS[2]);
        let ledgers = AGENTS.map(|agent| Ledger::new(scene.ledger(agent)));
        let hello = scene.acpctl(&["run", "-s", "cli", "-a", AGENTS[1], "hello"]).output()?;
        if !hello.status.success() {
            let error = String::from_utf8_lossy(&hello.stderr);
            return Err(format!("the first prompt failed: {error}").into());
        }
        let args = ["attach", "--json", "-a", AGENTS[1], "cli"];
        let attach = Attach::start(scene.acpctl(&args), 2, &to)?;
        let mut stage = Stage {
            scene,
            editor,
            run: None,
            attach,
            token,
            observer: Observer::default(),
            ledgers,
            journals: Default::default(),
            sessions: Default::default(),
            answers: BTreeMap::new(),
            asked: BTreeMap::new(),
            killed: BTreeSet::new(),
            shot: BTreeSet::new(),
            beside: Vec::new(),
            seen: 0,
            losses: 0,
            starts_daemon: true,
            lives: 2,
            life: BTreeMap::from([(Who::Editor as u8, 1), (Who::Attach as u8, 2)]),
            control: None,
            sync: None,
            over: Arc::default(),
            to,
            events,
        };
        stage.make_sessions()?;
        Ok(stage)
    }

    fn make_sessions(&mut self) -> Result {
        let cwd = self.scene.home.path("work");
        let params = json!({"cwd": cwd, "mcpServers": []});
        let made = self.editor.request("session/new", &params);
        self.connect(Who::Token);
        let named = self.token.request("session/new", &params);
        self.wait("the first sessions", |stage| {
            let token = stage.token.answers.iter().find(|(id, _)| *id == named);
            let answers = [stage.editor.answers.get(&made), token.map(|(_, answer)| answer)];
            let ids =
                answers.map(|answer| Some(answer?["result"]["sessionId"].as_str()?.to_owned()));
            let [Some(editor), Some(token)] = ids else { return Err("no answer".to_owned()) };
            stage.sessions[By::Editor.index()] = editor;
            stage.sessions[By::Token.index()] = token;
            Ok(())
        })?;
        let reference = json!({"session": "cli", "agent": AGENTS[1]});
        let shown = self.ask("_acpd/session/show", &reference).ok_or("no session of the CLI")?;
        let id = shown["sessionId"].as_str().ok_or("a session without an id")?;
        id.clone_into(&mut self.sessions[By::Run.index()]);
        // From their beginning.
        let views = self.sessions.iter().map(|session| (session.clone(), View::default()));
        self.observer.views.extend(views);
        self.connect(Who::Observer);
        self.wait("a quiet beginning", Stage::settled)?;
        self.read_journals()?.ok_or_else(|| "the daemon has gone".into())
    }

    pub(super) fn new_life(&mut self, who: Who) -> u32 {
        self.lives += 1;
        self.life.insert(who as u8, self.lives);
        self.lives
    }

    /// Connects the token or the observer once a daemon listens.
    fn connect(&mut self, who: Who) {
        let life = self.new_life(who);
        let patience = if self.starts_daemon { Duration::ZERO } else { LEFT_TO_OTHERS };
        let mut start = self.scene.acpctl(&["daemon", "start"]);
        let over = Arc::clone(&self.over);
        let start = move || {
            if over.load(Ordering::Relaxed) {
                return;
            }
            let quiet = start.stdout(std::process::Stdio::null());
            // The command fails when the daemon dies at its start; then it is repeated.
            quiet.stderr(std::process::Stdio::null()).status().ok();
        };
        connect(who, life, self.scene.home.socket(), patience, start, self.to.clone());
    }

    /// Sends a request; `None` without a daemon that answers.
    pub(super) fn ask(&mut self, method: &str, params: &Value) -> Option<Value> {
        let socket = self.scene.home.socket();
        let connect = || Peer::connect(&socket, Some(Duration::from_secs(5))).ok();
        let mut peer = self.control.take().or_else(connect)?;
        let answer = peer.call(method, params).ok()?;
        self.control = Some(peer);
        Some(answer)
    }

    /// Takes the next event within this time, and returns whether one came.
    pub(super) fn pump(&mut self, time: Duration) -> Result<bool> {
        match self.events.recv_timeout(time) {
            Ok(event) => self.take(event).map(|()| true),
            Err(RecvTimeoutError::Timeout) => Ok(false),
            Err(RecvTimeoutError::Disconnected) => Err("nobody can send any more".into()),
        }
    }

    pub(super) fn wait(&mut self, what: &str, mut done: impl FnMut(&mut Stage) -> Heard) -> Result {
        let deadline = Instant::now() + PATIENCE;
        loop {
            // Queued events first: requests to the daemon cost more.
            while self.pump(Duration::ZERO)? {}
            match done(self) {
                Ok(()) => return Ok(()),
                Err(missing) if Instant::now() > deadline => {
                    return Err(format!("waited in vain for {what}: {missing}").into());
                }
                Err(_) => self.pump(Duration::from_millis(2))?,
            };
        }
    }

    fn take(&mut self, event: Event) -> Result {
        let Event { who, life, what } = event;
        if self.life.get(&(who as u8)) != Some(&life) {
            return Ok(());
        }
        let line = match what {
            What::Line(line) => line,
            What::Up(stream) => {
                match who {
                    Who::Token => self.token.up(stream),
                    _ => self.observer.up(stream),
                }
                return Ok(());
            }
            What::End => return self.ended(who),
        };
        self.seen += 1;
        let message: Value = serde_json::from_slice(&line)
            .map_err(|error| format!("{who:?}: {error}: {}", String::from_utf8_lossy(&line)))?;
        let taken = match who {
            Who::Editor => self.editor.line(message),
            Who::Attach => self.attach.view.hear(message).map(drop),
            Who::Token => self.token.line(message),
            Who::Observer => self.observer.line(message),
            Who::Run => {
                self.run.iter_mut().for_each(|run| run.line(&message));
                Ok(())
            }
        };
        Ok(taken.map_err(|error| format!("{who:?}: {error}"))?)
    }

    /// Replaces a lost connection or process of a client.
    fn ended(&mut self, who: Who) -> Result {
        match who {
            Who::Token => {
                self.token.down();
                self.connect(who);
            }
            Who::Observer => {
                self.losses += 1;
                self.observer.stream = None;
                self.connect(who);
            }
            Who::Run => {
                if let Some(run) = &mut self.run {
                    run.ended = Some(run.program.end()?);
                }
            }
            Who::Attach => {
                let ended = self.attach.program.end()?;
                if !ended.killed && !ended.never_began() {
                    return Err(format!("`acpctl attach`: {ended:?}").into());
                }
                let life = self.new_life(who);
                let args = ["attach", "--json", "-a", AGENTS[1], "cli"];
                self.attach = Attach::start(self.scene.acpctl(&args), life, &self.to)?;
            }
            Who::Editor => {
                let ended = self.editor.program.end()?;
                if !ended.killed && !ended.never_began() {
                    return Err(format!("the bridge: {ended:?}").into());
                }
                let life = self.new_life(who);
                let bridge = self.scene.acpctl(&["acp", AGENTS[0]]);
                self.editor = Editor::start(bridge, life, &self.to)?;
                self.sync = None;
                let cwd = self.scene.home.path("work");
                let session = &self.sessions[By::Editor.index()];
                self.editor.load(session, &cwd);
            }
        }
        Ok(())
    }

    /// Returns whether everything has come to rest, by the daemon's report, and all clients have
    /// seen it.
    pub(super) fn settled(&mut self) -> Heard {
        if self.beside.iter_mut().any(|child| !matches!(child.try_wait(), Ok(Some(_)))) {
            return Err("a command of acpctl goes on".to_owned());
        }
        if !self.token.is_up() || self.observer.stream.is_none() {
            return Err("not everybody is connected".to_owned());
        }
        let status = self.ask("_acpd/status", &json!({})).ok_or("the daemon does not answer")?;
        let clients = status["daemon"]["clients"].as_u64();
        if clients != Some(CONNECTIONS) {
            return Err(format!("{clients:?} clients are connected"));
        }
        for agent in list(&status["agents"]) {
            let pid = agent["pid"].as_u64().unwrap_or_default() as u32;
            let rests = matches!(agent["state"].as_str(), Some("ready" | "stopped"));
            if AGENTS.contains(&agent["name"].as_str().unwrap_or_default())
                && (!rests || self.killed.contains(&pid))
            {
                return Err(format!("an agent does not rest: {agent}"));
            }
        }
        for (by, id) in By::ALL.into_iter().zip(self.sessions.clone()) {
            let session = list(&status["sessions"]).find(|session| session["sessionId"] == id);
            let session = session.ok_or_else(|| format!("the session {id} is gone"))?;
            let idle = session["turn"]["state"] == "idle" && session["queued"] == 0;
            if !idle || session["state"] == "restoring" {
                return Err(format!("a session does not rest: {session}"));
            }
            let seq = session["seq"].as_u64().unwrap_or_default();
            self.all_have(by, &id, seq)?;
        }
        self.editor_has_all()
    }

    fn all_have(&self, by: By, id: &str, seq: u64) -> Heard {
        let of = |views: &BTreeMap<String, View>| views.get(id).map(View::cursor);
        let attach = (by == By::Run).then(|| self.attach.view.cursor());
        let token = (by == By::Token).then(|| of(&self.token.views)).flatten();
        let observer = of(&self.observer.views);
        for (who, cursor) in [("attach", attach), ("token", token), ("observer", observer)] {
            if cursor.is_some_and(|cursor| cursor < seq) {
                return Err(format!("{who} is at {cursor:?} of {seq} in {id}"));
            }
        }
        Ok(())
    }

    /// The editor has no numbers, so an answer marks the end of earlier lines.
    fn editor_has_all(&mut self) -> Heard {
        match self.sync {
            Some(id) if self.editor.answers.contains_key(&id) => {
                self.sync = None;
                Ok(())
            }
            Some(_) => Err("the editor has not got everything".to_owned()),
            None => {
                self.sync = Some(self.editor.request("_acpd/sync", &json!({})));
                Err("the editor was just asked".to_owned())
            }
        }
    }

    /// Reads new lines of the journals. `None`: the daemon has gone meanwhile.
    pub(super) fn read_journals(&mut self) -> Result<Option<()>> {
        for index in 0..3 {
            let mut after = self.journals[index].last();
            loop {
                let session = json!({"session": self.sessions[index]});
                let params = json!({"ref": session, "after": after});
                let Some(page) = self.ask("_acpd/session/log", &params) else { return Ok(None) };
                let entries = page["entries"].as_array().ok_or("a page without entries")?;
                // Only the first agent speaks version 1.
                self.journals[index].extend(entries, index > 0)?;
                match page["next"].as_u64() {
                    Some(next) => after = next,
                    None => break,
                }
            }
        }
        Ok(Some(()))
    }

    /// The processes of the agents, by their records.
    pub(super) fn leaders(&mut self) -> Result<[Option<u32>; 3]> {
        for ledger in &mut self.ledgers {
            ledger.refresh()?;
        }
        Ok([0, 1, 2].map(|index| self.ledgers[index].leader()))
    }

    pub(super) fn clear(&mut self) -> Result {
        // A daemon that is about to die cannot be stopped in order.
        std::fs::remove_file(self.scene.home.path("point")).ok();
        if let Some(daemon) = self.scene.daemon()
            && self.scene.armed().iter().any(|(pid, _)| *pid == daemon.pid)
        {
            super::scene::kill9(daemon)?;
            self.scene.start_daemon();
        }
        self.over.store(true, Ordering::Relaxed);
        self.life.clear();
        self.editor.close();
        self.attach.program.kill();
        self.token.cut();
        self.observer.close();
        self.control = None;
        self.scene.start_daemon();
        let mut stop = self.scene.acpctl(&["daemon", "stop"]);
        let stopped = stop.output()?;
        if !stopped.status.success() {
            let error = String::from_utf8_lossy(&stopped.stderr);
            return Err(format!("`acpctl daemon stop`: {error}").into());
        }
        let left = self.scene.leftovers();
        let bridge = self.editor.program.child.0.id();
        let bridge = super::scene::describe(bridge);
        let left: Vec<_> = left.into_iter().filter(|what| *what != bridge).collect();
        if left.is_empty() {
            return Ok(());
        }
        Err(format!("`acpctl daemon stop` left {}", left.join("\n    ")).into())
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
    }
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}
