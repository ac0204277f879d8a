//! The schema of `[policy]`.

use acp_wire::acp::TOOL_KINDS;
use acpd_policy::PolicyConfig;
use serde::Deserialize;
use serde::de::MapAccess;
use serde::de::value::MapAccessDeserializer;
use serde_json::{Map, Value as Json, json};

use crate::config::format::Format;

/// Conditions of a rule but for `kind`, and what each is compared with.
const GLOBS: [(&str, &str); 6] = [
    ("agent", "Globs on the name of the agent."),
    ("workspace", "Globs on the directory of the session: absolute, `~/…` or `**/…`."),
    ("title", "Globs on the title of the call."),
    ("command", "Globs on the command that it runs."),
    ("path", "Globs on the paths that it touches."),
    ("url", "Globs on the addresses that it fetches."),
];

/// `[policy]`. Its type is in the crate of the rules, which names its keys in errors: a test compares them with these.
pub(super) struct PolicyFormat;

impl Format for PolicyFormat {
    type Value = PolicyConfig;

    fn wanted() -> String {
        "a table".to_owned()
    }

    fn table<'de, A: MapAccess<'de>>(entries: A) -> Result<PolicyConfig, A::Error> {
        PolicyConfig::deserialize(MapAccessDeserializer::new(entries))
    }

    fn schema() -> Json {
        let ruling =
            |about: &str| json!({"enum": ["ask", "allow", "reject"], "description": about});
        let one_or_more = |one: Json, about: &str| {
            let list = json!({"type": "array", "items": one});
            json!({"anyOf": [one, list], "description": about})
        };
        let mut conditions: Map<String, Json> = GLOBS
            .iter()
            .map(|(name, about)| {
                ((*name).to_owned(), one_or_more(json!({"type": "string"}), about))
            })
            .collect();
        let kinds = one_or_more(json!({"enum": TOOL_KINDS}), "Kinds of tool calls.");
        let name = json!({"type": "string", "description": "What people call it."});
        conditions.insert("kind".to_owned(), kinds);
        conditions.insert("name".to_owned(), name);
        conditions.insert("decision".to_owned(), ruling("What it decides."));
        json!({
            "type": "object",
            "additionalProperties": false,
            "properties": {
                "default": ruling("What happens when no rule matches."),
                "rules": {
                    "type": "array",
                    "description": "The first rule that matches decides.",
                    "items": {
                        "type": "object",
                        "description": "A rule. Every condition that it names must hold.",
                        "additionalProperties": false,
                        "required": ["decision"],
                        "properties": conditions
                    }
                }
            }
        })
    }
}
