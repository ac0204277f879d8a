//! Steps that many scenes have, and the lines that are expected after them.

use acpd_core::ids::ClientId;
use acpd_core::{ClientEvent, HostEvent, Input};
use serde::Serialize;
use serde_json::{Value, json};

use crate::bench::{Bench, words};

impl Bench {
    /// A bench whose agent has these capabilities.
    pub(crate) fn able(capabilities: &Value) -> Bench {
        Bench::new().with_capabilities(capabilities.clone())
    }

    /// A bench whose agent can load sessions but not resume them.
    pub(crate) fn loadable() -> Bench {
        Bench::new().only_loading()
    }

    /// A bench whose agent can load and list sessions.
    pub(crate) fn listing() -> Bench {
        Bench::able(&json!({"loadSession":true,"sessionCapabilities":{"list":{}}}))
    }

    /// The same bench with an agent that can load sessions but not resume them.
    pub(crate) fn only_loading(self) -> Bench {
        self.with_capabilities(json!({"loadSession":true}))
    }

    /// Like [`Bench::begun`], for any bench.
    pub(crate) fn with_begun(mut self) -> (Bench, ClientId) {
        let client = self.begin("s");
        (self, client)
    }

    /// Like [`Bench::with_begun`], with a client that shows notices.
    pub(crate) fn with_noticed(mut self) -> (Bench, ClientId) {
        let client = self.noticed();
        self.session(client, "s");
        (self, client)
    }

    /// Like [`Bench::with_begun`], with a client that can come back.
    pub(crate) fn with_token(mut self) -> (Bench, ClientId) {
        let client = self.client(&crate::survival::token());
        self.session(client, "s");
        (self, client)
    }

    /// Adds a client whose turn runs in the session `s`: the client, and the prompt as the agent got it.
    pub(crate) fn in_turn(mut self, text: &str) -> (Bench, ClientId, Value) {
        let (client, prompt) = self.running("s", text);
        (self, client, prompt)
    }

    /// A plain client that has begun this session.
    pub(crate) fn begin(&mut self, session: &str) -> ClientId {
        let client = self.plain();
        self.session(client, session);
        client
    }

    /// A client that shows notices.
    pub(crate) fn noticed(&mut self) -> ClientId {
        self.client(&json!({"notices":true}))
    }

    /// A client whose `initialize` has these params; the answer is taken off.
    pub(crate) fn introduce(&mut self, params: &Value) -> ClientId {
        let client = self.open();
        let mut params = params.clone();
        params["protocolVersion"] = json!(1);
        self.ask(client, "init", "initialize", &params);
        self.got(client);
        client
    }

    /// The client resumes this session; the lines that it gets are taken off.
    pub(crate) fn join(&mut self, client: ClientId, session: &str) {
        let params = json!({"sessionId":session,"cwd":self.cwd,"mcpServers":[]});
        self.ask(client, "join", "session/resume", &params);
        self.got(client);
    }

    /// A plain client that has resumed this session.
    pub(crate) fn joined(&mut self, session: &str) -> ClientId {
        let client = self.plain();
        self.join(client, session);
        client
    }

    /// The client attaches to this session; the lines that it gets are taken off.
    pub(crate) fn attach(&mut self, client: ClientId, session: &str) {
        self.ask(client, "attach", "_acpd/session/attach", &json!({"ref":{"session":session}}));
        self.got(client);
    }

    /// The connection of the client ends.
    pub(crate) fn leave(&mut self, client: ClientId) {
        self.feed(Input::Client(client, ClientEvent::Closed));
    }

    /// Sends a request of a client.
    pub(crate) fn ask(
        &mut self,
        client: ClientId,
        id: impl Serialize,
        method: &str,
        params: &Value,
    ) {
        self.say(client, &json!({"id":id,"method":method,"params":params}));
    }

    /// Sends a request of a new client and returns the answer.
    #[track_caller]
    pub(crate) fn command(&mut self, method: &str, params: &Value) -> Value {
        let client = self.plain();
        self.ask(client, "command", method, params);
        let answer = self.answer(client, "command");
        self.leave(client);
        answer
    }

    /// Sends a client's answer to a request of the agent.
    pub(crate) fn reply(&mut self, client: ClientId, request: &Value, result: &Value) {
        self.say(client, &json!({"id":request["id"],"result":result}));
    }

    /// A client selects an option of a permission request.
    pub(crate) fn select(&mut self, client: ClientId, request: &Value, option: &str) {
        let outcome = json!({"outcome":"selected","optionId":option});
        self.reply(client, request, &json!({"outcome":outcome}));
    }

    pub(crate) fn cancel(&mut self, client: ClientId, session: &str) {
        self.say(client, &json!({"method":"session/cancel","params":{"sessionId":session}}));
    }

