//! How much of what was said is kept.

use std::time::Duration;

use crate::config::keys::kind::{Count, Kind, Perhaps, Size, Timeout};
use crate::config::keys::{Key, Keys, Scope, keys};

keys! {
    /// How much of what was said is kept.
    pub struct Retention {
        /// How long a session stays after its last use. When unset: until you delete it.
        Shared "max_age" => pub max_age: Option<Duration> as Perhaps<Timeout> = None;
        /// How many sessions stay: those that were used last. When unset: all.
        Shared "max_sessions" => pub max_sessions: Option<u32> as Perhaps<Count> = None;
        /// How much of what was said stays: of the sessions that were used last. When unset: all.
        Shared "max_size" => pub max_size: Option<u64> as Perhaps<Size> = None;
    }
    beside {}
}
