//! Files of a prompt, and piped text.

#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::{self, Read};
use std::ops::RangeInclusive;
use std::path::{self, Path, PathBuf};

use acp_wire::acp::{AgentCapabilities, ContentBlock, fence, file_uri, image_type};
use acpd_api::ExitCode;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mime_guess::MimeGuess;
use serde_json::{Value, json};
use thiserror::Error;

/// Most bytes of a file. No agent takes more at once; it can read the part that it needs.
pub const LIMIT: u64 = 10 * 1024 * 1024;

/// Bytes that decide the kind of a file.
const HEAD: u64 = 8 * 1024;

#[derive(Debug, Error)]
#[error("{message}")]
pub struct AttachmentError {
    pub code: ExitCode,
    message: String,
    pub hints: Vec<&'static str>,
}

impl AttachmentError {
    fn unfit(message: String) -> AttachmentError {
        AttachmentError { code: ExitCode::Usage, message, hints: Vec::new() }
    }

    fn unreadable(path: &Path) -> impl Fn(io::Error) -> AttachmentError {
        move |error| {
            let code = match error.kind() {
                io::ErrorKind::NotFound => ExitCode::NotFound,
                _ => ExitCode::Error,
            };
            let message = format!("cannot read `{}`: {error}", path.display());
            AttachmentError { code, message, hints: Vec::new() }
        }
    }

    fn with_hint(mut self, hint: &'static str) -> AttachmentError {
        self.hints.push(hint);
        self
    }
}

type Result<T> = std::result::Result<T, AttachmentError>;

#[derive(Debug, PartialEq, Eq)]
pub enum Attachment {
    Text {
        /// The file and its lines, or the pipe.
        uri: String,
        mime: String,
        text: String,
        /// `None` for piped text.
        file: Option<Source>,
    },
    /// Content blocks, for agents that take them.
    Blob(Value),
    Audio(Value),
    Image(Value),
}

#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    name: String,
    /// Bytes of the whole file.
    size: u64,
}

impl Attachment {
    /// Reads a file or its given lines: `PATH`, `PATH:10` or `PATH:10-20`.
    pub fn file(argument: &Path) -> Result<Attachment> {
        let (path, lines) = split(argument)?;
        let bytes = read(&path)?;
        let size = bytes.len() as u64;
        let what = format!("`{}`", path.display());
        let guess = mime_guess::from_path(&path);
        let is_blob = guess.first().is_none_or(|mime| mime.type_() != mime_guess::mime::TEXT);
        let is_text = std::str::from_utf8(&bytes).is_ok_and(|text| !text.contains('\0'));
        if !is_text && is_blob && lines.is_none() {
            let mime = guess.first_or_octet_stream().to_string();
            return Ok(Attachment::Blob(blob_resource(
                &file_uri(&absolute(&path)?),
                &mime,
                &bytes,
            )));
        }
        let text = decoded(bytes, &what).map_err(|error| {
            error.with_hint(
                "add images with `--image`; name any other file in the prompt by its path",
            )
        })?;
        let mime = text_type(&guess);
        let full = absolute(&path)?;
        let name = Path::new(&full).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let file = Some(Source { name, size });
        let uri = file_uri(&full);
        let Some(lines) = lines else { return Ok(Attachment::Text { uri, mime, text, file }) };
        let (first, last) = lines.into_inner();
        let found = text.split_inclusive('\n').skip(first - 1).take(last - first + 1);
        let found: Vec<&str> = found.collect();
        if found.is_empty() {
            let count = text.lines().count();
            let message = format!("{what} has no line {first}: it has {count}");
            return Err(AttachmentError::unfit(message));
        }
        let (last, text) = (first + found.len() - 1, found.concat());
        let uri = format!("{uri}#L{first}:{last}");
        Ok(Attachment::Text { uri, mime, text, file })
    }

    /// Piped text; `None` if it is empty.
    pub fn piped(text: String) -> Option<Attachment> {
        let is_empty = text.trim().is_empty();
        let uri = "untitled:stdin".to_owned();
        (!is_empty).then(|| Attachment::Text { uri, mime: plain(), text, file: None })
    }

    pub fn audio(path: &Path) -> Result<Attachment> {
        let Some(mime) = audio_type(&mime_guess::from_path(path)) else {
            let message = format!("`{}` is not a sound", path.display());
            return Err(AttachmentError::unfit(message)
                .with_hint("rename it with the extension of its format, such as `.mp3`"));
        };
        let bytes = read(path)?;
        if bytes.is_empty() {
            return Err(empty(path));
        }
        let data = STANDARD.encode(bytes);
        Ok(Attachment::Audio(json!({"type": "audio", "mimeType": mime, "data": data})))
    }

    pub fn markdown(name: &str, text: String) -> Attachment {
        let (uri, mime) = (format!("untitled:{name}.md"), "text/markdown".to_owned());
        Attachment::Text { uri, mime, text, file: None }
    }

