//! Hashes that are stored or sent, so they must never change.

/// FNV-1a of the trimmed text.
pub(crate) fn hash(text: &str) -> u64 {
    let bytes = text.trim().bytes();
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// The number is the same in each daemon and does not reveal the token.
pub(crate) fn number_of(token: &str) -> u64 {
    hash(token) | 1
}
