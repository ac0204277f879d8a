//! A tool call as a question shows it.

use serde::{Deserialize, Serialize};

use crate::Untrusted;

/// Most bytes of a call's raw JSON.
const RAW_BYTES: usize = 64 << 10;

/// A tool call at the time of its question.
///
/// Texts are whole, as the agent wrote them; a bounded part has the number of bytes that are left
/// out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shown {
    /// `read`, `edit`, `execute`, …; `other` if it is not known.
    pub kind: Untrusted,
    /// The agent's title of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Untrusted>,
    /// The commands, each with all of its lines.
    pub commands: Vec<Untrusted>,
    /// The folder of the commands, if the call names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<Untrusted>,
    /// The paths in the call.
    pub paths: Vec<Untrusted>,
    /// The addresses to fetch.
    pub urls: Vec<Untrusted>,
    /// Changes of files.
    pub diffs: Vec<ShownDiff>,
    /// Parts that acpd does not understand.
    pub unclear: Vec<ShownUnclear>,
    /// The call itself, if the members above do not show all of it. Then a person should read this
    /// before allowing it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raw: Option<RawCall>,
    /// Subject that "always" remembers; absent if acpd could not recognise the call again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub always: Option<Untrusted>,
}

/// A change of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownDiff {
    /// Path of the file.
    pub path: Untrusted,
    /// Text before the change; absent for a new file, and if `unseen` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_text: Option<Untrusted>,
    /// Text after the change.
    pub new_text: Untrusted,
    /// Bytes of both texts, if they are too long or were sent before. Then both are absent or
    /// empty.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
    /// The agent sent no old text, but the file exists: acpd has read `old_text`, all of which is
    /// replaced.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub replaces: bool,
    /// The agent sent no old text, and acpd does not know the present one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unseen: bool,
}

/// A part of a call that acpd does not understand.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownUnclear {
    /// Path of the member's names; empty for the whole call.
    pub member: Untrusted,
    /// Description of the problem: `is not known`, `is given twice`.
    pub why: Untrusted,
}

/// A call as the agent sent it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RawCall {
    /// The beginning of its JSON, as `toolCall` in `session/request_permission`.
    pub text: Untrusted,
    /// Number of bytes that were cut off.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
}

impl RawCall {
    /// The first 64 KiB of a call's JSON, up to the last whole character.
    pub fn beginning(json: &str) -> RawCall {
        let text = &json[..json.floor_char_boundary(RAW_BYTES)];
        RawCall { text: text.into(), left_out: (json.len() - text.len()) as u64 }
    }
}

impl Shown {
    /// Returns whether the call is understood and complete, so that a person can decide at a
    /// glance.
    pub fn is_understood(&self) -> bool {
        self.raw.is_none() && self.unclear.is_empty()
    }

    /// Returns whether a program, which sees only these members, can decide: the call is
    /// understood, and no text is cut.
    pub fn is_whole(&self) -> bool {
        self.is_understood() && self.diffs.iter().all(|diff| diff.left_out == 0)
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
pub(crate) fn is_zero(number: &u64) -> bool {
    *number == 0
}
