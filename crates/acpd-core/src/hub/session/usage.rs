use acpd_api::{Tokens, TurnUsage};
use bytes::Bytes;

use crate::hub::Hub;
use crate::ids::SessionKey;

impl Hub {
    pub(crate) fn book_turn(
        &mut self,
        key: SessionKey,
        turn: u64,
        tokens: Tokens,
    ) -> Option<TurnUsage> {
        let cost = self.session_mut(key).row.edit().usage.turn.take();
        let usage = TurnUsage { tokens, cost };
        self.book(key, Some(turn), usage.clone());
        (!usage.tokens.is_empty() || usage.cost.is_some()).then_some(usage)
    }

    pub(crate) fn book(&mut self, key: SessionKey, turn: Option<u64>, usage: TurnUsage) {
        let row = &self.sessions[&key].row;
        if let Some(text) = self.budget.on_used(&mut self.cx, (row, turn), usage) {
            self.notice(key, "warning", &text);
        }
    }

    pub(crate) fn on_usage_update(&mut self, key: SessionKey, line: &Bytes) {
        for cost in self.session_mut(key).note_usage(line) {
            self.book(key, None, TurnUsage { tokens: Tokens::default(), cost: Some(cost) });
        }
    }
}
