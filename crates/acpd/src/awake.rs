//! Keeps the machine awake while agents work (`keep_awake`), with a command of the system as a
//! child.
//!
//! ```text
//!  asleep ── a turn runs ─▶ held ─┬─ no turn runs, or the daemon ends: its group is ended ─▶ asleep
//!                                 ├─ the daemon is killed: the child's input ends, and so it ends
//!                                 └─ it ends by itself: logged once, retried with the next turn
//! ```

use std::future::pending;
use std::io;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use acpd_sys::machine::AWAKE;

use crate::helper_process::{End, Helpers};
use crate::host::Reaper;

#[derive(Debug)]
pub(crate) struct Awake {
    reaper: Reaper,
    /// Stopping it lets the machine sleep.
    held: Option<Helpers>,
    warned: Arc<AtomicBool>,
}

impl Awake {
    pub(crate) fn new(reaper: Reaper) -> Awake {
        Awake { reaper, held: None, warned: Arc::default() }
    }

    /// Call it on the runtime.
    pub(crate) fn set(&mut self, works: bool) {
        match &self.held {
            Some(held) if !works => {
                held.stop();
                self.held = None;
            }
            None if works => {
                let held = Helpers::new(self.reaper.clone());
                tokio::spawn(hold(held.clone(), Arc::clone(&self.warned)));
                self.held = Some(held);
            }
            _ => {}
        }
    }

    pub(crate) async fn end(self) {
        if let Some(held) = self.held {
            held.end().await;
        }
    }
}

async fn hold(helpers: Helpers, warned: Arc<AtomicBool>) {
    let program = AWAKE.join(" ");
    let prepare = |_| {
        let Some((program, args)) = AWAKE.split_first() else {
            return Err(io::Error::other("acpd knows no command for that on this system"));
        };
        let mut command = Command::new(program);
        command.args(args).stdin(Stdio::piped());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        Ok(command)
    };
    // The helper ends when this end of its input is closed.
    let keep_open = |input, _| async {
        helpers.is_stopped().await;
        drop(input);
    };
    let why = match helpers.run(prepare, keep_open, pending::<()>()).await {
        Ok(End::Exit(exit)) => format!("`{program}` ended with {exit}"),
        Ok(End::Late | End::Stopped | End::Unknown) => return,
        Err(error) => format!("cannot start `{program}`: {error}"),
    };
    if !warned.swap(true, Ordering::Relaxed) {
        tracing::warn!("the machine is not kept awake: {why}");
    }
}
