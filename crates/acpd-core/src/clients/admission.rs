//! Limits on connections.
//!
//! The daemon reports a connection with its first line (`acpd/src/door.rs` limits silent ones).
//!
//! ```text
//!  first line `_acpd/…` ───▶ manager ── `initialize` ──▶ client, if there are fewer than `max_clients`;
//!  another first line ─────▶    │                  ┌──▶   else refused and closed
//!  first line `initialize` ─────┼──────────────────┘
//!                               └─ closed with a reason if another manager needs the place:
//!                                  idle ones first, the longest silent one
//! ```
//!
//! Clients that run under an agent have at most half of the places, and
//! lose them to other clients when none is left, idle ones first. So an agent's tools cannot lock
//! out the user's editors.
//!
//! Architecture invariant: [`MANAGERS`] places are reserved for managers, and the newest manager
//! always gets one. So no number of connections keeps the user from managing and stopping the
//! daemon.

use acp_wire::{Id, Message, build};
use acpd_api::Reason;

use crate::clients::{Client, Clients};
use crate::cx::Cx;
use crate::fault::Fault;
use crate::ids::ClientId;
use crate::input::{Effect, ToClient};

/// Places for managers, in addition to `max_clients`.
const MANAGERS: usize = 16;

/// Returns whether a client watches all rows.
type IsWatching<'a> = &'a dyn Fn(ClientId) -> bool;

impl Client {
    fn is_manager(&self) -> bool {
        self.profile.is_none()
    }

    fn is_tool(&self) -> bool {
        !self.is_manager() && self.under_agent
    }
}

impl Clients {
    /// Returns `false` if the connection was refused and closed. The line may be no message.
    pub(crate) fn admit(
        &mut self,
        cx: &mut Cx,
        client: ClientId,
        message: Option<&Message<'_>>,
        is_watching: IsWatching<'_>,
    ) -> bool {
        let Some(here) = self.connected.get_mut(&client) else { return false };
        let is_new = here.last_heard.replace(cx.now).is_none();
        let is_manager = here.is_manager();
        let (id, method) = match message {
            Some(Message::Request { id, method, .. }) => (Some(id), &**method),
            _ => (None, ""),
        };
        let placed = match method {
            "initialize" if is_manager => self.place_client(cx, client, is_watching),
            _ => Ok(()),
        };
        let places = cx.config.max_clients as usize + MANAGERS;
        let refusal = match placed {
            Err(refusal) => refusal,
            Ok(()) if !is_new || self.connected.len() <= places => return true,
            Ok(()) if method == "initialize" || acpd_api::is_own(method) => {
                let is_other = |id, here: &Client| id != client && here.is_manager();
                if let Some(least) = self.least_missed(is_watching, is_other) {
                    let text = "the connection was closed to make room for another one";
                    let hint = "connect again; connections that have said `initialize` are kept";
                    self.let_go(cx, least, None, &Fault::new(Reason::TooMany, text).hint(hint));
                }
                return true;
            }
            Ok(()) => Fault::new(Reason::TooMany, "too many connections are open")
                .hint("begin with `initialize`, or close another connection"),
        };
        self.let_go(cx, client, id, &refusal);
        false
    }

    fn place_client(
        &mut self,
        cx: &mut Cx,
        newcomer: ClientId,
        is_watching: IsWatching<'_>,
    ) -> Result<(), Fault> {
        const MORE: &str = "close an editor or an `acpctl attach` (`acpctl ps` tells which sessions have clients), or raise \
             `max_clients` under `[daemon]` in the configuration and then `acpctl daemon restart`";
        let most = cx.config.max_clients as usize;
        let clients = self.connected.values().filter(|here| !here.is_manager()).count();
        let tools = self.connected.values().filter(|here| here.is_tool()).count();
        let is_person = self.may_decide(newcomer);
        let full = |these: String| {
            let text = format!("{these} are connected already");
            Err(Fault::new(Reason::TooMany, text).hint(MORE))
        };
        if !is_person && tools >= most.div_ceil(2) {
            return full(format!("{tools} clients that run under an agent"));
        }
        if clients < most {
            return Ok(());
        }
        let Some(least) = self.least_missed(is_watching, |_, here| is_person && here.is_tool())
        else {
            return full(format!("{clients} clients"));
        };
        let text =
            "the connection was closed to make room for a client that does not run under an agent";
        let fault = Fault::new(Reason::TooMany, text).hint(MORE);
        self.let_go(cx, least, None, &fault);
        Ok(())
    }

    /// Returns the least needed connection: an idle one if possible, and the longest silent one.
    fn least_missed(
        &self,
        is_watching: IsWatching<'_>,
        of: impl Fn(ClientId, &Client) -> bool,
    ) -> Option<ClientId> {
        let these = self.connected.iter().filter(|(id, here)| of(**id, here));
        let least = these.min_by_key(|(id, here)| {
            let waits = !here.open.is_empty() || self.sessions_of(**id).next().is_some();
            (is_watching(**id) || waits, here.last_heard, **id)
        });
        least.map(|(id, _)| *id)
    }

    /// Closes a connection with an error, under the id of its request if there is one.
    pub(super) fn let_go(&mut self, cx: &mut Cx, client: ClientId, id: Option<&Id>, fault: &Fault) {
        let line = build::error(id.unwrap_or(&Id::null()), &fault.object());
        let last = [Effect::Client(client, ToClient::Line(line)), Effect::Close(client)];
        let effects = if cx.is_failing() { &mut cx.out.urgent } else { &mut cx.out.effects };
        effects.extend(last);
        self.on_closed(cx, client);
    }

    /// Closes another connection with this token: its end may be unseen, or another client uses the
    /// same token by mistake. Returns `false` if this connection has the token already.
    pub(crate) fn claim_token(
        &mut self,
        cx: &mut Cx,
        client: ClientId,
        token: &str,
    ) -> Result<bool, Fault> {
        let fits = |c: u8| c.is_ascii_alphanumeric() || c == b'-' || c == b'_';
        if !(16..=64).contains(&token.len()) || !token.bytes().all(fits) {
            return Err(Fault::invalid("a client's token is 16 to 64 letters, digits, `-` or `_`"));
        }
        match self.token_of(client) {
            Some(mine) if mine == token => return Ok(false),
            Some(_) => return Err(Fault::invalid("this connection has another token already")),
            None => {}
        }
        let old = self.by_token(token).filter(|old| self.connected.contains_key(old));
        if let Some(old) = old {
            let text = "another connection came with this client's token";
            let fault = Fault::new(Reason::Replaced, text)
                .hint("do not come back with this token; each client needs one of its own");
            self.let_go(cx, old, None, &fault);
        }
        Ok(true)
    }
}
