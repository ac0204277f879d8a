//! Values that no reader takes, and bytes that are no lines: nothing panics, and one value hides no other.

use acp_wire::{Head, Message, is_legible, legible, locate, parse, receive};
use acpd_test::fuzz::{Outcomes, fuzz};
use acpd_view::{Folding, State};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Map, Value, json};

/// Members of a tool call of which one is broken; its title is not.
const MEMBERS: [&str; 8] =
    ["kind", "status", "locations", "content", "rawInput", "rawOutput", "_meta", "name"];

#[derive(Debug, Clone)]
enum Input {
    /// Members with their values, and where among them one has a value that no reader takes.
    Object { members: Vec<(String, Value)>, at: Index, broken: String, in_name: bool },
    /// Bytes instead of a line.
    Bytes(Vec<u8>),
    /// A line of an agent with some bytes changed.
    Changed { member: Index, broken: String, changes: Vec<(Index, u8)> },
}

/// JSON that no type of Rust holds.
fn broken() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        (0xd800..0xe000_u16, ".{0,4}").prop_map(|(unit, text)| {
            let text = json!(text).to_string();
            format!("\"\\u{unit:04x}{}", &text[1..])
        }),
        (400..5000_u32).prop_map(|power| format!("-1e{power}")),
        (101..400_usize).prop_map(|levels| "[".repeat(levels) + &"]".repeat(levels)),
        (101..400_usize).prop_map(|levels| "{\"a\":".repeat(levels) + "0" + &"}".repeat(levels)),
    ];
    leaf.prop_recursive(3, 8, 1, |inner| {
        prop_oneof![
            inner.clone().prop_map(|text| format!("[1,{text}]")),
            inner.prop_map(|text| format!("{{\"x\":{text},\"y\":2}}")),
            Just(r#"{"\udc00":1}"#.to_owned()),
        ]
    })
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn inputs() -> impl Strategy<Value = Input> {
    let members = prop::collection::vec((any::<String>(), value()), 1..6);
    let changes = prop::collection::vec((any::<Index>(), any::<u8>()), 0..4);
    prop_oneof![
        (members, any::<Index>(), broken(), any::<bool>()).prop_map(
            |(members, at, broken, in_name)| Input::Object { members, at, broken, in_name }
        ),
        prop::collection::vec(any::<u8>(), 0..100).prop_map(Input::Bytes),
        r#"[\[\]{}":,\\ude8 0-9-]{0,60}"#.prop_map(|text| Input::Bytes(text.into_bytes())),
        (any::<Index>(), broken(), changes).prop_map(|(member, broken, changes)| Input::Changed {
            member,
            broken,
            changes
        }),
    ]
}

/// All that is shown of a line.
fn shown(line: &[u8]) -> String {
    let mut state = State::new(&"s".into());
    state.fold(line);
    if let Ok(line) = std::str::from_utf8(line) {
        state.fold_entry(1, line);
    }
    let lines = state.blocks().flat_map(|block| block.lines(80, Folding::Open));
    lines.map(|line| line.to_string()).collect::<Vec<_>>().join("\n")
}

/// Everything that reads a line of an agent before it is shown.
fn read(line: &[u8]) -> bool {
    let _ = Head::of(line);
    receive(&line.to_vec().into(), None, |message, line, _| {
        let _ = (message.is_ok(), line.len());
    });
    let Ok(message) = parse(line) else { return false };
    if let Message::Notification { params: Some(params), .. } = message {
        let shown = legible(params.get());
        assert!(serde_json::from_str::<Value>(&shown).is_ok(), "every reader takes {shown}");
        assert!(is_legible(&shown), "{shown}");
    }
    true
}

/// Members next to one that is broken have the values that they have alone.
fn check_object(members: &[(String, Value)], at: usize, broken: &str, in_name: bool) {
    let names = members.iter().enumerate().map(|(place, (name, _))| format!("{place}{name}"));
    let names: Vec<String> = names.collect();
    let mut texts: Vec<String> = names
        .iter()
        .zip(members)
        .map(|(name, (_, value))| format!("{}:{value}", json!(name)))
        .collect();
    let name = if in_name { r#""\udfff""# } else { r#""broken""# };
    texts.insert(at, format!("{name}:{broken}"));
    let object = format!("{{{}}}", texts.join(","));
    assert!(!is_legible(&object), "{object}");
    let read: Map<String, Value> = serde_json::from_str(&legible(&object)).expect("it is read");
    assert_eq!(read.len(), members.len() + 1, "{object}");
    for (name, (_, value)) in names.iter().zip(members) {
        assert_eq!(&read[name], value, "{name:?} in {object}");
        let range = locate(object.as_bytes(), &[name]).expect("it is found");
        assert_eq!(object[range], value.to_string(), "{name:?} in {object}");
    }
}

/// `cargo xtask fuzz broken-members`.
#[test]
fn broken_members() {
    let must_occur = ["object", "no message", "message", "title is shown"];
    fuzz("broken-members", 4_000, &must_occur, inputs(), |input, outcomes: &Outcomes| {
        outcomes.execution();
        let read = |line: &[u8]| {
            outcomes.met(if read(line) { "message" } else { "no message" });
            shown(line)
        };
        match input {
            Input::Object { members, at, broken, in_name } => {
                check_object(&members, at.index(members.len() + 1), &broken, in_name);
                outcomes.met("object");
            }
            Input::Bytes(bytes) => {
                let _ = std::str::from_utf8(&bytes).map(legible);
                read(&bytes);
            }
            Input::Changed { member, broken, changes } => {
                let member = member.get(&MEMBERS);
                let line = format!(
                    r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"tool_call","toolCallId":"t","{member}":{broken},"title":"<title>"}}}}}}"#
                );
                let mut line = line.into_bytes();
                for (at, byte) in &changes {
                    let at = at.index(line.len());
                    line[at] = *byte;
                }
                let shown = read(&line);
                if changes.is_empty() {
                    assert!(
                        shown.contains("<title>"),
                        "{shown:?} of {}",
                        String::from_utf8_lossy(&line)
                    );
                    outcomes.met("title is shown");
                }
            }
        }
    });
}
