//! The end of a run. In the evening nothing more breaks, and broken things stay so; in the morning
//! everything is repaired.

use acpd_core::ids::SessionKey;
use acpd_core::record::{Desired, Dormant, PromptMessage, SessionState, TurnRow, TurnStage};

use super::client::Asked;
use super::host::Leader;
use super::world::{AGENTS, World};

/// Steps in which everything has to become quiet.
const SETTLE: u64 = 60_000;
/// Duration of the rest (ms).
const LONG: u64 = 3_600_000;
/// Justified starts of one process slot by itself: earlier failures, the reason of its stop, and
/// the budget of the next failures.
const STARTS: u64 = 7;

impl World {
    /// Ends the faults and lets time pass until nothing moves. By then every promise to a client is
    /// kept.
    pub(super) fn settle(&mut self) -> Result<u64, String> {
        self.faults = false;
        if self.store.failing {
            self.store.failing = false;
            self.feed(acpd_core::Input::StoreWorks)?;
        }
        let mut steps = self.evening()?;
        steps += self.morning()?;
        // The clients come once more, answer open questions and end hanging work.
        for restart in [false, true] {
            self.tidy_up(restart)?;
            steps += self.quiet()?;
        }
        // The first prompt may find that a running agent has forgotten a session, and that it
        // cannot be restored: a person gives it up.
        self.give_up_what_is_stuck()?;
        steps += self.quiet()?;
        self.prompt_everywhere()?;
        steps += self.quiet()?;
        self.tidy_up(false)?;
        steps += self.quiet()?;
        self.give_up_what_is_stuck()?;
        steps += self.quiet()?;
        let prompts = self.prompt_everywhere()?;
        steps += self.quiet()?;
        self.at_rest()?;
        self.check_watchers()?;
        let mut unheard = prompts.iter().filter(|(_, text)| !self.truth.ended.contains_key(text));
        match unheard.find(|(session, _)| !self.is_rightly_lost(session)) {
            Some((_, text)) => Err(format!("everything is well, and {text} came to nothing")),
            None => Ok(steps),
        }
    }

    /// Returns whether a session is rightly lost: its agent cannot restore it. The first prompt
    /// finds that a running agent has forgotten the session, the second one that it cannot be
    /// restored.
    fn is_rightly_lost(&self, session: &str) -> bool {
        let Some((_, state)) = self.of_id(session) else { return false };
        let row = &state.row;
        let can = self.quirks[&row.agent].brings_back();
        row.rest == Dormant::Lost && !(can && self.disks[&row.agent].has(&row.agent_id))
    }

    fn quiet(&mut self) -> Result<u64, String> {
        let mut quiet = 0;
        let end = self.now + LONG;
        for step in 0..SETTLE {
            if self.hub.is_none() {
                self.boot()?;
            }
            if self.everybody()? {
                quiet = 0;
                continue;
            }
            quiet += if self.now < end && self.pass(60_000)? { 1 } else { 10 };
            // The last minute may have brought something.
            if quiet > 40 && !self.everybody()? {
                return Ok(step);
            }
        }
        Err(format!(
            "no rest within {SETTLE} steps; {:?}",
            self.hub.as_ref().map(acpd_core::Hub::unsettled)
        ))
    }

    fn everybody(&mut self) -> Result<bool, String> {
        let mut moved = false;
        self.seal();
        while self.commit()? {
            moved = true;
        }
        while let Some(effect) = self.effects.pop_front() {
            self.perform(effect)?;
            moved = true;
        }
        moved |= self.see_closed()? | self.come_back()? | self.find_directory()?;
        for id in self.clients.keys().copied().collect::<Vec<_>>() {
            moved |= self.flush(id)?;
            moved |= self.serve(id)?;
            moved |= self.answer_one(id)?;
        }
        moved |= self.refuse()? | self.adopt()? | self.watchers_read()?;
        for id in self.hosts.keys().copied().collect::<Vec<_>>() {
            moved |= self.run(id)?;
        }
        Ok(moved)
    }

