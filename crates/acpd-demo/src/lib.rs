//! The agent `demo`: a scripted ACP agent on stdio, without a model. It echoes, remembers, and
//! does what the verbs in a prompt say (`[slow 5]`, `[ask]`, `[crash]`; all are in `verbs.rs`).
//!
//! The main thread reads and answers; each turn has a thread of its own.

mod beside;
mod options;
mod record;
mod session;
mod settings;
mod store;
mod tool_server;
mod turn;
mod version2;
mod wire;

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{BufRead as _, Write as _};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex};

use acpd_sys::signals;
use serde_json::{Map, Value, json};

pub use options::Options;
pub use record::{Direction, RecordLine, read_record, record_lines};

use session::{Session, Signal, State, commands_update, replay, title};
use store::{Entry, Store, prompt_text};
use turn::Turn;
use wire::{Failure, Wire, lock, request, response};

const AUTHED: &str = "authed";
const LOGIN_METHOD: &str = "demo-login";

/// Runs the agent on stdin and stdout until stdin ends, and returns the process's exit code.
/// Crashes on demand (`[crash]`, `crash-on`) end the process from within.
pub fn run(options: Options) -> ExitCode {
    let complain = |text: &str| {
        let _ = writeln!(std::io::stderr(), "scripted agent: {text}");
    };
    if options.flags.ignore_term
        // On Windows, `Quit` asks a group of processes to end.
        && let Err(error) = signals::ignore(&[signals::Signal::Terminate, signals::Signal::Quit])
    {
        complain(&format!("cannot ignore SIGTERM: {error}"));
        return ExitCode::from(2);
    }
    let wire = match Wire::new(Box::new(std::io::stdout()), options.record.as_deref()) {
        Ok(wire) => wire,
        Err(error) => {
            complain(&format!("cannot open the record: {error}"));
            return ExitCode::from(2);
        }
    };
    let agent = Arc::new(Agent::new(options, wire));
    let Agent { options: Options { flags, .. }, wire, store, .. } = &*agent;
    wire.event("start");
    if flags.look_around {
        for other in beside::others() {
            wire.event(&format!("beside {other}"));
        }
    }
    if flags.plain_line_exit {
        wire.send_raw(b"This agent is no longer maintained.\n");
        return wire.exit_code(0);
    }
    if flags.login {
        return ExitCode::from(u8::from(store.mark(AUTHED).is_err()));
    }
    if flags.forget {
        store.forget();
    }
    agent.read_all();
    wire.event("eof");
    if flags.save_on_eof
        && let Err(error) = store.mark("saved-on-eof")
    {
        complain(&format!("cannot save: {error}"));
    }
    if flags.ignore_eof {
        park();
    }
    wire.exit_code(0)
}

fn park() -> ! {
    loop {
        std::thread::park();
    }
}

/// State that the main thread and the turns share.
struct Agent {
    options: Options,
    wire: Wire,
    store: Store,
    sessions: Mutex<HashMap<String, Arc<Session>>>,
    /// The agent's open requests, by their id as JSON text.
    asked: Mutex<HashMap<String, Sender<Signal>>>,
    /// Number of messages of each method.
    received: Mutex<HashMap<String, u32>>,
    /// The client understands boolean options.
    boolean_options: AtomicBool,
    speaks_v2: AtomicBool,
    next_request: AtomicU64,
    next_session: AtomicU64,
}

impl Agent {
    fn new(options: Options, wire: Wire) -> Self {
        Self {
            store: Store::new(options.state.clone()),
            options,
            wire,
            sessions: Mutex::default(),
            asked: Mutex::default(),
            received: Mutex::default(),
            boolean_options: AtomicBool::default(),
            speaks_v2: AtomicBool::default(),
            next_request: AtomicU64::default(),
            next_session: AtomicU64::default(),
        }
    }

    fn read_all(self: &Arc<Self>) {
        let mut stdin = std::io::stdin().lock();
        let mut line = Vec::new();
        while matches!(stdin.read_until(b'\n', &mut line), Ok(1..)) {
            self.wire.received(&line);
            if !line.trim_ascii().is_empty() {
                self.receive(&line);
            }
            line.clear();
        }
    }

