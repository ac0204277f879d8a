//! Journal and views: every line of a session is appended once and shown to who is attached.
//!
//! ```text
//!  attach ─▶ Reading{upto} ── ReadDone, more to read ─▶ Reading
//!               │   ▲
//!  ReadDone, at the head      drained
//!               ▼   │
//!             Live ─┴─ lagged ─▶ Paused{after} ◀─ attach, or ReadDone, of a client that lags
//! ```
//!
//! Architecture invariant: a client's view of a session is gap-free. It is either `Live`, and then
//! it has been sent every line up to the head, or it is behind, and then nothing but the journal,
//! read from its cursor, brings it forward. Answers that belong behind a line wait with it.

use acpd_api::{NAMESPACE, Role};
use serde_json::json;

use crate::hub::Hub;
use crate::ids::{ClientId, Requester, Seq, SessionKey};
use crate::input::{Batch, Effect, Read, ReadStyle, SessionValues, ToClient, View};
use crate::views::attachment::{Attachment, Cursor};

/// The member of an answer that names the MCP servers which a session was not given.
pub(crate) fn told_as_ignored(names: &[String]) -> String {
    format!("\"_meta\":{}", json!({ NAMESPACE: { "ignoredMcpServers": names } }))
}

impl Hub {
    /// Attaches a client that has everything up to `after`; `None` = only what comes.
    pub(crate) fn attach(
        &mut self,
        client: ClientId,
        key: SessionKey,
        role: Role,
        after: Option<Seq>,
        style: ReadStyle,
        out: &mut Batch,
    ) {
        let Some(view) = self.clients.get(&client).map(|client| client.view) else { return };
        let head = self.session(key).head;
        let after = after.unwrap_or(head).min(head);
        let cursor = if after == head && style == ReadStyle::Resume {
            if self.clients[&client].lagged { Cursor::Paused { after } } else { Cursor::Live }
        } else {
            Cursor::Reading { history: (style == ReadStyle::History).then_some(head) }
        };
        // A client that attaches again starts over: the old place says nothing about the new view.
        // Answers that wait for lines continue to wait, if there are any to come. A withdrawal stays
        // behind the question that it takes back.
        if self.sessions.is_attached(client, key) {
            self.take_back_offers(client, key, out);
        }
        let old = self.session_mut(key).attached.remove(&client);
        let since =
            old.as_ref().map(|old| old.since).or_else(|| self.clients.take_since(client, key));
        let since = since.unwrap_or_else(|| self.ids.issue());
        let mut deferred = old.map(|old| old.deferred).unwrap_or_default();
        if cursor == Cursor::Live {
            out.effects.extend(deferred.drain(..).map(|(_, effect)| effect));
        }
        let attachment = Attachment { role, since, view, cursor, told: false, deferred };
        self.session_mut(key).attached.insert(client, attachment);
        if let Some(client) = self.clients.get_mut(client) {
            client.sessions.insert(key);
        }
        match cursor {
            Cursor::Live => self.caught_up(client, key, out),
            Cursor::Reading { .. } => {
                let origin = self.own_lines(client, style);
                let public_id = self.session(key).row.public_id.clone();
                self.read(
                    client,
                    Read { session: key, public_id, after, upto: head, style, view, origin },
                    out,
                );
            }
            Cursor::Paused { .. } => {}
        }
        self.begin_use(self.session(key).slot);
    }

    /// Ends an attachment. Answers that waited for its lines wait no longer, and its questions are
    /// for others.
    pub(crate) fn detach(&mut self, client: ClientId, key: SessionKey, out: &mut Batch) {
        let Some(session) = self.sessions.get_mut(key) else { return };
        let Some(gone) = session.attached.remove(&client) else { return };
        out.effects.extend(gone.deferred.into_iter().map(|(_, effect)| effect));
        self.take_back_offers(client, key, out);
        if let Some(client) = self.clients.get_mut(client) {
            client.sessions.remove(&key);
        }
    }

    /// Shows the commands that are on offer to a client that does not see the history: an agent says
    /// them once. The line has no number, because it is no step forward.
    pub(crate) fn remind_of_commands(
        &mut self,
        client: ClientId,
        key: SessionKey,
        out: &mut Batch,
    ) {
        let Some(here) = self.clients.get(&client) else { return };
        let view = View { seq: false, ..here.view };
        let upto = self.session(key).head;
        let public_id = self.session(key).row.public_id.clone();
        let (after, style) = (upto, ReadStyle::Commands);
        if upto > 0 {
            self.read(
                client,
                Read { session: key, public_id, after, upto, style, view, origin: None },
                out,
            );
        }
    }

    /// The client whose own lines are left out when it continues from its cursor, as when they were
    /// live.
    fn own_lines(&self, client: ClientId, style: ReadStyle) -> Option<String> {
        (style == ReadStyle::Resume).then(|| self.origin_of(client))
    }

    fn read(&mut self, client: ClientId, read: Read, out: &mut Batch) {
        if let Some(client) = self.clients.get_mut(client) {
            *client.reads.entry(read.session).or_default() += 1;
        }
        out.effects.push(Effect::Client(client, ToClient::Read(read)));
    }

