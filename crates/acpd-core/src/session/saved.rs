//! A value of which the disk has a copy.

use std::mem::take;
use std::ops::Deref;

/// The part that is on disk as well.
#[derive(Debug)]
pub(crate) struct Saved<T> {
    value: T,
    is_changed: bool,
}

impl<T> Saved<T> {
    /// As it is on disk, or is written just now.
    pub(crate) fn new(value: T) -> Saved<T> {
        Saved { value, is_changed: false }
    }

    /// To change it: it is written at the end of the batch, once.
    pub(crate) fn edit(&mut self) -> &mut T {
        self.is_changed = true;
        &mut self.value
    }

    pub(crate) fn into_inner(self) -> T {
        self.value
    }

    /// Returns the value, if it has changed since it was last taken.
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