    /// Cancels the running turn of the session `s`, and the agent hears of it.
    #[track_caller]
    pub(crate) fn cancel_turn(&mut self, client: ClientId) {
        self.cancel(client, "s");
        self.heard_one("session/cancel");
    }

    pub(crate) fn cancel_request(&mut self, client: ClientId, id: impl Serialize) {
        self.say(client, &json!({"method":"$/cancel_request","params":{"requestId":id}}));
    }

    /// Returns the answer to this request; the client's other lines are taken off.
    #[track_caller]
    pub(crate) fn answer(&mut self, client: ClientId, id: impl Serialize) -> Value {
        let (id, got) = (json!(id), self.got(client));
        let is_answer = |line: &&Value| line["id"] == id && line.get("method").is_none();
        let Some(answer) = got.iter().find(is_answer) else { panic!("no answer to {id}: {got:?}") };
        answer.clone()
    }

    /// Returns the first line of this method; the client's other lines are taken off.
    #[track_caller]
    pub(crate) fn find(&mut self, client: ClientId, method: &str) -> Value {
        let got = self.got(client);
        let line = got.iter().find(|line| line["method"] == method);
        let Some(line) = line else { panic!("no `{method}`: {got:?}") };
        line.clone()
    }

    /// Returns the client's lines, which are of these kinds.
    #[track_caller]
    pub(crate) fn expect<const N: usize>(
        &mut self,
        client: ClientId,
        expected: [&str; N],
    ) -> Vec<Value> {
        let got = self.got(client);
        assert_eq!(words(&got), expected, "{got:?}");
        got
    }

    /// One of the client's lines is of this kind.
    #[track_caller]
    pub(crate) fn expect_some(&mut self, client: ClientId, expected: &str) {
        let got = words(&self.got(client));
        assert!(got.iter().any(|word| word == expected), "no `{expected}`: {got:?}");
    }

    /// The agent is only asked to answer a prompt that has a summary before it.
    #[track_caller]
    pub(crate) fn expect_summary(&mut self) -> Value {
        let prompt = self.heard_one("session/prompt");
        let blocks = prompt["params"]["prompt"].as_array().expect("blocks");
        assert_eq!(blocks.len(), 2, "{prompt}");
        assert!(prompt_text(&prompt).contains(self.summary), "{prompt}");
        prompt
    }

    /// The agent is only asked to answer this prompt.
    #[track_caller]
    pub(crate) fn expect_prompt(&mut self, text: &str) -> Value {
        let prompt = self.heard_one("session/prompt");
        assert_eq!(prompt["params"]["prompt"][0]["text"], text);
        prompt
    }

    /// Sends a prompt, and returns the only one that the agent has got.
    #[track_caller]
    pub(crate) fn start_turn(
        &mut self,
        client: ClientId,
        id: impl Serialize,
        session: &str,
        text: &str,
    ) -> Value {
        self.prompt(client, &json!(id), session, text);
        self.heard_one("session/prompt")
    }

    /// Sends a prompt to the session `s`, with these members of acpd in its metadata.
    pub(crate) fn prompt_with(&mut self, client: ClientId, id: u64, text: &str, own: &Value) {
        let prompt = json!([{"type":"text","text":text}]);
        let params = json!({"sessionId":"s","prompt":prompt,"_meta":{"_acpd":own}});
        self.ask(client, id, "session/prompt", &params);
    }

    /// The agent answers the prompt: the turn is over.
    pub(crate) fn end_turn(&mut self, prompt: &Value) {
        self.agent_answers(prompt, &json!({"stopReason":"end_turn"}));
    }

    /// The agent is only asked to answer a prompt, and does.
    #[track_caller]
    pub(crate) fn end_prompt(&mut self) {
        let prompt = self.heard_one("session/prompt");
        self.end_turn(&prompt);
    }

    /// Sends a prompt that runs at once, and lets its turn end.
    #[track_caller]
    pub(crate) fn run_turn(
        &mut self,
        client: ClientId,
        id: impl Serialize,
        session: &str,
        text: &str,
    ) {
        let prompt = self.start_turn(client, id, session, text);
        self.end_turn(&prompt);
    }

    /// The agent dies, a prompt follows, and the next process is there.
    pub(crate) fn prompt_after_crash(
        &mut self,
        client: ClientId,
        id: impl Serialize,
        session: &str,
        text: &str,
    ) {
        self.agent_dies();
        self.prompt(client, &json!(id), session, text);
        self.pass(1_000);
    }

    /// The agent brings a session back by this method, and gets the prompt that waits for it.
    #[track_caller]
    pub(crate) fn bring_back(&mut self, method: &str) -> Value {
        self.answers(method, &json!({}));
        self.heard_one("session/prompt")
    }