    /// A piece of journal was sent: more of it, or live from here on.
    pub(crate) fn on_read_done(
        &mut self,
        client: ClientId,
        key: SessionKey,
        upto: Seq,
        out: &mut Batch,
    ) {
        let Some(place) = self.clients.get_mut(client) else { return };
        let lagged = place.lagged;
        if let Some(reads) = place.reads.get_mut(&key) {
            *reads -= 1;
            if *reads > 0 {
                // Of an earlier attachment; the one that counts is still to come.
                return;
            }
            place.reads.remove(&key);
        }
        let Some(session) = self.sessions.get_mut(key) else { return };
        let head = session.head;
        let Some(attachment) = session.attached.get_mut(&client) else { return };
        let Cursor::Reading { history } = attachment.cursor else { return };
        while attachment.deferred.front().is_some_and(|(seq, _)| *seq <= upto) {
            if let Some((_, effect)) = attachment.deferred.pop_front() {
                out.effects.push(effect);
            }
        }
        if upto >= head && lagged {
            attachment.cursor = Cursor::Paused { after: head };
        } else if upto >= head {
            attachment.cursor = Cursor::Live;
            self.caught_up(client, key, out);
        } else {
            self.read_on(client, key, upto, history.filter(|end| upto < *end), out);
        }
    }

    fn read_on(
        &mut self,
        client: ClientId,
        key: SessionKey,
        after: Seq,
        history: Option<Seq>,
        out: &mut Batch,
    ) {
        let session = self.session_mut(key);
        let upto = history.unwrap_or(session.head);
        let style = if history.is_some() { ReadStyle::History } else { ReadStyle::Resume };
        if let Some(attachment) = session.attached.get_mut(&client) {
            attachment.cursor = Cursor::Reading { history };
            let view = attachment.view;
            let public_id = session.row.public_id.clone();
            let origin = self.own_lines(client, style);
            self.read(
                client,
                Read { session: key, public_id, after, upto, style, view, origin },
                out,
            );
        }
    }

    fn caught_up(&mut self, client: ClientId, key: SessionKey, out: &mut Batch) {
        let session = self.session_mut(key);
        if let Some(attachment) = session.attached.get_mut(&client) {
            attachment.told = true;
        }
        if !self.tell_cursor(client, key, out) {
            let line = self.sessions.caught_up_line(key);
            self.tell_client(client, &line, out);
        }
        self.offer_all(client, key, out);
    }

    /// Tells a client that comes back the head of a session, from which it goes on then; whether it
    /// is one.
    pub(crate) fn tell_cursor(
        &mut self,
        client: ClientId,
        key: SessionKey,
        out: &mut Batch,
    ) -> bool {
        let comes_back = self.clients.get(&client).is_some_and(|place| place.token.is_some());
        if comes_back {
            let line = self.sessions.caught_up_line(key);
            out.effects.push(Effect::Client(client, ToClient::Line(line)));
        }
        comes_back
    }

    /// The client does not keep up: from here on it has to read the journal.
    pub(crate) fn on_lagged(&mut self, client: ClientId) {
        let Some(place) = self.clients.get_mut(client) else { return };
        place.lagged = true;
        for key in self.client_sessions(client) {
            let session = self.session_mut(key);
            let after = session.head;
            if let Some(attachment) = session.attached.get_mut(&client)
                && attachment.cursor == Cursor::Live
            {
                attachment.cursor = Cursor::Paused { after };
            }
        }
    }

    pub(crate) fn on_drained(&mut self, client: ClientId, out: &mut Batch) {
        let Some(place) = self.clients.get_mut(client) else { return };
        place.lagged = false;
        for key in self.client_sessions(client) {
            let session = self.session_mut(key);
            let head = session.head;
            let Some(attachment) = session.attached.get_mut(&client) else { continue };
            let Cursor::Paused { after } = attachment.cursor else { continue };
            if after < head {
                self.read_on(client, key, after, None, out);
            } else {
                // Nothing to read, and nothing new to say about it: that could make it lag again.
                let waiting = std::mem::take(&mut attachment.deferred);
                let told = attachment.told;
                attachment.cursor = Cursor::Live;
                out.effects.extend(waiting.into_iter().map(|(_, effect)| effect));
                if told {
                    self.offer_all(client, key, out);
                } else {
                    self.caught_up(client, key, out);
                }
            }
        }
    }

    fn client_sessions(&self, client: ClientId) -> Vec<SessionKey> {
        let sessions = self.clients.get(&client).map(|client| &client.sessions);
        sessions.map(|keys| keys.iter().copied().collect()).unwrap_or_default()
    }

    /// Attaches a client and answers its `session/load` or `session/resume`.
    pub(crate) fn show_session(
        &mut self,
        to: &Requester,
        key: SessionKey,
        after: u64,
        style: ReadStyle,
        ignored: &[String],
        out: &mut Batch,
    ) {
        let extra = if ignored.is_empty() { String::new() } else { told_as_ignored(ignored) };
        if style == ReadStyle::History {
            self.attach(to.client, key, Role::Controller, Some(after), style, out);
            self.send_values(to, key, extra, out);
        } else {
            // As for a name that is taken.
            self.tell_cursor(to.client, key, out);
            self.send_values(to, key, extra, out);
            self.attach(to.client, key, Role::Controller, None, style, out);
            self.remind_of_commands(to.client, key, out);
        }
    }

    pub(crate) fn send_values(
        &mut self,
        to: &Requester,
        key: SessionKey,
        extra: String,
        out: &mut Batch,
    ) {
        if !self.close_request(to) {
            return;
        }
        let Some(client) = self.clients.get(&to.client) else { return };
        let effect = Effect::Client(
            to.client,
            ToClient::Values(SessionValues {
                id: to.id.clone(),
                session: key,
                mode: self.sessions[&key].row.mode.clone(),
                extra,
                boolean_options: client.capabilities.boolean_options,
            }),
        );
        self.sessions.send_behind(to.client, Some(key), effect, out);
    }
}
