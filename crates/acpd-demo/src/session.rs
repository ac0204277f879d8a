//! A live session: what it remembers, its mode and options, and how it looks on the wire.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::mpsc::Sender;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::store::{Entry, Stored};
use crate::wire::{Failure, lock, update};

/// Commands that are offered: name, description, hint of the input. Each is the verb of the same name.
pub(crate) const COMMANDS: [(&str, &str, Option<&str>); 5] = [
    ("plan", "Show a plan that gets done", None),
    ("think", "Think aloud", Some("thought")),
    ("tool", "Run a tool call with a diff", Some("title")),
    ("ask", "Ask for a permission", None),
    ("slow", "Answer slowly, ten words a second", Some("number of words")),
];

const MODES: [(&str, &str); 2] = [("ask", "Ask"), ("code", "Code")];
const MODELS: [(&str, &str); 2] = [("demo-small", "Demo small"), ("demo-large", "Demo large")];

/// What the main thread tells a running turn.
pub(crate) enum Signal {
    Cancel,
    /// Something that the user adds.
    Steer(String),
    /// The client's answer to the request that the turn waits for.
    Answer(Result<Value, Failure>),
}

/// Mode and config options.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Settings {
    mode: String,
    model: String,
    verbose: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self { mode: MODES[0].0.into(), model: MODELS[0].0.into(), verbose: false }
    }
}

impl Settings {
    pub(crate) fn set_mode(&mut self, mode: &str) -> Result<(), Failure> {
        self.mode = choice(&MODES, mode)?;
        Ok(())
    }

    pub(crate) fn set_option(&mut self, option: &str, value: &Value) -> Result<(), Failure> {
        match (option, value) {
            ("model", Value::String(model)) => self.model = choice(&MODELS, model)?,
            ("verbose", Value::Bool(verbose)) => self.verbose = *verbose,
            _ => {
                return Err(Failure::invalid_params(format!("no option `{option}` takes {value}")));
            }
        }
        Ok(())
    }

    pub(crate) fn modes(&self) -> Value {
        let modes = MODES.map(|(id, name)| json!({"id": id, "name": name}));
        json!({"currentModeId": self.mode, "availableModes": modes})
    }

    /// The boolean option is only for clients that offered to understand it.
    pub(crate) fn config_options(&self, boolean: bool) -> Value {
        let models = MODELS.map(|(value, name)| json!({"value": value, "name": name}));
        let model = json!({"id": "model", "name": "Model", "category": "model", "type": "select",
            "currentValue": self.model, "options": models});
        let verbose = json!({"id": "verbose", "name": "Verbose", "type": "boolean", "currentValue": self.verbose});
        if boolean { json!([model, verbose]) } else { json!([model]) }
    }
}

fn choice(known: &[(&str, &str)], wanted: &str) -> Result<String, Failure> {
    if known.iter().any(|(id, _)| *id == wanted) {
        Ok(wanted.to_owned())
    } else {
        Err(Failure::invalid_params(format!("no such value: {wanted}")))
    }
}

/// One conversation that this process holds.
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) cwd: String,
    pub(crate) state: Mutex<State>,
}

/// What changes in a session.
pub(crate) struct State {
    pub(crate) settings: Settings,
    /// Texts of all prompts, the running one last.
    pub(crate) prompts: Vec<String>,
    /// MCP servers in the client: their ids, by name.
    pub(crate) servers: HashMap<String, String>,
    /// Whether the store has it; that is so from its first prompt on.
    pub(crate) on_disk: bool,
    /// The running turn.
    pub(crate) turn: Option<Sender<Signal>>,
}

impl Session {
    pub(crate) fn new(id: String, cwd: String) -> Self {
        let state = State {
            settings: Settings::default(),
            prompts: Vec::new(),
            servers: HashMap::new(),
            on_disk: false,
            turn: None,
        };
        Self { id, cwd, state: Mutex::new(state) }
    }

    pub(crate) fn restored(id: String, cwd: String, stored: &Stored) -> Self {
        let state = State {
            settings: stored.settings.clone(),
            prompts: stored.prompts(),
            servers: HashMap::new(),
            on_disk: true,
            turn: None,
        };
        Self { id, cwd, state: Mutex::new(state) }
    }

    /// Cancels the running turn, if there is one.
    pub(crate) fn cancel(&self) {
        if let Some(turn) = &lock(&self.state).turn {
            let _ = turn.send(Signal::Cancel);
        }
    }
}

/// The text blocks of a prompt.
pub(crate) fn prompt_text(prompt: &[Value]) -> String {
    let texts: Vec<&str> = prompt.iter().filter_map(|block| block["text"].as_str()).collect();
    texts.join("\n")
}

/// A short title for a conversation.
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

/// The conversation as updates. Message ids differ from those of the live turn, as they may (ACP v1, message
/// ids need not survive a load).
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
            let (kind, blocks) = match entry {
                Entry::User { prompt } => ("user_message_chunk", prompt),
                Entry::Agent { text } => {
                    ("agent_message_chunk", vec![json!({"type": "text", "text": text})])
                }
                Entry::Session { .. } | Entry::Settings { .. } => ("", Vec::new()),
            };
            let id = format!("replay-{n}");
            blocks
                .into_iter()
                .map(move |block| chunk(session, kind, &block, &id))
                .collect::<Vec<_>>()
        })
        .collect()
}
