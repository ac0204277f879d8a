//! Interactions: questions of an agent that wait for a person.
//!
//! ```text
//!  request ─▶ policy decides? ─▶ answered at once, and in the journal
//!     │
//!     ▼
//!  looks at files that the call writes without saying what is in them
//!     │
//!     ▼
//!   open ── first valid answer of a controller, or from a terminal ─▶ answered, withdrawn from the others
//!   │ ├── turn over, process gone, agent's $/cancel_request ─▶ withdrawn
//!   │ └── the agent changes the call ─▶ withdrawn, and asked again under another id
//!   └─── no client there: stays open, offered to each that attaches and can show it
//! ```
//!
//! Architecture invariant: nothing answers an interaction because no client is there, and a malformed answer
//! is never consent.

use acp_wire::bound::NAME;
use acp_wire::{
    ErrorObject, Id, Outcome, build, clipped, code, is_legible, locate, set_id, set_member, str_at,
};
use acpd_api::NAMESPACE;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;

use crate::cx::Cx;
use crate::event::Answer as ToAgent;
use crate::hub::Hub;
use crate::ids::{ClientId, HostId, InteractionId, Process, SessionKey};
use crate::input::{Batch, Effect, FileService, ServeError, ToClient};
use crate::mcp::client_servers::CallEnd;
use crate::questions::question::{Answer, Question, Scope};
use crate::questions::{AskedBy, Closed, Interaction, SeenFile};
use crate::record::{InteractionRow, Record};
use crate::services::roots;
use crate::views::with_own_content;

impl Hub {
    /// `session/request_permission` or `elicitation/create` of an agent; `is_intact`: the line is as the agent
    /// wrote it.
    pub(crate) fn person_asked(
        &mut self,
        process: Process,
        id: &Id,
        line: &Bytes,
        is_intact: bool,
        out: &mut Batch,
    ) {
        if let Err(refusal) = self.take_question(process, id, line, is_intact, out) {
            let error = ErrorObject::new(code::INVALID_PARAMS, refusal);
            self.processes.write(process.slot, build::error(id, &error), out);
        }
    }

    fn take_question(
        &mut self,
        process: Process,
        id: &Id,
        line: &Bytes,
        is_intact: bool,
        out: &mut Batch,
    ) -> Result<(), String> {
        let (scope, question) = Question::read(line)?;
        if self.questions.asked_as(process.host, id).is_some() {
            return Err(format!("the id {id} is open already"));
        }
        let key = match scope {
            Scope::Session(session) => {
                let key = self.sessions.routed(process.slot, &session);
                Some(key.ok_or_else(|| format!("no session `{session}`"))?)
            }
            Scope::Request(_) => None,
        };
        self.questions.check_room(key, process.host)?;
        let running = key.and_then(|key| self.session(key).running.as_ref());
        if running.is_some_and(|running| running.work.is_cancelled()) {
            // The turn is to end; asking a person now would only hold it up.
            self.processes.write(process.slot, build::response(id, &question.cancelled()), out);
            return Ok(());
        }
        let line = match key {
            Some(key) => self.sessions.to_public_id(key, line.clone()),
            None => line.clone(),
        };
        let is_permission = matches!(question, Question::Permission(_));
        // A call that readers may understand differently is for a person.
        let is_intact = is_intact && std::str::from_utf8(&line).is_ok_and(is_legible);
        let frozen =
            key.filter(|_| is_permission).map(|key| self.sessions.freeze(key, &line, is_intact));
        if let (Some(key), Some(frozen)) = (key, &frozen)
            && let Some(answer) = self.decided(key, frozen, &question, out)
        {
            self.processes.write(process.slot, build::response(id, &answer), out);
            return Ok(());
        }
        let (interaction, at) = (InteractionId(self.ids.issue()), self.now);
        let row =
            InteractionRow { id: interaction, session: key, host: process.host, line, at, frozen };
        self.open_interaction(row, id.clone(), question, out);
        Ok(())
    }

