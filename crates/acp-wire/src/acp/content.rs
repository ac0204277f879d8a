//! Content blocks of prompts, as acpd's programs write them.

use std::path::Path;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::Serialize;

/// A content block of a prompt. Every agent takes texts and links; images are a capability.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ContentBlock {
    /// A block of text.
    Text {
        /// The text.
        text: String,
    },
    /// A file that the agent may read.
    ResourceLink {
        /// Address of the resource.
        uri: String,
        /// Name of the resource, for people.
        name: String,
        /// MIME type of the content.
        #[serde(skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
        /// Size of the file in bytes.
        #[serde(skip_serializing_if = "Option::is_none")]
        size: Option<u64>,
    },
    /// An image.
    Image {
        /// The image in Base64.
        data: String,
        /// MIME type of the content.
        mime_type: String,
        /// The address of its file.
        #[serde(skip_serializing_if = "Option::is_none")]
        uri: Option<String>,
    },
}

/// The URI of an absolute path, which on Windows begins with a drive or a server.
pub fn file_uri(path: &str) -> String {
    let plain = path.strip_prefix(r"\\?\").unwrap_or(path);
    let share = path.strip_prefix(r"\\?\UNC\").or_else(|| plain.strip_prefix(r"\\"));
    let is_drive = |start: &str| start.len() == 1 && start.starts_with(char::is_alphabetic);
    let (start, rest) = match (plain.split_once(':').filter(|(start, _)| is_drive(start)), share) {
        (Some((drive, rest)), _) => (format!("/{drive}:"), rest.replace('\\', "/")),
        (None, Some(share)) => (String::new(), share.replace('\\', "/")),
        (None, None) => (String::new(), path.to_owned()),
    };
    let parts: Vec<String> = rest.split('/').map(uri_part).collect();
    format!("file://{start}{}", parts.join("/"))
}

/// The path in the URI of a file of this machine, and the query or fragment that follows. `None` for
/// other URIs, and for a path that is not UTF-8.
pub fn file_uri_path(uri: &str) -> Option<(String, &str)> {
    let (scheme, rest) = uri.split_at_checked("file://".len())?;
    let rest = rest.strip_prefix("localhost").unwrap_or(rest);
    let (path, behind) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
    if !scheme.eq_ignore_ascii_case("file://") || !path.starts_with('/') {
        return None;
    }
    let path = percent_decode_str(path).decode_utf8().ok()?.into_owned();
    // A drive has a slash before it.
    let drive = path.strip_prefix('/').filter(|rest| Path::new(rest).is_absolute());
    Some((drive.map(str::to_owned).unwrap_or(path), behind))
}

const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A text as a part of a URI.
pub fn uri_part(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}

/// The type of an image by its first bytes; `None` if agents do not take it.
pub fn image_type(bytes: &[u8]) -> Option<&'static str> {
    Some(match bytes {
        [0x89, b'P', b'N', b'G', ..] => "image/png",
        [0xff, 0xd8, 0xff, ..] => "image/jpeg",
        [b'G', b'I', b'F', b'8', ..] => "image/gif",
        [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => "image/webp",
        _ => return None,
    })
}

/// Number of backticks around a code block of Markdown that this text cannot end.
pub fn fence(text: &str) -> usize {
    text.split(|c| c != '`').map(str::len).max().unwrap_or(0).max(2) + 1
}