    fn receive(self: &Arc<Self>, line: &[u8]) {
        let mut message = match serde_json::from_slice(line) {
            Ok(Value::Object(message)) => message,
            Ok(_) => return self.refuse(-32600, "one request per line"),
            Err(error) => return self.refuse(-32700, &error.to_string()),
        };
        let id = message.remove("id");
        let params = message.remove("params").unwrap_or_default();
        match (message.remove("method"), id) {
            (Some(Value::String(method)), id) => {
                self.crash_on(&method);
                match id {
                    Some(id) => self.request(&id, &method, &params),
                    None => self.notification(&method, &params),
                }
            }
            (None, Some(id)) => self.answered(&id, &mut message),
            _ => self.refuse(-32600, "neither a request nor a response"),
        }
    }

    fn refuse(&self, code: i64, message: &str) {
        self.wire.send(&response(&Value::Null, Err(Failure::new(code, message))));
    }

    fn crash_on(&self, method: &str) {
        let mut received = lock(&self.received);
        let count = received.entry(method.to_owned()).or_default();
        *count += 1;
        let fatal = self.options.flags.crash_on.as_ref();
        if fatal.is_some_and(|fatal| fatal.method == method && fatal.nth == *count) {
            self.wire.crash();
        }
    }

    fn notification(&self, method: &str, params: &Value) {
        if self.speaks_v2() {
            return self.notification_v2(method, params);
        }
        if method == "session/cancel"
            && let Ok(session) = self.session(params)
        {
            session.cancel();
        }
    }

    fn answered(&self, id: &Value, message: &mut Map<String, Value>) {
        // The turn of a late answer was cancelled.
        let Some(turn) = lock(&self.asked).remove(&id.to_string()) else { return };
        let answer = match message.get("error") {
            Some(error) => Err(Failure::from_error(error)),
            None => Ok(message.remove("result").unwrap_or_default()),
        };
        let _ = turn.send(Signal::Answer(answer));
    }

    fn request(self: &Arc<Self>, id: &Value, method: &str, params: &Value) {
        if self.speaks_v2() && method != "initialize" {
            return self.request_v2(id, method, params);
        }
        let flags = &self.options.flags;
        // Messages that follow the result.
        let mut after = Vec::new();
        let outcome = match method {
            "initialize" if flags.silent_start => return,
            "initialize" => Ok(self.negotiate(params)),
            "logout" => self.logout(),
            "authenticate" => self.authenticate(params),
            "session/new" => self.new_session(params, &mut after),
            "session/load" => self.load_session(params, &mut after),
            "session/resume" if !flags.no_resume => {
                self.restore(params, &mut after).map(|(_, result)| result)
            }
            "session/fork" => self.fork_session(params, &mut after),
            "session/list" if !flags.no_list => Ok(self.list_sessions(params)),
            "session/close" => self.close_session(params),
            "session/delete" => self.delete_session(params),
            "session/set_mode" => self.set_mode(params),
            "session/set_config_option" => self.set_config_option(params),
            "_session/steering" => self.steer(params),
            "session/prompt" => match self.start_turn(id, params) {
                Ok(()) => return,
                Err(failure) => Err(failure),
            },
            _ => Err(Failure::new(-32601, format!("method not found: {method}"))),
        };
        self.wire.send(&response(id, outcome));
        for message in after {
            self.wire.send(&message);
        }
    }

