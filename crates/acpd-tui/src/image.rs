//! Images for prompts: from files, and from the clipboard, as far as a program is installed that reads it. Terminals
//! themselves do not hand images on.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use acpd_api::Untrusted;
use acpd_view::text::Text;
use acpd_view::{human, text};
use base64::prelude::{BASE64_STANDARD, Engine as _};

/// No agent takes more at once.
const LIMIT: u64 = 10 * 1024 * 1024;
/// How long a program may take to read the clipboard.
const PATIENCE: Duration = Duration::from_secs(3);
/// Programs that write the image on the clipboard to stdout: of Wayland, X11 and macOS.
const PROGRAMS: [&[&str]; 3] = [
    &["wl-paste", "--no-newline", "--type", "image/png"],
    &["xclip", "-selection", "clipboard", "-target", "image/png", "-out"],
    &["pngpaste", "-"],
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Image {
    pub(crate) mime: &'static str,
    /// Base64.
    pub(crate) data: String,
}

/// The path that a pasted text is, if it looks like that of an image. Terminals paste the path of a file that is
/// dropped on them.
pub(crate) fn path_of(pasted: &str, home: Option<&str>) -> Option<String> {
    let text = pasted.trim();
    if text.is_empty() || text.contains('\n') {
        return None;
    }
    let quoted = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    let text = quoted('\'')
        .or_else(|| quoted('"'))
        .map_or_else(|| text.replace("\\ ", " "), str::to_owned);
    let text = text.strip_prefix("file://").map(str::to_owned).unwrap_or(text);
    let path = match (text.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => format!("{home}/{rest}"),
        _ => text,
    };
    let extension = Path::new(&path).extension()?.to_str()?.to_ascii_lowercase();
    let is_image = ["png", "jpg", "jpeg", "gif", "webp"].contains(&extension.as_str());
    (is_image && Path::new(&path).has_root()).then_some(path)
}

/// Reads an image from a file.
pub(crate) fn file(path: &str) -> Result<Image, Text> {
    let what = Untrusted::from(path);
    let cannot = |error: io::Error| text!("cannot read `{}`: {}", what, Untrusted::of(error));
    // Looked at before it is opened: opening a pipe may wait for ever.
    if !fs::metadata(path).map_err(cannot)?.is_file() {
        return Err(text!("`{}` is not a file", what));
    }
    image(&File::open(path).and_then(read).map_err(cannot)?, &text!("`{}`", what))
}

/// Reads the image on the clipboard.
pub(crate) fn clipboard() -> Result<Image, Text> {
    clipboard_by(&PROGRAMS)
}

fn clipboard_by(programs: &[&[&str]]) -> Result<Image, Text> {
    let mut is_one_there = false;
    for line in programs {
        let Some(bytes) = output(line) else { continue };
        is_one_there = true;
        if !bytes.is_empty() {
            return image(&bytes, &"what is on the clipboard".into());
        }
    }
    Err(if is_one_there {
        "there is no image on the clipboard".into()
    } else {
        "the clipboard is read by wl-paste, xclip or pngpaste, and none is installed".into()
    })
}

/// What a program writes; nothing if it is not there, empty if it fails or takes too long.
fn output(line: &[&str]) -> Option<Vec<u8>> {
    let (program, arguments) = line.split_first()?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let stdout = child.stdout.take()?;
    let (sender, written) = mpsc::channel();
    // Nobody listens any more if it takes too long.
    thread::spawn(move || drop(sender.send(read(stdout))));
    let bytes = written.recv_timeout(PATIENCE).ok().and_then(Result::ok);
    // It may have ended already, and its status says nothing that its output does not.
    let _ = child.kill();
    let _ = child.wait();
    Some(bytes.unwrap_or_default())
}

fn read(source: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(LIMIT + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn image(bytes: &[u8], what: &Text) -> Result<Image, Text> {
    if bytes.len() as u64 > LIMIT {
        return Err(text!("{} is bigger than 10 MiB", what));
    }
    let Some(mime) = human::image_type(bytes) else {
        return Err(text!("{} is no PNG, JPEG, GIF or WebP image", what));
    };
    Ok(Image { mime, data: BASE64_STANDARD.encode(bytes) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_images_are_known_however_they_are_pasted() {
        let path = |text: &str| path_of(text, Some("/home/ada"));
        assert_eq!(path("/tmp/a.png\n").as_deref(), Some("/tmp/a.png"));
        assert_eq!(path("'/tmp/a b.JPG'").as_deref(), Some("/tmp/a b.JPG"));
        assert_eq!(path("/tmp/a\\ b.webp ").as_deref(), Some("/tmp/a b.webp"));
        assert_eq!(path("file:///tmp/a.gif").as_deref(), Some("/tmp/a.gif"));
        // Where there are drives.
        assert_eq!(path(r#""C:\a b.png""#).is_some(), Path::new(r"C:\").has_root());
        assert_eq!(path("~/a.png").as_deref(), Some("/home/ada/a.png"));
        for text in ["a.png", "/tmp/a.txt", "see /tmp/a.png", "/a.png\n/b.png", "", "/tmp"] {
            assert_eq!(path(text), None, "{text}");
        }
    }

    #[test]
    fn an_image_is_what_begins_like_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.png");
        let path = path.to_str().unwrap();
        let fails = |wanted: &str| {
            let why = file(path).unwrap_err().to_string();
            assert!(why.contains(wanted), "{why}");
        };
        fails("cannot read");
        fs::write(path, "text").unwrap();
        fails("is no PNG");
        File::create(path).unwrap().set_len(LIMIT + 1).unwrap();
        fails("is bigger than 10 MiB");
        fs::write(path, b"\x89PNG").unwrap();
        assert_eq!(file(path), Ok(Image { mime: "image/png", data: "iVBORw==".into() }));
        assert!(file(dir.path().to_str().unwrap()).unwrap_err().as_str().contains("is not a file"));
    }

    // Shell scripts take the place of the programs.
    #[cfg(unix)]
    #[test]
    fn the_clipboard_is_read_by_the_first_program_that_has_an_image() {
        let nothing: &[&str] = &["sh", "-c", "exit 1"];
        let image: &[&str] = &["sh", "-c", r"printf '\377\330\377'"];
        let missing: &[&str] = &["acpd-no-such-program"];
        assert_eq!(clipboard_by(&[missing, nothing, image]).unwrap().mime, "image/jpeg");
        let why = |programs: &[&[&str]]| clipboard_by(programs).unwrap_err().to_string();
        assert!(why(&[missing]).ends_with("none is installed"));
        assert_eq!(why(&[nothing, missing]), "there is no image on the clipboard");
    }
}
