//! A value with a copy on disk.

use std::mem::take;
use std::ops::Deref;

#[derive(Debug, Default)]
pub(crate) struct Saved<T> {
    value: T,
    is_changed: bool,
}

impl<T> Saved<T> {
    pub(crate) fn new(value: T) -> Saved<T> {
        Saved { value, is_changed: false }
    }

    /// The hub writes the value once, at the end of the batch.
    pub(crate) fn edit(&mut self) -> &mut T {
        self.is_changed = true;
        &mut self.value
    }

    pub(crate) fn take_changed(&mut self) -> Option<&T> {
        take(&mut self.is_changed).then_some(&self.value)
    }
}

impl<T> Deref for Saved<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}
