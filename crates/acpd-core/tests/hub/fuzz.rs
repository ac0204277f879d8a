//! Hostile peers: with any lines, the hub continues, other clients see what they should, and no
//! line reaches a wrong client.

use std::collections::BTreeSet;

use acp_wire::{Id, str_at};
use acpd_api::NAMESPACE;
use acpd_core::Input;
use acpd_core::ids::{ClientId, SessionKey};
use acpd_core::record::EventRow;
use acpd_core::views::render;
use acpd_core::{ClientEvent, ClientOrigin, Numbers, StopStep, View};
use acpd_test::fuzz::{Dice, Outcomes, fuzz, throws};
use bytes::Bytes;
use proptest::prelude::any;
use serde_json::{Value, json};

use crate::bench::{AGENT, Bench, client_line, host_line};
use crate::mangle::{Account, mangle, of_client};
use crate::own::only_acpd_speaks_for_acpd;

/// A client that follows a session from its first line, and what it has seen of it.
struct Follower {
    client: ClientId,
    session: &'static str,
    /// A session that is deleted and adopted again under the same id is another one.
    key: SessionKey,
    seen: Vec<(u64, String)>,
    /// Lines that are no part of a journal.
    other: Vec<String>,
}

impl Follower {
    fn new(bench: &mut Bench, session: &'static str) -> Follower {
        let client = bench.client(&json!({"seq":true,"notices":true}));
        bench.session(client, session);
        let key = *bench.snapshot.sessions.keys().last().expect("the session");
        Follower { client, session, key, seen: Vec::new(), other: Vec::new() }
    }

    fn look(&mut self, bench: &mut Bench, outcomes: &Outcomes) {
        for line in bench.got_raw(self.client) {
            outcomes.met(&outcome(&line));
            let seq = acp_wire::locate(line.as_bytes(), &["params", "_meta", NAMESPACE, "seq"]);
            let of = str_at(line.as_bytes(), &["params", "sessionId"]);
            match seq.and_then(|range| line[range].parse().ok()) {
                Some(seq) if of.as_deref() == Some(self.session) => self.seen.push((seq, line)),
                _ => self.other.push(line),
            }
        }
    }

    /// The client has seen its session's whole journal, in order. If a client deletes the session
    /// and adopts it again, it has seen some of that as well, and nothing else.
    fn check(&self, bench: &Bench) {
        let first: Vec<_> = self.lines(bench.journal.get(&self.key)).collect();
        let (seen, seen_later) = self.seen.split_at(first.len().min(self.seen.len()));
        assert_eq!(seen, first);
        let later = bench.journal.iter().filter(|(key, _)| **key > self.key);
        let mut later = later.flat_map(|(_, rows)| self.lines(Some(rows)));
        for line in seen_later {
            assert!(later.any(|of| of == *line), "not in a journal: {line:?}");
        }
    }

    /// Returns the shown part of its session's journal.
    fn lines<'b>(
        &'b self,
        journal: Option<&'b Vec<EventRow>>,
    ) -> impl Iterator<Item = (u64, String)> + 'b {
        let of = |row: &&EventRow| {
            str_at(&row.line, &["params", "sessionId"]).as_deref() == Some(self.session)
        };
        let own = format!(".{}", self.client.0);
        let view = View { numbers: Numbers::InMeta, notices: true, ..View::default() };
        let rows = journal.into_iter().flatten().filter(of);
        let rows =
            rows.filter(move |row| !row.origin.as_ref().is_some_and(|of| of.ends_with(&own)));
        rows.filter_map(move |row| {
            let line = render(row, None, self.session, &view)?;
            Some((row.seq, String::from_utf8(line.to_vec()).expect("text")))
        })
    }
}

/// An error of acpd's own says why in a word, unless it answers what is no message.
fn assert_reason(line: &str) {
    let is_own = !line.contains("the agent says no");
    let code = acp_wire::locate(line.as_bytes(), &["error", "code"]).map(|range| &line[range]);
    let Some(code) = code.filter(|_| is_own && !line.contains("\"id\":null")) else { return };
    let reason = str_at(line.as_bytes(), &["error", "data", NAMESPACE, "reason"]);
    assert!(reason.is_some(), "{code}: {line}");
}

