//! The error of a tool instead of a result: the event, the cause and the way out, for models and people.

use acp_wire::ErrorObject;
use acpd_api::{Reason, escape};
use acpd_client::{CallError, ConnectError, LinkError, chain, error_data};
use rmcp::model::{CallToolResult, ContentBlock};

/// Why a tool has no result.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    pub(crate) reason: Option<Reason>,
    /// The session that the error names.
    pub(crate) session: Option<String>,
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), hint: None, reason: None, session: None }
    }

    #[must_use]
    pub(crate) fn hint(self, hint: impl Into<String>) -> Failure {
        Failure { hint: Some(hint.into()), ..self }
    }

    pub(crate) fn rpc(error: &ErrorObject) -> Failure {
        let data = error_data(error);
        Failure {
            message: error.message.clone(),
            hint: data.as_ref().and_then(|data| Some(data.hint.as_ref()?.raw().to_owned())),
            reason: data.as_ref().map(|data| data.reason),
            session: data.and_then(|data| Some(data.session_id?.into_raw())),
        }
    }

    /// Agents have a hand in it, so nothing of it may look like something else.
    pub(crate) fn text(&self) -> String {
        let message = escape::one_line(&self.message);
        match &self.hint {
            Some(hint) => format!("error: {message}\n\nhint: {}", escape::one_line(hint)),
            None => format!("error: {message}"),
        }
    }

    pub(crate) fn result(&self) -> CallToolResult {
        CallToolResult::error(vec![ContentBlock::text(self.text())])
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Failure {
        match &error {
            CallError::Rpc(error) => Failure::rpc(error),
            other => Failure::new(chain(other)),
        }
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Failure {
        Failure { hint: error.hint(), ..Failure::new(chain(&error)) }
    }
}

impl From<LinkError> for Failure {
    fn from(error: LinkError) -> Failure {
        Failure { hint: error.hint(), ..Failure::new(chain(&error)) }
    }
}
