//! What a turn did, in a few words for whoever draws it: its tool calls and the files that they changed.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use serde::Deserialize;

/// Paths that are told of one turn.
const FILES: usize = 100;

#[derive(Deserialize)]
struct Update<'a> {
    kind: Option<&'a str>,
    status: Option<&'a str>,
    content: Option<Vec<Content>>,
    locations: Option<Vec<Location>>,
}

#[derive(Deserialize)]
struct Content {
    r#type: String,
    path: Option<String>,
}

#[derive(Deserialize)]
struct Location {
    path: String,
}

/// The files that the calls of a turn have changed, as far as the agent has said: those of their diffs,
/// and the places of calls that edit, delete or move. `calls` has the updates of each call.
pub(crate) fn changed_files(calls: &BTreeMap<String, Option<Vec<Bytes>>>) -> Vec<String> {
    let mut files = BTreeSet::new();
    for updates in calls.values().flatten() {
        files.append(&mut files_of(updates));
    }
    files.into_iter().take(FILES).collect()
}

fn files_of(updates: &[Bytes]) -> BTreeSet<String> {
    let (mut changes, mut failed) = (false, false);
    let (mut diffs, mut places) = (BTreeSet::new(), BTreeSet::new());
    // What is written in another way than the protocol says has no files that we know of.
    for update in
        updates.iter().filter_map(|update| serde_json::from_slice::<Update<'_>>(update).ok())
    {
        if let Some(kind) = update.kind {
            changes = matches!(kind, "edit" | "delete" | "move");
        }
        if let Some(status) = update.status {
            failed = status == "failed";
        }
        if let Some(content) = update.content {
            let content = content.into_iter().filter(|item| item.r#type == "diff");
            diffs = content.filter_map(|item| item.path).collect();
        }
        if let Some(locations) = update.locations {
            places = locations.into_iter().map(|place| place.path).collect();
        }
    }
    match (failed, changes) {
        (true, _) => BTreeSet::new(),
        (false, true) => diffs.into_iter().chain(places).collect(),
        (false, false) => diffs,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn changed(calls: &[&[Value]]) -> Vec<String> {
        let texts =
            |updates: &&[Value]| updates.iter().map(|u| Bytes::from(u.to_string())).collect();
        let calls = calls.iter().enumerate();
        changed_files(&calls.map(|(n, updates)| (n.to_string(), Some(texts(updates)))).collect())
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
