#![expect(clippy::unnecessary_wraps, reason = "elsewhere it can fail")]

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io;
use std::os::windows::io::{AsRawHandle as _, IntoRawHandle as _, OwnedHandle};
use std::os::windows::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

use windows_sys::Wdk::System::Threading::{NtQueryInformationProcess, ProcessBasicInformation};
use windows_sys::Win32::Foundation::{
    CloseHandle, ERROR_ACCESS_DENIED, ERROR_BAD_EXE_FORMAT, ERROR_FILE_NOT_FOUND,
    ERROR_INVALID_PARAMETER, ERROR_SEM_TIMEOUT, FILETIME, HANDLE_FLAG_INHERIT,
    SetHandleInformation,
};
use windows_sys::Win32::System::Console::{
    GetStdHandle, STD_ERROR_HANDLE, STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, SetStdHandle,
};
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, PROCESSENTRY32W, Process32FirstW, Process32NextW, TH32CS_SNAPPROCESS,
};
use windows_sys::Win32::System::ProcessStatus::{K32GetProcessMemoryInfo, PROCESS_MEMORY_COUNTERS};
use windows_sys::Win32::System::SystemInformation::GetSystemTimeAsFileTime;
use windows_sys::Win32::System::Threading::{
    CREATE_NEW_PROCESS_GROUP, CREATE_SUSPENDED, GetExitCodeProcess, GetProcessTimes,
    PROCESS_BASIC_INFORMATION, PROCESS_NAME_WIN32, QueryFullProcessImageNameW,
};

use super::jobs;
use super::{Condition, Entry, ExitKind, ProcessId, StopSignal};
use crate::files::null;
use crate::handle::{check, is_set, open_to_look, owned, wait_any};
use crate::machine::since_boot;
use crate::signals;
use crate::users::{own_uid, user_of_process};

pub(crate) use super::jobs::{members, signal_group};

/// The system's console process is below this process, too.
pub(crate) const ALL_BELOW_BELONGS: bool = false;

const STANDARD: [u32; 3] = [STD_INPUT_HANDLE, STD_OUTPUT_HANDLE, STD_ERROR_HANDLE];
/// Variable by which system libraries find others.
const SYSTEM_ROOT: &str = "SystemRoot";

/// Makes the command start suspended, in its own group; [`start`] resumes it.
pub fn detach_child(cmd: &mut Command) {
    cmd.creation_flags(CREATE_NEW_PROCESS_GROUP | CREATE_SUSPENDED);
}

pub fn detach_child_into(cmd: &mut Command, _procs: File) {
    detach_child(cmd);
}

/// Starts a child prepared with [`detach_child`], in its own Job.
pub fn start(command: &mut Command) -> io::Result<Child> {
    let child = command.spawn()?;
    jobs::adopt(child.id(), jobs::HOLDS_ALL)?;
    Ok(child)
}

/// Runs a program as if in this process: with this console and this exit code, and it ends with
/// this process. Returns only if it cannot be started.
pub fn become_program(command: &mut Command) -> io::Error {
    keep_standard_handles();
    // The program gets the signals of the console, too, and handles them.
    let ended = signals::leave_to_others()
        .and_then(|()| command.creation_flags(CREATE_SUSPENDED).spawn())
        .and_then(|mut child| jobs::adopt(child.id(), jobs::HOLDS_ONE).and_then(|()| child.wait()));
    match ended {
        #[expect(clippy::exit, reason = "as if that program ran here")]
        Ok(status) => std::process::exit(status.code().unwrap_or(1)),
        Err(error) => error,
    }
}

/// Keeps children from inheriting the standard handles: a reader of this process's output would
/// wait for the children, too.
pub(crate) fn keep_standard_handles() {
    for which in STANDARD {
        // SAFETY: it takes the handle that there is, or none, which is refused.
        unsafe { SetHandleInformation(GetStdHandle(which), HANDLE_FLAG_INHERIT, 0) };
    }
}

/// Keeps the standard handles from children. Other handles are not inherited.
pub fn close_inherited() -> io::Result<()> {
    keep_standard_handles();
    Ok(())
}

pub fn drop_stdio() -> io::Result<()> {
    for which in STANDARD {
        let null = null()?;
        // SAFETY: it only returns what there is.
        let before = unsafe { GetStdHandle(which) };
        // SAFETY: the handle is open, and stays so: it is the process's own from now on.
        check(unsafe { SetStdHandle(which, null.into_raw_handle()) })?;
        // SAFETY: it was the process's own until now; the library asks for the handle each time that it
        // needs it. None is refused.
        unsafe { CloseHandle(before) };
    }
    Ok(())
}

pub fn wait_leader(pid: u32) -> io::Result<ExitKind> {
    let process = open_to_look(pid)?;
    wait_any(&[process.as_raw_handle()], None)?;
    exit_of(&process)
}

pub fn try_wait_leader(pid: u32) -> io::Result<Option<ExitKind>> {
    let process = open_to_look(pid)?;
    match wait_any(&[process.as_raw_handle()], Some(Duration::ZERO))? {
        None => Ok(None),
        Some(_) => exit_of(&process).map(Some),
    }
}

