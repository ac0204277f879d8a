//! Reactions to the events of machines, in order, and to deadlines.

use acpd_api::HookInfo;
use serde_json::json;

use crate::event::EngineEvent;
use crate::hub::Hub;
use crate::mcp::client_servers::CallEnd;
use crate::record::{Purpose, Row};
use crate::timers::Timer;
use crate::watch::RowKey;

impl Hub {
    /// Runs the reactions to an event, and to what they report, before the next event.
    pub(crate) fn route(&mut self) {
        // Called several times per line of an agent, mostly for nothing.
        if self.cx.is_routed() {
            return;
        }
        for event in self.cx.take_events() {
            self.react(event);
            self.route();
        }
    }

    fn react(&mut self, event: EngineEvent) {
        match event {
            EngineEvent::Sent(effect) => self.cx.out.effects.push(effect),
            EngineEvent::AgentAnswered { host, line } => {
                self.processes.answer(&mut self.cx, host, line);
            }
            EngineEvent::ClientCaughtUp { client, session } => {
                // Observers are not asked, but show that calls wait.
                if self.questions.are_asked(session) {
                    let line = self.state_line(session);
                    self.clients.tell(&mut self.cx, client, &line);
                }
                self.offer_all(client, session);
            }
            EngineEvent::ClientLeft { client, number, returns, sessions } => {
                self.on_client_left(client, number, returns, sessions);
            }
            EngineEvent::ProcessNotified { host, line } => {
                if let Some(slot) = self.processes.slot_of(host) {
                    self.processes.notify(&mut self.cx, slot, line);
                }
            }
            EngineEvent::ClientAnswered { to, line } => self.respond(&to, None, line),
            EngineEvent::LenderAsked { client, line } => self.ask_lender(client, line),
            EngineEvent::ServersChanged { session, servers } => {
                self.cx.put(Row::Secret { session, mcp_servers: servers.clone() });
                self.session_mut(session).mcp_servers = Some(servers);
            }
            EngineEvent::SessionNoticed { session, severity, text } => {
                self.notice(session, severity, &text);
            }
            EngineEvent::ClientLine { client, session, line } => {
                self.send_lines(session, [(client, line)]);
            }
            EngineEvent::SessionLine { session, kind, line } => {
                self.append(session, kind, line, None);
            }
            EngineEvent::CallAsked { session, line } => {
                self.session_mut(session).note_asked(&line);
            }
            EngineEvent::QuestionAsked { question, session, offers } => {
                self.watch.changed(RowKey::Question(question));
                if let Some(key) = session {
                    self.tell_state(key);
                }
                self.send_lines(session, offers);
                self.hook_question(question, session);
            }
            EngineEvent::QuestionClosed(closed) => self.question_closed(closed),
            EngineEvent::BudgetAnswered { session, option } => {
                self.on_budget_answer(session, option.as_deref());
            }
            EngineEvent::AgentNotified { agent, line } => {
                self.clients.tell_profile(&mut self.cx, &agent, &line, true);
            }
            EngineEvent::ProcessStarted(slot) => self.initialize_agent(slot),
            EngineEvent::ProcessReady(slot) => self.agent_ready(slot),
            EngineEvent::ProcessAdopted(slot) => self.agent_adopted(slot),
            EngineEvent::StartWantsLogin { slot, error } => {
                self.start_wants_login(slot, &error);
            }
            EngineEvent::LoginWanted { slot, reason } => {
                self.hook_trouble(slot, &reason, HookInfo::Login);
            }
            EngineEvent::LoginRepeated { slot, method } => {
                let params = json!({ "methodId": method });
                self.request(slot, Purpose::LoginAgain, "authenticate", &params);
            }
            EngineEvent::CredentialsRenewed(slot) => self.unblock_for_next(slot),
            EngineEvent::LoginWorked(agent) => self.login_worked(&agent),
            EngineEvent::TurnsCancelled { slot, because } => {
                self.cancel_turns_of(slot, &because);
            }
            EngineEvent::ProcessCrashed { slot, reason } => {
                self.hook_trouble(slot, &reason, HookInfo::Crash);
            }
            EngineEvent::ProcessLost { slot, host, fault, ended_late } => {
                self.process_lost((slot, host), &fault, ended_late);
            }
            EngineEvent::EndPossible => self.check_stopped(),
            EngineEvent::WaitersRefused { slot, fault, for_good } => {
                self.fail_waiters(slot, &fault);
                let sessions = if for_good { self.sessions.of_slot(slot) } else { Vec::new() };
                for key in sessions {
                    self.session_mut(key).eager = false;
                }
            }
            EngineEvent::ProcessGone(slot) => {
                let demand = self.demand(slot);
                self.processes.judge(&mut self.cx, slot, demand);
            }
            EngineEvent::SlotFreed(slot) => {
                self.remove_unused_slot(slot);
                self.check_stopped();
            }
            EngineEvent::SessionEnded { session, is_kept } => {
                self.session_ended(session, is_kept);
            }
            EngineEvent::ProcessStopped(slot) => self.answer_watchers(slot),
            EngineEvent::TurnEnded { session, ended } => {
                let took = ended.at.saturating_sub(ended.started_at);
                self.tally.turn_ended(&ended.outcome, took);
                self.hook_turn_end(session, &ended);
            }
        }
    }

