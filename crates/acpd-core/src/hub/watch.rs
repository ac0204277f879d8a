//! `_acpd/watch`: all rows at once, then those that change. What a watcher has is in [`crate::watch`].

use acp_wire::build;

use crate::hub::Hub;
use crate::ids::Requester;
use crate::input::{Batch, Effect, ToClient};
use crate::timers::Timer;
use crate::watch::Stale;

impl Hub {
    /// A connection wants to know what changes.
    pub(crate) fn begin_watch(&mut self, to: &Requester, out: &mut Batch) {
        let client = to.client;
        if !self.clients.close_request(to) || !self.clients.contains_key(&client) {
            return;
        }
        let is_first = !self.watch.is_on();
        self.watch.begin(client);
        if is_first {
            self.sessions.keys().for_each(|key| self.watch.session_changed(*key));
            self.agent_names().iter().for_each(|name| self.watch.agent_changed(name));
            self.questions.iter().for_each(|(id, _)| self.watch.interaction_changed(id));
        }
        self.note_touched();
        self.note_changes();
        self.look_at_rows();
        let all = self.watch.tell_all(client);
        let line = build::response(&to.id, &all);
        out.effects.push(Effect::Client(client, ToClient::Rows(line)));
    }

    /// Tells watchers what has changed, if it is time; else it is done later.
    pub(crate) fn tell_watchers(&mut self, out: &mut Batch) {
        self.note_changes();
        let Some(due) = self.watch.due() else { return };
        if due > self.now {
            if !self.timers.is_set(Timer::Watch) {
                self.timers.set(Timer::Watch, due);
            }
            return;
        }
        self.look_at_rows();
        for (client, line) in self.watch.tell(self.now) {
            out.effects.push(Effect::Client(client, ToClient::Rows(line)));
        }
    }

    /// Sessions that may have changed, or whose clients may have.
    pub(crate) fn note_touched(&mut self) {
        self.sessions.touch(self.clients.take_touched());
        self.sessions.touched().for_each(|key| self.watch.session_changed(key));
    }

    /// Changed agents. Sessions are collected at the end of the batch.
    fn note_changes(&mut self) {
        if self.watch.is_on() {
            for name in self.processes.take_changed() {
                self.watch.agent_changed(&name);
            }
        }
    }

    /// Rebuilds the rows that may have changed.
    fn look_at_rows(&mut self) {
        let Stale { sessions, mut agents, mut interactions } = self.watch.take_stale();
        for key in sessions {
            let here = self.sessions.get(&key).filter(|session| !session.row.archived);
            let now = here.map(|_| self.session_info(key));
            let old = self.watch.session(key);
            // An agent's row counts its sessions, and a question names its session.
            if now.is_some() != old.is_some() {
                let of = now.as_ref().or(old).map(|info| info.agent.raw().to_owned());
                agents.extend(of);
            }
            let place = |info: &acpd_api::SessionInfo| (info.name.clone(), info.cwd.clone());
            if now.as_ref().map(place) != old.map(place) {
                interactions.extend(self.questions.of_session(key));
            }
            self.watch.put_session(key, now);
        }
        let names = self.agent_names();
        for name in agents {
            let now = names.contains(&name).then(|| self.agent_info(&name));
            self.watch.put_agent(name, now);
        }
        for id in interactions {
            let now = self.question_info(id);
            self.watch.put_interaction(id, now);
        }
        self.watch.seal();
    }
}
