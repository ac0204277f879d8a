//! One turn: executes the prompt's verbs, then echoes its text.

mod verbs;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use verbs::parse;

use crate::Agent;
use crate::session::{Session, Signal, chunk, tags, title};
use crate::store::{Entry, prompt_text};
use crate::wire::{Failure, lock, update};

const POLL: Duration = Duration::from_millis(5);

/// Ends of a turn before its text.
enum End {
    Stop(String),
    Fail(Failure),
}

type Step<T = ()> = ControlFlow<End, T>;

pub(crate) struct Turn {
    pub(crate) agent: Arc<Agent>,
    pub(crate) session: Arc<Session>,
    pub(crate) prompt: Vec<Value>,
    /// Number of prompts before this one.
    pub(crate) history: usize,
    pub(crate) inbox: Receiver<Signal>,
    /// For answers to the turn's own requests.
    pub(crate) sender: Sender<Signal>,
    /// All message text so far, for the store.
    pub(crate) answer: String,
    /// Number of tool calls so far.
    pub(crate) tools: u32,
    /// Number of numbered chunks so far.
    pub(crate) numbered: u64,
    pub(crate) tells_tokens: bool,
    pub(crate) terminal: String,
    /// The id of the prompt's request, as JSON text.
    pub(crate) request: String,
}

impl Turn {
    pub(crate) fn run(mut self, request: &Value) {
        let mut outcome = match self.play() {
            ControlFlow::Continue(()) => Ok(json!({"stopReason": "end_turn"})),
            ControlFlow::Break(End::Stop(reason)) => Ok(json!({"stopReason": reason})),
            ControlFlow::Break(End::Fail(failure)) => Err(failure),
        };
        if let (Ok(result), true) = (&mut outcome, self.tells_tokens) {
            let (input, output) = (prompt_text(&self.prompt).len(), self.answer.len());
            result["usage"] = json!({"totalTokens": input + output, "inputTokens": input,
                "outputTokens": output});
        }
        self.finish();
        self.agent.end_turn(&self.session, request, outcome);
    }

    fn play(&mut self) -> Step {
        let (verbs, text) = parse(&prompt_text(&self.prompt));
        for verb in verbs {
            verb(self)?;
        }
        self.check()?;
        let tags = tags(&lock(&self.session.state).prompts);
        let said = if text.is_empty() { "Done.".to_owned() } else { format!("You said: {text}") };
        let words: Vec<&str> = said.split_inclusive(' ').collect();
        for words in words.chunks(4) {
            self.say(&words.concat());
        }
        self.say(&format!(" | history={} tags={tags}", self.history));
        Step::Continue(())
    }

    /// Stores the answer and sends the messages that end each turn.
    fn finish(&mut self) {
        if !self.answer.is_empty() {
            let entry = Entry::Agent { text: self.answer.clone() };
            // A session that was deleted meanwhile has no file.
            let _ = self.agent.store.append(&self.session.id, &entry);
        }
        let (prompts, cost) = {
            let state = lock(&self.session.state);
            (state.prompts.clone(), state.cost)
        };
        let title = title(prompts.first().map_or("", String::as_str));
        let used = prompts.iter().map(String::len).sum::<usize>() + self.answer.len();
        self.update(json!({"sessionUpdate": "session_info_update", "title": title}));
        let mut usage = json!({"sessionUpdate": "usage_update", "used": used, "size": 200_000});
        if cost > 0.0 {
            usage["cost"] = json!({"amount": cost, "currency": "USD"});
        }
        self.update(usage);
    }

    fn request(&mut self, method: &str, params: Value) -> Step<Result<Value, Failure>> {
        let params = match self.agent.before_request(&self.session, method, params) {
            Ok(params) => params,
            Err(failure) => return Step::Continue(Err(failure)),
        };
        let id = self.agent.send_request(method, params, self.sender.clone());
        loop {
            match self.inbox.recv() {
                Ok(Signal::Answer(answer)) => {
                    self.agent.after_request(&self.session);
                    return Step::Continue(answer);
                }
                Ok(Signal::Steer(text)) => self.hear(&text),
                Ok(Signal::Cancel) | Err(_) => {
                    lock(&self.agent.asked).remove(&id.to_string());
                    self.agent.withdraw(&self.session, &id);
                    return cancelled();
                }
            }
        }
    }

    fn wait(&mut self, time: Duration) -> Step {
        let end = Instant::now() + time;
        loop {
            match self.inbox.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(Signal::Answer(_)) => {}
                Ok(Signal::Steer(text)) => self.hear(&text),
                Err(RecvTimeoutError::Timeout) => return Step::Continue(()),
                Ok(Signal::Cancel) | Err(RecvTimeoutError::Disconnected) => return cancelled(),
            }
        }
    }

    fn check(&mut self) -> Step {
        self.wait(Duration::ZERO)
    }

    fn hear(&mut self, text: &str) {
        self.say(&format!("heard: {text}\n"));
    }

    fn say(&mut self, text: &str) {
        self.answer.push_str(text);
        self.send_chunk("agent_message_chunk", text);
    }

    fn send_chunk(&self, kind: &str, text: &str) {
        self.agent.wire.send(&self.chunk(kind, text));
    }

    fn chunk(&self, kind: &str, text: &str) -> Value {
        let content = json!({"type": "text", "text": text});
        chunk(&self.session.id, kind, &content, &self.agent.message_id(kind, self.history))
    }

    fn update(&self, body: Value) {
        let body = self.agent.dialect(body);
        self.agent.wire.send(&update(&self.session.id, body));
    }
}

fn fail(failure: Failure) -> Step {
    Step::Break(End::Fail(failure))
}

fn cancelled<T>() -> Step<T> {
    Step::Break(End::Stop("cancelled".to_owned()))
}
