//! Logs: the daemon's own, and one per agent.
//!
//! Architecture invariant: no payload of a conversation is logged, at any level.
//!
//! Entries quote agents and clients (ids, methods, errors), so each is one escaped line of bounded
//! length. Only an agent's stderr is logged unchanged.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use acp_wire::code;
use acpd_api::{LogLevel, Reason, escape};
use acpd_core::Fault;
use acpd_sys::files::private_file;
use acpd_sys::startup::stderr_to;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::writer::BoxMakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{Registry, registry, reload};

use crate::locked;

/// Longest entry in characters; the rest is cut off.
const LONGEST: usize = 2000;
/// Longest quote of an agent or a hook, in characters.
const QUOTE: usize = 200;

/// A file that is moved aside (`.1`) when it has reached its size, so it takes at most twice that
/// size. Clones write to the same file.
#[derive(Debug, Clone)]
pub struct BoundedLog {
    // A lock, because several tasks and threads write a log, which is no state of the daemon.
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    path: PathBuf,
    file: Option<File>,
    written: u64,
    limit: u64,
    /// The process's stderr goes to the file, too.
    has_stderr: bool,
}

impl BoundedLog {
    /// Opens the file for appending. If that fails, entries are dropped: a log must not stop an
    /// agent.
    pub fn open(path: &Path, limit: u64) -> BoundedLog {
        BoundedLog::of(Inner { path: path.to_owned(), limit, ..Inner::default() })
    }

    /// Opens a log that is also stderr, and gets the last words of a panic, even after it was moved
    /// aside.
    pub fn open_as_stderr(path: &Path, limit: u64) -> BoundedLog {
        BoundedLog::of(Inner { path: path.to_owned(), limit, has_stderr: true, ..Inner::default() })
    }

    fn of(mut inner: Inner) -> BoundedLog {
        inner.reopen();
        BoundedLog { inner: Arc::new(Mutex::new(inner)) }
    }

    pub fn write(&mut self, bytes: &[u8]) {
        locked(&self.inner).write(bytes);
    }

    /// Appends an entry with the time.
    pub fn line(&mut self, text: &str) {
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ");
        self.write(entry(&format!("{now} {text}")).as_bytes());
    }
}

impl Inner {
    fn reopen(&mut self) {
        self.file = private_file(&self.path).ok();
        let length = self.file.as_ref().and_then(|file| file.metadata().ok());
        self.written = length.map_or(0, |metadata| metadata.len());
        if let Some(file) = self.file.as_ref().filter(|_| self.has_stderr) {
            // On failure stderr stays where it was.
            stderr_to(file).ok();
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        let is_full = self.written > 0 && self.written + bytes.len() as u64 > self.limit;
        if is_full && std::fs::rename(&self.path, self.path.with_added_extension("1")).is_ok() {
            self.reopen();
        }
        if let Some(file) = &mut self.file
            && file.write_all(bytes).is_ok()
        {
            self.written += bytes.len() as u64;
        }
    }
}

impl Write for BoundedLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        BoundedLog::write(self, bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Makes an entry of each event, which the subscriber writes in one call.
struct Entries<W>(W);

impl<W: Write> Write for Entries<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        self.0.write_all(entry(text.trim_end()).as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Returns one escaped line, cut at [`LONGEST`] characters.
fn entry(text: &str) -> String {
    let (text, more) = match text.char_indices().nth(LONGEST) {
        Some((end, _)) => (&text[..end], "…"),
        None => (text, ""),
    };
    format!("{}{more}\n", escape::verbatim(text))
}

/// Returns the beginning of a text of an agent or a hook.
pub fn quote(text: &str) -> &str {
    text.char_indices().nth(QUOTE).map_or(text, |(end, _)| &text[..end])
}

pub fn filter(text: &str) -> Option<Targets> {
    // Not the library's larger filter (spans, fields): it needs a regex engine, which is a tenth of
    // the idle daemon's memory. A single word that is no level would be taken for a module.
    let is_filter = text.contains(['=', ',', ':']);
    if LogLevel::LEVELS.contains(&text) || is_filter { text.parse().ok() } else { None }
}

/// The filter of the log. Clones change the same one.
#[derive(Debug, Clone)]
pub struct Filter {
    handle: reload::Handle<Targets, Registry>,
    configured: String,
}

impl Filter {
    pub fn level(&self) -> LogLevel {
        // The subscriber lives as long as the process.
        let level = self.handle.with_current(Targets::to_string).unwrap_or_default();
        LogLevel { level: level.into(), configured: self.configured.as_str().into() }
    }

    /// Changes the filter. Fails if the text is neither a level nor a filter.
    pub fn change(&self, level: &str) -> Result<(), Fault> {
        let Some(filter) = filter(level) else {
            let text = format!("`{}` is no level and no filter", quote(level));
            let hint = acpd_api::nearest(level, LogLevel::LEVELS).map_or_else(
                || format!("the levels are {}", LogLevel::LEVELS.join(", ")),
                |near| format!("did you mean `{near}`?"),
            );
            let fault = Fault::new(Reason::Invalid, text).with_code(code::INVALID_PARAMS);
            return Err(fault.hint(hint));
        };
        let before = self.level().level;
        // Logged where it is not filtered out: before or after the change.
        let tell = || tracing::info!(level, before = before.raw(), "the log level was changed");
        let is_told = tracing::enabled!(tracing::Level::INFO);
        if is_told {
            tell();
        }
        self.handle.reload(filter).ok();
        if !is_told {
            tell();
        }
        Ok(())
    }
}

/// Starts logging: to the file in the background, otherwise to stderr.
pub fn start(level: &str, file: Option<BoundedLog>) -> Filter {
    let targets =
        filter(level).unwrap_or_else(|| Targets::new().with_default(tracing::Level::INFO));
    let (filter, handle) = reload::Layer::new(targets);
    let layer = tracing_subscriber::fmt::layer().with_target(false).with_ansi(false);
    let writer = match file {
        Some(file) => BoxMakeWriter::new(move || Entries(file.clone())),
        None => BoxMakeWriter::new(|| Entries(io::stderr())),
    };
    registry().with(filter).with(layer.with_writer(writer)).init();
    Filter { handle, configured: level.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_continues_where_it_ended_and_is_moved_aside_when_full() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("agent.log");
        BoundedLog::open(&path, 10).write(b"123\n");
        BoundedLog::open(&path, 10).write(b"456\n");
        let mut log = BoundedLog::open(&path, 10);
        log.write(b"abc\n");
        log.write(b"def\n");
        assert_eq!(std::fs::read(&path).expect("the log"), b"abc\ndef\n");
        let aside = dir.path().join("agent.log.1");
        assert_eq!(std::fs::read(aside).expect("the old log"), b"123\n456\n");
    }

    #[test]
    fn m6_an_entry_is_one_escaped_line_of_bounded_length() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("agent.log");
        let mut log = BoundedLog::open(&path, 1 << 20);
        log.line("a\nb\x1b[2J\u{202e}é");
        let long = "é".repeat(3 * LONGEST);
        // As the daemon's own log is written.
        Entries(log.clone()).write_all(format!("{long}\n").as_bytes()).expect("a log");
        let text = std::fs::read_to_string(&path).expect("the log");
        let (note, event) = text.split_once('\n').expect("two entries");
        assert!(note.ends_with(" a<U+000A>b<U+001B>[2J<U+202E>é"), "{note}");
        assert_eq!(event, format!("{}…\n", &long[..2 * LONGEST]));
    }
}
