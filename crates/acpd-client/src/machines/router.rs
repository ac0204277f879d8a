//! Routing between one client and the daemons of several machines. No I/O, no clock.
//!
//! ```text
//!  client                       router                               daemons
//!  message about `box/…`   ──▶  without `box/`                  ──▶  box
//!  list without a machine  ──▶  to all                          ──▶  here, box, pc
//!  any other message       ──▶  to the machine of `initialize`  ──▶  here
//!  one list                ◀──  joined, after 2 s at the latest ◀──  here, box
//!  answer, notice, request ◀──  with `box/`                     ◀──  box
//! ```
//!
//! | a machine | open requests to it | its rows |
//! | --- | --- | --- |
//! | is away, and its connection will be resumed | wait | stay |
//! | cannot be reached | get an error | stay; it is tried again while the client watches |
//! | is back | | the client gets the differences |

use std::collections::HashMap;
use std::time::{Duration, Instant};

use acp_wire::{
    ErrorObject, Id, Message, Outcome, build, code, parse, remove_member, set_id, set_member,
    str_at,
};
use acpd_api::{Changed, Empty, HostState, LogResult, NAMESPACE, Watched, method};
use bytes::Bytes;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::names::Names;

/// Longest wait for each machine's part of a list.
const LIST: Duration = Duration::from_secs(2);
/// Pause before a watched machine is tried again.
const RETRY: Duration = Duration::from_secs(15);
/// Name of the client's own machine for people.
const HERE: &str = "here";
const CANCEL_REQUEST: &str = "$/cancel_request";

/// Requests that all machines answer.
const LISTS: [&str; 5] = [
    method::STATUS,
    method::WATCH,
    method::SESSION_LIST,
    method::INTERACTION_LIST,
    method::AGENT_LIST,
];

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RouteStep {
    ToClient(Bytes),
    /// Connects first, if there is no connection.
    ToMachine(usize, Bytes),
    /// The client has left, or its conversation is lost.
    Close,
}

use RouteStep::{Close, ToClient, ToMachine};

#[derive(Debug, Clone, Default)]
struct MachineState {
    /// This connection had `initialize`.
    is_greeted: bool,
    error: Option<String>,
    /// The rows that the client has, or gets with the joined list.
    rows: Watched,
    retry_at: Option<Instant>,
}

#[derive(Debug)]
enum OpenRequest {
    /// Of the client to one machine.
    One {
        machine: usize,
        method: String,
    },
    List(OpenList),
    /// The greeting of another machine than that of the client's `initialize`.
    Hello(usize),
    /// All rows of a machine that is back.
    Watch(usize),
}

impl OpenRequest {
    /// Returns the machine that answers alone.
    fn machine(&self) -> Option<usize> {
        match self {
            OpenRequest::One { machine, .. }
            | OpenRequest::Hello(machine)
            | OpenRequest::Watch(machine) => Some(*machine),
            OpenRequest::List(_) => None,
        }
    }
}

#[derive(Debug)]
struct OpenList {
    method: String,
    /// `None`: still missing. An empty list counts for a machine that cannot be reached.
    parts: Vec<Option<Value>>,
    until: Option<Instant>,
}

#[derive(Debug)]
pub(crate) struct Router {
    names: Names,
    machines: Vec<MachineState>,
    open: HashMap<Id, OpenRequest>,
    /// Requests of the router itself.
    own_requests: u64,
    /// The machine of requests that name none.
    bound: usize,
    /// The client's `initialize`, for other machines.
    hello: Option<Bytes>,
    watches: bool,
}

impl Router {
    /// The client's own machine has an empty name.
    pub(crate) fn new(names: Vec<String>) -> Router {
        Router {
            machines: vec![MachineState::default(); names.len()],
            names: Names(names),
            open: HashMap::new(),
            own_requests: 0,
            bound: 0,
            hello: None,
            watches: false,
        }
    }

