//! The budget of a day: it warns, or asks a person before the next turn begins.
//!
//! ```text
//!  a turn is to begin ─▶ used up? ─ ask ─▶ a question, for this session ── allow ─▶ all sessions go on
//!                            │                    │
//!                            └─ warn ─▶ it begins └── deny ─▶ the prompts of this session end
//! ```
//!
//! The question is acpd's own, so no agent gets its answer, and it is not on disk: the prompt is, and the
//! next daemon asks again.

use acp_wire::{Id, build};
use acpd_api::{BudgetInfo, Reason};
use serde_json::json;

use crate::budget::{money, question, sentence};
use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::SessionKey;
use crate::input::Batch;
use crate::profile::WhenOver;
use crate::questions::question::OpenQuestion;

/// The option that lets a turn begin.
const GO_ON: &str = "go_on";

impl Hub {
    /// How it stands with the budget, if there is one.
    pub(crate) fn budget_info(&self) -> Option<BudgetInfo> {
        let limit = self.config.budget.as_ref()?;
        Some(self.budget.info(limit, self.day()))
    }

    /// Something was spent in a session.
    pub(crate) fn tell_budget(&mut self, key: SessionKey, out: &mut Batch) {
        let Some(info) = self.budget_info().filter(|info| self.budget.is_news(info)) else {
            return;
        };
        self.notice(key, "warning", &format!("the budget is used up: {}", sentence(&info)), out);
    }

    /// Returns whether the next turn must wait for a person, who is asked.
    pub(crate) fn waits_for_budget(&mut self, key: SessionKey, out: &mut Batch) -> bool {
        let asks =
            self.config.budget.as_ref().is_some_and(|limit| limit.when_over == WhenOver::Ask);
        let info = self.budget_info().filter(|info| asks && self.budget.holds(info));
        let Some(info) = info else { return false };
        if self.session(key).queue.is_empty() {
            return false;
        }
        let is_asked = |open: &OpenQuestion| open.is_own() && open.session() == Some(key);
        if self.questions.which(is_asked).is_empty() {
            self.ask_for_budget(key, &info, out);
        }
        true
    }

    fn ask_for_budget(&mut self, key: SessionKey, info: &BudgetInfo, out: &mut Batch) {
        let limit = money(info.per_day.amount, &info.per_day.currency);
        let again = format!("Continue, and ask again after another {limit}");
        let params = json!({
            "sessionId": self.session(key).row.public_id,
            "toolCall": {"toolCallId": "acpd-budget", "kind": "other", "status": "pending",
                "title": question(info)},
            "options": [
                {"optionId": GO_ON, "name": again, "kind": "allow_once"},
                {"optionId": "end", "name": "End the prompt", "kind": "reject_once"},
            ],
        });
        let line = build::request(&Id::from(0), "session/request_permission", &params);
        self.ask_own_question(key, &line, out);
    }

    /// A person has answered. What is no answer ends the prompts, too: the turn is not wanted.
    pub(crate) fn on_budget_answer(
        &mut self,
        key: SessionKey,
        option: Option<&str>,
        out: &mut Batch,
    ) {
        let Some(info) = self.budget_info() else { return };
        if option != Some(GO_ON) {
            let text =
                format!("the budget is used up, and the prompt was refused: {}", sentence(&info));
            let hint = "try again tomorrow, or raise `per_day` under `[budget]`";
            let fault = Fault::new(Reason::Budget, text).session(&self.session(key).row.public_id);
            return self.fail_queue(key, &fault.hint(hint), out);
        }
        self.budget.allow(&info);
        self.close_questions(self.questions.which(OpenQuestion::is_own), out);
    }

    /// Continues what waited for a budget that is allowed now, and takes back what is asked for sessions in which
    /// nothing waits any more.
    pub(crate) fn settle_budget(&mut self, out: &mut Batch) {
        if self.config.budget.is_none() {
            return;
        }
        if self.budget.take_goes_on() {
            for key in self.sessions.keys().copied().collect::<Vec<_>>() {
                self.wake_session(key, out);
            }
        }
        let is_over = |open: &OpenQuestion| {
            let session = open.session().and_then(|key| self.sessions.get(&key));
            open.is_own() && session.is_some_and(|session| session.queue.is_empty())
        };
        self.close_questions(self.questions.which(is_over), out);
    }
}
