//! Users, identified by SIDs.

use std::fmt;
use std::io;
use std::os::windows::io::{AsRawHandle as _, OwnedHandle};
use std::sync::OnceLock;

use windows_sys::Win32::Foundation::HANDLE;
use windows_sys::Win32::Security::{
    GetLengthSid, GetTokenInformation, IsValidSid, PSID, TOKEN_QUERY, TOKEN_USER, TokenUser,
};
use windows_sys::Win32::System::Threading::{GetCurrentProcess, OpenProcessToken};

use crate::handle::{check, owned};

/// The longest SID: a head and fifteen numbers.
const LONGEST: usize = 8 + 15 * 4;

/// A user or a group: a SID, as the system has it in memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UserId {
    length: u8,
    bytes: [u8; LONGEST],
}

/// Another user to whom a directory or file is open: one who may read it or more.
pub type Openness = UserId;

impl UserId {
    pub(crate) const SYSTEM: UserId = UserId::known(5, &[18]);
    /// Users who may do anything on this machine anyway.
    pub(crate) const ADMINISTRATORS: UserId = UserId::known(5, &[32, 544]);
    /// Stands for who makes something in a directory.
    pub(crate) const CREATOR: UserId = UserId::known(3, &[0]);
    /// The users that an absent access list lets in.
    pub(crate) const EVERYONE: UserId = UserId::known(1, &[0]);

    const fn known(authority: u8, numbers: &[u32]) -> UserId {
        let mut bytes = [0; LONGEST];
        bytes[0] = 1;
        bytes[1] = numbers.len() as u8;
        bytes[7] = authority;
        let mut at = 0;
        while at < numbers.len() {
            let number = numbers[at].to_le_bytes();
            let mut byte = 0;
            while byte < 4 {
                bytes[8 + at * 4 + byte] = number[byte];
                byte += 1;
            }
            at += 1;
        }
        UserId { length: 8 + numbers.len() as u8 * 4, bytes }
    }

    /// Copies a SID of the system's.
    ///
    /// # Safety
    /// It is null or points to a whole SID.
    pub(crate) unsafe fn copied(sid: PSID) -> io::Result<UserId> {
        // SAFETY: the caller's promise; both calls only read.
        let length = unsafe {
            if sid.is_null() || IsValidSid(sid) == 0 { 0 } else { GetLengthSid(sid) as usize }
        };
        let mut bytes = [0; LONGEST];
        if length == 0 || length > bytes.len() {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "not a SID"));
        }
        // SAFETY: a whole SID has as many bytes as the system has said.
        bytes[..length].copy_from_slice(unsafe { std::slice::from_raw_parts(sid.cast(), length) });
        Ok(UserId { length: length as u8, bytes })
    }
}

impl fmt::Display for UserId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let authority = self.bytes[2..8].iter().fold(0, |all, byte| all << 8 | u64::from(*byte));
        write!(f, "S-{}-{authority}", self.bytes[0])?;
        for number in self.bytes[8..usize::from(self.length)].chunks_exact(4) {
            let number = number.try_into().map_or(0, u32::from_le_bytes);
            write!(f, "-{number}")?;
        }
        Ok(())
    }
}

impl fmt::Debug for UserId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Returns whether this user may do anything on this machine anyway.
pub fn may_do_anything(user: UserId) -> bool {
    [UserId::SYSTEM, UserId::ADMINISTRATORS].contains(&user)
}

/// A SID that belongs to no user.
#[cfg(test)]
pub(crate) fn nobody() -> UserId {
    UserId::known(0, &[0])
}

/// The user of this process. Who has none can neither be told from others nor told to others.
pub(crate) fn own_user() -> UserId {
    static OWN: OnceLock<UserId> = OnceLock::new();
    // SAFETY: it returns a constant, which needs not be closed.
    *OWN.get_or_init(|| token_user(unsafe { GetCurrentProcess() }).expect("a token of our own"))
}

pub(crate) fn user_of_process(process: &OwnedHandle) -> io::Result<UserId> {
    token_user(process.as_raw_handle())
}

/// The user of the token of a process.
fn token_user(process: HANDLE) -> io::Result<UserId> {
    let mut token = std::ptr::null_mut();
    // SAFETY: the handle is open, and the place is ours.
    check(unsafe { OpenProcessToken(process, TOKEN_QUERY, &raw mut token) })?;
    let token = owned(token)?;
    // Aligned for the struct that comes first; the SID is behind it.
    let mut answer = [0_u64; 32];
    let mut length = 0;
    // SAFETY: the handle is open; the place is ours and of that size.
    check(unsafe {
        let (place, size) = (answer.as_mut_ptr().cast(), size_of_val(&answer) as u32);
        GetTokenInformation(token.as_raw_handle(), TokenUser, place, size, &raw mut length)
    })?;
    // SAFETY: the call has put the struct there, whose pointer leads to a SID in the same place.
    unsafe { UserId::copied((*answer.as_ptr().cast::<TOKEN_USER>()).User.Sid) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sid_is_written_as_everybody_writes_it() {
        assert_eq!(UserId::SYSTEM.to_string(), "S-1-5-18");
        assert_eq!(UserId::ADMINISTRATORS.to_string(), "S-1-5-32-544");
        assert_eq!(UserId::EVERYONE.to_string(), "S-1-1-0");
        assert!(own_user().to_string().starts_with("S-1-5-"), "{}", own_user());
    }
}
