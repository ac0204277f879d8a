use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;
use std::sync::mpsc::Sender;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};

use crate::settings::Settings;
use crate::store::{Entry, Stored};
use crate::tool_server::ToolServer;
use crate::wire::{Failure, lock, update};

/// Name, description, hint of the input. Each is the verb of the same name.
pub(crate) const COMMANDS: [(&str, &str, Option<&str>); 5] = [
    ("plan", "Show a plan that gets done", None),
    ("think", "Think aloud", Some("thought")),
    ("tool", "Run a tool call with a diff", Some("title")),
    ("ask", "Ask for a permission", None),
    ("slow", "Answer slowly, ten words a second", Some("number of words")),
];

pub(crate) enum Signal {
    Cancel,
    /// A message of the user.
    Steer(String),
    Answer(Result<Value, Failure>),
}

pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) cwd: String,
    pub(crate) state: Mutex<State>,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) settings: Settings,
    /// Texts of all prompts, the running one last.
    pub(crate) prompts: Vec<String>,
    /// MCP servers that the agent starts: descriptions by name.
    pub(crate) commands: HashMap<String, Value>,
    pub(crate) tool_servers: HashMap<String, ToolServer>,
    /// Cost in US dollars since this process has the session.
    pub(crate) cost: f64,
    /// Set with the first prompt.
    pub(crate) on_disk: bool,
    pub(crate) turn: Option<Sender<Signal>>,
    pub(crate) work: Work,
}

/// State of a session that only version 2 has.
#[derive(Default)]
pub(crate) struct Work {
    /// Request ids and prompts that wait for the end of the turn.
    pub(crate) held: VecDeque<(Value, Vec<Value>)>,
    /// Last state that was sent; idle if none was.
    pub(crate) activity: Option<&'static str>,
    /// Terminals that run in the background. Each state has the list once it has been sent.
    pub(crate) background: Option<Vec<String>>,
    /// Those that start at the end of the turn, with the number of their lines.
    pub(crate) starting: Vec<(String, u64)>,
    /// The `session/close` that is answered at the end of the turn.
    pub(crate) closing: Option<Value>,
}

impl Work {
    pub(crate) fn hold(&mut self, request: &Value, prompt: Vec<Value>) {
        self.held.push_back((request.clone(), prompt));
    }

    pub(crate) fn runs(&self, terminal: &str) -> bool {
        self.background.iter().flatten().any(|id| id == terminal)
    }
}

impl Session {
    pub(crate) fn new(id: String, cwd: String) -> Self {
        Self { id, cwd, state: Mutex::default() }
    }

    pub(crate) fn restored(id: String, cwd: String, stored: &Stored) -> Self {
        let (settings, prompts) = (stored.settings.clone(), stored.prompts());
        let state = State { settings, prompts, on_disk: true, ..State::default() };
        Self { id, cwd, state: Mutex::new(state) }
    }

    pub(crate) fn cancel(&self) {
        if let Some(turn) = &lock(&self.state).turn {
            let _ = turn.send(Signal::Cancel);
        }
    }
}

pub(crate) fn title(first_prompt: &str) -> String {
    first_prompt.lines().next().unwrap_or_default().chars().take(60).collect()
}

/// The `#words` of all prompts in order: proof of what the conversation still knows.
pub(crate) fn tags(prompts: &[String]) -> String {
    let word_end = |c: char| !(c.is_alphanumeric() || c == '-' || c == '_');
    let words = prompts.iter().flat_map(|prompt| prompt.split('#').skip(1));
    let tags = words.filter_map(|word| word.split(word_end).next()).filter(|tag| !tag.is_empty());
    tags.collect::<Vec<_>>().join(",")
}

pub(crate) fn commands_update(session: &str) -> Value {
    let commands = COMMANDS.map(|(name, description, hint)| match hint {
        Some(hint) => json!({"name": name, "description": description, "input": {"hint": hint}}),
        None => json!({"name": name, "description": description}),
    });
    update(
        session,
        json!({"sessionUpdate": "available_commands_update", "availableCommands": commands}),
    )
}

pub(crate) fn chunk(session: &str, kind: &str, content: &Value, message_id: &str) -> Value {
    update(session, json!({"sessionUpdate": kind, "content": content, "messageId": message_id}))
}

/// The line of a number, as output of a terminal.
pub(crate) fn terminal_output(terminal: &str, line: u64) -> Value {
    let data = BASE64_STANDARD.encode(format!("line {line}\n"));
    json!({"sessionUpdate": "terminal_output_chunk", "terminalId": terminal, "data": data})
}

/// The conversation as updates. Message ids differ from those of the live turn, which ACP v1 allows
/// after a load.
pub(crate) fn replay(session: &str, extra_turns: u32, stored: &Stored) -> Vec<Value> {
    let extra = (1..=extra_turns).flat_map(|turn| {
        let text = |text: String| json!({"type": "text", "text": text});
        [
            Entry::User { prompt: vec![text(format!("earlier question {turn}"))] },
            Entry::Agent { text: format!("earlier answer {turn}") },
        ]
    });
    let entries = extra.chain(stored.messages.iter().cloned()).enumerate();
    entries
        .flat_map(|(n, entry)| {
            let (kind, blocks) = entry.content();
            let id = format!("replay-{n}");
            blocks
                .into_iter()
                .map(move |block| chunk(session, kind, &block, &id))
                .collect::<Vec<_>>()
        })
        .collect()
}