    /// Reads an image. Its first bytes decide its type, not its name.
    pub fn image(path: &Path) -> Result<Attachment> {
        let bytes = read(path)?;
        let Some(mime) = image_type(&bytes) else {
            return Err(no_image(path, &bytes));
        };
        let (uri, mime_type) = (Some(file_uri(&absolute(path)?)), mime.to_owned());
        let image = ContentBlock::Image { data: STANDARD.encode(bytes), mime_type, uri };
        Ok(Attachment::Image(json!(image)))
    }

    /// The content blocks. A text is embedded if the agent takes that; otherwise its file is linked
    /// and the text is a block of its own.
    pub fn blocks(&self, can_embed: bool) -> Vec<Value> {
        match self {
            Attachment::Text { uri, mime, text, .. } if can_embed => {
                vec![text_resource(uri, mime, text)]
            }
            Attachment::Text { uri, mime, text, file } => {
                let link = |file: &Source| {
                    json!(ContentBlock::ResourceLink {
                        uri: uri.clone(),
                        name: file.name.clone(),
                        mime_type: Some(mime.clone()),
                        size: Some(file.size),
                    })
                };
                let said = format!("{uri}\n\n{}", fenced(text));
                let said = json!({"type": "text", "text": said});
                file.iter().map(link).chain([said]).collect()
            }
            Attachment::Blob(block) | Attachment::Audio(block) | Attachment::Image(block) => {
                vec![block.clone()]
            }
        }
    }
}

/// Returns the block of a file that a prompt mentions as `@NAME`. An image, a sound or another
/// binary file is embedded if the agent takes it; every other file is linked, since the agent reads
/// what it needs.
pub fn mentioned(path: &Path, name: &str, can: AgentCapabilities) -> Result<Value> {
    let mut head = Vec::new();
    let read = open(path)?.take(HEAD).read_to_end(&mut head);
    read.map_err(AttachmentError::unreadable(path))?;
    let is_text = match std::str::from_utf8(&head) {
        Ok(text) => !text.is_empty() && !text.contains('\0'),
        // The head may end within a character.
        Err(error) => error.error_len().is_none() && !head.contains(&0),
    };
    // The name decides where the first bytes are ambiguous.
    let guess = mime_guess::from_path(path);
    let mime = guess.first();
    let mime = mime.as_ref().map(|mime| (mime.type_().as_str(), mime.subtype().as_str()));
    let attachment = match mime {
        _ if image_type(&head).is_some() => can.image.then(|| Attachment::image(path)),
        _ if is_text => None,
        _ if audio_type(&guess).is_some() => can.audio.then(|| Attachment::audio(path)),
        Some(("image", "png" | "jpeg" | "gif" | "webp")) => {
            can.image.then(|| Attachment::image(path))
        }
        Some((kind, _)) if kind != "text" && !head.is_empty() => {
            can.embedded_context.then(|| Attachment::file(path))
        }
        _ => None,
    };
    if let Some(attachment) = attachment {
        return Ok(attachment?.blocks(true).remove(0));
    }
    let (uri, name) = (file_uri(&absolute(path)?), name.to_owned());
    Ok(json!(ContentBlock::ResourceLink { uri, name, mime_type: None, size: None }))
}

/// Returns the block of a file with another address than its path: its text, or else its bytes.
pub fn embed_file(path: &Path, uri: &str) -> Result<Value> {
    let bytes = read(path)?;
    let guess = mime_guess::from_path(path);
    Ok(match std::str::from_utf8(&bytes) {
        Ok(text) if !text.contains('\0') => text_resource(uri, &text_type(&guess), text),
        _ => blob_resource(uri, guess.first_or_octet_stream().as_ref(), &bytes),
    })
}

fn text_resource(uri: &str, mime: &str, text: &str) -> Value {
    json!({"type": "resource", "resource": {"uri": uri, "mimeType": mime, "text": text}})
}

fn blob_resource(uri: &str, mime: &str, bytes: &[u8]) -> Value {
    let blob = json!({"uri": uri, "mimeType": mime, "blob": STANDARD.encode(bytes)});
    json!({"type": "resource", "resource": blob})
}

/// The type of a file that has text. TypeScript's name alone means a video.
fn text_type(guess: &MimeGuess) -> String {
    let is_text = |mime: &mime_guess::Mime| matches!(mime.type_().as_str(), "text" | "application");
    guess.iter().find(is_text).map_or_else(plain, |mime| mime.to_string())
}

fn no_image(path: &Path, bytes: &[u8]) -> AttachmentError {
    if bytes.is_empty() {
        return empty(path);
    }
    let hint = match std::str::from_utf8(bytes) {
        Ok(_) => "add a text with `--file`",
        Err(_) => "convert it first: `magick IMAGE IMAGE.png`",
    };
    AttachmentError::unfit(format!(
        "`{}` is none of the images that agents take: PNG, JPEG, GIF and WebP",
        path.display()
    ))
    .with_hint(hint)
}

