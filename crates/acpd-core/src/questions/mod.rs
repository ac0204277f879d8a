//! Open questions to people. Only [`Questions`] knows which are open, who was asked and under which
//! number; the hub says who may answer, and carries out what follows from the end of one. What was
//! decided for good is in [`decisions`]. The diagram is in `hub/questions/interaction.rs`.

pub(crate) mod decisions;
pub(crate) mod question;

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use acp_wire::acp::ElicitationMode;
use acp_wire::{Id, lossy_at};
use acpd_api::{Doing, DoingKind, Untrusted};
use bytes::Bytes;

use crate::gist::Gist;
use crate::ids::{ClientId, HostId, IdSource, InteractionId, SessionKey, Time};
use crate::questions::question::{Question, Scope};
use crate::record::InteractionRow;
use crate::tool_calls::frozen::Frozen;

/// Questions of one session, or of one process about requests, that may be open at once.
const OPEN: usize = 64;

/// Pages that were shown and are not done yet.
const PAGES: usize = 256;

/// Invalid answers of one client to one question before that client is not asked again.
const ASKED: u32 = 3;

/// The asking agent, which gets the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AskedBy {
    /// The agent of this process, under an id of its own.
    Agent { host: HostId, request: Id },
    /// acpd, whether the next turn may begin.
    Budget,
}

#[derive(Debug)]
pub(crate) struct Interaction {
    /// The session that it is about, unless it is about a request.
    pub(crate) session: Option<SessionKey>,
    pub(crate) asked_by: AskedBy,
    /// The request with the session's public id.
    pub(crate) line: Bytes,
    pub(crate) question: Question,
    pub(crate) at: Time,
    /// The call of a permission question.
    pub(crate) frozen: Option<Box<Frozen>>,
    /// The diff whose file is being read: the question waits for it.
    pub(crate) looks_at: Option<usize>,
    /// Subject of the question, in short.
    gist: Untrusted,
    /// The request to the agent that it is about, unless it is about a session.
    pub(crate) about: Option<u64>,
    /// How often a client gave an answer that means nothing.
    refused: BTreeMap<ClientId, u32>,
    /// Clients that were asked under the number of the interaction itself.
    asked: BTreeSet<ClientId>,
}

impl Interaction {
    /// An agent's, from its row, whose line is the agent's request.
    pub(crate) fn of_agent(row: &InteractionRow, request: Id, question: Question) -> Interaction {
        let about = match Question::read(&row.line) {
            Ok((Scope::Request(id), _)) => id.as_issued(),
            _ => None,
        };
        let asked_by = AskedBy::Agent { host: row.host, request };
        let (line, frozen) = (row.line.clone(), row.frozen.clone());
        Interaction {
            about,
            ..Interaction::new(asked_by, row.session, row.at, line, question, frozen)
        }
    }

    /// acpd's own, about the budget, before a turn of this session.
    pub(crate) fn of_budget(
        session: SessionKey,
        at: Time,
        line: Bytes,
        question: Question,
    ) -> Interaction {
        let frozen = Some(Box::new(Frozen::of_own_question(&line)));
        Interaction::new(AskedBy::Budget, Some(session), at, line, question, frozen)
    }

    fn new(
        asked_by: AskedBy,
        session: Option<SessionKey>,
        at: Time,
        line: Bytes,
        question: Question,
        frozen: Option<Box<Frozen>>,
    ) -> Interaction {
        let asked = match &frozen {
            Some(frozen) => frozen.gist(),
            None => message_in(&line),
        };
        Interaction {
            session,
            asked_by,
            gist: Gist::of(&asked).text().into(),
            line,
            question,
            at,
            frozen,
            looks_at: None,
            about: None,
            refused: BTreeMap::new(),
            asked: BTreeSet::new(),
        }
    }

    /// The process whose agent asks it.
    pub(crate) fn host(&self) -> Option<HostId> {
        match self.asked_by {
            AskedBy::Agent { host, .. } => Some(host),
            AskedBy::Budget => None,
        }
    }
}

/// An agent's text for a form or a page.
pub(crate) fn message_in(line: &[u8]) -> Cow<'_, str> {
    lossy_at(line, &["params", "message"]).unwrap_or_default()
}

/// A question that is not open any more.
#[derive(Debug)]
pub(crate) struct Closed {
    pub(crate) question: Interaction,
    /// Clients with an open request, with its number.
    pub(crate) offers: Vec<(ClientId, u64)>,
}

/// A look at the file that a call replaces.
#[derive(Debug)]
pub(crate) enum SeenFile {
    Content(String),
    Missing,
    Unreadable,
}

#[derive(Debug, Default)]
pub(crate) struct Questions {
    open: BTreeMap<InteractionId, Interaction>,
    /// Asked clients, by the numbers of the requests.
    offers: BTreeMap<(ClientId, u64), InteractionId>,
    /// Clients that were shown a page, by question.
    pages: BTreeMap<(HostId, String), BTreeSet<ClientId>>,
    /// Those that were opened or closed.
    changed: BTreeSet<InteractionId>,
}

impl Questions {
    /// # Errors
    /// When too many questions of the session are open, or of the process if it is about a request.
    pub(crate) fn check_room(&self, key: Option<SessionKey>, host: HostId) -> Result<(), String> {
        let same = |open: &&Interaction| {
            open.session == key && (key.is_some() || open.host() == Some(host))
        };
        if self.open.values().filter(same).count() >= OPEN {
            return Err(format!("{OPEN} questions are open already"));
        }
        Ok(())
    }

    pub(crate) fn open(&mut self, id: InteractionId, question: Interaction) {
        self.open.insert(id, question);
        self.changed.insert(id);
    }

