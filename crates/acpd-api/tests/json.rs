//! The JSON of this crate is an interface: a change here is a change for every client.

use acpd_api::{
    AttachParams, ClientMeta, ClientToken, DaemonStopParams, ErrorData, ExitCode, RawId, Reason,
    Role,
};
use serde_json::json;

fn id(text: &str) -> RawId {
    serde_json::from_str(text).expect("an id")
}

#[test]
fn ids_keep_every_byte_and_what_is_optional_may_be_left_out() {
    let text =
        r#"{"token":"t","resume":{"generation":"g","open":[18446744073709551616,"\u0061"]}}"#;
    let token: ClientToken = serde_json::from_str(text).expect("the shortest form");
    let resume = token.resume.expect("a resume");
    assert_eq!(resume.open, [id("18446744073709551616"), id(r#""\u0061""#)]);
    assert_ne!(resume.open[1], id("\"a\""));
    assert!(resume.sessions.is_empty() && resume.leaving.is_empty() && resume.asked.is_empty());
    let first: ClientToken = serde_json::from_str(r#"{"token":"t"}"#).expect("a first connection");
    assert_eq!(first.resume, None);
    let stop: DaemonStopParams = serde_json::from_value(json!({})).expect("an empty object");
    assert!(!stop.detach);
}

#[test]
fn a_plain_client_may_leave_everything_out() {
    let meta: ClientMeta = serde_json::from_value(json!({})).expect("an empty object");
    assert_eq!(meta, ClientMeta::default());
    let attach = json!({ "ref": { "session": "fix" } });
    let attach: AttachParams = serde_json::from_value(attach).expect("the shortest form");
    assert_eq!((attach.after, attach.role), (None, Role::Controller));
}

#[test]
fn a_reason_of_a_newer_daemon_is_still_a_reason() {
    let data: ErrorData =
        serde_json::from_value(json!({ "reason": "moon_phase" })).expect("an unknown reason");
    assert_eq!(data.reason, Reason::Other);
    assert_eq!(ExitCode::from(data.reason), ExitCode::Error);
}
