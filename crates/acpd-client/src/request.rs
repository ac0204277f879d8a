//! Positions of a client in its sessions, and how its requests change them.

use std::collections::HashMap;

use acp_wire::{Id, locate};
use acpd_api::{AttachParams, AttachResult, NAMESPACE, method};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cursor {
    /// The client has seen everything up to this number.
    At(u64),
    /// A `session/load` replays the journal.
    Loading {
        id: Id,
        /// The position before. It also counts lines that were under way when the load was sent.
        before: u64,
        /// The last number of the replay.
        seen: Option<u64>,
    },
}

impl Cursor {
    /// Notes that the connection is lost: no earlier line is on its way.
    pub(crate) fn cut_off(&mut self) {
        if let Cursor::Loading { before, seen: None, .. } = self {
            *before = 0;
        }
    }

    /// Takes a line with this number. Returns whether it is new.
    pub(crate) fn advance(cursors: &mut HashMap<String, Cursor>, session: &str, seq: u64) -> bool {
        match cursors.get_mut(session) {
            None => {
                cursors.insert(session.to_owned(), Cursor::At(seq));
                true
            }
            Some(Cursor::At(last)) => {
                let is_new = seq > *last;
                *last = seq.max(*last);
                is_new
            }
            // A client that was attached already may still get new lines. The replay begins where
            // the numbers fall back.
            Some(Cursor::Loading { before, seen: seen @ None, .. }) => {
                if *before == 0 || seq <= *before {
                    *seen = Some(seq);
                } else {
                    *before = seq;
                }
                true
            }
            Some(Cursor::Loading { seen: Some(last), .. }) => {
                *last = seq.max(*last);
                true
            }
        }
    }

    /// Notes that everything up to this number was sent, or was for other clients.
    pub(crate) fn caught_up(cursors: &mut HashMap<String, Cursor>, session: &str, seq: u64) {
        match cursors.get_mut(session) {
            None => {
                cursors.insert(session.to_owned(), Cursor::At(seq));
            }
            Some(Cursor::At(last) | Cursor::Loading { seen: Some(last), .. }) => {
                *last = seq.max(*last);
            }
            Some(Cursor::Loading { before: 0, seen, .. }) => *seen = Some(seq),
            Some(Cursor::Loading { before, .. }) => *before = seq.max(*before),
        }
    }
}

/// Requests that change positions, with their session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Kind {
    Load(String),
    /// `session/new` of a session that did not exist before, or `session/fork`.
    New,
    /// The number after which a session is followed.
    Attach(Option<u64>),
    /// The client no longer follows a session.
    Leave(String),
    /// `session/prompt`: the client follows the session until the answer.
    Prompt(String),
    Initialize,
    Other,
}

impl Kind {
    pub(crate) fn of(name: &str, params: Option<&RawValue>) -> Kind {
        let Some(params) = params else { return Kind::Other };
        let session = |key: &str| member::<String>(params, &[key]);
        let continues = || member::<u64>(params, &["_meta", NAMESPACE, "after"]).is_some();
        let kind = match name {
            // A client that continues a load itself also tracks it itself.
            "session/load" if !continues() => session("sessionId").map(Kind::Load),
            // Version 2 of the protocol loads a session like this.
            "session/resume"
                if locate(params.get().as_bytes(), &["replayFrom", "type"]).is_some() =>
            {
                session("sessionId").map(Kind::Load)
            }
            "session/new" => {
                let reuse = member::<bool>(params, &["_meta", NAMESPACE, "reuse"]);
                (reuse != Some(true)).then_some(Kind::New)
            }
            "session/fork" => Some(Kind::New),
            "session/prompt" => session("sessionId").map(Kind::Prompt),
            "session/close" | "session/delete" | "session/archive" => {
                session("sessionId").map(Kind::Leave)
            }
            method::SESSION_DETACH => session("session").map(Kind::Leave),
            method::SESSION_ATTACH => {
                member::<AttachParams>(params, &[]).map(|params| Kind::Attach(params.after))
            }
            _ => None,
        };
        kind.unwrap_or(Kind::Other)
    }

    pub(crate) fn begin(&self, id: &Id, cursors: &mut HashMap<String, Cursor>) {
        if let Kind::Load(session) = self {
            let before = match cursors.get(session) {
                Some(Cursor::At(before) | Cursor::Loading { before, .. }) => *before,
                None => 0,
            };
            cursors.insert(session.clone(), Cursor::Loading { id: id.clone(), before, seen: None });
        }
    }

    pub(crate) fn end(
        &self,
        id: &Id,
        result: Option<&RawValue>,
        cursors: &mut HashMap<String, Cursor>,
    ) {
        match (self, result) {
            (Kind::Load(session), _) => {
                let Some(Cursor::Loading { id: loading, before, seen }) = cursors.get(session)
                else {
                    return;
                };
                if loading != id {
                    return;
                }
                let at = seen.unwrap_or(*before);
                if result.is_none() && at == 0 {
                    cursors.remove(session);
                } else {
                    cursors.insert(session.clone(), Cursor::At(at));
                }
            }
            (Kind::New, Some(result)) => {
                if let Some(session) = member::<String>(result, &["sessionId"]) {
                    cursors.entry(session).or_insert(Cursor::At(0));
                }
            }
            (Kind::Attach(after), Some(result)) => {
                if let Some(AttachResult { session }) = member(result, &[]) {
                    // A position behind the end counts as the end.
                    let at = after.unwrap_or(session.seq).min(session.seq);
                    cursors.insert(session.session_id.into_raw(), Cursor::At(at));
                }
            }
            (Kind::Leave(session), Some(_)) => drop(cursors.remove(session)),
            _ => {}
        }
    }

    /// The last number of an open load.
    pub(crate) fn seen(&self, id: &Id, cursors: &HashMap<String, Cursor>) -> Option<u64> {
        let Kind::Load(session) = self else { return None };
        match cursors.get(session)? {
            Cursor::Loading { id: loading, seen, .. } if loading == id => *seen,
            _ => None,
        }
    }
}

/// Reads the value at a path; the empty path is the whole.
pub(crate) fn member<T: DeserializeOwned>(json: &RawValue, path: &[&str]) -> Option<T> {
    let text = json.get();
    serde_json::from_str(&text[locate(text.as_bytes(), path)?]).ok()
}
