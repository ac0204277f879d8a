//! The reactions to events of machines: who reacts, and in which order.

use bytes::Bytes;

use crate::cx::Cx;
use crate::event::{Answer, EngineEvent};
use crate::hub::Hub;
use crate::ids::{ClientId, SessionKey};
use crate::input::{Batch, Effect, ToClient};
use crate::record::Record;

impl Hub {
    /// Lets the others react to what a machine reports.
    pub(crate) fn route(&mut self, events: Vec<EngineEvent>, out: &mut Batch) {
        for event in events {
            match event {
                EngineEvent::Sent(effect) => out.effects.push(effect),
                EngineEvent::AgentAnswered(answer) => self.processes.answer(answer, out),
                EngineEvent::ClientCaughtUp { client, session } => {
                    self.offer_all(client, session, out);
                }
                EngineEvent::ClientLeft { client, number, returns, sessions } => {
                    self.on_client_left(client, number, returns, sessions, out);
                }
                EngineEvent::ProcessNotified(Answer { host, line }) => {
                    let slot = self
                        .processes
                        .slot_of(host)
                        .filter(|slot| !self.processes.is_clogged(*slot));
                    if let Some(slot) = slot.filter(|_| !self.store_health.is_failing()) {
                        self.processes.write(slot, line, out);
                    }
                }
                EngineEvent::ClientAnswered { to, line } => self.respond(&to, None, line, out),
                EngineEvent::LenderAsked { client, line } => self.ask_lender(client, line, out),
                EngineEvent::ServersChanged { session, servers } => {
                    self.sessions.keep_servers(session, servers, out);
                }
                EngineEvent::SessionNoticed { session, severity, text } => {
                    self.notice(session, severity, &text, out);
                }
                EngineEvent::ClientLine { client, session, line } => {
                    self.send_lines(session, [(client, line)], out);
                }
                EngineEvent::SessionLine { session, kind, line } => {
                    self.append(session, kind, line, None, out);
                }
                EngineEvent::CallAsked { session, line } => {
                    self.sessions.note_asked(session, &line);
                }
                EngineEvent::QuestionAsked { question, session, offers } => {
                    self.watch.interaction_changed(question);
                    if let Some(key) = session {
                        self.tell_state(key, out);
                    }
                    self.send_lines(session, offers, out);
                    self.hook_question(question, session, out);
                }
                EngineEvent::QuestionClosed { question, session, permission, withdrawals } => {
                    // The row goes after the answer is on disk.
                    out.records.push(Record::InteractionGone { id: question });
                    self.watch.interaction_changed(question);
                    if let Some(time) = permission {
                        self.tally.permission(time);
                    }
                    self.send_lines(session, withdrawals, out);
                    let Some(key) = session else { continue };
                    // The agent was waiting until now: its silence begins here.
                    if let Some(running) = self.sessions.session_mut(key).running.as_mut() {
                        running.last_line = self.now;
                    }
                    self.tell_state(key, out);
                }
                EngineEvent::BudgetAnswered { session, option } => {
                    self.on_budget_answer(session, option.as_deref(), out);
                }
                EngineEvent::AgentNotified { agent, line } => {
                    self.clients.tell_profile(&mut cx!(self, out), &agent, &line);
                }
                EngineEvent::AgentIntroduced(agent) => self.take_quirks(&agent),
                EngineEvent::AgentRestarted(agent) => self.tally.restarted(&agent),
                EngineEvent::ProcessStarted(slot) => self.initialize_agent(slot, out),
                EngineEvent::ProcessReady(slot) => self.agent_ready(slot, out),
                EngineEvent::ProcessAdopted(slot) => self.agent_adopted(slot, out),
                EngineEvent::StartWantsLogin { slot, error } => {
                    self.start_wants_login(slot, &error, out);
                }
                EngineEvent::LoginWanted { slot, reason } => self.hook_login(slot, &reason, out),
                EngineEvent::LoginRepeated { slot, method } => {
                    self.log_in_again(slot, &method, out);
                }
                EngineEvent::CredentialsRenewed(slot) => self.unblock_for_next(slot, out),
                EngineEvent::LoginWorked(agent) => self.login_worked(&agent, out),
                EngineEvent::TurnsCancelled { slot, because } => {
                    self.cancel_turns_of(slot, &because, out);
                }
                EngineEvent::ProcessCrashed { slot, reason } => self.hook_crash(slot, &reason, out),
                EngineEvent::ProcessLost { slot, host, fault, ended_late } => {
                    self.process_lost((slot, host), &fault, ended_late, out);
                }
                EngineEvent::LeftoversFound => self.check_stopped(out),
                EngineEvent::WaitersRefused { slot, fault } => self.fail_waiters(slot, &fault, out),
                EngineEvent::ProcessGone(slot) => self.process_gone(slot, out),
                EngineEvent::ProcessStopped(slot) => self.answer_watchers(slot, out),
                EngineEvent::ProcessGivenUp { slot, fault } => {
                    self.agent_given_up(slot, &fault, out);
                }
                EngineEvent::TurnEnded { session, ended } => {
                    let took = ended.at.saturating_sub(ended.started_at);
                    self.tally.turn_ended(&ended.outcome, took);
                    self.hook_turn_end(session, &ended, out);
                }
            }
        }
    }

    /// Sends lines to clients, behind those of a session.
    fn send_lines(
        &mut self,
        session: Option<SessionKey>,
        lines: impl IntoIterator<Item = (ClientId, Bytes)>,
        out: &mut Batch,
    ) {
        for (client, line) in lines {
            let effect = Effect::Client(client, ToClient::Line(line));
            self.send_behind(client, session, effect, out);
        }
    }
}
