pub(crate) mod admin;
pub(crate) mod admission;
pub(crate) mod from_clients;
pub(crate) mod open;
pub(crate) mod reply;
pub(crate) mod resumable;
pub(crate) mod under_agent;