    pub(crate) fn open_interaction(
        &mut self,
        row: InteractionRow,
        request: Id,
        question: Question,
        out: &mut Batch,
    ) {
        let (interaction, key) = (row.id, row.session);
        let open = Interaction::of_agent(&row, request, question);
        out.records.push(Record::Interaction(row));
        out.durable = true;
        self.questions.open(interaction, open);
        let Some(key) = key else {
            self.offer_to_requester(interaction, out);
            return self.hook_question(interaction, out);
        };
        self.look_or_ask(interaction, key, 0, out);
    }

    /// Looks at the next file that the call of a question writes without saying what is in it, or asks people.
    fn look_or_ask(
        &mut self,
        interaction: InteractionId,
        key: SessionKey,
        from: usize,
        out: &mut Batch,
    ) {
        let Some(open) = self.questions.get(interaction) else { return };
        let next = open.frozen.as_ref().and_then(|frozen| frozen.unseen_file(from));
        let (Some((at, path)), Some(host)) = (next, open.host()) else {
            self.questions.look_at(interaction, None);
            return self.ask_people(interaction, key, out);
        };
        let cwd = &self.session(key).row.cwd;
        let is_whole = path.starts_with(['/', '\\']) || path.get(1..2) == Some(":");
        let path = if is_whole { path.to_owned() } else { format!("{cwd}/{path}") };
        let (roots, limit) = (roots(&self.session(key).row), None);
        let service = FileService::ReadTextFile { path, line: None, limit };
        self.questions.look_at(interaction, Some(at));
        out.effects.push(Effect::Serve { host, request: interaction, roots, service });
    }

    /// The content of a file that a question is about. Returns whether the question waited for it.
    pub(crate) fn on_file_seen(
        &mut self,
        interaction: InteractionId,
        result: &Result<Bytes, ServeError>,
        out: &mut Batch,
    ) -> bool {
        #[derive(Deserialize)]
        struct File {
            content: String,
        }
        let seen = match result {
            Ok(result) => serde_json::from_slice::<File>(result)
                .map_or(SeenFile::Unreadable, |file| SeenFile::Content(file.content)),
            Err(error) if error.code == code::NOT_FOUND => SeenFile::Missing,
            Err(_) => SeenFile::Unreadable,
        };
        let Some(at) = self.questions.take_file(interaction, seen) else { return false };
        let Some(open) = self.questions.get(interaction) else { return false };
        let (Some(key), Some(host)) = (open.session, open.host()) else { return false };
        let (line, frozen) = (open.line.clone(), open.frozen.clone());
        let session = Some(key);
        // The question is on disk before it is shown.
        let row = InteractionRow { id: interaction, session, host, line, at: open.at, frozen };
        out.records.push(Record::Interaction(row));
        out.durable = true;
        self.look_or_ask(interaction, key, at + 1, out);
        true
    }

    /// Asks every controller of the session.
    pub(crate) fn ask_people(
        &mut self,
        interaction: InteractionId,
        key: SessionKey,
        out: &mut Batch,
    ) {
        self.tell_state(key, out);
        let attached: Vec<_> = self.session(key).attached.keys().copied().collect();
        for client in attached {
            self.offer(client, interaction, out);
        }
        self.hook_question(interaction, out);
    }

    /// A question about a request is for its sender only.
    fn offer_to_requester(&mut self, interaction: InteractionId, out: &mut Batch) {
        let Some(open) = self.questions.get(interaction) else { return };
        let asked = open.about.and_then(|ask| self.requests.get(ask));
        let requester = asked.and_then(|asked| asked.purpose.requester()).cloned();
        let Some(to) = requester
            .filter(|to| self.clients.token_of(to.client).is_some() || self.is_here(to.client))
        else {
            let answer = open.question.cancelled();
            return self.answer_interaction(interaction, &answer, out);
        };
        let here = self.clients.get(&to.client).filter(|_| self.may_decide(to.client));
        match here.map(|here| open.question.is_for(&here.capabilities)) {
            Some(true) if !self.questions.is_offered(to.client, interaction) => {
                let line = set_member(&open.line, &["params", "requestId"], to.id.raw().as_bytes());
                self.send_offer(to.client, interaction, line, None, out);
            }
            // The client is away, or the user has to answer from a terminal.
            _ => {}
        }
    }

