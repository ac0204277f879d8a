//! While the journal cannot be written: what is refused, and what had been accepted before that was known.
//!
//! ```text
//!  request ─▶ accepted ─▶ its batch is committed ─▶ its answer
//!                 │ the batch cannot be written
//!                 ├─ it only reads ────────────────▶ its answer, at once
//!                 ├─ `initialize` ─────────────────▶ an error at once, and it can be sent again
//!                 └─ it changes something ─────────▶ an error at once; its answer, if it still comes, is dropped
//! ```
//!
//! The batch is kept and tried again, so what it does may still happen. That is what the error says: it is no
//! refusal, and who sends the request again may have it carried out twice.

use acp_wire::{Message, build, parse};
use acpd_api::Reason;

use crate::hub::Hub;
use crate::ids::Requester;
use crate::input::{Accepted, Batch, Effect, LogPage, SessionValues, ToClient};

/// Where the answer to a request is.
enum Answer {
    Given,
    /// The request was waiting, and was removed from the queue.
    Taken(Effect),
    /// The answer is dropped when it arrives.
    ToCome,
}

impl Hub {
    /// Answers the requests of batches that cannot be written, given by what they were to do: `batches` in
    /// their order, `accepted` of all of them. To be called after [`Input::StoreFailing`].
    ///
    /// [`Input::StoreFailing`]: crate::Input::StoreFailing
    pub fn answer_unwritten(
        &mut self,
        accepted: Vec<Accepted>,
        batches: &mut [&mut Vec<Effect>],
        out: &mut Batch,
    ) {
        let Some(fault) = self.store_health.fault() else { return };
        for Accepted { to, is_initialize } in accepted {
            let answer = match self.take_answer(&to, batches) {
                Answer::Given => continue,
                Answer::Taken(
                    answer @ Effect::Client(
                        _,
                        ToClient::Log(_)
                        | ToClient::LogLevel { .. }
                        | ToClient::Search { .. }
                        | ToClient::Status { .. }
                        | ToClient::Usage { .. },
                    ),
                ) => {
                    out.urgent.push(answer);
                    continue;
                }
                answer => answer,
            };
            let mut fault = fault.clone();
            if is_initialize {
                if matches!(answer, Answer::ToCome) {
                    self.forget_waiting(&to);
                    self.close_request(&to);
                }
                if let Some(client) = self.clients.get_mut(to.client) {
                    client.initialized = false;
                }
            } else {
                fault.data.reason = Reason::OutcomeUnknown;
                fault.message +=
                    "; what was asked for may still be carried out when it can be written";
            }
            let line = build::error(&to.id, &fault.object());
            out.urgent.push(Effect::Client(to.client, ToClient::Line(line)));
        }
    }

    /// Takes back the answer to a request, wherever it waits.
    fn take_answer(&mut self, to: &Requester, batches: &mut [&mut Vec<Effect>]) -> Answer {
        let Some(client) = self.clients.get_mut(to.client) else { return Answer::Given };
        if let Some(open) = client.open.get_mut(&to.id) {
            open.given_up = true;
            return Answer::ToCome;
        }
        for effects in batches {
            if let Some(at) = effects.iter().position(|effect| answers(effect, to)) {
                return Answer::Taken(effects.remove(at));
            }
        }
        let deferred = self.sessions.take_deferred(to.client, |effect| answers(effect, to));
        deferred.map_or(Answer::Given, Answer::Taken)
    }

    /// A request is answered: its id may be used again. Returns whether the answer is wanted, which it is
    /// not if the request got an error while the journal could not be written.
    pub(crate) fn close_request(&mut self, to: &Requester) -> bool {
        let Some(client) = self.clients.get_mut(to.client) else { return true };
        client.open.remove(&to.id).is_none_or(|open| !open.given_up)
    }
}

/// Returns whether this effect answers the request.
pub(crate) fn answers(effect: &Effect, to: &Requester) -> bool {
    match effect {
        Effect::Client(client, what) if *client == to.client => match what {
            ToClient::Line(line) | ToClient::Rows(line) => {
                matches!(parse(line), Ok(Message::Response { id, .. }) if id == to.id)
            }
            ToClient::Status { id, .. }
            | ToClient::Log(LogPage { id, .. })
            | ToClient::Search { id, .. }
            | ToClient::Usage { id, .. }
            | ToClient::LogLevel { id, .. }
            | ToClient::Values(SessionValues { id, .. }) => *id == to.id,
            ToClient::Read(_) => false,
        },
        Effect::Leave { client, id, .. } => *client == to.client && *id == to.id,
        _ => false,
    }
}
