//! The directory by which a daemon finds a shim: `$STATE/shims/<marker>/`, mode 0700.
//!
//! | file | what |
//! | --- | --- |
//! | `lock` | locked by the shim while it lives; taken before anything else |
//! | `socket` | the path of its socket; written before the socket exists |
//! | `shim` | its identity ([`Record`]); written before the daemon hears of the start |
//! | `exit` | the agent's exit, as soon as it has ended |
//! | `spool` | output that did not fit in memory, after the offset of its first byte (8 bytes) |
//! | `tree` | the agent's descendants, if there is no cgroup |
//!
//! The daemon creates the directory before it starts the shim, and the shim never does. So a start
//! that nothing waits for fails once the directory is removed.
//!
//! A shim without a daemon whose directory was removed stops its agent and exits: no daemon could
//! find it.
//!
//! A shim whose lease is over leaves the data that is not acknowledged in `exit` and `spool`. A
//! daemon that finds the shim dead reads [`ShimDir::exit`] and [`ShimDir::leftover`], and removes
//! the directory when both are committed. A killed shim leaves only what it had written; its agent
//! is ended with [`Orphans`](crate::orphans::Orphans).

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use acpd_sys::files::{self, DirError, ReadError};
use acpd_sys::lock::{self, InstanceLock, LockError};
use acpd_sys::process::{Liveness, ProcessId, os_string};
use acpd_sys::socket;
use thiserror::Error;

use crate::frame::Status;

/// Bytes before the output in the spool.
pub(crate) const SPOOL_HEAD: u64 = 8;
/// Longest text file that a shim writes, in bytes.
const LONGEST: u64 = 16 << 20;

