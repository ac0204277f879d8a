//! Surroundings of a machine while it handles an input.

use crate::ids::{IdSource, Time};
use crate::input::Batch;
use crate::profile::Config;
use crate::timers::Timers;

/// The clock, the configuration, and what a step adds to.
#[derive(Debug)]
pub(crate) struct Cx<'a> {
    pub(crate) now: Time,
    pub(crate) config: &'a Config,
    pub(crate) ids: &'a mut IdSource,
    pub(crate) timers: &'a mut Timers,
    pub(crate) out: &'a mut Batch,
}
