//! All sessions, under which ids clients and agents know them, and which of their rows have to be written: a
//! row is read as it is, and changed through [`Saved::edit`] alone, so no change can be forgotten. The hub
//! writes what was changed at the end of each batch.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use bytes::Bytes;

use crate::ids::{HostId, Seq, SessionKey, SlotId};
use crate::record::{Child, SessionRow};
use crate::session::{Session, State};

/// The part that is on disk as well.
#[derive(Debug)]
pub(crate) struct Saved<T> {
    value: T,
    is_changed: bool,
}

impl<T> Saved<T> {
    /// As it is on disk, or is written just now.
    pub(crate) fn new(value: T) -> Saved<T> {
        Saved { value, is_changed: false }
    }

    /// To change it: it is written at the end of the batch, once.
    pub(crate) fn edit(&mut self) -> &mut T {
        self.is_changed = true;
        &mut self.value
    }
}

impl<T> Deref for Saved<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// A deleted session that can be brought back: what a session is without its process.
#[derive(Debug)]
pub(crate) struct Aside {
    pub(crate) row: SessionRow,
    pub(crate) head: Seq,
    pub(crate) last_ticket: u64,
    pub(crate) mcp_servers: Option<Bytes>,
    /// The process at which a restore of this session was given up.
    pub(crate) doubtful: Option<HostId>,
}

impl Aside {
    /// The session again, for a process in this slot.
    pub(crate) fn back(self, slot: SlotId) -> Session {
        let Aside { row, head, last_ticket, mcp_servers, doubtful } = self;
        let session = Session::new(row, slot, State::Dormant);
        Session { head, last_ticket, mcp_servers, doubtful, ..session }
    }
}

impl From<Session> for Aside {
    fn from(session: Session) -> Aside {
        let Session { row, head, last_ticket, mcp_servers, doubtful, .. } = session;
        Aside { row: row.value, head, last_ticket, mcp_servers, doubtful }
    }
}

#[derive(Debug)]
pub(crate) struct Sessions {
    by_key: BTreeMap<SessionKey, Session>,
    /// Sessions that a person has deleted and may want back.
    aside: BTreeMap<SessionKey, Aside>,
    /// The highest key that was ever given.
    last: SessionKey,
    /// Agent profile → public id → session.
    public: BTreeMap<String, BTreeMap<String, SessionKey>>,
    /// Process slot → the agent's own id, of a session or a child → session that the process holds.
    routes: BTreeMap<SlotId, BTreeMap<String, SessionKey>>,
    /// Sessions whose restore has begun and was not over at the last look, and whether a client
    /// waited then.
    restoring: BTreeMap<(SlotId, SessionKey), bool>,
    /// Those that may have been changed.
    touched: BTreeSet<SessionKey>,
}

impl Sessions {
    pub(crate) fn new(last: SessionKey) -> Sessions {
        Sessions {
            by_key: BTreeMap::new(),
            aside: BTreeMap::new(),
            last,
            public: BTreeMap::new(),
            routes: BTreeMap::new(),
            restoring: BTreeMap::new(),
            touched: BTreeSet::new(),
        }
    }

    /// The key of a session that is to be made.
    pub(crate) fn next_key(&mut self) -> SessionKey {
        self.last.0 += 1;
        self.last
    }

