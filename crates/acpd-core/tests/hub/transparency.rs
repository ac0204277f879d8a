//! Lines pass byte for byte: acpd changes only the id of a forwarded line, and ids of sessions and
//! requests that differ on the other side.
//!
//! The messages are those of the official schema, and some that no schema knows. Each is scribbled down in
//! odd ways: in another order, with white space, with members that no schema has, big numbers and escapes.
//!
//! Not here: `initialize`, the answers to questions, which acpd writes itself, and what it asks or
//! answers on its own. Those lines are in `schema`.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use acp_wire::{ErrorObject, code, locate};
use acpd_api::under_agent::ACP;
use acpd_core::ids::{ClientId, HostId, Time};
use acpd_core::{Batch, Effect, HostEvent, Input, ToClient, ToHost};
use agent_client_protocol_schema::v1::{
    self, AuthStatusRequest, AuthStatusResponse, AuthenticateRequest, AuthenticateResponse,
    ListProvidersRequest, ListProvidersResponse, LogoutRequest, LogoutResponse, PromptRequest,
    PromptResponse, SetSessionModeRequest, SetSessionModeResponse,
};
use bytes::Bytes;
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::bench::{Bench, client_line, host_line};

/// Stands for the id of a message.
const ID: &str = "\u{1}id";
/// Stands for an id within a message that acpd translates: of a session, or of a request.
const SESSION: &str = "\u{1}session";

/// Members that no schema knows.
const ODD: [&str; 9] = [
    r#""_odd":null"#,
    r#""big":123456789012345678901234567890"#,
    r#""float":-0.0E+10 , "exact" : 1.50"#,
    r#""huge":1e400"#,
    r#""escapes":"\/\b\u00e9\uD83D\ude00\u0000""#,
    r#""half of a pair":"\ud800""#,
    r#""":{ }"#,
    r#""Привет":"\"id\":7,\"method\":\"x\"}""#,
    r#""deep":[[[[{"sessionId":"other","id":1}]]]]"#,
];
const META: &str = r#""_meta":{"traceparent":"00-ab","_vendor":{"k":[1, 2.50]}}"#;

/// A hub between an agent and a client that can take everything, and the bytes on both sides.
struct Wire {
    bench: Bench,
    client: ClientId,
    host: HostId,
    /// The session, as the client calls it and as the agent does.
    public: String,
    private: String,
    /// Bytes that the agent has written.
    end: u64,
}

impl Wire {
    /// With a session whose id is the agent's own.
    fn new() -> Wire {
        let mut bench = Bench::new();
        let client = hello(&mut bench);
        bench.session(client, "s");
        let host = bench.host();
        let (public, private) = ("s".to_owned(), "s".to_owned());
        Wire { bench, client, host, public, private, end: 1 << 40 }
    }

    /// With a session whose id is translated: the agent has given it away before.
    fn translated() -> Wire {
        let mut bench = Bench::able(&json!({}));
        let client = hello(&mut bench);
        bench.used_session(client, "0");
        bench.agent_dies();
        bench.got(client);
        bench.ask(client, 2, "session/new", &json!({"cwd":"/w","mcpServers":[]}));
        bench.pass(1_000);
        bench.answers("session/new", &json!({"sessionId":"0"}));
        let made = bench.answer(client, 2);
        let public = made["result"]["sessionId"].as_str().expect("an id").to_owned();
        assert_ne!(public, "0");
        let host = bench.host();
        Wire { bench, client, host, public, private: "0".to_owned(), end: 1 << 40 }
    }

    /// Returns the agent's line for a line of the client.
    fn client_says(&mut self, line: &str) -> Vec<String> {
        let line = Bytes::from(line.to_owned());
        self.feed(client_line(self.client, line)).1
    }

    /// Returns the client's line for a line of the agent.
    fn agent_says(&mut self, line: &str) -> Vec<String> {
        self.end += line.len() as u64 + 1;
        let line = Bytes::from(line.to_owned());
        self.feed(host_line(self.host, line, self.end)).0
    }

