//! Access to files and pipes: security descriptors, made and read.

use std::io;
use std::os::windows::io::{AsRawHandle, RawHandle};
use std::ptr::null_mut;

use windows_sys::Win32::Foundation::{ERROR_SUCCESS, LocalFree};
use windows_sys::Win32::Security::Authorization::{
    ConvertStringSecurityDescriptorToSecurityDescriptorW, GetSecurityInfo, SDDL_REVISION_1,
    SE_OBJECT_TYPE,
};
use windows_sys::Win32::Security::{
    ACCESS_ALLOWED_ACE, ACL, DACL_SECURITY_INFORMATION, GetAce, GetSecurityDescriptorDacl,
    GetSecurityDescriptorOwner, INHERIT_ONLY_ACE, OWNER_SECURITY_INFORMATION,
    PROTECTED_DACL_SECURITY_INFORMATION, PSECURITY_DESCRIPTOR, SECURITY_ATTRIBUTES,
    SetKernelObjectSecurity,
};

use crate::handle::check;
use crate::user::{UserId, own_user};

/// The kind of an entry that grants access.
const ALLOWED: u8 = 0;

/// The kinds that never grant access: they deny it, or audit it.
const NEVER_ALLOWS: [u8; 5] = [1, 2, 3, 6, 7];

/// A descriptor in the system's memory, which is given back when it is dropped.
#[derive(Debug)]
struct Descriptor(PSECURITY_DESCRIPTOR);

impl Drop for Descriptor {
    fn drop(&mut self) {
        // SAFETY: the system has made it for its caller to free, and nothing else frees it.
        unsafe { LocalFree(self.0) };
    }
}

/// The descriptor that this text describes.
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

/// The descriptor of an object of the user alone, without the entries that its directory hands down.
#[derive(Debug)]
pub(crate) struct PrivateTo(Descriptor);

impl PrivateTo {
    /// For a file or a pipe.
    pub(crate) fn user() -> io::Result<PrivateTo> {
        PrivateTo::with("")
    }

    /// For a directory, and for what will be made in it.
    pub(crate) fn user_and_below() -> io::Result<PrivateTo> {
        PrivateTo::with("OICI")
    }

    fn with(flags: &str) -> io::Result<PrivateTo> {
        let own = own_user();
        described(&format!("O:{own}D:P(A;{flags};GA;;;{own})")).map(PrivateTo)
    }

    /// Attributes for a call that makes something; valid as long as the descriptor. No child inherits it.
    pub(crate) fn attributes(&self) -> SECURITY_ATTRIBUTES {
        SECURITY_ATTRIBUTES {
            nLength: size_of::<SECURITY_ATTRIBUTES>() as u32,
            lpSecurityDescriptor: self.0.0,
            bInheritHandle: 0,
        }
    }

    /// The descriptor itself, which lives as long as this.
    #[cfg(feature = "daemon")]
    pub(crate) fn as_ptr(&self) -> *const std::ffi::c_void {
        self.0.0
    }

    /// Gives an open file this list of who may do what, and nothing that its directory would hand down; its handle must
    /// have `WRITE_DAC`.
    pub(crate) fn apply(&self, file: &impl AsRawHandle) -> io::Result<()> {
        let what = DACL_SECURITY_INFORMATION | PROTECTED_DACL_SECURITY_INFORMATION;
        // The library's own call for files (SetSecurityInfo) does not keep what is handed down away under Wine.
        // SAFETY: the handle is open, and the descriptor is whole.
        check(unsafe { SetKernelObjectSecurity(file.as_raw_handle(), what, self.0.0) })
    }
}

fn result(error: u32) -> io::Result<()> {
    if error == ERROR_SUCCESS { Ok(()) } else { Err(io::Error::from_raw_os_error(error as i32)) }
}

/// The owner of an object, and another user with any access to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Access {
    pub(crate) owner: UserId,
    /// One of those who may, if it is neither the owner nor the system nor an administrator.
    pub(crate) other: Option<UserId>,
}

