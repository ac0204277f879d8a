pub(crate) mod admin;
pub(crate) mod attach;
pub(crate) mod connection;
pub(crate) mod from_clients;
pub(crate) mod open;
pub(crate) mod reply;
pub(crate) mod under_agent;
