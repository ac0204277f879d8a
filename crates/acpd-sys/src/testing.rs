//! Recorder of what SQLite writes and syncs, for tests that simulate a loss of power.
#![cfg(all(unix, feature = "testing"))]

use std::collections::BTreeMap;
use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use rusqlite::ffi::{self, sqlite3_file, sqlite3_io_methods as Methods, sqlite3_vfs as Vfs};

type File = *mut sqlite3_file;

/// A completed step of SQLite, or a note of the test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiskStep {
    Write(usize, Vec<u8>),
    /// To 0 also if the file was removed. The directory is synced with the next new log.
    Resize(usize),
    Sync,
    Mark(u64),
}

/// Recorded directories, with names of files and steps, and all open files.
struct Recordings {
    steps: BTreeMap<PathBuf, Vec<(String, DiskStep)>>,
    files: BTreeMap<usize, (PathBuf, &'static Methods)>,
}

/// Held during each step, so that steps of two threads have one order.
static RECORDINGS: Mutex<Recordings> =
    Mutex::new(Recordings { steps: BTreeMap::new(), files: BTreeMap::new() });

fn recordings() -> MutexGuard<'static, Recordings> {
    RECORDINGS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Recordings {
    fn add(&mut self, path: &Path, step: DiskStep) {
        let steps = path.parent().and_then(|dir| self.steps.get_mut(dir));
        if let (Some(steps), Some(name)) = (steps, path.file_name()) {
            steps.push((name.to_string_lossy().into_owned(), step));
        }
    }
}

/// Records the files of a directory, which are opened later. The path has no symbolic links.
pub fn record(dir: &Path) {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        // SAFETY: The new VFS is a copy of SQLite's own and lives as long as the process.
        unsafe {
            ffi::sqlite3_initialize();
            let vfs = Box::leak(Box::new(*system()));
            vfs.zName = c"recorder".as_ptr();
            vfs.xOpen = Some(open);
            vfs.xDelete = Some(delete);
            assert_eq!(ffi::sqlite3_vfs_register(vfs, 1), ffi::SQLITE_OK);
        }
    });
    recordings().steps.insert(dir.to_owned(), Vec::new());
}

/// Notes a number between two steps.
pub fn mark(dir: &Path, number: u64) {
    recordings().add(&dir.join("mark"), DiskStep::Mark(number));
}

/// Ends the recording of a directory, and returns its steps.
pub fn recorded(dir: &Path) -> Vec<(String, DiskStep)> {
    recordings().steps.remove(dir).unwrap_or_default()
}

/// SQLite's own VFS, which is static.
fn system() -> *mut Vfs {
    // SAFETY: The name is a string of C, and SQLite needs it for this call only.
    unsafe { ffi::sqlite3_vfs_find(c"unix".as_ptr()) }
}

/// Path of a file. A temporary one has none.
fn path_of(name: *const c_char) -> Option<PathBuf> {
    // SAFETY: SQLite's names end with a zero and outlive the call.
    let name = (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) })?;
    Some(OsStr::from_bytes(name.to_bytes()).into())
}

unsafe extern "C" fn open(
    _: *mut Vfs,
    name: *const c_char,
    file: File,
    flags: c_int,
    out: *mut c_int,
) -> c_int {
    let mut recordings = recordings();
    // SAFETY: The arguments are SQLite's, and the file has the size that its own VFS asks for.
    let result = unsafe { (*system()).xOpen.unwrap()(system(), name, file, flags, out) };
    if let Some(path) = path_of(name).filter(|_| result == ffi::SQLITE_OK) {
        // SAFETY: An open file has methods, which are static, and only this thread has it yet.
        let methods = unsafe {
            let methods = &*(*file).pMethods;
            let hooked = Box::leak(Box::new(*methods));
            hooked.xWrite = Some(write);
            hooked.xTruncate = Some(truncate);
            hooked.xSync = Some(sync);
            (*file).pMethods = hooked;
            methods
        };
        recordings.files.insert(file.addr(), (path, methods));
    }
    result
}

unsafe extern "C" fn delete(_: *mut Vfs, name: *const c_char, sync_dir: c_int) -> c_int {
    let mut recordings = recordings();
    // SAFETY: The arguments are SQLite's.
    let result = unsafe { (*system()).xDelete.unwrap()(system(), name, sync_dir) };
    if let Some(path) = path_of(name).filter(|_| result == ffi::SQLITE_OK) {
        recordings.add(&path, DiskStep::Resize(0));
    }
    result
}

unsafe extern "C" fn write(file: File, data: *const c_void, length: c_int, at: i64) -> c_int {
    // SAFETY: SQLite hands over this number of bytes, and waits for the call.
    let bytes = unsafe { std::slice::from_raw_parts(data.cast::<u8>(), length as usize) };
    run(file, DiskStep::Write(at as usize, bytes.to_vec()), |methods| {
        // SAFETY: The arguments are SQLite's.
        unsafe { methods.xWrite.unwrap()(file, data, length, at) }
    })
}

unsafe extern "C" fn truncate(file: File, length: i64) -> c_int {
    run(file, DiskStep::Resize(length as usize), |methods| {
        // SAFETY: The arguments are SQLite's.
        unsafe { methods.xTruncate.unwrap()(file, length) }
    })
}

unsafe extern "C" fn sync(file: File, flags: c_int) -> c_int {
    // SAFETY: The arguments are SQLite's.
    run(file, DiskStep::Sync, |methods| unsafe { methods.xSync.unwrap()(file, flags) })
}

/// Runs a method of an open file, and notes its step if it succeeds.
fn run(file: File, step: DiskStep, method: impl FnOnce(&Methods) -> c_int) -> c_int {
    let mut recordings = recordings();
    let (path, methods) = recordings.files[&file.addr()].clone();
    let result = method(methods);
    if result == ffi::SQLITE_OK {
        recordings.add(&path, step);
    }
    result
}