    /// The agent refuses to load a session, for now, as often as it is asked.
    #[track_caller]
    pub(crate) fn refuse_loads(&mut self) {
        for _ in 0..3 {
            self.refuses("session/load", -32602);
            self.pass(2_000);
        }
    }

    /// A client sets the mode of a session.
    #[track_caller]
    pub(crate) fn set_mode(&mut self, client: ClientId, session: &str, mode: &str) {
        let params = json!({"sessionId":session,"modeId":mode});
        self.ask(client, "mode", "session/set_mode", &params);
        self.answers("session/set_mode", &json!({}));
    }

    #[track_caller]
    pub(crate) fn log_in(&mut self, client: ClientId) {
        self.ask(client, "login", "authenticate", &json!({"methodId":"m"}));
        self.answers("authenticate", &json!({}));
    }

    /// The agent dies, and the next process is there.
    pub(crate) fn restart_agent(&mut self) {
        self.agent_dies();
        self.pass(1_000);
    }

    /// Like [`Bench::reboot`]; processes are taken over when the test says so.
    pub(crate) fn reboot_unadopted(&mut self) {
        self.adopts = false;
        self.reboot();
    }

    /// Nothing is left of the last process.
    pub(crate) fn end_process(&mut self) {
        let host = self.host();
        self.feed(Input::Host(host, HostEvent::Gone));
        assert!(!self.snapshot.hosts.contains_key(&host), "its row is left");
    }

    /// The agent answers a request with this error.
    pub(crate) fn agent_fails(&mut self, request: &Value, error: &Value) {
        self.agent(&json!({"id":request["id"],"error":error}));
    }

    pub(crate) fn send_update(&mut self, session: &str, update: &Value) {
        let params = json!({"sessionId":session,"update":update});
        self.agent(&json!({"jsonrpc":"2.0","method":"session/update","params":params}));
    }

    /// The agent tells these members of a call in the session `s`.
    pub(crate) fn update_call(&mut self, call: &str, members: &Value) {
        let mut update = members.clone();
        update["sessionUpdate"] = "tool_call_update".into();
        update["toolCallId"] = call.into();
        self.send_update("s", &update);
    }

    /// Sends a request of the agent.
    pub(crate) fn agent_asks(&mut self, id: impl Serialize, method: &str, params: &Value) {
        self.agent(&json!({"jsonrpc":"2.0","id":id,"method":method,"params":params}));
    }

    /// The agent asks for a permission with one option, `y`.
    pub(crate) fn ask_permission(&mut self, id: impl Serialize, session: &str) {
        let options = json!([{"optionId":"y","name":"Yes","kind":"allow_once"}]);
        let params = json!({"sessionId":session,"toolCall":{"toolCallId":"t"},"options":options});
        self.agent_asks(id, "session/request_permission", &params);
    }

    /// Outcome of the last turn that has ended, as the journal of the only session has it.
    pub(crate) fn last_outcome(&self) -> Value {
        let mut lines = self.journal_lines().into_iter();
        let ended = lines.rfind(|line| line["method"] == "_acpd/turn_ended");
        ended.expect("a turn ended")["params"]["outcome"].take()
    }

    /// Lines of all journals.
    pub(crate) fn journal_lines(&self) -> Vec<Value> {
        let rows = self.journal.values().flatten();
        rows.map(|row| serde_json::from_slice(&row.line).expect("JSON")).collect()
    }

    // Sequences of setups and requests.

    pub(crate) fn with_capabilities(mut self, capabilities: Value) -> Bench {
        self.capabilities = Some(capabilities);
        self
    }

    /// An agent that loads sessions and has these capabilities of sessions.
    pub(crate) fn with_session_capabilities(self, session: Value) -> Bench {
        self.with_capabilities(json!({"loadSession":true,"sessionCapabilities":session}))
    }

    pub(crate) fn with_client(self) -> (Bench, ClientId) {
        self.with_client_of(&json!({}))
    }

    /// A client with this `_meta` of acpd.
    pub(crate) fn with_client_of(mut self, meta: &Value) -> (Bench, ClientId) {
        let client = self.client(meta);
        (self, client)
    }

    pub(crate) fn with_two_clients(mut self) -> (Bench, ClientId, ClientId) {
        let (one, other) = (self.plain(), self.plain());
        (self, one, other)
    }

    /// Like [`Bench::restoring`], with the bench.
    #[track_caller]
    pub(crate) fn with_restoring(
        mut self,
        session: &str,
        method: &str,
    ) -> (Bench, ClientId, Value) {
        let (client, request) = self.restoring(session, method);
        (self, client, request)
    }

    /// Like [`Bench::loading`], with the bench.
    #[track_caller]
    pub(crate) fn with_loading(mut self, session: &str) -> (Bench, ClientId, Value) {
        let (client, load) = self.loading(session);
        (self, client, load)
    }