/// Reads all of stdin. Returns whether bytes were replaced, because a diff may have files of any
/// encoding in it.
pub fn stdin() -> Result<(String, bool)> {
    let failed = |error| AttachmentError {
        code: ExitCode::Error,
        message: format!("cannot read stdin: {error}"),
        hints: Vec::new(),
    };
    let what = "stdin";
    let bytes = read_all(io::stdin().lock()).map_err(failed)?;
    let bytes = bytes.ok_or_else(|| too_big(what))?;
    if std::str::from_utf8(&bytes).is_err() && !bytes.contains(&0) {
        return Ok((String::from_utf8_lossy(&bytes).into_owned(), true));
    }
    Ok((decoded(bytes, what)?, false))
}

/// A hint how to convert a text to UTF-8.
fn recode(bytes: &[u8]) -> &'static str {
    match bytes {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "convert it: `iconv -f UTF-16 -t UTF-8`",
        _ => "convert it: `iconv -f ISO-8859-1 -t UTF-8`",
    }
}

/// Reads a file that holds a prompt; it may be a pipe, as of `<(…)`.
pub fn prompt_file(path: &Path) -> Result<String> {
    let bytes = File::open(path).and_then(read_all).map_err(AttachmentError::unreadable(path))?;
    let what = format!("`{}`", path.display());
    decoded(bytes.ok_or_else(|| too_big(&what))?, &what)
}

/// Splits an argument into path and lines. An existing file whose name ends like lines is meant
/// whole.
fn split(argument: &Path) -> Result<(PathBuf, Option<RangeInclusive<usize>>)> {
    let whole = || Ok((argument.to_owned(), None));
    if argument.exists() {
        return whole();
    }
    let Some((path, lines)) = argument.to_str().and_then(|text| text.rsplit_once(':')) else {
        return whole();
    };
    let is_part = |byte: u8| byte.is_ascii_digit() || byte == b'-';
    if path.is_empty() || lines.is_empty() || !lines.bytes().all(is_part) {
        return whole();
    }
    let (first, last) = lines.split_once('-').unwrap_or((lines, lines));
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) if 1 <= first && first <= last => {
            Ok((PathBuf::from(path), Some(first..=last)))
        }
        _ => Err(AttachmentError::unfit(format!("`{lines}` does not name lines of `{path}`"))
            .with_hint("lines count from 1: `PATH:10` or `PATH:10-20`")),
    }
}

fn plain() -> String {
    "text/plain".to_owned()
}

fn decoded(bytes: Vec<u8>, what: &str) -> Result<String> {
    match String::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text),
        Ok(_) => Err(no_text(what)),
        Err(error) => Err(no_text(what).with_hint(recode(error.as_bytes()))),
    }
}

fn no_text(what: &str) -> AttachmentError {
    AttachmentError::unfit(format!("{what} is not text in UTF-8"))
}

fn fenced(text: &str) -> String {
    let fence = "`".repeat(fence(text));
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{fence}\n{text}{end}{fence}\n")
}

fn empty(path: &Path) -> AttachmentError {
    AttachmentError::unfit(format!("`{}` is empty", path.display()))
}

fn audio_type(guess: &MimeGuess) -> Option<String> {
    guess.iter().find(|mime| mime.type_() == "audio").map(|mime| mime.to_string())
}

/// An absolute path as JSON can carry it, with unresolved links.
fn absolute(path: &Path) -> Result<String> {
    let full = path::absolute(path).map_err(AttachmentError::unreadable(path))?;
    full.into_os_string().into_string().map_err(|full| {
        let path = full.display();
        AttachmentError::unfit(format!("`{path}` is not valid UTF-8"))
            .with_hint("agents take only paths that JSON can hold; rename it")
    })
}

fn open(path: &Path) -> Result<File> {
    let failed = AttachmentError::unreadable(path);
    // Checked before, because opening a pipe may block for ever.
    if !fs::metadata(path).map_err(&failed)?.is_file() {
        let message = format!("`{}` is not a file", path.display());
        return Err(AttachmentError::unfit(message)
            .with_hint("add single files, or name the directory in the prompt"));
    }
    File::open(path).map_err(failed)
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let bytes = read_all(open(path)?).map_err(AttachmentError::unreadable(path))?;
    bytes.ok_or_else(|| too_big(&format!("`{}`", path.display())))
}

/// Reads all bytes; `None` if there are more than [`LIMIT`].
fn read_all(source: impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    source.take(LIMIT + 1).read_to_end(&mut bytes)?;
    Ok(Some(bytes).filter(|bytes| bytes.len() as u64 <= LIMIT))
}

fn too_big(what: &str) -> AttachmentError {
    AttachmentError::unfit(format!("{what} is bigger than 10 MiB"))
        .with_hint("name the path in the prompt: the agent reads what it needs")
}
