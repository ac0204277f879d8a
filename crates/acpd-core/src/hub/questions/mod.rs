//! The hub and questions to people: asking them, deciding without a person, listing and answering them.

mod answered;
pub(crate) mod decide;
mod frozen;
pub(crate) mod interaction;
pub(crate) mod pending;
