use std::env;
use std::io;
use std::path::Path;
use std::time::Duration;

use windows_sys::Wdk::System::SystemServices::RtlGetVersion;
use windows_sys::Win32::Storage::FileSystem::GetDiskFreeSpaceExW;
use windows_sys::Win32::System::SystemInformation::{GetTickCount64, OSVERSIONINFOW};

use crate::files::path_of_any_length;
use crate::handle::check;

pub const AWAKE: &[&str] = &[];
pub const OPENER: &str = "explorer";

pub fn notification(_title: &str, _body: &str) -> Option<Vec<String>> {
    None
}

pub fn since_boot() -> Duration {
    // SAFETY: it only returns a number.
    Duration::from_millis(unsafe { GetTickCount64() })
}

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

pub fn host_name() -> Option<String> {
    env::var("COMPUTERNAME").ok()
}

pub fn free_space(directory: &Path) -> io::Result<u64> {
    let name = path_of_any_length(directory)?;
    let mut free = 0;
    let none = std::ptr::null_mut();
    // SAFETY: the name ends with a zero, and the place is ours.
    check(unsafe { GetDiskFreeSpaceExW(name.as_ptr(), &raw mut free, none, none) })?;
    Ok(free)
}