    /// Returns the lines of client and agent. The bench reads lines, and some of these are beyond
    /// what it can read.
    fn feed(&mut self, input: Input) -> (Vec<String>, Vec<String>) {
        let (mut to_client, mut to_agent, mut written) = (Vec::new(), Vec::new(), Vec::new());
        let mut batch = Batch::default();
        let now = Time(self.bench.now);
        self.bench.hub.handle(now, input, &mut batch);
        for effect in std::mem::take(&mut batch.effects) {
            match effect {
                Effect::FindDirectory { question, .. } => {
                    let found = Input::DirectoryFound { question, exists: true };
                    self.bench.hub.handle(now, found, &mut batch);
                }
                // A question is about a file that is not there.
                Effect::Serve { request, .. } => {
                    let result = Err(ErrorObject::new(code::NOT_FOUND, "no such file"));
                    self.bench.hub.handle(now, Input::Served { request, result }, &mut batch);
                }
                effect => batch.effects.push(effect),
            }
        }
        let text = |line: &Bytes| String::from_utf8(line.to_vec()).expect("text");
        batch.effects.retain(|effect| match effect {
            Effect::Client(_, ToClient::Line(line)) => {
                to_client.push(text(line));
                false
            }
            Effect::Host(host, ToHost::Write { chunk, line }) => {
                to_agent.push(text(line));
                written.push(Input::Host(*host, HostEvent::Written { chunk: *chunk }));
                false
            }
            _ => true,
        });
        self.bench.run_batch(batch);
        for input in written {
            self.bench.feed(input);
        }
        (to_client, to_agent)
    }
}

/// A client that declares all that a line may be downgraded for.
fn hello(bench: &mut Bench) -> ClientId {
    let session = json!({"configOptions":{"boolean":{}},"notices":{},"compaction":{}});
    let elicitation = json!({"form":{},"url":{}});
    let capabilities = json!({"session":session,"plan":{},"subagents":{},"auth":{"terminal":true},"elicitation":elicitation});
    bench.introduce(&json!({"clientCapabilities":capabilities}))
}

/// A line with its ids taken out.
#[derive(Debug, Default)]
struct Line {
    pieces: Vec<Piece>,
    rest: String,
}

#[derive(Debug)]
struct Piece {
    before: String,
    what: &'static str,
}

impl Line {
    /// The line with these ids.
    fn with(&self, id: &str, session: &str) -> String {
        let mut line = String::new();
        for Piece { before, what } in &self.pieces {
            line.push_str(before);
            line.push_str(if *what == ID { id } else { session });
        }
        line + &self.rest
    }

    /// The id in this line, which is to be ours but for it.
    #[track_caller]
    fn id_in(&self, line: &str, session: &str) -> String {
        let before = self.with("\0", session);
        let (before, after) = before.split_once('\0').expect("an id");
        let id = line.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
        id.unwrap_or_else(|| panic!("not the same but for its id:\n{line}\n{before}ID{after}"))
            .to_owned()
    }
}

/// Writes JSON down in as many ways as its dice have it; without dice, in the plain one.
struct Scribe<'a> {
    dice: std::slice::Iter<'a, u8>,
    line: Line,
}

fn scribble(value: &Value, dice: &[u8]) -> Line {
    let mut scribe = Scribe { dice: dice.iter(), line: Line::default() };
    scribe.value(value);
    scribe.line
}

