//! Drives the scripted agent over pipes: every verb, every flag, and the schema's word on what it writes.

mod conformance;
mod driver;
mod flags;
mod sessions;
mod verbs;
