//! Locating and changing values, compared with what serde_json makes of the same text.

use std::fmt::Write as _;

use acp_wire::{Id, locate, message_id, remove_member, set_id, set_member, str_at};
use bytes::Bytes;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const KEYS: [&str; 9] = ["", "a", "ab", "id", "_meta", "\"", "\\", "é\u{1f600}", "a\n"];

fn key() -> impl Strategy<Value = String> {
    prop::sample::select(KEYS.as_slice()).prop_map(str::to_owned)
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[\\\\\"{}\\[\\],:/a]{0,6}"]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1000_i32..1000).prop_map(|n| Value::from(f64::from(n) / 8.0)),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            members(inner).prop_map(Value::Object),
        ]
    })
}

fn members(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::vec((key(), inner), 0..5).prop_map(|members| members.into_iter().collect())
}

fn object() -> impl Strategy<Value = Value> {
    members(value()).prop_map(Value::Object)
}

/// Writes JSON as few people would: with whitespace anywhere and escapes at random.
struct Scribe<'a> {
    dice: std::iter::Cycle<std::slice::Iter<'a, u8>>,
    out: String,
}

impl Scribe<'_> {
    fn roll(&mut self) -> u8 {
        *self.dice.next().expect("a cycle has no end")
    }

    fn space(&mut self) {
        let spaces = ["", "", " ", "\t", "\r\n", "  "];
        let at = usize::from(self.roll()) % spaces.len();
        self.out.push_str(spaces[at]);
    }

    fn string(&mut self, text: &str) {
        self.out.push('"');
        for letter in text.chars() {
            if self.roll().is_multiple_of(4) {
                for unit in letter.encode_utf16(&mut [0; 2]) {
                    write!(self.out, "\\u{unit:04X}").expect("a string takes all");
                }
            } else {
                let plain = Value::from(letter.to_string()).to_string();
                self.out.push_str(&plain[1..plain.len() - 1]);
            }
        }
        self.out.push('"');
    }

    fn value(&mut self, value: &Value) {
        self.space();
        match value {
            Value::String(text) => self.string(text),
            Value::Array(items) => {
                self.out.push('[');
                for (at, item) in items.iter().enumerate() {
                    if at > 0 {
                        self.out.push(',');
                    }
                    self.value(item);
                }
                self.space();
                self.out.push(']');
            }
            Value::Object(members) => {
                self.out.push('{');
                for (at, (key, value)) in members.iter().enumerate() {
                    if at > 0 {
                        self.out.push(',');
                    }
                    self.space();
                    self.string(key);
                    self.space();
                    self.out.push(':');
                    self.value(value);
                }
                self.space();
                self.out.push('}');
            }
            plain => self.out.push_str(&plain.to_string()),
        }
        self.space();
    }
}

fn scribble(value: &Value, dice: &[u8]) -> Bytes {
    let mut scribe = Scribe { dice: dice.iter().cycle(), out: String::new() };
    scribe.value(value);
    scribe.out.into_bytes().into()
}

fn dice() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 1..40)
}

fn path() -> impl Strategy<Value = Vec<String>> {
    prop::collection::vec(key(), 0..4)
}

fn borrowed(path: &[String]) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
}

fn lookup<'a>(value: &'a Value, path: &[&str]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, key| value.as_object()?.get(*key))
}

/// Every path of object members that exists.
fn paths(value: &Value, prefix: &[String], found: &mut Vec<Vec<String>>) {
    found.push(prefix.to_vec());
    for (key, child) in value.as_object().into_iter().flatten() {
        let path = [prefix, std::slice::from_ref(key)].concat();
        paths(child, &path, found);
    }
}

/// The expected effect of `set_member`.
fn set(value: &mut Value, path: &[&str], new: Value) {
    let Some((key, rest)) = path.split_first() else {
        *value = new;
        return;
    };
    if !value.is_object() {
        *value = json!({});
    }
    set(&mut value[*key], rest, new);
}

fn remove(value: &mut Value, path: &[&str]) {
    let Some((last, parents)) = path.split_last() else {
        return;
    };
    let parent = parents.iter().try_fold(value, |value, key| value.as_object_mut()?.get_mut(*key));
    if let Some(Value::Object(members)) = parent {
        members.remove(*last);
    }
}

fn reparse(line: &[u8]) -> Value {
    serde_json::from_slice(line).expect("the line is still JSON")
}

