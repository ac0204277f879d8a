//! The hub and its agents: starting and stopping processes, what they say, their logins.

pub(crate) mod abandoned;
pub(crate) mod auth;
pub(crate) mod client_meta;
pub(crate) mod from_agents;
pub(crate) mod leftovers;
pub(crate) mod login;
pub(crate) mod slots;
pub(crate) mod start_queue;
pub(crate) mod stop;
pub(crate) mod unanswered;
