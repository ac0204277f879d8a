//! Purpose of a request to an agent, with the data for its answer.

use std::collections::BTreeSet;

use acpd_api::ArchiveFilter;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::ids::{Requester, SessionKey};
use crate::prompt::blocks_text;
use crate::record::{ForkPoint, Preset, ReadStyle, Sender, SteerForm};

pub(crate) const SET_TITLE: &str = "session/set_title";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Adoption {
    #[serde(rename = "session")]
    pub id: String,
    pub cwd: String,
    /// Params for the agent (JSON object), with the first opener's `_acpd` members. May hold
    /// secrets, like its outbox row.
    #[serde(with = "text")]
    pub params: Bytes,
    #[serde(skip)]
    pub openers: Vec<Opener>,
    /// Notices for the conversation once it is acpd's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
}

/// A client's `session/load` or `session/resume`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opener {
    pub(crate) to: Requester,
    pub(crate) style: ReadStyle,
    pub(crate) after: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    pub(crate) cwd: Option<String>,
    pub(crate) archived: ArchiveFilter,
    /// The first page, with acpd's sessions.
    pub(crate) first: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Steer {
    #[serde(rename = "sender")]
    pub to: Requester,
    pub session: SessionKey,
    /// A list of content blocks.
    #[serde(with = "text")]
    pub blocks: Bytes,
    /// Id of the message in the conversation.
    pub message: String,
    pub form: SteerForm,
}

impl Steer {
    pub(crate) fn text(&self) -> String {
        blocks_text(&serde_json::from_slice::<Vec<&RawValue>>(&self.blocks).unwrap_or_default())
    }

    /// Prevents the message from becoming a prompt if it comes too late. Returns whether it would
    /// have.
    pub(crate) fn take_back(&mut self) -> bool {
        let would_be_one = self.form == SteerForm::Extension;
        if would_be_one {
            self.form = SteerForm::PromptRequired;
        }
        would_be_one
    }
}

/// Purpose of a request to an agent. Stored as JSON by `as_record`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    Initialize,
    NewSession(NewSession),
    Prompt {
        session: SessionKey,
        /// The agent has said that it is in the history, and not yet how its turn ends.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        inserted: bool,
    },
    /// A prompt whose turn acpd has given up, because its session was closed or deleted. Has the
    /// agent's id of the session.
    Abandoned {
        session: String,
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        inserted: bool,
    },
    Restore {
        session: SessionKey,
        /// The step is `session/new`, so the agent's id is not known yet.
        #[serde(skip)]
        renews: bool,
    },
    Steer(Box<Steer>),
    Relay {
        #[serde(rename = "sender")]
        to: Requester,
        session: Option<SessionKey>,
        method: String,
        /// Params of the request (JSON text), if the answer alone does not show the change.
        params: Option<String>,
    },
    /// The agent's own sessions, for a client's `session/list`.
    #[serde(skip)]
    List {
        to: Requester,
        wanted: Wanted,
    },
    Adopt(Box<Adoption>),
    /// A step of a restore that acpd has given up. The answer does not matter.
    GivenUp {
        /// The session that the agent may still replay, by its own id.
        session: Option<String>,
    },
    #[serde(skip)]
    AuthStatus,
    /// acpd's own `authenticate`, which repeats the last login for another process.
    #[serde(skip)]
    LoginAgain,
    Preset {
        session: SessionKey,
        preset: Preset,
    },
    /// The user's title for a session. The answer does not matter.
    #[serde(skip)]
    Title {
        session: SessionKey,
    },
    /// The end of work in the background. The answer does not matter.
    #[serde(skip)]
    EndWork {
        session: SessionKey,
    },
    /// `session/close` or `session/delete` whose answer does not matter.
    #[serde(rename = "nothing")]
    Farewell,
}

impl Purpose {
    /// Returns whether lines of sessions without a known name are parked because of this request.
    pub(crate) fn parks_lines(&self) -> bool {
        matches!(
            self,
            Purpose::NewSession(_)
                | Purpose::Adopt(_)
                | Purpose::Restore { .. }
                | Purpose::GivenUp { .. }
        )
    }

