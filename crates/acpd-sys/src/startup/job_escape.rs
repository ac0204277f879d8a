//! Processes that outlive this one: without its console, and in no Job if possible.
//!
//! ```text
//! started, suspended, outside of this process's Job if the Job allows that
//!    ├── in no Job ────────────────────────────────────────▶ it runs
//!    └── still in one ── once more, as a child of the shell
//!                           ├── that works ────────────────▶ this one runs, and the first one is gone
//!                           └── there is no shell ─────────▶ the first one runs, and ends with the Job
//! ```
//!
//! The shell is the user's Explorer, which starts the user's programs. A process can be given
//! another parent, and gets the Job of that parent. Other ways out of a Job were rejected: the task
//! scheduler ends its tasks after three days and lowers their priority, and hardened machines
//! refuse what WMI starts.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString, c_void};
use std::fs::File;
use std::io;
use std::os::windows::ffi::OsStrExt as _;
use std::os::windows::io::{AsRawHandle as _, OwnedHandle};
use std::os::windows::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command};
use std::ptr::{null, null_mut};

use windows_sys::Win32::Foundation::{
    DUPLICATE_CLOSE_SOURCE, DUPLICATE_SAME_ACCESS, DuplicateHandle, HANDLE,
};
use windows_sys::Win32::System::Threading::{
    CREATE_BREAKAWAY_FROM_JOB, CREATE_NEW_PROCESS_GROUP, CREATE_NO_WINDOW, CREATE_SUSPENDED,
    CREATE_UNICODE_ENVIRONMENT, CreateProcessW, DeleteProcThreadAttributeList,
    EXTENDED_STARTUPINFO_PRESENT, GetCurrentProcess, InitializeProcThreadAttributeList,
    LPPROC_THREAD_ATTRIBUTE_LIST, PROC_THREAD_ATTRIBUTE_HANDLE_LIST,
    PROC_THREAD_ATTRIBUTE_PARENT_PROCESS, PROCESS_CREATE_PROCESS, PROCESS_DUP_HANDLE,
    PROCESS_INFORMATION, PROCESS_QUERY_LIMITED_INFORMATION, STARTF_USESTDHANDLES, STARTUPINFOEXW,
    UpdateProcThreadAttribute,
};

use crate::handle::{check, open_process, owned};
use crate::named_pipe::wide;
use crate::process::{jobs, keep_standard_handles, name_of, pids, started_at};
use crate::users::{login_of, own_uid, user_of_process};

/// Creation flags: without this process's console and signals.
const ALONE: u32 = CREATE_NO_WINDOW | CREATE_NEW_PROCESS_GROUP;

const SHELL: &str = "explorer";

#[derive(Debug)]
pub(crate) struct ApartProcess {
    pub(crate) handle: OwnedHandle,
    /// The process ends with a Job of this process, because no process may leave that Job.
    pub(crate) is_bound: bool,
}

/// Starts a process with these files as stdin, stdout and stderr. If `is_bare`, it gets the
/// environment of the command only.
pub(crate) fn start_apart(
    mut command: Command,
    standard: [File; 3],
    is_bare: bool,
) -> io::Result<ApartProcess> {
    keep_standard_handles();
    let [stdin, stdout, stderr] = &standard;
    command.stdin(stdin.try_clone()?).stdout(stdout.try_clone()?).stderr(stderr.try_clone()?);
    let flags = ALONE | CREATE_SUSPENDED;
    let mut first = match command.creation_flags(flags | CREATE_BREAKAWAY_FROM_JOB).spawn() {
        // The error of a Job that no process may leave.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            command.creation_flags(flags).spawn()
        }
        spawned => spawned,
    }?;
    let started = run_or_replace(&first, &command, &standard, is_bare);
    if !matches!(started, Ok((None, _))) {
        // The first one has done nothing, cannot have ended, and is not waited for.
        let _ = first.kill();
    }
    let (other, is_bound) = started?;
    Ok(ApartProcess { handle: other.unwrap_or_else(|| first.into()), is_bound })
}

/// Returns the process that replaces the suspended first one, and whether it ends with this
/// process's Job.
fn run_or_replace(
    first: &Child,
    command: &Command,
    standard: &[File; 3],
    is_bare: bool,
) -> io::Result<(Option<OwnedHandle>, bool)> {
    let is_in_a_job = jobs::is_in_one(first.as_raw_handle())?;
    if is_in_a_job {
        let environment = environment(command, is_bare);
        let below = |shell| below(shell, command, &environment, standard).ok();
        if let Some(other) = shells().iter().find_map(below) {
            return Ok((Some(other), false));
        }
    }
    jobs::resume(first.id())?;
    Ok((None, is_in_a_job))
}

