//! An open question to people, and what can be answered to it.

pub(crate) mod question;

use std::collections::{BTreeMap, BTreeSet};

use acp_wire::Id;
use bytes::Bytes;

use crate::ids::{ClientId, HostId, SessionKey, Time};
use crate::questions::question::{Question, Scope};
use crate::record::InteractionRow;
use crate::tool_calls::frozen::Frozen;

/// An open question.
#[derive(Debug)]
pub(crate) struct Interaction {
    /// The session that it is about, unless it is about a request.
    pub(crate) session: Option<SessionKey>,
    pub(crate) host: HostId,
    /// The agent's own id of the request.
    pub(crate) agent_request: Id,
    /// The request with the session's public id.
    pub(crate) line: Bytes,
    pub(crate) question: Question,
    pub(crate) at: Time,
    /// What it asks to allow, if it is a permission question.
    pub(crate) frozen: Option<Box<Frozen>>,
    /// The request to the agent that it is about, unless it is about a session.
    pub(crate) about: Option<u64>,
    /// How often a client gave an answer that means nothing.
    pub(crate) refused: BTreeMap<ClientId, u32>,
    /// Who has been asked under the number of the interaction itself.
    pub(crate) asked: BTreeSet<ClientId>,
}

impl Interaction {
    /// From its row, whose line is the agent's request.
    pub(crate) fn new(row: &InteractionRow, agent_request: Id, question: Question) -> Interaction {
        let about = match Question::read(&row.line) {
            Ok((Scope::Request(id), _)) => id.as_u64(),
            _ => None,
        };
        Interaction {
            session: row.session,
            host: row.host,
            agent_request,
            line: row.line.clone(),
            question,
            at: row.at,
            frozen: row.frozen.clone(),
            about,
            refused: BTreeMap::new(),
            asked: BTreeSet::new(),
        }
    }

    /// A client has had the question since before it came back.
    pub(crate) fn was_offered(&mut self, client: ClientId) {
        self.asked.insert(client);
    }
}
