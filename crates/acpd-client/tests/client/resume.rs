//! The memory of a client, against a model of a daemon whose connection breaks at any point.
//!
//! The model has a journal of one session, asks, answers, and keeps what the protocol says that acpd
//! keeps. What it does not say may be lost with every connection: lines under way in both directions,
//! and everything that was not committed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use acpd_client::resume::{Resumption, Unresumable, Verdict};
use bytes::Bytes;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Value, json};

const SESSION: &str = "s-1";

fn line(value: &Value) -> Bytes {
    value.to_string().into()
}

fn value(line: &[u8]) -> Value {
    serde_json::from_slice(line).unwrap()
}

#[derive(Debug, Clone)]
enum Step {
    /// The user sends a prompt (carried out and committed once).
    Prompt,
    /// The user asks for something that is answered from memory.
    List,
    /// The user answers the oldest question.
    Reply,
    /// The daemon reads a line.
    Read,
    /// The daemon commits what it has read.
    Commit,
    /// The daemon answers the oldest request that it knows.
    Answer,
    /// The agent says something.
    Say,
    /// The agent asks something.
    Ask,
    /// The client reads a line.
    Receive,
    Break,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => Just(Step::Prompt),
        1 => Just(Step::List),
        1 => Just(Step::Reply),
        5 => Just(Step::Read),
        3 => Just(Step::Commit),
        3 => Just(Step::Answer),
        3 => Just(Step::Say),
        1 => Just(Step::Ask),
        8 => Just(Step::Receive),
        1 => Just(Step::Break),
    ]
}

/// The part of the daemon that survives with its database.
#[derive(Debug, Clone, Default)]
struct Stored {
    received: u64,
    journal: u64,
    /// Prompts that run, and how often each was begun.
    running: Vec<u64>,
    begun: BTreeMap<u64, u32>,
    answers: BTreeSet<u64>,
    questions: BTreeSet<u64>,
    asked: u64,
    replies: BTreeMap<u64, u32>,
}

#[derive(Debug, Default)]
struct Daemon {
    stored: Stored,
    /// `stored` with changes that are not committed yet.
    now: Stored,
    /// The daemon knows this client.
    greeted: bool,
    lists: Vec<u64>,
    /// To be sent with the next commit.
    effects: Vec<Value>,
    from_client: VecDeque<Bytes>,
    to_client: VecDeque<Bytes>,
}

impl Daemon {
    fn tell(&mut self, message: &Value) {
        if self.greeted {
            self.to_client.push_back(line(message));
        }
    }

    fn read(&mut self) {
        let Some(bytes) = self.from_client.pop_front() else { return };
        let message = value(&bytes);
        let id = message["id"].as_u64();
        match (message["method"].as_str(), id) {
            (Some("initialize"), _) => return self.greet(&message),
            (Some("session/prompt"), Some(id)) => {
                *self.now.begun.entry(id).or_default() += 1;
                self.now.running.push(id);
            }
            (Some("session/list"), Some(id)) => self.lists.push(id),
            (Some("_acpd/client/answered"), _) => {
                for id in message["params"]["ids"].as_array().unwrap() {
                    self.now.answers.remove(&id.as_u64().unwrap());
                }
            }
            (None, Some(question)) => {
                if self.now.questions.remove(&question) {
                    *self.now.replies.entry(question).or_default() += 1;
                }
            }
            other => panic!("{other:?}"),
        }
        self.now.received += 1;
    }

