//! All sessions, and which of their rows have to be written: a row is read as it is, and changed through
//! [`Saved::edit`] alone, so no change can be forgotten. The hub writes what was changed at the end of each
//! batch.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Deref, Index};

use crate::ids::SessionKey;
use crate::record::SessionRow;
use crate::session::Session;

/// What is on disk as well.
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
}

impl<T> Deref for Saved<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// The sessions by their keys.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    by_key: BTreeMap<SessionKey, Session>,
    /// Those that may have been changed.
    touched: BTreeSet<SessionKey>,
}

impl Sessions {
    pub(crate) fn contains_key(&self, key: SessionKey) -> bool {
        self.by_key.contains_key(&key)
    }

    pub(crate) fn get(&self, key: SessionKey) -> Option<&Session> {
        self.by_key.get(&key)
    }

    pub(crate) fn get_mut(&mut self, key: SessionKey) -> Option<&mut Session> {
        let session = self.by_key.get_mut(&key)?;
        self.touched.insert(key);
        Some(session)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&SessionKey, &Session)> {
        self.by_key.iter()
    }

    pub(crate) fn values(&self) -> impl Iterator<Item = &Session> {
        self.by_key.values()
    }

    pub(crate) fn values_mut(&mut self) -> impl Iterator<Item = &mut Session> {
        self.touched.extend(self.by_key.keys());
        self.by_key.values_mut()
    }

    pub(crate) fn insert(&mut self, key: SessionKey, session: Session) {
        self.by_key.insert(key, session);
    }

    pub(crate) fn remove(&mut self, key: SessionKey) -> Option<Session> {
        self.by_key.remove(&key)
    }

    /// The rows that have to be written, and are from now on taken as written.
    pub(crate) fn take_changed(&mut self) -> Vec<SessionRow> {
        let touched = std::mem::take(&mut self.touched);
        let mut changed = Vec::new();
        for key in touched {
            let Some(session) = self.by_key.get_mut(&key) else { continue };
            if std::mem::take(&mut session.row.is_changed) {
                changed.push(session.row.clone());
            }
        }
        changed
    }
}

impl Index<&SessionKey> for Sessions {
    type Output = Session;

    fn index(&self, key: &SessionKey) -> &Session {
        &self.by_key[key]
    }
}