impl Scribe<'_> {
    fn roll(&mut self, sides: usize) -> usize {
        self.dice.next().map_or(0, |die| usize::from(*die) % sides)
    }

    fn write(&mut self, text: &str) {
        self.line.rest.push_str(text);
    }

    fn space(&mut self) {
        let space = ["", "", "", " ", "\t ", " \r"][self.roll(6)];
        self.write(space);
    }

    fn value(&mut self, value: &Value) {
        self.space();
        match value {
            Value::String(text) => match [ID, SESSION].into_iter().find(|hole| hole == text) {
                Some(what) => {
                    let before = std::mem::take(&mut self.line.rest);
                    self.line.pieces.push(Piece { before, what });
                }
                None => self.string(text),
            },
            Value::Array(items) => {
                self.write("[");
                for (at, item) in items.iter().enumerate() {
                    self.write(if at > 0 { "," } else { "" });
                    self.value(item);
                }
                self.write("]");
            }
            Value::Object(members) => {
                let mut members: Vec<_> = members.iter().collect();
                let first = self.roll(members.len().max(1));
                members.rotate_left(first);
                let has_meta = members.iter().any(|(name, _)| *name == "_meta");
                self.write("{");
                let (mut comma, mut used) = ("", BTreeSet::new());
                for (name, value) in members {
                    let mut odd = self.odd(!has_meta && comma.is_empty());
                    // Twice, it would not pass.
                    odd.retain(|odd| used.insert(*odd));
                    for odd in odd {
                        self.write(comma);
                        self.write(odd);
                        comma = ",";
                    }
                    self.write(comma);
                    self.space();
                    self.string(name);
                    self.space();
                    self.write(":");
                    self.value(value);
                    comma = ",";
                }
                self.write("}");
            }
            plain => self.write(&plain.to_string()),
        }
        self.space();
    }

    fn odd(&mut self, with_meta: bool) -> Vec<&'static str> {
        let mut odd = Vec::new();
        if self.roll(6) == 5 {
            odd.push(ODD[self.roll(ODD.len())]);
        }
        if with_meta && self.roll(8) == 7 {
            odd.push(META);
        }
        odd
    }

    fn string(&mut self, text: &str) {
        let plain = json!(text).to_string();
        match self.roll(8) {
            6 => self.write(&plain.replace('/', "\\/")),
            7 => self.write(&escaped(text)),
            _ => self.write(&plain),
        }
    }
}

/// A string with every letter escaped.
fn escaped(text: &str) -> String {
    let mut string = String::from("\"");
    for unit in text.encode_utf16() {
        write!(string, "\\u{unit:04x}").expect("a string takes all");
    }
    string + "\""
}

/// A message of the schema: the same JSON, once the official type has read and written it.
fn official<T: DeserializeOwned + Serialize>(params: Value) -> Value {
    let typed: T = serde_json::from_value(params).expect("the official type takes it");
    serde_json::to_value(typed).expect("the official type serializes")
}

/// A request and its result, both as [`official`] types.
fn both<A: DeserializeOwned + Serialize, B: DeserializeOwned + Serialize>(
    method: &'static str,
    params: Value,
    result: Value,
) -> (&'static str, Value, Value) {
    (method, official::<A>(params), official::<B>(result))
}

fn request(method: &str, params: &Value) -> Value {
    json!({"jsonrpc":"2.0","id":ID,"method":method,"params":params})
}

fn notification(method: &str, params: &Value) -> Value {
    json!({"jsonrpc":"2.0","method":method,"params":params})
}

