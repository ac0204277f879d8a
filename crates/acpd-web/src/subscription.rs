use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};

/// The push subscription of a browser, as it writes it (`PushSubscription.toJSON`).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Subscription {
    /// The address at its push service. Anyone with the address and this server's key can send to
    /// it.
    pub(crate) endpoint: String,
    keys: Keys,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Keys {
    p256dh: String,
    auth: String,
}

impl Subscription {
    /// The public key and the secret of the browser; `None` if they are malformed.
    pub(crate) fn keys(&self) -> Option<(Vec<u8>, Vec<u8>)> {
        let decode = |text: &str| URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok();
        Some((decode(&self.keys.p256dh)?, decode(&self.keys.auth)?))
    }
}
