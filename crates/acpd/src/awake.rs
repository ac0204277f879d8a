//! Keeps the machine awake while agents work (`keep_awake`): a command of the system holds that, as a child.
//!
//! ```text
//!  asleep ── a turn runs ─▶ held ─┬─ no turn runs, or the daemon ends: its group is ended ─▶ asleep
//!                                 ├─ the daemon is killed: the child's input ends, and so it ends
//!                                 └─ it ends by itself: told once, tried again with the next turn
//! ```

use std::io;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use acpd_sys::machine::AWAKE;
use tokio::sync::watch;
use tokio::task::{JoinHandle, spawn_blocking};

use crate::helper_process::{End, run_to_end, set_apart};
use crate::host::Reaper;

/// How long the end of the daemon waits for the child.
const ENDING: Duration = Duration::from_secs(2);
/// No turn takes longer.
const FOR_EVER: Duration = Duration::from_hours(24 * 365);

/// Keeps the machine awake by a helper process.
#[derive(Debug)]
pub(crate) struct Awake {
    reaper: Reaper,
    held: Option<Held>,
    /// The warning that it does not work was logged.
    told: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Held {
    /// Dropped to let go.
    stop: watch::Sender<()>,
    done: JoinHandle<()>,
}

impl Awake {
    /// Nothing is held yet.
    pub(crate) fn new(reaper: Reaper) -> Awake {
        Awake { reaper, held: None, told: Arc::default() }
    }

    /// Holds the machine awake, or lets go. Call it on the runtime.
    pub(crate) fn set(&mut self, works: bool) {
        if !works {
            self.held = None;
        } else if self.held.is_none() {
            let (stop, stopped) = watch::channel(());
            let done = tokio::spawn(hold(self.reaper.clone(), stopped, Arc::clone(&self.told)));
            self.held = Some(Held { stop, done });
        }
    }

    /// Lets go, and waits until nothing is left.
    pub(crate) async fn end(self) {
        let Some(Held { stop, done }) = self.held else { return };
        drop(stop);
        if tokio::time::timeout(ENDING, done).await.is_err() {
            tracing::error!("what keeps the machine awake did not end");
        }
    }
}

async fn hold(reaper: Reaper, mut stop: watch::Receiver<()>, told: Arc<AtomicBool>) {
    let tell = |why: String| {
        if !told.swap(true, Ordering::Relaxed) {
            tracing::warn!("the machine is not kept awake: {why}");
        }
    };
    let mut child = match start(reaper.clone()).await {
        Ok(child) => child,
        Err(error) => return tell(error.to_string()),
    };
    // The helper ends when this end of its input is closed.
    let _input = child.stdin.take();
    match run_to_end(child, reaper, std::future::ready(()), FOR_EVER, &mut stop).await {
        End::Exit(exit) => tell(format!("`{}` ended with {exit}", AWAKE.join(" "))),
        End::Late | End::Stopped | End::Unknown => {}
    }
}

async fn start(reaper: Reaper) -> io::Result<Child> {
    let start = move || {
        let Some((program, args)) = AWAKE.split_first() else {
            return Err(io::Error::other("acpd knows no command for that on this system"));
        };
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        set_apart(&mut command);
        let child = reaper.start_child(&mut command);
        child.map_err(|error| io::Error::other(format!("cannot start `{program}`: {error}")))
    };
    spawn_blocking(start).await.map_err(io::Error::other)?
}
