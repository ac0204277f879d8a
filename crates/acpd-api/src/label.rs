use serde::{Deserialize, Serialize};

use crate::SessionRef;

/// Maximum length of a label in bytes.
pub const LABEL_BYTES: usize = 64;

/// Maximum number of labels of a session.
pub const MAX_LABELS: usize = 16;

/// Returns whether a text is a label: 1 to [`LABEL_BYTES`] ASCII letters, digits and `._:=/-`, with
/// no `-` at its beginning.
pub fn is_label(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._:=/-".contains(&byte);
    (1..=LABEL_BYTES).contains(&text.len())
        && !text.starts_with('-')
        && text.bytes().all(is_allowed)
}

/// Parameters for changing the labels of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LabelParams {
    /// The session in question.
    #[serde(rename = "ref")]
    pub session: SessionRef,
    /// Labels to add. A label has 1 to 64 ASCII letters, digits and `._:=/-`, and no `-` at its
    /// beginning; a session has at most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub add: Vec<String>,
    /// Labels to remove before others are added. Those that the session lacks are ignored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remove: Vec<String>,
}
