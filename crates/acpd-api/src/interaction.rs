//! Open questions of agents, their answers, and automatic answers.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{ClientName, HostState, Shown, Untrusted};

/// All open questions of agents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InteractionList {
    /// The questions, the oldest first.
    pub interactions: Vec<InteractionInfo>,
    /// The machines of a client that joins several; never from a daemon.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<HostState>,
}

/// An open question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InteractionInfo {
    /// Id for the answer.
    pub id: Untrusted,
    /// Name of the agent's profile.
    pub agent: Untrusted,
    /// The session; absent for a question about a request of one client, such as a login.
    pub session_id: Option<Untrusted>,
    /// Name of the session.
    pub name: Option<Untrusted>,
    /// Working directory of the session.
    pub cwd: Option<Untrusted>,
    /// The name or the id of the session whose agent created this one, if an agent did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Untrusted>,
    /// Time of the question (ms since the epoch).
    pub at: u64,
    /// Content of the question.
    pub question: Question,
}

impl InteractionInfo {
    /// Returns whether this session asks.
    pub fn is_of(&self, agent: &Untrusted, session_id: &Untrusted) -> bool {
        self.agent == *agent && self.session_id.as_ref() == Some(session_id)
    }
}

/// Content of the question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Question {
    /// Permission for a tool call.
    #[serde(rename_all = "camelCase")]
    Permission {
        /// The agent's title of the call.
        title: Option<Untrusted>,
        /// `read`, `edit`, `execute`, …
        tool_kind: Option<Untrusted>,
        /// Subject of the call on one line, if there is one.
        subject: Option<Untrusted>,
        /// The whole call at the time of the question: the answer is about this.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shown: Option<Box<Shown>>,
        /// Number of changes of the call while the question was open. Each change gives the
        /// question a new id.
        #[serde(default)]
        changed: u32,
        /// The answers to choose from.
        options: Vec<OptionInfo>,
    },
    /// A form to fill in.
    Form {
        /// Message of the agent.
        message: Untrusted,
        /// JSON schema of the form: flat, as in `elicitation/create`.
        schema: Value,
        /// Names of the fields, in the order of the agent's schema.
        #[serde(default)]
        order: Vec<Untrusted>,
    },
    /// A page to open.
    Url {
        /// Message of the agent.
        message: Untrusted,
        /// Address of the page.
        url: Untrusted,
    },
}

/// An offered answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OptionInfo {
    /// The id for the answer.
    pub option_id: Untrusted,
    /// The name for people.
    pub name: Untrusted,
    /// `allow_once`, `allow_always`, `reject_once`, `reject_always`, or another kind.
    pub kind: Untrusted,
}

/// An answer to a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerParams {
    /// Id of the question.
    pub id: String,
    /// The answer, of the question's kind.
    pub answer: GivenAnswer,
    /// Name of the client, for other clients; not needed after `initialize`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<ClientName>,
    /// The session whose agent answers, by acpd's number for a tool of that session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<u64>,
}

/// Effects of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AnswerResult {
    /// Name of the agent's own lasting option, if the answer chose one: the agent may not ask
    /// again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_option: Option<Untrusted>,
    /// Number of the decision that acpd remembers, for `_acpd/policy/forget`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remembered: Option<i64>,
}

/// A user's answer to a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum GivenAnswer {
    /// One of the offered options.
    Option {
        /// Id of the option.
        option: String,
    },
    /// The option that allows the call; with `always` acpd remembers it.
    Allow {
        /// Have acpd remember the answer.
        #[serde(default)]
        always: bool,
        /// Id of the option, if several have this kind.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        option: Option<String>,
    },
    /// The option that refuses the call; with `always` acpd remembers it.
    Deny {
        /// Have acpd remember the answer.
        #[serde(default)]
        always: bool,
        /// Id of the option, if several have this kind.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        option: Option<String>,
    },
    /// The form is filled in, or the page is opened.
    Accept {
        /// The members of the form.
        content: Option<Value>,
    },
    /// The form or page is refused.
    Decline,
}

/// Remembered decisions. Rules are in the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyList {
    /// Decisions that hold until they are forgotten, oldest first.
    pub remembered: Vec<RememberedInfo>,
}

/// A remembered decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RememberedInfo {
    /// Id for `_acpd/policy/forget`.
    pub id: i64,
    /// Name of the agent that asked.
    pub agent: Untrusted,
    /// Working directory of the session.
    pub workspace: Untrusted,
    /// Subject of the decision, for people.
    pub subject: Untrusted,
    /// The verdict: `allow` or `reject`.
    pub verdict: Untrusted,
    /// Time of the decision (ms since the epoch).
    pub at: u64,
}

/// Parameters for forgetting a remembered decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForgetParams {
    /// Number of the decision.
    pub id: i64,
}

/// A hypothetical tool call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyTestParams {
    /// Agent profile; the default agent if absent.
    pub agent: Option<String>,
    /// Working directory of the session.
    pub cwd: String,
    /// `toolCall` as in `session/request_permission`.
    #[serde(rename = "toolCall")]
    pub tool_call: Value,
}

/// A client answered a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QuestionAnswered {
    /// Public id of the session.
    pub session_id: Untrusted,
    /// Id of the question, as in `_acpd/interaction/list` and in `_meta._acpd` of the request.
    pub id: Untrusted,
    /// The tool call in question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<Untrusted>,
    /// Title of the call, or message of the form or page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Untrusted>,
    /// Subject of the call on one line, if acpd understands it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Untrusted>,
    /// The answer, without a form's contents.
    pub answer: AnswerInfo,
    /// The client that answered.
    pub by: ClientName,
    /// Time of the answer (ms since the epoch).
    pub at: u64,
}

/// Answer to a question, without the contents of a form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AnswerInfo {
    /// One of the offered options.
    Option {
        /// The option that was chosen.
        option: OptionInfo,
    },
    /// A form was filled in, or a page agreed to.
    Accept,
    /// A form or page was refused.
    Decline,
    /// The client did not want to decide.
    Cancel,
}

/// An automatic answer to a permission question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionDecided {
    /// Public id of the session.
    pub session_id: Untrusted,
    /// Id of the tool call.
    pub tool_call_id: Option<Untrusted>,
    /// Title of the tool call.
    pub title: Option<Untrusted>,
    /// Subject of the call on one line, if acpd understands it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Untrusted>,
    /// The whole call at the time of the decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<Box<Shown>>,
    /// The option that was chosen; empty if the agent's request failed instead.
    pub option_id: Untrusted,
    /// The verdict: `allow` or `reject`.
    pub verdict: Untrusted,
    /// The rule, remembered decision or flag that decided, for people.
    pub by: Untrusted,
}
