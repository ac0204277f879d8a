//! A hub with a store in memory, clients and a host whose lines the test writes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use acp_wire::{ErrorObject, Id, Message, StateKey, Version, build};
use acpd_api::{DaemonInfo, Environment, HookEvent};
use acpd_core::ids::{ClientId, HostId, InteractionId, SessionKey, Time};
use acpd_core::profile::{Config, Delegation, Limits, Profile, Reseed, TimeZone};
use acpd_core::record::{
    EventKind, EventRow, HostState, Record, Row, Snapshot, UsageRow, ValueKey,
};
use acpd_core::{
    Batch, ClientEvent, ClientOrigin, Effect, FileService, HostEvent, Hub, Input, LeftProcess,
    LogPage, ReadStyle, Search, StatusPart, StopStep, TerminalTail, ToClient, ToHost,
};
use acpd_policy::Policy;
use bytes::Bytes;
use serde_json::{Value, json};

pub(crate) use crate::inputs::{client_line, client_oversized, host_line, host_oversized};
use crate::schema;

pub(crate) struct Bench {
    pub(crate) hub: Hub,
    pub(crate) now: u64,
    pub(crate) snapshot: Snapshot,
    pub(crate) journal: BTreeMap<SessionKey, Vec<EventRow>>,
    values: BTreeMap<(SessionKey, ValueKey), Bytes>,
    config: Config,
    /// Connections that the hub has closed.
    pub(crate) closed: Vec<ClientId>,
    inbox: BTreeMap<ClientId, Vec<Bytes>>,
    /// Clients that speak version 2.
    pub(crate) second: BTreeSet<ClientId>,
    /// Clients that do not read the rows which they watch.
    pub(crate) slow: BTreeSet<ClientId>,
    heard: Vec<Value>,
    pub(crate) spawned: Vec<HostId>,
    /// The profiles that they are of.
    pub(crate) started: Vec<String>,
    pub(crate) stops: Vec<StopStep>,
    /// Processes of an earlier daemon that are being ended.
    pub(crate) swept: Vec<HostId>,
    /// Processes outlive the daemon.
    pub(crate) shims: bool,
    /// Processes of an earlier daemon are taken over when the test says so.
    pub(crate) adopts: bool,
    pub(crate) adopting: Vec<HostState>,
    /// Last line that the process got.
    chunk: u64,
    pub(crate) leases: Vec<bool>,
    pub(crate) left: Option<bool>,
    /// Credentials of the next process.
    pub(crate) brought: Option<Environment>,
    /// Desktop notifications: title and body.
    pub(crate) notified: Vec<(String, String)>,
    pub(crate) notes: Vec<String>,
    /// Session, what failed and the code of each failure for the log.
    pub(crate) failures: Vec<(Option<String>, String, Option<i64>)>,
    /// Sessions that the log was told of as deleted by a limit.
    pub(crate) expired: Vec<String>,
    /// Set while the file of the login is watched.
    pub(crate) watched: Vec<bool>,
    /// How often the credentials of an agent were to be forgotten.
    pub(crate) forgotten: usize,
    /// Events that hooks got.
    pub(crate) hooks: Vec<Value>,
    /// Requests that acpd was to serve for the agent.
    pub(crate) served: Vec<(InteractionId, Vec<String>, FileService)>,
    /// Contents of files that questions are about; without an entry they are not read.
    pub(crate) files: Option<BTreeMap<String, Result<Bytes, ErrorObject>>>,
    /// Terminal requests for acpd.
    pub(crate) terminals: Vec<Effect>,
    /// Output of running commands.
    pub(crate) screens: BTreeMap<InteractionId, TerminalTail>,
    /// Searches that clients requested.
    pub(crate) searched: Vec<Search>,
    /// Usage that was recorded.
    pub(crate) booked: Vec<UsageRow>,
    /// Sessions with something new to be found.
    pub(crate) indexed: Vec<SessionKey>,
    /// Directories that do not exist.
    pub(crate) missing: Vec<String>,
    /// Processes that survive a kill.
    pub(crate) survivors: Option<Vec<LeftProcess>>,
    /// Journal of any session.
    pub(crate) summary: &'static str,
    /// Summary for each new session of a lost one.
    pub(crate) summarized: Vec<Reseed>,
    pub(crate) acked: u64,
    /// What the agent has said.
    pub(crate) said: Vec<String>,
    pub(crate) exited: bool,
    offset: u64,
    next_client: u64,
    /// Processes start and answer `initialize` by themselves, with these capabilities.
    pub(crate) capabilities: Option<Value>,
    /// Processes speak version 2 in place of that.
    pub(crate) second_agent: bool,
    /// Where its sessions are made.
    pub(crate) cwd: &'static str,
    /// Further members of the result.
    pub(crate) greeting: Value,
    /// Lines to hosts are committed but not written when the daemon dies now.
    pub(crate) writes: bool,
    /// Batches are committed; if not, they are lost but for what is urgent.
    pub(crate) commits: bool,
    /// The peers say what no schema and no reader of values knows, and it is passed on.
    pub(crate) lenient: bool,
}

