//! Conversions between acpd's own form of lines, version 1, and the lines of clients and agents that
//! speak version 2. For clients:
//!
//! | version 1 | version 2 |
//! | --- | --- |
//! | chunk of a message | the same, with acpd's `messageId` |
//! | `tool_call`, `tool_call_update` | `tool_call_update`, with the turn in `toolCallId`; a diff is a patch |
//! | `plan` | `plan_update` |
//! | `available_commands_update` | the same, with types |
//! | `modes`, `models`, `configOptions` | `configOptions` |
//! | `current_mode_update`, `config_option_update` | nothing: the options of a session are listed as a whole |
//! | `toolCall` of a question | `title` and `subject` |
//! | `agentInfo`, `agentCapabilities` | `info`, `capabilities` |
//! | `authenticate`, `logout` | `auth/login`, `auth/logout` |
//! | `session/load` | `session/resume` with `replayFrom` |
//! | `_meta._acpd.idempotencyKey` of a prompt | `idempotencyKey` |
//!
//! Each conversion for a client is a function of the line alone; an agent has a [`Translator`].
//! Lines are valid JSON, as after [`parse`](crate::parse), and are changed by splicing: members that
//! are unknown here pass as they are.

mod agent;
mod call;
mod diff;
mod objects;
mod options;
mod question;
mod request;
mod setup;
mod update;

use bytes::Bytes;

use crate::build::ErrorObject;
use crate::version::Version;

pub use agent::patch::{FilePatch, Hunk, files_of};
pub use agent::{
    BackgroundWork, Heard, TalkState, Translator, WorkKind, ask_version_2, initialized_from_agent,
    text_said, with_server_types,
};
pub use call::call_id;
pub use options::{MODE_OPTION, opened_to_v2, options_to_v2};
pub use question::{question_again, question_to_v2};
pub use request::{Request, request_from_v2};
pub use setup::initialized_to_v2;
pub use update::{message_id, update_to_v2};

impl Version {
    /// Returns the translator for an agent of this version; version 1 needs none.
    pub fn translator(self) -> Option<Box<Translator>> {
        (self == Version::V2).then(Box::default)
    }

    /// Returns an agent's question for a client: of `line`, see [`question_to_v2`], or as an agent of
    /// version 2 has asked it.
    pub fn question(self, line: &Bytes, original: Option<&Bytes>, turn: u64) -> Bytes {
        match (self, original) {
            (Version::V1, _) => line.clone(),
            (Version::V2, Some(original)) => original.clone(),
            (Version::V2, None) => question_to_v2(line, turn),
        }
    }

    /// Converts the result of `initialize` for a client; see [`initialized_to_v2`].
    pub fn initialized(self, result: Bytes) -> Bytes {
        match self {
            Version::V1 => result,
            Version::V2 => initialized_to_v2(&result),
        }
    }

    /// Converts the answer to `session/new` or `session/fork` for a client; see
    /// [`opened_to_v2`].
    pub fn opened(self, line: Bytes) -> Bytes {
        match self {
            Version::V1 => line,
            Version::V2 => opened_to_v2(&line),
        }
    }

    /// Converts a client's request into acpd's own form. `None`: it has that form. Fails if the
    /// version forbids the request.
    pub fn request<'a>(
        self,
        method: &'a str,
        line: &Bytes,
    ) -> Result<Option<Request<'a>>, ErrorObject> {
        match self {
            Version::V1 => Ok(None),
            Version::V2 => request_from_v2(method, line).map(Some),
        }
    }
}