/// Returns Explorers of this user and login. Those in no Job come first, then the oldest: the
/// shell, not a window that an agent has opened.
fn shells() -> Vec<OwnedHandle> {
    let rights = PROCESS_CREATE_PROCESS | PROCESS_DUP_HANDLE | PROCESS_QUERY_LIMITED_INFORMATION;
    let login = login_of(std::process::id());
    let mut found = Vec::new();
    for pid in pids().unwrap_or_default() {
        let is_one = login_of(pid) == login
            && name_of(pid).is_some_and(|name| name.eq_ignore_ascii_case(SHELL));
        // One with more rights than ours is not opened, and one without a time has ended.
        if let Some(process) = is_one.then(|| open_process(pid, rights).ok()).flatten()
            && user_of_process(&process).is_ok_and(|user| user == own_uid())
            && let Ok(started) = started_at(&process)
        {
            let in_a_job = jobs::is_in_one(process.as_raw_handle()).unwrap_or(true);
            found.push((in_a_job, started, process));
        }
    }
    found.sort_by_key(|(in_a_job, started, _)| (*in_a_job, *started));
    found.into_iter().map(|(.., process)| process).collect()
}

/// A handle that a process has been lent; dropping it closes the handle there.
struct Lent<'a> {
    to: &'a OwnedHandle,
    there: HANDLE,
}

impl<'a> Lent<'a> {
    fn new(file: &File, to: &'a OwnedHandle) -> io::Result<Lent<'a>> {
        let mut there = null_mut();
        // SAFETY: the handles are open, and the place is ours. Children of that process may inherit it.
        check(unsafe {
            let (from, file) = (GetCurrentProcess(), file.as_raw_handle());
            let to = to.as_raw_handle();
            DuplicateHandle(from, file, to, &raw mut there, 0, 1, DUPLICATE_SAME_ACCESS)
        })?;
        Ok(Lent { to, there })
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let to = self.to.as_raw_handle();
        // SAFETY: it is a handle of that process, made for us, and is closed there.
        unsafe {
            DuplicateHandle(to, self.there, null_mut(), null_mut(), 0, 0, DUPLICATE_CLOSE_SOURCE)
        };
    }
}

struct Attributes(Vec<usize>);

impl Attributes {
    /// The handles must outlive the list.
    fn new(parent: &HANDLE, handles: &[HANDLE]) -> io::Result<Attributes> {
        let mut size = 0;
        // SAFETY: without a place it only returns the size.
        unsafe { InitializeProcThreadAttributeList(null_mut(), 2, 0, &raw mut size) };
        let mut place = vec![0_usize; size.div_ceil(size_of::<usize>())];
        // SAFETY: the place is ours and of that size.
        check(unsafe {
            InitializeProcThreadAttributeList(place.as_mut_ptr().cast(), 2, 0, &raw mut size)
        })?;
        let mut list = Attributes(place);
        list.set(PROC_THREAD_ATTRIBUTE_PARENT_PROCESS, std::slice::from_ref(parent))?;
        list.set(PROC_THREAD_ATTRIBUTE_HANDLE_LIST, handles)?;
        Ok(list)
    }

    fn set(&mut self, what: u32, value: &[HANDLE]) -> io::Result<()> {
        // SAFETY: the list is whole; the value is of that size, and the caller keeps it.
        check(unsafe {
            let (list, place) = (self.as_ptr(), value.as_ptr().cast::<c_void>());
            let size = size_of_val(value);
            UpdateProcThreadAttribute(list, 0, what as usize, place, size, null_mut(), null())
        })
    }