/// There are no zombies: only waits.
pub fn reap(pid: u32) -> io::Result<ExitKind> {
    wait_leader(pid)
}

fn exit_of(process: &OwnedHandle) -> io::Result<ExitKind> {
    let mut code = 0;
    // SAFETY: the handle is open, and the place is ours.
    check(unsafe { GetExitCodeProcess(process.as_raw_handle(), &raw mut code) })?;
    Ok(ExitKind::Code(code as i32))
}

/// No process becomes the parent of others' children.
pub fn reap_orphans(_kept: &BTreeSet<u32>) -> usize {
    0
}

pub fn discard(mut started: Child) {
    if let Some(id) = ProcessId::of(started.id()) {
        let _ = jobs::signal_group(id, StopSignal::Kill, true);
    }
    let _ = started.kill();
    let _ = started.wait();
}

/// Only kills: a single process cannot be asked to end.
pub fn signal_one(id: ProcessId, signal: StopSignal) {
    if signal == StopSignal::Kill {
        let _ = jobs::kill_one(id);
    }
}

/// A running program cannot be replaced, so its path leads to it.
pub fn running_program(path: &Path) -> PathBuf {
    path.to_owned()
}

impl fmt::Display for ExitKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // Codes of the system are known by their hexadecimal digits.
            ExitKind::Code(code) if *code < 0 => write!(f, "exit code {:#010x}", *code as u32),
            ExitKind::Code(code) => write!(f, "exit code {code}"),
            ExitKind::Signal(number) => write!(f, "signal {number}"),
        }
    }
}

impl From<ExitStatus> for ExitKind {
    fn from(status: ExitStatus) -> ExitKind {
        ExitKind::Code(status.code().unwrap_or_default())
    }
}

/// There are no signals.
pub fn signal_name(number: i32) -> String {
    format!("SIG{number}")
}

pub fn kill_command(pid: u32) -> String {
    format!("taskkill /F /PID {pid}")
}

pub fn resume_hint(pid: u32) -> String {
    format!("`resmon` lists it as process {pid} and continues it")
}

/// Pipes have no names with lone surrogates, which are not UTF-8.
pub fn os_string(bytes: &[u8]) -> Option<OsString> {
    str::from_utf8(bytes).ok().map(OsString::from)
}

pub fn clear_environment(command: &mut Command) {
    command.env_clear();
    if let Some(root) = std::env::var_os(SYSTEM_ROOT) {
        command.env(SYSTEM_ROOT, root);
    }
}

pub fn is_same_variable(one: &OsStr, other: &OsStr) -> bool {
    one.eq_ignore_ascii_case(other)
}

pub fn shell(line: &str) -> Command {
    let mut command = Command::new("cmd.exe");
    // cmd.exe takes the line as it is, between the first quotation mark and the last one.
    command.args(["/d", "/s", "/c"]).raw_arg(format!("\"{line}\""));
    command
}

pub fn error_number(error: &io::Error) -> i32 {
    error.raw_os_error().unwrap_or(match error.kind() {
        io::ErrorKind::InvalidInput => ERROR_INVALID_PARAMETER as i32,
        io::ErrorKind::PermissionDenied => ERROR_ACCESS_DENIED as i32,
        io::ErrorKind::TimedOut => ERROR_SEM_TIMEOUT as i32,
        // The standard library looks for the program itself.
        io::ErrorKind::NotFound => ERROR_FILE_NOT_FOUND as i32,
        _ => 0,
    })
}

pub fn is_no_program(error: &io::Error) -> bool {
    error.raw_os_error() == Some(ERROR_BAD_EXE_FORMAT as i32)
}

pub fn become_subreaper() -> io::Result<()> {
    Ok(())
}