/// Returns the fate of a client's line, in few words.
fn outcome(line: &str) -> String {
    let bytes = line.as_bytes();
    if let Some(method) = str_at(bytes, &["method"]) {
        let update = str_at(bytes, &["params", "update", "sessionUpdate"]);
        return update.unwrap_or(method).into_owned();
    }
    match acp_wire::locate(bytes, &["error", "code"]) {
        Some(code) => {
            let reason = str_at(bytes, &["error", "data", NAMESPACE, "reason"]);
            format!("error {} {}", &line[code], reason.unwrap_or_default())
        }
        None => "result".to_owned(),
    }
}

/// Decisions of the person, which no client under an agent may change.
type Decided = (Vec<(SessionKey, [Option<String>; 2], BTreeSet<String>, String, bool)>, Vec<i64>);

fn decided(bench: &Bench) -> Decided {
    let sessions = bench.snapshot.sessions.iter().map(|(key, state)| {
        let row = &state.row;
        let names = [row.name.clone(), row.own_title.clone()];
        (*key, names, row.labels.clone(), row.cwd.clone(), row.archived)
    });
    (sessions.collect(), bench.snapshot.remembered.keys().copied().collect())
}

/// The hostile client that runs under an agent.
const UNDER_AGENT: usize = 2;

/// A hub between three hostile clients, one that behaves, and an agent that does as well.
struct World<'a> {
    bench: Bench,
    outcomes: &'a Outcomes,
    hostile: [(ClientId, Account); 3],
    good: Follower,
    account: Account,
    /// Unanswered requests to the agent.
    pending: Vec<Value>,
    next: u64,
}

