//! SIDs, and security descriptors: the access to files and pipes.

use std::io;
use std::os::windows::io::{AsRawHandle, OwnedHandle, RawHandle};
use std::ptr::null_mut;
use std::slice;
use std::sync::OnceLock;

use windows_sys::Win32::Foundation::{ERROR_SUCCESS, HANDLE, LocalFree};
use windows_sys::Win32::Security::Authorization::{
    ConvertSidToStringSidW, ConvertStringSecurityDescriptorToSecurityDescriptorW, GetSecurityInfo,
    SDDL_REVISION_1, SE_OBJECT_TYPE,
};
use windows_sys::Win32::Security::{
    ACCESS_ALLOWED_ACE, ACL, DACL_SECURITY_INFORMATION, GetAce, GetSecurityDescriptorDacl,
    GetSecurityDescriptorOwner, GetTokenInformation, INHERIT_ONLY_ACE, OWNER_SECURITY_INFORMATION,
    PROTECTED_DACL_SECURITY_INFORMATION, PSECURITY_DESCRIPTOR, PSID, SECURITY_ATTRIBUTES,
    SetKernelObjectSecurity, TOKEN_QUERY, TOKEN_USER, TokenUser,
};
use windows_sys::Win32::System::RemoteDesktop::ProcessIdToSessionId;
use windows_sys::Win32::System::Threading::{GetCurrentProcess, OpenProcessToken};

use crate::handle::{check, owned};

/// A user or a group: a SID as text, such as `S-1-5-18`.
pub type UserId = String;

/// Another user or group that may read a directory or file, or more.
pub type Openness = UserId;

const SYSTEM: &str = "S-1-5-18";
pub(crate) const ADMINISTRATORS: &str = "S-1-5-32-544";
/// Stands for the user that makes something in a directory.
const CREATOR: &str = "S-1-3-0";
const EVERYONE: &str = "S-1-1-0";

/// Copies a SID of the system.
///
/// # Safety
/// It is null or points to a whole SID.
unsafe fn copied(sid: PSID) -> io::Result<UserId> {
    let mut made = null_mut();
    // SAFETY: the caller's promise, and the place is ours. Null is refused.
    check(unsafe { ConvertSidToStringSidW(sid, &raw mut made) })?;
    // SAFETY: the call has put a text there that ends with a zero. It is freed after it was copied.
    unsafe {
        let length = (0..).take_while(|at| *made.add(*at) != 0).count();
        let text = String::from_utf16_lossy(slice::from_raw_parts(made, length));
        LocalFree(made.cast());
        Ok(text)
    }
}

pub fn may_do_anything(user: &UserId) -> bool {
    [SYSTEM, ADMINISTRATORS].contains(&user.as_str())
}

#[cfg(test)]
pub(crate) fn nobody() -> UserId {
    "S-1-0-0".to_owned()
}

pub fn own_uid() -> UserId {
    static OWN: OnceLock<UserId> = OnceLock::new();
    // SAFETY: it returns a constant, which needs not be closed.
    let own = || token_user(unsafe { GetCurrentProcess() }).expect("a token of our own");
    OWN.get_or_init(own).clone()
}

pub(crate) fn login_of(pid: u32) -> u32 {
    let mut login = 0;
    // SAFETY: the place is ours.
    unsafe { ProcessIdToSessionId(pid, &raw mut login) };
    login
}

pub(crate) fn user_of_process(process: &OwnedHandle) -> io::Result<UserId> {
    token_user(process.as_raw_handle())
}

fn token_user(process: HANDLE) -> io::Result<UserId> {
    let mut token = null_mut();
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
    unsafe { copied((*answer.as_ptr().cast::<TOKEN_USER>()).User.Sid) }
}

/// The kind of an access list's entry that lets a user in.
const ALLOWED: u8 = 0;

/// Kinds of entries that let no user in: refusals and audits.
const NEVER_ALLOWS: [u8; 5] = [1, 2, 3, 6, 7];

#[derive(Debug)]
struct Descriptor(PSECURITY_DESCRIPTOR);

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: the system allocated it for its caller, and it is freed only here.
        unsafe { LocalFree(self.0) };
    }
}

