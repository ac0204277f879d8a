//! The official types of the protocol.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads a value as the official type, and makes sure that no member was lost on the way.
/// `left_out`: values that the official types leave out.
#[track_caller]
pub(crate) fn assert_official<T: DeserializeOwned + Serialize>(
    written: &Value,
    left_out: &[Value],
) {
    let typed: T = serde_json::from_value(written.clone()).expect("the official type takes it");
    let mut kept = serde_json::to_value(&typed).expect("the official type serializes");
    let mut written = written.clone();
    prune(&mut kept, left_out);
    prune(&mut written, left_out);
    assert_eq!(kept, written);
}

fn prune(value: &mut Value, left_out: &[Value]) {
    match value {
        Value::Object(members) => {
            members.values_mut().for_each(|member| prune(member, left_out));
            members.retain(|_, member| !left_out.contains(member));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| prune(item, left_out)),
        _ => {}
    }
}
