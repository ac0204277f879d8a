//! All sessions and their ids for clients and agents. Rows change only through [`Saved::edit`], so
//! the hub writes every change at the end of the batch.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;

use acpd_api::{Reason, UndoParams};

use crate::fault::Fault;
use crate::ids::{HostId, SessionKey, SlotId, Urgency};
use crate::record::{Child, SessionRow, SessionState};
use crate::session::restore::Restore;
use crate::session::{Session, State};

/// A deleted session that can be restored, and the process at which its restore was given up.
type Aside = (SessionState, Option<HostId>);

#[derive(Debug, Default)]
pub(crate) struct Sessions {
    by_key: BTreeMap<SessionKey, Box<Session>>,
    /// All sessions but those that sleep and that no client or question needs.
    awake: BTreeSet<SessionKey>,
    aside: BTreeMap<SessionKey, Aside>,
    last: SessionKey,
    /// Agent profile → public id → session.
    public: BTreeMap<String, BTreeMap<String, SessionKey>>,
    /// Process slot → the agent's id of a session or child → session that the process holds.
    routes: BTreeMap<SlotId, BTreeMap<String, SessionKey>>,
    /// Restores in progress, and whether a client waited at the last [`Sessions::places_freed`].
    restoring: BTreeMap<(SlotId, SessionKey), bool>,
    touched: BTreeSet<SessionKey>,
}

/// Sessions without waiting clients that a process restores at once.
const AT_ONCE: usize = 4;

impl Sessions {
    pub(crate) fn new(last: SessionKey) -> Sessions {
        Sessions { last, ..Sessions::default() }
    }

    pub(crate) fn next_key(&mut self) -> SessionKey {
        self.last.0 += 1;
        self.last
    }

    pub(crate) fn get_mut(&mut self, key: SessionKey) -> Option<&mut Session> {
        let session = self.by_key.get_mut(&key)?;
        self.touched.insert(key);
        self.awake.insert(key);
        Some(session)
    }

    /// Marks sessions as changed outside of their rows.
    pub(crate) fn touch(&mut self, keys: impl IntoIterator<Item = SessionKey>) {
        let by_key = &self.by_key;
        for key in keys.into_iter().filter(|key| by_key.contains_key(key)) {
            self.touched.insert(key);
            self.awake.insert(key);
        }
    }

    pub(crate) fn awake(&self) -> impl Iterator<Item = (SessionKey, &Session)> {
        self.awake.iter().filter_map(|key| Some((*key, &**self.by_key.get(key)?)))
    }

    pub(crate) fn session(&self, key: SessionKey) -> &Session {
        &self.by_key[&key]
    }

    pub(crate) fn session_mut(&mut self, key: SessionKey) -> &mut Session {
        self.get_mut(key).expect("a key is only kept while its session exists")
    }

    pub(crate) fn awake_mut(&mut self) -> impl Iterator<Item = &mut Session> {
        self.touched.extend(&self.awake);
        let these = self.by_key.iter_mut().filter(|(key, _)| self.awake.contains(key));
        these.map(|(_, session)| &mut **session)
    }

    pub(crate) fn insert(&mut self, session: Session) {
        let (row, key) = (&session.row, session.row.key);
        self.public.entry(row.agent.clone()).or_default().insert(row.public_id.clone(), key);
        self.by_key.insert(key, Box::new(session));
        self.touch([key]);
    }

