use acpd_api::{Reason, escape};
use acpd_client::{CallError, ConnectError, LinkError, chain};
use rmcp::ErrorData;
use rmcp::handler::server::tool::IntoCallToolResult;
use rmcp::model::{CallToolResponse, CallToolResult, ContentBlock};

/// The error of a tool, for models and people.
#[derive(Debug, Clone)]
pub(crate) struct Failure {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    pub(crate) reason: Option<Reason>,
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Failure {
        Failure { message: message.into(), hint: None, reason: None }
    }

    #[must_use]
    pub(crate) fn hint(self, hint: impl Into<String>) -> Failure {
        Failure { hint: Some(hint.into()), ..self }
    }

    /// Escaped, because agents have a hand in the text.
    pub(crate) fn text(&self) -> String {
        let message = escape::one_line(&self.message);
        match &self.hint {
            Some(hint) => format!("error: {message}\n\nhint: {}", escape::one_line(hint)),
            None => format!("error: {message}"),
        }
    }
}

impl IntoCallToolResult for Failure {
    fn into_call_tool_result(self) -> Result<CallToolResponse, ErrorData> {
        Ok(CallToolResult::error(vec![ContentBlock::text(self.text())]).into())
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Failure {
        let data = error.data();
        match error {
            CallError::Rpc(error) => Failure {
                message: error.message,
                reason: data.as_ref().map(|data| data.reason),
                hint: data.and_then(|data| Some(data.hint?.into_raw())),
            },
            CallError::Ended(end) => end.into(),
            CallError::Unreadable { .. } => Failure::new(chain(&error)),
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