    pub(crate) fn session(&self) -> Option<SessionKey> {
        match self {
            Purpose::Prompt { session, .. }
            | Purpose::Restore { session, .. }
            | Purpose::Preset { session, .. }
            | Purpose::Title { session }
            | Purpose::EndWork { session } => Some(*session),
            Purpose::Relay { session, .. } => *session,
            Purpose::Steer(steer) => Some(steer.session),
            _ => None,
        }
    }

    /// Returns the method, or a description, for the log.
    pub(crate) fn what(&self) -> &str {
        match self {
            Purpose::Initialize => "initialize",
            Purpose::NewSession(new) => new.method(),
            Purpose::Prompt { .. } => "session/prompt",
            Purpose::Abandoned { .. } => "session/prompt that was given up",
            Purpose::Restore { .. } => "restore",
            Purpose::Relay { method, .. } => method,
            Purpose::Steer(steer) => steer.form.method(),
            Purpose::List { .. } => "session/list",
            Purpose::Adopt(_) => "taking over",
            Purpose::GivenUp { .. } => "restore that was given up",
            Purpose::AuthStatus => "auth/status",
            Purpose::LoginAgain => "authenticate",
            Purpose::Preset { preset: Preset::Mode { .. }, .. } => "session/set_mode",
            Purpose::Preset { preset: Preset::Option { .. }, .. } => "session/set_config_option",
            Purpose::Title { .. } => SET_TITLE,
            Purpose::EndWork { .. } => "end of work in the background",
            Purpose::Farewell => "session/close",
        }
    }

    pub(crate) fn requester(&self) -> Option<&Requester> {
        match self {
            Purpose::Relay { to, .. } | Purpose::List { to, .. } => Some(to),
            Purpose::NewSession(new) => Some(&new.to),
            Purpose::Steer(steer) => Some(&steer.to),
            _ => None,
        }
    }

    pub(crate) fn requester_mut(&mut self) -> Option<&mut Requester> {
        match self {
            Purpose::Relay { to, .. } | Purpose::List { to, .. } => Some(to),
            Purpose::NewSession(new) => Some(&mut new.to),
            Purpose::Steer(steer) => Some(&mut steer.to),
            _ => None,
        }
    }

    /// Returns the form on disk, which has tokens of clients instead of connections, and no
    /// progress of restores and lists. `sender`: the receiver, if that client can reconnect.
    pub(crate) fn as_record(&self, sender: Option<Sender>) -> Purpose {
        let mut stored = self.clone();
        match &mut stored {
            Purpose::Restore { renews, .. } => *renews = false,
            Purpose::Adopt(adoption) => adoption.openers.clear(),
            Purpose::Relay { method, params, .. } if method != "session/set_mode" => *params = None,
            // A client without the answer asks again.
            Purpose::List { .. }
            | Purpose::AuthStatus
            | Purpose::LoginAgain
            | Purpose::GivenUp { session: None }
            | Purpose::Title { .. }
            | Purpose::EndWork { .. } => stored = Purpose::Farewell,
            _ => {}
        }
        if let Some(to) = stored.requester_mut() {
            *to = sender.into();
        }
        stored
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewSession {
    #[serde(rename = "sender")]
    pub to: Requester,
    pub name: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub labels: BTreeSet<String>,
    pub cwd: String,
    /// Params from the client, with its `_acpd` members. May hold secrets, like its outbox row.
    #[serde(with = "text")]
    pub params: Bytes,
    /// Notices for the conversation once it exists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notices: Vec<String>,
    /// Origin of a fork; `None` for `session/new`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fork: Option<ForkPoint>,
}

impl NewSession {
    pub(crate) fn method(&self) -> &'static str {
        if self.fork.is_some() { "session/fork" } else { "session/new" }
    }
}

/// JSON text as a string in JSON.
mod text {
    use bytes::Bytes;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(text: &Bytes, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(&String::from_utf8_lossy(text))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Bytes, D::Error> {
        String::deserialize(from).map(Bytes::from)
    }
}
