//! Digests of a run: two numbers that stay the same as long as the engine behaves the same.
//!
//! - `wire` covers the bytes that clients, agents and shims receive, in order.
//! - `state` covers the snapshot after each commit and the journal lines of that commit.
//!
//! Both digest words and values chosen in this file, never the names or the shape of the engine's
//! types. So a renamed type, or a record that is split, changes nothing. A change of the engine's
//! types may need a change in [`tables`]; the numbers must stay.

use std::fmt::{self, Write as _};

use acpd_core::ids::{HostId, Requester, SessionKey};
use acpd_core::record::{
    Canceller, Desired, Dormant, EventKind, NewSession, Purpose, Record, Sender, Snapshot,
    TurnStage,
};
use acpd_core::{Effect, StopStep, ToClient, ToHost};
use bytes::Bytes;
use serde_json::json;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Digests {
    pub wire: u64,
    pub state: u64,
}

#[derive(Debug)]
pub(super) struct Digester {
    wire: Fnv,
    state: Fnv,
    text: String,
}

impl Digester {
    pub(super) fn new() -> Digester {
        Digester { wire: Fnv::new(), state: Fnv::new(), text: String::new() }
    }

    pub(super) fn digests(&self) -> Digests {
        Digests { wire: self.wire.0, state: self.state.0 }
    }

    pub(super) fn client_line(&mut self, client: u64, line: &[u8]) {
        self.sent("client", client, line);
    }

    /// Takes an effect for a watcher, a shim, an agent, a hook or the desktop. Lines for other
    /// clients count when they arrive ([`Digester::client_line`]).
    pub(super) fn effect(&mut self, effect: &Effect) {
        match effect {
            Effect::Client(client, ToClient::Rows(line)) => self.sent("rows", client.0, line),
            Effect::Close(client) => self.sent("close", client.0, b""),
            Effect::Spawn { host, agent } => self.sent("spawn", host.0, agent.as_bytes()),
            Effect::Adopt(adopt) => {
                let offset = adopt.row.offset.to_string();
                self.sent("adopt", adopt.row.host.0, offset.as_bytes());
                for line in adopt.outbox.values() {
                    self.sent("again", adopt.row.host.0, line);
                }
            }
            Effect::Host(host, order) => self.order(host.0, order),
            Effect::Hook { about, .. } => self.sent("hook", 0, about),
            Effect::Notify { title, body } => {
                self.sent("title", 0, title.as_bytes());
                self.sent("body", 0, body.as_bytes());
            }
            Effect::Exit => self.sent("exit", 0, b""),
            _ => {}
        }
    }

    fn order(&mut self, host: u64, order: &ToHost) {
        match order {
            ToHost::Write { line, .. } => self.sent("agent", host, line),
            ToHost::Ack(offset) => self.sent("ack", host, offset.to_string().as_bytes()),
            ToHost::Stop(step) => self.sent("stop", host, stop_word(*step).as_bytes()),
            ToHost::Lease(busy) => self.sent("lease", host, &[u8::from(*busy)]),
            ToHost::Forget => self.sent("forget", host, b""),
            ToHost::Note(note) => self.sent("note", host, note.as_bytes()),
        }
    }

    fn sent(&mut self, word: &str, to: u64, bytes: &[u8]) {
        self.wire.part(word.as_bytes());
        self.wire.part(&to.to_le_bytes());
        self.wire.part(bytes);
    }

    /// Takes the records of a commit, and the state after it.
    pub(super) fn commit(&mut self, records: &[Record], snapshot: &Snapshot) {
        for record in records {
            if let Record::Event(row) = record {
                self.state.part(event_word(row.kind).as_bytes());
                self.state.part(&u64::from(row.session.0).to_le_bytes());
                self.state.part(&row.seq.to_le_bytes());
                self.state.part(row.origin.as_deref().unwrap_or_default().as_bytes());
                self.state.part(&row.line);
            }
        }
        self.text.clear();
        let _: fmt::Result = tables(&mut self.text, snapshot);
        self.state.part(self.text.as_bytes());
    }
}

/// FNV-1a over parts, which are separated by their lengths.
#[derive(Debug)]
struct Fnv(u64);

