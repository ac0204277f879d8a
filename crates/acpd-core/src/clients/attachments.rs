//! Clients attached to sessions, and their cursors in the journals.
//!
//! ```text
//!  attach ─▶ Reading{upto} ── ReadDone, more to read ─▶ Reading
//!               │   ▲
//!  ReadDone, at the head      drained
//!               ▼   │
//!             Live ─┴─ lagged ─▶ Paused{after} ◀─ attach, or ReadDone, of a client that lags
//! ```
//!
//! Architecture invariant: a client's view of a session has no gaps. It is `Live` and has every
//! line up to the head, or it is behind and continues only by reading the journal from its cursor.
//! Answers that belong after a line wait for that line.

use std::collections::{BTreeSet, VecDeque};

use acp_wire::build;
use acpd_api::{CaughtUp, ClientName, Role, method};
use bytes::Bytes;

use crate::clients::Clients;
use crate::cx::Cx;
use crate::event::EngineEvent;
use crate::fault::Fault;
use crate::ids::{ClientId, Requester, Seq, SessionKey};
use crate::input::{Effect, Numbers, Read, ReadStyle, ToClient, ValuesForm, View};
use crate::record::EventRow;
use crate::views::{JournalHead, render, version2};

#[derive(Debug)]
pub(super) struct Attachment {
    role: Role,
    pub(super) since: u64,
    view: View,
    cursor: Cursor,
    /// The client got its position since it attached.
    has_position: bool,
    /// The client may not know the state of the session's turn: it has changed without a line of
    /// the journal while the client was behind or away.
    owes_state: bool,
    pub(super) deferred: VecDeque<(Seq, Effect)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cursor {
    /// Has all lines up to the head.
    Live,
    /// Waits for a piece of journal: as a newcomer up to `history`, complete after it.
    Reading { history: Option<Seq> },
    /// Does not read. Has all lines up to here.
    Paused { after: Seq },
}

impl Attachment {
    fn is_controller(&self) -> bool {
        self.role == Role::Controller
    }

    /// Sends what belongs after the lines up to a position.
    fn send_due(&mut self, cx: &mut Cx, upto: Seq) {
        while let Some((_, effect)) = self.deferred.pop_front_if(|(seq, _)| *seq <= upto) {
            cx.send(effect);
        }
    }
}

impl Clients {
    fn attachment_mut(&mut self, client: ClientId, key: SessionKey) -> Option<&mut Attachment> {
        self.touched.insert(key);
        self.attached.get_mut(&(key, client))
    }

    pub(super) fn take_attachment(
        &mut self,
        client: ClientId,
        key: SessionKey,
    ) -> Option<Attachment> {
        self.touched.insert(key);
        self.attached.remove(&(key, client))
    }

    pub(crate) fn take_touched(&mut self) -> BTreeSet<SessionKey> {
        std::mem::take(&mut self.touched)
    }

    fn attachments(&self, key: SessionKey) -> impl Iterator<Item = (ClientId, &Attachment)> {
        let all = (key, ClientId(0))..=(key, ClientId(u64::MAX));
        self.attached.range(all).map(|((_, client), at)| (*client, at))
    }

    pub(crate) fn at(&self, key: SessionKey) -> impl Iterator<Item = ClientId> {
        self.attachments(key).map(|(client, _)| client)
    }

    pub(crate) fn controllers(&self, key: SessionKey) -> impl Iterator<Item = ClientId> {
        let these = self.attachments(key).filter(|(_, at)| at.is_controller());
        these.map(|(client, _)| client)
    }

    pub(crate) fn owner(&self, key: SessionKey) -> Option<ClientId> {
        let these = self.attachments(key).filter(|(_, at)| at.is_controller());
        these.min_by_key(|(_, at)| at.since).map(|(client, _)| client)
    }

    /// Number of other controllers, and of absent clients that wait for a prompt.
    pub(crate) fn other_users<'a>(
        &self,
        client: ClientId,
        key: SessionKey,
        senders: impl Iterator<Item = &'a Requester>,
    ) -> usize {
        let away = senders.map(|to| to.client).filter(|of| !self.connected.contains_key(of));
        let mut users: BTreeSet<_> = self.controllers(key).chain(away).collect();
        users.remove(&client);
        users.len()
    }

