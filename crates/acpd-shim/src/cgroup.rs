//! A cgroup (version 2) for one agent. Best effort: the shim also walks over the agent's
//! descendants, which needs no cgroup.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use acpd_sys::tree::has_other_mark;

/// Mount points of the unified hierarchy: alone, or next to version 1.
const MOUNTS: [&str; 2] = ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"];

#[derive(Debug)]
pub(crate) struct Cgroup {
    pub(crate) dir: PathBuf,
    /// The mark of the agent's processes.
    pub(crate) marker: String,
}

impl Cgroup {
    /// Creates a cgroup below the shim's own one; `None` if the system does not allow that.
    pub(crate) fn create(marker: &str) -> Option<Cgroup> {
        let list = fs::read_to_string("/proc/self/cgroup").ok()?;
        let own = list.lines().find_map(|line| line.strip_prefix("0::/"))?;
        let mount =
            MOUNTS.map(Path::new).into_iter().find(|dir| dir.join("cgroup.procs").exists())?;
        let dir = mount.join(own).join(format!("acpd-{marker}"));
        fs::create_dir(&dir).ok()?;
        let cgroup = Cgroup { dir, marker: marker.to_owned() };
        if cgroup.procs().is_err() {
            cgroup.remove();
            return None;
        }
        Some(cgroup)
    }

    pub(crate) fn procs(&self) -> io::Result<File> {
        OpenOptions::new().write(true).open(self.dir.join("cgroup.procs"))
    }

    /// Kills everything in the cgroup. Processes with another mark are moved out before, and so are
    /// those below them, which have the same mark. If one cannot be moved, nothing is killed.
    pub(crate) fn kill(&self) {
        if self.evict().is_ok() {
            fs::write(self.dir.join("cgroup.kill"), "1").ok();
        }
    }

    fn evict(&self) -> io::Result<()> {
        let outside = self.dir.with_file_name("cgroup.procs");
        for pid in pids(&self.dir) {
            if has_other_mark(pid, &self.marker) {
                fs::write(&outside, pid.to_string())?;
            }
        }
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.evict().ok();
        let events = fs::read_to_string(self.dir.join("cgroup.events")).unwrap_or_default();
        !events.lines().any(|line| line == "populated 1")
    }

    /// Removes the cgroup and those below it, as far as they are empty.
    pub(crate) fn remove(&self) {
        remove(&self.dir);
    }
}

fn subdirs(dir: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|e| e.path())
}

fn pids(dir: &Path) -> Vec<u32> {
    let text = fs::read_to_string(dir.join("cgroup.procs")).unwrap_or_default();
    let mut found: Vec<u32> = text.lines().filter_map(|line| line.parse().ok()).collect();
    found.extend(subdirs(dir).flat_map(|dir| pids(&dir)));
    found
}

fn remove(dir: &Path) {
    for inner in subdirs(dir) {
        remove(&inner);
    }
    fs::remove_dir(dir).ok();
}
