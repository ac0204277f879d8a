//! Names that several machines share: what belongs to another machine begins with its name and a
//! slash.
//!
//! | of the machine | its id | for the client |
//! | --- | --- | --- |
//! | `box` | `main` | `box/main` |
//! | this one | `main` | `main` |
//! | this one | `box/main`, which would be ambiguous | `/box/main` |

use acp_wire::{Id, remove_member, set_member, str_at};
use acpd_api::NAMESPACE;
use bytes::Bytes;
use serde_json::{Map, Value};

/// Members of parameters that may begin with the name of a machine. Messages of the protocol
/// between editors and agents have only the first one, except those that open a session.
const ADDRESSES: [&[&str]; 11] = [
    &["params", "sessionId"],
    &["params", "_meta", NAMESPACE, "agent"],
    &["params", "_meta", NAMESPACE, "name"],
    &["params", "ref", "agent"],
    &["params", "ref", "session"],
    &["params", "agent"],
    &["params", "session"],
    &["params", "session", "agent"],
    &["params", "session", "session"],
    &["params", "begins"],
    &["params", "id"],
];
/// Last parts of those with something that exists: without the name of a machine, it is on the
/// client's own.
const EXISTING: [&str; 3] = ["sessionId", "session", "id"];
/// Members with rows or names, and with one.
const LISTS: [&str; 5] = ["sessions", "interactions", "agents", "hits", "totals"];
const ROWS: [&str; 3] = ["session", "parent", "removed"];

/// Machines by number. The client's own machine has an empty name.
#[derive(Debug)]
pub(crate) struct Names(pub(crate) Vec<String>);

impl Names {
    /// Returns the machine of a name, and its name there.
    pub(crate) fn owner<'n>(&self, name: &'n str) -> Option<(usize, &'n str)> {
        let (first, rest) = name.split_once('/')?;
        Some((self.0.iter().position(|machine| machine == first)?, rest))
    }

    /// Returns the client's own machine.
    pub(crate) fn own(&self) -> Option<usize> {
        self.0.iter().position(String::is_empty)
    }

    /// Returns the client's name of what a machine calls so.
    pub(crate) fn shared(&self, machine: usize, name: &str) -> String {
        match self.0[machine].as_str() {
            "" if self.owner(name).is_none() => name.to_owned(),
            machine => format!("{machine}/{name}"),
        }
    }

    /// Returns the machine that a line of the client is about, and the line with its names.
    pub(crate) fn addressee(&self, mut line: Bytes, method: &str) -> (Option<usize>, Bytes) {
        let has_all =
            method.starts_with(NAMESPACE) || ["initialize", "session/new"].contains(&method);
        let places = if has_all { &ADDRESSES[..] } else { &ADDRESSES[..1] };
        let (mut machine, mut own) = (None, None);
        for place in places {
            let Some(name) = str_at(&line, place) else { continue };
            let Some((owner, name)) = self.owner(&name) else {
                let is_existing = place.last().is_some_and(|last| EXISTING.contains(last));
                own = own.or_else(|| self.own().filter(|_| is_existing));
                continue;
            };
            if *machine.get_or_insert(owner) == owner {
                let name = quoted(name);
                line = set_member(&line, place, name.as_bytes());
            }
        }
        (machine.or(own), line)
    }

    /// Returns the machine of a question that the client answers, and its id there.
    pub(crate) fn asker(&self, id: &Id) -> Option<(usize, Id)> {
        let id: String = serde_json::from_str(id.raw()).ok()?;
        let (machine, id) = self.owner(&id)?;
        Some((machine, string_id(id)))
    }

    /// Returns the client's id of a machine's request. The ids of acpd are strings.
    pub(crate) fn shared_id(&self, machine: usize, id: &Id) -> Id {
        let id = serde_json::from_str(id.raw()).unwrap_or_else(|_| id.raw().to_owned());
        string_id(&self.shared(machine, &id))
    }

    /// Returns a line with the client's name at `place`. Of duplicate members only that one is left.
    pub(crate) fn share_at(&self, machine: usize, line: &Bytes, place: &[&str]) -> Bytes {
        let rest = remove_member(line, place);
        match str_at(line, place) {
            Some(name) => set_member(&rest, place, quoted(&self.shared(machine, &name)).as_bytes()),
            None => rest,
        }
    }

    /// Gives an object of acpd's interface the client's names.
    pub(crate) fn share(&self, machine: usize, value: &mut Value) {
        let Value::Object(members) = value else { return };
        for name in ["sessionId", "agent"] {
            self.share_member(machine, members, name);
        }
        // Options and fields of questions have a name and an id too.
        if members.contains_key("sessionId") {
            self.share_member(machine, members, "name");
        }
        if members.contains_key("question") || members.contains_key("answer") {
            self.share_member(machine, members, "id");
        }
        for row in ROWS {
            self.share_member(machine, members, row);
            members.get_mut(row).into_iter().for_each(|row| self.share(machine, row));
        }
        for list in LISTS {
            let rows = members.get_mut(list).and_then(Value::as_array_mut);
            for row in rows.into_iter().flatten() {
                if let Value::String(name) = row {
                    *name = self.shared(machine, name);
                }
                self.share(machine, row);
                if let (Value::Object(agent), "agents") = (row, list) {
                    self.share_member(machine, agent, "name");
                }
            }
        }
    }

    fn share_member(&self, machine: usize, members: &mut Map<String, Value>, name: &str) {
        if let Some(Value::String(name)) = members.get_mut(name) {
            *name = self.shared(machine, name);
        }
    }
}