/// Requests of clients that an agent answers: method, params, result.
fn asked() -> Vec<(&'static str, Value, Value)> {
    let s = || json!({"sessionId":SESSION});
    let block = json!([
        {"type":"text","text":"a \"b\" \u{e9}\u{1f600}\n"},
        {"type":"resource_link","uri":"file:///w/x","name":"x","size":7},
    ]);
    let option = json!({"id":"fast","name":"Fast","type":"boolean","currentValue":true});
    let with = |mut params: Value| {
        params["sessionId"] = SESSION.into();
        params
    };
    let set = with(json!({"configId":"fast","type":"boolean","value":true}));
    let provider = json!({"providerId":"p","apiType":"openai","baseUrl":"http://x"});
    let (is_logged_in, providers) = (json!({"state":"authenticated"}), json!({"providers":[]}));
    let (prompt, end) = (with(json!({"prompt":block})), json!({"stopReason":"end_turn"}));
    let (set_mode, options) = (with(json!({"modeId":"m"})), json!({"configOptions":[option]}));
    vec![
        both::<PromptRequest, PromptResponse>("session/prompt", prompt, end),
        both::<SetSessionModeRequest, SetSessionModeResponse>(
            "session/set_mode",
            set_mode,
            json!({}),
        ),
        both::<v1::SetSessionConfigOptionRequest, v1::SetSessionConfigOptionResponse>(
            "session/set_config_option",
            set,
            options,
        ),
        ("session/set_model", with(json!({"modelId":"m"})), json!({})),
        ("session/options", with(json!({})), json!({"configOptions":[]})),
        both::<AuthenticateRequest, AuthenticateResponse>(
            "authenticate",
            json!({"methodId":"m"}),
            json!({}),
        ),
        both::<LogoutRequest, LogoutResponse>("logout", json!({}), json!({})),
        both::<AuthStatusRequest, AuthStatusResponse>("auth/status", json!({}), is_logged_in),
        both::<ListProvidersRequest, ListProvidersResponse>("providers/list", json!({}), providers),
        ("providers/set", official::<v1::SetProviderRequest>(provider), json!({})),
        (
            "providers/disable",
            official::<v1::DisableProviderRequest>(json!({"providerId":"p"})),
            json!({}),
        ),
        ("_vendor/ask", with(json!({"k":[1, 2.5]})), json!(null)),
        ("_vendor/ask", json!({"k":{}}), json!([1, "x"])),
        ("from/the/future", s(), json!(true)),
    ]
}

/// Updates of an agent.
fn updates() -> Vec<Value> {
    let text = json!({"type":"text","text":"a\nb \u{e9}"});
    let chunk = |kind: &str| json!({"sessionUpdate":kind,"content":text,"messageId":"m"});
    let content = json!([
        {"type":"content","content":text},
        {"type":"diff","path":"/w/x","oldText":null,"newText":"y"},
        {"type":"terminal","terminalId":"t"},
    ]);
    let locations = json!([{"path":"/w/x","line":7}]);
    let entry = json!({"content":"look","priority":"high","status":"pending"});
    let option = json!({"id":"fast","name":"Fast","type":"boolean","currentValue":true});
    let known = [
        chunk("user_message_chunk"),
        chunk("agent_message_chunk"),
        chunk("agent_thought_chunk"),
        json!({"sessionUpdate":"tool_call","toolCallId":"t","title":"T","kind":"edit","status":"pending",
               "content":content,"locations":locations,"rawInput":{"x":[null]}}),
        json!({"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed","rawOutput":1.5}),
        json!({"sessionUpdate":"plan","entries":[entry]}),
        json!({"sessionUpdate":"available_commands_update",
               "availableCommands":[{"name":"a","description":"b","input":{"hint":"c"}}]}),
        json!({"sessionUpdate":"current_mode_update","currentModeId":"m"}),
        json!({"sessionUpdate":"config_option_update","configOptions":[option]}),
        json!({"sessionUpdate":"session_info_update","title":"T","updatedAt":null}),
        json!({"sessionUpdate":"usage_update","used":18_446_744_073_709_551_615_u64,"size":7,
               "cost":{"amount":0.1,"currency":"EUR"}}),
        json!({"sessionUpdate":"notice","severity":"warning","title":"T"}),
        json!({"sessionUpdate":"compaction_update","compactionId":"c","status":"in_progress"}),
        json!({"sessionUpdate":"compaction_summary_chunk","compactionId":"c","content":text}),
        json!({"sessionUpdate":"plan_update","plan":{"type":"markdown","planId":"p","content":"#"}}),
        json!({"sessionUpdate":"plan_removed","planId":"p"}),
        json!({"sessionUpdate":"subagent_update","sessionId":"child","title":"T"}),
        json!({"sessionUpdate":"session_message_chunk","messageId":"m","content":text}),
    ];
    let known = known.into_iter().map(|update| {
        official::<v1::SessionNotification>(json!({"sessionId":SESSION,"update":update}))
    });
    let odd = [
        json!({"sessionUpdate":"odd_thing","n":1}),
        json!({"sessionUpdate":"","content":7}),
        json!({"sessionUpdate":["tool_call"],"toolCallId":{}}),
        json!({"no":"kind"}),
        json!([]),
    ];
    known.chain(odd.map(|update| json!({"sessionId":SESSION,"update":update}))).collect()
}

