//! Backup and restore of the journal: the processes `acpd backup` and `acpd restore`, for `acpctl`.
//!
//! A daemon has no part in a backup. A restore takes the daemon's lock, so no daemon runs or starts
//! meanwhile. `acpd_store::copy` has the details.

use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use acpd_api::{CopyLine, CopyReport, ExitCode, json};
use acpd_store::{CopyError, Stage};
use acpd_sys::limits;
use acpd_sys::lock::InstanceLock;
use acpd_sys::paths::Paths;

use crate::daemon::locked;
use crate::failure::Failure;
use crate::{check, crash};

const PROGRESS_INTERVAL: Duration = Duration::from_millis(100);

pub fn back_up(file: &Path) -> Result<(), Failure> {
    let paths = start()?;
    print_copied(acpd_store::back_up(&paths.database(), file, print_progress()))
}

/// Replaces the journal with a backup, or only reads the backup. After an error everything is as it
/// was.
pub fn restore(file: &Path, check: bool) -> Result<(), Failure> {
    let paths = start()?;
    if check {
        return print_copied(acpd_store::look(file));
    }
    check::private_dirs(&paths)?;
    let _lock = InstanceLock::acquire(&paths.lock()).map_err(|error| locked(&error))?;
    let (journal, index) = (paths.database(), paths.search_index());
    print_copied(acpd_store::restore(file, &journal, &index, print_progress()))
}

/// Makes new files as private as those of a daemon.
fn start() -> Result<Paths, Failure> {
    limits::private_files();
    check::paths()
}

fn print_progress() -> impl FnMut(Stage) {
    let mut last: Option<Instant> = None;
    move |stage| match stage {
        Stage::Copying { done, of } => {
            if last.is_none_or(|last| last.elapsed() >= PROGRESS_INTERVAL) {
                last = Some(Instant::now());
                print_line(&CopyLine::Progress { done, of });
            }
            crash::point("copying");
        }
        Stage::Checked => crash::point("copy-checked"),
        Stage::Kept => crash::point("copy-kept"),
    }
}

/// A lost reader does not stop the copy.
fn print_line(line: &CopyLine) {
    let text = json::line(line).unwrap_or_default();
    let mut out = io::stdout().lock();
    writeln!(out, "{text}").and_then(|()| out.flush()).ok();
}

fn print_copied(copied: Result<CopyReport, CopyError>) -> Result<(), Failure> {
    let report = copied.map_err(|error| {
        let code = if error.is_missing() { ExitCode::NotFound } else { ExitCode::Error };
        let hint = error.hint();
        Failure { code, ..Failure::new(error, hint) }
    })?;
    print_line(&CopyLine::Done(report));
    Ok(())
}
