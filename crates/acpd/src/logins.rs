//! Watches the files in which agents keep their logins, while a login is wanted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use acpd_core::Input;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

/// How often a file is looked at.
const EVERY: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub struct Logins {
    seen: mpsc::UnboundedSender<Input>,
    watched: BTreeMap<String, AbortHandle>,
}

impl Logins {
    /// Watches nothing yet; what is seen is told there.
    pub fn new(seen: mpsc::UnboundedSender<Input>) -> Logins {
        Logins { seen, watched: BTreeMap::new() }
    }

    /// Begins to watch the login of an agent; one login is told, and then nothing more.
    pub fn watch(&mut self, agent: String, path: PathBuf) {
        let (seen, who) = (self.seen.clone(), agent.clone());
        let task = tokio::spawn(async move {
            changed(&path).await;
            // The relay is gone only when the daemon ends.
            seen.send(Input::LoginSeen { agent: who }).ok();
        });
        self.unwatch(&agent);
        self.watched.insert(agent, task.abort_handle());
    }

    pub fn unwatch(&mut self, agent: &str) {
        if let Some(task) = self.watched.remove(agent) {
            task.abort();
        }
    }
}

/// Waits until the file is another one than at first, and not about to change again.
async fn changed(path: &Path) {
    let first = modified(path);
    let mut last = first;
    loop {
        tokio::time::sleep(EVERY).await;
        let now = modified(path);
        if now.is_some() && now != first && now == last {
            return;
        }
        last = now;
    }
}

/// When it was written; nothing if there is none that can be looked at.
fn modified(path: &Path) -> Option<SystemTime> {
    path.metadata().and_then(|file| file.modified()).ok()
}