    pub(crate) fn get_mut(&mut self, key: SessionKey) -> Option<&mut Session> {
        let session = self.by_key.get_mut(&key)?;
        self.touched.insert(key);
        Some(session)
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut Session> {
        self.touched.extend(self.by_key.keys());
        self.by_key.values_mut()
    }

    pub(crate) fn insert(&mut self, session: Session) {
        let (row, key) = (&session.row, session.row.key);
        self.public.entry(row.agent.clone()).or_default().insert(row.public_id.clone(), key);
        self.by_key.insert(key, session);
        self.touched.insert(key);
    }

    pub(crate) fn remove(&mut self, key: SessionKey) -> Option<Session> {
        let session = self.by_key.remove(&key)?;
        self.touched.insert(key);
        if let Some(ids) = self.public.get_mut(&session.row.agent) {
            ids.remove(&session.row.public_id);
        }
        for ids in self.routes.values_mut() {
            ids.retain(|_, to| *to != key);
        }
        Some(session)
    }

    /// A restore of it has begun.
    pub(crate) fn restore_begins(&mut self, key: SessionKey) {
        let session = self.by_key.get(&key);
        self.restoring.extend(session.map(|session| ((session.slot, key), session.is_awaited())));
    }

    /// The sessions of a process that are being restored.
    pub(crate) fn restoring(&self, slot: SlotId) -> impl Iterator<Item = SessionKey> {
        let of_slot = (slot, SessionKey(0))..=(slot, SessionKey(u32::MAX));
        self.restoring
            .range(of_slot)
            .filter(|((_, key), _)| self.under_way(*key).is_some())
            .map(|((_, key), _)| *key)
    }

    /// Returns the processes at which a restore has ended, or is no longer awaited, since the last
    /// call.
    pub(crate) fn places_freed(&mut self) -> BTreeSet<SlotId> {
        let mut restoring = std::mem::take(&mut self.restoring);
        let mut freed = BTreeSet::new();
        restoring.retain(|(slot, key), was_awaited| {
            let session = self.under_way(*key);
            let is_awaited = session.is_some_and(Session::is_awaited);
            if session.is_none() || (*was_awaited && !is_awaited) {
                freed.insert(*slot);
            }
            *was_awaited = is_awaited;
            session.is_some()
        });
        self.restoring = restoring;
        freed
    }

    /// A session that is being restored.
    fn under_way(&self, key: SessionKey) -> Option<&Session> {
        let session = self.by_key.get(&key)?;
        matches!(session.state, State::Restoring(_)).then_some(session)
    }

    pub(crate) fn keep_aside(&mut self, aside: Aside) {
        self.aside.insert(aside.row.key, aside);
    }

    pub(crate) fn take_from_aside(&mut self, key: SessionKey) -> Option<Aside> {
        self.aside.remove(&key)
    }

    pub(crate) fn aside(&self) -> impl Iterator<Item = &SessionRow> {
        self.aside.values().map(|aside| &aside.row)
    }

    /// Returns whether an agent or clients knew one of the hidden sessions under this id.
    pub(crate) fn is_aside(&self, agent: &str, id: &str) -> bool {
        self.aside().any(|row| row.agent == agent && (row.public_id == id || row.agent_id == id))
    }

    pub(crate) fn of_slot(&self, slot: SlotId) -> Vec<SessionKey> {
        let sessions = self.by_key.iter().filter(|(_, session)| session.slot == slot);
        sessions.map(|(key, _)| *key).collect()
    }

    pub(crate) fn by_public_id(&self, agent: &str, id: &str) -> Option<SessionKey> {
        self.public.get(agent)?.get(id).copied()
    }

    /// Returns a session of any agent, for clients attached across agents.
    pub(crate) fn of_any_agent(&self, id: &str) -> Option<SessionKey> {
        self.public.values().find_map(|ids| ids.get(id).copied())
    }

    pub(crate) fn by_name(&self, agent: &str, cwd: &str, name: &str) -> Option<SessionKey> {
        let mut rows = self.by_key.values().map(|session| &session.row);
        let is_it = |row: &SessionRow| {
            row.agent == agent && row.cwd == cwd && row.name.as_deref() == Some(name)
        };
        rows.find(|row| is_it(row)).map(|row| row.key)
    }

    /// The child that clients of an agent know under this id, with its session and the agent's id.
    pub(crate) fn child_by_public_id(
        &self,
        agent: &str,
        id: &str,
    ) -> Option<(SessionKey, &str, &Child)> {
        let rows = self.by_key.values().map(|session| &session.row);
        let mut all = rows
            .filter(|row| row.agent == agent)
            .flat_map(|row| row.children.iter().map(|(own, child)| (row.key, own.as_str(), child)));
        all.find(|(_, _, child)| child.public_id == id)
    }

    /// Returns whether clients of an agent know a session or a child under this id.
    pub(crate) fn is_taken(&self, agent: &str, id: &str) -> bool {
        self.by_public_id(agent, id).is_some()
            || self.child_by_public_id(agent, id).is_some()
            || self.aside().any(|row| row.agent == agent && row.public_id == id)
    }

    /// The session to which an agent's id leads, which may be that of a child.
    pub(crate) fn routed(&self, slot: SlotId, id: &str) -> Option<SessionKey> {
        self.routes.get(&slot)?.get(id).copied()
    }

    /// Lines of the agent with this session's id, or that of a child, go to this session from now on.
    pub(crate) fn route(&mut self, key: SessionKey) {
        let Session { slot, row, .. } = &self.by_key[&key];
        let ids = row.children.keys().chain([&row.agent_id]);
        let routes = self.routes.entry(*slot).or_default();
        routes.extend(ids.map(|id| (id.clone(), key)));
    }

    /// Lines of the agent with this session's id lead nowhere from now on.
    pub(crate) fn unroute(&mut self, key: SessionKey) {
        let Session { slot, row, .. } = &self.by_key[&key];
        if let Some(routes) = self.routes.get_mut(slot)
            && routes.get(&row.agent_id) == Some(&key)
        {
            routes.remove(&row.agent_id);
        }
    }

    /// A slot is gone, and what led from it.
    pub(crate) fn unroute_slot(&mut self, slot: SlotId) {
        self.routes.remove(&slot);
    }

    /// The agent has announced a child of a session under this id of its own.
    pub(crate) fn add_child(&mut self, key: SessionKey, id: &str, child: Child) {
        let Some(session) = self.get_mut(key) else { return };
        session.row.edit().children.insert(id.to_owned(), child);
        let slot = session.slot;
        self.routes.entry(slot).or_default().insert(id.to_owned(), key);
    }

    pub(crate) fn remove_child(&mut self, key: SessionKey, id: &str) -> Option<Child> {
        let session = self.get_mut(key)?;
        let (child, slot) = (session.row.edit().children.remove(id), session.slot);
        if let Some(routes) = self.routes.get_mut(&slot) {
            routes.remove(id);
        }
        child
    }

    /// Those that may have been changed since [`Sessions::take_changed`], also those that are gone.
    pub(crate) fn touched(&self) -> impl Iterator<Item = SessionKey> {
        self.touched.iter().copied()
    }

    pub(crate) fn agents(&self) -> impl Iterator<Item = &String> {
        self.public.iter().filter(|(_, ids)| !ids.is_empty()).map(|(agent, _)| agent)
    }

    pub(crate) fn count_of(&self, agent: &str) -> usize {
        self.public.get(agent).map_or(0, BTreeMap::len)
    }

    /// The rows that have to be written, and are from now on taken as written.
    pub(crate) fn take_changed(&mut self) -> Vec<SessionRow> {
        let touched = std::mem::take(&mut self.touched);
        let mut changed = Vec::new();
        for key in touched {
            let Some(session) = self.by_key.get_mut(&key) else { continue };
            if std::mem::take(&mut session.row.is_changed) {
                changed.push(session.row.clone());
            }
        }
        changed
    }
}

/// The sessions are read as a map, and come and go through methods alone.
impl Deref for Sessions {
    type Target = BTreeMap<SessionKey, Session>;

    fn deref(&self) -> &BTreeMap<SessionKey, Session> {
        &self.by_key
    }
}