    fn is_here(&self, client: ClientId) -> bool {
        self.clients.contains_key(&client)
    }

    /// Offers every open interaction of a session to a client that has just come.
    pub(crate) fn offer_all(&mut self, client: ClientId, key: SessionKey, out: &mut Batch) {
        for interaction in self.questions.of_session(key) {
            self.offer(client, interaction, out);
        }
    }

    /// Offers the questions about requests of a client that came back.
    pub(crate) fn offer_about_requests(&mut self, out: &mut Batch) {
        for interaction in self.questions.which(|open| open.session.is_none()) {
            self.offer_to_requester(interaction, out);
        }
    }

    fn offer(&mut self, client: ClientId, interaction: InteractionId, out: &mut Batch) {
        let Some(open) = self.questions.get(interaction) else { return };
        let Some(key) = open.session.filter(|_| open.looks_at.is_none()) else { return };
        let shows = self.may_decide(client)
            && self
                .clients
                .get(&client)
                .is_some_and(|here| open.question.is_for(&here.capabilities));
        if !shows
            || !self.sessions.is_controller(client, key)
            || self.questions.is_offered(client, interaction)
        {
            return;
        }
        let view = &self.clients[&client].view;
        let line = with_own_content(&open.line, &["params", "toolCall", "content"], view);
        let mut line = self.for_viewer(client, key, line);
        if self.clients[&client].view.notices {
            let id = interaction.text();
            line = match &open.frozen {
                Some(frozen) => frozen.put_into(id, &line),
                None => {
                    let meta = json!({ "id": id }).to_string();
                    set_member(&line, &["params", "_meta", NAMESPACE], meta.as_bytes())
                }
            };
        }
        self.send_offer(client, interaction, line, Some(key), out);
    }

    fn send_offer(
        &mut self,
        client: ClientId,
        interaction: InteractionId,
        line: Bytes,
        key: Option<SessionKey>,
        out: &mut Batch,
    ) {
        let Some(ask) = self.questions.offer(client, interaction, &mut self.ids) else { return };
        let line = set_id(&line, &Id::issued(ask));
        self.sessions.send_behind(client, key, Effect::Client(client, ToClient::Line(line)), out);
    }

    /// `elicitation/complete`: what a page was for is done; for those who were shown it.
    pub(crate) fn page_done(&mut self, host: HostId, line: &Bytes, out: &mut Batch) {
        let Some(page) = str_at(line, &["params", "elicitationId"]) else { return };
        let shown = self.questions.page_done(host, page.into_owned());
        for client in shown.into_iter().filter(|client| self.is_here(*client)) {
            out.effects.push(Effect::Client(client, ToClient::Line(line.clone())));
        }
    }

    /// Returns whether this client may answer this question.
    fn may_answer(&self, client: ClientId, open: &Interaction) -> bool {
        let is_asked = match open.session {
            Some(key) => self.sessions.is_controller(client, key),
            None => {
                let asked = open.about.and_then(|ask| self.requests.get(ask));
                let requester = asked.and_then(|asked| asked.purpose.requester());
                requester.is_some_and(|to| to.client == client)
            }
        };
        is_asked && self.may_decide(client)
    }

