//! Client methods that acpd serves itself: ACP agents ask their client for files ([`fs`]) and terminals
//! ([`terminal`]), and acpd does that when no editor is there to do it.
//!
//! Architecture invariants: nothing here knows of the hub, of JSON-RPC or of sessions; no file is
//! touched but through a directory handle of [`fs::Roots`]; nothing that a terminal started
//! outlives its release.

pub mod fs;
pub mod terminal;