/// Reads the access to an open file, directory or pipe; its handle must have `READ_CONTROL`.
pub(crate) fn who_may(handle: RawHandle, kind: SE_OBJECT_TYPE) -> io::Result<Access> {
    let mut descriptor = null_mut();
    let what = OWNER_SECURITY_INFORMATION | DACL_SECURITY_INFORMATION;
    // SAFETY: the handle is open, and the places are ours.
    result(unsafe {
        let (none, made) = (null_mut(), &raw mut descriptor);
        GetSecurityInfo(handle, kind, what, null_mut(), null_mut(), null_mut(), none, made)
    })?;
    access_of(&Descriptor(descriptor))
}

/// Reads the access from a descriptor.
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
    let owner = unsafe { UserId::copied(owner) }?;
    // Without a list every user may do everything.
    let mut other = list.is_null().then_some(UserId::EVERYONE);
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
            // The users and the conditions of such an entry are not examined.
            other = other.or(Some(UserId::EVERYONE));
            continue;
        }
        // SAFETY: an entry of this kind ends with the SID that begins here.
        let who = unsafe { UserId::copied((&raw mut (*entry).SidStart).cast()) }?;
        let known = [own_user(), UserId::SYSTEM, UserId::ADMINISTRATORS, UserId::CREATOR];
        if !known.contains(&who) {
            other = other.or(Some(who));
        }
    }
    Ok(Access { owner, other })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A SID that belongs to no user on any machine.
    const STRANGER: &str = "S-1-5-21-1-2-3-1001";

    /// The owner, and one of the others who may, of this access list.
    fn access(list: &str) -> (bool, Option<String>) {
        access_with(&own_user().to_string(), list)
    }

    fn access_with(owner: &str, list: &str) -> (bool, Option<String>) {
        let found = access_of(&described(&format!("O:{owner}D:{list}")).unwrap()).unwrap();
        (found.owner == own_user(), found.other.map(|other| other.to_string()))
    }

    #[test]
    fn what_is_made_private_is_ours_and_nobody_elses() {
        for private in [PrivateTo::user().unwrap(), PrivateTo::user_and_below().unwrap()] {
            assert_eq!(access_of(&private.0).unwrap(), Access { owner: own_user(), other: None });
        }
    }

    #[test]
    fn strangers_are_seen_who_own_something_or_may_do_something_with_it() {
        let own = own_user();
        let ours = format!("(A;;GA;;;{own})");
        let ours_and = |more: &str| access(&format!("P{ours}{more}"));
        let stranger = |rights: &str| format!("(A;;{rights};;;{STRANGER})");
        // Only we, and accounts that may do anything anyway.
        assert_eq!(ours_and(""), (true, None));
        assert_eq!(ours_and("(A;;GA;;;SY)(A;;GA;;;BA)(A;OICI;GA;;;CO)"), (true, None));
        // Denied users, and users with access only to the entries below.
        assert_eq!(ours_and(&format!("(D;;GA;;;{STRANGER})(D;;GA;;;WD)")), (true, None));
        assert_eq!(ours_and("(A;OICIIO;GA;;;WD)"), (true, None));
        // An empty list grants no access.
        assert_eq!(access("P"), (true, None));

        assert_eq!(access_with(STRANGER, &ours).0, false);
        for rights in ["GR", "GW", "GA", "RC", "0x1"] {
            assert_eq!(ours_and(&stranger(rights)), (true, Some(STRANGER.to_owned())), "{rights}");
        }
        // Everyone, logged-in users, users, and all of them over the network.
        for (group, sid) in [
            ("WD", "S-1-1-0"),
            ("AU", "S-1-5-11"),
            ("BU", "S-1-5-32-545"),
            ("NU", "S-1-5-2"),
            ("AN", "S-1-5-7"),
        ] {
            let told = ours_and(&format!("(A;;GR;;;{group})"));
            assert_eq!(told, (true, Some(sid.to_owned())), "{group}");
        }
        // A refusal before it does not count: it may be about other rights.
        let told = ours_and(&format!("(D;;GW;;;{STRANGER}){}", stranger("GR")));
        assert_eq!(told, (true, Some(STRANGER.to_owned())));
    }

    #[test]
    fn without_a_list_everybody_may_do_everything() {
        let no_list = described(&format!("O:{}", own_user())).unwrap();
        assert_eq!(access_of(&no_list).unwrap().other, Some(UserId::EVERYONE));
    }
}
