//! Commands for events: those of the `[hooks]` table, and the desktop's command for notifications.
//!
//! ```text
//!  Effect::Hook ─▶ one of eight places ─▶ started ─┬─ it ends ──────────┐
//!       │                                          ├─ 30 s ─────────────┼─▶ group killed, reaped,
//!       └─ none free: dropped, with a warning      └─ the daemon ends ──┘   what it said is logged
//! ```
//!
//! A command is no agent, gets no descriptor of the daemon, and leads its own group, which ends
//! with it.

use std::collections::BTreeMap;
use std::io::{self, PipeReader, PipeWriter};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use acpd_api::HookEvent;
use acpd_sys::machine;
use acpd_sys::process::ExitKind;
use acpd_sys::runtime::{pipe_receiver, pipe_sender};
use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, copy, sink};
use tokio::sync::Semaphore;

use crate::config;
use crate::helper_process::{End, Helpers};
use crate::log::quote;

const NOTIFY: &str = "notify";
const AT_ONCE: usize = 8;
/// Longest run of a command.
const LIMIT: Duration = Duration::from_secs(30);
/// Bytes of output that are kept …
const OUTPUT: u64 = 4 << 10;
/// … and lines of that in the log.
const LINES: usize = 20;

#[derive(Debug)]
pub struct Hooks {
    configured: BTreeMap<HookEvent, Arc<Hook>>,
    helpers: Helpers,
    places: Arc<Semaphore>,
}

#[derive(Debug)]
struct Hook {
    name: &'static str,
    command: Vec<String>,
    /// The failed start was logged.
    refused: AtomicBool,
}

impl Hooks {
    pub fn new(config: &config::Hooks, helpers: Helpers) -> Hooks {
        let hooks = config.configured().map(|(event, command)| {
            let (command, refused) = (command.to_vec(), AtomicBool::new(false));
            (event, Arc::new(Hook { name: event.into(), command, refused }))
        });
        Hooks { configured: hooks.collect(), helpers, places: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// Starts the command of the event, if there is one. Call it on the runtime.
    pub fn run(&self, event: HookEvent, about: Bytes) {
        if let Some(hook) = self.configured.get(&event) {
            self.start(Arc::clone(hook), about);
        }
    }

    fn start(&self, hook: Arc<Hook>, about: Bytes) {
        let Ok(place) = Arc::clone(&self.places).try_acquire_owned() else {
            let hook = hook.name;
            return tracing::warn!(hook, "{AT_ONCE} hooks run already; this one is left out");
        };
        let helpers = self.helpers.clone();
        tokio::spawn(async move {
            let _place = place;
            hook.run(about, &helpers).await;
        });
    }

    /// Shows a notification on the desktop, if there is one.
    pub fn notify(&self, title: &str, body: &str) {
        let Some(command) = machine::notification(title, body) else { return };
        // No user has configured it, so a missing program is no error.
        let refused = AtomicBool::new(true);
        self.start(Arc::new(Hook { name: NOTIFY, command, refused }), Bytes::new());
    }
}

impl Hook {
    async fn run(self: Arc<Hook>, about: Bytes, helpers: &Helpers) {
        let name = self.name;
        let hook = Arc::clone(&self);
        let cwd = acp_wire::str_at(&about, &["cwd"]).map(|cwd| PathBuf::from(&*cwd));
        let prepare = move |output: PipeWriter| {
            let mut command = command(&hook, cwd.as_deref());
            command.stdin(Stdio::piped()).stdout(output.try_clone()?).stderr(output);
            Ok(command)
        };
        let mut said = Vec::new();
        let end = helpers.run(
            prepare,
            |stdin, output| async { tokio::join!(tell(stdin, &about), listen(output, &mut said)) },
            tokio::time::sleep(LIMIT),
        );
        let end = match end.await {
            Ok(end) => end,
            Err(error) => return self.refuse(&error),
        };
        let said = String::from_utf8_lossy(&said);
        for line in said.lines().filter(|line| !line.trim().is_empty()).take(LINES) {
            tracing::info!(hook = name, "{}", quote(line));
        }
        match end {
            End::Exit(ExitKind::Code(0)) | End::Stopped | End::Unknown => {}
            // A session bus without a desktop.
            End::Exit(_) if name == NOTIFY => {}
            End::Exit(exit) => tracing::warn!(hook = name, "a hook ended with {exit}"),
            End::Late => {
                tracing::warn!(hook = name, "a hook ran longer than {LIMIT:?} and was ended");
            }
        }
    }

    /// Logs the error once, because it repeats.
    fn refuse(&self, error: &io::Error) {
        if !self.refused.swap(true, Ordering::Relaxed) {
            let program = self.command.first().map_or("", String::as_str);
            let hook = self.name;
            tracing::warn!(hook, "cannot start `{program}`: {error}");
        }
    }
}

fn command(hook: &Hook, cwd: Option<&Path>) -> Command {
    let (program, args) = hook.command.split_first().map_or(("", &[][..]), |(p, a)| (p, a));
    let mut command = Command::new(program);
    command.args(args).env("ACPD_EVENT", hook.name);
    let home = std::env::home_dir();
    let mut places = cwd.into_iter().chain(home.as_deref());
    if let Some(place) = places.find(|place| place.is_dir()) {
        command.current_dir(place);
    }
    command
}

/// Writes a line to the command, which need not read it.
async fn tell(stdin: Option<ChildStdin>, about: &[u8]) -> io::Result<()> {
    let Some(stdin) = stdin else { return Ok(()) };
    let mut stdin = pipe_sender(stdin)?;
    stdin.write_all(about).await?;
    stdin.write_all(b"\n").await?;
    stdin.flush().await
}

/// Reads until all writers have closed the pipe, and keeps the beginning.
async fn listen(output: PipeReader, said: &mut Vec<u8>) -> io::Result<()> {
    let mut output = pipe_receiver(output)?;
    (&mut output).take(OUTPUT).read_to_end(said).await?;
    copy(&mut output, &mut sink()).await?;
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use acpd_test::harness::until;
    use tokio::sync::mpsc;
    use tokio::task::spawn_blocking;

    use super::*;
    use crate::host::Reaper;

    fn lines(path: &Path) -> usize {
        std::fs::read_to_string(path).unwrap_or_default().lines().count()
    }

    #[tokio::test]
    async fn more_than_eight_at_once_are_left_out_and_the_end_of_the_daemon_ends_the_eight() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let begun = dir.path().join("begun");
        let line = format!("echo >> '{}'; exec sleep 1000", begun.display());
        let on_crash = ["sh", "-c", &line].map(str::to_owned).to_vec();
        let reaper = Reaper::start(mpsc::channel(1).0).expect("a thread");
        let config = config::Hooks { on_crash, ..config::Hooks::default() };
        let hooks = Hooks::new(&config, Helpers::new(reaper));
        for _ in 0..AT_ONCE + 3 {
            hooks.run(HookEvent::Crash, Bytes::from_static(b"{}"));
        }
        let seen = begun.clone();
        let all = move || (lines(&seen) >= AT_ONCE).then_some(());
        spawn_blocking(|| until("eight commands to run", all)).await.expect("they run");
        assert_eq!(hooks.places.available_permits(), 0);
        hooks.helpers.end().await;
        assert_eq!(hooks.places.available_permits(), AT_ONCE);
        assert_eq!(lines(&begun), AT_ONCE);
    }
}
