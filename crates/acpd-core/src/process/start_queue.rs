//! The slots that wait for a place to start, in the order in which they came.

use crate::ids::SlotId;

/// The slots that wait for a place, in the order in which they came.
#[derive(Debug, Default)]
pub(crate) struct StartQueue {
    pub(crate) slots: Vec<SlotId>,
    pub(crate) given: u32,
}