#[derive(Debug, Error)]
pub enum ShimDirError {
    #[error(transparent)]
    Dir(#[from] DirError),
    #[error("cannot {what} `{}`", .path.display())]
    Io { what: &'static str, path: PathBuf, source: io::Error },
    #[error("`{}` is damaged", .path.display())]
    Damaged { path: PathBuf },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShimDir {
    dir: PathBuf,
}

/// Identity of a shim, in the file `shim`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Version of the frame protocol.
    pub version: u16,
    pub shim: ProcessId,
    /// `None` if there is only a connection.
    pub agent: Option<ProcessId>,
    pub socket: PathBuf,
    pub cgroup: Option<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity {
    /// The lock is held, and the process is the recorded one.
    Alive(Record),
    /// The lock is free.
    Dead,
    /// The lock is held, but not provably by the recorded process. Neither kill that process nor
    /// remove the directory. A shim that starts looks like this for some milliseconds.
    Unverifiable,
}

/// Output of a dead shim, from an offset on.
#[derive(Debug)]
pub struct Leftover {
    /// Offset of the first byte; later than requested if earlier bytes are lost.
    pub offset: u64,
    pub bytes: io::Take<File>,
}

/// Returns all shim directories of this state directory, unordered.
pub fn list(state: &Path) -> Result<Vec<ShimDir>, ShimDirError> {
    let dir = parent(state);
    let entries = match fs::read_dir(&dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        other => other.map_err(failed("list", &dir))?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry.map_err(failed("list", &dir))?;
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.push(ShimDir { dir: entry.path() });
        }
    }
    Ok(found)
}

fn parent(state: &Path) -> PathBuf {
    state.join("shims")
}

impl ShimDir {
    /// Returns the path for this marker (the agent's `ACPD_HOST`); it need not exist.
    pub fn of(state: &Path, marker: &str) -> ShimDir {
        ShimDir { dir: parent(state).join(marker) }
    }

    pub fn at(dir: impl Into<PathBuf>) -> ShimDir {
        ShimDir { dir: dir.into() }
    }

    pub fn create(state: &Path, marker: &str) -> Result<ShimDir, ShimDirError> {
        files::private_dir(&parent(state))?;
        let shim_dir = ShimDir::of(state, marker);
        files::private_dir(&shim_dir.dir)?;
        Ok(shim_dir)
    }

    pub fn path(&self) -> &Path {
        &self.dir
    }

    pub fn marker(&self) -> &str {
        self.dir.file_name().and_then(OsStr::to_str).unwrap_or_default()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    pub(crate) fn lock(&self) -> Result<InstanceLock, LockError> {
        InstanceLock::acquire(&self.file("lock"))
    }

    pub fn is_held(&self) -> Result<bool, ShimDirError> {
        let path = self.file("lock");
        lock::is_held(&path).map_err(failed("lock", &path))
    }

    /// Checks whether the shim runs, never by the pid alone.
    pub fn verify(&self) -> Identity {
        match self.is_held() {
            Ok(false) => return Identity::Dead,
            Ok(true) => {}
            Err(_) => return Identity::Unverifiable,
        }
        match self.record() {
            Ok(Some(record)) if record.shim.is_alive() == Liveness::Alive => {
                Identity::Alive(record)
            }
            _ => Identity::Unverifiable,
        }
    }

    pub fn record(&self) -> Result<Option<Record>, ShimDirError> {
        self.parse("shim", |text| {
            let path = |key| Some(PathBuf::from(os_string(field(text, key)?)?));
            Some(Record {
                version: number(field(text, "version")?)?,
                shim: process(field(text, "shim")?)?,
                agent: Some(process(field(text, "agent")?)?).filter(|agent| agent.pid != 0),
                socket: path("socket")?,
                cgroup: path("cgroup"),
            })
        })
    }

    pub(crate) fn write_record(
        &self,
        record: &Record,
        is_durable: bool,
    ) -> Result<(), ShimDirError> {
        let agent = record.agent.unwrap_or_default();
        let mut text = format!(
            "version {}\nshim {} {}\nagent {} {}\n",
            record.version, record.shim.pid, record.shim.start, agent.pid, agent.start
        )
        .into_bytes();
        let mut path = |key: &str, path: &Path| {
            text.extend_from_slice(key.as_bytes());
            text.extend_from_slice(path.as_os_str().as_encoded_bytes());
            text.push(b'\n');
        };
        path("socket ", &record.socket);
        if let Some(cgroup) = &record.cgroup {
            path("cgroup ", cgroup);
        }
        self.replace("shim", &text, is_durable)
    }

    /// Returns the agent's exit; `None` if it is not recorded.
    pub fn exit(&self) -> Result<Option<Status>, ShimDirError> {
        self.parse("exit", |text| {
            Some(Status::from_numbers(number(field(text, "kind")?)?, number(field(text, "code")?)?))
        })
    }

    pub(crate) fn write_exit(&self, status: Status, is_durable: bool) -> Result<(), ShimDirError> {
        let (kind, code) = status.numbers();
        self.replace("exit", format!("kind {kind}\ncode {code}\n").as_bytes(), is_durable)
    }

    pub fn tree(&self) -> Result<Vec<ProcessId>, ShimDirError> {
        let parse = |text: &[u8]| {
            let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            lines.map(process).collect()
        };
        Ok(self.parse("tree", parse)?.unwrap_or_default())
    }

    pub(crate) fn write_tree(&self, tree: &[ProcessId]) -> Result<(), ShimDirError> {
        let lines = tree.iter().map(|id| format!("{} {}\n", id.pid, id.start));
        self.replace("tree", lines.collect::<String>().as_bytes(), false)
    }

    /// Returns the output of a dead shim from the offset `from` on.
    pub fn leftover(&self, from: u64) -> Result<Option<Leftover>, ShimDirError> {
        let path = self.file("spool");
        let mut file = match files::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            other => other.map_err(failed("open", &path))?,
        };
        let mut read = || -> io::Result<Option<(u64, u64)>> {
            let Some(length) = file.metadata()?.len().checked_sub(SPOOL_HEAD) else {
                return Ok(None);
            };
            let mut head = [0; SPOOL_HEAD as usize];
            file.read_exact(&mut head)?;
            let start = u64::from_le_bytes(head);
            let end = start.saturating_add(length);
            let offset = from.max(start);
            if offset >= end {
                return Ok(None);
            }
            file.seek(SeekFrom::Start(SPOOL_HEAD + offset - start))?;
            Ok(Some((offset, end - offset)))
        };
        let found = read().map_err(failed("read", &path))?;
        Ok(found.map(|(offset, length)| Leftover { offset, bytes: file.take(length) }))
    }

    /// Replaces the spool once the new one is filled.
    pub(crate) fn replace_spool(
        &self,
        fill: impl FnOnce(&File) -> io::Result<()>,
    ) -> io::Result<File> {
        let new = self.file("spool.new");
        let mut options = files::private_options();
        options.read(true).write(true).create(true).truncate(true);
        let made = options.open(&new).and_then(|file| {
            fill(&file)?;
            fs::rename(&new, self.file("spool"))?;
            Ok(file)
        });
        if made.is_err() {
            // On a full disk, frees the space at once.
            fs::remove_file(&new).ok();
        }
        made
    }

    pub(crate) fn remove_spool(&self) {
        fs::remove_file(self.file("spool")).ok();
    }

    /// Returns the socket of the shim, which may not exist yet; `None` before the shim has recorded
    /// it.
    pub fn socket(&self) -> Option<PathBuf> {
        let path = |text: &[u8]| os_string(text).map(PathBuf::from);
        self.parse("socket", path).ok().flatten()
    }

    pub(crate) fn write_socket(&self, socket: &Path) -> Result<(), ShimDirError> {
        self.replace("socket", socket.as_os_str().as_encoded_bytes(), false)
    }

    /// Removes the directory and the shim's socket. Only for a dead shim of which everything is
    /// recorded, or for the shim itself.
    pub fn remove(&self) -> Result<(), ShimDirError> {
        // A killed shim has left its socket, maybe without a record.
        if let Some(socket) = self.socket() {
            socket::remove(&socket);
        }
        match fs::remove_dir_all(&self.dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other.map_err(failed("remove", &self.dir)),
        }
    }

    fn replace(&self, name: &str, bytes: &[u8], is_durable: bool) -> Result<(), ShimDirError> {
        let (path, new) = (self.file(name), self.file(&format!("{name}.new")));
        let write = || -> io::Result<()> {
            let mut options = files::private_options();
            let mut file = options.write(true).create(true).truncate(true).open(&new)?;
            file.write_all(bytes)?;
            if is_durable {
                file.sync_all()?;
            }
            fs::rename(&new, &path)?;
            if is_durable {
                files::sync_dir(&self.dir)?;
            }
            Ok(())
        };
        write().map_err(failed("write", &path))
    }

    fn parse<T>(
        &self,
        name: &str,
        parse: impl FnOnce(&[u8]) -> Option<T>,
    ) -> Result<Option<T>, ShimDirError> {
        let path = self.file(name);
        let bytes = match files::read(&path, LONGEST) {
            Ok(bytes) => bytes,
            Err(ReadError::Io(error)) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(None);
            }
            Err(ReadError::Io(error)) => return Err(failed("read", &path)(error)),
            Err(ReadError::NotAFile | ReadError::OpenToAll | ReadError::TooLong { .. }) => {
                return Err(ShimDirError::Damaged { path });
            }
        };
        parse(&bytes).map(Some).ok_or(ShimDirError::Damaged { path })
    }
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ShimDirError + use<> {
    let path = path.to_owned();
    move |source| ShimDirError::Io { what, path, source }
}

/// The value in a line `key value`. A newer shim may write unknown keys.
fn field<'a>(text: &'a [u8], key: &str) -> Option<&'a [u8]> {
    let mut lines = text.split(|byte| *byte == b'\n');
    lines.find_map(|line| line.strip_prefix(key.as_bytes())?.strip_prefix(b" "))
}

fn number<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn process(text: &[u8]) -> Option<ProcessId> {
    let mut words = text.split(|byte| *byte == b' ');
    let id = ProcessId { pid: number(words.next()?)?, start: number(words.next()?)? };
    words.next().is_none().then_some(id)
}