    fn greet(&mut self, initialize: &Value) {
        // Nothing is shown that is not committed.
        self.stored = self.now.clone();
        self.effects.clear();
        self.greeted = true;
        let resume = &initialize["params"]["_meta"]["_acpd"]["client"]["resume"];
        let ids = |name: &str| -> Vec<u64> {
            let ids = resume[name].as_array().cloned().unwrap_or_default();
            ids.iter().filter_map(Value::as_u64).collect()
        };
        let known = |id: &u64| self.now.running.contains(id) || self.now.answers.contains(id);
        let again: Vec<u64> = ids("open").into_iter().filter(|id| !known(id)).collect();
        let meta = json!({"generation": "g", "received": self.now.received, "again": again});
        self.tell(&json!({"id": initialize["id"],
            "result": {"agentCapabilities": {"_meta": {"_acpd": meta}}}}));
        for id in ids("open") {
            if self.now.answers.contains(&id) {
                self.tell(&json!({"id": id, "result": {}}));
            }
        }
        let (questions, asked) = (self.now.questions.clone(), ids("asked"));
        for id in asked.iter().filter(|id| !questions.contains(id)) {
            self.tell(&json!({"method": "$/cancel_request", "params": {"requestId": id}}));
        }
        for id in questions.iter().filter(|id| !asked.contains(id)) {
            self.tell(&ask(*id));
        }
        let after = resume["sessions"][SESSION].as_u64();
        if let Some(after) = after {
            for seq in after + 1..=self.now.journal {
                self.tell(&say(seq));
            }
            self.tell(&caught_up(self.now.journal));
        } else if resume.is_null() {
            self.tell(&caught_up(0));
        }
    }

    fn commit(&mut self) {
        let news = self.stored.received < self.now.received;
        self.stored = self.now.clone();
        for effect in std::mem::take(&mut self.effects) {
            self.tell(&effect);
        }
        if news {
            let lines = self.stored.received;
            self.tell(&json!({"method": "_acpd/client/received", "params": {"lines": lines}}));
        }
    }

    fn answer(&mut self) {
        if let Some(id) = self.lists.pop() {
            self.tell(&json!({"id": id, "result": {"sessions": []}}));
        } else if !self.now.running.is_empty() {
            let id = self.now.running.remove(0);
            self.now.answers.insert(id);
            self.effects.push(json!({"id": id, "result": {}}));
        }
    }

    fn say(&mut self) {
        self.now.journal += 1;
        self.effects.push(say(self.now.journal));
    }

    fn ask(&mut self) {
        self.now.asked += 1;
        let id = 1000 + self.now.asked;
        self.now.questions.insert(id);
        self.effects.push(ask(id));
    }

    fn break_off(&mut self) {
        self.greeted = false;
        self.now = self.stored.clone();
        self.lists.clear();
        self.effects.clear();
        self.from_client.clear();
        self.to_client.clear();
    }
}

fn say(seq: u64) -> Value {
    json!({"method": "session/update",
        "params": {"sessionId": SESSION, "update": {}, "_meta": {"_acpd": {"seq": seq}}}})
}

fn ask(id: u64) -> Value {
    json!({"id": id, "method": "session/request_permission", "params": {"sessionId": SESSION}})
}

fn caught_up(seq: u64) -> Value {
    json!({"method": "_acpd/caught_up", "params": {"sessionId": SESSION, "seq": seq}})
}

/// The client and what its user has seen.
struct World {
    daemon: Daemon,
    memory: Resumption,
    last_id: u64,
    prompts: BTreeSet<u64>,
    answered: BTreeMap<u64, u32>,
    shown: Vec<u64>,
    open_questions: Vec<u64>,
    asked: BTreeMap<u64, u32>,
    /// Questions that the user has answered.
    replied: BTreeSet<u64>,
}

impl World {
    fn new() -> World {
        let mut world = World {
            daemon: Daemon::default(),
            memory: Resumption::new("0123456789abcdef".to_owned()),
            last_id: 0,
            prompts: BTreeSet::new(),
            answered: BTreeMap::new(),
            shown: Vec::new(),
            open_questions: Vec::new(),
            asked: BTreeMap::new(),
            replied: BTreeSet::new(),
        };
        world.send(&json!({"id": 0, "method": "initialize", "params": {}}));
        world
    }

    fn send(&mut self, message: &Value) {
        self.memory.send(line(message), &mut self.daemon.from_client);
    }

