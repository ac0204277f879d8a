//! The hub and its agents: starting and stopping processes, what they say, their logins.

pub(crate) mod abandoned;
pub(crate) mod after_login;
pub(crate) mod agents;
pub(crate) mod answers;
pub(crate) mod from_agents;
pub(crate) mod logins;
pub(crate) mod lost;
pub(crate) mod processes;
pub(crate) mod unanswered;
pub(crate) mod usable;
pub(crate) mod waiting;
