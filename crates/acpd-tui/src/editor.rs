//! The person's own editor, in the terminal that we hand over to it.

use std::io::Write as _;
use std::process::Command;
use std::{env, fs, io};

use acpd_api::Untrusted;
use acpd_view::text;
use acpd_view::text::Text;

/// Lets the person edit a text: `$VISUAL`, else `$EDITOR`. Returns why not, if there is no other text.
pub(crate) fn edit(text: &str) -> Result<String, Text> {
    let named = |name| env::var(name).ok().filter(|line| !line.trim().is_empty());
    let Some(line) = named("VISUAL").or_else(|| named("EDITOR")) else {
        return Err("no editor: set VISUAL or EDITOR to the command of yours".into());
    };
    let cannot = |error: io::Error| text!("cannot edit the prompt: {}", Untrusted::of(error));
    let mut file =
        tempfile::Builder::new().prefix("prompt-").suffix(".md").tempfile().map_err(cannot)?;
    file.write_all(text.as_bytes()).map_err(cannot)?;
    // As git does it: the line may have arguments.
    let mut command = Command::new("/bin/sh");
    command.args(["-c", &format!("{line} \"$1\""), "sh"]).arg(file.path());
    let status = command.status().map_err(cannot)?;
    if !status.success() {
        let (line, status) = (Untrusted::from(line), Untrusted::of(status));
        return Err(text!("`{}` failed ({}); the prompt is as it was", line, status));
    }
    // Editors replace files: what is at the path counts, not what we have opened.
    let text = fs::read_to_string(file.path()).map_err(cannot)?;
    Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
}
