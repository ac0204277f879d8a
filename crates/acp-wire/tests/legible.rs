//! JSON as every reader takes it: a value that a reader cannot hold is no loss for its neighbours.

use acp_wire::{Message, is_legible, legible, lossy_at, parse, str_at, strs_lossy_at};
use proptest::prelude::*;
use serde_json::{Value, json};

/// JSON text of which some values are none for Rust, and what is shown of it.
fn written() -> impl Strategy<Value = (String, Value)> {
    let lone = |unit: u16| (format!(r#""a\u{unit:04x}b""#), json!("a\u{fffd}b"));
    let leaf = prop_oneof![
        any::<String>().prop_map(|text| (json!(text).to_string(), json!(text))),
        any::<i64>().prop_map(|number| (number.to_string(), json!(number))),
        (0xd800..0xe000_u16).prop_map(lone),
        Just((r#""\ud83d\udd11""#.to_owned(), json!("\u{1f511}"))),
        Just((r#""\\ud83d""#.to_owned(), json!("\\ud83d"))),
        Just((r#""\ud83d\ud83d\udd11""#.to_owned(), json!("\u{fffd}\u{1f511}"))),
        Just(("-1e999".to_owned(), json!("could not be read"))),
        Just(("[".repeat(300) + &"]".repeat(300), Value::Null)),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(|items| {
                let texts: Vec<String> = items.iter().map(|(text, _)| text.clone()).collect();
                (
                    format!("[{}]", texts.join(",")),
                    items.into_iter().map(|(_, value)| value).collect(),
                )
            }),
            prop::collection::vec(inner, 0..4).prop_map(|members| {
                let text = |(at, (text, _)): (usize, &(String, Value))| format!(r#""{at}":{text}"#);
                let texts: Vec<String> = members.iter().enumerate().map(text).collect();
                let value = |(at, (_, value)): (usize, (String, Value))| (at.to_string(), value);
                (
                    format!("{{{}}}", texts.join(",")),
                    members.into_iter().enumerate().map(value).collect(),
                )
            }),
        ]
    })
}

/// Returns whether the values are the same; a deeply nested one only has to be there.
fn is_shown(value: &Value, wanted: &Value) -> bool {
    match (value, wanted) {
        (Value::Array(one), Value::Array(two)) => {
            one.len() == two.len() && one.iter().zip(two).all(|(one, two)| is_shown(one, two))
        }
        (Value::Object(one), Value::Object(two)) => {
            one.len() == two.len() && two.iter().all(|(name, two)| is_shown(&one[name], two))
        }
        (Value::Array(_), Value::Null) => true,
        _ => value == wanted,
    }
}

proptest! {
    #[test]
    fn every_value_is_shown_whatever_is_next_to_it((text, wanted) in written()) {
        let read: Value = serde_json::from_str(&legible(&text)).expect("every reader takes it");
        prop_assert!(is_shown(&read, &wanted), "{read} is not {wanted}");
        prop_assert_eq!(is_legible(&text), serde_json::from_str::<Value>(&text).is_ok());
        let line = format!(r#"{{"method":"m","params":{text},"\ud83d":{text}}}"#);
        let is_message = matches!(parse(line.as_bytes()), Ok(Message::Notification { .. }));
        prop_assert!(is_message, "the line is routed as it is");
        prop_assert!(is_legible(&legible(&text)));
    }

    #[test]
    fn broken_text_does_no_harm(text in r#"[\[\]{}":,\\ude8 0-9-]{0,40}"#) {
        let _ = legible(&text);
    }
}

#[test]
fn ids_are_exact_and_words_are_shown() {
    let line = br#"{"a":"x \ud83d","b":"\udc00","c":5}"#;
    assert_eq!(str_at(line, &["a"]), None, "two ids that differ must not be the same");
    assert_eq!(lossy_at(line, &["a"]).as_deref(), Some("x \u{fffd}"));
    let [a, b, c] = strs_lossy_at(line, &[], ["a", "b", "c"]);
    assert_eq!((a.as_deref(), b.as_deref(), c), (Some("x \u{fffd}"), Some("\u{fffd}"), None));
}
