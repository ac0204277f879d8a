//! `_acpd/watch`: all rows at once, then changed ones. [`crate::watch`] has the watchers.

use acp_wire::build;

use crate::hub::Hub;
use crate::ids::Requester;
use crate::input::{Effect, ToClient};
use crate::timers::Timer;
use crate::watch::{RowKey, WatchedRow};

impl Hub {
    pub(crate) fn begin_watch(&mut self, to: &Requester) {
        let is_first = !self.watch.is_on();
        self.watch.begin(to.client);
        if is_first {
            self.sessions.keys().for_each(|key| self.watch.changed(RowKey::Session(*key)));
            let names = self.agent_names().into_iter();
            names.for_each(|name| self.watch.changed(RowKey::Agent(name)));
            self.questions.iter().for_each(|(id, _)| self.watch.changed(RowKey::Question(id)));
        }
        self.note_touched();
        self.note_changes();
        self.rebuild_stale_rows();
        let line = build::response(&to.id, &self.watch.tell_all(to.client));
        self.cx.out.urgent.push(Effect::Client(to.client, ToClient::Rows(line)));
    }

    pub(crate) fn tell_watchers(&mut self) {
        self.note_changes();
        let Some(due) = self.watch.due() else { return };
        if due > self.cx.now {
            if !self.cx.timers.is_set(Timer::Watch) {
                self.cx.timers.set(Timer::Watch, due);
            }
            return;
        }
        self.rebuild_stale_rows();
        for (client, line) in self.watch.tell(self.cx.now) {
            self.cx.send(Effect::Client(client, ToClient::Rows(line)));
        }
    }

    /// Marks sessions that may have changed, or whose clients have.
    pub(crate) fn note_touched(&mut self) {
        self.sessions.touch(self.clients.take_touched());
        self.sessions.touched().for_each(|key| self.watch.changed(RowKey::Session(key)));
    }

    /// Marks changed agents. Sessions are marked at the end of the batch.
    fn note_changes(&mut self) {
        if self.watch.is_on() {
            for name in self.processes.take_changed() {
                self.watch.changed(RowKey::Agent(name));
            }
        }
    }

    fn rebuild_stale_rows(&mut self) {
        let mut stale = self.watch.take_stale();
        let names = self.agent_names();
        while let Some(key) = stale.pop_first() {
            let now = match &key {
                RowKey::Session(key) => {
                    let here = self.sessions.get(key).filter(|session| !session.row.archived);
                    let now = here.map(|_| self.session_info(*key));
                    let old = self.watch.session(*key);
                    // An agent's row counts its sessions, and a question names its session.
                    if now.is_some() != old.is_some() {
                        let of = now.as_ref().or(old).map(|info| info.agent.raw().to_owned());
                        stale.extend(of.map(RowKey::Agent));
                    }
                    let place =
                        |info: &acpd_api::SessionInfo| (info.name.clone(), info.cwd.clone());
                    if now.as_ref().map(place) != old.map(place) {
                        let questions = self.questions.of_session(*key);
                        stale.extend(questions.into_iter().map(RowKey::Question));
                    }
                    now.map(|info| WatchedRow::Session(Box::new(info)))
                }
                RowKey::Agent(name) => {
                    names.contains(name).then(|| WatchedRow::Agent(Box::new(self.agent_info(name))))
                }
                RowKey::Question(id) => {
                    self.question_info(*id).map(|info| WatchedRow::Question(Box::new(info)))
                }
            };
            self.watch.put(key, now);
        }
        self.watch.seal();
    }
}
