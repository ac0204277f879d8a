//! Views of clients, through all events: a range of the journal, in order, with no line missing and
//! none twice, each as this client can take it.

use std::borrow::Cow;

use acp_wire::acp::ClientCapabilities;
use acp_wire::{Version, locate, str_at};
use acpd_api::{NAMESPACE, method};
use acpd_core::ids::ClientId;
use acpd_core::record::{EventKind, EventRow};
use acpd_core::views::render;
use acpd_core::{ClientEvent, Effect, Input, Numbers, TerminalEnd, TerminalTail, View};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::bench::Bench;

/// Something that happens; numbers name a client.
#[derive(Debug, Clone)]
enum Step {
    Attach(usize, Option<u64>, bool),
    Load(usize),
    Resume(usize),
    Detach(usize),
    Reconnect(usize),
    Lag(usize),
    Drain(usize),
    Prompt(usize),
    Cancel(usize),
    SetMode(usize),
    Permit(usize, bool),
    Update(usize),
    /// A line of the subagent, which is unknown until it is announced.
    Subagent(usize),
    Ask,
    /// The agent answers what waits longest.
    Answer,
    Crash,
    /// The agent runs a command of acpd and shows it.
    Run,
    /// The commands write something.
    Write,
    /// The last command ends.
    End,
    Pass,
}

fn step() -> impl Strategy<Value = Step> {
    let who = || 0..3_usize;
    prop_oneof![
        1 => (who(), prop::option::of(0..40_u64), any::<bool>())
            .prop_map(|(who, after, observes)| Step::Attach(who, after, observes)),
        1 => who().prop_map(Step::Load),
        1 => who().prop_map(Step::Resume),
        1 => who().prop_map(Step::Detach),
        1 => who().prop_map(Step::Reconnect),
        1 => who().prop_map(Step::Lag),
        2 => who().prop_map(Step::Drain),
        3 => who().prop_map(Step::Prompt),
        1 => who().prop_map(Step::Cancel),
        1 => who().prop_map(Step::SetMode),
        2 => (who(), any::<bool>()).prop_map(|(who, yes)| Step::Permit(who, yes)),
        8 => (0..UPDATES.len()).prop_map(Step::Update),
        2 => (0..UPDATES.len()).prop_map(Step::Subagent),
        1 => Just(Step::Ask),
        4 => Just(Step::Answer),
        1 => Just(Step::Crash),
        1 => Just(Step::Run),
        2 => Just(Step::Write),
        1 => Just(Step::End),
        2 => Just(Step::Pass),
    ]
}

/// One of each that some client sees otherwise than another one.
const UPDATES: [&str; 12] = [
    r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"}}"#,
    r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a line that is too long for some of them, who are told that it was, if they want to be told"}}"#,
    r#"{"sessionUpdate":"tool_call","toolCallId":"t","title":"T"}"#,
    r#"{"sessionUpdate":"notice","severity":"warning","title":"T"}"#,
    r#"{"sessionUpdate":"compaction_update","compactionId":"c","status":"in_progress"}"#,
    r#"{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"p","entries":[]}}"#,
    r##"{"sessionUpdate":"plan_update","plan":{"type":"markdown","planId":"p","content":"#"}}"##,
    r#"{"sessionUpdate":"plan_removed","planId":"p"}"#,
    r#"{"sessionUpdate":"subagent_update","sessionId":"child","title":"T"}"#,
    r#"{"sessionUpdate":"config_option_update","configOptions":[{"id":"f","name":"F","type":"boolean","currentValue":true}]}"#,
    r#"{"sessionUpdate":"current_mode_update","currentModeId":"m"}"#,
    r#"{"sessionUpdate":"session_info_update","title":"T"}"#,
];