/// The one agent of every bench.
pub(crate) const AGENT: &str = "gem";

impl Bench {
    pub(crate) fn new() -> Bench {
        Bench::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut Profile)) -> Bench {
        Bench::configured(AGENT, &[AGENT], change, Policy::default())
    }

    pub(crate) fn with_policy(policy: Policy) -> Bench {
        Bench::configured(AGENT, &[AGENT], |_| {}, policy)
    }

    /// Several agents of which two may be started at the same time.
    pub(crate) fn with_agents(names: &[&str]) -> Bench {
        Bench::configured(names[0], names, |_| {}, Policy::default())
    }

    fn configured(
        default_agent: &str,
        names: &[&str],
        change: impl FnOnce(&mut Profile),
        policy: Policy,
    ) -> Bench {
        let mut profile = Profile { fingerprint: "1".to_owned(), ..Profile::standard() };
        change(&mut profile);
        let config = Config {
            default_agent: default_agent.to_owned(),
            default_is_found: false,
            agents: names.iter().map(|name| ((*name).to_owned(), profile.clone())).collect(),
            quirks: BTreeMap::new(),
            policy,
            line_limit: 1_000_000,
            max_clients: 64,
            newest: Version::V2,
            cold_starts: 2,
            hooks: [HookEvent::Permission, HookEvent::TurnEnd, HookEvent::Crash, HookEvent::Login]
                .into(),
            keep_deleted: 0,
            notify: true,
            workspaces: Vec::new(),
            retention: Limits::default(),
            budget: None,
            delegation: Delegation::default(),
            time_zone: || TimeZone::UTC,
            daemon: DaemonInfo::default(),
            hides_plans: false,
        };
        let mut batch = Batch::default();
        let now = 1_000_000;
        let hub = Hub::recover(Snapshot::default(), config.clone(), Time(now), &mut batch);
        let mut bench = Bench {
            hub,
            now,
            snapshot: Snapshot::default(),
            journal: BTreeMap::new(),
            values: BTreeMap::new(),
            config,
            closed: Vec::new(),
            inbox: BTreeMap::new(),
            second: BTreeSet::new(),
            slow: BTreeSet::new(),
            heard: Vec::new(),
            spawned: Vec::new(),
            started: Vec::new(),
            stops: Vec::new(),
            swept: Vec::new(),
            shims: false,
            adopts: true,
            adopting: Vec::new(),
            chunk: 0,
            leases: Vec::new(),
            left: None,
            brought: None,
            notified: Vec::new(),
            notes: Vec::new(),
            failures: Vec::new(),
            expired: Vec::new(),
            watched: Vec::new(),
            forgotten: 0,
            hooks: Vec::new(),
            served: Vec::new(),
            files: Some(BTreeMap::new()),
            searched: Vec::new(),
            booked: Vec::new(),
            indexed: Vec::new(),
            terminals: Vec::new(),
            screens: BTreeMap::new(),
            missing: Vec::new(),
            survivors: None,
            summary: "it was about a fish",
            summarized: Vec::new(),
            acked: 0,
            said: Vec::new(),
            exited: false,
            offset: 0,
            next_client: 0,
            capabilities: Some(json!({"loadSession":true,"sessionCapabilities":{"resume":{}}})),
            second_agent: false,
            cwd: "/w",
            greeting: json!({}),
            writes: true,
            commits: true,
            lenient: false,
        };
        bench.run_batch(batch);
        bench
    }

    /// A bench with a client, in whose session `s` a turn was.
    pub(crate) fn used() -> (Bench, ClientId) {
        Bench::new().with_used()
    }

    /// Like [`Bench::used`], with an agent that can load sessions.
    pub(crate) fn used_and_loadable() -> (Bench, ClientId) {
        Bench::loadable().with_used()
    }

    pub(crate) fn with_used(mut self) -> (Bench, ClientId) {
        let client = self.plain();
        self.used_session(client, "s");
        (self, client)
    }

    /// A bench with a client that has begun the session `s`.
    pub(crate) fn begun() -> (Bench, ClientId) {
        Bench::new().with_begun()
    }

    /// The process that was asked for last is there.
    pub(crate) fn process_starts(&mut self) {
        let host = self.host();
        self.feed(Input::Host(host, HostEvent::Started { pid: 1, start: 1 }));
    }

    /// The agent is asked exactly this, and answers.
    pub(crate) fn answers(&mut self, method: &str, result: &Value) {
        let request = self.heard_one(method);
        if method == "session/load" {
            return self.loads(&request, result);
        }
        self.agent_answers(&request, result);
    }

    /// The agent replays all that was said in a session, and answers the load.
    pub(crate) fn loads(&mut self, load: &Value, result: &Value) {
        let id = load["params"]["sessionId"].as_str().expect("an id");
        let key = self.snapshot.sessions.iter().find(|(_, known)| known.row.agent_id == id);
        let rows = key.and_then(|(key, _)| self.journal.get(key)).into_iter().flatten();
        let said = rows.filter(|row| row.kind == EventKind::Update).filter_map(|row| {
            let mut line: Value = serde_json::from_slice(&row.line).expect("JSON");
            let is_message = word(&line).ends_with("_message_chunk");
            line["params"]["sessionId"] = id.into();
            is_message.then_some(line)
        });
        for line in said.collect::<Vec<_>>() {
            self.agent(&line);
        }
        self.agent_answers(load, result);
    }

    /// The agent is asked exactly this, and refuses.
    pub(crate) fn refuses(&mut self, method: &str, code: i64) {
        let request = self.heard_one(method);
        self.agent_refuses(&request, code);
    }

    /// A bench without commands that are run when something happens.
    pub(crate) fn without_hooks() -> Bench {
        let mut bench = Bench::new();
        bench.config.hooks.clear();
        bench.reboot();
        bench
    }

    /// A bench whose processes outlive the daemon.
    pub(crate) fn with_shims() -> Bench {
        Bench { shims: true, ..Bench::new() }
    }

    /// The configuration is another one from now on: there is a new daemon.
    pub(crate) fn configure(&mut self, change: impl FnOnce(&mut Config)) {
        change(&mut self.config);
        self.reboot();
    }

    /// Processes neither start nor answer `initialize` by themselves.
    pub(crate) fn by_hand(&mut self) {
        self.capabilities = None;
    }

    /// The configuration is another one for the next daemon.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut Profile)) {
        change(self.config.agents.get_mut(AGENT).expect("the one"));
    }

    /// The daemon dies and the next one starts; leftovers are swept when the test says so.
    pub(crate) fn reboot(&mut self) {
        let mut batch = Batch::default();
        self.hub =
            Hub::recover(self.snapshot.clone(), self.config.clone(), Time(self.now), &mut batch);
        self.inbox.clear();
        self.run_batch(batch);
    }

    pub(crate) fn feed(&mut self, input: Input) {
        let mut batch = Batch::default();
        self.hub.handle(Time(self.now), input, &mut batch);
        self.run_batch(batch);
    }

    pub(crate) fn run_batch(&mut self, mut batch: Batch) {
        let mut effects = VecDeque::from(std::mem::take(&mut batch.urgent));
        self.hub.seal(&mut batch);
        if !self.commits {
            batch = Batch::default();
        }
        for record in &batch.records {
            self.snapshot.apply(record);
            match record {
                Record::Event(row) => {
                    self.journal.entry(row.session).or_default().push(row.clone());
                }
                Record::Forked(fork) => {
                    let from = self.journal.get(&fork.from).map_or(&[][..], Vec::as_slice);
                    let lines = fork.lines(from);
                    self.journal.insert(fork.session, lines);
                }
                Record::Usage(row) => self.booked.push(row.clone()),
                Record::Put(Row::Value { session, key, json }) => {
                    self.values.insert((*session, *key), json.clone());
                }
                _ => {}
            }
        }
        effects.extend(batch.effects);
        while let Some(effect) = effects.pop_front() {
            self.perform(effect);
        }
    }

    fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Client(client, ToClient::Line(line)) => self.deliver(client, line),
            Effect::Client(client, ToClient::Rows(line)) => {
                self.deliver(client, line);
                if !self.slow.contains(&client) {
                    self.feed(Input::Client(client, ClientEvent::RowsWritten));
                }
            }
            Effect::Close(client) => self.closed.push(client),
            Effect::Client(client, ToClient::Status { id, mut status, part }) => {
                let line = match part {
                    StatusPart::Agent(_) => build::response(&id, &status.agents.pop()),
                    StatusPart::Metrics(metrics) => build::response(&id, &metrics),
                    StatusPart::All(_) | StatusPart::Agents => build::response(&id, &status),
                };
                self.deliver(client, line);
            }
            Effect::Client(client, ToClient::Values(asked)) => {
                let values = self.values.iter().filter(|((of, _), _)| *of == asked.session);
                let values: Vec<_> = values.map(|((_, key), json)| (*key, json.clone())).collect();
                self.deliver(client, asked.line(&values));
            }
            Effect::Client(client, ToClient::Read(read)) => {
                let mut rows = self.journal.get(&read.session).cloned().unwrap_or_default();
                if read.style == ReadStyle::Commands {
                    rows.retain(|row| row.kind == EventKind::State(StateKey::Commands));
                    for line in read.show(rows.pop().into_iter().collect()) {
                        self.deliver(client, line);
                    }
                }
                rows.retain(|row| {
                    let state = matches!(row.kind, EventKind::State(_) | EventKind::Live);
                    let hidden = read.style == ReadStyle::History && state;
                    row.seq > read.after && row.seq <= read.upto && !hidden
                });
                for line in read.show(rows) {
                    self.deliver(client, line);
                }
                let (session, upto) = (read.session, read.upto);
                self.feed(Input::Client(client, ClientEvent::ReadDone { session, upto }));
            }
            Effect::Spawn { host, agent } => {
                self.spawned.push(host);
                self.started.push(agent);
                self.offset = 0;
                self.chunk = 0;
                if self.capabilities.is_some() {
                    self.feed(Input::Host(host, HostEvent::Started { pid: 1, start: 1 }));
                }
            }
            Effect::Host(host, ToHost::Write { chunk, line }) if self.writes => {
                let line = match serde_json::from_slice(&line) {
                    Err(_) if self.lenient => gist(&line),
                    line => line.expect("the hub writes JSON"),
                };
                if !self.lenient {
                    let check = if self.second_agent {
                        schema::check_to_second_agent
                    } else {
                        schema::check_to_agent
                    };
                    check(&line);
                }
                if chunk <= self.chunk {
                    return;
                }
                self.chunk = chunk;
                self.feed(Input::Host(host, HostEvent::Written { chunk }));
                match (&self.capabilities, line["method"].as_str()) {
                    (Some(_), Some("initialize")) if self.second_agent => {
                        let info = json!({"name":"second","version":"1"});
                        let capabilities = json!({"session":{"mcp":{"stdio":{}}}});
                        let mut result = self.greeting.clone();
                        result["protocolVersion"] = json!(2);
                        result["info"] = info;
                        if result["capabilities"].is_null() {
                            result["capabilities"] = capabilities;
                        }
                        result["authMethods"] = json!([]);
                        self.agent(&json!({"id":line["id"],"result":result}));
                    }
                    (Some(capabilities), Some("initialize")) => {
                        let mut result = self.greeting.clone();
                        result["protocolVersion"] = json!(1);
                        result["agentCapabilities"] = capabilities.clone();
                        self.agent(&json!({"id":line["id"],"result":result}));
                    }
                    _ => self.heard.push(line),
                }
            }
            Effect::Host(_, ToHost::Ack(offset)) => self.acked = offset,
            Effect::Host(_, ToHost::Stop(step)) => self.stops.push(step),
            Effect::Adopt(adopt) if self.shims => {
                self.adopting.push(adopt);
                if self.adopts {
                    self.adopt();
                }
            }
            Effect::Adopt(HostState { row, .. }) => {
                self.swept.push(row.host);
                self.feed(Input::Host(row.host, HostEvent::Lost { reason: "acpd ended".into() }));
            }
            Effect::FindLeftovers(host) => {
                if let Some(left) = self.survivors.clone() {
                    self.feed(Input::Host(host, HostEvent::Left(left)));
                }
            }
            Effect::Host(_, ToHost::Lease(busy)) => self.leases.push(busy),
            Effect::Leave { restart, .. } => {
                self.left = Some(restart.is_some());
                self.brought = restart;
            }
            Effect::Hook { event, about } => {
                let about: Value = serde_json::from_slice(&about).expect("the hub tells JSON");
                assert_eq!(about["event"], <&str>::from(event));
                self.hooks.push(about);
            }
            Effect::Notify { title, body } => self.notified.push((title, body)),
            Effect::ForgetCredentials(_) => self.forgotten += 1,
            Effect::WatchLogin { wanted, .. } => self.watched.push(wanted),
            Effect::Host(_, ToHost::Note(text)) => self.notes.push(text),
            // The relay has its own tests for this.
            Effect::Trace(_) => {}
            Effect::Expired { sessions, .. } => self.expired.extend(sessions),
            Effect::Failure { session, what, code, .. } => {
                self.failures.push((session, what, code));
            }
            Effect::Serve { request, roots, service, .. } => {
                self.served.push((request, roots, service));
                self.look_at_file(request);
            }
            Effect::CreateTerminal { .. }
            | Effect::TerminalOutput { .. }
            | Effect::KillTerminal(_)
            | Effect::ReleaseTerminal(_) => self.terminals.push(effect),
            Effect::LookAtTerminal(terminal) => {
                let tail = self.screens.get(&terminal).cloned().unwrap_or_default();
                self.feed(Input::TerminalSeen { terminal, tail });
            }
            Effect::Abort | Effect::Exit => self.exited = true,
            Effect::Client(_, ToClient::Search { search, .. }) => self.searched.push(*search),
            Effect::Client(client, ToClient::LogLevel { id, .. }) => {
                self.deliver(client, build::response(&id, &json!({"level":"info"})));
            }
            Effect::Client(client, ToClient::Usage { id, .. }) => {
                self.deliver(client, build::response(&id, &json!({"totals":[]})));
            }
            Effect::Index(session) => self.indexed.push(session),
            Effect::FindDirectory { question, cwd, .. } => {
                let exists = !self.missing.contains(&cwd);
                self.feed(Input::DirectoryFound { question, exists });
            }
            Effect::Summarize { session, what, .. } => {
                self.summarized.push(what);
                let text = self.summary.to_owned();
                self.feed(Input::Summary { session, text });
            }
            Effect::Measure { look, sessions } => {
                let size = |key| {
                    let lines = self.journal.get(&key).into_iter().flatten();
                    (key, lines.map(|row| row.line.len() as u64).sum())
                };
                let sizes = Ok(sessions.into_iter().map(size).collect());
                self.feed(Input::Measured { look, sizes });
            }
            Effect::Client(client, ToClient::Log(LogPage { id, session_id, .. })) => {
                let page = json!({"sessionId":session_id,"entries":[]});
                self.deliver(client, build::response(&id, &page));
            }
            Effect::Host(_, ToHost::Write { .. } | ToHost::Forget) => {}
        }
    }

    /// The process of the last daemon is spoken with again: it gets what it has not got.
    pub(crate) fn adopt(&mut self) {
        for HostState { row, outbox, .. } in std::mem::take(&mut self.adopting) {
            let (host, end) = (row.host, self.offset);
            self.feed(Input::Host(host, HostEvent::Adopted { pid: 1, start: 1, end }));
            for (chunk, line) in outbox {
                self.perform(Effect::Host(host, ToHost::Write { chunk, line }));
            }
        }
    }

    fn deliver(&mut self, client: ClientId, line: Bytes) {
        if !self.lenient {
            let value: Value = serde_json::from_slice(&line).expect("the hub sends JSON");
            let is_original = value["params"]["_meta"]["_acpd"]["version"] == 2;
            let is_second = is_original || self.second.contains(&client);
            let check = if is_second { schema::check_to_second } else { schema::check_to_client };
            check(&value);
        }
        self.inbox.entry(client).or_default().push(line);
    }

    /// A client that is bound to the agent; its answer to `initialize` is taken off.
    pub(crate) fn client(&mut self, meta: &Value) -> ClientId {
        let client = self.connect(meta);
        self.got(client);
        client
    }

    /// A connection of a process that runs under an agent.
    pub(crate) fn open_under_agent(&mut self) -> ClientId {
        self.next_client += 1;
        let client = ClientId(self.next_client);
        self.feed(Input::Client(client, ClientEvent::Opened(ClientOrigin::Agent(None))));
        client
    }

    pub(crate) fn connect(&mut self, meta: &Value) -> ClientId {
        let client = self.open();
        let params = json!({"protocolVersion":1,"_meta":{"_acpd":meta}});
        self.ask(client, "init", "initialize", &params);
        client
    }

    /// A connection that has said nothing yet.
    pub(crate) fn open(&mut self) -> ClientId {
        self.next_client += 1;
        let client = ClientId(self.next_client);
        self.feed(Input::Client(client, ClientEvent::Opened(ClientOrigin::User)));
        client
    }

    /// A plain ACP client.
    pub(crate) fn plain(&mut self) -> ClientId {
        self.client(&json!({}))
    }

    pub(crate) fn say(&mut self, client: ClientId, line: &Value) {
        self.say_raw(client, &line.to_string());
    }

    pub(crate) fn say_raw(&mut self, client: ClientId, line: &str) {
        self.feed(client_line(client, Bytes::from(line.to_owned())));
    }

    /// Returns a client's lines since the last call.
    pub(crate) fn got(&mut self, client: ClientId) -> Vec<Value> {
        let lines = self.got_raw(client);
        lines.iter().map(|line| serde_json::from_str(line).expect("checked")).collect()
    }

    pub(crate) fn got_raw(&mut self, client: ClientId) -> Vec<String> {
        let lines = self.inbox.remove(&client).unwrap_or_default();
        lines.iter().map(|line| String::from_utf8_lossy(line).into_owned()).collect()
    }

    /// The agent says something while no daemon is there; it is handed over to the next one.
    pub(crate) fn agent_says_unheard(&mut self, line: &Value) -> Input {
        let line = line.to_string();
        self.offset += line.len() as u64 + 1;
        host_line(self.host(), Bytes::from(line), self.offset)
    }

    /// Returns the agent's lines since the last call, without `initialize`.
    pub(crate) fn heard(&mut self) -> Vec<Value> {
        std::mem::take(&mut self.heard)
    }

    /// The only thing that the agent was told since the last call.
    #[track_caller]
    pub(crate) fn heard_one(&mut self, method: &str) -> Value {
        let heard = self.heard();
        assert_eq!(methods(&heard), [method], "{heard:?}");
        heard.into_iter().next().expect("one")
    }

    pub(crate) fn host(&self) -> HostId {
        *self.spawned.last().expect("a process was started")
    }

    pub(crate) fn agent(&mut self, line: &Value) {
        self.agent_raw(&line.to_string());
    }

    pub(crate) fn agent_raw(&mut self, line: &str) {
        self.offset += line.len() as u64 + 1;
        let (host, end) = (self.host(), self.offset);
        self.said.push(line.to_owned());
        self.feed(host_line(host, Bytes::from(line.to_owned()), end));
    }

    pub(crate) fn agent_answers(&mut self, request: &Value, result: &Value) {
        self.agent(&json!({"id":request["id"],"result":result}));
    }

    pub(crate) fn agent_refuses(&mut self, request: &Value, code: i64) {
        self.agent_fails(request, &json!({"code":code,"message":"no"}));
    }

    pub(crate) fn update(&mut self, session: &str, kind: &str, text: &str) {
        let content = json!({"type":"text","text":text});
        self.send_update(session, &json!({"sessionUpdate":kind,"content":content}));
    }

    pub(crate) fn chunk(&mut self, session: &str, text: &str) {
        self.update(session, "agent_message_chunk", text);
    }

    /// The leader ends; nothing is left of it.
    pub(crate) fn agent_dies(&mut self) {
        self.leader_ends();
        self.end_process();
    }

    pub(crate) fn leader_ends(&mut self) {
        let (ending, stderr) = ("ended with exit status 1".to_owned(), "Error: boom".to_owned());
        let host = self.host();
        self.feed(Input::Host(host, HostEvent::Exited { ending, stderr }));
    }

    /// Lets time pass, deadline by deadline.
    pub(crate) fn pass(&mut self, ms: u64) {
        let end = self.now + ms;
        while let Some(Time(at)) = self.hub.deadline().filter(|at| at.0 <= end) {
            self.now = self.now.max(at);
            self.feed(Input::Tick);
        }
        self.now = end;
    }

    /// A session that the agent calls `id`, made by this client.
    pub(crate) fn session(&mut self, client: ClientId, id: &str) {
        self.session_with(client, id, &json!({}));
    }

    pub(crate) fn session_with(&mut self, client: ClientId, id: &str, more: &Value) {
        let params = json!({"cwd":self.cwd,"mcpServers":[]});
        self.ask(client, "new", "session/new", &params);
        let request = self.heard_one("session/new");
        let mut result = json!({"sessionId":id});
        for (key, value) in more.as_object().into_iter().flatten() {
            result[key] = value.clone();
        }
        self.agent_answers(&request, &result);
        self.got(client);
    }

    pub(crate) fn prompt(&mut self, client: ClientId, id: &Value, session: &str, text: &str) {
        let prompt = json!([{"type":"text","text":text}]);
        let params = json!({"sessionId":session,"prompt":prompt});
        self.say(client, &json!({"id":id,"method":"session/prompt","params":params}));
    }

    /// A session that has had one prompt.
    pub(crate) fn used_session(&mut self, client: ClientId, id: &str) {
        self.session(client, id);
        self.run_turn(client, "first", id, "first");
        self.got(client);
    }

    /// A session in which a prompt of a plain client runs: the client, and the prompt as the agent got it.
    #[track_caller]
    pub(crate) fn running(&mut self, session: &str, text: &str) -> (ClientId, Value) {
        let client = self.begin(session);
        (client, self.start_turn(client, 1, session, text))
    }

    /// A used session whose agent has died: its client, and the request by which acpd wants the session
    /// back from the next process.
    #[track_caller]
    pub(crate) fn restoring(&mut self, session: &str, method: &str) -> (ClientId, Value) {
        let client = self.plain();
        self.used_session(client, session);
        self.restart_agent();
        (client, self.heard_one(method))
    }

    /// Like [`Bench::restoring`], with an agent that can only load a session.
    #[track_caller]
    pub(crate) fn loading(&mut self, session: &str) -> (ClientId, Value) {
        self.capabilities = Some(json!({"loadSession":true}));
        self.restoring(session, "session/load")
    }

    /// Words of the journal of the only session: kinds of updates, names of notices.
    pub(crate) fn journal_words(&self) -> Vec<String> {
        let rows = self.journal.values().next().into_iter().flatten();
        rows.map(|row| word(&serde_json::from_slice(&row.line).expect("JSON"))).collect()
    }

    /// The session's state, as people are told it.
    pub(crate) fn state(&mut self, session: &str) -> String {
        self.show(session)["state"].as_str().unwrap_or("none").to_owned()
    }

    /// The session, as lists show it.
    pub(crate) fn show(&mut self, session: &str) -> Value {
        self.command("_acpd/session/show", &json!({"session":session}))["result"].take()
    }

    /// The agent's state, as people are told it.
    pub(crate) fn agent_state(&mut self) -> String {
        self.show_agent()["state"].as_str().unwrap_or("none").to_owned()
    }

    /// The agent, as people are told of it.
    pub(crate) fn show_agent(&mut self) -> Value {
        let client = self.open();
        self.say(client, &json!({"id":0,"method":"_acpd/agent/show","params":{"agent":AGENT}}));
        let shown = self.got(client)[0]["result"].clone();
        self.feed(Input::Client(client, ClientEvent::Closed));
        shown
    }

    /// A process that does not start by itself is there, and wants a login in answer to `initialize`.
    pub(crate) fn refuse_start(&mut self) {
        self.process_starts();
        self.refuses("initialize", -32000);
    }
}

/// The id and the method of a line whose other parts are beyond what a value can hold.
fn gist(line: &[u8]) -> Value {
    let value = |id: Id| serde_json::from_str::<Value>(id.raw()).unwrap_or_default();
    match acp_wire::parse(line).expect("the hub writes messages") {
        Message::Request { id, method, .. } => json!({"id":value(id),"method":method}),
        Message::Notification { method, .. } => json!({"method":method}),
        Message::Response { id, .. } => json!({"id":value(id)}),
    }
}

/// Returns the kind of a line, in one word.
pub(crate) fn word(line: &Value) -> String {
    let update = line["params"]["update"]["sessionUpdate"].as_str();
    let method = line["method"].as_str();
    match (update, method) {
        (Some(update), _) => update.to_owned(),
        (None, Some(method)) => method.to_owned(),
        (None, None) if line.get("error").is_some() => format!("error {}", line["id"]),
        (None, None) => format!("result {}", line["id"]),
    }
}

pub(crate) fn words(lines: &[Value]) -> Vec<String> {
    lines.iter().map(word).collect()
}

pub(crate) fn methods(lines: &[Value]) -> Vec<&str> {
    lines.iter().map(|line| line["method"].as_str().unwrap_or("answer")).collect()
}
