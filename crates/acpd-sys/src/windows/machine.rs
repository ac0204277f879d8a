//! Facts about this machine.

use std::env;
use std::io;
use std::path::Path;

use windows_sys::Wdk::System::SystemServices::RtlGetVersion;
use windows_sys::Win32::Storage::FileSystem::GetDiskFreeSpaceExW;
use windows_sys::Win32::System::SystemInformation::OSVERSIONINFOW;

use crate::handle::check;
use crate::os;

/// The system, its version and the processor.
pub fn system() -> Option<String> {
    let size = size_of::<OSVERSIONINFOW>() as u32;
    let mut found = OSVERSIONINFOW { dwOSVersionInfoSize: size, ..OSVERSIONINFOW::default() };
    // SAFETY: the place is ours and of that size. It cannot fail.
    unsafe { RtlGetVersion(&raw mut found) };
    let OSVERSIONINFOW {
        dwMajorVersion: major, dwMinorVersion: minor, dwBuildNumber: build, ..
    } = found;
    Some(format!("Windows {major}.{minor}.{build} {}", env::consts::ARCH))
}

/// The name of the machine.
pub fn host_name() -> Option<String> {
    env::var("COMPUTERNAME").ok()
}

/// Bytes that we may still write to the disk of this directory.
pub fn free_space(directory: &Path) -> io::Result<u64> {
    let name = os::path_of_any_length(directory)?;
    let mut free = 0;
    let none = std::ptr::null_mut();
    // SAFETY: the name ends with a zero, and the place is ours.
    check(unsafe { GetDiskFreeSpaceExW(name.as_ptr(), &raw mut free, none, none) })?;
    Ok(free)
}
