//! What a model client with a token remembers, so that it can come back after a lost connection: the client's
//! side of `docs/protocol.md`, "Coming back after a lost connection", written as plainly as possible.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use serde_json::{Value, json};

use super::client::{Place, line};
use super::store::Store;

/// Takes the place of a request that is answered and not safe.
const NO_OP: &[u8] = br#"{"jsonrpc":"2.0","method":"_acpd/client/answered","params":{"ids":[]}}"#;

/// The memory of one client over all its connections.
#[derive(Debug, Default)]
pub(super) struct Ride {
    pub(super) token: String,
    generation: Option<Value>,
    /// Whether `initialize` is answered on this connection.
    pub(super) up: bool,
    /// The daemon refused to take it back.
    pub(super) refused: bool,
    /// Since when it has no connection.
    pub(super) away: u64,
    /// So many lines are safe, and these are not.
    safe: u64,
    lines: VecDeque<Bytes>,
    /// Lines on their way to the daemon.
    pub(super) wire: VecDeque<Bytes>,
    /// Requests that are not answered: number of the line, the line, session of a load.
    open: BTreeMap<String, (u64, Bytes, Option<String>)>,
    /// Questions of the daemon, and the line that answered.
    asked: BTreeMap<u64, Option<u64>>,
    /// Answers that it has, which the daemon does not know.
    taken: Vec<Value>,
}

/// The id of every `initialize` that comes back.
pub(super) const RETURN: &str = "return";

impl Ride {
    pub(super) fn new(number: u64) -> Ride {
        Ride { token: format!("token-{number:016}"), ..Ride::default() }
    }

    fn last(&self) -> u64 {
        self.safe + self.lines.len() as u64
    }

    /// A line that counts.
    pub(super) fn send(&mut self, line: Bytes) {
        self.lines.push_back(line.clone());
        if self.up {
            self.wire.push_back(line);
        }
    }

    pub(super) fn request(&mut self, id: &str, line: Bytes, load: Option<String>) {
        self.send(line.clone());
        self.open.insert(id.to_owned(), (self.last(), line, load));
    }

    /// A question is answered with this line.
    pub(super) fn answer(&mut self, question: &Value, line: Bytes) {
        self.send(line);
        let last = self.last();
        let number = question.as_u64().unwrap_or_default();
        self.asked.entry(number).and_modify(|answered| *answered = Some(last));
    }

    /// A question came; `false` if it is one that it has.
    pub(super) fn ask(&mut self, question: u64) -> bool {
        self.asked.insert(question, None).is_none()
    }

    pub(super) fn withdraw(&mut self, question: u64) {
        self.asked.remove(&question);
    }

    /// A request is answered. The daemon is told at once, or together with a later one.
    pub(super) fn answered(&mut self, id: &Value) {
        if let Some((number, ..)) = self.open.remove(&id.to_string())
            && number > self.safe
        {
            self.lines[(number - self.safe - 1) as usize] = Bytes::from_static(NO_OP);
        }
        self.taken.push(id.clone());
        if self.taken.len() > 1 || self.last().is_multiple_of(2) {
            let ids = std::mem::take(&mut self.taken);
            let method = acpd_api::method::CLIENT_ANSWERED;
            self.send(line(&json!({"jsonrpc":"2.0","method":method,"params":{"ids":ids}})));
        }
    }

    /// The daemon says how many lines are safe.
    pub(super) fn received(&mut self, lines: u64, store: &Store) -> Result<(), String> {
        let committed = store.snapshot.clients.get(&self.token).map_or(0, |c| c.received);
        if lines > committed || lines < self.safe || lines > self.last() {
            let (safe, last) = (self.safe, self.last());
            return Err(format!("{lines} lines received of {safe}..{last}, committed {committed}"));
        }
        while self.safe < lines {
            self.safe += 1;
            self.lines.pop_front();
        }
        let safe = self.safe;
        self.asked.retain(|_, answered| answered.is_none_or(|number| number > safe));
        Ok(())
    }

    /// Returns whether it was ever taken.
    pub(super) fn is_known(&self) -> bool {
        self.generation.is_some()
    }

    /// The connection is lost. Who was only told to come later has been away since before.
    pub(super) fn lost(&mut self, now: u64) {
        if self.up || !self.is_known() {
            self.away = now;
        }
        self.up = false;
        self.refused = false;
        self.wire.clear();
    }

    /// What it says of itself in `initialize`.
    pub(super) fn meta(&self, places: &BTreeMap<String, Place>) -> Value {
        let Some(generation) = &self.generation else {
            return json!({"token":self.token});
        };
        let seen = places.iter().filter_map(|(id, place)| Some((id.clone(), place.cursor()?)));
        let sessions: BTreeMap<String, u64> = seen.collect();
        let ids = self.open.keys().map(|id| serde_json::from_str::<Value>(id).unwrap_or_default());
        let open: Vec<Value> = ids.collect();
        let asked: Vec<u64> = self.asked.keys().copied().collect();
        json!({"token":self.token,"resume":
            {"generation":generation,"sessions":sessions,"open":open,"asked":asked}})
    }

    /// `initialize` is answered: what the daemon does not have is sent.
    pub(super) fn greeted(
        &mut self,
        answer: &Value,
        places: &BTreeMap<String, Place>,
        store: &Store,
    ) -> Result<(), String> {
        if !answer["error"].is_null() {
            self.refused = true;
            return Ok(());
        }
        let own = &answer["result"]["agentCapabilities"]["_meta"]["_acpd"];
        let generation = self.generation.get_or_insert_with(|| own["generation"].clone());
        if own["generation"] != *generation || !generation.is_string() {
            return Err(format!("another generation: {own}"));
        }
        self.received(own["received"].as_u64().unwrap_or_default(), store)?;
        self.up = true;
        let first = self.safe + 1;
        self.wire = self.lines.iter().cloned().collect();
        for (number, line, load) in self.open.values() {
            if *number >= first {
                self.wire[(number - first) as usize] = again(line, load.as_deref(), places);
            }
        }
        let named = own["again"].as_array().cloned().unwrap_or_default();
        let mut lost: Vec<(u64, String)> = Vec::new();
        for id in named.iter().map(Value::to_string) {
            match self.open.get(&id) {
                Some((number, ..)) if *number < first => lost.push((*number, id)),
                Some(_) => {}
                None => return Err(format!("{id} is to be sent again, and is not open")),
            }
        }
        lost.sort();
        for (_, id) in lost {
            let next = self.last() + 1;
            let Some((number, line, load)) = self.open.get_mut(&id) else { continue };
            *number = next;
            self.lines.push_back(line.clone());
            self.wire.push_back(again(line, load.as_deref(), places));
        }
        Ok(())
    }
}

/// A request that is sent once more: a load goes on where it was cut off.
fn again(line: &Bytes, load: Option<&str>, places: &BTreeMap<String, Place>) -> Bytes {
    let seen = match load.and_then(|session| places.get(session)) {
        Some(Place::Loading { seen: Some(seen), .. }) => seen.to_string(),
        _ => return line.clone(),
    };
    acp_wire::set_member(line, &["params", "_meta", acpd_api::NAMESPACE, "after"], seen.as_bytes())
}
