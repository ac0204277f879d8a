//! One request to a push service, over TLS with the system's roots, signed with a key of this server
//! that push services check (RFC 8292). The body of the answer is ignored.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use acpd_sys::files;
use axum::body::Body;
use axum::http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HOST};
use axum::http::{Request, StatusCode, Uri};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::needs::News;
use super::seal::Recipient;
use crate::failure::Failure;
use crate::state::Server;
use crate::store::Store;
use crate::subscription::Subscription;

/// Longest time of a request.
const PATIENCE: Duration = Duration::from_secs(30);
/// Seconds for which a push service keeps a message for a browser that is away.
const KEPT: &str = "43200";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The push service has it, or never takes it.
    Taken,
    /// The browser no longer listens there.
    Gone,
    /// Another try may succeed.
    Later,
}

/// Reads the address of a push service, which has TLS.
pub(super) fn service(endpoint: &str) -> Option<Uri> {
    let address: Uri = endpoint.parse().ok()?;
    let is_plain = !address.authority()?.as_str().contains('@');
    (is_plain && address.scheme_str() == Some("https")).then_some(address)
}

pub(super) async fn post(
    server: &Arc<Server>,
    to: &Subscription,
    news: &News,
) -> Result<Outcome, Failure> {
    let unusable = || Failure::new("the subscription cannot be used");
    let service = service(&to.endpoint).ok_or_else(unusable)?;
    let authority = service.authority().ok_or_else(unusable)?.as_str();
    let sealed = Recipient::of(to).ok_or_else(unusable)?.seal(news.text.as_bytes());
    let sealed = sealed.map_err(|_| unusable())?;
    let address = server.names.address()?;
    let origin = format!("https://{authority}");
    let (signed, tls) = server
        .off(move |server| Ok((Vapid::of(&server.store)?.sign(&origin, &address)?, trusted()?)))
        .await?;
    let urgency = if news.is_urgent { "high" } else { "normal" };
    // Adds the slash that a query without a path lacks.
    let path = service.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string);
    let request = Request::post(path)
        .header(HOST, authority)
        .header(AUTHORIZATION, signed)
        .header(CONTENT_TYPE, "application/octet-stream")
        .header(CONTENT_ENCODING, "aes128gcm")
        .header("ttl", KEPT)
        .header("urgency", urgency)
        .body(Body::from(sealed))?;
    let status = timeout(PATIENCE, send(&service, tls, request)).await??;
    Ok(match status {
        StatusCode::NOT_FOUND | StatusCode::GONE => Outcome::Gone,
        StatusCode::TOO_MANY_REQUESTS => Outcome::Later,
        status if status.is_server_error() => Outcome::Later,
        _ => Outcome::Taken,
    })
}

async fn send(
    service: &Uri,
    tls: TlsConnector,
    request: Request<Body>,
) -> Result<StatusCode, Failure> {
    let (host, port) = (service.host().unwrap_or_default(), service.port_u16().unwrap_or(443));
    let name = ServerName::try_from(host.to_owned())?;
    let stream = TcpStream::connect((host, port)).await?;
    let stream = tls.connect(name, stream).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // The task ends with the answer.
    tokio::spawn(connection);
    Ok(sender.send_request(request).await?.status())
}

fn trusted() -> Result<TlsConnector, Failure> {
    let mut roots = RootCertStore::empty();
    // Unreadable roots are not trusted.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config).into())
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_push_service_has_an_address_with_tls() {
        let found = service("https://push.example:8443/send/abc?x=1").unwrap();
        assert_eq!((found.host(), found.port_u16()), (Some("push.example"), Some(8443)));
        assert_eq!(found.path_and_query().unwrap().as_str(), "/send/abc?x=1");
        for other in
            ["http://push.example/", "/send", "https://a@push.example/", "push.example", ""]
        {
            assert!(service(other).is_none(), "{other}");
        }
    }
}