    pub(crate) fn on_client(&mut self, line: Bytes, now: Instant) -> Vec<RouteStep> {
        let (id, method, params) = match parse(&line) {
            Ok(Message::Request { id, method, params }) => (Some(id), method, params),
            Ok(Message::Notification { method, params }) => (None, method, params),
            Ok(Message::Response { id, .. }) => {
                let own = self.names.own().unwrap_or(self.bound);
                let (machine, id) = self.names.asker(&id).unwrap_or((own, id));
                return vec![ToMachine(machine, set_id(&line, &id))];
            }
            Err(_) => return vec![ToMachine(self.bound, line)],
        };
        let method = method.into_owned();
        if method == method::CLIENT_LEAVE {
            return vec![Close];
        }
        let cancelled = params.filter(|_| method == CANCEL_REQUEST).and_then(|params| {
            let id = value_of(params).get("requestId").and_then(Id::from_value)?;
            self.open.get(&id)
        });
        let (machine, line) = match cancelled {
            Some(OpenRequest::One { machine, .. }) => (Some(*machine), line),
            _ => self.names.addressee(line.clone(), &method),
        };
        if let Some(id) = id.as_ref().filter(|id| !id.is_null() && self.open.contains_key(id)) {
            let error =
                ErrorObject::new(code::INVALID_REQUEST, "the id is that of an open request");
            return vec![ToClient(build::error(id, &error))];
        }
        let is_list = machine.is_none() && LISTS.contains(&method.as_str());
        match id {
            Some(id) if is_list => self.ask_all(id, method, &line, now),
            id => self.ask_one(id, machine.unwrap_or(self.bound), method, line),
        }
    }

    fn ask_all(&mut self, id: Id, method: String, line: &Bytes, now: Instant) -> Vec<RouteStep> {
        self.watches |= method == method::WATCH;
        let count = self.machines.len();
        // One machine is as good as no list: its user waits as for the daemon of this machine.
        let until = (count > 1).then(|| now + LIST);
        let list = OpenList { method, parts: vec![None; count], until };
        self.open.insert(id, OpenRequest::List(list));
        (0..count).map(|machine| ToMachine(machine, line.clone())).collect()
    }

    fn ask_one(
        &mut self,
        id: Option<Id>,
        machine: usize,
        method: String,
        line: Bytes,
    ) -> Vec<RouteStep> {
        let mut steps = Vec::new();
        if method == "initialize" {
            self.bound = machine;
            self.hello = Some(line.clone());
            self.machines[machine].is_greeted = true;
        } else if method == method::SESSION_ATTACH || !method.starts_with(NAMESPACE) {
            steps.extend(self.greet(machine, &line));
        }
        if let Some(id) = id {
            self.open.insert(id, OpenRequest::One { machine, method });
        }
        steps.push(ToMachine(machine, line));
        steps
    }

    /// Greets a machine as the client has greeted another one, bound to the agent of `line`.
    fn greet(&mut self, machine: usize, line: &Bytes) -> Option<RouteStep> {
        let hello = self.hello.clone().filter(|_| !self.machines[machine].is_greeted)?;
        self.machines[machine].is_greeted = true;
        let agent = json!(str_at(line, &["params", "ref", "agent"])).to_string();
        let hello = set_member(&hello, &["params", "_meta", NAMESPACE, "agent"], agent.as_bytes());
        // A client that resumes its connection does so with one machine.
        let hello = remove_member(&hello, &["params", "_meta", NAMESPACE, "client"]);
        Some(ToMachine(machine, set_id(&hello, &self.own_id(OpenRequest::Hello(machine)))))
    }

    fn watch(&mut self, machine: usize) -> RouteStep {
        let id = self.own_id(OpenRequest::Watch(machine));
        ToMachine(machine, build::request(&id, method::WATCH, &Empty {}))
    }

    fn own_id(&mut self, request: OpenRequest) -> Id {
        self.own_requests += 1;
        let id = format!("\"acpd-{}\"", self.own_requests);
        let id = serde_json::from_str(&id).unwrap_or_else(|_| Id::null());
        self.open.insert(id.clone(), request);
        id
    }

