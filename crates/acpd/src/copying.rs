//! Backups of the journal, and the way back: processes of their own, `acpd backup` and `acpd restore`, for `acpctl`.
//!
//! A daemon has no part in a backup, and does not notice its failure. A restore takes the daemon's lock, so
//! none runs and none can start before it is over. How both work is in `acpd_store::copy`.

use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use acpd_api::{CopyLine, CopyReport, ExitCode, Untrusted, json};
use acpd_store::{Copied, CopyError, Stage};
use acpd_sys::limits;
use acpd_sys::lock::InstanceLock;
use acpd_sys::paths::Paths;

use crate::daemon::locked;
use crate::failure::Failure;
use crate::{check, crash};

/// The time between two lines about how far it is.
const TELL: Duration = Duration::from_millis(100);

/// Writes the journal into a file.
///
/// # Errors
/// Why there is no backup.
pub fn back_up(file: &Path) -> Result<(), Failure> {
    let paths = start()?;
    let copied = acpd_store::back_up(&paths.database(), file, telling()).map_err(failure)?;
    tell(&CopyLine::Done(report(file, copied)));
    Ok(())
}

/// Puts a backup in the journal's place, or only looks what is in it.
///
/// # Errors
/// Why everything is as it was.
pub fn restore(file: &Path, check: bool) -> Result<(), Failure> {
    let paths = start()?;
    if check {
        let found = acpd_store::look(file).map_err(failure)?;
        tell(&CopyLine::Done(report(file, found)));
        return Ok(());
    }
    check::private_dirs(&paths)?;
    let _lock = InstanceLock::acquire(&paths.lock()).map_err(|error| locked(&error))?;
    let (journal, index) = (paths.database(), paths.search_index());
    let copied = acpd_store::restore(file, &journal, &index, telling()).map_err(failure)?;
    tell(&CopyLine::Done(report(&journal, copied)));
    Ok(())
}

/// Files that are made here are as private as those of a daemon.
fn start() -> Result<Paths, Failure> {
    limits::private_files();
    check::paths()
}

/// Prints the progress, now and then.
fn telling() -> impl FnMut(Stage) {
    let mut told: Option<Instant> = None;
    move |stage| match stage {
        Stage::Copying { done, of } => {
            if told.is_none_or(|told| told.elapsed() >= TELL) {
                told = Some(Instant::now());
                tell(&CopyLine::Progress { done, of });
            }
            crash::point("copying");
        }
        Stage::Checked => crash::point("copy-checked"),
        Stage::Kept => crash::point("copy-kept"),
    }
}

/// Prints a line. If the reader has gone away, the copy is made all the same.
fn tell(line: &CopyLine) {
    let text = json::line(line).unwrap_or_default();
    let mut out = io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).ok();
}

fn report(file: &Path, copied: Copied) -> CopyReport {
    let name = |path: &Path| Untrusted::from(path.display().to_string());
    let Copied { bytes, sessions, updated, kept } = copied;
    CopyReport { file: name(file), bytes, sessions, updated, kept: kept.as_deref().map(name) }
}

fn failure(error: CopyError) -> Failure {
    let code = if error.is_missing() { ExitCode::NotFound } else { ExitCode::Error };
    let hint = error.hint();
    Failure::new(error, hint).with_code(code)
}