    fn as_ptr(&mut self) -> LPPROC_THREAD_ATTRIBUTE_LIST {
        self.0.as_mut_ptr().cast()
    }
}

impl Drop for Attributes {
    fn drop(&mut self) {
        // SAFETY: the list is whole.
        unsafe { DeleteProcThreadAttributeList(self.as_ptr()) };
    }
}

fn below(
    parent: &OwnedHandle,
    command: &Command,
    environment: &[u16],
    standard: &[File; 3],
) -> io::Result<OwnedHandle> {
    let mut line = command_line(command)?;
    let dir = command.get_current_dir().map(wide);
    let [stdin, stdout, stderr] = standard;
    let lent = [Lent::new(stdin, parent)?, Lent::new(stdout, parent)?, Lent::new(stderr, parent)?];
    let handles = lent.each_ref().map(|lent| lent.there);
    let handle = parent.as_raw_handle();
    let mut attributes = Attributes::new(&handle, &handles)?;
    let mut info = STARTUPINFOEXW::default();
    info.StartupInfo.cb = size_of_val(&info) as u32;
    info.StartupInfo.dwFlags = STARTF_USESTDHANDLES;
    [info.StartupInfo.hStdInput, info.StartupInfo.hStdOutput, info.StartupInfo.hStdError] = handles;
    info.lpAttributeList = attributes.as_ptr();
    let mut made = PROCESS_INFORMATION::default();
    let flags = ALONE | CREATE_UNICODE_ENVIRONMENT | EXTENDED_STARTUPINFO_PRESENT;
    // SAFETY: the texts end with zeroes, the environment with two; all of it, the handles and the attributes live longer
    // than the call.
    check(unsafe {
        CreateProcessW(
            null(),
            line.as_mut_ptr(),
            null(),
            null(),
            1,
            flags,
            environment.as_ptr().cast(),
            dir.as_ref().map_or(null(), |dir| dir.as_ptr()),
            (&raw const info).cast(),
            &raw mut made,
        )
    })?;
    let process = owned(made.hProcess);
    drop(owned(made.hThread));
    process
}

/// Returns the words of a command as a program splits them. Words with quotation marks are refused;
/// no command here has one.
fn command_line(command: &Command) -> io::Result<Vec<u16>> {
    if !Path::new(command.get_program()).is_absolute() {
        return Err(io::ErrorKind::NotFound.into());
    }
    let mut line: Vec<u16> = Vec::new();
    for word in std::iter::once(command.get_program()).chain(command.get_args()) {
        let word: Vec<u16> = word.encode_wide().collect();
        if word.iter().any(|unit| [0, u16::from(b'"')].contains(unit)) {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        // Backslashes before the closing mark must be doubled.
        let slashes = word.iter().rev().take_while(|unit| **unit == u16::from(b'\\')).count();
        line.push(u16::from(b'"'));
        line.extend(&word);
        line.extend(std::iter::repeat_n(u16::from(b'\\'), slashes));
        line.extend("\" ".encode_utf16());
    }
    line.push(0);
    Ok(line)
}

/// Returns the environment of the command as the system takes it: sorted, each entry ended by a
/// zero.
fn environment(command: &Command, is_bare: bool) -> Vec<u16> {
    let mut all: BTreeMap<OsString, (OsString, OsString)> = BTreeMap::new();
    let ours = std::env::vars_os().filter(|_| !is_bare);
    let ours = ours.map(|(name, value)| (name, Some(value)));
    let given = command.get_envs();
    let given = given.map(|(name, value)| (name.to_owned(), value.map(OsStr::to_owned)));
    for (name, value) in ours.chain(given) {
        let key = name.to_ascii_uppercase();
        match value {
            Some(value) => all.insert(key, (name, value)),
            None => all.remove(&key),
        };
    }
    let mut block = Vec::new();
    for (name, value) in all.into_values() {
        block.extend(name.encode_wide().chain([u16::from(b'=')]).chain(value.encode_wide()));
        block.push(0);
    }
    // An empty one ends with two as well.
    block.extend(std::iter::repeat_n(0, if block.is_empty() { 2 } else { 1 }));
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_in_quotation_marks() {
        let line = |program: &str, args: &[&str]| {
            let line = command_line(Command::new(program).args(args))?;
            Ok::<_, io::Error>(String::from_utf16(&line).unwrap())
        };
        let plain = line(r"C:\a b\acpd.exe", &["run", r"C:\s\", ""]).unwrap();
        assert_eq!(plain, "\"C:\\a b\\acpd.exe\" \"run\" \"C:\\s\\\\\" \"\" \0");
        line(r"C:\acpd.exe", &["a\"b"]).unwrap_err();
        line(r"C:\acpd.exe", &["a\0b"]).unwrap_err();
        line("acpd.exe", &[]).unwrap_err();
    }

    #[test]
    fn a_bare_environment_has_what_the_command_has_and_nothing_else() {
        let mut command = Command::new("x");
        command.env("B", "2").env("a", "1").env_remove("C");
        let text = |block: Vec<u16>| String::from_utf16(&block).unwrap();
        assert_eq!(text(environment(&command, true)), "a=1\0B=2\0\0");
        assert_eq!(text(environment(&Command::new("x"), true)), "\0\0");
        let whole = text(environment(&command, false));
        assert!(whole.contains("B=2\0") && whole.ends_with("\0\0"), "{whole:?}");
        assert!(whole.to_ascii_uppercase().contains("SYSTEMROOT="), "{whole:?}");
    }
}
