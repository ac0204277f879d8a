//! Tables, cards and sentences for users.

pub(crate) mod agent;
pub(crate) mod daemon;
pub(crate) mod environment;
pub(crate) mod question;
pub(crate) mod session;
