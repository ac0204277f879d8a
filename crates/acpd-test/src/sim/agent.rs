//! Model agents: what a process of one answers, and what of it survives the process.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Value, json};

use super::rng::Rng;
use super::truth::Truth;

/// What kind of agent it is. Nothing in here changes during a run.
#[derive(Debug, Clone, Default)]
pub(super) struct Quirks {
    pub(super) load: bool,
    pub(super) list: bool,
    pub(super) resume: bool,
    pub(super) close: bool,
    /// Advertises `session/resume` and answers that there is no such method.
    pub(super) resume_lies: bool,
    /// Session ids begin anew with each process, and nothing is kept.
    pub(super) from_zero: bool,
    /// Repeats the prompt before it answers.
    pub(super) echo: bool,
    /// A part of a replay comes after the response.
    pub(super) late_replay: bool,
}

/// What survives the process.
#[derive(Debug, Default)]
pub(super) struct Disk {
    sessions: BTreeMap<String, Vec<(String, Vec<String>)>>,
    next: u64,
    pub(super) logged_out: bool,
    /// So many loads still fail for a reason that passes.
    pub(super) bad_loads: u32,
    /// With the next crash a session is gone.
    pub(super) forgets: bool,
}

impl Disk {
    /// Somebody goes on with a session without acpd.
    pub(super) fn goes_on_elsewhere(&mut self, text: &str) {
        if let Some(mut log) = self.sessions.last_entry() {
            log.get_mut().push((text.to_owned(), vec![format!("{text}#0")]));
        }
    }

    /// A process ends without having written everything down.
    pub(super) fn lose(&mut self) {
        if std::mem::take(&mut self.forgets) {
            self.sessions.pop_last();
        }
    }
}

/// One process.
#[derive(Debug)]
pub(super) struct Process {
    name: String,
    quirks: Quirks,
    pub(super) initialized: bool,
    /// Mode of each session that it holds.
    pub(super) held: BTreeMap<String, String>,
    turns: Vec<Turn>,
    /// Lines that come later by themselves.
    late: VecDeque<Value>,
    asked: u64,
    /// Its questions that were answered.
    answered: BTreeSet<u64>,
    /// Does nothing any more, but lives.
    pub(super) hung: bool,
    pub(super) ignores_cancel: bool,
}

#[derive(Debug)]
struct Turn {
    session: String,
    id: Value,
    text: String,
    plan: VecDeque<Act>,
    told: Vec<String>,
    /// Lines that it has said so far.
    said: u64,
    cancelled: bool,
    /// The request for a permission that is open, and its tool call.
    waits: Option<(u64, String)>,
}

#[derive(Debug, Clone, Copy)]
enum Act {
    Chunk,
    Tool,
    Ask,
    Mode,
    Odd,
}

