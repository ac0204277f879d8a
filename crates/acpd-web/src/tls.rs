//! The configured certificate and its names.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ServerConfig, version};
use webpki::EndEntityCert;

use crate::failure::Failure;

/// Most bytes of the file of a certificate or key.
const LONGEST: u64 = 1 << 20;

#[derive(Debug, Clone)]
pub(crate) struct Certificate(CertificateDer<'static>);

impl Certificate {
    /// Returns whether the certificate has this name or address, as browsers see it.
    pub(crate) fn is_for(&self, name: &str) -> bool {
        let name = name.strip_prefix('[').and_then(|name| name.strip_suffix(']')).unwrap_or(name);
        let Ok(name) = ServerName::try_from(name) else { return false };
        EndEntityCert::try_from(&self.0)
            .is_ok_and(|own| own.verify_is_valid_for_subject_name(&name).is_ok())
    }

    /// A name of the certificate, else this address, else a loopback name.
    pub(crate) fn name(&self, at: IpAddr) -> Option<String> {
        let own = EndEntityCert::try_from(&self.0).ok()?;
        let mut names = own.valid_dns_names();
        if let Some(name) = names.find(|name| !name.starts_with('*')) {
            return Some(name.to_ascii_lowercase());
        }
        let address = if at.is_ipv6() { format!("[{at}]") } else { at.to_string() };
        [address.as_str(), "localhost", "127.0.0.1"]
            .into_iter()
            .find(|name| self.is_for(name))
            .map(str::to_owned)
    }
}

/// Reads a certificate with its chain, and its key, both in PEM.
pub(crate) fn load(chain: &Path, key: &Path) -> Result<(TlsAcceptor, Certificate), Failure> {
    let certificates: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(&read(chain)?)
        .collect::<Result<_, _>>()
        .map_err(|error| unusable(chain, &error))?;
    let Some(own) = certificates.first().cloned() else {
        return Err(Failure::new(format!("there is no certificate in `{}`", chain.display())));
    };
    EndEntityCert::try_from(&own).map_err(|error| unusable(chain, &error))?;
    let key_der =
        PrivateKeyDer::from_pem_slice(&read(key)?).map_err(|error| unusable(key, &error))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&version::TLS13])
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(certificates, key_der))
        .map_err(|error| unusable(key, &error))?;
    Ok((Arc::new(config).into(), Certificate(own)))
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    acpd_sys::files::read(path, LONGEST)
        .map_err(|error| Failure::about(format!("cannot read `{}`", path.display()), &error))
}

fn unusable(path: &Path, error: &dyn std::error::Error) -> Failure {
    Failure::about(format!("`{}` cannot be used", path.display()), error)
        .hint("give the certificate with its chain, and its key, both as PEM")
}
