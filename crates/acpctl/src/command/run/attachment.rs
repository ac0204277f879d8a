//! Files that go with a prompt.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::command::{absolute, text};
use crate::error::{CommandError, Result};

/// Bigger texts are linked: the agent can read the part that it needs.
const MAX_EMBEDDED: u64 = 1024 * 1024;
/// No provider takes bigger images.
const MAX_IMAGE: u64 = 20 * 1024 * 1024;

/// A file that goes with the prompt.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Attachment {
    /// A file, with its text if it has one of a reasonable size.
    File {
        /// Where it is.
        place: Place,
        /// Its text.
        text: Option<String>,
    },
    /// An image.
    Image {
        /// Where it is.
        place: Place,
        /// Base64.
        data: String,
    },
}

/// Where a file is.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Place {
    uri: String,
    name: String,
    mime: String,
    size: u64,
}

impl Attachment {
    /// Reads a file.
    pub(super) fn file(path: &Path) -> Result<Attachment> {
        let size = size(path)?;
        let bytes = if size <= MAX_EMBEDDED { read(path)? } else { Vec::new() };
        let text = match String::from_utf8(bytes) {
            Ok(text) if size <= MAX_EMBEDDED && !text.contains('\0') => Some(text),
            _ => None,
        };
        let guess = mime_guess::from_path(path);
        let mime = match &text {
            // By its name alone TypeScript is a video.
            Some(_) => guess
                .iter()
                .find(|mime| mime.type_() == "text" || mime.type_() == "application")
                .map_or_else(|| "text/plain".to_owned(), |mime| mime.to_string()),
            None => guess.first_or_octet_stream().to_string(),
        };
        Ok(Attachment::File { place: Place::new(path, mime, size)?, text })
    }

    /// Reads an image.
    pub(super) fn image(path: &Path) -> Result<Attachment> {
        let mime = mime_guess::from_path(path).iter().find(|mime| mime.type_() == "image");
        let Some(mime) = mime else {
            return Err(CommandError::usage(format!("`{}` is not an image", path.display()))
                .hint("add it with `--file`, or give it the ending of its format, like `.png`"));
        };
        let size = size(path)?;
        if size > MAX_IMAGE {
            let text = format!("image `{}` is bigger than 20 MB", path.display());
            return Err(CommandError::usage(text).hint("make it smaller"));
        }
        let data = STANDARD.encode(read(path)?);
        Ok(Attachment::Image { place: Place::new(path, mime.to_string(), size)?, data })
    }

    /// The content block (protocol brief, section 3.3): a text is embedded where the agent takes
    /// that, and everything that is not is linked.
    pub(super) fn block(&self, can_embed: bool) -> Value {
        match self {
            Attachment::File { place, text: Some(text) } if can_embed => json!({
                "type": "resource",
                "resource": {"uri": place.uri, "mimeType": place.mime, "text": text},
            }),
            Attachment::File { place, .. } => json!({
                "type": "resource_link", "uri": place.uri, "name": place.name,
                "mimeType": place.mime, "size": place.size,
            }),
            Attachment::Image { place, data } => json!({
                "type": "image", "data": data, "mimeType": place.mime, "uri": place.uri,
            }),
        }
    }
}

impl Place {
    fn new(path: &Path, mime: String, size: u64) -> Result<Place> {
        let full = text(&absolute(path)?)?;
        let name = full.rsplit('/').next().unwrap_or(&full).to_owned();
        Ok(Place { uri: file_uri(&full), name, mime, size })
    }
}

fn file_uri(path: &str) -> String {
    let mut uri = "file://".to_owned();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/-._~".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

fn size(path: &Path) -> Result<u64> {
    let found = fs::metadata(path).map_err(|error| CommandError::file("read", path, &error))?;
    if found.is_file() {
        return Ok(found.len());
    }
    Err(CommandError::usage(format!("`{}` is not a file", path.display()))
        .hint("add single files, or tell the agent the directory in the prompt"))
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)
        // A file that grows meanwhile must not fill the memory.
        .and_then(|file| file.take(MAX_IMAGE).read_to_end(&mut bytes))
        .map_err(|error| CommandError::file("read", path, &error))?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str, content: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        fs::write(&path, content).unwrap();
        (dir, path)
    }

    #[test]
    fn a_text_is_embedded_where_the_agent_takes_it_and_linked_elsewhere() {
        let (_dir, path) = file("häß lich.ts", b"let x = 1;\n");
        let attachment = Attachment::file(&path).unwrap();
        let embedded = attachment.block(true);
        assert_eq!(embedded["resource"]["text"], "let x = 1;\n");
        assert_eq!(embedded["resource"]["mimeType"], "text/plain");
        let uri = embedded["resource"]["uri"].as_str().unwrap();
        assert!(uri.starts_with("file:///") && uri.ends_with("/h%C3%A4%C3%9F%20lich.ts"), "{uri}");

        let linked = attachment.block(false);
        assert_eq!(linked["type"], "resource_link");
        assert_eq!(
            (linked["name"].as_str(), linked["size"].as_u64()),
            (Some("häß lich.ts"), Some(11))
        );
    }

    #[test]
    fn binary_files_are_linked_even_where_texts_are_embedded() {
        for content in [&b"\xff\xfe"[..], b"a\0b"] {
            let (_dir, path) = file("data.bin", content);
            let block = Attachment::file(&path).unwrap().block(true);
            assert_eq!(block["type"], "resource_link");
            assert_eq!(block["mimeType"], "application/octet-stream");
        }
    }

    #[test]
    fn images_are_sent_whole_and_must_look_like_images() {
        let (_dir, path) = file("dot.PNG", b"\x89PNG");
        let block = Attachment::image(&path).unwrap().block(false);
        assert_eq!(
            (block["mimeType"].as_str(), block["data"].as_str()),
            (Some("image/png"), Some("iVBORw=="))
        );

        let (_dir, path) = file("dot.txt", b"x");
        assert_eq!(Attachment::image(&path).unwrap_err().code(), acpd_api::ExitCode::Usage);
    }

    #[test]
    fn missing_files_and_directories_are_named() {
        let (dir, path) = file("x", b"");
        let missing = Attachment::file(&path.with_file_name("nothing")).unwrap_err();
        assert_eq!(missing.code(), acpd_api::ExitCode::NotFound);
        assert_eq!(Attachment::file(dir.path()).unwrap_err().code(), acpd_api::ExitCode::Usage);
    }
}