    fn request(&mut self, method: &str) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({"id": id, "method": method, "params": {"sessionId": SESSION}}));
        id
    }

    fn receive(&mut self) {
        let Some(line) = self.daemon.to_client.pop_front() else { return };
        let verdict = self.memory.receive(&line, &mut self.daemon.from_client).unwrap();
        if !matches!(verdict, Verdict::Pass | Verdict::Unnumber) {
            return;
        }
        let message = value(&line);
        match (message["method"].as_str(), message["id"].as_u64()) {
            (Some("session/update"), _) => {
                self.shown.push(message["params"]["_meta"]["_acpd"]["seq"].as_u64().unwrap());
            }
            (Some("session/request_permission"), Some(id)) => {
                *self.asked.entry(id).or_default() += 1;
                self.open_questions.push(id);
            }
            (Some("$/cancel_request"), _) => {
                let id = message["params"]["requestId"].as_u64().unwrap();
                self.open_questions.retain(|open| *open != id);
            }
            (None, Some(id)) => *self.answered.entry(id).or_default() += 1,
            other => panic!("the user must not see {other:?}"),
        }
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::Prompt => {
                let id = self.request("session/prompt");
                self.prompts.insert(id);
            }
            Step::List => drop(self.request("session/list")),
            Step::Reply => {
                if !self.open_questions.is_empty() {
                    let id = self.open_questions.remove(0);
                    self.replied.insert(id);
                    self.send(&json!({"id": id, "result": {}}));
                }
            }
            Step::Read => self.daemon.read(),
            Step::Commit => self.daemon.commit(),
            Step::Answer => self.daemon.answer(),
            Step::Say => self.daemon.say(),
            Step::Ask => self.daemon.ask(),
            Step::Receive => self.receive(),
            Step::Break => {
                self.daemon.break_off();
                assert!(self.memory.lost());
                self.daemon.from_client = self.memory.back();
            }
        }
    }

    /// Lets everything come to an end, with nothing lost any more.
    fn settle(&mut self) {
        for _ in 0..500 {
            for step in [Step::Read, Step::Answer, Step::Commit, Step::Receive, Step::Receive] {
                self.step(&step);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn nothing_is_lost_or_doubled_wherever_the_connection_breaks(steps in vec(step(), 0..120)) {
        let mut world = World::new();
        // The first answer comes whole: what is before it has a test of its own.
        for step in [Step::Read, Step::Receive, Step::Receive] {
            world.step(&step);
        }
        for step in &steps {
            world.step(step);
        }
        world.settle();

        let daemon = &world.daemon.now;
        let all: Vec<u64> = (1..=daemon.journal).collect();
        prop_assert_eq!(&world.shown, &all, "every line once and in order");
        for id in 1..=world.last_id {
            prop_assert_eq!(world.answered.get(&id), Some(&1), "request {} is answered once", id);
        }
        for id in &world.prompts {
            prop_assert_eq!(daemon.begun.get(id), Some(&1), "prompt {} runs once", id);
        }
        for id in &daemon.questions {
            prop_assert!(world.open_questions.contains(id), "question {} is on the screen", id);
        }
        for (id, times) in &world.asked {
            prop_assert_eq!(*times, 1, "question {} is asked once", id);
            // One that was never committed is gone with its connection.
        }
        for id in &world.replied {
            let lost = !daemon.replies.contains_key(id) && daemon.questions.contains(id);
            prop_assert!(!lost, "the answer to question {} arrives", id);
        }
        prop_assert!(world.daemon.now.answers.is_empty(), "acpd need not keep any answer");
    }

    #[test]
    fn before_the_first_answer_the_greeting_is_repeated(breaks in 1_usize..4, early in 0_usize..3) {
        let mut world = World::new();
        for _ in 0..early {
            world.step(&Step::Prompt);
        }
        for _ in 0..breaks {
            world.step(&Step::Read);
            world.step(&Step::Break);
        }
        world.settle();
        prop_assert_eq!(world.answered.get(&0), Some(&1));
        prop_assert!(world.prompts.iter().all(|id| world.answered.get(id) == Some(&1)));
    }
}

/// A client that was greeted, and has sent nothing yet.
fn greeted() -> Resumption {
    let mut memory = Resumption::new("0123456789abcdef".to_owned());
    let mut out = VecDeque::new();
    memory.send(line(&json!({"id": 0, "method": "initialize", "params": {}})), &mut out);
    let sent = value(&out.pop_front().unwrap());
    assert_eq!(sent["params"]["_meta"]["_acpd"]["client"]["resume"], Value::Null);
    memory.receive(&welcome(&json!(0), "g", 0, &json!([])), &mut out).unwrap();
    assert!(out.is_empty());
    memory
}

fn welcome(id: &Value, generation: &str, received: u64, again: &Value) -> Bytes {
    let meta = json!({"generation": generation, "received": received, "again": again});
    line(&json!({"id": id, "result": {"agentCapabilities": {"_meta": {"_acpd": meta}}}}))
}

/// Loses the connection and makes a new one; the new `initialize`.
fn returning(memory: &mut Resumption) -> Value {
    assert!(memory.lost());
    let mut first = memory.back();
    assert_eq!(first.len(), 1);
    value(&first.pop_front().unwrap())
}

#[test]
fn a_load_that_was_cut_off_goes_on_behind_its_last_line() {
    let mut memory = greeted();
    let mut out = VecDeque::new();
    for seq in 1..=9 {
        memory.receive(&line(&say(seq)), &mut out).unwrap();
    }
    let load = json!({"id": 5, "method": "session/load", "params": {"sessionId": SESSION}});
    memory.send(line(&load), &mut out);
    // One line was still under way; then the replay begins.
    for seq in [10, 1, 2, 4] {
        assert_eq!(memory.receive(&line(&say(seq)), &mut out), Ok(Verdict::Unnumber));
    }
    out.clear();
    let again = returning(&mut memory);
    let resume = &again["params"]["_meta"]["_acpd"]["client"]["resume"];
    assert_eq!(*resume, json!({"generation": "g", "sessions": {}, "open": [5], "asked": []}));
    memory.receive(&welcome(&again["id"], "g", 1, &json!([])), &mut out).unwrap();
    let sent: Vec<Value> = out.drain(..).map(|line| value(&line)).collect();
    assert_eq!(sent.len(), 1);
    assert_eq!(
        (&sent[0]["id"], &sent[0]["params"]["_meta"]["_acpd"]),
        (&json!(5), &json!({"after": 4}))
    );
    for seq in [6, 10] {
        assert_eq!(memory.receive(&line(&say(seq)), &mut out), Ok(Verdict::Unnumber));
    }
    memory.receive(&line(&json!({"id": 5, "result": {}})), &mut out).unwrap();
    assert_eq!(memory.receive(&line(&say(10)), &mut out), Ok(Verdict::Swallow));
    let again = returning(&mut memory);
    let resume = &again["params"]["_meta"]["_acpd"]["client"]["resume"];
    assert_eq!(resume["sessions"], json!({SESSION: 10}));
}

#[test]
fn another_journal_or_a_forgotten_client_is_the_end() {
    let mut out = VecDeque::new();
    let back = |memory: &mut Resumption, generation: &str, received: u64| {
        let again = returning(memory);
        let answer = welcome(&again["id"], generation, received, &json!([]));
        memory.receive(&answer, &mut VecDeque::new())
    };
    assert_eq!(back(&mut greeted(), "h", 0), Err(Unresumable::OtherJournal));
    assert_eq!(back(&mut greeted(), "g", 1), Err(Unresumable::Forgotten));
    let mut memory = greeted();
    memory.send(line(&json!({"method": "x"})), &mut out);
    let safe = json!({"method": "_acpd/client/received", "params": {"lines": 1}});
    assert_eq!(memory.receive(&line(&safe), &mut out), Ok(Verdict::Swallow));
    assert_eq!(back(&mut memory, "g", 0), Err(Unresumable::Forgotten));
}

#[test]
fn a_refusal_is_tried_again_with_the_same_words() {
    let mut memory = greeted();
    let mut out = VecDeque::new();
    memory.send(line(&json!({"id": 1, "method": "session/list"})), &mut out);
    let first = returning(&mut memory);
    let refusal = line(&json!({"id": first["id"], "error": {"code": -32603, "message": "later"}}));
    assert_eq!(memory.receive(&refusal, &mut out), Ok(Verdict::Refused));
    assert!(!memory.is_up());
    assert_eq!(returning(&mut memory), first);
}

#[test]
fn an_older_daemon_and_a_client_that_comes_back_by_itself_are_left_alone() {
    let mut out = VecDeque::new();
    let mut older = Resumption::new("0123456789abcdef".to_owned());
    older.send(line(&json!({"id": 0, "method": "initialize"})), &mut out);
    older.receive(&line(&json!({"id": 0, "result": {}})), &mut out).unwrap();
    assert!(!older.lost());

    let mut own = Resumption::new("0123456789abcdef".to_owned());
    let token = json!({"client": {"token": "fedcba9876543210"}});
    let initialize =
        line(&json!({"id": 0, "method": "initialize", "params": {"_meta": {"_acpd": token}}}));
    out.clear();
    own.send(initialize.clone(), &mut out);
    assert_eq!(out, [initialize]);
    let received = line(&json!({"method": "_acpd/client/received", "params": {"lines": 1}}));
    assert_eq!(own.receive(&received, &mut out), Ok(Verdict::Pass));
    assert!(!own.lost());
}

/// The memory that the next `initialize` sends to acpd.
fn has(initialize: &Value) -> &Value {
    &initialize["params"]["_meta"]["_acpd"]["client"]["resume"]
}

/// Takes the client back; what is sent then.
fn take_back(memory: &mut Resumption, received: u64, again: &Value) -> Vec<Value> {
    let mut out = VecDeque::new();
    let answer = welcome(&json!("acpd-return"), "g", received, again);
    assert_eq!(memory.receive(&answer, &mut out), Ok(Verdict::Swallow));
    out.iter().map(|line| value(line)).collect()
}

#[test]
fn the_agent_of_the_first_answer_is_the_one_to_come_back_to() {
    let mut memory = Resumption::new("0123456789abcdef".to_owned());
    let mut out = VecDeque::new();
    let meta = json!({"_acpd": {"notices": true}});
    let hello = json!({"id": 0, "method": "initialize", "params": {"_meta": meta}});
    memory.send(line(&hello), &mut out);
    assert_eq!(value(&out[0])["params"]["_meta"]["_acpd"]["agent"], Value::Null);
    let bound = |id: u64, agent: &str| {
        let meta = json!({"agent": agent, "generation": "g", "received": 0});
        line(&json!({"id": id, "result": {"agentCapabilities": {"_meta": {"_acpd": meta}}}}))
    };
    memory.receive(&bound(0, "a\"b"), &mut out).unwrap();
    for _ in 0..2 {
        let own = &returning(&mut memory)["params"]["_meta"]["_acpd"];
        assert_eq!((&own["agent"], &own["notices"]), (&json!("a\"b"), &json!(true)));
    }

    // The user may choose again.
    take_back(&mut memory, 0, &json!([]));
    memory.send(line(&json!({"id": 1, "method": "initialize", "params": {}})), &mut out);
    memory.receive(&bound(1, "other"), &mut out).unwrap();
    assert_eq!(returning(&mut memory)["params"]["_meta"]["_acpd"]["agent"], "other");
}

#[test]
fn the_last_line_says_that_nobody_comes_back() {
    let mut memory = greeted();
    let mut out = VecDeque::new();
    memory.send(line(&json!({"method": "x"})), &mut out);
    out.clear();
    memory.leave(&mut out);
    memory.leave(&mut out);
    memory.send(line(&json!({"method": "y"})), &mut out);
    assert_eq!(memory.receive(&line(&say(1)), &mut out), Ok(Verdict::Swallow));
    let sent: Vec<Value> = out.iter().map(|line| value(line)).collect();
    let leave = json!({"jsonrpc": "2.0", "method": "_acpd/client/leave", "params": {}});
    assert_eq!(sent, [leave]);
    assert!(!memory.lost());
}

#[test]
fn a_session_that_a_request_made_is_followed_before_its_first_line() {
    for method in ["session/new", "session/fork"] {
        let mut memory = greeted();
        let mut out = VecDeque::new();
        memory.send(line(&json!({"id": 1, "method": method, "params": {"cwd": "/"}})), &mut out);
        let made = line(&json!({"id": 1, "result": {"sessionId": SESSION}}));
        memory.receive(&made, &mut out).unwrap();
        let again = returning(&mut memory);
        assert_eq!(has(&again)["sessions"], json!({SESSION: 0}), "{method}");
    }
}

#[test]
fn lines_of_a_subagent_count_for_the_session_that_they_name() {
    let mut memory = greeted();
    let mut out = VecDeque::new();
    let of_child = |seq: u64| {
        line(&json!({"method": "session/update", "params": {"sessionId": "c", "update": {},
            "_meta": {"_acpd": {"seq": seq, "session": SESSION}}}}))
    };
    memory.receive(&line(&say(5)), &mut out).unwrap();
    memory.receive(&of_child(7), &mut out).unwrap();
    assert_eq!(has(&returning(&mut memory))["sessions"], json!({SESSION: 7}));
    take_back(&mut memory, 0, &json!([]));
    assert_eq!(memory.receive(&of_child(7), &mut out), Ok(Verdict::Swallow));

    let load = json!({"id": 5, "method": "session/load", "params": {"sessionId": SESSION}});
    memory.send(line(&load), &mut out);
    for again in [line(&say(5)), of_child(6), of_child(7)] {
        assert_eq!(memory.receive(&again, &mut out), Ok(Verdict::Unnumber));
    }
}

#[test]
fn a_session_that_is_being_left_is_told_apart() {
    for (method, key) in [
        ("session/close", "sessionId"),
        ("session/archive", "sessionId"),
        ("session/delete", "sessionId"),
        ("_acpd/session/detach", "session"),
    ] {
        let mut memory = greeted();
        let mut out = VecDeque::new();
        memory.receive(&line(&say(3)), &mut out).unwrap();
        let other = json!({"method": "session/update",
            "params": {"sessionId": "s-2", "_meta": {"_acpd": {"seq": 4}}}});
        memory.receive(&line(&other), &mut out).unwrap();
        memory.send(line(&json!({"id": 1, "method": method, "params": {key: SESSION}})), &mut out);
        let returns = returning(&mut memory);
        let left = has(&returns);
        assert_eq!(left["sessions"], json!({"s-2": 4}), "{method}");
        assert_eq!(left["leaving"], json!({SESSION: {"seq": 3, "requests": [1]}}), "{method}");
        take_back(&mut memory, 0, &json!([]));
        let refused = json!({"id": 1, "error": {"code": -32603, "message": "no"}});
        memory.receive(&line(&refused), &mut out).unwrap();
        let returns = returning(&mut memory);
        let followed = has(&returns);
        let all = json!({SESSION: 3, "s-2": 4});
        assert_eq!((&followed["sessions"], followed.get("leaving")), (&all, None), "{method}");
    }
}

#[test]
fn a_refused_connection_is_tried_again_and_its_words_are_kept() {
    let mut memory = greeted();
    let mut out = VecDeque::new();
    returning(&mut memory);
    let full = json!({"id": null, "error": {"code": -32603, "message": "too many"}});
    assert_eq!(memory.receive(&line(&full), &mut out), Ok(Verdict::Refused));
    let refusal = memory.refusal().map(|refusal| refusal.message.as_str());
    assert_eq!((refusal, memory.is_up()), (Some("too many"), false));
    returning(&mut memory);
    take_back(&mut memory, 0, &json!([]));
    let malformed = json!({"id": null, "error": {"code": -32700, "message": "no JSON"}});
    assert_eq!(memory.receive(&line(&malformed), &mut out), Ok(Verdict::Pass));
}

const IN_USE: i32 = -32600;

#[test]
fn a_second_request_with_an_open_id_gets_its_error_and_the_first_its_answer() {
    let mut memory = greeted();
    let mut out = VecDeque::new();
    let prompt = json!({"id": 1, "method": "session/prompt", "params": {"sessionId": SESSION}});
    let list = json!({"id": 1, "method": "session/list"});
    memory.send(line(&prompt), &mut out);
    memory.send(line(&list), &mut out);
    assert_eq!(out.len(), 2);
    out.clear();
    let in_use = line(&json!({"id": 1, "error": {"code": IN_USE, "message": "is open already"}}));
    assert_eq!(memory.receive(&in_use, &mut out), Ok(Verdict::Pass));
    assert!(out.is_empty(), "the answer to the first is not confirmed with it");

    // The first is still waited for, and the second does not run now.
    assert_eq!(has(&returning(&mut memory))["open"], json!([1]));
    let sent = take_back(&mut memory, 0, &json!([1]));
    let methods: Vec<&Value> = sent.iter().map(|line| &line["method"]).collect();
    assert_eq!(methods, ["session/prompt", "_acpd/client/answered"]);
    let answer = line(&json!({"id": 1, "result": {}}));
    assert_eq!(memory.receive(&answer, &mut out), Ok(Verdict::Pass));
    assert_eq!(value(&out[0])["params"]["ids"], json!([1]));
    assert_eq!(memory.receive(&answer, &mut out), Ok(Verdict::Swallow));
}
