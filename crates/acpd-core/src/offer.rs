//! Client extensions beyond the schema, and the agents that get them.
//!
//! Clients declare extensions in members `_meta` of their capabilities. An agent gets acpd's
//! capabilities, and from a client only the members that its profile names
//! ([`crate::profile::Profile::client_meta`]): the client's *offer*.
//!
//! A process gets one offer, when it starts:
//! - one for a single session: from the client that made the session, whichever client needs it;
//! - one for all sessions: from the first waiting client, else from the maker of the most urgent
//!   session, else the last process's offer.
//!
//! The answer to `initialize` depends on the offer, so both are stored together.

use acp_wire::{locate, set_member};
use bytes::Bytes;
use serde_json::value::RawValue;

/// Maximum size of an offer in bytes, because each session stores one.
const LIMIT: usize = 16 << 10;

/// Returns the named members of a client's capabilities, in the same JSON structure.
pub(crate) fn offer(names: &[String], capabilities: Option<&RawValue>) -> Option<String> {
    let capabilities = capabilities?.get().as_bytes();
    let kept = copy(names, capabilities, &[], Bytes::from_static(b"{}"));
    let text = String::from_utf8(kept.to_vec()).ok()?;
    (text != "{}" && text.len() <= LIMIT).then_some(text)
}

/// Copies named members from capabilities into the object at `at`.
pub(crate) fn copy(names: &[String], from: &[u8], at: &[&str], mut into: Bytes) -> Bytes {
    for path in names.iter().flat_map(|name| paths(name)) {
        if let Some(value) = locate(from, &path) {
            into = set_member(&into, &[at, &path].concat(), &from[value]);
        }
    }
    into
}

pub(crate) fn is_offered(offer: Option<&str>, name: &str) -> bool {
    let offer = offer.unwrap_or_default().as_bytes();
    paths(name).iter().any(|path| locate(offer, path).is_some())
}

/// Returns the paths of a name: `a.b` stands for `_meta.a.b` and for `a._meta.b`.
fn paths(name: &str) -> Vec<Vec<&str>> {
    let of_all = std::iter::once("_meta").chain(name.split('.')).collect();
    match name.split_once('.') {
        None => vec![of_all],
        Some((capability, rest)) => {
            vec![of_all, [capability, "_meta"].into_iter().chain(rest.split('.')).collect()]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(names: &[&str], capabilities: &str) -> Option<String> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let raw: &RawValue = serde_json::from_str(capabilities).expect("JSON");
        offer(&names, Some(raw))
    }

    #[test]
    fn what_is_named_is_kept_as_it_is_and_where_it_is() {
        let air = r#"{ "version" : 1.50 }"#;
        let capabilities = format!(
            r#"{{"fs":{{"readTextFile":true,"_meta":{{"x":1}}}},
                "_meta":{{"jetbrains":{{"air":{air},"other":1}},"terminal-auth":true,"_acpd":{{}}}},
                "auth":{{"terminal":true,"_meta":{{"gateway":true,"y":2}}}}}}"#
        );
        let names = ["jetbrains.air", "terminal-auth", "auth.gateway", "nobody"];
        let expected = format!(
            r#"{{"_meta":{{"jetbrains":{{"air":{air}}},"terminal-auth":true}},"auth":{{"_meta":{{"gateway":true}}}}}}"#
        );
        assert_eq!(offered(&names, &capabilities), Some(expected));
        assert_eq!(offered(&[], &capabilities), None);
        assert_eq!(offered(&names, r#"{"auth":{"gateway":true}}"#), None, "not in a `_meta`");
    }

    #[test]
    fn an_offer_that_is_too_long_is_none() {
        let long = format!(r#"{{"_meta":{{"a":"{}"}}}}"#, "x".repeat(LIMIT));
        assert_eq!(offered(&["a"], &long), None);
    }
}
