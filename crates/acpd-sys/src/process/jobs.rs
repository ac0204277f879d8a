//! Job Objects of Windows: trees of processes that the system keeps together.
//!
//! ```text
//! spawned, suspended ── adopt ──▶ in a Job of its own, running ── last process ends ──▶ forgotten
//!                                        │ this process ends, however
//!                                        └──▶ the system ends all of it
//! ```
//!
//! An agent starts suspended, so nothing of it runs outside of its Job. Jobs nest: one around this
//! process is no obstacle. No process leaves such a Job, and all its processes end with the process
//! that holds its handle.

use std::collections::BTreeMap;
use std::io;
use std::os::windows::io::{AsRawHandle as _, OwnedHandle};
use std::ptr::{null, null_mut};
use std::sync::{Mutex, MutexGuard, PoisonError};

use windows_sys::Win32::Foundation::{ERROR_MORE_DATA, HANDLE};
use windows_sys::Win32::System::Console::{CTRL_BREAK_EVENT, GenerateConsoleCtrlEvent};
use windows_sys::Win32::System::Diagnostics::ToolHelp::{
    CreateToolhelp32Snapshot, TH32CS_SNAPTHREAD, THREADENTRY32, Thread32First, Thread32Next,
};
use windows_sys::Win32::System::JobObjects::{
    AssignProcessToJobObject, CreateJobObjectW, IsProcessInJob, JOB_OBJECT_LIMIT_BREAKAWAY_OK,
    JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE, JOB_OBJECT_LIMIT_SILENT_BREAKAWAY_OK,
    JOBOBJECT_BASIC_PROCESS_ID_LIST, JOBOBJECT_EXTENDED_LIMIT_INFORMATION,
    JobObjectBasicProcessIdList, JobObjectExtendedLimitInformation, QueryInformationJobObject,
    SetInformationJobObject, TerminateJobObject,
};
use windows_sys::Win32::System::Threading::{
    OpenThread, PROCESS_QUERY_LIMITED_INFORMATION, PROCESS_SET_QUOTA, PROCESS_SYNCHRONIZE,
    PROCESS_TERMINATE, ResumeThread, THREAD_SUSPEND_RESUME, TerminateProcess,
};

use super::{ProcessId, StopSignal, has_ended, started_at};
use crate::handle::{check, open_process, owned};

/// Exit code of a killed process, as tools of the system use it.
pub(crate) const KILLED: u32 = 1;

/// Jobs of children, without empty ones.
static JOBS: Mutex<BTreeMap<ProcessId, Job>> = Mutex::new(BTreeMap::new());

fn jobs() -> MutexGuard<'static, BTreeMap<ProcessId, Job>> {
    JOBS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Limits of a Job that holds a child and all that it starts.
pub(crate) const HOLDS_ALL: u32 = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
/// Limits of a Job that holds a child alone. Children of it may leave a Job around this one, too,
/// if they ask for that.
pub(crate) const HOLDS_ONE: u32 =
    HOLDS_ALL | JOB_OBJECT_LIMIT_SILENT_BREAKAWAY_OK | JOB_OBJECT_LIMIT_BREAKAWAY_OK;

#[derive(Debug)]
struct Job(OwnedHandle);

impl Job {
    fn new(flags: u32) -> io::Result<Job> {
        // SAFETY: no attributes and no name are given; it only returns a handle.
        let job = Job(owned(unsafe { CreateJobObjectW(null(), null()) })?);
        let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
        limits.BasicLimitInformation.LimitFlags = flags;
        // SAFETY: the handle is open; the struct is the one that goes with the number, and of that size.
        check(unsafe {
            SetInformationJobObject(
                job.0.as_raw_handle(),
                JobObjectExtendedLimitInformation,
                (&raw const limits).cast(),
                size_of_val(&limits) as u32,
            )
        })?;
        Ok(job)
    }

    fn pids(&self) -> io::Result<Vec<u32>> {
        /// Bytes of the two numbers at the beginning of the answer.
        const HEAD: usize = 8;
        let mut room = 64;
        loop {
            // Aligned for the struct: the numbers behind the head are as wide as a pointer.
            let mut answer = vec![0_usize; HEAD / size_of::<usize>() + room];
            let bytes = answer.len() * size_of::<usize>();
            // SAFETY: the handle is open; the place is ours and of that size.
            let told = check(unsafe {
                QueryInformationJobObject(
                    self.0.as_raw_handle(),
                    JobObjectBasicProcessIdList,
                    answer.as_mut_ptr().cast(),
                    bytes as u32,
                    null_mut(),
                )
            });
            match told {
                Err(error) if error.raw_os_error() == Some(ERROR_MORE_DATA as i32) => room *= 4,
                Err(error) => return Err(error),
                Ok(()) => {
                    let head = answer.as_ptr().cast::<JOBOBJECT_BASIC_PROCESS_ID_LIST>();
                    // SAFETY: the call has put the struct there.
                    let count = unsafe { (*head).NumberOfProcessIdsInList } as usize;
                    let ids = answer.iter().skip(HEAD / size_of::<usize>());
                    return Ok(ids.take(count).map(|pid| *pid as u32).collect());
                }
            }
        }
    }
}

