pub(crate) mod admin;
mod attach;
mod connection;
mod from_clients;
mod open;
mod reply;
mod under_agent;
