//! Purpose of a request to an agent, with the data for its answer.

use acpd_api::ArchiveFilter;
use bytes::Bytes;
use serde_json::value::RawValue;

use crate::ids::{Requester, SessionKey};
use crate::input::ReadStyle;
use crate::prompt::blocks_text;
use crate::record::{Asked, ForkPoint, Preset, Sender, SteerForm};

/// The method that gives an agent a title.
pub(crate) const SET_TITLE: &str = "session/set_title";

/// A session that is being taken over.
#[derive(Debug, Clone)]
pub(crate) struct Adoption {
    pub(crate) id: String,
    pub(crate) cwd: String,
    /// Params for the agent, with its first opener's members for acpd (JSON object).
    pub(crate) params: Bytes,
    /// The clients that open it then.
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

/// Filters of a client's list.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) cwd: Option<String>,
    pub(crate) archived: ArchiveFilter,
    /// The first page, with acpd's sessions.
    pub(crate) first: bool,
}

/// Check of the directory of a session that is to be made or adopted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Directory {
    Unknown,
    Asked(u64),
    There,
}

/// A message on its way into a turn.
#[derive(Debug, Clone)]
pub(crate) struct Steer {
    pub(crate) to: Requester,
    pub(crate) session: SessionKey,
    /// The message: a list of content blocks.
    pub(crate) blocks: Bytes,
    /// Id of the message in the conversation.
    pub(crate) message: String,
    pub(crate) form: SteerForm,
}

impl Steer {
    /// The text of what is said.
    pub(crate) fn text(&self) -> String {
        blocks_text(&serde_json::from_slice::<Vec<&RawValue>>(&self.blocks).unwrap_or_default())
    }

    /// Marks the message as no longer wanted: if it comes too late, it is no prompt. Returns
    /// whether it would have been one.
    pub(crate) fn take_back(&mut self) -> bool {
        let would_be_one = self.form == SteerForm::Extension;
        if would_be_one {
            self.form = SteerForm::PromptRequired;
        }
        would_be_one
    }
}

/// Why something was asked of an agent. [`Asked`] is what of it the next daemon can use: it names clients by
/// their tokens, not by connections, and has nothing of what a restore or a list had come to.
#[derive(Debug, Clone)]
pub(crate) enum Purpose {
    Initialize,
    /// A client's `session/new` or `session/fork`.
    NewSession(NewSession),
    /// The prompt of the session's running turn.
    Prompt {
        session: SessionKey,
    },
    /// A prompt whose turn was given up, with the agent's id for its session.
    Abandoned {
        session: String,
    },
    /// A step of the session's restore.
    Restore {
        session: SessionKey,
        /// Requested with `session/new`, so the agent's id is not known yet.
        renews: bool,
    },
    /// A message of a client into the running turn of a session.
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
    /// A session that only the agent knows, for clients that open it.
    Adopt(Box<Adoption>),
    /// A step of a restore that was given up; its answer does not matter.
    GivenUp {
        /// The agent's id of the session that it may still replay.
        session: Option<String>,
    },
    AuthStatus,
    /// acpd's own `authenticate`, which repeats the last one for another process.
    LoginAgain,
    /// A setting that the configuration wants for a session that begins.
    Preset {
        session: SessionKey,
        preset: Preset,
    },
    /// A person's title for a session, whose answer does not matter.
    Title {
        session: SessionKey,
    },
    /// `session/close` or `session/delete` whose answer does not matter.
    Farewell,
}

impl Purpose {
    /// Returns whether lines of a session that acpd could not name may be parked because of it.
    pub(crate) fn parks_lines(&self) -> bool {
        matches!(
            self,
            Purpose::NewSession(_)
                | Purpose::Adopt(_)
                | Purpose::Restore { .. }
                | Purpose::GivenUp { .. }
        )
    }

    /// The session that it is about, if it is one of ours.
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

    /// Returns the name of the request for the log: its method, if that is fixed.
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

    /// The client's request that it is for.
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

    /// As it is on disk; `sender` is who it is for, as far as that client comes back.
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
            // A client that still wants it asks again.
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

/// A client's `session/new` or `session/fork` until it is answered.
#[derive(Debug, Clone)]
pub(crate) struct NewSession {
    pub(crate) to: Requester,
    pub(crate) name: Option<String>,
    pub(crate) cwd: String,
    /// Params as the client gave them, what it says to acpd included.
    pub(crate) params: Bytes,
    /// Notices for the conversation once it exists.
    pub(crate) notices: Vec<String>,
    pub(crate) directory: Directory,
    /// Requested with `session/fork`, which continues from here.
    pub(crate) fork: Option<ForkPoint>,
}

impl NewSession {
    pub(crate) fn method(&self) -> &'static str {
        if self.fork.is_some() { "session/fork" } else { "session/new" }
    }
}