impl Fnv {
    fn new() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }

    fn part(&mut self, bytes: &[u8]) {
        let length = (bytes.len() as u64).to_le_bytes();
        for byte in length.iter().chain(bytes) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

/// Writes a snapshot as text, a line per fact. `Debug` is used for strings, numbers and collections
/// of these only; values of the API are written as the API writes them.
fn tables(out: &mut String, snapshot: &Snapshot) -> fmt::Result {
    writeln!(out, "boot {}", snapshot.boot)?;
    writeln!(out, "last session {}", snapshot.last_session)?;
    for (name, row) in &snapshot.agents {
        writeln!(out, "agent {name:?} {} {:?}", desired_word(row.desired), row.fingerprint)?;
        writeln!(out, " initialize {:?} {:?}", row.initialize, row.client_meta)?;
    }
    for (name, row) in &snapshot.auth {
        writeln!(out, "login {name:?} {} {}", json!(row.state), row.since.0)?;
    }
    for (HostId(host), state) in &snapshot.hosts {
        let row = &state.row;
        write!(out, "process {host} {:?} {} {} ", row.agent, row.pid, row.start)?;
        let ready = row.ready.map(|at| at.0);
        writeln!(out, "{:?} {ready:?} {}", row.session.map(|key| key.0), row.stopping)?;
        writeln!(out, " output {} {} written {}", row.offset, row.inside, row.written)?;
        for (session, line) in state.parked.values() {
            writeln!(out, " parked {session:?} {line:?}")?;
        }
        for (chunk, line) in &state.outbox {
            writeln!(out, " outbox {chunk} {line:?}")?;
        }
    }
    sessions(out, snapshot)?;
    for ((SessionKey(session), ticket), row) in &snapshot.turns {
        let stage = match row.state {
            TurnStage::Queued => "queued".to_owned(),
            TurnStage::Dispatched { host, chunk, .. } => format!("dispatched {} {chunk}", host.0),
        };
        let cancelling = row.cancelling.map(|by| match by {
            Canceller::Client => "client",
            Canceller::Acpd => "acpd",
        });
        write!(out, "turn {session} {ticket} {stage} {} {cancelling:?} ", row.at.0)?;
        let senders: Vec<_> = row.senders.iter().map(|one| sender(Some(one))).collect();
        let senders = if senders.is_empty() { sender(None) } else { senders.join(" ") };
        writeln!(out, "{senders} {:?}", snapshot.prompts.get(&(row.session, *ticket)))?;
    }
    for ((SessionKey(session), key), row) in &snapshot.prompt_keys {
        writeln!(out, "key {session} {key:?} {} {:?}", row.turn, row.outcome)?;
    }
    for (id, row) in &snapshot.interactions {
        let session = row.session.map(|key| key.0);
        writeln!(out, "question {} {session:?} {} {}", id.0, row.host.0, row.at.0)?;
        writeln!(out, " line {:?} {}", row.line, row.frozen.is_some())?;
    }
    for (id, row) in &snapshot.asked {
        writeln!(out, "request {id} {} {}", row.host.0, purpose(&row.what))?;
    }
    for (token, client) in &snapshot.clients {
        writeln!(out, "client {token:?} {}", client.received)?;
        for (id, reply) in &client.replies {
            let session = reply.session.map(|key| key.0);
            writeln!(out, " reply {id} {:?} {session:?}", reply.line)?;
        }
    }
    for (id, row) in &snapshot.remembered {
        writeln!(out, "decision {id} {:?} {:?} {}", row.agent, row.workspace, row.at)?;
    }
    writeln!(out, "spent {} {:?}", snapshot.spent.day.0, snapshot.spent.parts)
}

fn sessions(out: &mut String, snapshot: &Snapshot) -> fmt::Result {
    for (SessionKey(key), state) in &snapshot.sessions {
        let row = &state.row;
        writeln!(out, "session {key} {:?} {:?} {:?}", row.agent, row.public_id, row.agent_id)?;
        writeln!(out, " names {:?} {:?} {:?}", row.name, row.title, row.own_title)?;
        if !row.labels.is_empty() {
            writeln!(out, " labels {:?}", row.labels)?;
        }
        writeln!(out, " begins {:?} {:?} {:?}", row.cwd, row.params, row.client_meta)?;
        let (host, rest) = (row.host.map(|host| host.0), dormant_word(row.rest));
        writeln!(out, " stands {host:?} {rest} {:?} {}", row.reason, json!(row.restore))?;
        writeln!(out, " wants {:?} {:?}", row.mode, row.options)?;
        writeln!(out, " tools {:?}", row.open_tools)?;
        for (id, child) in &row.children {
            let (public, parent) = (&child.public_id, &child.parent);
            write!(out, " child {id:?} {public:?} {parent:?} ")?;
            writeln!(out, "{} {} {}", child.cancel, child.busy, child.seq)?;
        }
        writeln!(out, " put away {} {:?}", row.archived, row.removed.map(|at| at.0))?;
        let (last, outcome) = (row.last_prompt, &row.last_outcome);
        writeln!(out, " prompts {} {} {last} {outcome:?}", row.prompts, row.heard)?;
        let told = &row.usage.told;
        writeln!(out, " usage {:?} {:?} {}", told.used, told.size, json!(told.cost))?;
        writeln!(out, " times {} {}", row.created.0, row.updated.0)?;
        writeln!(out, " journal {} {} {:?}", state.head, row.last_ticket, state.mcp_servers)?;
    }
    Ok(())
}

fn sender(sender: Option<&Sender>) -> String {
    sender.map_or_else(|| "-".to_owned(), |sender| format!("{:?} {}", sender.token, sender.id))
}

fn purpose(asked: &Purpose) -> String {
    let from = |to: &Requester| sender(Option::<Sender>::from(to.clone()).as_ref());
    let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
    match asked {
        Purpose::Initialize => "initialize".to_owned(),
        Purpose::NewSession(new) => {
            let NewSession { to, name, labels, cwd, notices, .. } = new;
            let params = text(&new.params);
            let fork = new.fork.as_ref().map(|fork| (fork.session.0, fork.head, fork.prompts));
            format!("new {} {name:?} {labels:?} {cwd:?} {params:?} {fork:?} {notices:?}", from(to))
        }
        Purpose::Adopt(adoption) => {
            let params = text(&adoption.params);
            format!("adopt {:?} {:?} {params:?} {:?}", adoption.id, adoption.cwd, adoption.notices)
        }
        Purpose::Prompt { session, .. } => format!("prompt {}", session.0),
        Purpose::Abandoned { session, .. } => format!("abandoned {session:?}"),
        Purpose::Restore { session, .. } => format!("restore {}", session.0),
        Purpose::GivenUp { session } => {
            format!("given up {:?}", session.as_deref().unwrap_or_default())
        }
        Purpose::Steer(steer) => {
            let (session, blocks) = (steer.session.0, text(&steer.blocks));
            format!("steer {} {session} {blocks:?} {:?}", from(&steer.to), steer.message)
        }
        Purpose::Relay { to, session, method, params } => {
            let session = session.map(|key| key.0);
            format!("relay {} {session:?} {method:?} {params:?}", from(to))
        }
        Purpose::Preset { session, .. } => format!("preset {}", session.0),
        _ => "nothing".to_owned(),
    }
}

fn stop_word(step: StopStep) -> &'static str {
    match step {
        StopStep::CloseStdin => "close stdin",
        StopStep::Term => "terminate",
        StopStep::Kill => "kill",
    }
}