impl World<'_> {
    fn new(outcomes: &Outcomes) -> World<'_> {
        let mut bench = Bench::new();
        let good = Follower::new(&mut bench, "s");
        let mut hostile = [(); 3].map(|()| (bench.plain(), Account::default()));
        bench.session(hostile[0].0, "e");
        bench.feed(Input::Client(hostile[UNDER_AGENT].0, ClientEvent::Closed));
        hostile[UNDER_AGENT].0 = ClientId(999);
        bench.feed(Input::Client(ClientId(999), ClientEvent::Opened(ClientOrigin::Agent(None))));
        bench.lenient = true;
        let (account, pending) = (Account::default(), Vec::new());
        World { bench, outcomes, hostile, good, account, pending, next: 0 }
    }

    fn look(&mut self) {
        self.pending.extend(self.bench.heard().into_iter().filter(|line| line["id"].is_string()));
        let others = self.good.other.len();
        self.good.look(&mut self.bench, self.outcomes);
        for line in &self.good.other[others..] {
            self.account.gets(line);
            assert_reason(line);
        }
        for (client, account) in &mut self.hostile {
            for line in self.bench.got_raw(*client) {
                self.outcomes.met(&outcome(&line));
                account.gets(&line);
                assert_reason(&line);
            }
        }
        if self.bench.stops.contains(&StopStep::Kill) {
            self.dies();
        }
    }

    fn dies(&mut self) {
        self.bench.stops.clear();
        self.pending.clear();
        self.bench.agent_dies();
    }

    /// The agent answers the request that waits longest.
    fn answer(&mut self, well: bool) {
        if self.pending.is_empty() {
            return;
        }
        let request = self.pending.remove(0);
        self.next += 1;
        if !well {
            let error = json!({"code":-32603,"message":"the agent says no"});
            return self.bench.agent_fails(&request, &error);
        }
        let result = json!({"sessionId":format!("n{}", self.next),"stopReason":"end_turn"});
        self.bench.agent_answers(&request, &result);
    }

    fn hostile_line(&mut self, dice: &mut Dice<'_>) {
        self.next += 1;
        let which = dice.below(3);
        let mut named: Vec<Value> = ["e", "nope", "n1", "", "s"].map(Value::from).to_vec();
        // Questions to others, by the id of the request and by the name they have in a list.
        let asked = self.good.other.iter().filter(|line| line.contains("request_permission"));
        let asked = asked.filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let ids = asked.filter_map(|line| Id::from_value(&line["id"])?.as_issued());
        for id in ids.collect::<BTreeSet<_>>() {
            named.push(id.into());
            named.push(json!(Id::issued(id)));
        }
        let id = json!(format!("{which}/{}", self.next));
        let line = of_client(&id, AGENT, &named, dice);
        let line = mangle(&line, &named, dice);
        let (client, account) = &mut self.hostile[which];
        account.says(&line);
        let input = client_line(*client, Bytes::from(line));
        if which != UNDER_AGENT {
            return self.bench.feed(input);
        }
        let before = decided(&self.bench);
        self.bench.feed(input);
        let (mut sessions, remembered) = decided(&self.bench);
        sessions.truncate(before.0.len());
        for (now, before) in sessions.iter_mut().zip(&before.0) {
            // A prompt is allowed, and takes a session out of the archive.
            now.4 |= before.4;
        }
        assert_eq!((sessions, remembered), before, "a client under an agent changed it");
        let heard = self.bench.heard();
        let decides = |line: &&Value| line["result"]["outcome"]["outcome"] == "selected";
        assert_eq!(heard.iter().find(decides), None, "a client under an agent answered");
        self.pending.extend(heard.into_iter().filter(|line| line["id"].is_string()));
    }

    fn good_prompt(&mut self) {
        self.next += 1;
        let line = json!({"id":self.next,"method":"session/prompt",
            "params":{"sessionId":"s","prompt":[{"type":"text","text":"go"}]}});
        self.account.says(line.to_string().as_bytes());
        self.bench.say(self.good.client, &line);
    }

    fn comes_again(&mut self, which: usize) {
        let (client, account) = &mut self.hostile[which];
        if !account.named {
            // Requests of a client that left need no answers.
            *account = Account::default();
        }
        self.bench.feed(Input::Client(*client, ClientEvent::Closed));
        let again = ClientId(1_000 + self.next);
        self.next += 1;
        *client = again;
        let origin =
            if which == UNDER_AGENT { ClientOrigin::Agent(None) } else { ClientOrigin::User };
        self.bench.feed(Input::Client(again, ClientEvent::Opened(origin)));
        let line = json!({"id":"init","method":"initialize","params":{"protocolVersion":1}});
        account.says(line.to_string().as_bytes());
        self.bench.say(again, &line);
    }

    fn step(&mut self, dice: &mut Dice<'_>) {
        self.outcomes.execution();
        match dice.below(16) {
            0..=8 => self.hostile_line(dice),
            9 => self.good_prompt(),
            10 => self.bench.chunk("s", "x"),
            11 => {
                let option = json!({"optionId":"y","name":"Yes","kind":"allow_once"});
                let params =
                    json!({"sessionId":"s","toolCall":{"toolCallId":"t"},"options":[option]});
                self.next += 1;
                let id = self.next;
                let line = json!({"id":id,"method":"session/request_permission","params":params});
                self.bench.agent(&line);
            }
            12 => self.comes_again(dice.below(3)),
            13 => self.bench.pass(10_000),
            14 => self.answer(false),
            _ => self.answer(true),
        }
        self.look();
    }

    /// Everything that waits has come to its end.
    fn settle(&mut self) {
        for _ in 0..6 {
            while !self.pending.is_empty() {
                self.answer(true);
                self.look();
            }
            self.bench.pass(120_000);
            self.look();
        }
        self.dies();
        self.look();
        self.good.check(&self.bench);
        let all = self.hostile.iter().map(|(_, account)| account).chain([&self.account]);
        for account in all {
            assert_eq!(account.open(), [""; 0], "each request has one answer");
        }
    }
}

