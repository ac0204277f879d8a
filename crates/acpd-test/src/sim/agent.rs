//! Model agents: the answers of a process, and the state that survives the process.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use acp_wire::acp::Steering;
use serde_json::{Value, json};

use super::bad::{BROKEN, Bad, Lie, Loss, text_of};
use super::truth::{Truth, wire_id};
use crate::rng::Rng;

#[derive(Debug, Clone, Default)]
pub(super) struct Quirks {
    pub(super) load: bool,
    pub(super) list: bool,
    pub(super) resume: bool,
    pub(super) close: bool,
    /// Advertises `session/resume` and answers that there is no such method.
    pub(super) resume_lies: bool,
    /// Session ids restart with each process, and nothing is kept.
    pub(super) from_zero: bool,
    /// Repeats the prompt before it answers.
    pub(super) echo: bool,
    /// A part of a replay comes after the response.
    pub(super) late_replay: bool,
    pub(super) steering: Option<Steering>,
    /// Speaks version 2 if it is asked to.
    pub(super) second: bool,
}

impl Quirks {
    /// What version 2 lets no agent lack.
    pub(super) fn of_version_2(self) -> Quirks {
        let steering = self.steering.filter(|way| *way == Steering::Extension);
        let more = Quirks { load: true, list: true, resume: true, close: true, ..self };
        Quirks {
            second: true,
            resume_lies: false,
            from_zero: false,
            late_replay: false,
            steering,
            ..more
        }
    }

    /// Returns whether a process can restore a session of another one.
    pub(super) fn brings_back(&self) -> bool {
        self.load || (self.resume && !self.resume_lies)
    }
}

#[derive(Debug, Default)]
pub(super) struct Disk {
    sessions: BTreeMap<String, Vec<(String, Vec<String>)>>,
    /// Sessions that got a summary.
    summed_up: BTreeSet<String>,
    next: u64,
    /// The login that the agent requires.
    pub(super) login: Option<Loss>,
    /// Promises that the agent breaks.
    pub(super) lies: BTreeMap<&'static str, Lie>,
    /// Sessions that the agent falsely reported as restored, or whose prompt it falsely accepted.
    pub(super) lied_about: BTreeSet<String>,
    /// Number of loads that still fail for a reason that passes.
    pub(super) bad_loads: u32,
    /// The next crash loses a session for good.
    pub(super) forgets: bool,
    /// The next crash leaves a session that no load and no resume restores.
    pub(super) breaks: bool,
    broken: BTreeSet<String>,
}

impl Disk {
    pub(super) fn has(&self, session: &str) -> bool {
        self.sessions.contains_key(session)
    }

    /// A fork has what its session has, lies included.
    pub(super) fn copy(&mut self, session: &str, fork: &str) {
        if let Some(log) = self.sessions.get(session).cloned() {
            self.sessions.insert(fork.to_owned(), log);
        }
        for of in [&mut self.summed_up, &mut self.lied_about] {
            if of.contains(session) {
                of.insert(fork.to_owned());
            }
        }
    }

    pub(super) fn goes_on_elsewhere(&mut self, text: &str) {
        if let Some(mut log) = self.sessions.last_entry() {
            log.get_mut().push((text.to_owned(), vec![format!("{text}#0")]));
        }
    }

