//! Requests while the journal cannot be written.
//!
//! ```text
//!  request ─▶ accepted ─▶ its batch is committed ─▶ its answer
//!                 │ the batch cannot be written
//!                 ├─ it only reads ────────▶ its answer, at once
//!                 ├─ `initialize` ─────────▶ an error at once; the client can send it again
//!                 └─ it changes something ─▶ an error at once; a later answer is dropped
//! ```
//!
//! The batch is kept and retried, so the request may still be carried out. The error says so: a
//! client that sends the request again may have it carried out twice.

use acp_wire::build;
use acpd_api::Reason;

use crate::fault::store_fault;
use crate::hub::Hub;
use crate::input::{Accepted, Batch, Effect, ToClient};

impl Hub {
    /// Answers the `accepted` requests of `batches` that cannot be written, in their order. Call
    /// after [`Input::StoreFailing`](crate::Input::StoreFailing).
    pub fn answer_unwritten(
        &mut self,
        accepted: Vec<Accepted>,
        batches: &mut [&mut Vec<Effect>],
        out: &mut Batch,
    ) {
        let Some(fault) = store_fault(&self.cx.store) else { return };
        for Accepted { to, is_initialize } in accepted {
            let is_open = self.clients.give_up(&to);
            let taken = if is_open { None } else { self.clients.take_answer(&to, batches) };
            match taken {
                None if !is_open => continue,
                Some(
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
                _ => {}
            }
            let mut fault = fault.clone();
            if is_initialize {
                if is_open {
                    self.forget_waiting(&to);
                    self.clients.close_request(&to);
                }
                self.clients.set_initialized(to.client, false);
            } else {
                fault.data.reason = Reason::OutcomeUnknown;
                fault.message +=
                    "; what was asked for may still be carried out when it can be written";
            }
            let line = build::error(&to.id, &fault.object());
            out.urgent.push(Effect::Client(to.client, ToClient::Line(line)));
        }
    }
}
