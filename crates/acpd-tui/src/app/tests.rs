//! Screens of all states, and keys.

mod answers;
mod chats;
mod prompts;
mod reading;
mod screens;
mod starting;

use acp_wire::build;
use acpd_api::{ClientName, Untrusted};
use bytes::Bytes;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::{Value, json};

use super::*;

/// Now, in all tests.
const NOW: u64 = 1_000_000_000;

/// A person at a terminal, without a terminal.
struct Person {
    state: AppState,
    cache: Cache,
    /// Lines that were sent, and not looked at yet.
    sent: Vec<Value>,
    effects: Vec<Effect>,
}

impl Person {
    fn start() -> Person {
        let theme = Theme { is_coloured: true, is_unicode: true };
        Person::with(theme)
    }

    fn with(theme: Theme) -> Person {
        Person::who_opens(Opens::Top, theme)
    }

    fn who_opens(opens: Opens, theme: Theme) -> Person {
        let who = ClientName { name: "acpctl".into(), title: None, place: Some("pts/3".into()) };
        let scene =
            Scene { theme, home: Some("/home/ada".into()), cwd: "/home/ada/src/api".into(), who };
        let (state, effects) = AppState::new(scene, opens, NOW);
        let mut person =
            Person { state, cache: Cache::default(), sent: Vec::new(), effects: Vec::new() };
        person.take(effects);
        person
    }

    fn take(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Send(_, line) => self.sent.push(serde_json::from_slice(&line).unwrap()),
                other => self.effects.push(other),
            }
        }
    }

    /// Takes the effects of something that was done without an event.
    fn takes_effects(&mut self) {
        let effects = self.state.out.take();
        self.take(effects);
    }

    fn event(&mut self, event: AppEvent) {
        let now = self.state.now;
        let effects = self.state.update(now, event);
        self.take(effects);
    }

    /// The daemon answers the last request of this method, which is returned.
    fn result(&mut self, link: LinkId, method: &str, result: Value) -> Value {
        let at = self.sent.iter().rposition(|line| line["method"] == method).expect(method);
        let request = self.sent.remove(at);
        let id = request["id"].as_u64().unwrap();
        self.event(AppEvent::Line(link, build::response(&id.into(), &result)));
        request
    }

    fn refuses(&mut self, link: LinkId, method: &str, message: &str) {
        let at = self.sent.iter().rposition(|line| line["method"] == method).expect(method);
        let id = self.sent.remove(at)["id"].as_u64().unwrap();
        let line = build::error(&id.into(), &ErrorObject::new(-32000, message));
        self.event(AppEvent::Line(link, line));
    }

    /// The daemon refuses the last request of this method, with a hint.
    fn refuses_with_hint(&mut self, link: LinkId, method: &str, message: &str, hint: &str) {
        let at = self.sent.iter().rposition(|line| line["method"] == method).expect(method);
        let id = self.sent.remove(at)["id"].as_u64().unwrap();
        let data = json!({"_acpd": {"reason": "agent_stopped", "hint": hint}});
        let error = ErrorObject::new(-32603, message).with_data(&data);
        self.event(AppEvent::Line(link, build::error(&id.into(), &error)));
    }

    fn changed(&mut self, changed: Value) {
        let line: Bytes = build::notification(method::CHANGED, &changed);
        self.event(AppEvent::Line(LinkId::Fleet, line));
    }

    /// Draws a frame and returns what is on the screen.
    fn sees(&mut self, width: u16, height: u16) -> String {
        let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
        let mut on_screen = None;
        let (state, cache) = (&self.state, &mut self.cache);
        terminal.draw(|frame| on_screen = Some(view(state, cache, frame))).unwrap();
        let seen = text_of(terminal.backend());
        self.event(AppEvent::Drawn(on_screen.unwrap()));
        seen
    }

    fn press(&mut self, code: KeyCode) {
        self.event(AppEvent::Key(KeyEvent::new(code, KeyModifiers::NONE)));
    }

    fn types(&mut self, keys: &str) {
        keys.chars().for_each(|char| self.press(KeyCode::Char(char)));
    }

    /// Takes the lines that were sent with this method.
    fn said(&mut self, method: &str) -> Vec<Value> {
        let (said, rest): (Vec<Value>, Vec<Value>) =
            std::mem::take(&mut self.sent).into_iter().partition(|line| line["method"] == method);
        self.sent = rest;
        said
    }
}

fn text_of(backend: &TestBackend) -> String {
    let buffer = backend.buffer();
    let row = |y| {
        let cells = (0..buffer.area.width).map(|x| buffer[(x, y)].symbol());
        let mut row = String::new();
        let mut wide = 0;
        for symbol in cells {
            // The cell behind a wide character is its second half.
            if wide > 0 {
                wide -= 1;
                continue;
            }
            wide = unicode_width::UnicodeWidthStr::width(symbol).saturating_sub(1);
            row.push_str(symbol);
        }
        row.trim_end().to_owned()
    };
    (0..buffer.area.height).map(row).collect::<Vec<_>>().join("\n")
}