/// Puts a child that was started suspended into its own Job with these limits, and resumes it.
/// After an error the child is terminated.
pub(crate) fn adopt(pid: u32, limits: u32) -> io::Result<()> {
    let access = PROCESS_SET_QUOTA | PROCESS_TERMINATE | PROCESS_QUERY_LIMITED_INFORMATION;
    let process = open_process(pid, access | PROCESS_SYNCHRONIZE)?;
    let adopted = || {
        let id = ProcessId { pid, start: started_at(&process)? };
        let job = Job::new(limits)?;
        // SAFETY: both handles are open.
        check(unsafe { AssignProcessToJobObject(job.0.as_raw_handle(), process.as_raw_handle()) })?;
        let mut jobs = jobs();
        jobs.retain(|_, job| job.pids().is_ok_and(|pids| !pids.is_empty()));
        jobs.insert(id, job);
        drop(jobs);
        resume(pid)
    };
    adopted().inspect_err(|_| {
        // SAFETY: the handle is open. One that has ended already needs nothing.
        unsafe { TerminateProcess(process.as_raw_handle(), KILLED) };
    })
}

/// Resumes the only thread of a suspended process.
pub(crate) fn resume(pid: u32) -> io::Result<()> {
    // SAFETY: it only returns a handle.
    let snapshot = owned(unsafe { CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0) })?;
    let size = size_of::<THREADENTRY32>() as u32;
    let mut line = THREADENTRY32 { dwSize: size, ..THREADENTRY32::default() };
    // SAFETY: the handle is open, and the line says its own size; as below.
    let mut more = unsafe { Thread32First(snapshot.as_raw_handle(), &raw mut line) };
    let mut resumed = false;
    while more != 0 {
        if line.th32OwnerProcessID == pid {
            // SAFETY: it only returns a handle.
            let thread = owned(unsafe { OpenThread(THREAD_SUSPEND_RESUME, 0, line.th32ThreadID) })?;
            // SAFETY: the handle is open.
            resumed |= unsafe { ResumeThread(thread.as_raw_handle()) } != u32::MAX;
        }
        // SAFETY: as above.
        more = unsafe { Thread32Next(snapshot.as_raw_handle(), &raw mut line) };
    }
    if resumed { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
}

/// Returns whether this process is in any Job.
pub(crate) fn is_in_one(process: HANDLE) -> io::Result<bool> {
    let mut found = 0;
    // SAFETY: the handle is open, and the place is ours; no Job stands for any.
    check(unsafe { IsProcessInJob(process, null_mut(), &raw mut found) })?;
    Ok(found != 0)
}

pub(crate) fn members(leader: ProcessId) -> Vec<u32> {
    jobs().get(&leader).and_then(|job| job.pids().ok()).unwrap_or_default()
}

pub(crate) fn signal_group(
    leader: ProcessId,
    signal: StopSignal,
    _has_members: bool,
) -> io::Result<()> {
    match signal {
        StopSignal::Term => {
            // SAFETY: it only takes numbers. It reaches the group if that has this console; else it fails, and
            // the caller takes its next step.
            unsafe { GenerateConsoleCtrlEvent(CTRL_BREAK_EVENT, leader.pid) };
        }
        StopSignal::Kill => {
            if let Some(job) = jobs().get(&leader) {
                // SAFETY: the handle is open.
                check(unsafe { TerminateJobObject(job.0.as_raw_handle(), KILLED) })?;
            }
        }
    }
    Ok(())
}

/// Terminates this process only: the open handle keeps its pid while the start time is checked.
pub(crate) fn kill_one(id: ProcessId) -> io::Result<()> {
    let access = PROCESS_TERMINATE | PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_SYNCHRONIZE;
    let process = open_process(id.pid, access)?;
    if started_at(&process)? != id.start || has_ended(&process) {
        return Ok(());
    }
    // SAFETY: the handle is open.
    check(unsafe { TerminateProcess(process.as_raw_handle(), KILLED) })
}