    pub(crate) fn get(&self, id: InteractionId) -> Option<&Interaction> {
        self.open.get(&id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (InteractionId, &Interaction)> {
        self.open.iter().map(|(id, open)| (*id, open))
    }

    pub(crate) fn which(&self, is_meant: impl Fn(&Interaction) -> bool) -> Vec<InteractionId> {
        self.iter().filter(|(_, open)| is_meant(open)).map(|(id, _)| id).collect()
    }

    pub(crate) fn of_session(&self, key: SessionKey) -> Vec<InteractionId> {
        self.which(|open| open.session == Some(key))
    }

    /// Begins to look at the file of a diff of a question, or is done with that: then its row may be told.
    pub(crate) fn look_at(
        &mut self,
        id: InteractionId,
        diff: Option<usize>,
    ) -> Option<&Interaction> {
        let open = self.open.get_mut(&id)?;
        open.looks_at = diff;
        if diff.is_none() {
            self.changed.insert(id);
        }
        self.open.get(&id)
    }

    /// Takes what is in the file that is looked at. Returns the diff of that file.
    pub(crate) fn take_file(&mut self, id: InteractionId, seen: SeenFile) -> Option<usize> {
        let open = self.open.get_mut(&id)?;
        let at = open.looks_at?;
        if let Some(frozen) = &mut open.frozen {
            match seen {
                SeenFile::Content(before) => frozen.take_file(at, Some(before)),
                SeenFile::Missing => frozen.take_file(at, None),
                SeenFile::Unreadable => {}
            }
        }
        Some(at)
    }

    /// Returns whether a question is open for a person in a session.
    pub(crate) fn are_asked(&self, key: SessionKey) -> bool {
        self.open.values().any(|open| open.session == Some(key) && open.looks_at.is_none())
    }

    /// Returns whether a question of a session is open.
    pub(crate) fn are_open(&self, key: SessionKey) -> bool {
        self.open.values().any(|open| open.session == Some(key))
    }

    /// That a session waits for the answer to its oldest question.
    pub(crate) fn waiting(&self, key: SessionKey) -> Option<Doing> {
        let is_asked = |open: &&Interaction| open.session == Some(key) && open.looks_at.is_none();
        let open = self.open.values().find(is_asked)?;
        Some(Doing { kind: DoingKind::Waiting, text: open.gist.clone(), since: open.at.0 })
    }

    /// Returns the question with this id of the agent.
    pub(crate) fn asked_as(&self, host: HostId, id: &Id) -> Option<InteractionId> {
        let asked_by = AskedBy::Agent { host, request: id.clone() };
        self.iter().find(|(_, open)| open.asked_by == asked_by).map(|(id, _)| id)
    }

    /// Asks a client; the number under which it is asked. The first time that is one which the next
    /// daemon knows, too.
    pub(crate) fn offer(
        &mut self,
        client: ClientId,
        id: InteractionId,
        ids: &mut IdSource,
    ) -> Option<u64> {
        let open = self.open.get_mut(&id)?;
        if let Question::Elicitation(ElicitationMode::Url { elicitation_id, .. }) = &open.question
            && let Some(host) = open.host()
        {
            let page = (host, elicitation_id.clone());
            self.pages.entry(page).or_default().insert(client);
            while self.pages.len() > PAGES {
                self.pages.pop_first();
            }
        }
        let is_first = open.asked.insert(client);
        let number = if is_first { id.0 } else { ids.issue() };
        self.offers.insert((client, number), id);
        Some(number)
    }

    /// A client has had a question since before it came back. Returns whether that is open.
    pub(crate) fn was_offered(&mut self, client: ClientId, id: InteractionId) -> bool {
        let Some(open) = self.open.get_mut(&id) else { return false };
        open.asked.insert(client);
        self.offers.insert((client, id.0), id);
        true
    }

    pub(crate) fn is_offered(&self, client: ClientId, id: InteractionId) -> bool {
        self.offers.iter().any(|((of, _), what)| *of == client && *what == id)
    }

    /// Takes out the offer that a client's response belongs to. Returns its question.
    pub(crate) fn take_offer(&mut self, client: ClientId, id: &Id) -> Option<InteractionId> {
        self.offers.remove(&(client, id.as_issued()?))
    }

    /// Counts an answer that means nothing. Returns whether the client is asked again.
    pub(crate) fn count_invalid_answer(&mut self, client: ClientId, id: InteractionId) -> bool {
        let Some(open) = self.open.get_mut(&id) else { return false };
        let refused = open.refused.entry(client).or_insert(0);
        *refused += 1;
        *refused < ASKED
    }

    /// Takes back the offer of a question to one client; its number.
    pub(crate) fn take_back(&mut self, client: ClientId, id: InteractionId) -> Option<u64> {
        let mut offers = self.offers.iter();
        let place = *offers.find(|((of, _), what)| *of == client && **what == id)?.0;
        self.offers.remove(&place);
        Some(place.1)
    }

    pub(crate) fn drop_client(&mut self, client: ClientId) {
        self.offers.retain(|(of, _), _| *of != client);
    }

    /// The questions that were opened or closed since this was asked last.
    pub(crate) fn take_changed(&mut self) -> BTreeSet<InteractionId> {
        std::mem::take(&mut self.changed)
    }

    pub(crate) fn close(&mut self, id: InteractionId) -> Option<Closed> {
        let question = self.open.remove(&id)?;
        self.changed.insert(id);
        let offers = self.offers.extract_if(.., |_, of| *of == id);
        Some(Closed { question, offers: offers.map(|(place, _)| place).collect() })
    }

    /// The purpose of a page is done; returns the clients that were shown it.
    pub(crate) fn page_done(&mut self, host: HostId, page: String) -> BTreeSet<ClientId> {
        self.pages.remove(&(host, page)).unwrap_or_default()
    }
}
