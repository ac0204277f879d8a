//! Hides possible secrets in diagnostic texts: traces of lines, bug reports.
//!
//! In places for secrets all values become [`HIDDEN`]. In running text, secrets can only be
//! recognised by their looks.

use serde_json::{Map, Value};

/// Replacement for a hidden value.
pub const HIDDEN: &str = "[hidden]";

/// Members whose values are always hidden: starts of programs, and instructions outside of the
/// conversation.
const PLACES: [&str; 5] = ["mcpServers", "env", "headers", "_meta", "systemPrompt"];
/// Parts of the names of members with secrets.
const SECRET_NAMES: [&str; 11] = [
    "token",
    "secret",
    "password",
    "passwd",
    "passphrase",
    "apikey",
    "credential",
    "authorization",
    "cookie",
    "privatekey",
    "bearer",
];
/// Methods whose params and results are hidden.
const SECRET_METHODS: [&str; 7] = [
    "authenticate",
    "auth/login",
    "providers/set",
    "elicitation/create",
    "mcp/message",
    "_auth/status_update",
    "auth/status_update",
];
/// Prefixes of well-known keys and tokens.
const BEGINNINGS: [&str; 20] = [
    "sk-",
    "sk_",
    "pk_",
    "rk_",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "ghr_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "AKIA",
    "AIza",
    "ya29.",
    "eyJ",
    "npm_",
    "hf_",
];
/// Least length of a key with such a prefix.
const KEY: usize = 16;
/// Least length of a word of mixed letters and digits that counts as a key.
const LONG_KEY: usize = 32;

/// The structure of a message without secrets. `method` is the message's own, or that of the
/// answered request.
pub fn message(mut message: Value, method: Option<&str>) -> Value {
    let is_secret = method.is_some_and(|method| SECRET_METHODS.contains(&method));
    if let Value::Object(members) = &mut message {
        for (name, value) in members {
            match name.as_str() {
                "jsonrpc" | "id" | "method" => {}
                "params" | "result" if is_secret => hide(value),
                _ => value_of(name, value),
            }
        }
    }
    message
}

