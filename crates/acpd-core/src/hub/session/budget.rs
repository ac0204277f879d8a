//! The daily budget: acpd warns, or asks the user before the next turn.
//!
//! ```text
//!  next turn ─▶ used up? ─ ask ─▶ a question, for this session ── allow ─▶ all sessions continue
//!                   │                    ├── the next day begins ─────────▲
//!                   └─ warn ─▶ it begins └── deny ─▶ the prompts of this session end
//! ```
//!
//! The question is acpd's own and not on disk, because the prompt is: the next daemon asks again.

use acp_wire::{Id, build};
use acpd_api::{BudgetInfo, Reason};
use serde_json::json;

use crate::budget::{money, next_day, question, sentence};
use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::SessionKey;
use crate::questions::question::OpenQuestion;
use crate::timers::Timer;

const GO_ON: &str = "go_on";

impl Hub {
    fn ask_for_budget(&mut self, key: SessionKey, info: &BudgetInfo) {
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
        self.ask_own_question(key, &line);
    }

    /// An unusable answer ends the prompts, too.
    pub(crate) fn on_budget_answer(&mut self, key: SessionKey, option: Option<&str>) {
        let Some(info) = self.budget.info(&self.cx.config, self.cx.now) else { return };
        if option != Some(GO_ON) {
            let text =
                format!("the budget is used up, and the prompt was refused: {}", sentence(&info));
            let hint = "try again tomorrow, or raise `per_day` under `[budget]`";
            let fault = Fault::new(Reason::Budget, text).session(&self.session(key).row.public_id);
            return self.fail_queue(key, &fault.hint(hint));
        }
        self.budget.allow(&info);
        self.close_questions(self.questions.which(OpenQuestion::is_own));
    }

    /// Withdraws the questions: the next day begins with nothing spent.
    pub(crate) fn on_budget_timer(&mut self) {
        self.budget.on_next_day();
        self.close_questions(self.questions.which(OpenQuestion::is_own));
    }

    /// Continues sessions with a new budget, asks for held ones, and withdraws obsolete questions.
    pub(crate) fn settle_budget(&mut self) {
        if self.budget.take_may_continue() {
            for key in self.sessions.awake().map(|(key, _)| key).collect::<Vec<_>>() {
                self.wake_session(key);
            }
        }
        if let Some(info) = self.budget.hold(&self.cx.config, self.cx.now) {
            let waiting = self.sessions.awake().filter(|(_, session)| !session.queue.is_empty());
            let mut held: Vec<SessionKey> = waiting.map(|(key, _)| key).collect();
            held.retain(|key| {
                let asked = |open: &OpenQuestion| open.is_own() && open.session() == Some(*key);
                self.free_host(*key).is_some() && self.questions.which(asked).is_empty()
            });
            if !held.is_empty() {
                self.cx.timers.set(Timer::Budget, next_day(&self.cx.config, self.cx.now));
            }
            for key in held {
                self.ask_for_budget(key, &info);
            }
        }
        let is_over = |open: &OpenQuestion| {
            let session = open.session().and_then(|key| self.sessions.get(&key));
            open.is_own() && session.is_some_and(|session| session.queue.is_empty())
        };
        self.close_questions(self.questions.which(is_over));
    }
}