fn pick_word<'w>(words: &'w str, dice: &mut Dice<'_>) -> &'w str {
    let words: Vec<&str> = words.split(' ').collect();
    dice.pick::<&str>(&words)
}

/// A message of an agent about this session; `named` are ids that it has heard of.
pub(crate) fn of_agent(session: &str, named: &[Value], dice: &mut Dice<'_>) -> Value {
    const UPDATES: &str = "agent_message_chunk user_message_chunk tool_call tool_call_update plan \
        plan_update available_commands_update current_mode_update config_option_update \
        session_info_update notice subagent_update";
    const ASKS: &str = "session/request_permission elicitation/create elicitation/complete \
        fs/read_text_file fs/write_text_file terminal/create _vendor/ask $/cancel_request";
    match dice.below(4) {
        0 | 1 => {
            let option = json!({"id":"fast","type":"boolean","currentValue":true});
            let kind = pick_word(UPDATES, dice);
            let update = json!({"sessionUpdate":kind,"toolCallId":"t","title":"T",
                "content":{"type":"text","text":"x"},"status":"pending","currentModeId":"m",
                "plan":{"type":"items","entries":[]},"entries":[],"configOptions":[option]});
            let params = json!({"sessionId":session,"update":update});
            json!({"jsonrpc":"2.0","method":"session/update","params":params})
        }
        2 => {
            let option = json!({"optionId":"y","name":"Yes","kind":"allow_once"});
            let form = json!({"type":"object","properties":{"k":{"type":"string"}}});
            let params = json!({"sessionId":session,"toolCall":{"toolCallId":"t"},
                "options":[option],"mode":"form","message":"Who?","requestedSchema":form,
                "elicitationId":"e","url":"https://x/","requestId":dice.pick(named),
                "path":"/w/a","content":"x","line":1,"limit":1});
            let method = pick_word(ASKS, dice);
            json!({"jsonrpc":"2.0","id":dice.below(256),"method":method,"params":params})
        }
        _ => {
            let error = json!({"code":-32000,"message":"no","data":{"x":1}});
            let result = json!({"sessionId":session,"stopReason":"end_turn","sessions":[],
                "modes":{"currentModeId":"m","availableModes":[]},"configOptions":[]});
            let mut line = json!({"jsonrpc":"2.0","id":dice.pick(named),"result":result});
            if dice.below(3) == 2 {
                line["error"] = error;
            }
            line
        }
    }
}

/// Hostile clients do no harm, each request has one answer, and clients under an agent decide
/// nothing.
fn hostile_clients(throws: &[Vec<u8>], outcomes: &Outcomes) {
    let mut world = World::new(outcomes);
    for dice in throws {
        world.step(&mut Dice(dice));
    }
    world.settle();
}

/// A hostile agent does no harm, and no line goes to another session.
fn hostile_agent(throws: &[Vec<u8>], outcomes: &Outcomes) {
    let mut bench = Bench::new();
    let mut followers = ["a", "b"].map(|session| Follower::new(&mut bench, session));
    let bound = bench.client(&json!({"seq":true,"notices":true}));
    bench.lenient = true;
    let mut account = Account::default();
    for (at, dice) in throws.iter().enumerate() {
        outcomes.execution();
        let mut dice = Dice(dice);
        let which = dice.below(2);
        let Follower { client, session, .. } = followers[which];
        if dice.below(4) == 3 {
            let method = *dice.pick(&["session/prompt", "session/set_mode", "session/new"]);
            let params = json!({"sessionId":session,"modeId":"m","cwd":"/w","mcpServers":[],
                "prompt":[{"type":"text","text":"go"}]});
            bench.say(client, &json!({"id":at,"method":method,"params":params}));
        }
        let mut named: Vec<Value> = ["a", "b", "c"].map(Value::from).to_vec();
        let heard = bench.heard();
        named.extend(heard.iter().map(|line| line["id"].clone()).filter(Value::is_string));
        let line = mangle(&of_agent(session, &named, &mut dice), &named, &mut dice);
        account.says(&line);
        let end = 1_000_000 * (at as u64 + 1);
        let line = Bytes::from(line);
        bench.feed(host_line(bench.host(), line, end));
        for follower in &mut followers {
            follower.look(&mut bench, outcomes);
        }
        for line in bench.got_raw(bound) {
            let method = str_at(line.as_bytes(), &["method"]);
            assert!(method.as_deref() != Some("session/update"), "{line}");
        }
    }
    bench.pass(60_000);
    for follower in &mut followers {
        follower.look(&mut bench, outcomes);
        follower.check(&bench);
        for (_, line) in &follower.seen {
            // As one reads it who takes the last of several members.
            let value = serde_json::from_str::<Value>(line).unwrap_or_default();
            let of = value["params"]["sessionId"].as_str();
            assert!(of.is_none_or(|of| of == follower.session), "{line}");
        }
    }
}

