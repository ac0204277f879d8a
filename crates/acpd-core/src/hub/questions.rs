//! Inputs of the questions machine ([`crate::questions`]), with facts from other machines.

use acp_wire::{ErrorObject, Id, Outcome, build, code, str_at};
use acpd_api::{AnswerParams, ClientName, InteractionInfo, InteractionList, PolicyTestParams};
use acpd_policy::Explanation;
use bytes::Bytes;

use crate::clients::{Asked, Clients, Served};
use crate::event::{ClosedQuestion, EngineEvent};
use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::{ClientId, InteractionId, NOBODY, Process, Requester, SessionKey, SlotId};
use crate::mcp::client_servers::CallEnd;
use crate::params::{path, read};
use crate::prompt::once;
use crate::questions::{QuestionPlace, QuestionSubject};
use crate::record::RowId;
use crate::requests::Requests;
use crate::session::table::Sessions;
use crate::tool_calls::call::{Call, update_in};
use crate::watch::RowKey;

fn place<'h>(
    sessions: &'h Sessions,
    clients: &'h Clients,
    requests: &'h Requests,
    subject: QuestionSubject,
) -> QuestionPlace<'h> {
    match subject {
        QuestionSubject::Session(key) => {
            let session = &sessions[&key];
            let turn = session.running.as_ref();
            QuestionPlace {
                row: Some(&session.row),
                is_running: turn.is_some(),
                is_cancelling: turn.is_some_and(|turn| turn.work.is_cancelled()),
                once: turn.and_then(|turn| once(&turn.prompt.line)),
                requester: None,
                responders: clients.responders(key).collect(),
            }
        }
        QuestionSubject::Request(ask) => {
            let requester = requests.get(ask).and_then(|asked| asked.purpose.requester());
            let requester = requester.filter(|to| clients.may_get_answers(to.client));
            let sender = requester.and_then(|to| clients.responder(to.client));
            let responders = sender.into_iter().collect();
            QuestionPlace { requester, responders, ..QuestionPlace::default() }
        }
    }
}

macro_rules! place {
    ($hub:ident, $subject:expr) => {
        place(&$hub.sessions, &$hub.clients, &$hub.requests, $subject)
    };
}

impl Hub {
    /// `original`: the request of an agent of version 2; `is_intact`: nothing was removed from it.
    pub(crate) fn on_agent_question(
        &mut self,
        process: Process,
        id: &Id,
        (line, original): (&Bytes, Option<&Bytes>),
        is_intact: bool,
    ) {
        let sessions = &self.sessions;
        let route = |session: &str| sessions.routed(process.slot, session);
        let mut new = match self.questions.read(self.cx.now, process.host, line, route) {
            Ok(new) => new,
            Err(refusal) => {
                let error = ErrorObject::new(code::INVALID_PARAMS, refusal);
                self.processes.write(&mut self.cx, process.slot, build::error(id, &error));
                return;
            }
        };
        let mut known = Call::default();
        new.original = original.cloned();
        if let Some(key) = new.session() {
            new.original = new.original.map(|line| sessions.to_public_id(key, line));
            new.line = sessions.to_public_id(key, new.line);
            known = sessions.session(key).known_call(&new.line);
        }
        let place = place!(self, new.subject);
        self.questions.on_request(&mut self.cx, &place, new, known, is_intact);
    }

    pub(crate) fn ask_own_question(&mut self, key: SessionKey, line: &Bytes) {
        let place = place!(self, QuestionSubject::Session(key));
        self.questions.ask_own(&mut self.cx, &place, line);
    }

    /// Returns whether a question waited for this file.
    pub(crate) fn on_file_seen(
        &mut self,
        id: InteractionId,
        result: &Result<Bytes, ErrorObject>,
    ) -> bool {
        let Some(open) = self.questions.get(id) else { return false };
        let place = place!(self, open.subject);
        self.questions.on_file_seen(&mut self.cx, &place, id, result)
    }

