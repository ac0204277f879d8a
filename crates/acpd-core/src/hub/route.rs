//! The reactions to events of machines: who reacts, and in which order.

use crate::event::{Answer, EngineEvent};
use crate::hub::Hub;
use crate::input::{Batch, Effect, ToClient};
use crate::record::EventKind;

impl Hub {
    /// Lets the others react to what a machine reports. Returns whether the machine had to do with the input.
    pub(crate) fn route(
        &mut self,
        events: impl Into<Option<Vec<EngineEvent>>>,
        out: &mut Batch,
    ) -> bool {
        let Some(events) = events.into() else { return false };
        for event in events {
            match event {
                EngineEvent::Sent(effect) => out.effects.push(effect),
                EngineEvent::AgentAnswered(answer) => self.processes.answer(answer, out),
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
                EngineEvent::ClientAsked { client, line } => {
                    out.effects.push(Effect::Client(client, ToClient::Line(line)));
                }
                EngineEvent::LenderAsked { client, line } => self.ask_lender(client, line, out),
                EngineEvent::ServersChanged { session, servers } => {
                    self.sessions.keep_servers(session, servers, out);
                }
                EngineEvent::SessionNoticed { session, severity, text } => {
                    self.notice(session, severity, &text, out);
                }
                EngineEvent::SessionUpdated { session, line } => {
                    self.append(session, EventKind::Update, line, None, out);
                }
                EngineEvent::AgentNotified { agent, line } => {
                    self.notify_profile(&agent, &line, out);
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
            }
        }
        true
    }
}
