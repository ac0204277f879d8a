//! Questions that this command cannot ask itself: forms and pages, and all questions if it runs under an agent.
//! Prints how to answer them.

use std::collections::HashSet;

use acp_wire::Id;
use acpd_api::{Empty, InteractionList, Question, Untrusted, method};
use serde_json::value::RawValue;

use crate::error::Result;
use crate::info::question::described;
use crate::live::Live;
use crate::text::{Role, Text, text};
use crate::ui::Ui;

/// Printed questions that are answered elsewhere.
#[derive(Debug, Default)]
pub(crate) struct Elsewhere {
    /// The request for the open questions.
    asked: Option<Id>,
    told: HashSet<Untrusted>,
}

impl Elsewhere {
    /// Something waits for an answer: asks what.
    pub(crate) fn look(&mut self, live: &mut Live) -> Result {
        self.asked = Some(live.request(method::INTERACTION_LIST, &Empty {})?);
        Ok(())
    }

    /// Returns whether this is the id of the answer to [`Elsewhere::look`].
    pub(crate) fn waits_for(&self, id: &Id) -> bool {
        self.asked.as_ref() == Some(id)
    }

    /// Prints the questions of this session that were not printed yet. `here`: permission questions are asked
    /// here.
    pub(crate) fn tell(&mut self, open: &RawValue, session: &Untrusted, here: bool, ui: &mut Ui) {
        let open: InteractionList = serde_json::from_str(open.get()).unwrap_or_default();
        for question in open.interactions {
            let is_ours = question.session_id.as_ref() == Some(session);
            let is_asked_here = here && matches!(question.question, Question::Permission { .. });
            if !is_ours || is_asked_here || !self.told.insert(question.id.clone()) {
                continue;
            }
            let line = text!("the agent asks: {}", described(&question));
            ui.say(Text::styled(Role::Warning, line));
            ui.say(text!("answer it with: acpctl answer {}", question.id));
        }
    }
}
