//! What acpd tells of itself, as tables, cards and sentences for a person.

pub(crate) mod agent;
pub(crate) mod daemon;
pub(crate) mod login;
pub(crate) mod question;
pub(crate) mod session;