/// Parses the Security Descriptor Definition Language.
fn described(text: &str) -> io::Result<Descriptor> {
    let text: Vec<u16> = text.encode_utf16().chain([0]).collect();
    let mut made = null_mut();
    // SAFETY: the text ends with a zero, and the place is ours.
    check(unsafe {
        ConvertStringSecurityDescriptorToSecurityDescriptorW(
            text.as_ptr(),
            SDDL_REVISION_1,
            &raw mut made,
            null_mut(),
        )
    })?;
    Ok(Descriptor(made))
}

/// Security of new objects: owned by this user and closed to others, without inherited rights.
#[derive(Debug)]
pub(crate) struct PrivateTo(Descriptor);

impl PrivateTo {
    /// For a file or pipe.
    pub(crate) fn user() -> io::Result<PrivateTo> {
        PrivateTo::with("")
    }

    /// For a directory, and for all that is created in it.
    pub(crate) fn user_and_below() -> io::Result<PrivateTo> {
        PrivateTo::with("OICI")
    }

    fn with(flags: &str) -> io::Result<PrivateTo> {
        let own = own_uid();
        described(&format!("O:{own}D:P(A;{flags};GA;;;{own})")).map(PrivateTo)
    }

    /// Attributes for a call that creates an object, valid as long as `self`. Children do not
    /// inherit the handle.
    pub(crate) fn attributes(&self) -> SECURITY_ATTRIBUTES {
        SECURITY_ATTRIBUTES {
            nLength: size_of::<SECURITY_ATTRIBUTES>() as u32,
            lpSecurityDescriptor: self.0.0,
            bInheritHandle: 0,
        }
    }

    #[cfg(feature = "daemon")]
    pub(crate) fn as_ptr(&self) -> *const std::ffi::c_void {
        self.0.0
    }

    /// Replaces the access list of an open file, whose handle must have `WRITE_DAC`.
    pub(crate) fn apply(&self, file: &impl AsRawHandle) -> io::Result<()> {
        let what = DACL_SECURITY_INFORMATION | PROTECTED_DACL_SECURITY_INFORMATION;
        // SetSecurityInfo would keep inherited entries under Wine.
        // SAFETY: the handle is open, and the descriptor is whole.
        check(unsafe { SetKernelObjectSecurity(file.as_raw_handle(), what, self.0.0) })
    }
}

/// The owner of an object, and another user with a right to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) owner: UserId,
    /// One of them, except for the system and administrators.
    pub(crate) other: Option<UserId>,
}

/// Reads the access of an open file, directory or pipe, whose handle must have `READ_CONTROL`.
pub(crate) fn who_may(handle: RawHandle, kind: SE_OBJECT_TYPE) -> io::Result<Access> {
    let mut descriptor = null_mut();
    let what = OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION;
    // SAFETY: the handle is open, and the places are ours.
    let error = unsafe {
        let (none, made) = (null_mut(), &raw mut descriptor);
        GetSecurityInfo(handle, kind, what, null_mut(), null_mut(), null_mut(), none, made)
    };
    if error != ERROR_SUCCESS {
        return Err(io::Error::from_raw_os_error(error as i32));
    }
    access_of(&Descriptor(descriptor))
}

