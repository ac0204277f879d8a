//! `acpctl service status`, as text and JSON.

use acpd_api::{ExitCode, Untrusted};
use acpd_client::Paths;
use serde::Serialize;

use crate::args::Json;
use crate::error::{CommandError, Result};
use crate::service::{FileState, Manager, Service, State};
use crate::stop::info;
use crate::text::{Text, key_values, text};
use crate::ui::Ui;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ServiceInfo {
    manager: Manager,
    /// The program that the service runs or would run.
    program: Untrusted,
    files: Vec<File>,
    #[serde(flatten)]
    state: State,
    /// The pid of the daemon that serves clients. It is not the service's if a client started the
    /// daemon.
    #[serde(skip_serializing_if = "Option::is_none")]
    serving: Option<u32>,
    /// The service continues after logout; none if that cannot be chosen.
    #[serde(skip_serializing_if = "Option::is_none")]
    lingers: Option<bool>,
}

#[derive(Debug, Serialize)]
struct File {
    path: Untrusted,
    state: FileState,
}

pub(super) fn status(service: &Service, paths: &Paths, json: Json, ui: &mut Ui) -> Result {
    let state = service.known()?;
    let serving = state.running(paths)?.map(|mut daemon| info(&mut daemon)).transpose()?;
    let files = service
        .files
        .iter()
        .map(|file| File { path: Untrusted::of(file.path.display()), state: file.state() });
    let found = ServiceInfo {
        manager: service.manager(),
        program: Untrusted::of(service.program.display()),
        files: files.collect(),
        state,
        serving: serving.map(|daemon| daemon.pid),
        lingers: service.lingers(),
    };
    ui.show(json.json, &found, card(&found))?;
    if service.is_installed() || found.state != State::default() {
        return Ok(());
    }
    Err(not_installed())
}

pub(super) fn not_installed() -> CommandError {
    CommandError::new(ExitCode::NotFound, "acpd is not installed as a service")
        .hint("install it: `acpctl service install`; `--dry-run` shows the files")
}

fn card(found: &ServiceInfo) -> Text {
    let manager = match found.manager {
        Manager::Systemd => "systemd",
        Manager::Launchd => "launchd",
    };
    let State { enabled, listens, pid, failed } = found.state;
    let starts = match (enabled, listens) {
        (true, true) => "at login, or with its first client",
        (true, false) => "at login",
        (false, true) => "with its first client",
        (false, false) => "only by a client",
    };
    let daemon = match (pid, found.serving) {
        (Some(pid), Some(serving)) if pid == serving => {
            text!("pid {}, started by the service", pid)
        }
        (_, Some(serving)) => {
            text!("pid {}, started by a client: `acpctl service install` takes it over", serving)
        }
        (Some(pid), None) => text!("pid {}, not serving clients", pid),
        (None, None) => "not running".into(),
    };
    let mut rows: Vec<(&'static str, Text)> =
        vec![("manager", manager.into()), ("program", (&found.program).into())];
    let is_packages = found.files.iter().all(|file| file.state == FileState::Missing)
        && found.state != State::default();
    if is_packages {
        rows.push(("files", "from a package".into()));
    }
    for file in found.files.iter().filter(|_| !is_packages) {
        let state = match file.state {
            FileState::Current => "",
            FileState::Other => " (differs)",
            FileState::Missing => " (missing)",
        };
        rows.push(("file", text!("{}{}", file.path, state)));
    }
    if found.files.iter().any(|file| file.state == FileState::Other) {
        rows.push(("", "`acpctl service install` replaces files that differ".into()));
    }
    rows.extend([("starts", starts.into()), ("daemon", daemon)]);
    if failed {
        rows.push((
            "failed",
            "acpd could not start: see `acpctl doctor` and `acpctl service logs`".into(),
        ));
        rows.push(("", "after fixing it: `acpctl service install`".into()));
    }
    rows.extend(found.lingers.map(|lingers| {
        let text =
            if lingers { "yes" } else { "no, it stops when you log out: loginctl enable-linger" };
        ("lingers", text.into())
    }));
    key_values(&rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found() -> ServiceInfo {
        let file = |path: &str, state| File { path: path.into(), state };
        ServiceInfo {
            manager: Manager::Systemd,
            program: "/usr/bin/acpd".into(),
            files: vec![
                file("/home/me/.config/systemd/user/acpd.service", FileState::Other),
                file("/home/me/.config/systemd/user/acpd.socket", FileState::Current),
            ],
            state: State { enabled: true, listens: true, pid: Some(7), failed: false },
            serving: Some(7),
            lingers: Some(false),
        }
    }

    #[test]
    fn its_json_looks_like_this() {
        insta::assert_snapshot!(serde_json::to_string_pretty(&found()).unwrap(), @r#"
        {
          "manager": "systemd",
          "program": "/usr/bin/acpd",
          "files": [
            {
              "path": "/home/me/.config/systemd/user/acpd.service",
              "state": "other"
            },
            {
              "path": "/home/me/.config/systemd/user/acpd.socket",
              "state": "current"
            }
          ],
          "enabled": true,
          "listens": true,
          "pid": 7,
          "serving": 7,
          "lingers": false
        }
        "#);
    }
}
