//! Members that are taken out of lines: reserved ones and those that come twice; and ids that are
//! recovered from lines that are no messages.

use std::collections::BTreeSet;
use std::fmt;

use acp_wire::{Head, Id, Malformed, parse, tidy, with_one_outcome, without_members};
use bytes::Bytes;
use proptest::prelude::*;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// JSON text whose objects may have members twice and of the reserved name, in several spellings.
fn json() -> impl Strategy<Value = String> {
    const NAMES: [&str; 11] = [
        r#""_acpd""#,
        r#""\u005facpd""#,
        r#""_\u0061c\u0070d""#,
        r#""\u005F\u0061\u0063\u0070\u0064""#,
        r#""_meta""#,
        r#""a""#,
        r#""\u0061""#,
        r#""b \" {[,:""#,
        r#""\ud800""#,
        r#""\\u005facpd""#,
        r#""_acpd/""#,
    ];
    const SPACES: [&str; 6] = ["", "", "", " ", "\r\n", "\t "];
    let (name, space) = (prop::sample::select(&NAMES[..]), prop::sample::select(&SPACES[..]));
    let leaf = prop::sample::select(
        &[r"null", "-1.50", "1e400", r#""""#, r#""_acpd""#, r#""_acpd\":{}""#, "{ }", "[]"][..],
    );
    let leaf = leaf.prop_map(str::to_owned);
    leaf.prop_recursive(5, 64, 6, move |inner| {
        let member = (name.clone(), space.clone(), inner.clone(), space.clone());
        let member = member.prop_map(|(name, before, value, behind)| {
            format!("{before}{name}{behind}:{before}{value}{behind}")
        });
        prop_oneof![
            3 => prop::collection::vec(member, 0..7)
                .prop_map(|members| format!("{{{}}}", members.join(","))),
            1 => prop::collection::vec(inner, 0..4)
                .prop_map(|items| format!("[{}]", items.join(","))),
        ]
    })
}

/// Fails on an object with a member twice.
struct Strict;

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Strict;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON without repetitions")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Strict, A::Error> {
        let mut seen = BTreeSet::new();
        while let Some(name) = map.next_key::<String>()? {
            map.next_value::<Strict>()?;
            if !seen.insert(name) {
                return Err(serde::de::Error::custom("twice"));
            }
        }
        Ok(Strict)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Strict, A::Error> {
        while seq.next_element::<Strict>()?.is_some() {}
        Ok(Strict)
    }

    fn visit_unit<E>(self) -> Result<Strict, E> {
        Ok(Strict)
    }

    fn visit_str<E>(self, _: &str) -> Result<Strict, E> {
        Ok(Strict)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Strict, E> {
        Ok(Strict)
    }
}

/// The value for a reader that takes the last of several members. Parts that no value can hold are
/// replaced by parts that one can.
fn read(line: &[u8]) -> Value {
    let text = std::str::from_utf8(line).expect("text");
    let text = text.replace("1e400", "1e40").replace(r"\ud800", r"\ufffd");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn without_reserved(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.remove("_acpd");
            members.values_mut().for_each(without_reserved);
        }
        Value::Array(items) => items.iter_mut().for_each(without_reserved),
        _ => {}
    }
}