/// Those of an agent of version 2.
const UPDATES_2: [&str; UPDATES.len()] = [
    r#"{"sessionUpdate":"agent_message_chunk","messageId":"a","content":{"type":"text","text":"x"}}"#,
    r#"{"sessionUpdate":"agent_message_chunk","messageId":"a","content":{"type":"text","text":"a line that is too long for some of them, who are told that it was, if they want to be told"}}"#,
    r#"{"sessionUpdate":"tool_call_update","toolCallId":"t","title":"T","content":[{"type":"terminal","terminalId":"x"}]}"#,
    r#"{"sessionUpdate":"notice","severity":"warning","title":"T"}"#,
    r#"{"sessionUpdate":"tool_call_content_chunk","toolCallId":"t","content":{"type":"diff","changes":[{"operation":"delete","path":"/w/a"}]}}"#,
    r#"{"sessionUpdate":"plan_update","plan":{"type":"items","planId":"p","entries":[]}}"#,
    r#"{"sessionUpdate":"agent_message","messageId":"a","content":[{"type":"text","text":"xy"}]}"#,
    r#"{"sessionUpdate":"plan_removed","planId":"p"}"#,
    r#"{"sessionUpdate":"subagent_update","sessionId":"child","title":"T"}"#,
    r#"{"sessionUpdate":"config_option_update","configOptions":[{"configId":"f","name":"F","type":"boolean","currentValue":true}]}"#,
    r#"{"sessionUpdate":"terminal_output_chunk","terminalId":"x","data":"b2s="}"#,
    r#"{"sessionUpdate":"tool_call_update","toolCallId":"t","title":null,"status":"cancelled"}"#,
];

fn view() -> impl Strategy<Value = View> {
    let long = prop_oneof![Just(0), Just(200_u64)];
    let first = (any::<[bool; 7]>(), long.clone()).prop_map(|(has, max_line)| View {
        version: Version::V1,
        numbers: Numbers::InMeta,
        notices: has[0],
        originals: has[6],
        capabilities: ClientCapabilities {
            boolean_options: has[1],
            notices: has[2],
            compaction: has[3],
            plan: has[4],
            subagents: has[5],
            ..ClientCapabilities::default()
        },
        max_line,
        editor: 0,
    });
    let second = (any::<bool>(), long).prop_map(|(notices, max_line)| View {
        version: Version::V2,
        numbers: Numbers::InMeta,
        notices,
        originals: false,
        capabilities: ClientCapabilities::all_shown(),
        max_line,
        editor: 0,
    });
    prop_oneof![2 => first, 1 => second]
}

/// How far a client has seen the session.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// Everything up to here.
    seen: u64,
    /// Up to here as a newcomer: without state, and with its own lines.
    history: u64,
}

#[derive(Debug)]
struct Seer {
    client: ClientId,
    view: View,
    place: Option<Place>,
    observes: bool,
    lagged: bool,
    /// Questions that wait for it.
    asked: Vec<Value>,
    /// The state that it was told last, if its version tells states.
    state: Option<Value>,
    /// Ends of replays that it waits for.
    replays: usize,
}

struct Scene {
    bench: Bench,
    seers: Vec<Seer>,
    /// Unanswered requests to the agent.
    pending: Vec<Value>,
    next: u64,
    /// An agent of version 2 has a prompt in its history.
    is_talking: bool,
}

impl Scene {
    fn new(views: &[View], is_second: bool) -> Scene {
        let mut bench = if is_second {
            Bench::with_second_agent()
        } else {
            Bench::with(|profile| profile.services.terminal = true)
        };
        let maker = bench.begin("s");
        bench.leave(maker);
        let (seers, pending) = (Vec::new(), Vec::new());
        let mut scene = Scene { bench, seers, pending, next: 0, is_talking: false };
        scene.seers = views.iter().map(|view| scene.connect(*view)).collect();
        scene
    }

    fn connect(&mut self, view: View) -> Seer {
        let has = |has: bool| if has { json!({}) } else { Value::Null };
        let can = view.capabilities;
        let capabilities = json!({"plan":has(can.plan),"subagents":has(can.subagents),
            "session":{"configOptions":{"boolean":has(can.boolean_options)},
                "notices":has(can.notices),"compaction":has(can.compaction)}});
        let own = json!({"seq":true,"notices":view.notices,"originals":view.originals,
            "maxLine":view.max_line});
        let client = if view.version == Version::V2 {
            self.bench.second(&own)
        } else {
            let params = json!({"clientCapabilities":capabilities,"_meta":{"_acpd":own}});
            self.bench.introduce(&params)
        };
        let (place, asked, state) = (None, Vec::new(), None);
        Seer { client, view, place, observes: false, lagged: false, asked, state, replays: 0 }
    }

    fn is_second(&self, who: usize) -> bool {
        self.seers[who].view.version == Version::V2
    }

