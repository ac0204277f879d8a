//! Job Objects: processes that the system itself keeps together.
//!
//! ```text
//! spawned, suspended ── adopt ──▶ in a Job of its own, running ── last process ends ──▶ forgotten
//!                                        │ this process ends, however
//!                                        └──▶ the system ends all of it
//! ```
//!
//! An agent is started suspended, so nothing of it has run before it is in its Job. Jobs nest: one in which
//! we are is no obstacle. No process can leave such a Job; when the process that holds its handle ends, so
//! does all that is in it. On Unix an agent would outlive its shim for a moment, here it does not.

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

use super::{has_ended, started_at};
use crate::handle::{check, open_process, owned};
use crate::process_table::{ProcessId, StopSignal};

/// The exit code of what is killed: what the system's own tools use.
pub(crate) const KILLED: u32 = 1;

/// The jobs of our children. One that is empty is forgotten.
static JOBS: Mutex<BTreeMap<ProcessId, Job>> = Mutex::new(BTreeMap::new());

fn jobs() -> MutexGuard<'static, BTreeMap<ProcessId, Job>> {
    JOBS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The processes that a Job holds.
#[derive(Debug, Clone, Copy)]
enum Holds {
    /// The child and all that it starts.
    All,
    One,
}

impl Holds {
    /// The limit flags of such a Job.
    fn limits(self) -> u32 {
        JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
            | match self {
                Holds::All => 0,
                // Without being asked, and for those who do ask: a Job around this one may let them go, too.
                Holds::One => JOB_OBJECT_LIMIT_SILENT_BREAKAWAY_OK | JOB_OBJECT_LIMIT_BREAKAWAY_OK,
            }
    }
}

#[derive(Debug)]
struct Job(OwnedHandle);

impl Job {
    fn new(holds: Holds) -> io::Result<Job> {
        // SAFETY: no attributes and no name are given; it only returns a handle.
        let job = Job(owned(unsafe { CreateJobObjectW(null(), null()) })?);
        let mut limits = JOBOBJECT_EXTENDED_LIMIT_INFORMATION::default();
        limits.BasicLimitInformation.LimitFlags = holds.limits();
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

    /// The pids of what runs in it.
    fn pids(&self) -> io::Result<Vec<u32>> {
        /// The two numbers that the answer begins with.
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

/// Takes care of a child that was just started suspended, with `detach_child`: puts it into a Job of its own and lets it
/// run. On an error it is ended. One that is in its Job already stays as it is.
pub(crate) fn adopt(pid: u32) -> io::Result<ProcessId> {
    adopt_with(pid, Holds::All)
}

/// Like `adopt`, for a process that must end when we do, in any way, and whose children need not.
pub(crate) fn bind(pid: u32) -> io::Result<ProcessId> {
    adopt_with(pid, Holds::One)
}

fn adopt_with(pid: u32, holds: Holds) -> io::Result<ProcessId> {
    let access = PROCESS_SET_QUOTA | PROCESS_TERMINATE | PROCESS_QUERY_LIMITED_INFORMATION;
    let process = open_process(pid, access | PROCESS_SYNCHRONIZE)?;
    adopt_open(pid, &process, holds).inspect_err(|_| {
        // SAFETY: the handle is open. One that has ended already needs nothing.
        unsafe { TerminateProcess(process.as_raw_handle(), KILLED) };
    })
}

fn adopt_open(pid: u32, process: &OwnedHandle, holds: Holds) -> io::Result<ProcessId> {
    let id = ProcessId { pid, start: started_at(process)? };
    if jobs().contains_key(&id) {
        return Ok(id);
    }
    let job = Job::new(holds)?;
    // SAFETY: both handles are open.
    check(unsafe { AssignProcessToJobObject(job.0.as_raw_handle(), process.as_raw_handle()) })?;
    let mut jobs = jobs();
    jobs.retain(|_, job| job.pids().is_ok_and(|pids| !pids.is_empty()));
    jobs.insert(id, job);
    drop(jobs);
    resume(pid)?;
    Ok(id)
}

/// Lets the threads of a process run: the only one that it has, as it was started suspended.
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

/// Returns the processes that the system itself counts to the tree of this process.
pub(crate) fn members(leader: ProcessId) -> Vec<u32> {
    jobs().get(&leader).and_then(|job| job.pids().ok()).unwrap_or_default()
}

/// Asks the group that this process has founded to end, or ends it. One that is gone is fine.
pub(crate) fn signal_group(
    leader: ProcessId,
    signal: StopSignal,
    _has_members: bool,
) -> io::Result<()> {
    match signal {
        StopSignal::Term => {
            // SAFETY: it only takes numbers. It reaches the group if that has our console; else it fails, and
            // the caller continues with the next step.
            unsafe { GenerateConsoleCtrlEvent(CTRL_BREAK_EVENT, leader.pid) };
        }
        StopSignal::Kill => {
            if let Some(job) = jobs().get(&leader) {
                terminate(job.0.as_raw_handle())?;
            }
        }
    }
    Ok(())
}

fn terminate(job: HANDLE) -> io::Result<()> {
    // SAFETY: the handle is open.
    check(unsafe { TerminateJobObject(job, KILLED) })
}

/// Ends this process if it still is this process: the handle holds its pid between the look and the end.
pub(crate) fn kill_one(id: ProcessId) -> io::Result<()> {
    let access = PROCESS_TERMINATE | PROCESS_QUERY_LIMITED_INFORMATION | PROCESS_SYNCHRONIZE;
    let process = open_process(id.pid, access)?;
    if started_at(&process)? != id.start || has_ended(&process) {
        return Ok(());
    }
    // SAFETY: the handle is open.
    check(unsafe { TerminateProcess(process.as_raw_handle(), KILLED) })
}