    pub(crate) fn on_machine(&mut self, machine: usize, line: &Bytes) -> Vec<RouteStep> {
        let line = match parse(line) {
            Ok(Message::Response { id, outcome }) => {
                return self.on_answer(machine, &id, outcome, line);
            }
            Ok(Message::Request { id, .. }) => {
                let line = set_id(line, &self.names.shared_id(machine, &id));
                // The id of a question in the notices about it.
                let id = ["params", "_meta", NAMESPACE, "id"];
                let line = self.names.share_at(machine, &line, &id);
                self.names.share_at(machine, &line, &["params", "sessionId"])
            }
            Ok(Message::Notification { method, params: Some(params) }) => match &*method {
                method::CHANGED => return self.on_changed(machine, params),
                CANCEL_REQUEST => self.names.share_at(machine, line, &["params", "requestId"]),
                _ => self.shared_notice(machine, line, &method, params),
            },
            Ok(Message::Notification { .. }) => line.clone(),
            // Another reader than this one may find names of another machine in it.
            Err(_) => return Vec::new(),
        };
        vec![ToClient(line)]
    }

    fn on_answer(
        &mut self,
        machine: usize,
        id: &Id,
        outcome: Outcome<'_>,
        line: &Bytes,
    ) -> Vec<RouteStep> {
        // A machine answers no request to another one.
        let is_asked = |open: &OpenRequest| open.machine().is_none_or(|of| of == machine);
        if !self.open.get(id).is_some_and(is_asked) {
            return Vec::new();
        }
        match (self.open.remove(id), outcome) {
            (Some(OpenRequest::One { method, .. }), Outcome::Result(result)) => {
                vec![ToClient(self.shared_answer(machine, &method, result, line))]
            }
            (Some(OpenRequest::One { .. }), Outcome::Error(_)) => vec![ToClient(line.clone())],
            (Some(OpenRequest::Watch(_)), Outcome::Result(result)) => {
                // A late machine has answered.
                let mut steps = self.set_error(machine, None);
                let old = std::mem::take(&mut self.machines[machine].rows);
                self.machines[machine].rows = self.shared_rows(machine, result);
                steps.extend(self.notice(&self.machines[machine].rows.changes_from(&old)));
                steps
            }
            (Some(OpenRequest::List(mut list)), outcome) => {
                list.parts[machine] = Some(match outcome {
                    Outcome::Result(result) if list.method == method::WATCH => {
                        self.machines[machine].rows = self.shared_rows(machine, result);
                        Value::Null
                    }
                    Outcome::Result(result) => self.shared_value(machine, result),
                    Outcome::Error(error) => {
                        let error = ErrorObject::from_raw(error).message;
                        self.machines[machine].error = Some(error);
                        Value::Null
                    }
                });
                self.open.insert(id.clone(), OpenRequest::List(list));
                self.join_lists(|_| false)
            }
            // The greeting of a machine, or an error instead of its rows.
            _ => Vec::new(),
        }
    }

    fn shared_answer(
        &self,
        machine: usize,
        method: &str,
        result: &RawValue,
        line: &Bytes,
    ) -> Bytes {
        let share_at = |line: &Bytes, place: &[&str]| self.names.share_at(machine, line, place);
        match method {
            "initialize" => {
                let at = |part| ["result", part, "_meta", NAMESPACE, "agent"];
                share_at(&share_at(line, &at("agentCapabilities")), &at("capabilities"))
            }
            method::SESSION_LOG => {
                let Ok(page) = serde_json::from_str::<LogResult>(result.get()) else {
                    return line.clone();
                };
                let mut entries = page.entries;
                for entry in &mut entries {
                    let line = Bytes::copy_from_slice(entry.line.get().as_bytes());
                    if let Ok(Message::Notification { method, params: Some(params) }) = parse(&line)
                        && let line = self.shared_notice(machine, &line, &method, params)
                        && let Ok(shared) = serde_json::from_slice(&line)
                    {
                        entry.line = shared;
                    }
                }
                let entries = serde_json::to_vec(&entries).unwrap_or_default();
                set_member(
                    &share_at(line, &["result", "sessionId"]),
                    &["result", "entries"],
                    &entries,
                )
            }
            method if method.starts_with(NAMESPACE) || method.starts_with("session/") => {
                let shared = self.shared_value(machine, result);
                set_member(line, &["result"], shared.to_string().as_bytes())
            }
            _ => line.clone(),
        }
    }

