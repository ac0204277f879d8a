//! Byte scanners that the rest of the crate is made of.

pub(crate) mod json;
pub(crate) mod junk;
