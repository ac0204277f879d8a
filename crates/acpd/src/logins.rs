//! Watches the files in which agents keep their logins, while a login is wanted.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use acpd_core::Input;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

/// Time between looks at a file.
const EVERY: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub struct Logins {
    seen: mpsc::UnboundedSender<Input>,
    watched: BTreeMap<String, AbortHandle>,
}

impl Logins {
    /// A change is reported to `seen`.
    pub fn new(seen: mpsc::UnboundedSender<Input>) -> Logins {
        Logins { seen, watched: BTreeMap::new() }
    }

    /// Watches the login of an agent until one change, and reports that.
    pub fn watch(&mut self, agent: String, path: PathBuf) {
        let (seen, who) = (self.seen.clone(), agent.clone());
        let task = tokio::spawn(async move {
            changed(&path).await;
            seen.send(Input::LoginSeen(who)).ok();
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

/// Waits until the file has changed, and then stays the same.
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

/// Returns `None` if the file cannot be looked at.
fn modified(path: &Path) -> Option<SystemTime> {
    path.metadata().and_then(|file| file.modified()).ok()
}