proptest! {
    #[test]
    fn reserved_members_are_taken_out_wherever_they_are_and_nothing_else(json in json()) {
        let line = Bytes::from(json);
        let before = read(&line);
        let mut wanted = before.clone();
        without_reserved(&mut wanted);
        match without_members(&line, "_acpd") {
            Some(without) => {
                prop_assert_eq!(read(&without), wanted.clone());
                prop_assert!(without.len() < line.len());
                prop_assert_eq!(without_members(&without, "_acpd"), None);
            }
            None => prop_assert_eq!(&before, &wanted),
        }
        let tidied = tidy(&line, Some("_acpd")).expect("few members");
        prop_assert_eq!(read(&tidied.unwrap_or(line)), wanted);
    }

    #[test]
    fn of_members_that_come_twice_the_last_is_left_which_most_readers_take(json in json()) {
        let line = Bytes::from(format!(r#"{{"x":{json}}}"#));
        let left = tidy(&line, None).expect("few members");
        let is_strict = |line: &[u8]| {
            let text = String::from_utf8_lossy(line).replace("1e400", "1e40").replace(r"\ud800", "?");
            serde_json::from_str::<Strict>(&text).is_ok()
        };
        prop_assert_eq!(left.is_none(), is_strict(&line));
        let left = left.unwrap_or_else(|| line.clone());
        prop_assert_eq!(read(&left), read(&line));
        prop_assert!(is_strict(&left), "{:?}", left);
    }

    #[test]
    fn what_is_no_json_makes_nothing_panic(
        json in json(), cut in any::<prop::sample::Index>(), noise in "[\\\\\"{}\\[\\],:_acpdu005f ]{0,20}",
        bytes in prop::collection::vec(any::<u8>(), 0..40),
    ) {
        let cut = Bytes::copy_from_slice(&json.as_bytes()[..cut.index(json.len() + 1)]);
        for broken in [cut, Bytes::from(noise), Bytes::from(bytes)] {
            let _ = without_members(&broken, "_acpd");
            let _ = tidy(&broken, Some("_acpd"));
            let _ = Head::of(&broken);
        }
    }
}

#[test]
fn a_reserved_member_goes_with_one_comma() {
    let without = |line: &'static str| without_members(&Bytes::from(line), "_acpd");
    for (line, wanted) in [
        (r#"{"_acpd":1}"#, "{}"),
        (r#"{ "_acpd" : {"a":[1]} }"#, "{  }"),
        (r#"{"_acpd":1, "a":2}"#, r#"{"a":2}"#),
        (r#"{"a":1 , "_acpd":2 }"#, r#"{"a":1 }"#),
        (r#"{"a":1,"_acpd":2 ,"b":3}"#, r#"{"a":1 ,"b":3}"#),
        (r#"{"_acpd":1,"_acpd":2}"#, "{}"),
        (r#"{"_acpd":1,"_acpd":2, "a":3}"#, r#"{"a":3}"#),
        (r#"{"_acpd":1,"a":3,"_acpd":2,"_acpd":{"_acpd":4}}"#, r#"{"a":3}"#),
        (r#"[{"a":{"_acpd":{"_acpd":1},"b":"_acpd"}}]"#, r#"[{"a":{"b":"_acpd"}}]"#),
        (r#"{"\u005fac\u0070d":"}\",","b":7}"#, r#"{"b":7}"#),
    ] {
        assert_eq!(without(line).expect(line), wanted);
    }
    for line in [
        r#"{"_acp":1,"_acpd2":2,"a":"_acpd","b":"\"_acpd\":1"}"#,
        r#"["_acpd",{"a":"_acpd"}]"#,
        r#"{"\\u005facpd":1,"\u005f":2,"a":"\u001b[1m\u0063"}"#,
    ] {
        assert_eq!(without(line), None, "{line}");
    }
}

#[test]
fn of_a_member_that_comes_twice_the_last_stays_as_it_is() {
    let left = |line: &'static str| tidy(&Bytes::from(line), None).expect("no session twice");
    for (line, wanted) in [
        (r#"{"a":1, "b" : 2,"a":3 }"#, r#"{"b" : 2,"a":3 }"#),
        (r#"{"x":0,"a":1,"a":2,"a":[ 3]}"#, r#"{"x":0,"a":[ 3]}"#),
        (r#"{"a":1,"\u0061":2}"#, r#"{"\u0061":2}"#),
        (r#"{"a":{"b":1,"b":2},"a":{"c":1,"c":2}}"#, r#"{"a":{"c":2}}"#),
        (r#"[{"a":{"b":1,"b":2}},{"a":1}]"#, r#"[{"a":{"b":2}},{"a":1}]"#),
    ] {
        assert_eq!(left(line).expect(line), wanted);
    }
    for line in [r#"{"a":{"a":[{"a":1},{"a":1}]}}"#, r#"{"\u0061":1,"b":"a"}"#, r#"["a","a"]"#] {
        assert_eq!(left(line), None, "{line}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "so much takes minutes there")]
fn an_object_with_many_members_is_looked_through_too() {
    let members: Vec<String> = (0..50_000).map(|at| format!("\"k{at}\":{at}")).collect();
    let line = |more: &str| Bytes::from(format!("{{{}{more}}}", members.join(",")));
    assert_eq!(tidy(&line(""), None), Ok(None));
    let left = tidy(&line(r#","k7":"last""#), None).expect("not too many").expect("k7 twice");
    let left: Value = serde_json::from_slice(&left).expect("JSON");
    assert_eq!(
        (&left["k7"], left.as_object().map(serde_json::Map::len)),
        (&"last".into(), Some(50_000))
    );
    let endless = format!("{{{}\"a\":1}}", "\"a\":1,".repeat(1 << 20));
    assert_eq!(tidy(&Bytes::from(endless), None), Err(Malformed::TooMuch));
    let deep =
        format!(r#"{}{{"_acpd":1,"_acpd":2}}{}"#, r#"{"a":"#.repeat(9_999), "}".repeat(9_999));
    let deep = Bytes::from(deep);
    let count = |line: &Bytes| line.windows(5).filter(|part| *part == b"_acpd").count();
    let left = tidy(&deep, None).expect("few members").expect("one comes twice");
    assert_eq!(count(&left), 1, "at every depth");
    let left = tidy(&deep, Some("_acpd")).expect("few members");
    assert_eq!(count(&left.expect("one is reserved")), 0, "at every depth");
}

#[test]
fn a_message_that_names_its_session_twice_is_for_nobody() {
    for params in
        [r#"{"sessionId":"a","x":[{}],"sessionId":"b"}"#, r#"{"sessionId":1,"session\u0049d":1}"#]
    {
        let line = Bytes::from(format!(r#"{{"id":1,"method":"m","params":{params}}}"#));
        assert_eq!(tidy(&line, None), Err(Malformed::Duplicate("sessionId")), "{line:?}");
    }
    let deeper =
        r#"{"method":"m","params":{"sessionId":"a","x":{"sessionId":"b","sessionId":"c"}}}"#;
    let left = tidy(&Bytes::from(deeper), None).expect("one session").expect("another twice");
    assert_eq!(left, r#"{"method":"m","params":{"sessionId":"a","x":{"sessionId":"c"}}}"#);
}

#[test]
fn an_answer_has_one_outcome() {
    for (line, wanted) in [
        (r#"{"id":1,"result":null,"error":{"code":1}}"#, r#"{"id":1,"error":{"code":1}}"#),
        (r#"{"id":1,"error":null,"result":{}}"#, r#"{"id":1,"result":{}}"#),
        (r#"{"id":1,"error":null}"#, r#"{"id":1,"result":null}"#),
        (r#"{"id":1}"#, r#"{"id":1,"result":null}"#),
        (r#"{"id":1, "result":null }"#, r#"{"id":1, "result":null }"#),
        (r#"{ "error":{},"id":1}"#, r#"{ "error":{},"id":1}"#),
    ] {
        assert_eq!(with_one_outcome(&Bytes::from(line)), wanted);
    }
}

#[test]
fn what_can_be_made_out_of_a_line_that_is_no_message() {
    let head = |line: &[u8]| {
        assert!(parse(line).is_err());
        let Head { id, has_method } = Head::of(line);
        (id.map(|id| id.raw().to_owned()), has_method)
    };
    let id = |text: &str| Some(text.to_owned());
    assert_eq!(head(b"{\"id\":7,\"result\":\"\xed\xa0\x80\"}"), (id("7"), false));
    assert_eq!(head(b"{\"result\":{\"id\":1,\"method\":2},\"id\" : 7,"), (id("7"), false));
    assert_eq!(head(br#"{"id":"a\"b","method":"m","params":{"x":"#), (id(r#""a\"b""#), true));
    assert_eq!(head(b"{\"id\":\"\xed\xa0\x80\",\"result\":1}"), (None, false));
    assert_eq!(head(br#"{"id":7,"id":8,"result":1}"#), (None, false));
    assert_eq!(head(br#"{"id":[7],"result":1}"#), (None, false));
    assert_eq!(head(br#"{"id":7,"result":1,"error":2}"#), (id("7"), false));
    assert_eq!(head(br#"{"jsonrpc":"2.0","id":12"#), (None, false), "it may go on");
    assert_eq!(head(br#"["id",7]"#), (None, false));
}

#[test]
fn an_id_is_bounded() {
    let line = |length: usize| format!(r#"{{"id":"{}","method":"m"}}"#, "x".repeat(length));
    assert!(parse(line(1_022).as_bytes()).is_ok());
    assert_eq!(parse(line(1_023).as_bytes()).err(), Some(Malformed::BadId));
    assert_eq!(Head::of(line(1_023).as_bytes()), Head { id: None, has_method: true });
    assert!(Id::from(u64::MAX).as_u64().is_some());
}
