//! The operating system: everything that differs between Linux, macOS and Windows.
//!
//! | module | concern |
//! | --- | --- |
//! | [`paths`] | where acpd keeps its files and sockets |
//! | [`files`] | private files and directories, bounded reads, replacement |
//! | [`users`] | users, and the user at the other end of a connection |
//! | [`lock`] | locks that end with their holder |
//! | [`process`] | identity, start and end of processes, and the process table |
//! | [`tree`] | all processes of an agent |
//! | [`keeper`] | a process to which the orphans of a command go (Linux) |
//! | [`ladder`] | the steps of a stop |
//! | [`signals`] | signals, and events of a console |
//! | [`wait`] | waits for pipes, connections and signals at once |
//! | [`socket`] | sockets of the daemon and of shims, for blocking programs |
//! | `runtime` | the same on tokio (feature `runtime`) |
//! | [`startup`] | processes that outlive this one; the report of a daemon that starts |
//! | `handover` | service manager, and the successor of a daemon (feature `daemon`) |
//! | [`limits`] | resource limits and memory of this process |
//! | [`terminal`] | modes of the terminal |
//! | [`programs`] | programs of npm and uv; editor, pager and login shell |
//! | [`machine`] | the machine and its desktop |
//!
//! A concern that differs has its common part in `mod.rs`, and the same public functions in
//! `unix.rs` and `windows.rs`, documented in `unix.rs`. Linux and macOS differ inside `unix.rs`;
//! only the process table has a file for each. `handle` and `named_pipe` are the basics of Windows:
//!
//! | Unix | Windows | in |
//! | --- | --- | --- |
//! | user id | the SID of the process's token | `users` |
//! | mode 0700 | a protected access list with one entry, for that SID | `users`, `files` |
//! | Unix socket | a named pipe, owned by the user and closed to others | `named_pipe`, `socket` |
//! | process group, subreaper | a Job Object that ends with its last handle | `process::jobs` |
//! | `SIGTERM` to the group | `CTRL_BREAK` to the console's group | `process::jobs` |
//! | `SIGKILL` | `TerminateJobObject`, `TerminateProcess` | `process::jobs` |
//! | zombie | an open handle keeps the pid | `process` |
//! | `flock` | `LockFileEx` behind the end of the file, so that the file stays readable | `lock` |
//! | fork twice, `setsid` | no console, a group of its own, out of the caller's Job | `startup` |
//!
//! Architecture invariant: this is the only crate with `unsafe`, and the only one that asks which
//! system it runs on. `unsafe` is one call of the system, whose arguments outlive the call. Handles
//! and descriptors are owned from the call that makes them on.

pub mod files;
#[cfg(feature = "daemon")]
pub mod handover;
pub mod keeper;
pub mod ladder;
pub mod limits;
pub mod lock;
pub mod machine;
pub mod paths;
pub mod process;
pub mod programs;
#[cfg(feature = "runtime")]
pub mod runtime;
pub mod signals;
pub mod socket;
pub mod startup;
pub mod terminal;
pub mod testing;
pub mod tree;
pub mod users;
pub mod wait;

#[cfg(windows)]
mod handle;
#[cfg(windows)]
mod named_pipe;