    fn initialize(&self, params: &Value) -> Value {
        let flags = &self.options.flags;
        let boolean = &params["clientCapabilities"]["session"]["configOptions"]["boolean"];
        self.boolean_options.store(!boolean.is_null(), Ordering::Relaxed);
        let mut session = json!({"close": {}, "delete": {}, "fork": {}});
        for (name, is_off) in [("list", flags.no_list), ("resume", flags.no_resume)] {
            if !is_off {
                session[name] = json!({});
            }
        }
        let mut login =
            json!({"id": LOGIN_METHOD, "name": "Demo login", "description": "Needs no account"});
        if flags.auth_terminal {
            login["type"] = json!("terminal");
            login["args"] = json!(["--login"]);
        }
        json!({
            "protocolVersion": flags.protocol.unwrap_or(1),
            "agentCapabilities": {
                "loadSession": true,
                "promptCapabilities": {"image": true, "audio": false, "embeddedContext": true},
                "mcpCapabilities": {"http": flags.mcp_http, "sse": false},
                "sessionCapabilities": session,
                "auth": if flags.auth_required { json!({"logout": {}}) } else { json!({}) },
            },
            "authMethods": if flags.auth_required { json!([login]) } else { json!([]) },
            "agentInfo": {"name": "acpd-demo", "title": "Demo agent", "version": env!("CARGO_PKG_VERSION")},
            "_meta": {"steering": {"supported": true}},
        })
    }

    fn authenticate(&self, params: &Value) -> Result<Value, Failure> {
        match text(params, "methodId")? {
            LOGIN_METHOD => {
                self.store.mark(AUTHED).map_err(cannot("store the login"))?;
                Ok(json!({}))
            }
            method => Err(Failure::invalid_params(format!("no such auth method: {method}"))),
        }
    }

    fn logout(&self) -> Result<Value, Failure> {
        self.store.unmark(AUTHED).map_err(cannot("forget the login"))?;
        Ok(json!({}))
    }

    fn check_login(&self) -> Result<(), Failure> {
        let flags = &self.options.flags;
        let held = |name| std::env::var(name).unwrap_or_default();
        let is_old = |name| held(name) != self.store.text("token");
        if flags.auth_token.as_ref().is_some_and(is_old) {
            return Err(Failure::auth_required());
        }
        match (flags.auth_required && !self.store.has(AUTHED), flags.auth_hidden) {
            (false, _) => Ok(()),
            (true, false) => Err(Failure::auth_required()),
            (true, true) => Err(Failure::internal("upstream said: Not Logged In")),
        }
    }

    fn new_session(&self, params: &Value, after: &mut Vec<Value>) -> Result<Value, Failure> {
        self.check_login()?;
        let cwd = working_directory(params)?;
        check_mcp_servers(params)?;
        let id = self.new_id();
        Ok(self.begin(Session::new(id, cwd), params, after))
    }

    fn fork_session(&self, params: &Value, after: &mut Vec<Value>) -> Result<Value, Failure> {
        self.check_login()?;
        let parent = self.session(params)?;
        let cwd = working_directory(params)?;
        let id = self.new_id();
        let state = lock(&parent.state);
        let fork = if state.on_disk {
            let stored =
                self.store.copy(&parent.id, &id, &cwd).map_err(cannot("store the fork"))?;
            Session::restored(id, cwd, &stored)
        } else {
            Session::new(id, cwd)
        };
        drop(state);
        Ok(self.begin(fork, params, after))
    }

    fn new_id(&self) -> String {
        let n = self.next_session.fetch_add(1, Ordering::Relaxed);
        format!("demo-{:016x}", RandomState::new().hash_one(n))
    }

    /// Keeps a new session, and answers with it.
    fn begin(&self, session: Session, params: &Value, after: &mut Vec<Value>) -> Value {
        let id = session.id.clone();
        lock(&session.state).commands = tool_server::commands(params);
        let mut result = self.settings(&lock(&session.state));
        result["sessionId"] = json!(id);
        after.push(commands_update(&id));
        lock(&self.sessions).insert(id, Arc::new(session));
        result
    }

    fn load_session(&self, params: &Value, after: &mut Vec<Value>) -> Result<Value, Failure> {
        let flags = &self.options.flags;
        check_mcp_servers(params)?;
        if let Some(code) = flags.load_error {
            return Err(Failure::new(code, "load fails on demand"));
        }
        let (session, result) = self.restore(params, after)?;
        let stored = self.store.read(&session.id).unwrap_or_default();
        let mut history = replay(&session.id, flags.replay_turns.unwrap_or(0), &stored);
        if flags.late_replay {
            let late = history.split_off(history.len() / 2);
            after.splice(0..0, late);
        }
        for message in history {
            self.wire.send(&message);
        }
        Ok(result)
    }

