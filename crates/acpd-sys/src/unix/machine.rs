//! Facts about this machine.

use std::io;
use std::path::Path;

use nix::sys::statvfs::statvfs;
use nix::sys::utsname::uname;

/// The system, its version and the processor.
pub fn system() -> Option<String> {
    let system = uname().ok()?;
    let parts = [system.sysname(), system.release(), system.machine()];
    Some(parts.map(|part| part.to_string_lossy().into_owned()).join(" "))
}

/// The name of the machine.
pub fn host_name() -> Option<String> {
    nix::unistd::gethostname().ok()?.into_string().ok()
}

/// Bytes that we may still write to the disk of this directory.
pub fn free_space(directory: &Path) -> io::Result<u64> {
    let disk = statvfs(directory)?;
    // Systems differ in the width of these numbers.
    let free = u128::from(disk.blocks_available()) * u128::from(disk.fragment_size());
    Ok(u64::try_from(free).unwrap_or(u64::MAX))
}
