//! Files that the tool calls of a turn changed, for display.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::tool_calls::call::Call;

/// Maximum number of paths per turn.
const FILES: usize = 100;

#[derive(Deserialize)]
struct Content {
    r#type: String,
    path: Option<String>,
}

#[derive(Deserialize)]
struct Location {
    path: String,
}

/// Returns paths of diffs, and locations of calls that edit, delete or move.
pub(crate) fn changed_files(calls: &BTreeMap<String, Call>) -> Vec<String> {
    calls.values().flat_map(files_of).collect::<BTreeSet<_>>().into_iter().take(FILES).collect()
}

fn files_of(call: &Call) -> BTreeSet<String> {
    if read::<String>(call, "status").as_deref() == Some("failed") {
        return BTreeSet::new();
    }
    let content: Vec<Content> = read(call, "content").unwrap_or_default();
    let diffs = content.into_iter().filter(|item| item.r#type == "diff");
    let mut files: BTreeSet<_> = diffs.filter_map(|item| item.path).collect();
    let kind = read::<String>(call, "kind");
    if matches!(kind.as_deref(), Some("edit" | "delete" | "move")) {
        let places: Vec<Location> = read(call, "locations").unwrap_or_default();
        files.extend(places.into_iter().map(|place| place.path));
    }
    files
}

fn read<T: for<'de> Deserialize<'de>>(call: &Call, member: &str) -> Option<T> {
    serde_json::from_str(call.get(member)?).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn changed(calls: &[&[Value]]) -> Vec<String> {
        let call = |updates: &&[Value]| {
            let mut call = Call::default();
            for update in *updates {
                call.take(update.to_string().as_bytes());
            }
            call
        };
        changed_files(
            &calls.iter().map(call).enumerate().map(|(n, c)| (n.to_string(), c)).collect(),
        )
    }

    #[test]
    fn files_of_diffs_and_of_calls_that_change_are_told_once() {
        let diff = |path: &str| json!({"content":[{"type":"diff","path":path,"newText":""}]});
        let place =
            |kind: &str, path: &str| json!({"kind":kind,"locations":[{"path":path,"line":1}]});
        assert_eq!(
            changed(&[
                &[diff("/w/b"), json!({"status":"completed"})],
                &[place("edit", "/w/a"), diff("/w/b")],
                &[place("read", "/w/read")],
                &[place("delete", "/w/kept"), json!({"status":"failed"})],
                &[json!({"kind":7}), json!([])],
            ]),
            ["/w/a", "/w/b"]
        );
    }
}
