use acpd_api::ClientName;

use crate::ids::ClientId;
use crate::input::View;

/// A connected client that may decide for a person, so agents may ask it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Responder<'a> {
    pub(crate) client: ClientId,
    pub(crate) name: &'a ClientName,
    pub(crate) view: &'a View,
}