    /// A client answered; whether that was to an offer.
    pub(crate) fn interaction_answered(
        &mut self,
        client: ClientId,
        id: &Id,
        outcome: &Outcome<'_>,
        line: &Bytes,
        out: &mut Batch,
    ) -> bool {
        // Late answers, answers to notifications and answers to nothing end here.
        let Some(interaction) = self.questions.take_offer(client, id) else { return false };
        let Some(open) = self.questions.get(interaction) else { return false };
        if !self.may_answer(client, open) {
            return true;
        }
        // An error: this client cannot show it. The question waits for another one.
        let Outcome::Result(result) = *outcome else { return true };
        match open.question.answer(result) {
            Some(answer) => {
                // A choice was read so strictly that it goes on as it is, with what else is in it.
                let as_it_is = matches!(answer, Answer::Permission(_));
                let own = match &open.asked_by {
                    AskedBy::Agent { request, .. } if as_it_is => Some(set_id(line, request)),
                    _ => None,
                };
                self.remember_choice(interaction, &answer, out);
                self.tell_answered(interaction, &answer, self.name_of(client, None), out);
                self.answer_with(interaction, &answer, own, out);
            }
            None => {
                // Of a line that is no message at all the client has been told.
                if locate(line, &["result"]).is_some() {
                    let form = open.question.form_of_answers();
                    let text = format!(
                        "the answer to request {id} does not count: its result is no {form}"
                    );
                    let error = ErrorObject::new(code::INVALID_PARAMS, text);
                    let line = build::error(&Id::null(), &error);
                    out.effects.push(Effect::Client(client, ToClient::Line(line)));
                }
                self.ask_again(client, interaction, out);
            }
        }
        true
    }

    /// An answer that means nothing is no answer: the client is asked again, but not for ever.
    fn ask_again(&mut self, client: ClientId, interaction: InteractionId, out: &mut Batch) {
        if !self.questions.count_invalid_answer(client, interaction) {
            let session = self.questions.get(interaction).and_then(|open| open.session);
            if let Some(key) = session {
                let by = self.name_of(client, None).map_or_else(
                    || "a client".to_owned(),
                    |by| format!("client `{}`", clipped(by.name.raw(), NAME)),
                );
                let text = format!(
                    "{by} gave no answer that can be read, and is not asked again; answer with `acpctl answer {}`",
                    interaction.text()
                );
                self.notice(key, "warning", &text, out);
            }
            return;
        }
        let Some(open) = self.questions.get(interaction) else { return };
        match open.session {
            Some(_) => self.offer(client, interaction, out),
            None => self.offer_to_requester(interaction, out),
        }
    }

    pub(crate) fn answer_interaction(
        &mut self,
        interaction: InteractionId,
        answer: &Answer,
        out: &mut Batch,
    ) {
        self.answer_with(interaction, answer, None, out);
    }

    /// Answers as above, with a line of the client's own.
    fn answer_with(
        &mut self,
        interaction: InteractionId,
        answer: &Answer,
        own: Option<Bytes>,
        out: &mut Batch,
    ) {
        let Some(closed) = self.questions.close(interaction) else { return };
        match &closed.question.asked_by {
            AskedBy::Agent { host, request } => {
                let line = own.unwrap_or_else(|| build::response(request, answer));
                self.processes.answer(ToAgent { host: *host, line }, out);
                out.durable = true;
                self.tell_closed(interaction, &closed, out);
            }
            AskedBy::Budget => {
                self.tell_closed(interaction, &closed, out);
                if let Some(key) = closed.question.session {
                    self.budget_answered(key, answer, out);
                }
            }
        }
    }

    /// Answers every open interaction of a session as a client that cancels must.
    pub(crate) fn cancel_interactions(&mut self, key: SessionKey, out: &mut Batch) {
        self.cancel_questions(self.questions_of(key, |_| true), out);
    }

    pub(crate) fn cancel_questions(&mut self, questions: Vec<InteractionId>, out: &mut Batch) {
        for interaction in questions {
            let Some(open) = self.questions.get(interaction) else { continue };
            match open.asked_by {
                AskedBy::Agent { .. } => {
                    let answer = open.question.cancelled();
                    self.answer_interaction(interaction, &answer, out);
                }
                AskedBy::Budget => self.close_questions(vec![interaction], out),
            }
        }
    }