fn string_id(id: &str) -> Id {
    serde_json::from_str(&quoted(id)).unwrap_or_else(|_| Id::null())
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn names() -> Names {
        Names(["", "box", "pc"].map(str::to_owned).into())
    }

    #[test]
    fn names_return_to_their_machine() {
        let names = names();
        let cases = [(0, "main"), (0, "box/main"), (0, "/x"), (1, "main"), (1, "pc/main"), (2, "")];
        for (machine, name) in cases {
            let shared = names.shared(machine, name);
            let owner = names.owner(&shared).unwrap_or((0, &shared));
            assert_eq!(owner, (machine, name), "{shared}");
        }
        assert_eq!(names.shared(1, "main"), "box/main");
        assert_eq!(names.shared(0, "box/main"), "/box/main");
    }

    #[test]
    fn a_line_of_the_client_gets_the_names_of_its_machine() {
        let sent = |method: &str, params: Value| {
            let line = Bytes::from(json!({"method": method, "params": params}).to_string());
            let (machine, line) = names().addressee(line, method);
            let line: Value = serde_json::from_slice(&line).unwrap();
            (machine, line["params"].clone())
        };
        let prompt = json!([{"type": "text", "text": "box/main"}]);
        let (machine, params) =
            sent("session/prompt", json!({"sessionId": "box/s-1", "prompt": prompt}));
        assert_eq!((machine, params), (Some(1), json!({"sessionId": "s-1", "prompt": prompt})));
        let session = json!({"ref": {"session": "pc/s", "agent": "pc/demo"}, "after": 0});
        let (machine, params) = sent("_acpd/session/attach", session);
        assert_eq!(params, json!({"ref": {"session": "s", "agent": "demo"}, "after": 0}));
        assert_eq!(machine, Some(2));
        // A second machine in one request stays, and is not found there.
        let mixed = json!({"session": "box/s", "agent": "pc/demo"});
        assert_eq!(
            sent("_acpd/session/show", mixed).1,
            json!({"session": "box/s", "agent": "demo"})
        );
        assert_eq!(sent("_acpd/session/list", json!({"begins": "b", "agent": "demo"})).0, None);
        let traced = json!({"session": {"session": "box/s", "agent": "box/demo"}});
        let (machine, params) = sent("_acpd/trace", traced);
        assert_eq!(params, json!({"session": {"session": "s", "agent": "demo"}}));
        assert_eq!(machine, Some(1));
        assert_eq!(sent("_acpd/session/show", json!({"session": "s"})).0, Some(0));
    }

    #[test]
    fn rows_get_names_and_their_content_does_not() {
        let options = json!([{"optionId": "a", "name": "Allow", "id": "a"}]);
        let mut list = json!({
            "sessions": [{"sessionId": "s", "name": "main", "agent": "demo",
                "parent": {"agent": "demo", "sessionId": "p"}}],
            "interactions": [{"id": "1-4", "agent": "demo", "sessionId": "s", "name": null,
                "parent": "lead", "question": {"kind": "permission", "options": options}}],
            "agents": [{"name": "demo", "title": "Demo"}],
            "removed": {"interactions": ["1-3"], "agents": ["old"]},
            "hits": [{"session": {"sessionId": "s", "name": "main"}}],
        });
        names().share(1, &mut list);
        let expected = json!({
            "sessions": [{"sessionId": "box/s", "name": "box/main", "agent": "box/demo",
                "parent": {"agent": "box/demo", "sessionId": "box/p"}}],
            "interactions": [{"id": "box/1-4", "agent": "box/demo", "sessionId": "box/s",
                "name": null, "parent": "box/lead",
                "question": {"kind": "permission", "options": options}}],
            "agents": [{"name": "box/demo", "title": "Demo"}],
            "removed": {"interactions": ["box/1-3"], "agents": ["box/old"]},
            "hits": [{"session": {"sessionId": "box/s", "name": "box/main"}}],
        });
        assert_eq!(list, expected);
    }
}
