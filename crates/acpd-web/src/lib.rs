//! `acpctl web`: a page for people on their phones and elsewhere, and a socket for every client
//! that speaks ACP over WebSocket. A process of its own and a client of the daemon, which has no
//! TCP and does not know it.
//!
//! ```text
//!  browser, client ──HTTP──▶ door (Host, Origin, key) ──▶ page: files
//!                                     │                   sign: codes for keys
//!                                     │                   push: notifications while the page is closed
//!                                     └──WebSocket──▶ relay ──check (scope)──▶ daemon, a connection each
//!                                                       └── blocks: lines of a conversation, folded for the page
//!  acpctl web pair, token ──▶ store (one file, hashes alone) ◀── the server
//! ```
//!
//! Architecture invariant: no handler runs before the request's `Host`, `Origin` and key are
//! checked, and no line reaches the daemon that is not in the table of scopes.

mod blocks;
mod body;
mod check;
mod door;
mod failure;
mod guess;
mod headers;
mod invitation;
mod invite;
mod made;
mod names;
mod page;
mod push;
mod refusal;
mod relay;
mod scope;
mod secret;
mod serve;
mod sign;
mod socket;
mod state;
mod store;
mod subscription;
mod tls;
mod worktree;

pub use failure::Failure;
pub use invitation::Invitation;
pub use invite::{new_token, pair, revoke, tokens};
pub use names::proxy_host;
pub use scope::Scopes;
pub use secret::Secret;
pub use serve::{Options, serve};
pub use state::{Event, Limits};
pub use store::TokenInfo;
