//! Everything that differs between systems: paths, private directories, files, locks, peer
//! credentials, process identity and process trees, the start of the daemon.
//!
//! Architecture invariant: this is the only crate with `unsafe` and the only one that asks
//! which system it runs on. What differs lives below the modules here, which have no such conditions in them:
//!
//! ```text
//! paths, lock, file, process, tree, startup …     the same everywhere
//!      │                    │
//!      │      unix/ windows/   modules of the same names and functions: sockets, directories, children
//!      └──────────┬─────────┘
//! os/linux.rs  os/macos.rs  os/windows/           one system each, with the same functions;
//!          os/unix.rs                             os/unix.rs is what the first two have in common
//! ```

pub mod boot;
pub mod desktop;
mod dir_error;
pub mod file;
pub mod ladder;
pub mod lock;
pub mod npm_shim;
pub mod paths;
pub mod process;
mod process_table;
mod stamp;
pub mod tree;

#[cfg_attr(unix, path = "unix/asked.rs")]
#[cfg_attr(windows, path = "windows/asked.rs")]
pub mod asked;
#[cfg_attr(unix, path = "unix/child.rs")]
#[cfg_attr(windows, path = "windows/child.rs")]
mod child;
#[cfg_attr(unix, path = "unix/dir.rs")]
#[cfg_attr(windows, path = "windows/dir.rs")]
pub mod dir;
#[cfg_attr(unix, path = "unix/files.rs")]
#[cfg_attr(windows, path = "windows/files.rs")]
mod files;
#[cfg_attr(unix, path = "unix/incoming.rs")]
#[cfg_attr(windows, path = "windows/incoming.rs")]
pub mod incoming;
#[cfg_attr(unix, path = "unix/limits.rs")]
#[cfg_attr(windows, path = "windows/limits.rs")]
pub mod limits;
#[cfg_attr(unix, path = "unix/machine.rs")]
#[cfg_attr(windows, path = "windows/machine.rs")]
pub mod machine;
#[cfg_attr(unix, path = "unix/person.rs")]
#[cfg_attr(windows, path = "windows/person.rs")]
pub mod person;
#[cfg_attr(unix, path = "unix/program.rs")]
#[cfg_attr(windows, path = "windows/program.rs")]
pub mod program;
#[cfg_attr(unix, path = "unix/signals.rs")]
#[cfg_attr(windows, path = "windows/signals.rs")]
pub mod signals;
#[cfg_attr(unix, path = "unix/socket.rs")]
#[cfg_attr(windows, path = "windows/socket.rs")]
pub mod socket;
pub mod startup;
#[cfg_attr(unix, path = "unix/startup.rs")]
#[cfg_attr(windows, path = "windows/startup.rs")]
mod startup_pipe;
#[cfg_attr(unix, path = "unix/terminal.rs")]
#[cfg_attr(windows, path = "windows/terminal.rs")]
pub mod terminal;
#[cfg_attr(unix, path = "unix/user.rs")]
#[cfg_attr(windows, path = "windows/user.rs")]
mod user;
#[cfg_attr(unix, path = "unix/wait.rs")]
#[cfg_attr(windows, path = "windows/wait.rs")]
pub mod wait;

// What has no place on Windows: descriptors that pass through an exec.
#[cfg(unix)]
#[path = "unix/inherit.rs"]
pub mod inherit;

#[cfg(windows)]
#[path = "windows/handle.rs"]
mod handle;
#[cfg_attr(target_os = "linux", path = "os/linux.rs")]
#[cfg_attr(target_os = "macos", path = "os/macos.rs")]
#[cfg_attr(windows, path = "os/windows/mod.rs")]
mod os;
#[cfg(windows)]
#[path = "windows/overlapped.rs"]
mod overlapped;
#[cfg(unix)]
#[path = "os/unix.rs"]
mod unix;