    /// Without repairs, only what needs a person may wait for ever.
    fn evening(&mut self) -> Result<u64, String> {
        let steps = self.quiet()?;
        self.check_evening().map_err(|error| format!("in the evening: {error}"))?;
        self.check_watchers()?;
        Ok(steps)
    }

    fn check_evening(&mut self) -> Result<(), String> {
        let sessions = self.store.snapshot.sessions.len() as u64;
        for (agent, starts) in &self.starts {
            let slots = if agent == "solo" { sessions + 4 } else { 1 };
            if *starts > STARTS * slots {
                return Err(format!("{agent} was started {starts} times"));
            }
            let refused = self.refused_starts.get(agent).copied().unwrap_or_default();
            if refused > slots {
                return Err(format!("{agent} wants a login, and was started {refused} times"));
            }
        }
        for (id, client) in &self.clients {
            for (request, asked) in &client.open {
                if let Some(asked) = asked.iter().find(|asked| !self.may_wait(&client.agent, asked))
                {
                    return Err(format!("client {} waits for {request}: {asked:?}", id.0));
                }
            }
        }
        self.states_are_known()?;
        let unsettled = self.hub.as_ref().map(acpd_core::Hub::unsettled).unwrap_or_default();
        let waits = |line: &&String| {
            let id = line.split(':').next().unwrap_or_default();
            let is_held_back = |agent: &str| {
                let mut hosts = self.hosts.values().filter(|host| host.agent == agent);
                hosts.any(|host| host.undying && host.leader == Leader::Ended)
            };
            self.of_id(id).is_some_and(|(_, state)| {
                state.row.rest == Dormant::NeedsLogin || is_held_back(&state.row.agent)
            })
        };
        match unsettled.iter().find(|line| !waits(line)) {
            Some(line) => Err(format!("not at rest: {line}")),
            None => Ok(()),
        }
    }

    pub(super) fn of_id(&self, session: &str) -> Option<(&SessionKey, &SessionState)> {
        let key = self.store.public.get(session)?;
        self.store.snapshot.sessions.get_key_value(key)
    }

    /// Returns whether a request may have no answer because only a person can help: the agent does
    /// not answer it, and is not stopped for that; or it has a question, or requires a login.
    fn may_wait(&self, agent: &str, asked: &Asked) -> bool {
        let is_stuck = |agent: &str| {
            let mut hosts = self.hosts.values();
            hosts.any(|host| host.agent == agent && host.process.is_stuck())
        };
        match asked {
            Asked::Prompt { session, .. } => {
                let Some((key, state)) = self.of_id(session) else { return false };
                let turns = &self.store.snapshot.turns;
                let runs = turns.values().any(|turn| {
                    turn.session == *key && matches!(turn.state, TurnStage::Dispatched { .. })
                });
                let asks = self.store.snapshot.interactions.values();
                let mut asks = asks.filter(|question| question.session == Some(*key));
                state.row.rest == Dormant::NeedsLogin
                    || asks.next().is_some()
                    || (runs && is_stuck(agent))
            }
            // Work of the agent itself has no time limit, as without acpd.
            Asked::New | Asked::Login | Asked::Mode { .. } | Asked::Steer { .. } => is_stuck(agent),
            Asked::Plain
            | Asked::Initialize
            | Asked::Duplicate
            | Asked::Open { .. }
            | Asked::Leave { .. }
            | Asked::Attach { .. } => false,
        }
    }

    /// Repairs everything; some logins are reported.
    fn morning(&mut self) -> Result<u64, String> {
        for agent in AGENTS {
            self.log_in_elsewhere(agent)?;
        }
        self.missing.clear();
        for disk in self.disks.values_mut() {
            disk.lies.clear();
            disk.bad_loads = 0;
        }
        for host in self.hosts.values_mut() {
            host.process.ignores_cancel = false;
            host.process.refuses = None;
            host.undying = false;
        }
        self.quiet()
    }

    /// Checks that archived sessions are closed.
    fn archive_is_closed(&self) -> Result<(), String> {
        let rows = self.store.sessions().map(|state| &state.row);
        let mut open =
            rows.filter(|row| row.archived && !matches!(row.rest, Dormant::Closed | Dormant::Lost));
        match open.next() {
            Some(row) => Err(format!("{} is in the archive, and {:?}", row.public_id, row.rest)),
            None => Ok(()),
        }
    }

