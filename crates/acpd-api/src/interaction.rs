//! Open questions of agents, their answers, and the rules and decisions that answer without a person.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{ClientName, Shown, Untrusted};

/// All open questions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InteractionList {
    /// The oldest first.
    pub interactions: Vec<InteractionInfo>,
}

/// A question that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InteractionInfo {
    /// What it is answered by.
    pub id: Untrusted,
    /// Agent profile.
    pub agent: Untrusted,
    /// The session; absent if the question is about a request of one client, such as a login.
    pub session_id: Option<Untrusted>,
    /// Name of the session.
    pub name: Option<Untrusted>,
    /// Working directory of the session.
    pub cwd: Option<Untrusted>,
    /// The name or the id of the session whose agent has begun this one, if an agent has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Untrusted>,
    /// When it was asked (ms since the epoch).
    pub at: u64,
    /// What is asked.
    pub question: Question,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Question {
    /// Whether a tool call may run.
    #[serde(rename_all = "camelCase")]
    Permission {
        /// The agent's title of the call.
        title: Option<Untrusted>,
        /// `read`, `edit`, `execute`, …
        tool_kind: Option<Untrusted>,
        /// What exactly it is about, if that can be told in a line.
        subject: Option<Untrusted>,
        /// All of the call, as it was when it was asked about: what is decided is this.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shown: Option<Box<Shown>>,
        /// How often the agent changed the call while a person was asked. Each time it was asked anew,
        /// under another id.
        #[serde(default)]
        changed: u32,
        /// The answers to choose from.
        options: Vec<OptionInfo>,
    },
    /// To fill in a form.
    Form {
        /// What the agent says.
        message: Untrusted,
        /// JSON schema of the form: flat, as in `elicitation/create`.
        schema: Value,
        /// Names of the fields, in the order of the agent's schema.
        #[serde(default)]
        order: Vec<Untrusted>,
    },
    /// To open a page.
    Url {
        /// What the agent says.
        message: Untrusted,
        /// The page.
        url: Untrusted,
    },
}

/// An answer to choose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OptionInfo {
    /// The id for the answer.
    pub option_id: Untrusted,
    /// The name for people.
    pub name: Untrusted,
    /// `allow_once`, `allow_always`, `reject_once`, `reject_always`, or something else.
    pub kind: Untrusted,
}

/// An answer to a question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerParams {
    /// Which question.
    pub id: String,
    /// What is answered.
    pub answer: GivenAnswer,
    /// Who answers, for others who are told; not needed after `initialize`, which says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<ClientName>,
    /// The session whose agent answers, by the number that acpd gave to a tool of that session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<u64>,
}

/// What an answer did.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AnswerResult {
    /// The name of the option that the agent got, if it is one of its own that holds from now on: the agent
    /// may not ask again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub own_option: Option<Untrusted>,
    /// The number of the decision that acpd remembers by it, for `_acpd/policy/forget`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remembered: Option<i64>,
}

/// What a person answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum GivenAnswer {
    /// This option.
    Option {
        /// Its id.
        option: String,
    },
    /// The option that allows the call; with `always` it is remembered.
    Allow {
        /// Also from now on.
        #[serde(default)]
        always: bool,
        /// Which, where several options say so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        option: Option<String>,
    },
    /// The option that refuses the call; with `always` it is remembered.
    Deny {
        /// Also from now on.
        #[serde(default)]
        always: bool,
        /// Which, where several options say so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        option: Option<String>,
    },
    /// The form is filled in, or the page is opened.
    Accept {
        /// The members of the form.
        #[serde(default)]
        content: Option<Value>,
    },
    /// No.
    Decline,
}

/// Rules are in the configuration; what was remembered is here.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyList {
    /// Decisions of people that hold until they are taken back, oldest first.
    pub remembered: Vec<RememberedInfo>,
}

/// A decision that was remembered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RememberedInfo {
    /// What it is revoked by.
    pub id: i64,
    /// The agent that asked.
    pub agent: Untrusted,
    /// Working directory of the session.
    pub workspace: Untrusted,
    /// What was decided on, in words.
    pub subject: Untrusted,
    /// `allow` or `reject`.
    pub verdict: Untrusted,
    /// When (ms since the epoch).
    pub at: u64,
}

/// Which remembered decision to forget.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForgetParams {
    /// Its id.
    pub id: i64,
}

/// A tool call that might be asked about.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyTestParams {
    /// Agent profile; none is the default agent.
    #[serde(default)]
    pub agent: Option<String>,
    /// Working directory of the session.
    pub cwd: String,
    /// `toolCall` as in `session/request_permission`.
    #[serde(rename = "toolCall")]
    pub tool_call: Value,
}

/// A question was answered by a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QuestionAnswered {
    /// Session.
    pub session_id: Untrusted,
    /// Id of the question, as in `_acpd/interaction/list` and in `_meta._acpd` of the request.
    pub id: Untrusted,
    /// The tool call that it was about, if it was about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<Untrusted>,
    /// What was asked: the title of the call, or the message of the form or page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Untrusted>,
    /// What acpd reads in the call, in one line, if it says enough for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Untrusted>,
    /// The answer.
    pub answer: AnswerInfo,
    /// Who gave it.
    pub by: ClientName,
    /// When (ms since the epoch).
    pub at: u64,
}

/// What a question was answered with. What was filled into a form is not told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AnswerInfo {
    /// This option.
    Option {
        /// Which.
        option: OptionInfo,
    },
    /// A form was filled in, or a page agreed to.
    Accept,
    /// No to a form or a page.
    Decline,
    /// The client did not want to decide.
    Cancel,
}

/// An automatic answer to a permission question.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PermissionDecided {
    /// Session.
    pub session_id: Untrusted,
    /// The tool call.
    pub tool_call_id: Option<Untrusted>,
    /// Its title.
    pub title: Option<Untrusted>,
    /// What acpd reads in the call, in one line, if it says enough for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Untrusted>,
    /// All of the call, as it was when it was decided on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shown: Option<Box<Shown>>,
    /// The option that was chosen; empty if the agent's request failed instead.
    pub option_id: Untrusted,
    /// `allow` or `reject`.
    pub verdict: Untrusted,
    /// Which rule, remembered decision or flag decided, in words.
    pub by: Untrusted,
}
