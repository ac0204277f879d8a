//! Whether the journal can be written.

use crate::ids::Time;

/// Why the journal cannot be written.
#[derive(Debug, Clone)]
pub(crate) struct StoreFailure {
    pub(crate) reason: String,
    pub(crate) hint: Option<String>,
    pub(crate) since: Time,
}
