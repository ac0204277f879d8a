//! What editors know of `[policy]`. The reader is in the crate of the rules, which says in its errors which keys there
//! are: a test compares them.

use std::collections::BTreeMap;

use acp_wire::acp::TOOL_KINDS;
use serde_json::json;

use crate::config::keys::schema::{Schema, table_of};

/// The conditions of a rule but for `kind`, and what each is compared with.
const GLOBS: [(&str, &str); 6] = [
    ("agent", "Globs on the name of the agent."),
    ("workspace", "Globs on the directory of the session: absolute, `~/…` or `**/…`."),
    ("title", "Globs on the title of the call."),
    ("command", "Globs on the command that it runs."),
    ("path", "Globs on the paths that it touches."),
    ("url", "Globs on the addresses that it fetches."),
];

/// The table `[policy]`.
pub(crate) fn schema() -> Schema {
    let ruling = |about: &str| json!({"enum": ["ask", "allow", "reject"], "description": about});
    let one_or_more = |one: Schema, about: &str| {
        let list = json!({"type": "array", "items": one});
        json!({"anyOf": [one, list], "description": about})
    };
    let globs = GLOBS.map(|(name, about)| (name, one_or_more(json!({"type": "string"}), about)));
    let mut rule = BTreeMap::from(globs);
    rule.insert("name", json!({"type": "string", "description": "What people call it."}));
    rule.insert("decision", ruling("What it decides."));
    rule.insert("kind", one_or_more(json!({"enum": TOOL_KINDS}), "Kinds of tool calls."));
    let mut rule = table_of(rule);
    rule["required"] = json!(["decision"]);
    rule["description"] = json!("A rule. Every condition that it names must hold.");
    let rules = json!({
        "type": "array",
        "items": rule,
        "description": "The first rule that matches decides."
    });
    let default = ruling("What happens when no rule matches.");
    let mut policy = table_of(BTreeMap::from([("default", default), ("rules", rules)]));
    policy["description"] = json!("Who answers permission questions without a person.");
    policy
}
