//! Sessions that an agent has just made.

use std::collections::{BTreeMap, BTreeSet};

use acp_wire::remove_member;
use bytes::Bytes;

use crate::cx::Cx;
use crate::hub::Hub;
use crate::ids::{SessionKey, SlotId};
use crate::input::Batch;
use crate::record::{Counter, Dormant, Record, Replayable, SessionRow, Used};
use crate::requests::purpose::NewSession;
use crate::session::{Session, State, numbered};

impl Hub {
    /// Takes over a session that the agent has just made for a client.
    pub(crate) fn adopt_new(
        &mut self,
        slot: SlotId,
        new: &NewSession,
        agent_id: &str,
        out: &mut Batch,
    ) -> SessionKey {
        let agent = self.processes[&slot].profile.clone();
        let key = self.sessions.next_key();
        // Some agents count from 0 after each start: the second "0" gets another public id.
        let taken = self.sessions.is_taken(&agent, agent_id);
        let public_id = if taken { numbered(agent_id, key) } else { agent_id.to_owned() };
        let mcp_servers = acp_wire::locate(&new.params, &["mcpServers"])
            .map(|range| Bytes::copy_from_slice(&new.params[range]));
        let row = SessionRow {
            key,
            agent,
            public_id,
            agent_id: agent_id.to_owned(),
            name: new.name.clone(),
            cwd: new.cwd.clone(),
            params: remove_member(&new.params, &["mcpServers"]),
            host: self.processes[&slot].host().map(|host| host.id),
            rest: Dormant::Parked,
            reason: None,
            restore: None,
            mode: None,
            options: BTreeMap::new(),
            open_tools: BTreeSet::new(),
            children: BTreeMap::new(),
            title: None,
            own_title: None,
            info: None,
            archived: false,
            removed: None,
            client_meta: self.offer_of_maker(slot, new.to.client),
            prompts: 0,
            heard: false,
            last_prompt: 0,
            replayable: Replayable::default(),
            last_outcome: None,
            usage: Used { counter: Counter::NewProcess(None), ..Used::default() },
            created: self.now,
            updated: self.now,
        };
        out.records.push(Record::Session(Box::new(row.clone())));
        if let Some(servers) = &mcp_servers {
            out.records.push(Record::Secret { session: key, mcp_servers: servers.clone() });
        }
        out.durable = true;
        let held_since = self.now;
        let session = Session { mcp_servers, held_since, ..Session::new(row, slot, State::Live) };
        if self.processes[&slot].dedicated.is_some() {
            self.processes.dedicate(&mut cx!(self, out), slot, key);
        }
        self.sessions.insert(session);
        self.sessions.route(key);
        self.watch_sleep(slot);
        if let Some(client) = self.clients.get_mut(new.to.client) {
            client.made.insert(key);
        }
        self.watch_life(key);
        key
    }
}