    fn rows(&self) -> &[EventRow] {
        self.bench.journal.values().next().map_or(&[], Vec::as_slice)
    }

    fn head(&self) -> u64 {
        self.rows().last().map_or(0, |row| row.seq)
    }

    fn ask(&mut self, who: usize, method: &str, mut params: Value) {
        self.next += 1;
        if !method.starts_with("_acpd/") {
            params["sessionId"] = "s".into();
        }
        self.bench.ask(self.seers[who].client, self.next, method, &params);
    }

    fn update(&mut self, session: &str, update: &str) {
        let params = format!(r#"{{"sessionId":"{session}","update":{update}}}"#);
        self.bench.agent_raw(&format!(r#"{{"method":"session/update","params":{params}}}"#));
    }

    fn step(&mut self, step: &Step) {
        let head = self.head();
        let from_head = Place { seen: head, history: 0 };
        match *step {
            Step::Attach(who, after, observes) => {
                let role = if observes { "observer" } else { "controller" };
                self.seers[who].observes = observes;
                let seen = after.map_or(head, |after| after.min(head));
                self.seers[who].place = Some(Place { seen, history: 0 });
                let params = json!({"ref":{"session":"s"},"after":after,"role":role});
                self.ask(who, method::SESSION_ATTACH, params);
            }
            Step::Load(who) => {
                self.seers[who].observes = false;
                self.seers[who].place = Some(Place { seen: 0, history: head });
                if self.is_second(who) {
                    self.seers[who].replays += 1;
                    let params = json!({"cwd":"/w","replayFrom":{"type":"start"}});
                    return self.ask(who, "session/resume", params);
                }
                self.ask(who, "session/load", json!({"cwd":"/w","mcpServers":[]}));
            }
            Step::Resume(who) => {
                self.seers[who].observes = false;
                self.seers[who].place = Some(from_head);
                self.ask(who, "session/resume", json!({"cwd":"/w"}));
            }
            Step::Detach(who) => {
                self.seers[who].place = None;
                self.seers[who].observes = false;
                self.ask(who, method::SESSION_DETACH, json!({"session":"s"}));
            }
            Step::Reconnect(who) => {
                self.bench.leave(self.seers[who].client);
                self.seers[who] = self.connect(self.seers[who].view);
            }
            Step::Lag(who) => {
                self.seers[who].lagged = true;
                self.bench.feed(Input::Client(self.seers[who].client, ClientEvent::Lagged));
            }
            Step::Drain(who) => self.drain(who),
            Step::Prompt(who) => {
                self.attached(who, from_head);
                self.ask(who, "session/prompt", json!({"prompt":[{"type":"text","text":"go"}]}));
            }
            Step::SetMode(who) => {
                self.attached(who, from_head);
                if self.is_second(who) {
                    let params = json!({"configId":"mode","type":"id","value":"m"});
                    return self.ask(who, "session/set_config_option", params);
                }
                self.ask(who, "session/set_mode", json!({"modeId":"m"}));
            }
            Step::Cancel(who) => self.bench.cancel(self.seers[who].client, "s"),
            Step::Permit(who, yes) => {
                let Some(id) = self.seers[who].asked.pop() else { return };
                let (client, asked) = (self.seers[who].client, json!({"id":id}));
                let cancelled = json!({"outcome":{"outcome":"cancelled"}});
                if yes {
                    self.bench.select(client, &asked, "y");
                } else {
                    self.bench.reply(client, &asked, &cancelled);
                }
            }
            Step::Update(which) => self.update("s", self.updates()[which]),
            Step::Subagent(which) => self.update("child", self.updates()[which]),
            Step::Ask => {
                self.next += 1;
                if !self.bench.second_agent {
                    return self.bench.ask_permission(self.next, "s");
                }
                let call = json!({"toolCallId":"q","title":"T"});
                let params = json!({"sessionId":"s","title":"T",
                    "subject":{"type":"tool_call","toolCall":call},
                    "options":[{"optionId":"y","name":"Y","kind":"allow_once"}]});
                self.bench.agent_asks(self.next, "session/request_permission", &params);
            }
            Step::Answer if self.is_talking => {
                self.is_talking = false;
                self.bench.idle("end_turn");
            }
            Step::Answer if self.bench.second_agent => {
                if self.pending.is_empty() {
                    return;
                }
                let request = self.pending.remove(0);
                self.is_talking = request["method"] == "session/prompt";
                if self.is_talking {
                    return self.bench.insert(&request);
                }
                self.bench.agent_answers(&request, &json!({"configOptions":[]}));
            }
            Step::Answer => {
                if !self.pending.is_empty() {
                    self.bench.end_turn(&self.pending.remove(0));
                }
            }
            Step::Crash => {
                self.pending.clear();
                self.is_talking = false;
                self.bench.agent_dies();
            }
            Step::Run if self.bench.second_agent => {}
            Step::Run => self.run(),
            Step::Write => {
                for screen in self.bench.screens.values_mut() {
                    screen.output.push('x');
                }
            }
            Step::End => {
                let Some((terminal, tail)) = self.bench.screens.pop_last() else { return };
                let end = TerminalEnd { code: Some(1), signal: None, tail };
                self.bench.feed(Input::TerminalEnded { terminal, end });
            }
            Step::Pass => self.bench.pass(2_000),
        }
    }

    fn updates(&self) -> &'static [&'static str] {
        if self.bench.second_agent { &UPDATES_2 } else { &UPDATES }
    }

    fn run(&mut self) {
        self.next += 1;
        let params = json!({"sessionId":"s","command":"make"});
        self.bench.agent_asks(self.next, "terminal/create", &params);
        let made = self.bench.terminals.pop();
        let Some(Effect::CreateTerminal { terminal, .. }) = made else { return };
        self.bench.feed(Input::Served { request: terminal, result: Ok("{}".into()) });
        let mut heard = self.bench.heard();
        let name = heard.pop().expect("the answer")["result"]["terminalId"].clone();
        self.pending.extend(heard);
        let content = json!([{"type":"terminal","terminalId":name}]);
        let update = json!({"sessionUpdate":"tool_call","toolCallId":"t","title":"T",
            "content":content});
        self.bench.send_update("s", &update);
        self.bench.screens.insert(terminal, TerminalTail::default());
    }

    /// A client that works in a session is attached to it.
    fn attached(&mut self, who: usize, place: Place) {
        self.seers[who].place.get_or_insert(place);
    }

    fn drain(&mut self, who: usize) {
        self.seers[who].lagged = false;
        self.bench.feed(Input::Client(self.seers[who].client, ClientEvent::Drained));
    }

    /// Checks the lines of all clients.
    fn look(&mut self) {
        let heard = self.bench.heard();
        self.pending.extend(heard.into_iter().filter(|line| line["id"].is_u64()));
        for who in 0..self.seers.len() {
            for line in self.bench.got_raw(self.seers[who].client) {
                self.got(who, &line);
            }
        }
    }

    fn got(&mut self, who: usize, line: &str) {
        let bytes = line.as_bytes();
        let called = str_at(bytes, &["method"]);
        if called.as_deref() == Some("session/request_permission") {
            let id = read(line, &["id"]);
            return self.seers[who].asked.push(id);
        }
        if called.as_deref() == Some("$/cancel_request") {
            let id = read(line, &["params", "requestId"]);
            return self.seers[who].asked.retain(|asked| *asked != id);
        }
        let number = |path: &[&str]| -> Option<u64> { line[locate(bytes, path)?].parse().ok() };
        if called.as_deref() == Some(method::CAUGHT_UP) {
            let seq = number(&["params", "seq"]).expect("a number");
            self.nothing_missing(who, seq + 1);
            let place = self.seers[who].place.as_mut().expect("attached");
            assert!(place.seen <= seq, "{place:?}: {line}");
            place.seen = seq;
            return;
        }
        let update = |name| str_at(bytes, &["params", "update", name]);
        match update("sessionUpdate").as_deref() {
            Some("state_update") => {
                let state = update("state").expect("a state").into_owned();
                self.seers[who].state = Some(state.into());
            }
            Some("replay_complete") => self.seers[who].replays -= 1,
            _ => {}
        }
        let Some(seq) = number(&["params", "_meta", NAMESPACE, "seq"]) else { return };
        let seer = &self.seers[who];
        let session = str_at(bytes, &["params", "sessionId"]);
        assert!(seer.view.capabilities.subagents || session.as_deref() == Some("s"), "{line}");
        let place = seer.place.unwrap_or_else(|| panic!("{seer:?} is not attached: {line}"));
        assert!(seq > place.seen, "{seer:?}: {line}");
        let row = &self.rows()[seq as usize - 1];
        assert!(self.shows(who, place, row), "{seer:?}: {line}");
        let shown = render(row, None, "s", &seer.view).expect("it is shown");
        let is_call = call(bytes).is_some() && seq <= place.history;
        if line.as_bytes() == &shown[..] && !is_call {
            self.nothing_missing(who, seq);
        } else {
            // Chunks of one message, and updates of one call, are one line in a history.
            assert!(seq <= place.history, "{seer:?}: {line}");
            let unseen = self.rows().iter().filter(|row| row.seq > place.seen && row.seq <= seq);
            let mut unseen = unseen.filter(|row| self.shows(who, place, row));
            if is_call {
                let of = |row| call(&render(row, None, "s", &seer.view).expect("it is shown"));
                assert!(unseen.all(|row| of(row) == call(bytes)), "{seer:?}: {line}");
            } else {
                let texts = unseen.map(|row| text(&row.line));
                assert_eq!(text(bytes), texts.collect::<String>(), "{seer:?}");
            }
        }
        self.seers[who].place = Some(Place { seen: seq, ..place });
    }

    /// Returns whether a line of the journal is for this client.
    fn shows(&self, who: usize, place: Place, row: &EventRow) -> bool {
        let seer = &self.seers[who];
        let hidden = if row.seq <= place.history {
            let method = str_at(&row.line, &["method"]);
            let is_turn =
                matches!(method.as_deref(), Some(method::TURN_STARTED | method::TURN_ENDED));
            let is_past = self.is_second(who) && is_turn;
            is_past || matches!(row.kind, EventKind::State(_) | EventKind::Live)
        } else {
            let own = format!(".{}", seer.client.0);
            let is_own = row.origin.as_ref().is_some_and(|origin| origin.ends_with(&own));
            is_own && !self.is_second(who)
        };
        !hidden && render(row, None, "s", &seer.view).is_some()
    }

    /// The client has seen every line before this one that is for it.
    fn nothing_missing(&self, who: usize, before: u64) {
        let seer = &self.seers[who];
        let Some(place) = seer.place else { return };
        let between = |row: &&EventRow| row.seq > place.seen && row.seq < before;
        for row in self.rows().iter().filter(between) {
            assert!(!self.shows(who, place, row), "{seer:?} misses {row:?} before {before}");
        }
    }
}

fn text(line: &[u8]) -> String {
    str_at(line, &["params", "update", "content", "text"]).unwrap_or_default().into_owned()
}

fn call(line: &[u8]) -> Option<String> {
    str_at(line, &["params", "update", "toolCallId"]).map(Cow::into_owned)
}

fn read(line: &str, path: &[&str]) -> Value {
    let range = locate(line.as_bytes(), path).expect("it is there");
    serde_json::from_str(&line[range]).expect("JSON")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_view_is_a_stretch_of_the_journal_in_order_without_gaps_or_doubles(
        views in prop::collection::vec(view(), 3),
        steps in prop::collection::vec(step(), 1..60),
        is_second: bool,
    ) {
        let mut scene = Scene::new(&views, is_second);
        for step in &steps {
            scene.step(step);
            scene.look();
        }
        for who in 0..scene.seers.len() {
            scene.drain(who);
        }
        scene.look();
        let state = match scene.bench.show("s")["turn"]["state"].as_str() {
            Some("working") => "running",
            Some("needs_action") => "requires_action",
            _ => "idle",
        };
        for who in 0..scene.seers.len() {
            scene.nothing_missing(who, scene.head() + 1);
            let seer = &scene.seers[who];
            if scene.is_second(who) && seer.place.is_some() {
                let told = seer.state.as_ref().unwrap_or(&Value::Null);
                // The agent tells it itself, and of nothing but prompts.
                let talks = if scene.is_talking { "running" } else { "idle" };
                let is_right = told == state || told.is_null() && state == "idle";
                prop_assert!(is_right || is_second && told == talks, "{:?}: {}", seer, state);
                prop_assert_eq!(seer.replays, 0);
            }
            prop_assert!(seer.asked.is_empty() || !seer.observes, "asked, and may not answer");
        }
        // Positions have no gaps either.
        prop_assert!(scene.rows().iter().map(|row| row.seq).eq(1..=scene.head()));
    }
}