    pub(crate) fn on_call_updated(&mut self, key: SessionKey, line: &Bytes) {
        if !self.questions.are_open(key) {
            return;
        }
        let Some(name) = self.session(key).name_at(line, "update") else { return };
        self.change_asked(key, &name, |call| call.take(update_in(line)));
    }

    /// The call was sanitised: never decide it by rule, and ask again if its question is open.
    pub(crate) fn doubt_call(&mut self, slot: SlotId, line: &Bytes) {
        let session = str_at(line, &["params", "sessionId"]);
        let key = session.and_then(|session| self.sessions.routed(slot, &session));
        let Some(key) = key else { return };
        let line = self.sessions.to_public_id(key, line.clone());
        let Some(name) = self.session(key).name_at(&line, "update") else { return };
        if let Some(call) = self.session_mut(key).call_mut(&name) {
            call.doubt();
        }
        self.change_asked(key, &name, Call::doubt);
    }

    /// Changes a call in all open questions about it, which are withdrawn and asked again.
    fn change_asked(&mut self, key: SessionKey, name: &str, change: impl Fn(&mut Call)) {
        let sessions = &self.sessions;
        let meant = self.questions.which(|open| {
            open.session() == Some(key)
                && !open.is_own()
                && sessions.session(key).name_at(&open.line, "toolCall").as_deref() == Some(name)
        });
        for id in meant {
            let changed = self.questions.withdraw_changed(&mut self.cx, id, &change);
            let Some((question, call)) = changed else { continue };
            let place = place!(self, question.subject);
            self.questions.ask_changed(&mut self.cx, &place, question, call);
        }
    }

    pub(crate) fn offer_all(&mut self, client: ClientId, key: SessionKey) {
        let place = place!(self, QuestionSubject::Session(key));
        self.questions.offer_all(&mut self.cx, &place, client);
    }

    /// Offers questions about requests of clients that came back.
    pub(crate) fn offer_about_requests(&mut self) {
        for id in self.questions.which(|open| open.session().is_none()) {
            let Some(open) = self.questions.get(id) else { continue };
            let place = place!(self, open.subject);
            let sender = place.requester.map_or(NOBODY, |to| to.client);
            self.questions.offer_again(&mut self.cx, &place, sender, id);
        }
    }

    /// Returns whether the line answers an offer.
    pub(crate) fn on_question_answer(
        &mut self,
        client: ClientId,
        id: &Id,
        outcome: &Outcome<'_>,
        line: &Bytes,
    ) -> bool {
        // Late answers, answers to notifications and answers to nothing end here.
        let Some((offered, open)) = self.questions.offered(client, id) else { return false };
        let place = place!(self, open.subject);
        self.questions.on_client_answer(&mut self.cx, &place, client, offered, outcome, line);
        true
    }

    /// Answers questions with `cancelled`, as ACP demands of a client that cancels.
    pub(crate) fn cancel_questions(&mut self, questions: Vec<InteractionId>) {
        for id in questions {
            self.questions.cancel(&mut self.cx, id);
        }
        self.react_to_closed();
    }

    /// Like [`Hub::cancel_questions`], for questions of work that is over. An agent of version 2 takes
    /// them back itself.
    pub(crate) fn end_questions(&mut self, key: SessionKey, questions: Vec<InteractionId>) {
        if !self.processes.version_of(self.session(key).slot).withdraws_questions() {
            self.cancel_questions(questions);
        }
    }

    pub(crate) fn close_questions(&mut self, questions: Vec<InteractionId>) {
        for id in questions {
            self.questions.close(&mut self.cx, id);
        }
        self.react_to_closed();
    }

    /// Reacts to closed questions before other events: agents get answers before the next prompt or
    /// the end of the session, and clients see no question after its turn has ended.
    pub(crate) fn react_to_closed(&mut self) {
        for event in self.cx.take_closed() {
            match event {
                EngineEvent::AgentAnswered { host, line } => {
                    self.processes.answer(&mut self.cx, host, line);
                }
                EngineEvent::QuestionClosed(closed) => self.question_closed(closed),
                _ => {}
            }
        }
    }

