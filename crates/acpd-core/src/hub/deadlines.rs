use crate::hub::Hub;
use crate::mcp::client_servers::CallEnd;
use crate::requests::purpose::Purpose;
use crate::timers::Timer;

impl Hub {
    fn on_asked_timer(&mut self, ask: u64) {
        match self.requests.get(ask).map(|asked| &asked.purpose) {
            Some(Purpose::List { .. }) => self.on_list_timer(ask),
            Some(Purpose::Adopt(_)) => self.on_adopt_timer(ask),
            Some(Purpose::Preset { .. }) => self.on_preset_timer(ask),
            Some(Purpose::LoginAgain) => self.on_login_timer(ask),
            Some(Purpose::Abandoned { .. }) => self.on_abandoned_timer(ask),
            Some(Purpose::NewSession(_) | Purpose::Steer(_) | Purpose::Relay { .. }) => {
                self.on_unanswered_timer(ask);
            }
            _ => {}
        }
    }

    pub(crate) fn on_tick(&mut self) {
        if self.store_health.is_failing() {
            return;
        }
        while let Some(timer) = self.cx.timers.pop_due(self.cx.now) {
            match timer {
                Timer::Slot(id) if self.processes.contains_key(&id) => {
                    self.on_slot_timer(id);
                }
                Timer::Idle(id) if self.processes.contains_key(&id) => self.on_idle(id),
                Timer::Restore(key) if self.sessions.contains_key(&key) => {
                    self.on_restore_timer(key);
                }
                Timer::Cancel(key) if self.sessions.contains_key(&key) => {
                    self.on_cancel_timeout(key);
                }
                Timer::Stall(key) if self.sessions.contains_key(&key) => {
                    self.on_stall_timer(key);
                }
                Timer::Sleep(key) if self.sessions.contains_key(&key) => {
                    self.on_sleep_timer(key);
                }
                Timer::Limit(key) if self.sessions.contains_key(&key) => self.on_limit_timer(key),
                Timer::Asked(ask) => self.on_asked_timer(ask),
                Timer::Terminal(terminal) => {
                    self.services.on_terminal_deadline(&mut self.cx, terminal);
                }
                Timer::Lent(call) => {
                    self.end_server_calls(&CallEnd::Deadline(call));
                }
                Timer::Lifecycle => {
                    self.end_unused();
                    self.route();
                    self.on_lifecycle_timer();
                }
                Timer::Retention => self.on_retention_timer(),
                Timer::Resumable => self.on_resumable_timer(),
                // Watch: served at the end of the batch. The others: their slot or session is gone.
                Timer::Watch
                | Timer::Slot(_)
                | Timer::Idle(_)
                | Timer::Restore(_)
                | Timer::Cancel(_)
                | Timer::Limit(_)
                | Timer::Sleep(_)
                | Timer::Stall(_) => {}
            }
            self.route();
        }
    }
}
