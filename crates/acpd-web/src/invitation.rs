//! An address with a code: as text, as a QR code, and opened in the browser.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use acpd_sys::machine::OPENER;
use qrcode::QrCode;
use qrcode::render::unicode::Dense1x2;
use tempfile::NamedTempFile;

use crate::failure::Failure;
use crate::secret::Secret;

/// An address that lets one browser in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invitation {
    pub url: String,
    /// The URL works on this machine only.
    pub is_local: bool,
}

impl Invitation {
    pub(crate) fn new(address: &str, code: &Secret) -> Invitation {
        let url = format!("{address}/#code={}", code.reveal());
        Invitation { url, is_local: address.starts_with("http://") }
    }

    /// The QR code of the URL for a terminal, always black on white.
    pub fn picture(&self) -> Option<String> {
        let code = QrCode::new(&self.url).ok()?;
        let picture = code.render::<Dense1x2>().build();
        let line = |line: &str| format!("\u{1b}[30;107m{line}\u{1b}[0m");
        Some(picture.lines().map(line).collect::<Vec<_>>().join("\n"))
    }

    /// Opens the URL in the browser. Other users see the arguments of a program, so the browser
    /// gets a file that they cannot read. Dropping the result removes the file.
    pub(crate) fn open(&self, folder: &Path) -> Result<NamedTempFile, Failure> {
        let failed = |error: io::Error| Failure::about("cannot open a browser", &error);
        let mut file =
            tempfile::Builder::new().suffix(".html").tempfile_in(folder).map_err(failed)?;
        let url = &self.url;
        let page = format!(
            "<!doctype html><meta charset=\"utf-8\"><title>acpd</title>\
             <meta http-equiv=\"refresh\" content=\"0; url={url}\"><a href=\"{url}\">acpd</a>\n"
        );
        file.write_all(page.as_bytes()).map_err(failed)?;
        let mut command = Command::new(OPENER);
        command.arg(file.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut opener = command.spawn().map_err(failed)?;
        // Waiting leaves no zombie.
        thread::spawn(move || opener.wait());
        Ok(file)
    }
}
