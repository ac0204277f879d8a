//! Names under which browsers reach the server.
//!
//! A page of a stranger can make its own name lead to this machine (DNS rebinding). The browser
//! then takes both for one origin, and only the name in the request shows the difference. So
//! exactly these names are accepted.

use std::net::SocketAddr;

use axum::http::uri::Authority;

use crate::failure::Failure;
use crate::tls::Certificate;

/// Reads the public address of a proxy, `https://NAME` or `https://NAME:PORT`. Returns its host in
/// the form of the header `Host`.
pub fn proxy_host(address: &str) -> Result<String, &'static str> {
    const WRONG: &str = "give the address that browsers open, such as https://acpd.example.net";
    let host = address.strip_prefix("https://").ok_or(WRONG)?;
    let host = host.strip_suffix('/').unwrap_or(host).to_ascii_lowercase();
    let authority: Authority = host.parse().map_err(|_| WRONG)?;
    if authority.as_str().contains('@') || authority.host().is_empty() {
        return Err(WRONG);
    }
    Ok(host.strip_suffix(":443").map(str::to_owned).unwrap_or(host))
}

#[derive(Debug)]
pub(crate) enum Names {
    /// This machine only, without TLS.
    Loopback(SocketAddr),
    /// The names of the certificate.
    Certificate(Certificate, SocketAddr),
    /// The host of a proxy.
    Behind(String),
}

impl Names {
    /// The origin of pages from this host, as browsers write it, if it is one of ours.
    pub(crate) fn origin_of(&self, host: &str) -> Option<String> {
        let host = host.to_ascii_lowercase();
        let is_ours = match self {
            Names::Loopback(at) => {
                let names = ["localhost", "127.0.0.1", "[::1]"];
                names.iter().any(|name| with_port(name, at.port(), 80) == host)
                    || own_host(*at) == host
            }
            Names::Certificate(certificate, at) => {
                let authority = host.parse::<Authority>().ok()?;
                let name = authority.host();
                with_port(name, at.port(), 443) == host && certificate.is_for(name)
            }
            Names::Behind(proxy) => *proxy == host,
        };
        is_ours.then(|| self.origin(&host))
    }

    pub(crate) fn is_secure(&self) -> bool {
        !matches!(self, Names::Loopback(_))
    }

    pub(crate) fn address(&self) -> Result<String, Failure> {
        let host = match self {
            Names::Loopback(at) => own_host(*at),
            Names::Certificate(certificate, at) => {
                let name = certificate.name(at.ip()).ok_or_else(|| {
                    Failure::new("the certificate is for no name that can be opened")
                        .hint("use one with the name of this machine in it")
                })?;
                with_port(&name, at.port(), 443)
            }
            Names::Behind(proxy) => proxy.clone(),
        };
        Ok(self.origin(&host))
    }

    fn origin(&self, host: &str) -> String {
        format!("{}://{host}", if self.is_secure() { "https" } else { "http" })
    }
}

/// An address without TLS, as browsers write it.
fn own_host(at: SocketAddr) -> String {
    let name = at.ip().to_string();
    with_port(&if at.is_ipv6() { format!("[{name}]") } else { name }, at.port(), 80)
}

/// A host as browsers write it, without the usual port of the scheme.
fn with_port(name: &str, port: u16, usual: u16) -> String {
    if port == usual { name.to_owned() } else { format!("{name}:{port}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origins(names: &Names, hosts: &[&str]) -> Vec<Option<String>> {
        hosts.iter().map(|host| names.origin_of(host)).collect()
    }

    #[test]
    fn on_this_machine_three_names_count_with_their_port_alone() {
        let names = Names::Loopback("127.0.0.1:2273".parse().unwrap());
        let ours = ["127.0.0.1:2273", "LOCALHOST:2273", "[::1]:2273"];
        assert!(origins(&names, &ours).iter().all(Option::is_some));
        assert_eq!(names.origin_of(ours[1]).unwrap(), "http://localhost:2273");
        let others = [
            "evil.example:2273",
            "127.0.0.1",
            "127.0.0.1:2274",
            "127.0.0.2:2273",
            "",
            "localhost.:2273",
            "user@localhost:2273",
            "localhost:2273.evil.example",
        ];
        assert_eq!(origins(&names, &others), others.map(|_| None));
        let names = Names::Loopback("127.0.0.1:80".parse().unwrap());
        assert_eq!(names.address().unwrap(), "http://127.0.0.1");
    }

    #[test]
    fn behind_a_proxy_its_name_alone_counts() {
        let names = |text: &str| Names::Behind(proxy_host(text).unwrap());
        let proxied = names("https://Me.example/");
        assert_eq!(proxied.origin_of("me.example").unwrap(), "https://me.example");
        assert!(
            origins(&proxied, &["127.0.0.1:2273", "me.example:2273"]).iter().all(Option::is_none)
        );
        assert!(names("https://me.example:8443").origin_of("me.example:8443").is_some());
        assert!(names("https://me.example:443").origin_of("me.example").is_some());
        for wrong in [
            "http://me.example",
            "me.example",
            "https://",
            "https://me.example/path",
            "https://a@b",
        ] {
            assert!(proxy_host(wrong).is_err(), "{wrong}");
        }
    }
}
