//! Purpose of a request to an agent, with the data for its answer.

use acpd_api::ArchiveFilter;
use bytes::Bytes;
use serde_json::value::RawValue;

use crate::ids::{Requester, SessionKey};
use crate::input::ReadStyle;
use crate::prompt::blocks_text;
use crate::record::{Asked, ForkPoint, Preset, Sender, SteerForm};

pub(crate) const SET_TITLE: &str = "session/set_title";

#[derive(Debug, Clone)]
pub(crate) struct Adoption {
    pub(crate) id: String,
    pub(crate) cwd: String,
    /// Params for the agent (JSON object), with the first opener's `_acpd` members.
    pub(crate) params: Bytes,
    pub(crate) openers: Vec<Opener>,
    /// Notices for the conversation once it is acpd's.
    pub(crate) notices: Vec<String>,
    pub(crate) directory: Directory,
}

/// A client's `session/load` or `session/resume`.
#[derive(Debug, Clone)]
pub(crate) struct Opener {
    pub(crate) to: Requester,
    pub(crate) style: ReadStyle,
    pub(crate) after: u64,
}

#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) cwd: Option<String>,
    pub(crate) archived: ArchiveFilter,
    /// The first page, with acpd's sessions.
    pub(crate) first: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Directory {
    Unknown,
    Asked(u64),
    There,
}

#[derive(Debug, Clone)]
pub(crate) struct Steer {
    pub(crate) to: Requester,
    pub(crate) session: SessionKey,
    /// A list of content blocks.
    pub(crate) blocks: Bytes,
    pub(crate) message: String,
    pub(crate) form: SteerForm,
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

/// Purpose of a request to an agent. [`Asked`] is its form on disk, which has tokens of clients
/// instead of connections, and no progress of restores and lists.
#[derive(Debug, Clone)]
pub(crate) enum Purpose {
    Initialize,
    NewSession(NewSession),
    Prompt {
        session: SessionKey,
    },
    /// A prompt whose turn acpd has given up, with the agent's id of the session.
    Abandoned {
        session: String,
    },
    Restore {
        session: SessionKey,
        /// The step is `session/new`, so the agent's id is not known yet.
        renews: bool,
    },
    Steer(Box<Steer>),
    Relay {
        to: Requester,
        session: Option<SessionKey>,
        method: String,
        params: Option<Bytes>,
    },
    /// The agent's own sessions, for a client's `session/list`.
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
    AuthStatus,
    /// acpd's own `authenticate`, which repeats the last login for another process.
    LoginAgain,
    Preset {
        session: SessionKey,
        preset: Preset,
    },
    /// The user's title for a session. The answer does not matter.
    Title {
        session: SessionKey,
    },
    /// `session/close` or `session/delete` whose answer does not matter.
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
            Purpose::Prompt { session }
            | Purpose::Restore { session, .. }
            | Purpose::Preset { session, .. }
            | Purpose::Title { session } => Some(*session),
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

    /// `sender`: the receiver, if that client can reconnect.
    pub(crate) fn as_record(&self, sender: Option<Sender>) -> Asked {
        match self {
            Purpose::Initialize => Asked::Initialize,
            Purpose::NewSession(new) => Asked::NewSession {
                sender,
                name: new.name.clone(),
                cwd: new.cwd.clone(),
                params: String::from_utf8_lossy(&new.params).into_owned(),
                fork: new.fork.clone(),
                notices: new.notices.clone(),
            },
            Purpose::Prompt { session } => Asked::Prompt { session: *session },
            Purpose::Abandoned { session } => Asked::Abandoned { session: session.clone() },
            Purpose::Restore { session, .. } => Asked::Restore { session: *session },
            Purpose::Relay { session, method, params, .. } => {
                let params = params.as_ref().filter(|_| method == "session/set_mode");
                Asked::Relay {
                    sender,
                    session: *session,
                    method: method.clone(),
                    params: params.map(|params| String::from_utf8_lossy(params).into_owned()),
                }
            }
            Purpose::Preset { session, preset } => {
                Asked::Preset { session: *session, preset: preset.clone() }
            }
            Purpose::Steer(steer) => Asked::Steer {
                sender,
                session: steer.session,
                blocks: String::from_utf8_lossy(&steer.blocks).into_owned(),
                message: steer.message.clone(),
                form: steer.form,
            },
            // A client without the answer asks again.
            Purpose::List { .. } => Asked::Nothing,
            Purpose::Adopt(adoption) => Asked::Adopt {
                session: adoption.id.clone(),
                cwd: adoption.cwd.clone(),
                params: String::from_utf8_lossy(&adoption.params).into_owned(),
                notices: adoption.notices.clone(),
            },
            Purpose::GivenUp { session: Some(session) } => {
                Asked::GivenUp { session: session.clone() }
            }
            Purpose::AuthStatus
            | Purpose::LoginAgain
            | Purpose::GivenUp { session: None }
            | Purpose::Title { .. }
            | Purpose::Farewell => Asked::Nothing,
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct NewSession {
    pub(crate) to: Requester,
    pub(crate) name: Option<String>,
    pub(crate) cwd: String,
    /// Params from the client, with its `_acpd` members.
    pub(crate) params: Bytes,
    /// Notices for the conversation once it exists.
    pub(crate) notices: Vec<String>,
    pub(crate) directory: Directory,
    /// Origin of a fork; `None` for `session/new`.
    pub(crate) fork: Option<ForkPoint>,
}

impl NewSession {
    pub(crate) fn method(&self) -> &'static str {
        if self.fork.is_some() { "session/fork" } else { "session/new" }
    }
}
