//! Types of acpd's protocol beyond ACP.
//!
//! A connection speaks ACP v1. acpd's own parts are extension methods `_acpd/…` on the same
//! connection, notices (notifications `_acpd/…`, only for clients that asked for them), and members
//! `_acpd` of a `_meta` or `error.data` object. The daemon, the command line and plugins share the
//! types of this crate.
//!
//! JSON members are camelCase as in ACP; times are milliseconds since the Unix epoch.

#![warn(missing_docs)]

mod auth;
mod copy;
mod environment;
mod error;
pub mod escape;
mod exit;
mod gc;
mod hook;
mod host;
mod info;
mod interaction;
pub mod json;
mod label;
mod meta;
pub mod method;
mod metrics;
mod nearest;
mod notice;
mod params;
mod queue;
pub mod redact;
mod relay;
mod reseed;
mod resume;
mod scope;
mod search;
mod shown;
mod tools;
mod trace;
pub mod under_agent;
mod untrusted;
mod usage;
mod watch;
mod who;

pub use auth::*;
pub use copy::*;
pub use environment::*;
pub use error::*;
pub use exit::*;
pub use gc::*;
pub use hook::*;
pub use host::*;
pub use info::*;
pub use interaction::*;
pub use label::*;
pub use meta::*;
pub use metrics::*;
pub use nearest::*;
pub use notice::*;
pub use params::*;
pub use queue::*;
pub use relay::*;
pub use reseed::*;
pub use resume::*;
pub use scope::*;
pub use search::*;
pub use shown::*;
pub use tools::*;
pub use trace::*;
pub use under_agent::UnderAgent;
pub use untrusted::*;
pub use usage::*;
pub use watch::*;
pub use who::*;

/// The key of acpd's own members in `_meta` and `error.data`.
pub const NAMESPACE: &str = "_acpd";

/// Returns whether a method belongs to acpd's protocol.
pub fn is_own(method: &str) -> bool {
    method.strip_prefix(NAMESPACE).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Version of the `_acpd/*` methods; a daemon serves this one and the one before it.
pub const API_VERSION: u32 = 1;