/// Notifications of an agent: method, params.
fn told() -> Vec<(&'static str, Value)> {
    let status = official::<v1::AuthStatusUpdateNotification>(json!({"state":"authenticated"}));
    let odd = [
        ("auth/status_update", status),
        ("_vendor/news", json!({"sessionId":SESSION,"k":[[]]})),
        ("_vendor/news", json!({"k":"everybody"})),
        ("from/the/future", json!([1, 2])),
        ("from/the/future", json!(null)),
    ];
    updates().into_iter().map(|params| ("session/update", params)).chain(odd).collect()
}

fn dice() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..300)
}

/// The session's id as JSON text, to the client and to the agent. Where they are the same, it is
/// written in an odd way, which stays.
fn names(wire: &Wire) -> (String, String) {
    if wire.public == wire.private {
        let name = escaped(&wire.public);
        return (name.clone(), name);
    }
    (json!(wire.public).to_string(), json!(wire.private).to_string())
}

#[track_caller]
fn one(lines: Vec<String>) -> String {
    let [line] = <[String; 1]>::try_from(lines).expect("one line");
    line
}

/// A request of the client and the agent's answer.
fn round_trip(wire: &mut Wire, line: &Line, answer: &Line) {
    let (public, private) = names(wire);
    let id = "\"\\u0061/7\"";
    let heard = one(wire.client_says(&line.with(id, &public)));
    let asked = line.id_in(&heard, &private);
    let issued = serde_json::from_str::<acp_wire::Id>(&asked).ok().and_then(|id| id.as_issued());
    assert!(issued.is_some(), "an id of acpd: {asked}");
    assert_eq!(wire.agent_says(&answer.with(&asked, &private)), [answer.with(id, &public)]);
}

fn requests_pass(wire: &mut Wire, dice: &[u8]) {
    for (at, (method, params, result)) in asked().into_iter().enumerate() {
        // Each message has other dice, and those of a failure say which ones.
        let dice = &dice[at.min(dice.len())..];
        let line = scribble(&request(method, &params), dice);
        let result = scribble(&json!({"jsonrpc":"2.0","id":ID,"result":result}), dice);
        round_trip(wire, &line, &result);
        let error = json!({"code":-32603,"message":"no","data":{"sessionId":SESSION,"x":[]}});
        if params.get("sessionId").is_some() {
            let error = scribble(&json!({"jsonrpc":"2.0","id":ID,"error":error}), dice);
            round_trip(wire, &line, &error);
        }
    }
}

fn notifications_pass(wire: &mut Wire, dice: &[u8]) {
    let (public, private) = names(wire);
    for (at, (method, params)) in told().into_iter().enumerate() {
        let dice = &dice[at.min(dice.len())..];
        let line = scribble(&notification(method, &params), dice);
        assert_eq!(wire.agent_says(&line.with("", &private)), [line.with("", &public)], "{method}");
    }
    let note = scribble(&notification("_vendor/note", &json!({"sessionId":SESSION})), dice);
    assert_eq!(wire.client_says(&note.with("", &public)), [note.with("", &private)]);
}

/// A question of the agent: its id is the agent's there and acpd's here.
fn question_passes(wire: &mut Wire, line: &Line, scope: (&str, &str), result: &Value) {
    let (public, private) = scope;
    let said = one(wire.agent_says(&line.with("\"\\u0061\"", private)));
    let id = line.id_in(&said, public);
    let answer = json!({"jsonrpc":"2.0","id":ID,"result":result});
    let heard = one(wire.client_says(&scribble(&answer, &[]).with(&id, "")));
    assert_eq!(locate(heard.as_bytes(), &["id"]).map(|at| &heard[at]), Some("\"\\u0061\""));
}