    /// Reads a session from disk. A live one stays unchanged.
    fn restore(
        &self,
        params: &Value,
        after: &mut Vec<Value>,
    ) -> Result<(Arc<Session>, Value), Failure> {
        self.check_login()?;
        let id = text(params, "sessionId")?;
        let cwd = working_directory(params)?;
        let stored = self.store.read(id).ok_or_else(|| Failure::unknown_session(id))?;
        let session = lock(&self.sessions)
            .entry(id.to_owned())
            .or_insert_with(|| Arc::new(Session::restored(id.to_owned(), cwd, &stored)))
            .clone();
        let mut state = lock(&session.state);
        state.commands = tool_server::commands(params);
        let result = self.settings(&state);
        after.push(commands_update(id));
        drop(state);
        Ok((session, result))
    }

    fn list_sessions(&self, params: &Value) -> Value {
        let cwd = params["cwd"].as_str();
        let sessions: Vec<Value> = self
            .store
            .list()
            .into_iter()
            .filter(|(_, stored)| cwd.is_none_or(|cwd| cwd == stored.cwd))
            .map(|(id, stored)| {
                let title = title(stored.prompts().first().map_or("", String::as_str));
                json!({"sessionId": id, "cwd": stored.cwd, "title": title})
            })
            .collect();
        json!({"sessions": sessions})
    }

    fn close_session(&self, params: &Value) -> Result<Value, Failure> {
        let session = self.session(params)?;
        session.cancel();
        lock(&self.sessions).remove(&session.id);
        Ok(json!({}))
    }

    fn delete_session(&self, params: &Value) -> Result<Value, Failure> {
        let id = text(params, "sessionId")?;
        if let Some(session) = lock(&self.sessions).remove(id) {
            session.cancel();
        }
        self.store.delete(id);
        Ok(json!({}))
    }

    fn set_mode(&self, params: &Value) -> Result<Value, Failure> {
        let session = self.session(params)?;
        let mut state = lock(&session.state);
        state.settings.set_mode(text(params, "modeId")?)?;
        self.store_settings(&session, &state);
        Ok(json!({}))
    }

    fn set_config_option(&self, params: &Value) -> Result<Value, Failure> {
        let session = self.session(params)?;
        let mut state = lock(&session.state);
        state.settings.set_option(text(params, "configId")?, &params["value"])?;
        self.store_settings(&session, &state);
        Ok(json!({"configOptions": self.settings(&state)["configOptions"]}))
    }

    fn store_settings(&self, session: &Session, state: &State) {
        if state.on_disk {
            // Real agents lose settings, too; the session itself is safe.
            let _ = self
                .store
                .append(&session.id, &Entry::Settings { settings: state.settings.clone() });
        }
    }

    fn settings(&self, state: &State) -> Value {
        let boolean = self.boolean_options.load(Ordering::Relaxed);
        json!({"modes": state.settings.modes(), "configOptions": state.settings.config_options(boolean)})
    }

    fn start_turn(self: &Arc<Self>, id: &Value, params: &Value) -> Result<(), Failure> {
        self.check_login()?;
        let session = self.session(params)?;
        let prompt = params["prompt"]
            .as_array()
            .ok_or_else(|| Failure::invalid_params("prompt is missing"))?
            .clone();
        let mut state = lock(&session.state);
        if state.turn.is_some() && self.speaks_v2() {
            state.work.hold(id, prompt);
            return Ok(());
        }
        if state.turn.is_some() {
            return Err(Failure::internal("a turn is already running"));
        }
        self.begin_turn(&session, &mut state, id, prompt)
    }