fn access_of(descriptor: &Descriptor) -> io::Result<Access> {
    let (mut owner, mut list, mut by_chance) = (null_mut(), null_mut::<ACL>(), 0);
    let mut present = 0;
    // SAFETY: the descriptor is whole, and the places are ours.
    check(unsafe { GetSecurityDescriptorOwner(descriptor.0, &raw mut owner, &raw mut by_chance) })?;
    // SAFETY: as above.
    check(unsafe {
        let (present, list) = (&raw mut present, &raw mut list);
        GetSecurityDescriptorDacl(descriptor.0, present, list, &raw mut by_chance)
    })?;
    // SAFETY: the call has put a pointer into the descriptor there, which lives.
    let owner = unsafe { copied(owner) }?;
    // Without a list every user may do everything.
    let mut other = list.is_null().then(|| EVERYONE.to_owned());
    // SAFETY: it is not null then, and leads to the head of a list in the descriptor.
    let count = if list.is_null() { 0 } else { u32::from(unsafe { (*list).AceCount }) };
    for at in 0..count {
        let mut entry = null_mut();
        // SAFETY: the list is whole, and the place is ours.
        check(unsafe { GetAce(list, at, &raw mut entry) })?;
        let entry = entry.cast::<ACCESS_ALLOWED_ACE>();
        // SAFETY: every entry begins with this head.
        let head = unsafe { (*entry).Header };
        if u32::from(head.AceFlags) & INHERIT_ONLY_ACE != 0 || NEVER_ALLOWS.contains(&head.AceType)
        {
            continue;
        }
        if head.AceType != ALLOWED {
            // Conditions of such an entry are not evaluated.
            other = other.or_else(|| Some(EVERYONE.to_owned()));
            continue;
        }
        // SAFETY: an entry of this kind ends with the SID that begins here.
        let who = unsafe { copied((&raw mut (*entry).SidStart).cast()) }?;
        if who != own_uid() && ![SYSTEM, ADMINISTRATORS, CREATOR].contains(&who.as_str()) {
            other = other.or(Some(who));
        }
    }
    Ok(Access { owner, other })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_user_is_a_sid_of_this_machine() {
        assert!(own_uid().to_string().starts_with("S-1-5-"), "{}", own_uid());
    }

    /// A SID of no user on any machine.
    const STRANGER: &str = "S-1-5-21-1-2-3-1001";

    fn access(list: &str) -> (bool, Option<String>) {
        access_with(&own_uid(), list)
    }

    fn access_with(owner: &str, list: &str) -> (bool, Option<String>) {
        let found = access_of(&described(&format!("O:{owner}D:{list}")).unwrap()).unwrap();
        (found.owner == own_uid(), found.other)
    }

    #[test]
    fn private_objects_are_closed_to_others() {
        for private in [PrivateTo::user().unwrap(), PrivateTo::user_and_below().unwrap()] {
            assert_eq!(access_of(&private.0).unwrap(), Access { owner: own_uid(), other: None });
        }
    }

    #[test]
    fn foreign_owners_and_foreign_rights_are_found() {
        let own = own_uid();
        let ours = format!("(A;;GA;;;{own})");
        let ours_and = |more: &str| access(&format!("P{ours}{more}"));
        let stranger = |rights: &str| format!("(A;;{rights};;;{STRANGER})");
        // This user, and those that may do anything anyway.
        assert_eq!(ours_and(""), (true, None));
        assert_eq!(ours_and("(A;;GA;;;SY)(A;;GA;;;BA)(A;OICI;GA;;;CO)"), (true, None));
        // Refusals, and rights for what is below alone.
        assert_eq!(ours_and(&format!("(D;;GA;;;{STRANGER})(D;;GA;;;WD)")), (true, None));
        assert_eq!(ours_and("(A;OICIIO;GA;;;WD)"), (true, None));
        // An empty list lets no user in.
        assert_eq!(access("P"), (true, None));

        assert_eq!(access_with(STRANGER, &ours).0, false);
        for rights in ["GR", "GW", "GA", "RC", "0x1"] {
            assert_eq!(ours_and(&stranger(rights)), (true, Some(STRANGER.to_owned())), "{rights}");
        }
        // Everyone, authenticated users, users, network, anonymous.
        for (group, sid) in [
            ("WD", "S-1-1-0"),
            ("AU", "S-1-5-11"),
            ("BU", "S-1-5-32-545"),
            ("NU", "S-1-5-2"),
            ("AN", "S-1-5-7"),
        ] {
            let found = ours_and(&format!("(A;;GR;;;{group})"));
            assert_eq!(found, (true, Some(sid.to_owned())), "{group}");
        }
        // A refusal before it does not count: it may be about other rights.
        let found = ours_and(&format!("(D;;GW;;;{STRANGER}){}", stranger("GR")));
        assert_eq!(found, (true, Some(STRANGER.to_owned())));
    }

    #[test]
    fn an_absent_list_lets_everyone_in() {
        let no_list = described(&format!("O:{}", own_uid())).unwrap();
        assert_eq!(access_of(&no_list).unwrap().other.as_deref(), Some(EVERYONE));
    }
}