    /// Content of the protocol stays as it is, but for the session.
    fn shared_notice(
        &self,
        machine: usize,
        line: &Bytes,
        method: &str,
        params: &RawValue,
    ) -> Bytes {
        if method.starts_with(NAMESPACE) {
            build::notification(method, &self.shared_value(machine, params))
        } else {
            self.names.share_at(machine, line, &["params", "sessionId"])
        }
    }

    fn shared_value(&self, machine: usize, result: &RawValue) -> Value {
        let mut value = value_of(result);
        self.names.share(machine, &mut value);
        value
    }

    fn shared_rows(&self, machine: usize, result: &RawValue) -> Watched {
        serde_json::from_value(self.shared_value(machine, result)).unwrap_or_default()
    }

    fn on_changed(&mut self, machine: usize, params: &RawValue) -> Vec<RouteStep> {
        let changed = self.shared_value(machine, params);
        let Ok(changed) = serde_json::from_value(changed) else { return Vec::new() };
        let changed = Changed { hosts: Vec::new(), ..changed };
        self.machines[machine].rows.apply(changed.clone());
        self.notice(&changed)
    }

    /// Returns a notice for the client, unless its list will have the rows.
    fn notice(&self, changed: &Changed) -> Vec<RouteStep> {
        let is_pending = |open: &OpenRequest| matches!(open, OpenRequest::List(list) if list.method == method::WATCH);
        if !self.watches || self.open.values().any(is_pending) {
            return Vec::new();
        }
        vec![ToClient(build::notification(method::CHANGED, changed))]
    }

    /// Notes that a new connection to a machine is there.
    pub(crate) fn on_up(&mut self, machine: usize) -> Vec<RouteStep> {
        let mut steps = self.set_error(machine, None);
        // A request of the client came before the next attempt.
        if self.machines[machine].retry_at.take().is_some() {
            steps.push(self.watch(machine));
        }
        steps
    }

    /// Notes that a connection was lost, and is being made again.
    pub(crate) fn on_away(&mut self, machine: usize) -> Vec<RouteStep> {
        let name = shown(&self.names.0[machine]);
        let error = format!("the connection to `{name}` was lost; connecting again");
        self.set_error(machine, Some(&error))
    }

    /// Notes that such a connection is resumed.
    pub(crate) fn on_back(&mut self, machine: usize) -> Vec<RouteStep> {
        let mut steps = self.set_error(machine, None);
        if self.watches {
            steps.push(self.watch(machine));
        }
        steps
    }

    /// Notes that a machine cannot be reached, or that its connection has ended for good.
    pub(crate) fn on_down(&mut self, machine: usize, reason: &str, now: Instant) -> Vec<RouteStep> {
        let mut steps = self.set_error(machine, Some(reason));
        let is_lost = std::mem::take(&mut self.machines[machine].is_greeted);
        self.machines[machine].retry_at = self.watches.then(|| now + RETRY);
        for (id, open) in &mut self.open {
            match open {
                OpenRequest::One { machine: of, .. } if *of == machine => {
                    let error = ErrorObject::new(code::INTERNAL, reason);
                    steps.push(ToClient(build::error(id, &error)));
                }
                OpenRequest::List(list) => {
                    list.parts[machine].get_or_insert(Value::Null);
                }
                _ => {}
            }
        }
        self.open.retain(|_, open| open.machine() != Some(machine));
        steps.extend(self.join_lists(|_| false));
        steps.extend(is_lost.then_some(Close));
        steps
    }

    /// Joins lists without the machines that are late, and tries machines again.
    pub(crate) fn on_time(&mut self, now: Instant) -> Vec<RouteStep> {
        let mut steps = self.join_lists(|until| until <= now);
        for machine in 0..self.machines.len() {
            if self.machines[machine].retry_at.take_if(|at| *at <= now).is_some() {
                steps.push(self.watch(machine));
            }
        }
        steps
    }

