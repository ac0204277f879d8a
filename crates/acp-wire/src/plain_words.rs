//! Error texts of model providers, which agents pass on as JSON.

use std::borrow::Cow;

use serde_json::{Deserializer, Value};

/// Members of an error with its text, the most specific first.
const TEXTS: [&[&str]; 7] = [
    &["error", "message"],
    &["error", "error", "message"],
    &["message"],
    &["details", "message"],
    &["error"],
    &["details"],
    &["detail"],
];

/// Replaces JSON in an error text by the text in that JSON.
pub fn plain_words(text: &str) -> Cow<'_, str> {
    let Some(at) = text.find('{') else { return text.into() };
    let mut values = Deserializer::from_str(&text[at..]).into_iter::<Value>();
    let Some(Ok(value)) = values.next() else { return text.into() };
    let Some(said) = text_in(&value) else { return text.into() };
    let (before, after) = (text[..at].trim_end(), text[at + values.byte_offset()..].trim());
    let said = plain_words(said);
    let said = if before.contains(said.trim()) { "" } else { said.trim() };
    let parts = [before, said, after].into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join(" ").into()
}

fn text_in(error: &Value) -> Option<&str> {
    let at = |path: &&[&str]| path.iter().try_fold(error, |value, name| value.get(name));
    let texts = TEXTS.iter().filter_map(at).filter_map(Value::as_str);
    texts.into_iter().find(|text| !text.trim().is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_of_a_provider_is_replaced_by_its_text() {
        for (text, words) in [
            ("no credit", "no credit"),
            (
                r#"429 {"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}"#,
                "429 slow down",
            ),
            (r#"{"error":{"message":"slow down","code":429}} (try 3)"#, "slow down (try 3)"),
            (r#"{"message":"{\"error\":\"bad key\"}"}"#, "bad key"),
            (r#"bad key: {"error":"bad key"}"#, "bad key:"),
            (r#"{"status":400}"#, r#"{"status":400}"#),
            ("unexpected token { in line 1", "unexpected token { in line 1"),
            (r#"{"message":"half"#, r#"{"message":"half"#),
        ] {
            assert_eq!(plain_words(text), words, "{text}");
        }
    }
}