fn questions_pass(wire: &mut Wire, dice: &[u8]) {
    let (public, private) = names(wire);
    let option = json!({"optionId":"yes","name":"Yes","kind":"allow_once"});
    let params = official::<v1::RequestPermissionRequest>(
        json!({"sessionId":SESSION,"toolCall":{"toolCallId":"t","title":"T"},"options":[option]}),
    );
    let line = scribble(&request("session/request_permission", &params), dice);
    let result = json!({"outcome":{"outcome":"selected","optionId":"yes"}});
    question_passes(wire, &line, (&public, &private), &result);

    // Odd members among the properties would be fields, which acpd has to understand.
    let form = json!({"type":"object","title":"T","properties":{}});
    let params = official::<v1::CreateElicitationRequest>(
        json!({"mode":"form","message":"Who?","sessionId":SESSION,"requestedSchema":form}),
    );
    let line = scribble(&request("elicitation/create", &params), dice);
    let result = json!({"action":"accept","content":{}});
    question_passes(wire, &line, (&public, &private), &result);
}

/// A question about a request names it by its id, which is another one on each side.
fn pages_pass(wire: &mut Wire, dice: &[u8]) {
    let login = scribble(&request("authenticate", &json!({"methodId":"m"})), &[]);
    let heard = one(wire.client_says(&login.with("\"\\u0062\"", "")));
    let asked = login.id_in(&heard, "");
    let params = official::<v1::CreateElicitationRequest>(json!({
        "mode":"url","message":"Log in","requestId":SESSION,"elicitationId":"e","url":"https://x/"
    }));
    let line = scribble(&request("elicitation/create", &params), dice);
    question_passes(wire, &line, ("\"\\u0062\"", &asked), &json!({"action":"accept"}));
    let done = official::<v1::CompleteElicitationNotification>(json!({"elicitationId":"e"}));
    let done = scribble(&notification("elicitation/complete", &done), dice).with("", "");
    assert_eq!(wire.agent_says(&done), [done]);
}

