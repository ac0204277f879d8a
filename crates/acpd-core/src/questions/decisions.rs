//! Decisions of people that hold until they are taken back. Each change is a record.

use acpd_api::{PolicyList, RememberedInfo};
use acpd_policy::Remembered;

use crate::input::Batch;
use crate::record::Record;

#[derive(Debug, Default)]
pub(crate) struct Decisions {
    known: Vec<Remembered>,
}

impl Decisions {
    pub(crate) fn new(known: Vec<Remembered>) -> Decisions {
        Decisions { known }
    }

    /// For the policy to decide with.
    pub(crate) fn all(&self) -> &[Remembered] {
        &self.known
    }

    /// Remembers a decision, in place of one on the same; its number is given here and returned.
    pub(crate) fn remember(&mut self, mut new: Remembered, out: &mut Batch) -> i64 {
        let same = self.known.iter_mut().find(|known| {
            known.agent == new.agent
                && known.workspace == new.workspace
                && known.subject == new.subject
        });
        if let Some(known) = same {
            new.id = known.id;
            *known = new.clone();
        } else {
            new.id = self.known.iter().map(|known| known.id).max().unwrap_or(0) + 1;
            self.known.push(new.clone());
        }
        let id = new.id;
        out.records.push(Record::Remembered(new));
        id
    }

    /// Takes a decision back. Returns whether there was one.
    pub(crate) fn forget(&mut self, id: i64, out: &mut Batch) -> bool {
        let before = self.known.len();
        self.known.retain(|known| known.id != id);
        let was_there = self.known.len() < before;
        if was_there {
            out.records.push(Record::Unremembered { id });
        }
        was_there
    }

    pub(crate) fn info(&self) -> PolicyList {
        let info = |known: &Remembered| RememberedInfo {
            id: known.id,
            agent: known.agent.clone().into(),
            workspace: known.workspace.clone().into(),
            subject: known.subject.to_string().into(),
            verdict: known.verdict.to_string().into(),
            at: known.at,
        };
        PolicyList { remembered: self.known.iter().map(info).collect() }
    }
}
