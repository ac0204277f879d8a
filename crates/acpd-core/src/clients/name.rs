use acp_wire::acp::Implementation;
use acp_wire::bound::NAME;
use acp_wire::clipped;
use acpd_api::{ClientName, Untrusted};

use crate::clients::Clients;
use crate::ids::ClientId;

pub(crate) fn name_in(info: Option<&Implementation>, place: Option<String>) -> ClientName {
    bounded(ClientName {
        name: info.map(|info| info.name.as_str()).unwrap_or_default().into(),
        title: info.and_then(|info| info.title.clone()).map(Into::into),
        place: place.map(Into::into),
    })
}

/// Clips all parts of a name, because journals repeat it.
pub(crate) fn bounded(name: ClientName) -> ClientName {
    let short = |text: Untrusted| Untrusted::from(clipped(text.raw(), NAME));
    ClientName {
        name: short(name.name),
        title: name.title.map(short),
        place: name.place.map(short),
    }
}

impl Clients {
    /// `said`: the name in this request.
    pub(crate) fn name_of(&self, client: ClientId, said: Option<ClientName>) -> Option<ClientName> {
        let known = || self.get(&client).map(|here| here.name.clone());
        let name = said.map(bounded).or_else(known)?;
        (name != ClientName::default()).then_some(name)
    }
}
