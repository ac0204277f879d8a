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

mod ask;
pub mod boot;
pub mod desktop;
mod dir_error;
pub mod file;
pub mod ladder;
pub mod lock;
#[cfg_attr(unix, path = "unix/npm.rs")]
#[cfg_attr(windows, path = "windows/npm.rs")]
pub mod npm;
pub mod npm_shim;
pub mod paths;
pub mod process;
mod process_table;
mod stamp;
mod told;
pub mod tree;

#[cfg_attr(unix, path = "unix/apart.rs")]
#[cfg_attr(windows, path = "windows/apart.rs")]
pub mod apart;
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
#[cfg_attr(unix, path = "unix/hints.rs")]
#[cfg_attr(windows, path = "windows/hints.rs")]
pub mod hints;
#[cfg_attr(unix, path = "unix/incoming.rs")]
#[cfg_attr(windows, path = "windows/incoming.rs")]
pub mod incoming;
#[cfg_attr(unix, path = "unix/keeper.rs")]
#[cfg_attr(windows, path = "windows/keeper.rs")]
pub mod keeper;
#[cfg_attr(unix, path = "unix/limits.rs")]
#[cfg_attr(windows, path = "windows/limits.rs")]
pub mod limits;
#[cfg_attr(unix, path = "unix/login_shell.rs")]
#[cfg_attr(windows, path = "windows/login_shell.rs")]
pub mod login_shell;
#[cfg_attr(unix, path = "unix/machine.rs")]
#[cfg_attr(windows, path = "windows/machine.rs")]
pub mod machine;
#[cfg_attr(unix, path = "unix/nudges.rs")]
#[cfg_attr(windows, path = "windows/nudges.rs")]
pub mod nudges;
#[cfg_attr(unix, path = "unix/person.rs")]
#[cfg_attr(windows, path = "windows/person.rs")]
pub mod person;
#[cfg_attr(unix, path = "unix/program.rs")]
#[cfg_attr(windows, path = "windows/program.rs")]
pub mod program;
#[cfg_attr(unix, path = "unix/screen.rs")]
#[cfg_attr(windows, path = "windows/screen.rs")]
pub mod screen;
#[cfg_attr(unix, path = "unix/signals.rs")]
#[cfg_attr(windows, path = "windows/signals.rs")]
pub mod signals;
#[cfg_attr(unix, path = "unix/socket.rs")]
#[cfg_attr(windows, path = "windows/socket.rs")]
pub mod socket;
pub mod startup;

// For programs with a runtime.
#[cfg(feature = "runtime")]
#[cfg_attr(unix, path = "unix/halves.rs")]
#[cfg_attr(windows, path = "windows/halves.rs")]
pub mod halves;

// For the daemon alone.
#[cfg(feature = "daemon")]
#[cfg_attr(unix, path = "unix/door.rs")]
#[cfg_attr(windows, path = "windows/door.rs")]
pub mod door;
#[cfg(feature = "daemon")]
mod news;
#[cfg(feature = "daemon")]
#[cfg_attr(unix, path = "unix/pipes.rs")]
#[cfg_attr(windows, path = "windows/pipes.rs")]
pub mod pipes;
#[cfg(feature = "daemon")]
#[cfg_attr(unix, path = "unix/requests.rs")]
#[cfg_attr(windows, path = "windows/requests.rs")]
pub mod requests;
#[cfg(feature = "daemon")]
#[cfg_attr(unix, path = "unix/service.rs")]
#[cfg_attr(windows, path = "windows/service.rs")]
pub mod service;
#[cfg(feature = "daemon")]
#[cfg_attr(unix, path = "unix/successor.rs")]
#[cfg_attr(windows, path = "windows/successor.rs")]
pub mod successor;

#[cfg_attr(unix, path = "unix/startup.rs")]
#[cfg_attr(windows, path = "windows/startup.rs")]
mod startup_pipe;
#[cfg_attr(unix, path = "unix/terminal.rs")]
#[cfg_attr(windows, path = "windows/terminal.rs")]
pub mod terminal;
#[cfg_attr(unix, path = "unix/user.rs")]
#[cfg_attr(windows, path = "windows/user.rs")]
mod user;
#[cfg_attr(unix, path = "unix/uv.rs")]
#[cfg_attr(windows, path = "windows/uv.rs")]
pub mod uv;
#[cfg_attr(unix, path = "unix/wait.rs")]
#[cfg_attr(windows, path = "windows/wait.rs")]
pub mod wait;

// Descriptors that pass through an exec. Windows has none.
#[cfg(unix)]
#[path = "unix/inherit.rs"]
pub mod inherit;

#[cfg(windows)]
#[path = "windows/console.rs"]
mod console;
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
