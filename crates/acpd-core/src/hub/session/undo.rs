//! Deletion by a user, and its undo; [`crate::session::lifecycle`] has the diagram.

use acpd_api::{RemoveParams, RemoveResult, UndoParams, UndoResult};

use crate::clients::{Asked, Served};
use crate::hub::Hub;
use crate::params::read;

impl Hub {
    pub(crate) fn session_remove(&mut self, asked: Asked<'_>) -> Served {
        let RemoveParams { session, now } = read(asked.params)?;
        let key = self.resolve(&session)?;
        let until = self.delete_for_person(key, now);
        self.answer(asked.to, &RemoveResult { until: until.map(|until| until.0) });
        Ok(())
    }

    pub(crate) fn session_undo(&mut self, asked: Asked<'_>) -> Served {
        let wanted: UndoParams = read(asked.params)?;
        let key = self.sessions.find_aside(&wanted)?;
        let Some(aside) = self.sessions.take_from_aside(key) else { return Ok(()) };
        let agent = aside.row.agent.clone();
        let mut session =
            aside.back(self.processes.slot_for(key, &agent, &self.cx.config, self.cx.now));
        let row = session.row.edit();
        row.removed = None;
        row.updated = self.cx.now;
        let (cwd, name) = (row.cwd.clone(), row.name.clone());
        let name = name.filter(|name| self.name_is_free(&agent, &cwd, name, None).is_err());
        if name.is_some() {
            row.name = None;
        }
        self.cx.out.durable = true;
        self.sessions.insert(session);
        // Only touched sessions are checked for changed rows.
        self.session_mut(key);
        let kept = self.sessions.aside_of(&wanted).count() as u32;
        let (session, name_taken) = (self.session_info(key), name.map(Into::into));
        let result = UndoResult { session, name_taken, kept };
        self.answer(asked.to, &result);
        Ok(())
    }
}
