//! Forms: what is read, what an answer must be, what a person may type.

use acp_wire::acp::{ElicitationAnswer, ElicitationMode, ElicitationRequest, FieldKind, Form};
use agent_client_protocol_schema::v1;
use proptest::prelude::*;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

fn raw(value: &Value) -> Box<RawValue> {
    to_raw_value(value).expect("a value serializes")
}

fn form() -> Form {
    let schema = raw(&json!({
        "type":"object","title":"Deploy","required":["where","name"],"properties":{
            "where":{"type":"string","oneOf":[{"const":"eu","title":"Europe"},{"const":"us","title":"America"}]},
            "name":{"type":"string","minLength":2,"maxLength":4,"description":"of the service"},
            "count":{"type":"integer","minimum":1,"maximum":9,"default":3},
            "share":{"type":"number"},
            "sure":{"type":"boolean"},
            "tags":{"type":"array","minItems":1,"maxItems":2,"items":{"type":"string","enum":["a","b","c"]}},
            "plain":{"type":"string","enum":["x","y"]},
        },
    }));
    Form::from_raw(&schema).expect("a flat form")
}

#[test]
fn a_form_has_fields_in_the_order_of_the_schema() {
    let text = r#"{"type":"object","properties":{"b":{"type":"string"},"a":{"type":"boolean"}}}"#;
    let schema: &RawValue = serde_json::from_str(text).expect("JSON");
    let names: Vec<_> =
        Form::from_raw(schema).expect("a form").fields.into_iter().map(|f| f.name).collect();
    assert_eq!(names, ["b", "a"]);
}

#[test]
fn what_is_no_flat_form_is_refused() {
    for schema in [
        json!([]),
        json!({"type":"object"}),
        json!({"properties":{"a":{"type":"object","properties":{}}}}),
        json!({"properties":{"a":{"type":"array","items":{"type":"number"}}}}),
        json!({"properties":{"a":{}}}),
    ] {
        assert!(Form::from_raw(&raw(&schema)).is_err(), "{schema}");
    }
}

#[test]
fn an_answer_is_what_the_form_asks_for_or_no_consent() {
    let form = form();
    let whole = json!({"where":"eu","name":"db","count":9,"share":0.5,"sure":false,"tags":["a"],"plain":"x"});
    assert_eq!(form.check(&whole), Ok(()));
    assert_eq!(form.check(&json!({"where":"eu","name":"db"})), Ok(()));
    for (member, value) in [
        ("where", json!("asia")),
        ("where", Value::Null),
        ("name", json!("x")),
        ("name", json!("abcde")),
        ("name", json!(7)),
        ("count", json!(0)),
        ("count", json!(10)),
        ("count", json!(1.5)),
        ("share", json!("1")),
        ("sure", json!("yes")),
        ("tags", json!([])),
        ("tags", json!(["a", "b", "c"])),
        ("tags", json!(["d"])),
        ("tags", json!([1])),
        ("plain", json!("z")),
        ("other", json!(1)),
    ] {
        let mut content = whole.clone();
        content[member] = value;
        assert!(form.check(&content).is_err(), "{content}");
    }
    assert!(form.check(&json!({"where":"eu"})).is_err());
    assert!(form.check(&json!("x")).is_err());
}

#[test]
fn only_the_shapes_of_the_schema_are_answers() {
    let mode = ElicitationMode::Form(form());
    let content = json!({"where":"eu","name":"db"});
    let accepted = json!({"action":"accept","content":content});
    let answer = ElicitationAnswer::from_raw(&raw(&accepted), &mode).expect("valid");
    assert_eq!(serde_json::to_value(&answer).expect("JSON"), accepted);
    for (result, valid) in [
        (json!({"action":"decline"}), true),
        (json!({"action":"cancel"}), true),
        (json!({"action":"accept"}), false),
        (json!({"action":"accept","content":null}), false),
        (json!({"action":"yes"}), false),
        (json!({}), false),
        (json!(["accept"]), false),
        (json!("accept"), false),
    ] {
        assert_eq!(ElicitationAnswer::from_raw(&raw(&result), &mode).is_ok(), valid, "{result}");
    }
    let url = ElicitationMode::Url { url: "https://x".into(), elicitation_id: "e".into() };
    let agreed = ElicitationAnswer::from_raw(&raw(&json!({"action":"accept"})), &url);
    assert_eq!(agreed, Ok(ElicitationAnswer::Accept { content: None }));
}

#[test]
fn what_acpd_answers_is_an_official_answer() {
    let content = Some(json!({"name":"db","count":2,"sure":true}));
    for answer in [
        ElicitationAnswer::Accept { content },
        ElicitationAnswer::Accept { content: None },
        ElicitationAnswer::Decline,
        ElicitationAnswer::Cancel,
    ] {
        let text = serde_json::to_string(&answer).expect("JSON");
        serde_json::from_str::<v1::CreateElicitationResponse>(&text).expect("official");
    }
}

#[test]
fn a_request_has_a_scope_and_a_mode() {
    let schema = json!({"type":"object","properties":{}});
    let form = json!({"mode":"form","message":"m","sessionId":"s","requestedSchema":schema});
    let params = raw(&form);
    let request = ElicitationRequest::from_raw(&params).expect("a form");
    assert_eq!(request.session_id.as_deref(), Some("s"));
    let url =
        json!({"mode":"url","message":"m","requestId":12,"elicitationId":"e","url":"https://x"});
    let params = raw(&url);
    let request = ElicitationRequest::from_raw(&params).expect("a page");
    assert_eq!(request.request_id.and_then(|id| id.as_u64()), Some(12));
    for broken in [
        json!({"mode":"form","message":"m","requestedSchema":schema}),
        json!({"mode":"voice","message":"m","sessionId":"s"}),
        json!({"mode":"url","message":"m","sessionId":"s","url":"https://x"}),
        json!({"mode":"form","message":"m","sessionId":"s"}),
    ] {
        assert!(ElicitationRequest::from_raw(&raw(&broken)).is_err(), "{broken}");
    }
}

#[test]
fn a_person_types_numbers_of_choices_labels_and_words() {
    let form = form();
    let parse = |name: &str, text: &str| form.field(name).expect("a field").parse(text);
    assert_eq!(parse("where", "2"), Ok(json!("us")));
    assert_eq!(parse("where", "Europe"), Ok(json!("eu")));
    assert_eq!(parse("where", "eu"), Ok(json!("eu")));
    assert!(parse("where", "3").is_err() && parse("where", "0").is_err());
    assert_eq!(parse("tags", "a, 3"), Ok(json!(["a", "c"])));
    assert_eq!(parse("sure", "Y"), Ok(json!(true)));
    assert_eq!(parse("count", " 7 "), Ok(json!(7)));
    assert!(parse("count", "99").is_err() && parse("share", "inf").is_err());
    assert_eq!(form.field("count").and_then(|field| field.default.clone()), Some(json!(3)));
    assert!(matches!(form.field("plain").expect("a field").kind, FieldKind::One(_)));
}

proptest! {
    #[test]
    fn whatever_is_typed_is_refused_or_fits_the_field(text in ".{0,12}") {
        for field in &form().fields {
            if let Ok(value) = field.parse(&text) {
                prop_assert_eq!(field.check(&value), Ok(()));
            }
        }
    }
}