    fn on_asked_timer(&mut self, ask: u64) {
        let Some(asked) = self.requests.get(ask) else { return };
        let Some(slot) = self.processes.slot_of(asked.host) else { return };
        match &asked.purpose {
            Purpose::List { .. } | Purpose::Preset { .. } | Purpose::LoginAgain => {
                match self.give_up_ask(ask) {
                    Some((_, Purpose::List { to, wanted })) => {
                        self.listed(slot, &to, &wanted, None);
                    }
                    Some((_, Purpose::Preset { session, preset })) => {
                        self.preset_answered(session, &preset, None);
                    }
                    _ => self.logged_in_again(slot, false),
                }
            }
            Purpose::Adopt(_) => self.on_adopt_timer(ask, slot),
            Purpose::Abandoned { .. } => self.on_abandoned_timer(slot),
            Purpose::NewSession(_) | Purpose::Steer(_) | Purpose::Relay { .. } => {
                self.on_unanswered_timer(ask, slot, asked.clone());
            }
            _ => {}
        }
    }

    pub(crate) fn on_tick(&mut self) {
        if self.cx.is_failing() {
            return;
        }
        while let Some(timer) = self.cx.timers.pop_due(self.cx.now) {
            let is_there = match timer {
                Timer::Slot(id) | Timer::Idle(id) => self.processes.contains_key(&id),
                Timer::Restore(key)
                | Timer::Cancel(key)
                | Timer::Stall(key)
                | Timer::Sleep(key)
                | Timer::Limit(key) => self.sessions.contains_key(&key),
                _ => true,
            };
            if is_there {
                self.on_timer(timer);
                self.route();
            }
        }
    }

    fn on_timer(&mut self, timer: Timer) {
        match timer {
            Timer::Slot(id) => {
                let demand = self.demand(id);
                self.processes.on_timer(&mut self.cx, id, demand);
            }
            Timer::Idle(id) => self.end_if_unused(id, true),
            Timer::Restore(key) => self.on_restore_timer(key),
            Timer::Cancel(key) => self.on_cancel_timeout(key),
            Timer::Stall(key) => self.on_stall_timer(key),
            Timer::Sleep(key) => self.on_sleep_timer(key),
            Timer::Budget => self.on_budget_timer(),
            Timer::Limit(key) => self.on_limit_timer(key),
            Timer::Asked(ask) => self.on_asked_timer(ask),
            Timer::Terminal(terminal) => {
                self.services.on_terminal_deadline(&mut self.cx, terminal);
            }
            Timer::Lent(call) => {
                self.client_servers.on_call_end(&mut self.cx, &CallEnd::Deadline(call));
            }
            Timer::Lifecycle => {
                self.end_unused();
                self.route();
                self.on_lifecycle_timer();
            }
            Timer::Retention => self.on_retention_timer(),
            Timer::Resumable => {
                for token in self.clients.late(self.cx.now) {
                    self.forget_resumable(&token);
                }
                self.clients.wait_for_late(&mut self.cx.timers);
            }
            Timer::Index => {
                self.cx.index();
                self.cx.unindexed.clear();
            }
            Timer::Later => self.cx.pressing = true,
            // Served at the end of the batch.
            Timer::Watch => {}
        }
    }
}
