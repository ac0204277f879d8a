use crate::hub::Hub;
use crate::mcp::client_servers::CallEnd;
use crate::record::purpose::Purpose;
use crate::timers::Timer;

impl Hub {
    fn on_asked_timer(&mut self, ask: u64) {
        let Some(asked) = self.requests.get(ask) else { return };
        let Some(slot) = self.processes.slot_of(asked.host) else { return };
        match &asked.purpose {
            Purpose::List { .. } => self.on_list_timer(ask, slot),
            Purpose::Adopt(_) => self.on_adopt_timer(ask, slot),
            Purpose::Preset { .. } => self.on_preset_timer(ask),
            Purpose::LoginAgain => {
                self.give_up_ask(ask, None);
                self.logged_in_again(slot, false);
            }
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
            // Served at the end of the batch.
            Timer::Watch => {}
        }
    }
}
