//! The directory by which a shim is found again: `$STATE/shims/<marker>/`, mode 0700.
//!
//! | file | what |
//! | --- | --- |
//! | `lock` | locked by the shim as long as it lives; taken before anything else |
//! | `socket` | the path of its socket; there before the socket is |
//! | `shim` | who it is ([`Record`]); there before the daemon hears of the start |
//! | `exit` | how the agent ended, as soon as it has |
//! | `spool` | output that did not fit in memory: 8 bytes offset of the first byte, then the bytes |
//! | `tree` | the agent's descendants, where there is no cgroup |
//!
//! The daemon makes the directory before it starts the shim; the shim never makes it, so a start
//! that is no longer waited for fails once the directory is removed.
//!
//! A shim without a daemon whose directory was removed stops its agent and ends: no daemon could find it.
//!
//! A shim that ends while something of its agent is not acknowledged (its lease is over) leaves
//! `exit` and, in `spool`, the output: a daemon that finds it dead reads [`ShimDir::exit`] and
//! [`ShimDir::leftover`], and removes the directory when both are committed. A shim that was killed
//! leaves what had been written by then; its memory is lost, and its agent is to be ended with
//! [`Orphans`](crate::orphans::Orphans).

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

/// Bytes of the spool before the output.
pub(crate) const SPOOL_HEAD: u64 = 8;
/// No text file of a shim directory is longer: what is, was not written by a shim.
const LONGEST: u64 = 16 << 20;

#[derive(Debug, Error)]
pub enum ShimDirError {
    /// A directory is not fit.
    #[error(transparent)]
    Dir(#[from] DirError),
    #[error("cannot {what} `{}`", .path.display())]
    Io { what: &'static str, path: PathBuf, source: io::Error },
    /// The file does not say what it should.
    #[error("`{}` is damaged", .path.display())]
    Damaged { path: PathBuf },
}

/// The directory of one shim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShimDir {
    dir: PathBuf,
}

/// Identity of a shim: the file `shim`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// Version of its protocol.
    pub version: u16,
    pub shim: ProcessId,
    /// The agent, if it is a process: not if there is only a connection.
    pub agent: Option<ProcessId>,
    /// The socket that it listens on.
    pub socket: PathBuf,
    /// The agent's cgroup, if it has one of its own.
    pub cgroup: Option<PathBuf>,
}

/// State of a recorded shim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity {
    /// Runs: the lock is held, and the process is the recorded one.
    Alive(Record),
    /// Does not run: the lock is free.
    Dead,
    /// A process holds the lock, and it cannot be shown that it is the recorded process. Neither kill
    /// nor remove it. A shim that is just starting looks like this for some milliseconds.
    Unverifiable,
}

/// Output that a dead shim left, from an offset on.
#[derive(Debug)]
pub struct Leftover {
    /// Offset of the first byte: later than asked for if what was before it is lost.
    pub offset: u64,
    pub bytes: io::Take<File>,
}