    fn at_rest(&mut self) -> Result<(), String> {
        self.archive_is_closed()?;
        let unsettled = self.hub.as_ref().map(acpd_core::Hub::unsettled).unwrap_or_default();
        if !unsettled.is_empty() {
            return Err(format!("not at rest: {unsettled:?}"));
        }
        if let Some((place, turn)) = self.store.snapshot.turns.first_key_value() {
            return Err(format!("turn {place:?} has not ended: {:?}", turn.state));
        }
        for (key, journal) in &self.store.journals {
            if journal.turn.is_some() && self.store.snapshot.sessions.contains_key(key) {
                return Err(format!("{key:?}: a turn has no end in the journal"));
            }
        }
        self.is_back()?;
        self.states_are_known()?;
        for (id, client) in &self.clients {
            if let Some((request, asked)) = client.open.first_key_value() {
                return Err(format!("client {} waits for {request}: {asked:?}", id.0));
            }
            client.missed(&self.store).map_err(|error| format!("client {}: {error}", id.0))?;
        }
        for (id, state) in &self.store.snapshot.hosts {
            if let Some((chunk, _)) = state.outbox.first_key_value() {
                return Err(format!("{id:?}: chunk {chunk} was never written"));
            }
        }
        let stuck = self.hosts.iter().find(|(_, host)| host.leader != Leader::Runs);
        match stuck {
            Some((id, host)) => Err(format!("{id:?} is still {:?}", host.leader)),
            None => Ok(()),
        }
    }

    /// Checks that clients of version 2 know whether a turn runs in their sessions.
    fn states_are_known(&self) -> Result<(), String> {
        let snapshot = &self.store.snapshot;
        let states = |session: &str| -> &'static [&'static str] {
            let known = self.of_id(session).filter(|(_, state)| state.row.removed.is_none());
            let Some((key, _)) = known.filter(|_| !self.store.reused.contains(session)) else {
                return &[];
            };
            let is_its = |turn: &&TurnRow| {
                turn.session == *key && matches!(turn.state, TurnStage::Dispatched { .. })
            };
            let mut asks = snapshot.interactions.values();
            match snapshot.turns.values().find(is_its).map(|turn| &turn.state) {
                None => &["idle"],
                // The agent does not have the prompt.
                Some(TurnStage::Dispatched { message: None, .. }) => &["idle", "running"],
                // The agent says itself when it continues.
                Some(TurnStage::Dispatched { message: Some(PromptMessage::Agents(_)), .. }) => {
                    &["running", "requires_action"]
                }
                Some(_) if asks.any(|row| row.session == Some(*key)) => {
                    &["running", "requires_action"]
                }
                Some(_) => &["running"],
            }
        };
        for (id, client) in self.clients.iter().filter(|(_, client)| client.is_second()) {
            if let Some(wrong) = client.wrong_state(states) {
                return Err(format!("client {}: {wrong}", id.0));
            }
        }
        Ok(())
    }

    pub(super) fn is_down(&self, agent: &str) -> bool {
        let row = self.store.snapshot.agents.get(agent);
        row.is_some_and(|row| row.desired == Desired::Down)
    }

    /// Checks that no session waits for a login or a directory, except those that a person has
    /// stopped.
    fn is_back(&self) -> Result<(), String> {
        let snapshot = &self.store.snapshot;
        for state in self.store.sessions() {
            let row = &state.row;
            if matches!(row.rest, Dormant::NeedsLogin | Dormant::NoDirectory)
                && !self.is_down(&row.agent)
            {
                return Err(format!("{} is still {:?}", row.public_id, row.rest));
            }
        }
        let mut wanting = snapshot.auth.values().filter(|row| row.state.wants_login());
        match wanting.find(|row| !self.is_down(&row.agent)) {
            Some(row) => Err(format!("{} has a login, and is still {:?}", row.agent, row.state)),
            None => Ok(()),
        }
    }
}