pub(crate) fn look_up(pid: u32) -> io::Result<Option<Entry>> {
    let process = match open_to_look(pid) {
        Ok(process) => process,
        Err(error) if error.raw_os_error() == Some(ERROR_INVALID_PARAMETER as i32) => {
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let id = ProcessId { pid, start: started_at(&process)? };
    let condition = if has_ended(&process) { Condition::Ended } else { Condition::Running };
    // A process that is ending has no token, so its user is not checked.
    let is_ours = match user_of_process(&process) {
        Err(_) if has_ended(&process) => true,
        user => user? == own_uid(),
    };
    let parent = parent_of(&process, id.start)?;
    // Without groups and sessions, each process has its own.
    Ok(Some(Entry { id, parent, group: pid, session: pid, is_ours, condition }))
}

/// Returns the start time in units of 100 ns since 1601.
pub(crate) fn started_at(process: &OwnedHandle) -> io::Result<u64> {
    let mut times = [FILETIME::default(); 4];
    let [created, exited, kernel, user] = &mut times;
    // SAFETY: the handle is open, and the four places are ours.
    check(unsafe { GetProcessTimes(process.as_raw_handle(), created, exited, kernel, user) })?;
    Ok(number(*created))
}

fn number(time: FILETIME) -> u64 {
    u64::from(time.dwHighDateTime) << 32 | u64::from(time.dwLowDateTime)
}

pub(crate) fn has_ended(process: &OwnedHandle) -> bool {
    is_set(process.as_raw_handle())
}

/// Returns the parent's pid, or 0 if the parent has ended or is hidden. Windows still names an
/// ended parent, and reuses its pid: a process younger than its child is not its parent. If the
/// clock was set back between the two starts, the parent is not recognized.
fn parent_of(process: &OwnedHandle, start: u64) -> io::Result<u32> {
    let mut info = PROCESS_BASIC_INFORMATION::default();
    // SAFETY: the handle is open; the place is ours and of the size that is given.
    let status = unsafe {
        NtQueryInformationProcess(
            process.as_raw_handle(),
            ProcessBasicInformation,
            (&raw mut info).cast(),
            size_of_val(&info) as u32,
            std::ptr::null_mut(),
        )
    };
    if status < 0 {
        return Err(io::Error::other(format!("NTSTATUS {status:#010x}")));
    }
    let pid = info.InheritedFromUniqueProcessId as u32;
    let is_there = open_to_look(pid).is_ok_and(|parent| {
        !has_ended(&parent) && started_at(&parent).is_ok_and(|started| started <= start)
    });
    Ok(if is_there { pid } else { 0 })
}

/// Leaves out hidden processes, and those that end meanwhile.
pub(crate) fn scan() -> io::Result<Vec<Entry>> {
    Ok(pids()?.into_iter().filter_map(|pid| look_up(pid).ok().flatten()).collect())
}

pub(crate) fn pids() -> io::Result<Vec<u32>> {
    // SAFETY: it only returns a handle.
    let snapshot = owned(unsafe { CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0) })?;
    let size = size_of::<PROCESSENTRY32W>() as u32;
    let mut line = PROCESSENTRY32W { dwSize: size, ..PROCESSENTRY32W::default() };
    let mut found = Vec::new();
    // SAFETY: the handle is open, and the line says its own size; as below.
    let mut more = unsafe { Process32FirstW(snapshot.as_raw_handle(), &raw mut line) };
    while more != 0 {
        found.push(line.th32ProcessID);
        // SAFETY: as above.
        more = unsafe { Process32NextW(snapshot.as_raw_handle(), &raw mut line) };
    }
    Ok(found)
}

/// Without a subreaper, orphans may be anywhere.
pub(crate) fn scan_below() -> io::Result<Vec<Entry>> {
    scan()
}

pub(crate) fn children(_pid: u32) -> io::Result<Vec<u32>> {
    Err(io::ErrorKind::Unsupported.into())
}

pub(crate) fn environ(_pid: u32) -> io::Result<Option<Vec<u8>>> {
    Ok(None)
}

pub(crate) fn is_of_this_boot(id: ProcessId) -> bool {
    let mut now = FILETIME::default();
    // SAFETY: the place is ours.
    unsafe { GetSystemTimeAsFileTime(&raw mut now) };
    let (now, up) = (number(now), since_boot().as_millis() as u64 * 10_000);
    (now.saturating_sub(up)..=now).contains(&id.start)
}

pub(super) fn name_of(pid: u32) -> Option<String> {
    let process = open_to_look(pid).ok()?;
    let mut name = [0; 1024];
    let mut length = name.len() as u32;
    // SAFETY: the handle is open, and the buffer is ours and of that length.
    check(unsafe {
        let (process, name) = (process.as_raw_handle(), name.as_mut_ptr());
        QueryFullProcessImageNameW(process, PROCESS_NAME_WIN32, name, &raw mut length)
    })
    .ok()?;
    let path = PathBuf::from(String::from_utf16_lossy(&name[..length as usize]));
    Some(path.file_stem()?.to_string_lossy().into_owned())
}

pub fn rss_bytes(pid: u32) -> io::Result<u64> {
    let process = open_to_look(pid)?;
    let mut counters = PROCESS_MEMORY_COUNTERS::default();
    let size = size_of_val(&counters) as u32;
    // SAFETY: the handle is open; the place is ours and of that size.
    check(unsafe { K32GetProcessMemoryInfo(process.as_raw_handle(), &raw mut counters, size) })?;
    Ok(counters.WorkingSetSize as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_an_identity_of_this_boot() {
        let own = look_up(std::process::id()).unwrap().unwrap();
        assert!(own.is_ours);
        assert!(is_of_this_boot(own.id) && !own.is_zombie());
        assert!(i64::try_from(own.id.start).is_ok());
        assert!(!is_of_this_boot(ProcessId { start: own.id.start / 2, ..own.id }));
        assert!(scan().unwrap().iter().any(|entry| entry.id == own.id));
        assert!(rss_bytes(own.id.pid).unwrap() > 0);
        assert!(name_of(own.id.pid).unwrap().starts_with("acpd_sys"));
        // Pids are divisible by four.
        assert!(look_up(0xffff_fff0).unwrap().is_none());
    }
}
