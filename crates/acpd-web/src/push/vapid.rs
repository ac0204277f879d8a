//! The sender of a push: a key of this server, which push services check (RFC 8292).

use std::fmt;
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use acpd_sys::files;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::store::Store;

const LIFE: Duration = Duration::from_hours(12);
/// Most bytes of a key file.
const LONGEST: u64 = 4 << 10;

pub(super) struct Vapid(EcdsaKeyPair);

impl Vapid {
    /// Reads the key, or makes one the first time. Browsers that subscribed with another key get no
    /// pushes.
    pub(super) fn of(store: &Store) -> Result<Vapid, Failure> {
        let path = store.folder().join("push.key");
        if !path.exists() {
            let lock = store.lock()?;
            if !path.exists() {
                make(&path)?;
            }
            drop(lock);
        }
        let mut bytes = Vec::new();
        let failed = |error: &dyn fmt::Display| {
            Failure::new(format!("cannot read `{}`: {error}", path.display()))
                .hint("remove that file, and turn notifications off and on in each browser")
        };
        let key = files::secret_file(&path)?;
        std::io::Read::read_to_end(&mut std::io::Read::take(key, LONGEST), &mut bytes)
            .map_err(|error| failed(&error))?;
        let random = SystemRandom::new();
        EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &bytes, &random)
            .map(Vapid)
            .map_err(|error| failed(&error))
    }

    /// The public key in the form that browsers take.
    pub(super) fn public(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.0.public_key())
    }

    /// Returns the header `Authorization` for a push service; `address` is the contact of this
    /// server.
    pub(super) fn sign(&self, service: &str, address: &str) -> Result<String, Failure> {
        let until = SystemTime::now() + LIFE;
        let until = until.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let encode = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let head = encode(json!({"typ": "JWT", "alg": "ES256"}));
        let claims = encode(json!({"aud": service, "exp": until, "sub": address}));
        let said = format!("{head}.{claims}");
        let signed = self.0.sign(&SystemRandom::new(), said.as_bytes());
        let signed = signed.map_err(|_| Failure::new("the system gives no random bits"))?;
        Ok(format!("vapid t={said}.{}, k={}", URL_SAFE_NO_PAD.encode(signed), self.public()))
    }
}

fn make(path: &Path) -> Result<(), Failure> {
    let key = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
    let key = key.map_err(|_| Failure::new("the system gives no random bits"))?;
    Ok(files::put_secret(path, key.as_ref())?)
}