fn desired_word(desired: Desired) -> &'static str {
    match desired {
        Desired::OnDemand => "on demand",
        Desired::Up => "up",
        Desired::Down => "down",
    }
}

fn dormant_word(dormant: Dormant) -> &'static str {
    match dormant {
        Dormant::Parked => "parked",
        Dormant::Closed => "closed",
        Dormant::NeedsLogin => "needs login",
        Dormant::Lost => "lost",
        Dormant::Failed => "failed",
        Dormant::NoDirectory => "no directory",
    }
}

fn event_word(kind: EventKind) -> &'static str {
    match kind {
        EventKind::Update => "update",
        EventKind::State(_) => "state",
        EventKind::Live => "live",
        EventKind::Notice => "notice",
        EventKind::Extension => "extension",
        EventKind::Imported => "imported",
        EventKind::Banner => "banner",
        EventKind::Child => "child",
    }
}

#[cfg(test)]
mod tests {
    use acpd_core::ids::ClientId;
    use acpd_core::record::{AgentRow, Row};
    use bytes::Bytes;

    use super::*;

    fn digests(feed: impl Fn(&mut Digester)) -> Digests {
        let mut digester = Digester::new();
        feed(&mut digester);
        digester.digests()
    }

    #[test]
    fn wire_digest_depends_on_receiver_bytes_and_order() {
        let line = |host, line: &'static str| {
            let order = ToHost::Write { chunk: 1, line: Bytes::from_static(line.as_bytes()) };
            Effect::Host(HostId(host), order)
        };
        let orders = [
            vec![line(1, "a"), line(1, "b")],
            vec![line(1, "b"), line(1, "a")],
            vec![line(1, "ab")],
            vec![line(2, "a"), line(1, "b")],
            vec![Effect::Close(ClientId(1))],
            vec![],
        ];
        let all: Vec<_> = orders
            .iter()
            .map(|effects| digests(|to| effects.iter().for_each(|effect| to.effect(effect))).wire)
            .collect();
        for (at, one) in all.iter().enumerate() {
            assert!(all[..at].iter().all(|other| one != other), "{:?}", orders[at]);
        }
    }

    #[test]
    fn state_digest_depends_on_the_snapshot_only() {
        let mut snapshot = Snapshot::default();
        let empty = digests(|to| to.commit(&[], &snapshot));
        let boot = Record::Boot { boot: 3 };
        assert_eq!(empty, digests(|to| to.commit(std::slice::from_ref(&boot), &snapshot)));
        snapshot.apply(&boot);
        assert_ne!(empty, digests(|to| to.commit(&[], &snapshot)));
        let before = digests(|to| to.commit(&[], &snapshot));
        let row = AgentRow { name: "a".to_owned(), desired: Desired::Up, ..AgentRow::default() };
        snapshot.put(Row::Agent(row));
        let up = digests(|to| to.commit(&[], &snapshot));
        assert_ne!(before, up);
        let row = AgentRow { name: "a".to_owned(), desired: Desired::Down, ..AgentRow::default() };
        snapshot.put(Row::Agent(row));
        assert_ne!(up, digests(|to| to.commit(&[], &snapshot)));
    }
}
