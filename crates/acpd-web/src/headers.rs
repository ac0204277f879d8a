use std::fmt::Write as _;

use axum::http::header::{
    CONTENT_SECURITY_POLICY, HeaderMap, HeaderName, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS,
};

/// Only files of the page. No text of an agent becomes a script, a style or a request.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; \
    manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types acpd-sw; connect-src 'self'";

const ALWAYS: [(HeaderName, &str); 4] = [
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// Adds the headers. Sockets are allowed to the addressed origin, if it is one of ours.
pub(crate) fn add(headers: &mut HeaderMap, origin: Option<&str>) {
    for (name, value) in ALWAYS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let mut policy = POLICY.to_owned();
    if let Some(origin) = origin {
        let _ = write!(policy, " {}", origin.replacen("http", "ws", 1));
    }
    // The host is one of ours, so it has no characters that a header may not have.
    headers
        .extend(HeaderValue::try_from(policy).ok().map(|policy| (CONTENT_SECURITY_POLICY, policy)));
}