    fn begin_turn(
        self: &Arc<Self>,
        session: &Arc<Session>,
        state: &mut State,
        id: &Value,
        prompt: Vec<Value>,
    ) -> Result<(), Failure> {
        self.store_prompt(session, state, &prompt).map_err(cannot("store the prompt"))?;
        let (sender, inbox) = mpsc::channel();
        let turn = Turn {
            agent: Arc::clone(self),
            session: Arc::clone(session),
            history: state.prompts.len(),
            inbox,
            sender: sender.clone(),
            answer: String::new(),
            tools: 0,
            numbered: 0,
            tells_tokens: false,
            terminal: String::new(),
            request: id.to_string(),
            prompt,
        };
        state.prompts.push(prompt_text(&turn.prompt));
        if self.speaks_v2() {
            self.insert(&session.id, state, id, &turn);
        }
        let request = id.clone();
        std::thread::Builder::new()
            .spawn(move || turn.run(&request))
            .map_err(cannot("start the turn"))?;
        state.turn = Some(sender);
        Ok(())
    }

    /// Reports the end of a turn and lets the next one in.
    fn end_turn(
        self: &Arc<Self>,
        session: &Arc<Session>,
        request: &Value,
        outcome: Result<Value, Failure>,
    ) {
        let mut state = lock(&session.state);
        state.turn = None;
        if self.speaks_v2() {
            return self.settle(session, &mut state, outcome);
        }
        drop(state);
        self.wire.send(&response(request, outcome));
    }

    /// Takes a message into the running turn; begins no turn with it.
    fn steer(&self, params: &Value) -> Result<Value, Failure> {
        let session = self.session(params)?;
        let prompt = params["prompt"].as_array().cloned().unwrap_or_default();
        let mut state = lock(&session.state);
        let Some(turn) = state.turn.clone() else {
            return match params["_meta"]["steering"]["idleBehavior"].as_str() {
                Some("promptRequired") => {
                    Ok(json!({"outcome": "promptRequired", "reason": "noRunningTurn"}))
                }
                _ => Err(Failure::invalid_params("no turn runs".to_owned())),
            };
        };
        self.store_prompt(&session, &mut state, &prompt).map_err(cannot("store the message"))?;
        let text = prompt_text(&prompt);
        state.prompts.push(text.clone());
        let _ = turn.send(Signal::Steer(text));
        Ok(json!({"outcome": "injected"}))
    }

    fn store_prompt(
        &self,
        session: &Session,
        state: &mut State,
        prompt: &[Value],
    ) -> std::io::Result<()> {
        if !state.on_disk {
            self.store.create(&session.id, &session.cwd, &state.settings)?;
            state.on_disk = true;
        }
        self.store.append(&session.id, &Entry::User { prompt: prompt.to_vec() })
    }

    fn session(&self, params: &Value) -> Result<Arc<Session>, Failure> {
        let id = text(params, "sessionId")?;
        lock(&self.sessions).get(id).cloned().ok_or_else(|| Failure::unknown_session(id))
    }

    /// Sends a request whose answer goes to this turn, and returns its id.
    fn send_request(&self, method: &str, params: Value, turn: Sender<Signal>) -> Value {
        let n = self.next_request.fetch_add(1, Ordering::Relaxed);
        let id = json!(n);
        lock(&self.asked).insert(id.to_string(), turn);
        self.wire.send(&request(&id, method, params));
        id
    }
}

fn cannot(what: &str) -> impl FnOnce(std::io::Error) -> Failure {
    move |error| Failure::internal(format!("cannot {what}: {error}"))
}

fn text<'a>(params: &'a Value, key: &str) -> Result<&'a str, Failure> {
    params[key].as_str().ok_or_else(|| Failure::invalid_params(format!("{key} is missing")))
}

/// ACP v1 requires an absolute path, and half of the real agents check it.
fn working_directory(params: &Value) -> Result<String, Failure> {
    match text(params, "cwd")? {
        cwd if Path::new(cwd).is_absolute() => Ok(cwd.to_owned()),
        cwd => Err(Failure::invalid_params(format!("cwd must be an absolute path: {cwd}"))),
    }
}

/// The key is required (ACP v1, `session/new` and `session/load`), null is tolerated.
fn check_mcp_servers(params: &Value) -> Result<(), Failure> {
    match params.get("mcpServers") {
        Some(Value::Array(_) | Value::Null) => Ok(()),
        _ => Err(Failure::invalid_params("mcpServers is missing")),
    }
}
