//! Bad days: logins that run out, broken promises, answers that never come, directories that go
//! away, time that jumps.
//!
//! Each run has some of them. While faults last they come and go. Then nothing more breaks, and the
//! present faults stay until everything is quiet: only what needs a person may wait for ever then.
//! In the end everything is repaired, and has to recover.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::agent::{Answer, BAD_PARAMS, Cx, Disk, Held, NO_METHOD, NOT_FOUND, Process};
use super::truth::Truth;
use crate::rng::Rng;

/// Text of an error that means a missing login without its code.
pub(super) const TOKEN: &str = "token has expired";

/// Error of a load for a session that is lost.
pub(super) const BROKEN: &str = "cannot read the rollout";

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Days {
    pub(super) logins: bool,
    pub(super) lies: bool,
    pub(super) hangs: bool,
    pub(super) directories: bool,
    pub(super) jumps: bool,
}

impl Days {
    pub(super) fn draw(rng: &mut Rng) -> Days {
        let mut some = || rng.permille(350);
        Days { logins: some(), lies: some(), hangs: some(), directories: some(), jumps: some() }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Loss {
    methods: BTreeSet<&'static str>,
    /// The error lacks the protocol's code.
    hidden: bool,
}

impl Loss {
    pub(super) fn draw(rng: &mut Rng) -> Loss {
        let sets: [&[&str]; 5] = [
            &["session/new", "session/fork", "session/load", "session/prompt"],
            &["session/new", "session/fork", "session/load", "session/resume", "session/prompt"],
            &["session/prompt"],
            &["session/load", "session/resume"],
            &["initialize", "session/new", "session/load", "session/resume", "session/prompt"],
        ];
        let methods = rng.pick(&sets).copied().unwrap_or_default();
        Loss { methods: methods.iter().copied().collect(), hidden: rng.permille(300) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lie {
    NoMethod,
    BadParams,
    /// Reports success, and does nothing.
    Nothing,
}

pub(super) enum Bad {
    Answer(Answer),
    Silence,
}

const LIES: [&str; 8] = [
    "session/load",
    "session/load",
    "session/resume",
    "session/list",
    "session/close",
    "session/set_mode",
    "session/new",
    "session/prompt",
];

const SILENCES: [&str; 7] = [
    "session/new",
    "session/load",
    "session/resume",
    "session/prompt",
    "session/set_mode",
    "session/list",
    "authenticate",
];

impl Disk {
    /// Replaces the agent's lies, or ends them.
    pub(super) fn change_lies(&mut self, rng: &mut Rng) {
        if rng.permille(400) {
            return self.lies.clear();
        }
        let kinds = [Lie::NoMethod, Lie::BadParams, Lie::Nothing];
        let method = if rng.permille(40) {
            "initialize"
        } else {
            rng.pick(&LIES).copied().unwrap_or_default()
        };
        if let Some(kind) = rng.pick(&kinds) {
            self.lies.insert(method, *kind);
        }
    }
}

impl Process {
    /// From now on some requests are never answered, or nothing is read.
    pub(super) fn go_silent(&mut self, rng: &mut Rng, truth: &mut Truth) {
        match rng.below(4) {
            0 => {
                truth.hit("agent stopped reading");
                self.deaf = true;
            }
            1 => self.ignores_cancel = true,
            _ => {
                let method = rng.pick(&SILENCES).copied().unwrap_or_default();
                self.silent.insert(method);
            }
        }
    }

    /// An early request is never answered.
    pub(super) fn start_silent(&mut self, rng: &mut Rng) {
        // The last two are sent only to an agent that can restore.
        let rare = ["session/load", "session/resume"];
        let first = ["initialize", "session/new", "session/load", "session/resume"];
        let among = if rng.permille(500) { &rare[..] } else { &first };
        self.silent.extend(rng.pick(among).copied());
    }

    /// Returns whether the request waits until its agent is stopped.
    pub(super) fn is_stuck(&self) -> bool {
        self.hung || self.deaf || self.ignores_cancel || !self.silent.is_empty()
    }

    pub(super) fn forget_one(&mut self, rng: &mut Rng) {
        let idle: Vec<String> = self.held.keys().filter(|id| !self.works_in(id)).cloned().collect();
        if let Some(id) = rng.pick(&idle) {
            self.held.remove(id);
            self.forgotten.insert(id.clone());
        }
    }

    /// Returns the fate of a request on a bad day; `None` on a good one.
    pub(super) fn on_bad_day(
        &mut self,
        method: &str,
        params: &Value,
        cx: &mut Cx<'_>,
    ) -> Option<Bad> {
        let session = params["sessionId"].as_str().unwrap_or_default();
        if self.silent.contains(method) {
            cx.truth.hit(match method {
                "initialize" => "initialize never answered",
                "session/new" => "new session never answered",
                "session/load" => "load never answered",
                "session/resume" => "resume never answered",
                "session/prompt" => "prompt never answered",
                _ => "something else never answered",
            });
            return Some(Bad::Silence);
        }
        // A refused request is refused again until a login or a restart.
        let loss = self.refuses.as_ref().or(cx.disk.login.as_ref());
        if let Some(loss) = loss.filter(|loss| loss.methods.contains(method)).cloned() {
            cx.truth.hit(match method {
                "initialize" => "login wanted at initialize",
                "session/new" | "session/fork" => "login wanted by a new session",
                "session/load" => "login wanted by a load",
                "session/resume" => "login wanted by a resume",
                _ => "login wanted by a prompt",
            });
            self.wanted_login |= method == "initialize";
            self.refuses = Some(loss.clone());
            if method == "session/prompt" {
                cx.truth.repeated.remove(&text_of(params).0);
                cx.truth.refused.insert(text_of(params).0);
            }
            return Some(Bad::Answer(Err(if loss.hidden {
                cx.truth.hit("login wanted in other words");
                (-32603, "Internal error: the Token has expired")
            } else {
                (-32000, "log in first")
            })));
        }
        if method == "session/prompt" && self.forgotten.contains(session) {
            cx.truth.hit("session forgotten by a running agent");
            return Some(Bad::Answer(Err((NOT_FOUND, "Session not found"))));
        }
        let lie = cx.disk.lies.get(method)?;
        Some(Bad::Answer(match lie {
            Lie::NoMethod => {
                cx.truth.hit("promised method is not there");
                Err((NO_METHOD, "no such method"))
            }
            Lie::BadParams => {
                cx.truth.hit("promised method takes nothing");
                Err((BAD_PARAMS, "bad params"))
            }
            Lie::Nothing => Ok(self.lie(method, session, params, cx)),
        }))
    }

    /// Falsely reports success.
    fn lie(&mut self, method: &str, session: &str, params: &Value, cx: &mut Cx<'_>) -> Value {
        match method {
            "session/load" | "session/resume" => {
                cx.truth.hit("session brought back without its context");
                cx.disk.lied_about.insert(session.to_owned());
                self.forgotten.remove(session);
                self.held.insert(session.to_owned(), Held::default());
            }
            "session/prompt" => {
                cx.truth.hit("prompt answered with nothing");
                cx.disk.lied_about.insert(session.to_owned());
                cx.truth.ended.insert(text_of(params).0, 0);
            }
            _ => cx.truth.hit("success with nothing"),
        }
        json!({})
    }
}

/// The client's own words in a prompt, and whether a summary comes before them.
pub(super) fn text_of(params: &Value) -> (String, bool) {
    let blocks = params["prompt"].as_array().map(Vec::as_slice).unwrap_or_default();
    let text = blocks.last().and_then(|block| block["text"].as_str()).unwrap_or_default();
    (text.to_owned(), blocks.len() > 1)
}
