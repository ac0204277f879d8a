//! The daemon, its environment, its agents, sessions and questions, as tables, cards and sentences for a person.

pub(crate) mod agent;
pub(crate) mod daemon;
pub(crate) mod environment;
pub(crate) mod question;
pub(crate) mod session;