    /// A process ends before everything was written.
    pub(super) fn lose(&mut self) {
        if std::mem::take(&mut self.forgets) {
            self.sessions.pop_last();
        }
        if std::mem::take(&mut self.breaks) {
            self.broken.extend(self.sessions.last_key_value().map(|(id, _)| id.clone()));
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Process {
    name: String,
    pub(super) quirks: Quirks,
    pub(super) initialized: bool,
    pub(super) held: BTreeMap<String, Held>,
    pub(super) forgotten: BTreeSet<String>,
    turns: Vec<Turn>,
    /// Lines that come later by themselves.
    late: VecDeque<Value>,
    asked: u64,
    ids: BTreeSet<String>,
    /// Questions that were answered.
    answered: BTreeSet<u64>,
    /// Alive, but does nothing.
    pub(super) hung: bool,
    pub(super) deaf: bool,
    pub(super) ignores_cancel: bool,
    pub(super) silent: BTreeSet<&'static str>,
    /// The login that the process required, even if there is one by now.
    pub(super) refuses: Option<Loss>,
    /// The process required a login first.
    pub(super) wanted_login: bool,
    pub(super) took: Option<Took>,
}

pub(super) struct Cx<'a> {
    pub(super) disk: &'a mut Disk,
    pub(super) rng: &'a mut Rng,
    pub(super) truth: &'a mut Truth,
    /// Output of the process.
    pub(super) out: &'a mut Vec<Value>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Held {
    /// Prompts in the agent's context.
    knows: BTreeSet<String>,
    summed_up: bool,
}

/// An accepted prompt, and the context at that time.
#[derive(Debug)]
pub(super) struct Took {
    pub(super) session: String,
    pub(super) text: String,
    pub(super) knows: BTreeSet<String>,
    pub(super) summed_up: bool,
    /// The agent has lied about the session, so missing context is its own fault.
    pub(super) lied: bool,
}

/// Effect of a tool call, by number of changes.
fn content(tool: &str, change: u64) -> String {
    format!("{tool}/{change}")
}

#[derive(Debug, Default)]
struct Turn {
    session: String,
    id: Value,
    text: String,
    plan: VecDeque<Act>,
    told: Vec<String>,
    /// Number of lines so far.
    said: u64,
    cancelled: bool,
    /// The open permission request, and its tool call.
    waits: Option<(u64, String)>,
    /// Number of changes of that call.
    changes: u64,
}

#[derive(Debug, Clone, Copy)]
enum Act {
    Chunk,
    Tool,
    Ask,
    Mode,
    Odd,
}

pub(super) type Answer = Result<Value, (i64, &'static str)>;

pub(super) const NO_METHOD: i64 = -32601;
pub(super) const BAD_PARAMS: i64 = -32602;
pub(super) const NOT_FOUND: i64 = -32002;
const INTERNAL: i64 = -32603;

fn update(session: &str, update: Value) -> Value {
    json!({"jsonrpc":"2.0","method":"session/update","params":{"sessionId":session,"update":update}})
}

fn chunk(session: &str, kind: &str, text: &str) -> Value {
    update(session, json!({"sessionUpdate":kind,"content":{"type":"text","text":text}}))
}

fn modes(current: &str) -> Value {
    json!({"currentModeId":current,"availableModes":[{"id":"ask","name":"Ask"},{"id":"code","name":"Code"}]})
}

fn options(model: &str) -> Value {
    json!([{"id":"model","name":"Model","type":"select","currentValue":model,
        "options":[{"value":"a","name":"A"},{"value":"b","name":"B"}]}])
}

impl Process {
    pub(super) fn new(name: &str, quirks: Quirks) -> Process {
        Process { name: name.to_owned(), quirks, ..Process::default() }
    }

    pub(super) fn works_in(&self, session: &str) -> bool {
        self.turns.iter().any(|turn| turn.session == session)
    }

    /// Returns whether the process could send something without input.
    pub(super) fn is_busy(&self) -> bool {
        let acts = self.turns.iter().any(|turn| self.is_free(turn));
        !self.hung && (acts || !self.late.is_empty())
    }

    /// Returns whether the turn can continue without input.
    fn is_free(&self, turn: &Turn) -> bool {
        turn.waits.is_none() && !(turn.cancelled && self.ignores_cancel)
    }

    pub(super) fn hang(&mut self) {
        self.hung = true;
        self.late.clear();
    }

    pub(super) fn is_replaying(&self) -> bool {
        !self.late.is_empty()
    }

    pub(super) fn read(&mut self, line: &Value, cx: &mut Cx<'_>) -> Result<(), String> {
        let params = &line["params"];
        match (line["method"].as_str(), line.get("id")) {
            (Some(method), Some(id)) => {
                if !self.ids.insert(wire_id(id)?) {
                    return Err(format!("id {id} was used before: {line}"));
                }
                let answer = self.asked_for(method, id, params, cx)?;
                match answer {
                    None => {}
                    Some(Ok(result)) => {
                        cx.out.push(json!({"jsonrpc":"2.0","id":id,"result":result}));
                    }
                    Some(Err((code, text))) => cx.out.push(
                        json!({"jsonrpc":"2.0","id":id,"error":{"code":code,"message":text}}),
                    ),
                }
            }
            (Some("session/cancel"), None) => {
                if self.ignores_cancel {
                    cx.truth.hit("cancel ignored");
                }
                for turn in &mut self.turns {
                    if turn.session == params["sessionId"].as_str().unwrap_or_default() {
                        turn.cancelled = true;
                    }
                }
            }
            (Some(_), None) => {}
            (None, _) => self.answered(line, cx.truth)?,
        }
        Ok(())
    }

    fn answered(&mut self, line: &Value, truth: &mut Truth) -> Result<(), String> {
        let asked = line["id"].as_u64();
        let known = asked.filter(|id| (1..=self.asked).contains(id));
        if !known.is_some_and(|id| self.answered.insert(id)) {
            return Err(format!("agent got an answer to nothing, or a second one: {line}"));
        }
        let waits = |turn: &&mut Turn| turn.waits.as_ref().map(|(id, _)| *id) == asked;
        let Some(turn) = self.turns.iter_mut().find(waits) else { return Ok(()) };
        let (_, tool) = turn.waits.take().unwrap_or_default();
        let outcome = &line["result"]["outcome"];
        match outcome["outcome"].as_str() {
            Some("selected") => {
                let option = outcome["optionId"].as_str().unwrap_or_default();
                truth.hit("permission granted");
                // The agent cannot know which of them acpd knew.
                let mut said = (0..=turn.changes).map(|change| content(&tool, change));
                if !said.any(|call| truth.consents.contains(&(call, option.to_owned()))) {
                    return Err(format!("agent was told `{option}` for {tool}, by nobody"));
                }
            }
            Some("cancelled") if turn.cancelled => truth.hit("permission cancelled"),
            // The session was closed meanwhile. An error is no consent in any case.
            None if line.get("error").is_some() => truth.hit("permission refused"),
            _ => return Err(format!("agent got a strange answer for {tool}: {line}")),
        }
        Ok(())
    }

    fn asked_for(
        &mut self,
        method: &str,
        id: &Value,
        params: &Value,
        cx: &mut Cx<'_>,
    ) -> Result<Option<Answer>, String> {
        let session = params["sessionId"].as_str().unwrap_or_default().to_owned();
        if method == "session/prompt" {
            cx.truth.reads(&text_of(params).0)?;
        }
        match self.on_bad_day(method, params, cx) {
            Some(Bad::Answer(answer)) => return Ok(Some(answer)),
            Some(Bad::Silence) => return Ok(None),
            None => {}
        }
        let answer = match method {
            "initialize" => {
                self.initialized = true;
                Ok(self.capabilities())
            }
            "authenticate" => {
                cx.truth.hit("logged in by a client");
                cx.disk.login = None;
                self.refuses = None;
                Ok(json!({}))
            }
            "session/new" => {
                if self.quirks.from_zero && self.held.is_empty() {
                    cx.disk.next = 0;
                }
                let made = format!("{}-{}", self.name, cx.disk.next);
                cx.disk.next += 1;
                self.held.insert(made.clone(), Held::default());
                let commands =
                    json!({"sessionUpdate":"available_commands_update","availableCommands":[]});
                if cx.rng.permille(300) {
                    cx.truth.hit("update before the session was made");
                    cx.out.push(update(&made, commands));
                }
                Ok(json!({"sessionId":made,"modes":modes("ask"),"configOptions":options("a")}))
            }
            "session/fork" => {
                let Some(held) = self.held.get(&session).cloned() else {
                    if self.forgotten.contains(&session) {
                        return Ok(Some(Err((NOT_FOUND, "Session not found"))));
                    }
                    return Err(format!("fork of {session}, which this process does not hold"));
                };
                cx.truth.hit("forked");
                let made = format!("{}-{}", self.name, cx.disk.next);
                cx.disk.next += 1;
                self.held.insert(made.clone(), held);
                cx.disk.copy(&session, &made);
                Ok(json!({"sessionId":made,"modes":modes("ask"),"configOptions":options("a")}))
            }
            "session/list" if self.quirks.list => {
                let all = cx.disk.sessions.keys().map(|id| json!({"sessionId":id,"cwd":"/w"}));
                Ok(json!({"sessions":all.collect::<Vec<_>>()}))
            }
            "session/resume" if self.quirks.resume && !self.quirks.resume_lies => {
                if cx.disk.broken.contains(&session) {
                    Err((INTERNAL, BROKEN))
                } else if cx.disk.sessions.contains_key(&session) {
                    cx.truth.hit("resumed");
                    self.hold(&session, cx.disk);
                    Ok(json!({"modes":modes("ask"),"configOptions":options("a")}))
                } else {
                    Err((NOT_FOUND, "no such session"))
                }
            }
            "session/load" if self.quirks.load => self.load(&session, cx),
            "session/close" if self.quirks.close => {
                self.held.remove(&session);
                for turn in self.turns.extract_if(.., |turn| turn.session == session) {
                    // Some forget the prompt with the session: acpd has to stop those.
                    if !self.ignores_cancel {
                        let ended = json!({"stopReason":"cancelled"});
                        cx.out.push(json!({"jsonrpc":"2.0","id":turn.id,"result":ended}));
                    }
                }
                Ok(json!({}))
            }
            "session/set_mode" => {
                if self.held.contains_key(&session) {
                    Ok(json!({}))
                } else {
                    Err((NOT_FOUND, "Session not found"))
                }
            }
            "session/set_config_option" => {
                if !self.held.contains_key(&session) {
                    Err((NOT_FOUND, "Session not found"))
                } else if params["configId"] == "model" && params["type"].is_null() {
                    let value = params["value"].as_str().unwrap_or_default();
                    Ok(json!({"configOptions":options(value)}))
                } else {
                    Err((BAD_PARAMS, "no such option"))
                }
            }
            "_session/steering" | "session/inject" => {
                return self.steer(&session, method, params, cx).map(Some);
            }
            "session/prompt" => return self.prompt(session, id, params, cx),
            _ => Err((NO_METHOD, "no such method")),
        };
        Ok(Some(answer))
    }

    fn capabilities(&self) -> Value {
        let mut session = json!({"fork":{}});
        let quirks = &self.quirks;
        for (name, has) in
            [("list", quirks.list), ("resume", quirks.resume), ("close", quirks.close)]
        {
            if has {
                session[name] = json!({});
            }
        }
        let mut result = json!({
            "protocolVersion": 1,
            "agentCapabilities": {"loadSession": quirks.load, "sessionCapabilities": session},
            "agentInfo": {"name": self.name, "version": "1"},
        });
        match quirks.steering {
            Some(Steering::Extension) => result["_meta"] = json!({"steering":{"supported":true}}),
            Some(Steering::Inject) => {
                result["agentCapabilities"]["session"] = json!({"inject":{"modes":["steer"]}});
            }
            None => {}
        }
        result
    }

    fn load(&mut self, session: &str, cx: &mut Cx<'_>) -> Answer {
        if cx.disk.bad_loads > 0 {
            cx.disk.bad_loads -= 1;
            cx.truth.hit("load failed for now");
            return Err((BAD_PARAMS, "locked"));
        }
        if cx.disk.broken.contains(session) {
            cx.truth.hit("load that fails for ever");
            return Err((INTERNAL, BROKEN));
        }
        let Some(turns) = cx.disk.sessions.get(session) else {
            cx.truth.hit("load of an unknown session");
            return Err((NOT_FOUND, "no such session"));
        };
        cx.truth.hit("loaded with replay");
        let mut replay = Vec::new();
        for (prompt, answers) in turns {
            replay.push(chunk(session, "user_message_chunk", prompt));
            replay.extend(answers.iter().map(|text| chunk(session, "agent_message_chunk", text)));
        }
        if self.quirks.late_replay {
            self.late.extend(replay.split_off(replay.len() / 2));
        }
        cx.out.extend(replay);
        self.hold(session, cx.disk);
        Ok(json!({"modes":modes("ask"),"configOptions":options("a")}))
    }

    fn hold(&mut self, session: &str, disk: &Disk) {
        let knows = disk.sessions.get(session).into_iter().flatten();
        let held = Held {
            knows: knows.map(|(prompt, _)| prompt.clone()).collect(),
            summed_up: disk.summed_up.contains(session),
        };
        self.forgotten.remove(session);
        self.held.insert(session.to_owned(), held);
    }

    fn steer(
        &mut self,
        session: &str,
        method: &str,
        params: &Value,
        cx: &mut Cx<'_>,
    ) -> Result<Answer, String> {
        let extends = method == "_session/steering";
        let way = if extends { Steering::Extension } else { Steering::Inject };
        let blocks = &params[if extends { "prompt" } else { "content" }];
        let text = blocks[0]["text"].as_str().unwrap_or_default().to_owned();
        if self.quirks.steering != Some(way) {
            return Err(format!("{text} came by {method}, which this agent does not have"));
        }
        if extends && params["_meta"]["steering"]["idleBehavior"] != "promptRequired" {
            return Err(format!("{text} may begin a turn that nobody knows of"));
        }
        let runs = self.turns.iter().any(|turn| turn.session == session && !turn.cancelled);
        let Some(held) = self.held.get_mut(session).filter(|_| runs) else {
            cx.truth.hit("message came too late");
            return Ok(match way {
                Steering::Extension => Ok(json!({"outcome":"promptRequired"})),
                Steering::Inject => Err((-32600, "no turn")),
            });
        };
        if cx.rng.permille(300) {
            cx.truth.hit("message not taken");
            return Ok(match way {
                Steering::Extension => Ok(json!({"outcome":"failed","reason":"no"})),
                Steering::Inject => Err((-32603, "no")),
            });
        }
        cx.truth.reads(&text)?;
        cx.truth.hit("message taken into a turn");
        cx.truth.steered.insert(text.clone());
        held.knows.insert(text.clone());
        if let Some(log) = cx.disk.sessions.get_mut(session) {
            log.push((text.clone(), Vec::new()));
        }
        if self.quirks.echo {
            cx.out.push(chunk(session, "user_message_chunk", &text));
        }
        Ok(Ok(match way {
            Steering::Extension => json!({"outcome":"injected"}),
            Steering::Inject => json!({"messageId":format!("m-{text}")}),
        }))
    }

    fn prompt(
        &mut self,
        session: String,
        id: &Value,
        params: &Value,
        cx: &mut Cx<'_>,
    ) -> Result<Option<Answer>, String> {
        let (text, summed_up) = text_of(params);
        if summed_up {
            cx.truth.hit("summary before a prompt");
        }
        cx.truth.received.insert(text.clone());
        let Some(held) = self.held.get_mut(&session) else {
            return Err(format!("prompt {text} for {session}, which this process does not hold"));
        };
        if self.turns.iter().any(|turn| turn.session == session) {
            return Err(format!("prompt {text} came while another turn of {session} runs"));
        }
        held.summed_up |= summed_up;
        self.took = Some(Took {
            session: session.clone(),
            text: text.clone(),
            knows: held.knows.clone(),
            summed_up: held.summed_up,
            lied: cx.disk.lied_about.contains(&session),
        });
        if !self.quirks.from_zero {
            if !cx.disk.sessions.contains_key(&session) && !held.knows.is_empty() {
                // The session's file is gone, and gets only later messages.
                cx.disk.lied_about.insert(session.clone());
            }
            cx.disk.sessions.entry(session.clone()).or_default().push((text.clone(), Vec::new()));
            if held.summed_up {
                cx.disk.summed_up.insert(session.clone());
            }
        }
        held.knows.insert(text.clone());
        if self.quirks.echo {
            cx.out.push(chunk(&session, "user_message_chunk", &text));
        }
        let acts = [Act::Chunk, Act::Chunk, Act::Chunk, Act::Tool, Act::Ask, Act::Mode, Act::Odd];
        let length = if cx.rng.permille(20) { 60 } else { cx.rng.below(6) };
        let plan = (0..length).map(|_| acts[cx.rng.below(acts.len())]).collect();
        self.turns.push(Turn { session, id: id.clone(), text, plan, ..Turn::default() });
        Ok(None)
    }

    /// Changes the call of an open question.
    fn change_of_mind(&mut self, rng: &mut Rng, truth: &mut Truth) -> Option<Value> {
        let turn = self.turns.iter_mut().find(|turn| turn.waits.is_some() && !turn.cancelled)?;
        if !rng.permille(150) {
            return None;
        }
        let (_, tool) = turn.waits.as_ref()?;
        turn.changes += 1;
        truth.hit("call changed while it was asked about");
        let title = content(tool, turn.changes);
        let mut line = update(
            &turn.session,
            json!({"sessionUpdate":"tool_call_update","toolCallId":tool,"title":title}),
        );
        line["params"]["update"]["_meta"] = json!({"turn":turn.text,"n":turn.said});
        turn.said += 1;
        Some(line)
    }

    pub(super) fn work(&mut self, disk: &mut Disk, rng: &mut Rng, truth: &mut Truth) -> Vec<Value> {
        if let Some(line) = self.late.pop_front() {
            truth.hit("late replay");
            return vec![line];
        }
        if let Some(line) = self.change_of_mind(rng, truth) {
            return vec![line];
        }
        let free: Vec<usize> =
            (0..self.turns.len()).filter(|at| self.is_free(&self.turns[*at])).collect();
        let Some(&at) = rng.pick(&free) else { return Vec::new() };
        let turn = &mut self.turns[at];
        let act = if turn.cancelled { None } else { turn.plan.pop_front() };
        let Some(act) = act else {
            let turn = self.turns.remove(at);
            truth.ended.insert(turn.text.clone(), turn.said);
            if let Some(log) = disk.sessions.get_mut(&turn.session)
                && let Some((_, answers)) = log.iter_mut().find(|(text, _)| *text == turn.text)
            {
                *answers = turn.told;
            }
            let reason = if turn.cancelled { "cancelled" } else { "end_turn" };
            return vec![json!({"jsonrpc":"2.0","id":turn.id,"result":{"stopReason":reason}})];
        };
        let turn = &mut self.turns[at];
        let n = turn.told.len();
        let mut line = match act {
            Act::Chunk => {
                let text = format!("{}#{n}", turn.text);
                turn.told.push(text.clone());
                chunk(&turn.session, "agent_message_chunk", &text)
            }
            Act::Tool => {
                let kind = if rng.permille(400) { "tool_call" } else { "tool_call_update" };
                let title = format!("{}#{}", turn.text, turn.said);
                update(
                    &turn.session,
                    json!({"sessionUpdate":kind,"toolCallId":format!("{}-t", turn.text),"title":title}),
                )
            }
            Act::Mode => update(
                &turn.session,
                json!({"sessionUpdate":"current_mode_update","currentModeId":"code"}),
            ),
            Act::Odd => update(&turn.session, json!({"sessionUpdate":"not_known_yet","x":[1]})),
            Act::Ask => {
                self.asked += 1;
                let tool = format!("{}-{}", turn.text, self.asked);
                turn.waits = Some((self.asked, tool.clone()));
                turn.changes = 0;
                let call = json!({"toolCallId":tool,"title":content(&tool, 0)});
                json!({"jsonrpc":"2.0","id":self.asked,"method":"session/request_permission","params":{
                    "sessionId":turn.session,"toolCall":call,
                    "options":[{"optionId":"yes","name":"Yes","kind":"allow_once"},
                               {"optionId":"no","name":"No","kind":"reject_once"}]}})
            }
        };
        let update = &mut line["params"]["update"];
        if !update.is_null() {
            // Chunks and calls have their numbers in their texts, and so may be folded.
            if update["content"].is_null() && update["title"].is_null() {
                update["_meta"] = json!({"turn":turn.text,"n":turn.said});
            }
            turn.said += 1;
        }
        vec![line]
    }
}
