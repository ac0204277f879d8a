//! Connections that watch all rows (`_acpd/watch`), in some of the runs. At rest each has the rows
//! that a new watcher gets.

use std::collections::BTreeMap;

use acp_wire::{Id, Message, build, parse};
use acpd_api::{AgentInfo, Changed, InteractionList, SessionInfo, SessionList, Watched, method};
use acpd_core::ids::ClientId;
use acpd_core::{ClientEvent, ClientOrigin, Input, ToClient};
use bytes::Bytes;
use serde_json::{Value, from_value, json};

use super::world::{World, client_line};
use crate::rng::Rng;

/// Most watchers at the same time.
const MOST: usize = 3;

/// The watchers, with random numbers of their own: no other part of a run depends on these.
#[derive(Debug)]
pub(super) struct Watchers {
    rng: Rng,
    open: BTreeMap<ClientId, Watcher>,
}

#[derive(Debug, Default)]
struct Watcher {
    rows: Watched,
    /// Rows that the watcher has not read yet.
    waiting: Option<Bytes>,
    /// The answer to its last request.
    answer: Option<Answer>,
}

#[derive(Debug)]
enum Answer {
    Line(Bytes),
    Agents(Vec<AgentInfo>),
}

impl Watchers {
    pub(super) fn new(seed: u64) -> Watchers {
        Watchers { rng: Rng::new(!seed), open: BTreeMap::new() }
    }

    /// Takes an effect for one of these connections; otherwise returns it. Fails if rows come
    /// before the watcher has read the last ones.
    pub(super) fn take(
        &mut self,
        id: ClientId,
        what: ToClient,
    ) -> Result<Option<ToClient>, String> {
        let Some(watcher) = self.open.get_mut(&id) else { return Ok(Some(what)) };
        match what {
            ToClient::Rows(line) => {
                if watcher.waiting.replace(line).is_some() {
                    return Err(format!("watcher {}: rows pile up", id.0));
                }
            }
            ToClient::Line(line) => watcher.answer = Some(Answer::Line(line)),
            ToClient::Status { status, .. } => watcher.answer = Some(Answer::Agents(status.agents)),
            other => return Err(format!("watcher {}: got {other:?}", id.0)),
        }
        Ok(None)
    }

    pub(super) fn drop_all(&mut self) {
        self.open.clear();
    }
}

impl Watcher {
    /// Reads the waiting rows. Returns whether there were any.
    fn read(&mut self) -> Result<bool, String> {
        let Some(line) = self.waiting.take() else { return Ok(false) };
        match parse(&line) {
            Ok(Message::Response { .. }) => {
                self.rows = from_value(result(&line)?).map_err(unreadable)?;
            }
            Ok(Message::Notification { params: Some(params), .. }) => {
                let changed: Changed = serde_json::from_str(params.get()).map_err(unreadable)?;
                self.rows.apply(changed);
            }
            other => return Err(format!("{other:?} is neither rows nor changes of them")),
        }
        Ok(true)
    }
}

impl World {
    pub(super) fn watchers_step(&mut self) -> Result<(), String> {
        let Some(watchers) = &mut self.watchers else { return Ok(()) };
        let ids: Vec<_> = watchers.open.keys().copied().collect();
        let one = watchers.rng.pick(&ids).copied();
        match (watchers.rng.below(100), one) {
            (0..3, _) if ids.len() < MOST => self.begin_to_watch()?,
            (3, Some(id)) => {
                self.truth.hit("watcher went away");
                watchers.open.remove(&id);
                self.feed(Input::Client(id, ClientEvent::Closed))?;
            }
            (4..30, Some(id)) => drop(self.read_rows(id)?),
            _ => {}
        }
        Ok(())
    }

    /// Lets all watchers read. Returns whether there was something to read.
    pub(super) fn watchers_read(&mut self) -> Result<bool, String> {
        let mut moved = false;
        for id in self.watcher_ids() {
            moved |= self.read_rows(id)?;
        }
        Ok(moved)
    }

    fn watcher_ids(&self) -> Vec<ClientId> {
        self.watchers.iter().flat_map(|watchers| watchers.open.keys().copied()).collect()
    }

    fn begin_to_watch(&mut self) -> Result<(), String> {
        let id = self.next_client();
        let Some(watchers) = &mut self.watchers else { return Ok(()) };
        watchers.open.insert(id, Watcher::default());
        self.feed(Input::Client(id, ClientEvent::Opened(ClientOrigin::User)))?;
        self.ask(id, method::WATCH)
    }

    fn read_rows(&mut self, id: ClientId) -> Result<bool, String> {
        let watcher = self.watchers.as_mut().and_then(|watchers| watchers.open.get_mut(&id));
        let Some(watcher) = watcher else { return Ok(false) };
        let has_read = watcher.read().map_err(|error| format!("watcher {}: {error}", id.0))?;
        if has_read {
            self.truth.hit("watched rows read");
            self.feed(Input::Client(id, ClientEvent::RowsWritten))?;
        }
        Ok(has_read)
    }

    fn ask(&mut self, id: ClientId, method: &str) -> Result<(), String> {
        let line = build::request(&Id::from(1), method, &json!({}));
        self.feed(client_line(id, line))
    }

    fn answer(&mut self, id: ClientId, method: &str) -> Result<Answer, String> {
        self.ask(id, method)?;
        let watcher = self.watchers.as_mut().and_then(|watchers| watchers.open.get_mut(&id));
        let answer = watcher.and_then(|watcher| watcher.answer.take());
        answer.ok_or_else(|| format!("watcher {}: `{method}` was not answered at once", id.0))
    }

    /// When nothing moves, every watcher knows what a new one gets.
    pub(super) fn check_watchers(&mut self) -> Result<(), String> {
        for id in self.watcher_ids() {
            let mut asked = Watched::default();
            if let Answer::Line(line) = self.answer(id, method::SESSION_LIST)? {
                let list: SessionList = from_value(result(&line)?).map_err(unreadable)?;
                asked.sessions = list.sessions;
            }
            if let Answer::Agents(agents) = self.answer(id, method::AGENT_LIST)? {
                asked.agents = agents;
            }
            if let Answer::Line(line) = self.answer(id, method::INTERACTION_LIST)? {
                let list: InteractionList = from_value(result(&line)?).map_err(unreadable)?;
                asked.interactions = list.interactions;
            }
            let watchers = self.watchers.as_ref();
            let known = watchers.and_then(|watchers| watchers.open.get(&id)).map(|at| &at.rows);
            let (known, asked) = (known.cloned().map(sorted), Some(sorted(asked)));
            if known != asked {
                return Err(format!("watcher {}: knows {known:?}, and is told {asked:?}", id.0));
            }
            self.truth.hit("watcher knows everything");
        }
        Ok(())
    }
}

fn sorted(mut rows: Watched) -> Watched {
    rows.sessions.sort_by_key(SessionInfo::row_key);
    rows.agents.sort_by(|a, b| a.name.cmp(&b.name));
    rows.interactions.sort_by(|a, b| a.id.cmp(&b.id));
    rows
}

fn result(line: &[u8]) -> Result<Value, String> {
    let mut line: Value = serde_json::from_slice(line).map_err(unreadable)?;
    Ok(line["result"].take())
}

fn unreadable(error: serde_json::Error) -> String {
    error.to_string()
}
