//! Which connections may stay.
//!
//! The daemon tells the hub of a connection when it has said its first line (`acpd/src/door.rs` bounds
//! those that say nothing). From then on it is a manager until it says `initialize`, and a client after
//! that:
//!
//! ```text
//!  first line `_acpd/…` ───▶ manager ── `initialize` ──▶ client, if there are fewer than `max_clients`;
//!  another first line ─────▶    │                  ┌──▶   else told and closed
//!  first line `initialize` ─────┼──────────────────┘
//!                               └─ told and closed when another manager needs the place:
//!                                  idle ones first, the one that was silent for the longest
//! ```
//!
//! Clients that run under an agent ([`crate::hub::clients::under_agent`]) have at most half of the places of clients, and
//! give theirs to others when none is left, the idle ones first. So no tool of an agent locks the editors of
//! a person out.
//!
//! Architecture invariant: clients leave [`MANAGERS`] places that they cannot have, and of those the
//! newest manager always gets one. So no number of connections keeps a person from looking at the daemon
//! and from stopping it.

use acp_wire::{Id, Message, build};
use acpd_api::Reason;

use crate::clients::Client;
use crate::fault::Fault;
use crate::hub::Hub;
use crate::ids::ClientId;
use crate::input::{Batch, Effect, ToClient};

/// Connections that may be there beside `max_clients`, none of which has said `initialize`.
const MANAGERS: usize = 16;

/// The kind of a connection's line, for its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Client,
    Manage,
    Other,
}

impl Wish {
    fn of(message: Option<&Message<'_>>) -> Wish {
        match message {
            Some(Message::Request { method, .. }) if method == "initialize" => Wish::Client,
            Some(Message::Request { method, .. }) if acpd_api::is_own(method) => Wish::Manage,
            _ => Wish::Other,
        }
    }
}

impl Hub {
    /// A connection says a line, which may be no message. Returns whether it may stay; if not, it was
    /// told why.
    pub(crate) fn admit(
        &mut self,
        client: ClientId,
        message: Option<&Message<'_>>,
        out: &mut Batch,
    ) -> bool {
        let Some(here) = self.clients.get_mut(client) else { return false };
        let is_new = here.last_heard.replace(self.now).is_none();
        let (wish, is_manager) = (Wish::of(message), here.is_manager());
        let most = self.config.max_clients as usize;
        let placed = match wish {
            Wish::Client if is_manager => self.place_client(client, out),
            _ => Ok(()),
        };
        let refusal = if let Err(refusal) = placed {
            refusal
        } else if !is_new || self.clients.len() <= most + MANAGERS {
            return true;
        } else if wish == Wish::Other {
            Fault::new(Reason::TooMany, "too many connections are open")
                .hint("begin with `initialize`, or close another connection")
        } else {
            self.make_place(client, out);
            return true;
        };
        let id = match message {
            Some(Message::Request { id, .. }) => id.clone(),
            _ => Id::null(),
        };
        self.let_go(client, &id, &refusal, out);
        false
    }

    /// Finds a place for a connection that becomes a client.
    ///
    /// # Errors
    /// When there is none that it may have.
    fn place_client(&mut self, newcomer: ClientId, out: &mut Batch) -> Result<(), Fault> {
        const MORE: &str = "close an editor or an `acpctl attach` (`acpctl ps` tells which sessions have clients), or raise \
             `max_clients` under `[daemon]` in the configuration and then `acpctl daemon restart`";
        let most = self.config.max_clients as usize;
        let clients = self.clients.values().filter(|here| !here.is_manager()).count();
        let tools = self.clients.values().filter(|here| here.is_tool()).count();
        let is_person = self.may_decide(newcomer);
        if !is_person && tools >= most.div_ceil(2) {
            let text = format!("{tools} clients that run under an agent are connected already");
            return Err(Fault::new(Reason::TooMany, text).hint(MORE));
        }
        if clients < most {
            return Ok(());
        }
        let Some(least) = self.least_missed(|_, here| is_person && here.is_tool()) else {
            let text = format!("{clients} clients are connected already");
            return Err(Fault::new(Reason::TooMany, text).hint(MORE));
        };
        let text =
            "the connection was closed to make room for a client that does not run under an agent";
        self.let_go(least, &Id::null(), &Fault::new(Reason::TooMany, text).hint(MORE), out);
        Ok(())
    }

    /// Of these connections the one that is missed least: an idle one if there is one, and the one that
    /// was silent for the longest.
    fn least_missed(&self, of: impl Fn(ClientId, &Client) -> bool) -> Option<ClientId> {
        let these = self.clients.iter().filter(|(id, here)| of(**id, here));
        let least = these.min_by_key(|(id, here)| {
            (self.watch.has(**id) || !here.is_idle(), here.last_heard, **id)
        });
        least.map(|(id, _)| *id)
    }

    /// Lets go of the manager that is missed least, so that another connection has its place.
    fn make_place(&mut self, newcomer: ClientId, out: &mut Batch) {
        let is_other = |id, here: &Client| id != newcomer && here.is_manager();
        let Some(least) = self.least_missed(is_other) else { return };
        let text = "the connection was closed to make room for another one";
        let fault = Fault::new(Reason::TooMany, text)
            .hint("connect again; connections that have said `initialize` are kept");
        self.let_go(least, &Id::null(), &fault, out);
    }

    /// Tells a connection why it is closed, under the id of its request if it is about one.
    pub(crate) fn let_go(&mut self, client: ClientId, id: &Id, fault: &Fault, out: &mut Batch) {
        let line = build::error(id, &fault.object());
        let last = [Effect::Client(client, ToClient::Line(line)), Effect::Close(client)];
        // While the journal cannot be written nothing else would get through.
        if self.store_health.is_failing() {
            out.urgent.extend(last);
        } else {
            out.effects.extend(last);
        }
        self.on_client_closed(client, out);
    }
}
