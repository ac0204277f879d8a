//! The tables of the file, each key with its type, its default and its documentation.

pub(crate) mod auth;
pub(crate) mod mcp;
pub(crate) mod policy;
pub(crate) mod profile;
pub(crate) mod retention;
