//! Named pipes of Windows, which only this user may open.

use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::os::windows::ffi::OsStrExt as _;
use std::os::windows::fs::OpenOptionsExt as _;
use std::os::windows::io::OwnedHandle;
use std::path::{Path, PathBuf};
use std::time::Instant;

use windows_sys::Win32::Storage::FileSystem::{
    FILE_FLAG_FIRST_PIPE_INSTANCE, FILE_FLAG_OVERLAPPED, PIPE_ACCESS_DUPLEX,
    SECURITY_IDENTIFICATION,
};
use windows_sys::Win32::System::Pipes::{
    CreateNamedPipeW, PIPE_READMODE_BYTE, PIPE_REJECT_REMOTE_CLIENTS, PIPE_TYPE_BYTE,
    PIPE_UNLIMITED_INSTANCES, PIPE_WAIT,
};

use crate::handle::owned;
use crate::paths::socket_at;
use crate::users::PrivateTo;

/// Buffer of each direction in bytes, as large as that of a Unix pipe.
pub(crate) const BUFFER: u32 = 64 << 10;

pub(crate) fn wide(path: &Path) -> Vec<u16> {
    path.as_os_str().encode_wide().chain([0]).collect()
}

/// Creates an instance of a pipe for one connection. The first instance fails if another process
/// has the name.
pub(crate) fn instance(path: &Path, is_first: bool) -> io::Result<OwnedHandle> {
    let first = if is_first { FILE_FLAG_FIRST_PIPE_INSTANCE } else { 0 };
    let private = PrivateTo::user()?;
    let name = wide(path);
    // SAFETY: the name ends with a zero, and the attributes live as long as the call.
    owned(unsafe {
        CreateNamedPipeW(
            name.as_ptr(),
            PIPE_ACCESS_DUPLEX | FILE_FLAG_OVERLAPPED | first,
            PIPE_TYPE_BYTE | PIPE_READMODE_BYTE | PIPE_WAIT | PIPE_REJECT_REMOTE_CLIENTS,
            PIPE_UNLIMITED_INSTANCES,
            BUFFER,
            BUFFER,
            0,
            &private.attributes(),
        )
    })
}

pub(crate) fn random_name(purpose: &str) -> PathBuf {
    let random = RandomState::new().hash_one(Instant::now());
    socket_at(&std::env::temp_dir(), &format!("{purpose}-{random:016x}"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    ToThem,
    ToUs,
}

/// A pipe with a random name: an end for overlapped calls of this process, and an end for plain
/// calls.
pub(crate) fn one_way(flow: Flow) -> io::Result<(OwnedHandle, File)> {
    let name = random_name("pipe");
    let ours = instance(&name, true)?;
    let mut options = OpenOptions::new();
    options.read(flow == Flow::ToThem).write(flow == Flow::ToUs);
    Ok((ours, options.security_qos_flags(SECURITY_IDENTIFICATION).open(&name)?))
}
