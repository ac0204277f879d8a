//! Connections and links to a daemon that a thread of the test plays, and what a client remembers.

mod connection;
mod directories;
mod link;
mod resume;
mod support;
