//! The envelope, ids and originated lines, on good and ugly input.

use acp_wire::{ErrorObject, Id, Malformed, Message, Outcome, build, code, parse};
use proptest::prelude::*;
use serde_json::json;
use serde_json::value::RawValue;

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).expect("the text is JSON")
}

fn id(text: &str) -> Id {
    Id::from_raw(&raw(text)).expect("the text is an id")
}

/// A message in one line, to compare.
fn gist(line: &str) -> String {
    let params = |params: Option<&RawValue>| params.map_or("-", RawValue::get).to_owned();
    match parse(line.as_bytes()) {
        Ok(Message::Request { id, method, params: p }) => {
            format!("request {id} {method} {}", params(p))
        }
        Ok(Message::Notification { method, params: p }) => {
            format!("notification {method} {}", params(p))
        }
        Ok(Message::Response { id, outcome }) => match outcome {
            Outcome::Result(value) => format!("result {id} {}", value.get()),
            Outcome::Error(value) => format!("error {id} {}", value.get()),
        },
        Err(error) => format!("{} {error}", error.code()),
    }
}

#[test]
fn messages_are_told_apart() {
    for (line, wanted) in [
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":1}}"#, r#"request 1 m {"a":1}"#),
        (r#"{"jsonrpc":"2.0","id":"1","method":"m"}"#, r#"request "1" m -"#),
        (r#"{"id":null,"method":"m","params":null}"#, "request null m null"),
        (r#"{"method":"m","params":[ 1 ]}"#, "notification m [ 1 ]"),
        (r#" {"\u006dethod":"\u006d\/n"} "#, "notification m/n -"),
        (r#"{"id":-7,"result":null}"#, "result -7 null"),
        (r#"{"id":7,"result":{"x":[]},"more":{"id":8}}"#, r#"result 7 {"x":[]}"#),
        (r#"{"id":7,"result":null,"error":{"code":1}}"#, r#"error 7 {"code":1}"#),
        (r#"{"id":7,"result":1,"error":null}"#, "result 7 1"),
        (r#"{"id":7}"#, "result 7 null"),
        (r#"{"id":7,"method":null,"result":1}"#, "result 7 1"),
        (r#"{"id":null,"error":{}}"#, "error null {}"),
        (r#"{"id":1.50,"method":"m"}"#, "request 1.50 m -"),
        (r#"{"id":1e3,"result":1}"#, "result 1e3 1"),
        (r#"{"id":18446744073709551616,"result":1}"#, "result 18446744073709551616 1"),
    ] {
        assert_eq!(gist(line), wanted, "{line}");
    }
}

#[test]
fn ugly_lines_are_refused_with_the_right_code() {
    let start = |line: &str| gist(line).split(' ').next().map(str::to_owned);
    for line in [
        "",
        " ",
        "{",
        "{}}",
        "{\"id\":1,}",
        "nul",
        "[INFO] starting",
        "{'id':1}",
        "npm warn",
        "{\"id\":1}{\"id\":2}",
        "{\"id\":01,\"result\":1}",
        "{\"method\":\"a\nb\"}",
        "\u{feff}{}",
        "{\"method\":\"m\",\"params\":NaN}",
    ] {
        assert_eq!(start(line).as_deref(), Some("-32700"), "{line:?}");
    }
    for line in [
        "[]",
        " [1]",
        "3",
        "\"x\"",
        "null",
        "true",
        "{}",
        r#"{"params":{}}"#,
        r#"{"method":5}"#,
        r#"{"method":{},"id":1}"#,
        r#"{"method":"\ud800"}"#,
        r#"{"id":true,"result":1}"#,
        r#"{"id":{},"result":1}"#,
        r#"{"id":[1],"result":1}"#,
        r#"{"id":1,"id":2,"result":1}"#,
        r#"{"id":1,"result":0,"error":{}}"#,
        r#"{"method":"a","\u006dethod":"b"}"#,
    ] {
        assert_eq!(start(line).as_deref(), Some("-32600"), "{line:?}");
    }
    assert_eq!(parse(b"{\"method\":\"\xff\"}").err(), Some(Malformed::InvalidUtf8));
    assert_eq!(parse(b"[]").err(), Some(Malformed::Array));
    assert_eq!(parse(b"1").err(), Some(Malformed::Scalar));
    assert_eq!(parse(b"{}").err(), Some(Malformed::NotAMessage));
    assert_eq!(parse(b"{\"id\":true}").err(), Some(Malformed::BadId));
    assert_eq!(parse(b"{\"id\":1,\"id\":1}").err(), Some(Malformed::Duplicate("id")));
    assert_eq!(parse(b"{\"id\":1,\"result\":0,\"error\":1}").err(), Some(Malformed::TwoOutcomes));
}

#[test]
fn raw_values_are_slices_of_the_line() {
    let line = br#"{"method":"m","params":{"a":1}}"#;
    let Ok(Message::Notification { params: Some(params), .. }) = parse(line) else {
        panic!("the line is a notification");
    };
    assert_eq!(params.get().as_ptr(), line[23..].as_ptr());
}

#[test]
#[cfg_attr(miri, ignore = "so much takes minutes there")]
fn params_may_nest_deeper_than_a_typed_parser_allows() {
    let depth = 100_000;
    let line =
        format!("{{\"method\":\"m\",\"params\":{}{}}}", "[".repeat(depth), "]".repeat(depth));
    assert!(parse(line.as_bytes()).is_ok());
}

proptest! {
    #[test]
    fn no_bytes_make_parse_panic(line in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = parse(&line);
    }

    #[test]
    fn an_id_keeps_its_text(text in "-?(0|[1-9][0-9]{0,30})(\\.[0-9]{1,3})?(e[0-9])?|\"[a-z\\-]{0,40}\"|null") {
        let id = id(&text);
        prop_assert_eq!(id.raw(), &text);
        prop_assert_eq!(serde_json::to_string(&id).ok(), Some(text.clone()));
        prop_assert_eq!(serde_json::from_str::<Id>(&text).ok(), Some(id));
    }

    #[test]
    fn issued_ids_are_strings_and_come_back(number in any::<u64>()) {
        let issued = Id::issued(number);
        prop_assert_eq!(issued.raw(), format!("\"{}-{}\"", number >> 32, number as u32));
        prop_assert_eq!(id(issued.raw()).as_issued(), Some(number));
        // As daemons up to 0.2 issued them, and as some peers answer those.
        prop_assert_eq!(id(&number.to_string()).as_issued(), Some(number));
        prop_assert_eq!(id(&format!("\"{number}\"")).as_issued(), Some(number));
    }
}

#[test]
fn only_one_text_is_an_issued_id() {
    for text in
        ["\"1-02\"", "\"+1-2\"", "\"1-2-3\"", "\"-1\"", "-1", "1.0", "\"1-4294967296\"", "\"\""]
    {
        assert_eq!(id(text).as_issued(), None, "{text}");
    }
}

#[test]
fn ids_of_different_types_differ() {
    assert_ne!(id("92"), id("\"92\""));
    assert_eq!(id("\"92\"").as_u64(), None);
    assert_eq!(id("-1").as_u64(), None);
    assert!(id("null").is_null() && Id::null().is_null());
    assert!(!id("\"null\"").is_null());
    assert!(size_of::<Id>() <= 24);
}

#[test]
fn built_lines_are_whole_messages_without_a_newline() {
    let params = json!({"a": "x\ny"});
    assert_eq!(
        build::request(&Id::from(3), "m", &params),
        r#"{"jsonrpc":"2.0","id":3,"method":"m","params":{"a":"x\ny"}}"#
    );
    assert_eq!(
        build::request(&id("\"a\""), "m", &()),
        r#"{"jsonrpc":"2.0","id":"a","method":"m"}"#
    );
    assert_eq!(
        build::notification("m", &params),
        r#"{"jsonrpc":"2.0","method":"m","params":{"a":"x\ny"}}"#
    );
    assert_eq!(
        build::response(&Id::null(), &json!({})),
        r#"{"jsonrpc":"2.0","id":null,"result":{}}"#
    );
    let error = ErrorObject::new(code::INTERNAL, "gone").with_data(&json!({"k": 1}));
    assert_eq!(
        build::error(&Id::from(1), &error),
        r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"gone","data":{"k":1}}}"#
    );
}

#[test]
fn any_error_of_a_peer_can_be_read() {
    for (text, code, message, data) in [
        (r#"{"code":-32000,"message":"login"}"#, -32000, "login", None),
        (r#"{"code":1,"message":"m","data":[1]}"#, 1, "m", Some("[1]")),
        (r#"{"code":"x","message":null,"data":null}"#, -32603, "", None),
        (r#""boom""#, -32603, "boom", None),
        ("[]", -32603, "", None),
    ] {
        let error: ErrorObject = serde_json::from_str(text).expect("reading never fails");
        assert_eq!((error.code, error.message.as_str()), (code, message), "{text}");
        assert_eq!(error.data.as_deref().map(RawValue::get), data, "{text}");
    }
}

#[test]
fn an_error_is_known_by_its_code_or_by_a_text_in_message_or_data() {
    let error: ErrorObject = serde_json::from_str(
        r#"{"code":-32603,"message":"Internal error","data":{"details":"No Sessions\u0020here"}}"#,
    )
    .unwrap();
    assert_eq!(error.detail().as_deref(), Some("No Sessions here"));
    for (pattern, fits) in [
        ("-32603", true),
        ("-3260", false),
        ("internal", true),
        ("NO SESSIONS", true),
        ("x", false),
    ] {
        assert_eq!(error.is_like(pattern), fits, "{pattern}");
    }
    for data in ["null", r#"" ""#, "{}", r#"{"details":{"a":1}}"#, "[1]"] {
        let text = format!(r#"{{"code":1,"message":"m","data":{data}}}"#);
        let error: ErrorObject = serde_json::from_str(&text).unwrap();
        assert_eq!(error.detail(), None, "{data}");
    }
}
