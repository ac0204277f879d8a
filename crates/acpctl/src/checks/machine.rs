//! The disk of the journal and the service manager.

use std::path::Path;

use acpd_api::Untrusted;
use acpd_client::Paths;
use acpd_sys::machine::free_space;

use super::Finding;
use crate::human;
use crate::service::{FileState, Service, State};
use crate::text::{shell_word, text};

const MIN_FREE_BYTES: u64 = 200 << 20;

pub(super) fn disk(paths: &Paths) -> Finding {
    let existing = paths.state.ancestors().find(|dir| dir.is_dir()).unwrap_or(Path::new("/"));
    let Ok(free) = free_space(existing) else {
        return Finding::problem("disk", format!("cannot look at `{}`", existing.display()));
    };
    let text = format!("{} free for the journal", human::bytes(free).as_str());
    if free >= MIN_FREE_BYTES {
        return Finding::ok("disk", text);
    }
    Finding::problem("disk", text).fix("free some space: acpd pauses agents while it cannot write")
}

pub(super) fn kept_aside(paths: &Paths) -> Option<Finding> {
    let files = paths.state.read_dir().ok()?.flatten();
    let kept = files.filter(|file| {
        let name = file.file_name();
        name.to_str().is_some_and(|name| name.starts_with(Paths::KEPT_ASIDE))
    });
    let (mut journals, mut bytes) = (0, 0);
    for file in kept {
        let is_journal = Path::new(&file.file_name()).extension().is_some_and(|end| end == "db");
        journals += u64::from(is_journal);
        bytes += file.metadata().map_or(0, |file| file.len());
    }
    let text = text!(
        "{} from before a restore, {}",
        human::counted(journals, "journal"),
        human::bytes(bytes)
    );
    let folder = Untrusted::of(paths.state.display());
    (bytes > 0).then(|| {
        let files = text!("{}/{}*", shell_word(&folder), Paths::KEPT_ASIDE);
        Finding::warning("kept aside", text.as_str())
            .fix(text!("delete what you do not need: rm {}", files).as_str())
    })
}

pub(super) fn watched(
    service: &Service,
    state: &State,
    serving: Option<u32>,
    can_start: bool,
) -> Vec<Finding> {
    let is_installed = service.is_installed();
    if !is_installed && *state == State::default() {
        return vec![Finding::ok("service", "not installed: clients start acpd")];
    }
    // A service without files of acpctl belongs to a package.
    let is_stale =
        is_installed && service.files.iter().any(|file| file.state() != FileState::Current);
    let mut findings = vec![if state.failed && can_start {
        Finding::problem("service", "acpd has failed and may not be restarted")
            .command("acpctl service install")
    } else if state.failed {
        // The problem is reported above, and must be fixed first.
        Finding::warning("service", "acpd has failed and may not be restarted")
            .fix("after fixing the problem: acpctl service install")
    } else if is_stale {
        Finding::warning("service", "its files are from another version of acpd")
            .command("acpctl service install")
    } else if serving.is_some() && serving != state.pid {
        Finding::warning("service", "the running daemon was started by a client")
            .command("acpctl service install")
    } else if !state.enabled {
        Finding::warning("service", "it does not start at login").command("acpctl service install")
    } else {
        Finding::ok("service", "installed, and starts at login")
    }];
    if service.lingers() == Some(false) {
        // This is a choice, and what most users want.
        let text = "acpd stops when you log out; to keep it running: loginctl enable-linger";
        findings.push(Finding::ok("lingering", text));
    }
    findings
}