    pub(crate) fn remove(&mut self, key: SessionKey) -> Option<Box<Session>> {
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

    pub(crate) fn restore_begins(&mut self, key: SessionKey) {
        let session = self.by_key.get(&key);
        self.restoring.extend(session.map(|session| ((session.slot, key), session.is_awaited())));
    }

    fn restoring(&self, slot: SlotId) -> impl Iterator<Item = &Session> {
        let begun = self.restoring.keys().filter(move |(of, _)| *of == slot);
        begun.filter_map(|(_, key)| Some(&**self.by_key.get(key)?)).filter(|of| of.is_restoring())
    }

    pub(crate) fn has_restores(&self) -> bool {
        !self.restoring.is_empty()
    }

    /// Returns processes at which a restore has ended, or is no longer awaited, since the last
    /// call.
    pub(crate) fn places_freed(&mut self) -> BTreeSet<SlotId> {
        let by_key = &self.by_key;
        let mut freed = BTreeSet::new();
        self.restoring.retain(|(slot, key), was_awaited| {
            let session = by_key.get(key).filter(|session| session.is_restoring());
            let is_awaited = session.is_some_and(|session| session.is_awaited());
            if session.is_none() || (*was_awaited && !is_awaited) {
                freed.insert(*slot);
            }
            *was_awaited = is_awaited;
            session.is_some()
        });
        freed
    }

    pub(crate) fn keep_aside(&mut self, kept: SessionState, doubtful: Option<HostId>) {
        self.aside.insert(kept.row.key, (kept, doubtful));
    }

    pub(crate) fn drop_aside(&mut self, key: SessionKey) -> Option<SessionState> {
        self.aside.remove(&key).map(|(kept, _)| kept)
    }

    pub(crate) fn aside(&self) -> impl Iterator<Item = &SessionRow> {
        self.aside.values().map(|(kept, _)| &kept.row)
    }

    pub(crate) fn of_slot(&self, slot: SlotId) -> Vec<SessionKey> {
        let sessions = self.by_key.iter().filter(|(_, session)| session.slot == slot);
        sessions.map(|(key, _)| *key).collect()
    }

    pub(crate) fn by_public_id(&self, agent: &str, id: &str) -> Option<SessionKey> {
        self.public.get(agent)?.get(id).copied()
    }

    /// Finds a session of any agent, for clients attached across agents.
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

    /// Returns the child with its session and the agent's id.
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

    pub(crate) fn is_taken(&self, agent: &str, id: &str) -> bool {
        self.by_public_id(agent, id).is_some()
            || self.child_by_public_id(agent, id).is_some()
            || self.aside().any(|row| row.agent == agent && row.public_id == id)
    }

    /// Returns the session for an agent's id, which may be that of a child.
    pub(crate) fn routed(&self, slot: SlotId, id: &str) -> Option<SessionKey> {
        self.routes.get(&slot)?.get(id).copied()
    }

    pub(crate) fn route(&mut self, key: SessionKey) {
        let Session { slot, row, .. } = &*self.by_key[&key];
        let ids = row.children.keys().chain([&row.agent_id]);
        let routes = self.routes.entry(*slot).or_default();
        routes.extend(ids.map(|id| (id.clone(), key)));
    }

    pub(crate) fn unroute(&mut self, key: SessionKey) {
        let Session { slot, row, .. } = &*self.by_key[&key];
        if let Some(routes) = self.routes.get_mut(slot)
            && routes.get(&row.agent_id) == Some(&key)
        {
            routes.remove(&row.agent_id);
        }
    }

    pub(crate) fn unroute_slot(&mut self, slot: SlotId) {
        self.routes.remove(&slot);
    }

    /// `id`: the agent's.
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

    /// Returns the sessions that may have changed, including removed ones.
    pub(crate) fn touched(&self) -> impl Iterator<Item = SessionKey> {
        self.touched.iter().copied()
    }

    pub(crate) fn agents(&self) -> impl Iterator<Item = &String> {
        self.public.iter().filter(|(_, ids)| !ids.is_empty()).map(|(agent, _)| agent)
    }

    pub(crate) fn count_of(&self, agent: &str) -> usize {
        self.public.get(agent).map_or(0, BTreeMap::len)
    }

    /// Takes the changed rows. `needs`: whether a client or a question keeps a session awake.
    pub(crate) fn take_changed(&mut self, needs: impl Fn(SessionKey) -> bool) -> Vec<SessionRow> {
        let touched = std::mem::take(&mut self.touched).into_iter();
        let changed = touched.filter_map(|key| {
            let session = self.by_key.get_mut(&key);
            if session.as_ref().is_none_or(|session| session.is_asleep() && !needs(key)) {
                self.awake.remove(&key);
            }
            session?.row.take_changed().cloned()
        });
        changed.collect()
    }

    pub(crate) fn by_number(&self, number: u64) -> Result<SessionKey, Fault> {
        let mut all = self.iter();
        let found = all.find(|(_, session)| session.kin.number == Some(number));
        found.map(|(key, _)| *key).ok_or_else(|| {
            let text = "the session that this tool belongs to is not there any more";
            Fault::new(Reason::SessionNotFound, text)
        })
    }

    pub(crate) fn depth(&self, key: SessionKey) -> u32 {
        // A deleted session's id may be used again, so there may be a circle.
        let most = self.len();
        std::iter::successors(self.parent(key), |key| self.parent(*key)).take(most).count() as u32
    }

    fn parent(&self, key: SessionKey) -> Option<SessionKey> {
        let parent = self.session(key).kin.parent.as_ref()?;
        self.by_public_id(parent.agent.raw(), parent.session_id.raw())
    }

    pub(crate) fn parent_handle(&self, key: SessionKey) -> Option<&str> {
        self.parent(key).map(|parent| self.session(parent).row.handle())
    }

    pub(crate) fn restore_mut(&mut self, key: SessionKey) -> Option<&mut Restore> {
        match &mut self.get_mut(key)?.state {
            State::Restoring(restore) => Some(restore),
            State::Live | State::Dormant => None,
        }
    }

    pub(crate) fn may_restore(&self, key: SessionKey) -> bool {
        let session = self.session(key);
        let others: Vec<&Session> = self.restoring(session.slot).collect();
        if session.is_restored_alone() || others.iter().any(|other| other.is_restored_alone()) {
            return others.is_empty();
        }
        let is_free = others.len() < AT_ONCE && !others.iter().any(|other| other.is_awaited());
        is_free || session.is_awaited()
    }

    /// Returns whether later sessions must wait: a client waits for this one, which must be
    /// restored alone and would never be otherwise.
    pub(crate) fn keeps_places(&self, key: SessionKey) -> bool {
        let session = self.session(key);
        let waits = session.is_dormant() && session.wants_host();
        waits && session.is_awaited() && session.is_restored_alone() && !self.may_restore(key)
    }

    /// Returns the sessions of a process in the order of their restores.
    pub(crate) fn sessions_by_urgency(
        &self,
        id: SlotId,
        is_attended: impl Fn(SessionKey) -> bool,
    ) -> Vec<SessionKey> {
        let mut keys = self.of_slot(id);
        let urgency = |key| self.urgency(key, is_attended(key));
        keys.sort_by_key(|key| (urgency(*key), Reverse(self.session(*key).row.updated)));
        keys
    }

    fn urgency(&self, key: SessionKey, is_attended: bool) -> Urgency {
        let session = self.session(key);
        if session.is_awaited() {
            Urgency::Awaited
        } else if is_attended {
            Urgency::Watched
        } else {
            Urgency::Unattended
        }
    }

    pub(crate) fn urgency_of(
        &self,
        slot: SlotId,
        is_attended: impl Fn(SessionKey) -> bool,
    ) -> Option<Urgency> {
        let wanting = self.awake().filter(|(_, of)| of.slot == slot && of.wants_host());
        wanting.map(|(key, _)| self.urgency(key, is_attended(key))).min()
    }

    /// `agent_id`: the agent's id.
    pub(crate) fn is_held(&self, slot: SlotId, agent_id: &str) -> bool {
        self.routed(slot, agent_id).is_some_and(|key| self.session(key).is_open())
    }

    pub(crate) fn is_at_work(&self, slot: SlotId) -> bool {
        let mut sessions = self.awake().filter(|(_, session)| session.slot == slot);
        sessions.any(|(_, session)| session.running.is_some() || session.works_outside_turns())
    }

    pub(crate) fn aside_of(&self, wanted: &UndoParams) -> impl Iterator<Item = &SessionRow> {
        let UndoParams { agent, since, .. } = wanted;
        self.aside().filter(move |row| {
            agent.as_ref().is_none_or(|agent| row.agent == *agent)
                && since.is_none_or(|since| row.removed.is_some_and(|at| at.0 >= since))
        })
    }

    /// Takes the named deleted session out, or the last deleted one.
    pub(crate) fn take_from_aside(&mut self, wanted: &UndoParams) -> Result<Aside, Fault> {
        let mut rows: Vec<&SessionRow> = self.aside_of(wanted).collect();
        rows.sort_by_key(|row| Reverse(row.removed));
        let Some(text) = wanted.session.as_deref() else {
            let last = rows.first().map(|row| row.key).and_then(|key| self.aside.remove(&key));
            let none_kept = || Fault::new(Reason::SessionNotFound, "no deleted session is kept");
            return last.ok_or_else(none_kept);
        };
        let whole = |row: &&&SessionRow| row.name.as_deref() == Some(text) || row.public_id == text;
        let begins = |row: &&&SessionRow| !text.is_empty() && row.public_id.starts_with(text);
        // The last deleted session with the name wins.
        let found = rows.iter().find(whole).or_else(|| {
            let mut fitting = rows.iter().filter(begins);
            fitting.next().filter(|_| fitting.next().is_none())
        });
        let kept: Vec<String> =
            rows.iter().take(8).map(|row| format!("`{}`", row.word())).collect();
        let found = found.map(|row| row.key).and_then(|key| self.aside.remove(&key));
        found.ok_or_else(|| match kept.as_slice() {
            [] => Fault::no_session(text).hint("no deleted session is kept"),
            _ => Fault::no_session(text)
                .hint(format!("these can be brought back: {}", kept.join(", "))),
        })
    }

    pub(crate) fn is_ours(&self, profile: &str, id: &str) -> bool {
        let mut rows = self.values().map(|session| &session.row);
        let of_row = |row: &SessionRow| row.agent_id == id || row.children.contains_key(id);
        let of_aside = |row: &SessionRow| row.public_id == id || row.agent_id == id;
        rows.any(|row| row.agent == profile && of_row(row))
            || self.by_public_id(profile, id).is_some()
            || self.aside().any(|row| row.agent == profile && of_aside(row))
    }

    pub(crate) fn ambiguous(&self, text: &str, keys: &[SessionKey]) -> Fault {
        let names: Vec<String> = keys
            .iter()
            .take(8)
            .map(|key| {
                let row = &self.session(*key).row;
                match &row.name {
                    Some(name) => format!("`{name}` ({}, {})", row.agent, row.public_id),
                    None => format!("{} ({})", row.public_id, row.agent),
                }
            })
            .collect();
        let text =
            format!("`{text}` is ambiguous: matches {} sessions: {}", keys.len(), names.join(", "));
        Fault { code: acp_wire::code::INVALID_PARAMS, ..Fault::new(Reason::SessionAmbiguous, text) }
            .hint("choose with `-a AGENT`, or give the id, or more of the name")
    }
}

impl Deref for Sessions {
    type Target = BTreeMap<SessionKey, Box<Session>>;

    fn deref(&self) -> &BTreeMap<SessionKey, Box<Session>> {
        &self.by_key
    }
}