    /// Returns when [`Router::on_time`] has something to do.
    pub(crate) fn wakes_at(&self) -> Option<Instant> {
        let lists = self.open.values().filter_map(|open| match open {
            OpenRequest::List(list) => list.until,
            _ => None,
        });
        lists.chain(self.machines.iter().filter_map(|machine| machine.retry_at)).min()
    }

    /// Answers lists that are whole or late.
    fn join_lists(&mut self, is_late: impl Fn(Instant) -> bool) -> Vec<RouteStep> {
        let is_whole = |list: &OpenList| list.parts.iter().all(Option::is_some);
        let is_due = |_: &Id, open: &mut OpenRequest| match open {
            OpenRequest::List(list) => is_whole(list) || list.until.is_some_and(&is_late),
            _ => false,
        };
        let due: Vec<_> = self.open.extract_if(is_due).collect();
        let mut steps = Vec::new();
        for (id, open) in due {
            let OpenRequest::List(list) = open else { continue };
            for (machine, _) in list.parts.iter().enumerate().filter(|(_, part)| part.is_none()) {
                let (name, seconds) = (shown(&self.names.0[machine]), LIST.as_secs());
                let error = format!("no answer from `{name}` within {seconds} s");
                self.machines[machine].error.get_or_insert(error);
                if list.method == method::WATCH {
                    steps.push(self.watch(machine));
                }
            }
            steps.push(ToClient(self.joined(&id, list)));
        }
        steps
    }

    fn joined(&self, id: &Id, list: OpenList) -> Bytes {
        let rows = |state: &MachineState| serde_json::to_value(&state.rows).unwrap_or_default();
        let mut parts: Vec<Value> = if list.method == method::WATCH {
            self.machines.iter().map(rows).collect()
        } else {
            list.parts.into_iter().flatten().filter(Value::is_object).collect()
        };
        if parts.is_empty() {
            let errors = self.machines.iter().filter_map(|state| state.error.as_deref());
            let errors = errors.collect::<Vec<_>>().join("; ");
            return build::error(id, &ErrorObject::new(code::INTERNAL, errors));
        }
        let mut whole = parts.remove(0);
        for part in parts {
            add(&mut whole, part);
        }
        let last_first = |row: &Value| std::cmp::Reverse(row["updated"].as_u64());
        if let Some(sessions) = whole.get_mut("sessions").and_then(Value::as_array_mut) {
            sessions.sort_by_key(last_first);
        }
        if let Some(questions) = whole.get_mut("interactions").and_then(Value::as_array_mut) {
            questions.sort_by_key(|row| row["at"].as_u64());
        }
        if self.machines.len() > 1 {
            whole["hosts"] = json!(self.states());
        }
        build::response(id, &whole)
    }

    fn states(&self) -> Vec<HostState> {
        let states = self.names.0.iter().zip(&self.machines).map(|(name, state)| HostState {
            name: shown(name).into(),
            error: state.error.as_deref().map(Into::into),
        });
        states.collect()
    }

    fn set_error(&mut self, machine: usize, error: Option<&str>) -> Vec<RouteStep> {
        let error = error.map(str::to_owned);
        let old = std::mem::replace(&mut self.machines[machine].error, error.clone());
        if old == error {
            return Vec::new();
        }
        self.notice(&Changed { hosts: self.states(), ..Changed::default() })
    }
}

/// Returns the name of a machine for people.
pub(super) fn shown(name: &str) -> &str {
    if name.is_empty() { HERE } else { name }
}

fn value_of(raw: &RawValue) -> Value {
    serde_json::from_str(raw.get()).unwrap_or_default()
}

/// Adds the rows and the numbers of a list to another one.
fn add(whole: &mut Value, part: Value) {
    let (Value::Object(whole), Value::Object(part)) = (whole, part) else { return };
    for (name, value) in part {
        match (whole.get_mut(&name), value) {
            (Some(Value::Array(rows)), Value::Array(more)) => rows.extend(more),
            (Some(Value::Number(count)), Value::Number(more)) => {
                let sum = count.as_u64().unwrap_or_default() + more.as_u64().unwrap_or_default();
                *count = sum.into();
            }
            (None, value) => drop(whole.insert(name, value)),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests;