    pub(crate) fn close_questions(&mut self, questions: Vec<InteractionId>, out: &mut Batch) {
        for interaction in questions {
            if let Some(closed) = self.questions.close(interaction) {
                self.tell_closed(interaction, &closed, out);
            }
        }
    }

    /// Takes a question back that its agent still wants an answer to.
    pub(crate) fn withdraw_question(
        &mut self,
        interaction: InteractionId,
        out: &mut Batch,
    ) -> Option<Interaction> {
        let closed = self.questions.close(interaction)?;
        out.durable = true;
        self.tell_closed(interaction, &closed, out);
        Some(closed.question)
    }

    /// Closes the questions of a process that were about requests.
    pub(crate) fn close_about_requests(&mut self, host: HostId, out: &mut Batch) {
        let of_host = |open: &Interaction| open.host() == Some(host) && open.session.is_none();
        self.close_questions(self.questions.which(of_host), out);
    }

    /// Returns whether an unanswered request of an agent waits for a person.
    pub(crate) fn is_asked_about(&self, ask: u64) -> bool {
        self.questions.iter().any(|(_, open)| open.about == Some(ask))
    }

    /// A request is answered: what the agent still asked about it is answered with `cancel`.
    pub(crate) fn forget_questions_about(&mut self, request: &Id, out: &mut Batch) {
        let Some(ask) = request.as_issued() else { return };
        self.cancel_questions(self.questions.which(|open| open.about == Some(ask)), out);
    }

    /// Consequences of the end of a question: its requests are withdrawn, and its session
    /// continues.
    fn tell_closed(&mut self, interaction: InteractionId, closed: &Closed, out: &mut Batch) {
        let key = closed.question.session;
        if let Question::Permission(_) = closed.question.question {
            self.tally.permission(self.now.since(closed.question.at));
        }
        out.records.push(Record::InteractionGone { id: interaction });
        for &(client, id) in &closed.offers {
            let line =
                build::notification("$/cancel_request", &json!({ "requestId": Id::issued(id) }));
            self.sessions.send_behind(
                client,
                key,
                Effect::Client(client, ToClient::Line(line)),
                out,
            );
        }
        if let Some(key) = key {
            let now = self.now;
            // The agent was waiting until now: its silence begins here.
            if let Some(running) = self.session_mut(key).running.as_mut() {
                running.last_line = now;
            }
            self.tell_state(key, out);
        }
    }

    /// A client that goes on without a session, or only watches it, is not asked any more.
    pub(crate) fn take_back_offers(&mut self, client: ClientId, key: SessionKey, out: &mut Batch) {
        for interaction in self.questions.of_session(key) {
            if let Some(id) = self.questions.take_back(client, interaction) {
                let line = build::notification(
                    "$/cancel_request",
                    &json!({ "requestId": Id::issued(id) }),
                );
                let effect = Effect::Client(client, ToClient::Line(line));
                self.sessions.send_behind(client, Some(key), effect, out);
            }
        }
    }

    /// `$/cancel_request` of an agent for a request of its own.
    pub(crate) fn withdraw_request(&mut self, process: Process, request: &Id, out: &mut Batch) {
        let events = self.services.on_agent_cancel(&mut cx!(self, out), process.host, request);
        let call = CallEnd::AgentCancel(process.host, request);
        if self.route(events, out) || self.end_server_calls(&call, out) {
            return;
        }
        let Some(interaction) = self.questions.asked_as(process.host, request) else { return };
        let Some(closed) = self.questions.close(interaction) else { return };
        let error = ErrorObject::new(code::CANCELLED, "cancelled by the agent");
        self.processes.write(process.slot, build::error(request, &error), out);
        self.tell_closed(interaction, &closed, out);
    }
}
