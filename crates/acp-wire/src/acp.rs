//! The shapes of protocol v1 that acpd reads and originates.
//!
//! Reading is lenient. An optional field that is absent, `null` or of the wrong type is its
//! default. Bad items of a list are left out, a capability is supported if it is `true` or an
//! object, unknown members are ignored, and names that are only shown are clipped
//! ([`crate::bound`]). An error means that a required field is missing. Users' answers are read
//! strictly, because a malformed answer is never consent.

mod content;
mod elicitation;
mod read;
mod session;
mod write;

pub use content::*;
pub use elicitation::*;
pub(crate) use read::Reader;
pub use read::*;
pub use session::*;
pub use write::*;