/// A cancel of a turn is the client's own line.
fn cancels_pass(wire: &mut Wire, dice: &[u8]) {
    let (public, private) = names(wire);
    let prompt = json!({"sessionId":SESSION,"prompt":[{"type":"text","text":"go"}]});
    let prompt = scribble(&request("session/prompt", &prompt), &[]);
    let heard = one(wire.client_says(&prompt.with("1", &public)));
    let cancel = official::<v1::CancelNotification>(json!({"sessionId":SESSION}));
    let cancel = scribble(&notification("session/cancel", &cancel), dice);
    assert_eq!(wire.client_says(&cancel.with("", &public)), [cancel.with("", &private)]);
    let answer = json!({"jsonrpc":"2.0","id":ID,"result":{"stopReason":"cancelled"}});
    let answer = scribble(&answer, dice);
    let said = wire.agent_says(&answer.with(&prompt.id_in(&heard, &private), &private));
    assert_eq!(said, [answer.with("1", &public)]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn requests_and_their_answers_pass_as_they_are(dice in dice()) {
        requests_pass(&mut Wire::new(), &dice);
    }

    #[test]
    fn notifications_pass_as_they_are(dice in dice()) {
        notifications_pass(&mut Wire::new(), &dice);
    }

    #[test]
    fn questions_and_cancels_pass_as_they_are(dice in dice()) {
        let mut wire = Wire::new();
        questions_pass(&mut wire, &dice);
        pages_pass(&mut wire, &dice);
        cancels_pass(&mut wire, &dice);
    }

    #[test]
    fn of_a_translated_session_the_id_changes_and_nothing_else(dice in dice()) {
        let mut wire = Wire::translated();
        requests_pass(&mut wire, &dice);
        notifications_pass(&mut wire, &dice);
        questions_pass(&mut wire, &dice);
        cancels_pass(&mut wire, &dice);
    }

    /// The rest of the line is built: it has no place for what acpd takes out.
    #[test]
    fn the_params_of_a_new_session_and_the_answer_pass_as_they_are(dice in dice()) {
        let mut wire = Wire::new();
        let server = json!({"name":"m","command":"x","args":[],"env":[{"name":"K","value":"v"}]});
        let params = official::<v1::NewSessionRequest>(json!({"cwd":"/w","mcpServers":[server]}));
        let line = scribble(&request("session/new", &params), &dice).with("7", "");
        let heard = one(wire.client_says(&line));
        let part = |line: &str, name: &str| {
            locate(line.as_bytes(), &[name]).map(|range| line[range].to_owned())
        };
        prop_assert_eq!(part(&heard, "params"), part(&line, "params"));
        let id = part(&heard, "id").expect("an id");
        let mode = json!({"id":"a","name":"A"});
        let modes = json!({"currentModeId":"a","availableModes":[mode]});
        let result = json!({"sessionId":"n","modes":modes});
        let result = official::<v1::NewSessionResponse>(result);
        let answer = scribble(&json!({"jsonrpc":"2.0","id":ID,"result":result}), &dice);
        let said = wire.agent_says(&answer.with(&id, ""));
        prop_assert_eq!(said, [answer.with("7", "")]);
    }
}

#[test]
fn of_members_that_come_twice_the_last_passes_and_is_what_acpd_has_read() {
    let mut wire = Wire::new();
    let line = |twice: [&str; 3]| {
        let [update, kind, odd] = twice;
        format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{{update}"sessionId":"s","update":{{{kind}"title":"U", "sessionUpdate":"session_info_update" }}{odd}}}}}"#
        )
    };
    let twice = [r#""update":7,"#, r#""title":"T","sessionUpdate":"tool_call","#, ""];
    assert_eq!(wire.agent_says(&line(twice)), [line([""; 3])]);
    let session = wire.bench.snapshot.sessions.values().next().expect("the one");
    assert_eq!(session.row.title.as_deref(), Some("U"));
    let odd = [r#""odd":1,"#, "", r#" ,"odd":[2]"#];
    assert_eq!(wire.agent_says(&line(odd)), [line(["", "", odd[2]])]);
    let head = r#"{"jsonrpc":"2.0","id":"#;
    let set = |twice: &str| {
        format!(
            r#","method":"session/set_mode","params":{{{twice}"sessionId":"s","modeId":"b"}}}}"#
        )
    };
    let heard = one(wire.client_says(&format!("{head}1{}", set(r#""modeId":"a","#))));
    assert!(heard.starts_with(head) && heard.ends_with(&set("")), "{heard}");
}

/// Methods that the hub answers or decides about, in either direction. `mcp/message` goes where the
/// call is that it is about: `mcp_in_client.rs`.
const HANDLED: &str = "initialize session/new session/load session/resume session/list \
    session/close session/delete session/cancel session/fork session/archive session/unarchive \
    session/status session/set_title _session/steering session/inject session/request_permission \
    fs/read_text_file fs/write_text_file terminal/create terminal/output terminal/wait_for_exit \
    terminal/kill terminal/release elicitation/create elicitation/complete mcp/message \
    auth/login auth/logout tool_call/cancel terminal/cancel $/cancel_request $/cancelRequest";

/// So that a method that is added to the protocol is added here.
#[test]
fn every_method_that_is_forwarded_is_tried() {
    let is_handled = |name: &str| HANDLED.split_whitespace().any(|handled| handled == name);
    let names = |table: Value| -> Vec<String> {
        let names = table.as_object().expect("a table").values();
        names.map(|name| name.as_str().expect("a name").to_owned()).collect()
    };
    for name in names(serde_json::to_value(&v1::AGENT_METHOD_NAMES).expect("it serializes")) {
        assert!(ACP.iter().any(|(known, ..)| *known == name), "{name}");
    }
    let (asked, told) = (asked(), told());
    for (name, ..) in ACP {
        assert!(asked.iter().any(|(tried, ..)| tried == name) || is_handled(name), "{name}");
    }
    for name in names(serde_json::to_value(&v1::CLIENT_METHOD_NAMES).expect("it serializes")) {
        assert!(told.iter().any(|(tried, _)| *tried == name) || is_handled(&name), "{name}");
    }
}