/// A result, or an error's code and message.
type Answer = Result<Value, (i64, &'static str)>;

const NO_METHOD: i64 = -32601;
const BAD_PARAMS: i64 = -32602;
const NOT_FOUND: i64 = -32002;
const LOGIN: i64 = -32000;

fn update(session: &str, update: Value) -> Value {
    json!({"jsonrpc":"2.0","method":"session/update","params":{"sessionId":session,"update":update}})
}

fn chunk(session: &str, kind: &str, text: &str) -> Value {
    update(session, json!({"sessionUpdate":kind,"content":{"type":"text","text":text}}))
}

fn modes(current: &str) -> Value {
    json!({"currentModeId":current,"availableModes":[{"id":"ask","name":"Ask"},{"id":"code","name":"Code"}]})
}

impl Process {
    pub(super) fn new(name: &str, quirks: Quirks) -> Process {
        Process {
            name: name.to_owned(),
            quirks,
            initialized: false,
            held: BTreeMap::new(),
            turns: Vec::new(),
            late: VecDeque::new(),
            asked: 0,
            answered: BTreeSet::new(),
            hung: false,
            ignores_cancel: false,
        }
    }

    /// Whether it could say something without being told something first.
    pub(super) fn is_busy(&self) -> bool {
        let acts = self.turns.iter().any(|turn| turn.waits.is_none());
        !self.hung && (acts || !self.late.is_empty())
    }

    /// Its session ids mean something else in each process.
    pub(super) fn is_from_zero(&self) -> bool {
        self.quirks.from_zero
    }

    pub(super) fn hang(&mut self) {
        self.hung = true;
        self.late.clear();
    }

    /// A part of a replay is still to come.
    pub(super) fn is_replaying(&self) -> bool {
        !self.late.is_empty()
    }

    /// Reads one line from stdin; what it says goes to `out`.
    pub(super) fn read(
        &mut self,
        line: &[u8],
        disk: &mut Disk,
        rng: &mut Rng,
        truth: &mut Truth,
        out: &mut Vec<Value>,
    ) -> Result<(), String> {
        let line: Value =
            serde_json::from_slice(line).map_err(|e| format!("agent got no JSON: {e}"))?;
        let params = &line["params"];
        match (line["method"].as_str(), line.get("id")) {
            (Some(method), Some(id)) => {
                let answer = self.asked_for(method, id, params, disk, rng, truth, out)?;
                match answer {
                    None => {}
                    Some(Ok(result)) => {
                        out.push(json!({"jsonrpc":"2.0","id":id,"result":result}));
                    }
                    Some(Err((code, text))) => out.push(
                        json!({"jsonrpc":"2.0","id":id,"error":{"code":code,"message":text}}),
                    ),
                }
            }
            (Some("session/cancel"), None) => {
                for turn in &mut self.turns {
                    if turn.session == params["sessionId"].as_str().unwrap_or_default() {
                        turn.cancelled = true;
                    }
                }
            }
            (Some(_), None) => {}
            (None, _) => self.answered(&line, truth)?,
        }
        Ok(())
    }

    /// acpd answered a request for permission.
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
                if !truth.consents.contains(&(tool.clone(), option.to_owned())) {
                    return Err(format!("agent was told `{option}` for {tool}, by nobody"));
                }
            }
            Some("cancelled") if turn.cancelled => truth.hit("permission cancelled"),
            // The session was closed in the meantime. No consent, in any case.
            None if line.get("error").is_some() => truth.hit("permission refused"),
            _ => return Err(format!("agent got a strange answer for {tool}: {line}")),
        }
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one request")]
    fn asked_for(
        &mut self,
        method: &str,
        id: &Value,
        params: &Value,
        disk: &mut Disk,
        rng: &mut Rng,
        truth: &mut Truth,
        out: &mut Vec<Value>,
    ) -> Result<Option<Answer>, String> {
        let session = params["sessionId"].as_str().unwrap_or_default().to_owned();
        let needs_login =
            matches!(method, "session/new" | "session/fork" | "session/load" | "session/prompt");
        if needs_login && disk.logged_out {
            truth.hit("agent wanted a login");
            return Ok(Some(Err((LOGIN, "log in first"))));
        }
        let answer = match method {
            "initialize" => {
                self.initialized = true;
                Ok(self.capabilities())
            }
            "authenticate" => {
                disk.logged_out = false;
                Ok(json!({}))
            }
            "session/new" => {
                if self.quirks.from_zero && self.held.is_empty() {
                    disk.next = 0;
                }
                let made = format!("{}-{}", self.name, disk.next);
                disk.next += 1;
                self.held.insert(made.clone(), "ask".to_owned());
                let commands =
                    json!({"sessionUpdate":"available_commands_update","availableCommands":[]});
                if rng.permille(300) {
                    truth.hit("update before the session was made");
                    out.push(update(&made, commands));
                }
                Ok(json!({"sessionId":made,"modes":modes("ask")}))
            }
            "session/fork" => {
                if !self.held.contains_key(&session) {
                    return Err(format!("fork of {session}, which this process does not hold"));
                }
                truth.hit("forked");
                let made = format!("{}-{}", self.name, disk.next);
                disk.next += 1;
                self.held.insert(made.clone(), "ask".to_owned());
                if let Some(log) = disk.sessions.get(&session).cloned() {
                    disk.sessions.insert(made.clone(), log);
                }
                Ok(json!({"sessionId":made,"modes":modes("ask")}))
            }
            "session/list" if self.quirks.list => {
                let all = disk.sessions.keys().map(|id| json!({"sessionId":id,"cwd":"/w"}));
                Ok(json!({"sessions":all.collect::<Vec<_>>()}))
            }
            "session/resume" if self.quirks.resume && !self.quirks.resume_lies => {
                if disk.sessions.contains_key(&session) {
                    truth.hit("resumed");
                    self.held.insert(session, "ask".to_owned());
                    Ok(json!({"modes":modes("ask")}))
                } else {
                    Err((NOT_FOUND, "no such session"))
                }
            }
            "session/load" if self.quirks.load => self.load(&session, disk, truth, out),
            "session/close" if self.quirks.close => {
                self.held.remove(&session);
                for turn in self.turns.extract_if(.., |turn| turn.session == session) {
                    // Some forget the prompt with the session: acpd has to stop those.
                    if !self.ignores_cancel {
                        let ended = json!({"stopReason":"cancelled"});
                        out.push(json!({"jsonrpc":"2.0","id":turn.id,"result":ended}));
                    }
                }
                Ok(json!({}))
            }
            "session/set_mode" => {
                let mode = params["modeId"].as_str().unwrap_or_default();
                self.held.insert(session, mode.to_owned());
                Ok(json!({}))
            }
            "session/prompt" => return self.prompt(session, id, params, disk, rng, truth, out),
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
        json!({
            "protocolVersion": 1,
            "agentCapabilities": {"loadSession": quirks.load, "sessionCapabilities": session},
            "agentInfo": {"name": self.name, "version": "1"},
        })
    }

    fn load(
        &mut self,
        session: &str,
        disk: &mut Disk,
        truth: &mut Truth,
        out: &mut Vec<Value>,
    ) -> Answer {
        if disk.bad_loads > 0 {
            disk.bad_loads -= 1;
            truth.hit("load failed for now");
            return Err((BAD_PARAMS, "locked"));
        }
        let Some(turns) = disk.sessions.get(session) else {
            truth.hit("load of an unknown session");
            return Err((NOT_FOUND, "no such session"));
        };
        truth.hit("loaded with replay");
        self.held.insert(session.to_owned(), "ask".to_owned());
        let mut replay = Vec::new();
        for (prompt, answers) in turns {
            replay.push(chunk(session, "user_message_chunk", prompt));
            replay.extend(answers.iter().map(|text| chunk(session, "agent_message_chunk", text)));
        }
        if self.quirks.late_replay {
            self.late.extend(replay.split_off(replay.len() / 2));
        }
        out.extend(replay);
        Ok(json!({"modes":modes("ask")}))
    }

    #[expect(clippy::too_many_arguments, reason = "the parts of one request")]
    fn prompt(
        &mut self,
        session: String,
        id: &Value,
        params: &Value,
        disk: &mut Disk,
        rng: &mut Rng,
        truth: &mut Truth,
        out: &mut Vec<Value>,
    ) -> Result<Option<Answer>, String> {
        let blocks = params["prompt"].as_array().map(Vec::as_slice).unwrap_or_default();
        // What comes before the client's own words is a summary.
        if blocks.len() > 1 {
            truth.hit("summary before a prompt");
        }
        let text = blocks.last().and_then(|block| block["text"].as_str()).unwrap_or_default();
        let text = text.to_owned();
        if !truth.received.insert(text.clone()) {
            return Err(format!("prompt {text} reached an agent twice"));
        }
        if !self.held.contains_key(&session) {
            return Err(format!("prompt {text} for {session}, which this process does not hold"));
        }
        if self.turns.iter().any(|turn| turn.session == session) {
            return Err(format!("prompt {text} came while another turn of {session} runs"));
        }
        if !self.quirks.from_zero {
            disk.sessions.entry(session.clone()).or_default().push((text.clone(), Vec::new()));
        }
        if self.quirks.echo {
            out.push(chunk(&session, "user_message_chunk", &text));
        }
        let acts = [Act::Chunk, Act::Chunk, Act::Chunk, Act::Tool, Act::Ask, Act::Mode, Act::Odd];
        let length = if rng.permille(20) { 60 } else { rng.below(6) };
        let plan = (0..length).map(|_| acts[rng.below(acts.len())]).collect();
        let turn = Turn {
            session,
            id: id.clone(),
            text,
            plan,
            told: Vec::new(),
            said: 0,
            cancelled: false,
            waits: None,
        };
        self.turns.push(turn);
        Ok(None)
    }

    /// Goes on with something by itself.
    pub(super) fn work(&mut self, disk: &mut Disk, rng: &mut Rng, truth: &mut Truth) -> Vec<Value> {
        if let Some(line) = self.late.pop_front() {
            truth.hit("late replay");
            return vec![line];
        }
        let free: Vec<usize> =
            (0..self.turns.len()).filter(|at| self.turns[*at].waits.is_none()).collect();
        let Some(&at) = rng.pick(&free) else { return Vec::new() };
        let stops = self.turns[at].cancelled && !self.ignores_cancel;
        let act = if stops { None } else { self.turns[at].plan.pop_front() };
        if self.turns[at].cancelled && self.ignores_cancel {
            truth.hit("cancel ignored");
            return Vec::new();
        }
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
            Act::Tool => update(
                &turn.session,
                json!({"sessionUpdate":"tool_call","toolCallId":format!("{}-t", turn.text),"title":"x"}),
            ),
            Act::Mode => update(
                &turn.session,
                json!({"sessionUpdate":"current_mode_update","currentModeId":"code"}),
            ),
            Act::Odd => update(&turn.session, json!({"sessionUpdate":"not_known_yet","x":[1]})),
            Act::Ask => {
                self.asked += 1;
                let tool = format!("{}-{}", turn.text, self.asked);
                turn.waits = Some((self.asked, tool.clone()));
                json!({"jsonrpc":"2.0","id":self.asked,"method":"session/request_permission","params":{
                    "sessionId":turn.session,"toolCall":{"toolCallId":tool},
                    "options":[{"optionId":"yes","name":"Yes","kind":"allow_once"},
                               {"optionId":"no","name":"No","kind":"reject_once"}]}})
            }
        };
        if !line["params"]["update"].is_null() {
            line["params"]["update"]["_meta"] = json!({"turn":turn.text,"n":turn.said});
            turn.said += 1;
        }
        vec![line]
    }
}
