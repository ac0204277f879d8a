use std::collections::BTreeSet;

use crate::hub::Hub;
use crate::ids::{ClientId, SessionKey};
use crate::mcp::client_servers::CallEnd;

impl Hub {
    /// `returns`: the client may reconnect.
    pub(crate) fn on_client_left(
        &mut self,
        client: ClientId,
        number: u64,
        returns: bool,
        sessions: Vec<SessionKey>,
    ) {
        self.services.on_client_gone(&mut self.cx, client);
        self.end_server_calls(&CallEnd::ToolGone(client));
        self.questions.on_client_gone(client);
        self.watch.end(client);
        if returns {
            // The client sends requests again that no agent got.
            for session in self.sessions.values_mut() {
                session.waiting.retain(|relayed| relayed.to.client != client);
            }
            self.processes.forget_client(client);
        } else {
            self.end_server_calls(&CallEnd::ClientGone(number));
        }
        let mut slots = BTreeSet::new();
        for key in sessions {
            let session = self.session_mut(key);
            slots.insert(session.slot);
            if returns {
                continue;
            }
            // The turn continues without a receiver of its response.
            let queued = session.queue.iter_mut().map(|prompt| &mut prompt.senders);
            for senders in queued.chain(session.running.iter_mut().map(|turn| &mut turn.senders)) {
                senders.retain(|to| to.client != client);
            }
        }
        for slot in slots {
            self.check_idle(slot);
        }
    }
}
