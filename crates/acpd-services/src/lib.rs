//! Client methods that acpd serves when no editor does: files ([`fs`]).
//!
//! Architecture invariants: nothing here knows of the hub, of JSON-RPC or of sessions; no file is
//! touched but through a directory handle of [`fs::Roots`].

pub mod fs;
