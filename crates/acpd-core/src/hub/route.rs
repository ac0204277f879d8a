//! The reactions to events of machines: who reacts, and in which order.

use crate::event::EngineEvent;
use crate::hub::Hub;
use crate::input::{Batch, Effect, ToClient};
use crate::record::EventKind;

impl Hub {
    /// Lets the others react to what a machine reports. Returns whether the machine had to do with the input.
    pub(crate) fn route(
        &mut self,
        events: impl Into<Option<Vec<EngineEvent>>>,
        out: &mut Batch,
    ) -> bool {
        let Some(events) = events.into() else { return false };
        for event in events {
            match event {
                EngineEvent::AgentAnswered(answer) => self.write_answer(Some(answer), out),
                EngineEvent::ClientAsked { client, line } => {
                    out.effects.push(Effect::Client(client, ToClient::Line(line)));
                }
                EngineEvent::SessionUpdated { session, line } => {
                    self.append(session, EventKind::Update, line, None, out);
                }
            }
        }
        true
    }
}
