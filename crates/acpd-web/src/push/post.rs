//! One request to a push service, over TLS with the system's roots. The body of the answer is
//! ignored.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, HOST};
use axum::http::{Request, StatusCode, Uri};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::needs::{News, What};
use super::seal::Recipient;
use super::vapid::Vapid;
use crate::failure::Failure;
use crate::state::Server;
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

/// The receiver of the request.
#[derive(Debug)]
pub(super) struct Service {
    host: String,
    port: u16,
    /// Host and port, as in addresses.
    authority: String,
    path: String,
}

impl Service {
    /// The service of an `https` address.
    pub(super) fn of(endpoint: &str) -> Option<Service> {
        let address: Uri = endpoint.parse().ok()?;
        let authority = address.authority().filter(|it| !it.as_str().contains('@'))?;
        let is_secure = address.scheme_str() == Some("https");
        is_secure.then(|| Service {
            host: authority.host().to_owned(),
            port: authority.port_u16().unwrap_or(443),
            authority: authority.to_string(),
            path: address.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string),
        })
    }
}

pub(super) async fn post(
    server: &Arc<Server>,
    to: &Subscription,
    news: &News,
) -> Result<Outcome, Failure> {
    let unusable = || Failure::new("the subscription cannot be used");
    let service = Service::of(&to.endpoint).ok_or_else(unusable)?;
    let sealed = Recipient::of(to).ok_or_else(unusable)?.seal(&news.text());
    let sealed = sealed.map_err(|_| unusable())?;
    let address = server.names.address()?.to_string();
    let origin = format!("https://{}", service.authority);
    let (signed, tls) = server
        .off(move |server| Ok((Vapid::of(&server.store)?.sign(&origin, &address)?, trusted()?)))
        .await?;
    let urgency = if news.what == What::Done { "normal" } else { "high" };
    let request = Request::post(&service.path)
        .header(HOST, &service.authority)
        .header(AUTHORIZATION, signed)
        .header(CONTENT_TYPE, "application/octet-stream")
        .header(CONTENT_ENCODING, "aes128gcm")
        .header("ttl", KEPT)
        .header("urgency", urgency)
        .body(Body::from(sealed))
        .map_err(Failure::new)?;
    let status = timeout(PATIENCE, send(&service, tls, request)).await.map_err(Failure::new)??;
    Ok(match status {
        StatusCode::NOT_FOUND | StatusCode::GONE => Outcome::Gone,
        StatusCode::TOO_MANY_REQUESTS => Outcome::Later,
        status if status.is_server_error() => Outcome::Later,
        _ => Outcome::Taken,
    })
}

async fn send(
    service: &Service,
    tls: TlsConnector,
    request: Request<Body>,
) -> Result<StatusCode, Failure> {
    let name = ServerName::try_from(service.host.clone()).map_err(Failure::new)?;
    let stream =
        TcpStream::connect((service.host.as_str(), service.port)).await.map_err(Failure::new)?;
    let stream = tls.connect(name, stream).await.map_err(Failure::new)?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(Failure::new)?;
    // The task ends with the answer.
    tokio::spawn(connection);
    Ok(sender.send_request(request).await.map_err(Failure::new)?.status())
}

fn trusted() -> Result<TlsConnector, Failure> {
    let mut roots = RootCertStore::empty();
    // Unreadable roots are not trusted.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(Failure::new)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_push_service_has_an_address_with_tls() {
        let service = Service::of("https://push.example:8443/send/abc?x=1").unwrap();
        assert_eq!((service.host.as_str(), service.port), ("push.example", 8443));
        assert_eq!(
            (service.authority.as_str(), service.path.as_str()),
            ("push.example:8443", "/send/abc?x=1")
        );
        assert_eq!(Service::of("https://push.example/send").unwrap().port, 443);
        for other in
            ["http://push.example/", "/send", "https://a@push.example/", "push.example", ""]
        {
            assert!(Service::of(other).is_none(), "{other}");
        }
    }
}
