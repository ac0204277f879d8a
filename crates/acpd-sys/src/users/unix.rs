pub type UserId = u32;

/// Permission bits that open a directory or file to others.
pub type Openness = u32;

pub fn own_uid() -> UserId {
    nix::unistd::geteuid().as_raw()
}

/// Returns whether this user may do anything on this machine anyway.
pub fn may_do_anything(user: &UserId) -> bool {
    *user == 0
}

#[cfg(test)]
pub(crate) fn nobody() -> UserId {
    65534
}