/// Every shim directory in this state directory, in no order.
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
    /// The shim directory of this marker (the agent's `ACPD_HOST`), whether it is there or not.
    pub fn of(state: &Path, marker: &str) -> ShimDir {
        ShimDir { dir: parent(state).join(marker) }
    }

    pub fn at(dir: impl Into<PathBuf>) -> ShimDir {
        ShimDir { dir: dir.into() }
    }

    /// Makes the directory, for a shim that is about to be started.
    pub fn create(state: &Path, marker: &str) -> Result<ShimDir, ShimDirError> {
        files::private_dir(&parent(state))?;
        let shim_dir = ShimDir::of(state, marker);
        files::private_dir(&shim_dir.dir)?;
        Ok(shim_dir)
    }

    pub fn path(&self) -> &Path {
        &self.dir
    }

    /// The marker it is named after.
    pub fn marker(&self) -> &str {
        self.dir.file_name().and_then(OsStr::to_str).unwrap_or_default()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    /// Takes the lock, for the shim's whole life.
    pub(crate) fn lock(&self) -> Result<InstanceLock, LockError> {
        InstanceLock::acquire(&self.file("lock"))
    }

    /// Returns whether a shim holds the lock.
    pub fn is_held(&self) -> Result<bool, ShimDirError> {
        let path = self.file("lock");
        lock::is_held(&path).map_err(failed("lock", &path))
    }

    /// Returns whether its shim runs: never by the pid alone.
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

    /// Reads the record of the shim; `None` if there is none yet.
    pub fn record(&self) -> Result<Option<Record>, ShimDirError> {
        self.parse("shim", |text| {
            let fields = Fields(text);
            Some(Record {
                version: fields.number("version")?,
                shim: fields.process("shim")?,
                agent: Some(fields.process("agent")?).filter(|agent| agent.pid != 0),
                socket: fields.path("socket")?,
                cgroup: fields.path("cgroup"),
            })
        })
    }

    pub(crate) fn write_record(&self, record: &Record) -> Result<(), ShimDirError> {
        let agent = record.agent.unwrap_or(ProcessId { pid: 0, start: 0 });
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
        self.replace("shim", &text, Durable::Yes)
    }

    /// Reads how the agent ended; `None` if it has not, or if that is not recorded.
    pub fn exit(&self) -> Result<Option<Status>, ShimDirError> {
        self.parse("exit", |text| {
            let fields = Fields(text);
            Some(Status::from_numbers(fields.number("kind")?, fields.number("code")?))
        })
    }

    pub(crate) fn write_exit(&self, status: Status) -> Result<(), ShimDirError> {
        let (kind, code) = status.numbers();
        self.replace("exit", format!("kind {kind}\ncode {code}\n").as_bytes(), Durable::Yes)
    }

    /// The recorded descendants of the agent; none if nothing is recorded.
    pub fn tree(&self) -> Result<Vec<ProcessId>, ShimDirError> {
        let parse = |text: &[u8]| {
            let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            lines.map(process).collect()
        };
        Ok(self.parse("tree", parse)?.unwrap_or_default())
    }

    pub(crate) fn write_tree(&self, tree: &[ProcessId]) -> Result<(), ShimDirError> {
        let lines = tree.iter().map(|id| format!("{} {}\n", id.pid, id.start));
        self.replace("tree", lines.collect::<String>().as_bytes(), Durable::No)
    }

    /// The output from `from` on that a dead shim left; `None` if there is nothing.
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

    /// Puts a new spool in place of the one that is there, if any, once it is filled.
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
            // The disk may be full: it is to be given back what it took.
            fs::remove_file(&new).ok();
        }
        made
    }

    pub(crate) fn remove_spool(&self) {
        // An empty one that stays goes with the shim directory.
        fs::remove_file(self.file("spool")).ok();
    }

    /// The socket that its shim listens on, or is about to; `None` if it has not got so far.
    pub fn socket(&self) -> Option<PathBuf> {
        let path = |text: &[u8]| os_string(text).map(PathBuf::from);
        self.parse("socket", path).ok().flatten()
    }

    pub(crate) fn write_socket(&self, socket: &Path) -> Result<(), ShimDirError> {
        self.replace("socket", socket.as_os_str().as_encoded_bytes(), Durable::No)
    }

    /// Removes all of it, and the shim's socket. To be called when its shim is dead and everything of
    /// it is recorded, or by the shim itself.
    pub fn remove(&self) -> Result<(), ShimDirError> {
        // A shim that was killed has left its socket, perhaps before it said who it is.
        if let Some(socket) = self.socket() {
            socket::remove(&socket);
        }
        match fs::remove_dir_all(&self.dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other.map_err(failed("remove", &self.dir)),
        }
    }

    /// Puts a file in place, whole or not at all.
    fn replace(&self, name: &str, bytes: &[u8], durable: Durable) -> Result<(), ShimDirError> {
        let (path, new) = (self.file(name), self.file(&format!("{name}.new")));
        let write = || -> io::Result<()> {
            let mut options = files::private_options();
            let mut file = options.write(true).create(true).truncate(true).open(&new)?;
            file.write_all(bytes)?;
            if durable == Durable::Yes {
                file.sync_all()?;
            }
            fs::rename(&new, &path)?;
            if durable == Durable::Yes {
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

#[derive(Clone, Copy, PartialEq, Eq)]
enum Durable {
    Yes,
    No,
}

fn failed(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ShimDirError + use<> {
    let path = path.to_owned();
    move |source| ShimDirError::Io { what, path, source }
}

/// Lines `key value`. Unknown ones are a newer shim's.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn get(&self, key: &str) -> Option<&'a [u8]> {
        self.0.split(|byte| *byte == b'\n').find_map(|line| {
            line.strip_prefix(key.as_bytes()).and_then(|rest| rest.strip_prefix(b" "))
        })
    }

    fn number<T: std::str::FromStr>(&self, key: &str) -> Option<T> {
        number(self.get(key)?)
    }

    fn process(&self, key: &str) -> Option<ProcessId> {
        process(self.get(key)?)
    }

    fn path(&self, key: &str) -> Option<PathBuf> {
        os_string(self.get(key)?).map(PathBuf::from)
    }
}

fn number<T: std::str::FromStr>(text: &[u8]) -> Option<T> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Parses `pid start`, two decimal numbers.
fn process(text: &[u8]) -> Option<ProcessId> {
    let mut words = text.split(|byte| *byte == b' ');
    let id = ProcessId { pid: number(words.next()?)?, start: number(words.next()?)? };
    words.next().is_none().then_some(id)
}