fn session(name: &str, more: Value) -> Value {
    let mut session = json!({"sessionId": format!("{name}-0123456789"), "name": name,
        "agent": "claude", "cwd": "/home/ada/src/api", "state": "live",
        "turn": {"state": "idle", "since": NOW - 240_000, "last": "end_turn"}, "queued": 0,
        "clients": 0, "prompts": 3, "seq": 40, "created": 1000, "updated": NOW - 240_000});
    session.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    session
}

fn working(name: &str, seconds: u64, doing: Value) -> Value {
    let since = NOW - seconds * 1000;
    session(
        name,
        json!({"turn": {"state": "working", "since": since}, "doing": doing,
        "lastLine": NOW - 1000}),
    )
}

fn agent(name: &str, more: Value) -> Value {
    let mut agent = json!({"name": name, "title": name, "state": "ready", "since": 1,
        "restarts": 0, "command": [name], "sessions": 1, "log": "/l", "tried": true});
    agent.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    agent
}

fn asks(id: &str, name: &str, commands: &[&str]) -> Value {
    let option = |(id, name): (&str, &str)| json!({"optionId": id, "name": name, "kind": id});
    let options =
        [("allow_once", "allow once"), ("allow_always", "allow always"), ("reject_once", "reject")];
    json!({"id": id, "agent": "claude", "sessionId": format!("{name}-0123456789"), "name": name,
        "cwd": "/home/ada/src/api", "at": NOW - 120_000,
        "question": {"kind": "permission", "title": "Clean build", "toolKind": "execute",
            "options": options.map(option),
            "shown": {"kind": "execute", "title": "Clean build", "commands": commands,
                "folder": "/home/ada/src/api", "paths": [], "urls": [], "diffs": [],
                "unclear": [], "always": "run exactly this, in ~/src/api"}}})
}

const PUSH: &str = "rm -rf build &&\nmake clean &&\ngit push --force origin main";

/// A morning with something of everything.
fn morning() -> Value {
    let needs_login = json!({"state": "needs_auth", "auth": {"state": "needs_login",
        "since": NOW - 3 * 3_600_000, "hint": "acpctl auth login gemini"}});
    json!({
        "sessions": [
            session("fix-auth", json!({"turn": {"state": "needs_action", "since": NOW - 120_000}})),
            session("nightly", json!({"agent": "copilot", "updated": NOW - 3_600_000,
                "turn": {"state": "idle", "since": 1, "last": "interrupted",
                    "reason": "agent ended, SIGKILL"},
                "reason": "acpd is shutting down"})),
            working("parser", 12, json!({"kind": "command", "text": "cargo test -p syntax",
                "since": NOW})),
            working("migrate", 41, json!({"kind": "writing",
                "text": "The second migration also…", "since": NOW})),
            session("ui", json!({"agent": "codex", "queued": 2, "lastLine": NOW,
                "turn": {"state": "working", "since": NOW - 180_000},
                "doing": {"kind": "thinking", "since": NOW}})),
            session("bench", json!({"lastLine": NOW - 240_000,
                "turn": {"state": "working", "since": NOW - 22 * 60_000}})),
            session("main", json!({"agent": "demo", "cwd": "/home/ada/hello",
                "title": "Write a parser for the new format"})),
            session("spike", json!({"agent": "codex", "cwd": "/srv/lang",
                "turn": {"state": "idle", "since": 1, "last": "cancelled"},
                "updated": NOW - 7_200_000})),
            session("gone", json!({"agent": "gemini", "state": "blocked",
                "reason": "gemini wants a login", "updated": NOW - 3 * 3_600_000})),
        ],
        "agents": [agent("claude", json!({})), agent("gemini", needs_login)],
        "interactions": [
            asks("1-5", "fix-auth", &[PUSH]),
            {"id": "1-6", "agent": "codex", "sessionId": "docs-0123456789", "name": "docs",
                "cwd": "/home/ada/src/site", "at": NOW - 60_000, "question": {"kind": "form",
                    "message": "Which licence?", "schema": {"type": "object", "properties":
                        {"licence": {"type": "string", "enum": ["MIT", "Apache-2.0"]}}}}},
        ],
    })
}

/// A person who sees that morning.
fn in_the_morning() -> Person {
    serde_json::from_value::<acpd_api::Watched>(morning()).unwrap();
    let mut person = Person::start();
    person.result(LinkId::Fleet, method::WATCH, morning());
    person
}

fn answer_of(said: &Value) -> &Value {
    &said["params"]["answer"]
}

/// No test prints what an agent wrote as it is.
fn is_harmless(screen: &str) -> bool {
    screen.chars().all(|char| char == '\n' || !char.is_control())
}