    pub(crate) fn question_closed(&mut self, closed: ClosedQuestion) {
        let ClosedQuestion { question, session, permission, withdrawals } = closed;
        // The row is deleted after the answer is on disk.
        self.cx.delete(RowId::Interaction(question));
        self.watch.changed(RowKey::Question(question));
        if let Some(time) = permission {
            self.tally.permission.took_ms(time);
        }
        self.send_lines(session, withdrawals);
        if let Some(key) = session {
            // The agent was waiting until now: its silence begins here.
            if let Some(running) = self.sessions.session_mut(key).running.as_mut() {
                running.last_line = self.cx.now;
            }
            self.tell_state(key);
        }
    }

    /// Returns the open questions of a session without those of its children.
    pub(crate) fn own_questions(&self, key: SessionKey) -> Vec<InteractionId> {
        self.questions.of_asker(key, &self.session(key).row.public_id)
    }

    pub(crate) fn withdraw_request(&mut self, process: Process, request: &Id) {
        let call = CallEnd::AgentCancel(process.host, request);
        if self.services.on_agent_cancel(&mut self.cx, process.host, request)
            || self.client_servers.on_call_end(&mut self.cx, &call)
        {
            return;
        }
        self.questions.on_agent_cancel(&mut self.cx, process.host, request);
    }

    /// Returns `None` until users are asked.
    pub(crate) fn question_info(&self, id: InteractionId) -> Option<InteractionInfo> {
        let open = self.questions.get(id)?;
        let row = open.session().map(|key| &*self.session(key).row);
        let profile = || {
            let slot = self.processes.slot_of(open.host()?)?;
            Some(self.processes[&slot].profile().to_owned())
        };
        let agent = row.map(|row| row.agent.clone()).or_else(profile)?;
        let parent = open.session().and_then(|key| self.sessions.parent_handle(key));
        open.info(id, agent, row, parent)
    }

    pub(crate) fn list_questions(&mut self, to: &Requester) {
        let open = self.questions.iter();
        let mut interactions: Vec<_> = open.filter_map(|(id, _)| self.question_info(id)).collect();
        interactions.sort_by_key(|info| info.at);
        self.answer(to, &InteractionList { interactions, hosts: Vec::new() });
    }

    pub(crate) fn answer_question(&mut self, Asked { to, params, .. }: Asked<'_>) -> Served {
        let AnswerParams { id, answer, by, parent } = read(params)?;
        let (id, open) = self.questions.named(&id)?;
        let place = place!(self, open.subject);
        let by = self.answering_name(to.client, by, parent);
        let result = self.questions.on_given_answer(&mut self.cx, &place, id, answer, by)?;
        self.answer(to, &result);
        Ok(())
    }

    /// A tool answers under the name of its agent, never under one that it gives.
    fn answering_name(
        &self,
        client: ClientId,
        said: Option<ClientName>,
        parent: Option<u64>,
    ) -> ClientName {
        if self.clients.may_decide(client) {
            return self.clients.name_of(client, said).unwrap_or_default();
        }
        let parent = parent.and_then(|parent| self.sessions.by_number(parent).ok());
        let name = parent.map(|key| {
            let row = &self.session(key).row;
            let title = format!("agent `{}` of session `{}`", row.agent, row.handle());
            ClientName { name: row.agent.clone().into(), title: Some(title.into()), place: None }
        });
        name.unwrap_or_default()
    }

    pub(crate) fn test_policy(&mut self, test: PolicyTestParams) -> Result<Explanation, Fault> {
        let PolicyTestParams { agent, cwd, tool_call } = test;
        path("cwd", &cwd)?;
        let agent = agent.unwrap_or_else(|| self.cx.config.agent_for(Some(&cwd)).to_owned());
        self.is_configured(&agent)?;
        let (decisions, policy) = (&self.questions.decisions, &self.cx.config.policy);
        decisions.explain(policy, &agent, &cwd, &tool_call)
    }
}