proptest! {
    #[test]
    fn locate_finds_what_a_full_parse_finds(
        value in value(), dice in dice(), other in path(),
    ) {
        let line = scribble(&value, &dice);
        let mut all = vec![other];
        paths(&value, &[], &mut all);
        for path in all {
            let path = borrowed(&path);
            let found = locate(&line, &path).map(|range| reparse(&line[range]));
            prop_assert_eq!(found.as_ref(), lookup(&value, &path));
            let text = lookup(&value, &path).and_then(Value::as_str);
            let decoded = str_at(&line, &path);
            prop_assert_eq!(decoded.as_deref(), text);
        }
    }

    #[test]
    fn message_id_is_found_in_all_spellings(text in text(), dice in dice()) {
        let update = json!({ "content": { "text": text }, "messageId": text });
        let line = scribble(&json!({ "params": { "update": update } }), &dice);
        let found = message_id(&line);
        prop_assert_eq!(found.as_deref(), Some(&*text));
    }

    #[test]
    fn set_member_makes_the_intended_change_and_no_other(
        object in object(), dice in dice(), path in path(), new in value(),
    ) {
        let line = scribble(&object, &dice);
        let path = borrowed(&path);
        let changed = set_member(&line, &path, new.to_string().as_bytes());
        let mut wanted = object.clone();
        if path.is_empty() {
            prop_assert_eq!(&changed, &line);
        } else {
            set(&mut wanted, &path, new);
            prop_assert_eq!(reparse(&changed), wanted);
        }
    }

    #[test]
    fn remove_member_makes_the_intended_change_and_no_other(
        object in object(), dice in dice(), path in path(),
    ) {
        let line = scribble(&object, &dice);
        let path = borrowed(&path);
        let changed = remove_member(&line, &path);
        let mut wanted = object.clone();
        remove(&mut wanted, &path);
        prop_assert_eq!(reparse(&changed), wanted.clone());
        if wanted == object {
            prop_assert_eq!(changed, line);
        }
    }

    #[test]
    fn set_id_changes_the_bytes_of_the_id_alone(
        object in object(), dice in dice(), old in any::<i64>(), new in any::<u64>(),
    ) {
        let mut object = object;
        object["id"] = old.into();
        let line = scribble(&object, &dice);
        let changed = set_id(&line, &Id::from(new));
        let before = locate(&line, &["id"]).expect("there is an id");
        let after = locate(&changed, &["id"]).expect("there is an id");
        prop_assert_eq!(reparse(&changed[after.clone()]), Value::from(new));
        prop_assert_eq!(&changed[..after.start], &line[..before.start]);
        prop_assert_eq!(&changed[after.end..], &line[before.end..]);
    }

    #[test]
    fn broken_json_never_makes_it_panic(
        value in value(), dice in dice(), path in path(), cut in any::<prop::sample::Index>(),
        noise in "[\\\\\"{}\\[\\],: a1]{0,12}",
    ) {
        let line = scribble(&value, &dice);
        let path = borrowed(&path);
        for broken in [line.slice(..cut.index(line.len() + 1)), noise.into_bytes().into()] {
            let _ = locate(&broken, &path);
            let _ = str_at(&broken, &path);
            let _ = set_member(&broken, &path, b"1");
            let _ = remove_member(&broken, &path);
        }
    }
}

#[test]
fn parents_that_are_missing_or_no_objects_are_made() {
    let set =
        |line: &'static str| set_member(&Bytes::from(line), &["params", "_meta", "seq"], b"7");
    assert_eq!(set("{}"), r#"{"params":{"_meta":{"seq":7}}}"#);
    assert_eq!(
        set(r#"{"params":{"a":1, "_meta":null }}"#),
        r#"{"params":{"a":1, "_meta":{"seq":7} }}"#
    );
    assert_eq!(set(r#"{ "params" : {"a":1 } }"#), r#"{ "params" : {"a":1,"_meta":{"seq":7} } }"#);
    for odd in ["5", "[1]", "\"x\"", "false"] {
        let line = format!(r#"{{"params":{{"_meta":{odd},"a":1}}}}"#);
        let set = set_member(&Bytes::from(line), &["params", "_meta", "seq"], b"7");
        assert_eq!(set, r#"{"params":{"_meta":{"seq":7},"a":1}}"#);
    }
    assert_eq!(set("[1]"), "[1]");
}

#[test]
fn of_a_repeated_member_the_first_counts_and_all_are_removed() {
    let line = Bytes::from_static(br#"{"a":1,"b":0,"a":2,"\u0061":3}"#);
    assert_eq!(locate(&line, &["a"]), Some(5..6));
    assert_eq!(remove_member(&line, &["a"]), r#"{"b":0}"#);
}

#[test]
#[cfg_attr(miri, ignore = "so much takes minutes there")]
fn deep_nesting_does_not_overflow_the_stack() {
    let depth = 500_000;
    let line = format!("{{\"a\":{}{},\"id\":1}}", "[".repeat(depth), "]".repeat(depth));
    assert!(locate(line.as_bytes(), &["id"]).is_some());
}