    /// A bench whose processes do nothing by themselves, and a client that waits for the first one.
    pub(crate) fn connecting() -> (Bench, ClientId) {
        let mut bench = Bench::new();
        bench.by_hand();
        let client = bench.connect(&json!({}));
        (bench, client)
    }

    /// The process that was asked for last is there, and gets `initialize`, which is returned.
    #[track_caller]
    pub(crate) fn process_asks(&mut self) -> Value {
        self.process_starts();
        self.heard_one("initialize")
    }

    /// Begins the session `id` with these params.
    #[track_caller]
    pub(crate) fn session_of(&mut self, client: ClientId, id: &str, params: &Value) {
        self.ask(client, "new", "session/new", params);
        self.answers("session/new", &json!({"sessionId":id}));
        self.got(client);
    }

    /// Sends prompts, and returns the first one as the agent got it; the others wait.
    #[track_caller]
    pub(crate) fn start_and_queue<const N: usize>(
        &mut self,
        client: ClientId,
        session: &str,
        prompts: [(u64, &str); N],
    ) -> Value {
        for (id, text) in prompts {
            self.prompt(client, &json!(id), session, text);
        }
        self.expect_prompt(prompts[0].1)
    }

    /// Sends a request of a client and returns it as the agent got it.
    #[track_caller]
    pub(crate) fn relay(
        &mut self,
        client: ClientId,
        id: impl Serialize,
        method: &str,
        params: &Value,
    ) -> Value {
        self.ask(client, id, method, params);
        self.heard_one(method)
    }

    /// Sends a request of a client and returns the answer, the first line that it gets.
    #[track_caller]
    pub(crate) fn call(&mut self, client: ClientId, method: &str, params: &Value) -> Value {
        self.ask(client, "call", method, params);
        let got = self.got(client);
        assert_eq!(got[0]["id"], "call", "{got:?}");
        got[0].clone()
    }

    /// Requests a session without servers in `/w`.
    pub(crate) fn ask_session(&mut self, client: ClientId, id: impl Serialize) {
        self.ask(client, id, "session/new", &json!({"cwd":"/w","mcpServers":[]}));
    }

    /// Requests a load with these servers, under the id `load`.
    pub(crate) fn ask_load(&mut self, client: ClientId, session: &str, servers: &Value) {
        let params = json!({"sessionId":session,"cwd":"/w","mcpServers":servers});
        self.ask(client, "load", "session/load", &params);
    }

    /// The client observes a session.
    pub(crate) fn observe(&mut self, client: ClientId, session: &str) {
        let params = json!({"ref":{"session":session},"role":"observer"});
        self.ask(client, "observe", "_acpd/session/attach", &params);
    }

    /// An event of the last process.
    pub(crate) fn feed_process(&mut self, event: HostEvent) {
        self.feed(Input::Host(self.host(), event));
    }

    /// The agent dies, and this time passes.
    pub(crate) fn agent_dies_for(&mut self, ms: u64) {
        self.agent_dies();
        self.pass(ms);
    }

    /// Sends a prompt that the agent refuses.
    #[track_caller]
    pub(crate) fn refuse_prompt(
        &mut self,
        client: ClientId,
        id: impl Serialize,
        session: &str,
        text: &str,
        code: i64,
    ) {
        self.prompt(client, &json!(id), session, text);
        self.refuses("session/prompt", code);
    }

    /// The agent dies; the next process is only asked this, which is returned.
    #[track_caller]
    pub(crate) fn restart_hearing(&mut self, method: &str) -> Value {
        self.restart_agent();
        self.heard_one(method)
    }

    /// The agent resumes the session, and gets this prompt, which is returned.
    #[track_caller]
    pub(crate) fn resume_and_expect(&mut self, prompt: &str) -> Value {
        self.answers("session/resume", &json!({}));
        self.expect_prompt(prompt)
    }
}

/// Answer to the agent that selects an option.
pub(crate) fn selected(id: u64, option: &str) -> Value {
    json!({"id":id,"result":{"outcome":{"outcome":"selected","optionId":option}}})
}

/// Reason of an error of acpd.
pub(crate) fn reason(answer: &Value) -> &str {
    answer["error"]["data"]["_acpd"]["reason"].as_str().unwrap_or_default()
}

/// Hint of an error of acpd.
pub(crate) fn hint(answer: &Value) -> &str {
    answer["error"]["data"]["_acpd"]["hint"].as_str().unwrap_or_default()
}

/// Text of the first block of a prompt.
pub(crate) fn prompt_text(prompt: &Value) -> &str {
    prompt["params"]["prompt"][0]["text"].as_str().expect("a text")
}

/// Text of a chunk.
pub(crate) fn text(line: &Value) -> &str {
    line["params"]["update"]["content"]["text"].as_str().expect("a text")
}