    /// Connections of one program in one place count once: a screen opens one more for each turn.
    pub(crate) fn count_at(&self, key: SessionKey) -> u32 {
        let mut known = BTreeSet::new();
        let clients = self.at(key).filter(|id| match self.connected.get(id).map(|of| &of.name) {
            Some(ClientName { name, place: Some(place), .. }) => {
                known.insert((name.raw(), place.raw()))
            }
            _ => true,
        });
        clients.count() as u32
    }

    pub(crate) fn is_attended(&self, key: SessionKey) -> bool {
        self.at(key).next().is_some()
    }

    pub(crate) fn is_attached(&self, client: ClientId, key: SessionKey) -> bool {
        self.attached.contains_key(&(key, client))
    }

    pub(crate) fn is_controller(&self, client: ClientId, key: SessionKey) -> bool {
        self.attached.get(&(key, client)).is_some_and(Attachment::is_controller)
    }

    pub(crate) fn may_control(&self, client: ClientId, key: SessionKey) -> Result<(), Fault> {
        match self.attached.get(&(key, client)) {
            Some(at) if !at.is_controller() => {
                Err(Fault::invalid("this connection only observes the session")
                    .hint("attach as a controller"))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn sessions_of(&self, client: ClientId) -> impl Iterator<Item = SessionKey> {
        let its = self.attached.keys().filter(move |(_, of)| *of == client);
        its.map(|(key, _)| *key)
    }

    pub(crate) fn show(
        &self,
        cx: &mut Cx,
        journal: JournalHead<'_>,
        (row, update): (&EventRow, Option<&str>),
        origin: Option<ClientId>,
    ) {
        let mut rendered: Option<(View, Option<Bytes>)> = None;
        for (client, attachment) in self.attachments(journal.session) {
            let view = &attachment.view;
            let is_own = origin == Some(client) && !view.version.echoes();
            if attachment.cursor != Cursor::Live || is_own {
                continue;
            }
            if version2::has_all_options(row, view) {
                cx.send(Effect::Client(client, options_update(journal, view)));
                continue;
            }
            let line = match &rendered {
                Some((known, line)) if known.shows_as(view) => line.clone(),
                _ => {
                    let shown = render(row, update, journal.public_id, view);
                    rendered = Some((*view, shown.clone()));
                    shown
                }
            };
            if let Some(line) = line {
                cx.send(Effect::Client(client, ToClient::Line(line)));
            }
        }
    }

    pub(crate) fn tell_attached(&self, cx: &mut Cx, key: SessionKey, line: &Bytes) {
        for (client, attachment) in self.attachments(key) {
            let lagged = self.connected.get(&client).is_some_and(|client| client.lagged);
            if attachment.view.notices && !lagged {
                cx.send(Effect::Client(client, ToClient::Line(line.clone())));
            }
        }
    }

    /// Tells clients of versions with states the one of the session.
    pub(crate) fn tell_turn_state(&mut self, cx: &mut Cx, journal: JournalHead<'_>) {
        let all = (journal.session, ClientId(0))..=(journal.session, ClientId(u64::MAX));
        for ((_, client), attachment) in self.attached.range_mut(all) {
            if attachment.cursor != Cursor::Live {
                attachment.owes_state = true;
            } else if attachment.view.version.tells_states() {
                let line = version2::state_now(journal);
                cx.send(Effect::Client(*client, ToClient::Line(line)));
            }
        }
    }

    /// Sends an effect after the lines of a session up to a position.
    pub(crate) fn send_behind(
        &mut self,
        cx: &mut Cx,
        client: ClientId,
        behind: Option<(SessionKey, Seq)>,
        effect: Effect,
    ) {
        if let Some((key, head)) = behind
            && let Some(attachment) = self.attachment_mut(client, key)
            && attachment.cursor != Cursor::Live
        {
            attachment.deferred.push_back((head, effect));
        } else {
            cx.send(effect);
        }
    }

    /// `after`: the client has everything up to here; `None` = up to the head, as its answer says.
    /// A second attach starts over, because the old cursor does not fit the new view. Returns whether
    /// the client is connected.
    pub(crate) fn attach(
        &mut self,
        cx: &mut Cx,
        client: ClientId,
        journal: JournalHead<'_>,
        (role, after, style): (Role, Option<Seq>, ReadStyle),
    ) -> bool {
        let JournalHead { session: key, head, .. } = journal;
        let Some(here) = self.connected.get(&client) else { return false };
        let view = here.view;
        let owes_state = after.is_some() && style == ReadStyle::Resume;
        let after = after.unwrap_or(head).min(head);
        let old = self.take_attachment(client, key);
        let was_there = || self.resumable.get_mut(&client)?.was_at.remove(&key);
        let since = old.as_ref().map(|old| old.since).or_else(was_there);
        let since = since.unwrap_or_else(|| cx.ids.issue());
        let deferred = old.map(|old| old.deferred).unwrap_or_default();
        let cursor = Cursor::Paused { after };
        let has_position = false;
        let attachment =
            Attachment { role, since, view, cursor, has_position, owes_state, deferred };
        self.attached.insert((key, client), attachment);
        let history = (style == ReadStyle::History).then_some(head);
        self.advance(cx, client, journal, (after, history), false);
        true
    }

    /// Sends the deferred answers. Returns whether there was an attachment.
    pub(crate) fn detach(&mut self, cx: &mut Cx, client: ClientId, key: SessionKey) -> bool {
        let Some(gone) = self.take_attachment(client, key) else { return false };
        cx.send_all(gone.deferred.into_iter().map(|(_, effect)| effect));
        true
    }

    /// Agents report their commands only once, so a client without the history gets them here. The
    /// line has no sequence number, so the client's position stays.
    pub(crate) fn remind_of_commands(
        &mut self,
        cx: &mut Cx,
        client: ClientId,
        journal: JournalHead<'_>,
    ) {
        let Some(here) = self.connected.get(&client).filter(|_| journal.head > 0) else { return };
        let view = View { numbers: Numbers::None, ..here.view };
        let head = journal.head;
        self.read(cx, client, journal, (head, head), (ReadStyle::Commands, view));
    }

    /// Returns the client's token, else a unique name of its connection, for journals.
    pub(crate) fn origin_of(&self, cx: &Cx, client: ClientId) -> String {
        match self.token_of(client) {
            Some(token) => token.to_owned(),
            None => format!("{}.{}", cx.ids.boot(), client.0),
        }
    }

    fn read(
        &mut self,
        cx: &mut Cx,
        client: ClientId,
        journal: JournalHead<'_>,
        (after, upto): (Seq, Seq),
        (style, view): (ReadStyle, View),
    ) {
        // A client that continues from its cursor does not get its own lines, unless its version
        // wants them.
        let leaves_out = style == ReadStyle::Resume && !view.version.echoes();
        let origin = leaves_out.then(|| self.origin_of(cx, client));
        if let Some(client) = self.connected.get_mut(&client) {
            *client.reads.entry(journal.session).or_default() += 1;
        }
        let (session, public_id) = (journal.session, journal.public_id.to_owned());
        let read = Read { session, public_id, after, upto, style, view, origin };
        cx.send(Effect::Client(client, ToClient::Read(read)));
    }

    /// There is no journal if the session is gone.
    pub(crate) fn on_read_done(
        &mut self,
        cx: &mut Cx,
        client: ClientId,
        (key, journal): (SessionKey, Option<JournalHead<'_>>),
        upto: Seq,
    ) {
        let Some(here) = self.connected.get_mut(&client) else { return };
        if let Some(reads) = here.reads.get_mut(&key) {
            *reads -= 1;
            if *reads > 0 {
                // This read belongs to an earlier attachment.
                return;
            }
            here.reads.remove(&key);
        }
        let Some(journal) = journal else { return };
        let Some(attachment) = self.attachment_mut(client, key) else { return };
        let Cursor::Reading { history } = attachment.cursor else { return };
        attachment.send_due(cx, upto);
        self.advance(cx, client, journal, (upto, history.filter(|end| upto < *end)), false);
    }

    /// Lets a client that has all lines up to `after` read on, go live, or pause while it lags.
    /// `is_quiet`: the client keeps its position if it has one, because another line could make it
    /// lag again.
    fn advance(
        &mut self,
        cx: &mut Cx,
        client: ClientId,
        journal: JournalHead<'_>,
        (after, history): (Seq, Option<Seq>),
        is_quiet: bool,
    ) {
        let JournalHead { session, head, .. } = journal;
        let Some(here) = self.connected.get(&client) else { return };
        let (lagged, notices) = (here.lagged, here.view.notices);
        let Some(attachment) = self.attachment_mut(client, session) else { return };
        if after < head || history.is_some() {
            attachment.send_due(cx, after);
            attachment.cursor = Cursor::Reading { history };
            let style = if history.is_some() { ReadStyle::History } else { ReadStyle::Resume };
            let (upto, view) = (history.unwrap_or(head), attachment.view);
            return self.read(cx, client, journal, (after, upto), (style, view));
        }
        if lagged {
            attachment.cursor = Cursor::Paused { after: head };
            return;
        }
        let was_behind = matches!(attachment.cursor, Cursor::Reading { history: None });
        let owes_state = std::mem::take(&mut attachment.owes_state) || was_behind;
        attachment.cursor = Cursor::Live;
        let view = attachment.view;
        let keeps_position = std::mem::replace(&mut attachment.has_position, true) && is_quiet;
        cx.send_all(attachment.deferred.drain(..).map(|(_, effect)| effect));
        if owes_state && view.version.tells_states() {
            let state = version2::state_now(journal);
            let now = [options_update(journal, &view), ToClient::Line(state)];
            cx.send_all(now.map(|what| Effect::Client(client, what)));
        }
        if !keeps_position && !self.tell_cursor(cx, client, journal) && notices {
            cx.send(Effect::Client(client, ToClient::Line(caught_up_line(journal))));
        }
        cx.report(EngineEvent::ClientCaughtUp { client, session });
    }

    /// Sends the head to a client that can reconnect, which continues from there. Returns whether
    /// the client is one.
    pub(crate) fn tell_cursor(
        &self,
        cx: &mut Cx,
        client: ClientId,
        journal: JournalHead<'_>,
    ) -> bool {
        let comes_back =
            self.connected.contains_key(&client) && self.resumable.contains_key(&client);
        if comes_back {
            let line = caught_up_line(journal);
            cx.send(Effect::Client(client, ToClient::Line(line)));
        }
        comes_back
    }

    pub(crate) fn on_lagged(&mut self, client: ClientId, head: impl Fn(SessionKey) -> Seq) {
        let Some(here) = self.connected.get_mut(&client) else { return };
        here.lagged = true;
        let attached = self.attached.iter_mut().filter(|((_, of), _)| *of == client);
        for ((key, _), attachment) in attached {
            self.touched.insert(*key);
            if attachment.cursor == Cursor::Live {
                attachment.cursor = Cursor::Paused { after: head(*key) };
            }
        }
    }

    pub(crate) fn on_drained<'j>(
        &mut self,
        cx: &mut Cx,
        client: ClientId,
        journal: impl Fn(SessionKey) -> JournalHead<'j>,
    ) {
        if let Some(here) = self.connected.get_mut(&client) {
            here.lagged = false;
        }
        for key in self.sessions_of(client).collect::<Vec<_>>() {
            let Some(attachment) = self.attachment_mut(client, key) else { continue };
            if let Cursor::Paused { after } = attachment.cursor {
                self.advance(cx, client, journal(key), (after, None), true);
            }
        }
    }
}

fn options_update(journal: JournalHead<'_>, view: &View) -> ToClient {
    let form = ValuesForm::Update { public_id: journal.public_id.to_owned() };
    ToClient::Values(journal.values(form, view))
}

fn caught_up_line(journal: JournalHead<'_>) -> Bytes {
    let caught_up = CaughtUp { session_id: journal.public_id.to_owned().into(), seq: journal.head };
    build::notification(method::CAUGHT_UP, &caught_up)
}