/// `cargo xtask fuzz client-lines`.
#[test]
fn client_lines() {
    let must_occur = [
        "result",
        "agent_message_chunk",
        "session/request_permission",
        "error -32602 under_agent",
        "error -32602 invalid",
        "error -32002 session_not_found",
    ];
    fuzz("client-lines", 4_000, &must_occur, throws(50), |throws, outcomes| {
        hostile_clients(&throws, outcomes);
    });
}

/// `cargo xtask fuzz agent-lines`.
#[test]
fn agent_lines() {
    let inputs = (any::<bool>(), throws(50));
    let must_occur = [
        "agent_message_chunk",
        "plan",
        "tool_call",
        "session/request_permission",
        "error -32603 agent_protocol",
        "_acpd/turn_started",
    ];
    fuzz("agent-lines", 4_000, &must_occur, inputs, |(forges, throws), outcomes| {
        let check = if forges { only_acpd_speaks_for_acpd } else { hostile_agent };
        check(&throws, outcomes);
    });
}

#[test]
fn a_line_whose_session_cannot_be_told_is_for_nobody() {
    let mut bench = Bench::new();
    let (a, b) = (bench.plain(), bench.plain());
    bench.session(a, "a");
    bench.session(b, "b");
    let update = r#""update":{"sessionUpdate":"odd_secret"}"#;
    for session in ["", r#""sessionId":7,"#, r#""sessionId":"b","sessionId":"a","#] {
        let params = format!("{{{session}{update}}}");
        bench.agent_raw(&format!(r#"{{"method":"session/update","params":{params}}}"#));
        assert_eq!((bench.got(a), bench.got(b)), (vec![], vec![]), "{session}");
    }
    let prompt = r#"{"sessionId":"a","sessionId":"b","prompt":[]}"#;
    bench.say_raw(a, &format!(r#"{{"id":1,"method":"session/prompt","params":{prompt}}}"#));
    assert_eq!(bench.got(a)[0]["error"]["code"], -32600);
    assert_eq!(bench.heard(), Vec::<Value>::new());
}

/// These are the client's ids: at the agent they name other requests.
#[test]
fn a_cancel_that_comes_as_a_request_is_refused_and_never_forwarded() {
    let mut bench = Bench::new();
    let (a, b) = (bench.plain(), bench.plain());
    bench.session(a, "a");
    bench.prompt(a, &json!(1), "a", "go");
    let asked = bench.heard_one("session/prompt");
    for method in ["$/cancel_request", "$/cancelRequest"] {
        let params = json!({"requestId":asked["id"]});
        bench.say(b, &json!({"id":"x","method":method,"params":params}));
        assert_eq!(bench.got(b)[0]["error"]["code"], -32601);
    }
    assert_eq!(bench.heard(), Vec::<Value>::new());
}

#[test]
fn a_session_that_is_deleted_and_taken_over_again_is_followed_by_who_prompts_in_it() {
    let throws: Vec<Vec<u8>> =
        vec![vec![64, 111, 14, 41, 209, 4], vec![0, 9, 129, 100, 4, 0, 0, 44], vec![47], vec![185]];
    hostile_clients(&throws, &Outcomes::default());
}