/// Removes possible secrets below a member of this name.
fn value_of(name: &str, value: &mut Value) {
    if PLACES.contains(&name) || (is_secret_name(name) && !value.is_number()) {
        return hide(value);
    }
    match value {
        Value::String(said) => *said = text(said),
        Value::Array(values) => values.iter_mut().for_each(|value| value_of(name, value)),
        Value::Object(members) => with_names(members),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Treats an object like `{"name": "API_TOKEN", "value": …}`, or an option like that, as a member,
/// too.
fn with_names(members: &mut Map<String, Value>) {
    let names = ["name", "id", "configId", "key"]
        .into_iter()
        .filter_map(|name| members.get(name)?.as_str());
    let named = names.into_iter().any(is_secret_name);
    for (name, value) in members {
        if named && matches!(&**name, "value" | "currentValue" | "default") {
            hide(value);
        } else {
            value_of(name, value);
        }
    }
}

/// Hides all values, and keeps the structure with the names of members.
fn hide(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(hide),
        Value::Object(members) => members.values_mut().for_each(hide),
        Value::Null => {}
        value => *value = Value::from(HIDDEN),
    }
}

/// Returns whether a member of this name holds a secret.
pub fn is_secret_name(name: &str) -> bool {
    let plain: String =
        name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    SECRET_NAMES.iter().any(|part| plain.contains(part))
        || plain.ends_with("key")
        || plain.ends_with("pwd")
}

/// Running text without possible keys: recognised by prefix or length, behind a name like
/// `API_KEY=` or a word like `Bearer`, or between `//` and `@` of an address.
pub fn text(text: &str) -> String {
    // A key in several lines, as in PEM files.
    if let Some((before, rest)) = text.split_once("-----BEGIN ")
        && rest.split("-----").next().is_some_and(|kind| kind.contains("KEY"))
    {
        let after = rest.split_once("-----END ").and_then(|(_, end)| end.split_once("-----"));
        let after = after.map_or("", |(_, after)| after);
        return format!("{}{HIDDEN}{}", self::text(before), self::text(after));
    }
    let mut out = String::with_capacity(text.len());
    let mut hides_next = false;
    for word in text.split_inclusive(is_space) {
        let bare = word.trim_end_matches(is_space);
        let space = &word[bare.len()..];
        if bare.is_empty() {
            out.push_str(space);
            continue;
        }
        if hides_next && !bare.eq_ignore_ascii_case("bearer") && !bare.eq_ignore_ascii_case("basic")
        {
            out.push_str(HIDDEN);
            hides_next = false;
        } else {
            hides_next = announces(bare) || (hides_next && !bare.is_empty());
            clean_word(bare, &mut out);
        }
        out.push_str(space);
    }
    out
}

fn is_space(c: char) -> bool {
    c.is_whitespace() || c.is_control()
}

/// Returns whether the next word is a secret: `Bearer`, `token:`, `--api-key`.
fn announces(word: &str) -> bool {
    let word = word.trim_start_matches(is_mark);
    if word.eq_ignore_ascii_case("bearer") {
        return true;
    }
    let (name, is_option) = match word.strip_prefix("--") {
        Some(name) => (name, true),
        None => (word, false),
    };
    let name = name.trim_end_matches(['"', '\'']);
    let bare = name.trim_end_matches([':', '=']);
    (is_option || bare.len() < name.len())
        && bare.chars().all(|c| c.is_alphanumeric() || "-_.\"'".contains(c))
        && is_secret_name(bare)
}

fn is_mark(c: char) -> bool {
    "\"'`([{<,;".contains(c)
}

/// A word without possible secrets.
fn clean_word(word: &str, out: &mut String) {
    if let Some((before, after)) = word.split_once("://")
        && let Some((_, host)) = after.split('/').next().and_then(|host| host.rsplit_once('@'))
    {
        let rest = &after[after.find(host).unwrap_or_default()..];
        out.push_str(before);
        out.push_str("://");
        out.push_str(HIDDEN);
        out.push('@');
        return clean_word(rest, out);
    }
    let mut rest = word;
    let mut hides = false;
    while !rest.is_empty() {
        let is_part = |c: char| c.is_alphanumeric() || "-_.+/~".contains(c);
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let (part, after) = rest.split_at(end);
        if !part.is_empty() {
            let shown = if hides || looks_like_key(part) { HIDDEN } else { part };
            out.push_str(shown);
            hides = false;
        }
        let mark = after.find(is_part).unwrap_or(after.len());
        let (marks, next) = after.split_at(mark);
        out.push_str(marks);
        hides = (hides && !next.is_empty())
            || (marks.contains(['=', ':']) && !part.is_empty() && is_secret_name(part));
        rest = next;
    }
}

fn looks_like_key(part: &str) -> bool {
    let begins = BEGINNINGS.iter().any(|begin| {
        part.match_indices(begin).any(|(at, _)| {
            let before = part[..at].chars().next_back();
            before.is_none_or(|c| !c.is_alphanumeric()) && part.len() - at >= KEY
        })
    });
    begins || part.split(['/', '.']).any(is_random)
}

/// Returns whether a long word mixes letters and digits. Ids of sessions do, too: better hidden
/// than a key shown.
fn is_random(part: &str) -> bool {
    let has = |test: fn(char) -> bool| part.chars().any(test);
    let is_uuid = part.len() == 36 && part.bytes().filter(|b| *b == b'-').count() == 4;
    part.len() >= LONG_KEY
        && !is_uuid
        && has(|c| c.is_ascii_digit())
        && has(char::is_alphabetic)
        && part.chars().filter(|c| "-_".contains(*c)).count() * 6 < part.len()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn where_secrets_belong_no_value_is_left() {
        let line = json!({"jsonrpc":"2.0","id":3,"method":"session/new","params":{
            "cwd":"/w","mcpServers":[{"name":"gh","command":"npx","args":["--token","abc"],
                "env":[{"name":"A","value":"b"}]}],
            "_meta":{"x":{"token":"t","deep":[1,true]}},
            "options":[{"name":"API_TOKEN","value":"v"},{"name":"model","value":"opus"},
                {"id":"api_key","currentValue":"v"},{"configId":"dbPwd","value":"v"}],
            "usage":{"inputTokens":7},"accessToken":"u","refresh_token":{"a":"w"}}});
        let clean = message(line, Some("session/new"));
        assert_eq!(
            clean["params"],
            json!({"cwd":"/w","mcpServers":[{"name":HIDDEN,"command":HIDDEN,
                "args":[HIDDEN,HIDDEN],"env":[{"name":HIDDEN,"value":HIDDEN}]}],
                "_meta":{"x":{"token":HIDDEN,"deep":[HIDDEN,HIDDEN]}},
                "options":[{"name":"API_TOKEN","value":HIDDEN},{"name":"model","value":"opus"},
                    {"id":"api_key","currentValue":HIDDEN},{"configId":"dbPwd","value":HIDDEN}],
                "usage":{"inputTokens":7},"accessToken":HIDDEN,"refresh_token":{"a":HIDDEN}})
        );
        assert_eq!((&clean["id"], &clean["method"]), (&json!(3), &json!("session/new")));
        let login = json!({"method":"authenticate","id":1,"params":{"methodId":"k","x":"y"}});
        let clean = message(login, Some("authenticate"));
        assert_eq!(clean["params"], json!({"methodId":HIDDEN,"x":HIDDEN}));
        let answer = json!({"id":1,"result":{"action":"accept","content":{"pin":12}}});
        let clean = message(answer, Some("elicitation/create"));
        assert_eq!(clean["result"], json!({"action":HIDDEN,"content":{"pin":HIDDEN}}));
    }

    #[test]
    fn in_text_a_secret_is_known_by_its_looks() {
        for (said, clean) in [
            ("use sk-ant-REDACTED-REDACTED now", "use [hidden] now"),
            ("export API_KEY=hunter2 and go", "export API_KEY=[hidden] and go"),
            ("Authorization: Bearer abc.def", "Authorization: Bearer [hidden]"),
            ("password: hunter2\nnext", "password: [hidden]\nnext"),
            ("curl -H 'X-Token: hunter2'", "curl -H 'X-Token: [hidden]"),
            ("run --api-key hunter2 x", "run --api-key [hidden] x"),
            ("db_pwd=hunter2", "db_pwd=[hidden]"),
            (
                "a\n-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2\nAAAA\n-----END OPENSSH PRIVATE KEY-----\nb",
                "a\n[hidden]\nb",
            ),
            ("-----BEGIN RSA PRIVATE KEY-----\nhunter2", "[hidden]"),
            ("https://me:hunter2@host.org/a", "https://[hidden]@host.org/a"),
            ("{\"token\":\"hunter2\"}", "{\"token\":\"[hidden]\"}"),
            ("id 0123456789abcdef0123456789abcdef!", "id [hidden]!"),
            (
                "https://h/cb?code=x&access_token=hunter2",
                "https://h/cb?code=x&access_token=[hidden]",
            ),
        ] {
            assert_eq!(text(said), clean);
        }
        for plain in [
            "the tokens are 12 of 200",
            "crates/acpd-core/src/hub/session/turn.rs:12",
            "a-very-long-name-of-a-branch-with-2-digits-and-more",
            "0199c0de-7e57-7000-8000-000000000001",
            "2026-11-23T09:17:31Z  INFO acpd is ready pid=17",
            "",
            "  two  spaces\n",
        ] {
            assert_eq!(text(plain), plain);
        }
    }
}
