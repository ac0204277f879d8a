//! Client methods that acpd serves when no editor does: files ([`fs`]) and terminals
//! ([`terminal`]).
//!
//! Architecture invariants: nothing here knows of the hub, of JSON-RPC or of sessions; no file is
//! touched but through a directory handle of [`fs::Roots`]; nothing that a terminal started
//! outlives its release.

pub mod fs;
pub mod terminal;
