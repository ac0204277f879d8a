//! The JSON schema that editors check the file with: it takes all that acpd takes, and refuses what acpd refuses if
//! that can be told from a key and its value.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use acpd::config;
use jsonschema::Validator;
use serde_json::Value;

static SCHEMA: LazyLock<Value> = LazyLock::new(config::schema);
static VALIDATOR: LazyLock<Validator> = LazyLock::new(|| {
    jsonschema::draft7::meta::validate(&SCHEMA).expect("it is a schema");
    jsonschema::validator_for(&SCHEMA).expect("it can be used")
});

/// What editors find wrong in a file.
pub(crate) fn findings(text: &str) -> Vec<String> {
    let file: Value = toml::from_str(text).expect("it is TOML");
    let finding = |error: jsonschema::ValidationError<'_>| {
        let place = error.instance_path().to_string();
        format!("{place}: {error}")
    };
    VALIDATOR.iter_errors(&file).map(finding).collect()
}

/// What acpd finds wrong in it.
fn mistakes(text: &str) -> Vec<String> {
    let read = config::parse(Path::new("config.toml"), text);
    let mistakes = read.err().map(|error| error.mistakes().to_vec()).unwrap_or_default();
    mistakes.into_iter().map(|mistake| mistake.message.raw().to_owned()).collect()
}

/// Every table of the file: how it is written, and where the schema has it. What a table must have is there.
const TABLES: [(&str, &str); 18] = [
    ("", ""),
    ("[daemon]", "/properties/daemon"),
    ("[hooks]", "/properties/hooks"),
    ("[budget]", "/properties/budget"),
    ("[tui]", "/properties/tui"),
    ("[defaults]", "/properties/defaults"),
    ("[defaults.stop]", "/properties/defaults/properties/stop"),
    ("[agents.claude]", "/definitions/agent"),
    ("[agents.claude.stop]", "/definitions/agent/properties/stop"),
    ("[agents.claude.tcp]", "/definitions/agent/properties/tcp"),
    (
        "[agents.claude.credentials.KEY]",
        "/definitions/agent/properties/credentials/additionalProperties",
    ),
    ("[[workspace]]\npath = '/x'", "/properties/workspace/items"),
    ("[mcp.acpd]", "/properties/mcp/additionalProperties"),
    (
        "[mcp.x]\ncommand = 'x'\n[mcp.x.env.KEY]",
        "/properties/mcp/additionalProperties/properties/env/additionalProperties/anyOf/1",
    ),
    (
        "[mcp.x]\nurl = 'http://x'\n[mcp.x.headers.KEY]",
        "/properties/mcp/additionalProperties/properties/headers/additionalProperties/anyOf/1",
    ),
    ("[policy]", "/properties/policy"),
    ("[[policy.rules]]\ndecision = 'ask'", "/properties/policy/properties/rules/items"),
    ("[[policy.rules]]", "/properties/policy/properties/rules/items"),
];

fn keys_at(pointer: &str) -> BTreeSet<&'static str> {
    let table = SCHEMA.pointer(pointer).unwrap_or_else(|| panic!("no {pointer} in the schema"));
    assert!(table["additionalProperties"] == false || pointer.ends_with("agents"), "{pointer}");
    table["properties"].as_object().unwrap().keys().map(String::as_str).collect()
}

/// `UPDATE_DOCS=1 cargo test -p acpd --test config` writes it.
#[test]
fn the_committed_schema_is_the_generated_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/config.schema.json");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, format!("{:#}\n", *SCHEMA)).unwrap();
    }
    let committed: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    let hint = "docs/config.schema.json is out of date; run this test with UPDATE_DOCS=1";
    assert!(committed == *SCHEMA, "{hint}");
}

/// Each word that is a key anywhere, in each table.
#[test]
fn the_keys_of_each_table_are_those_that_acpd_knows_there() {
    let words: BTreeSet<&str> = TABLES.iter().flat_map(|(_, pointer)| keys_at(pointer)).collect();
    assert!(words.len() > 80, "{words:?}");
    let mut strangers = 0;
    for (header, pointer) in TABLES {
        let keys = keys_at(pointer);
        assert!(!keys.is_empty(), "{pointer}");
        for word in &words {
            if header.contains(&format!("\n{word} =")) {
                continue;
            }
            // No key takes a date, and no table is one.
            let said = mistakes(&format!("{header}\n{word} = 1979-05-27\n"));
            let unknown = ["unknown key", "unknown field", "cannot be set"];
            let is_unknown = said.iter().any(|said| unknown.iter().any(|it| said.contains(it)));
            assert_eq!(keys.contains(word), !is_unknown, "`{word}` in `{header}`: {said:?}");
            strangers += u32::from(is_unknown);
        }
    }
    assert!(strangers > 1000, "{strangers}");
}

/// Values that fit somewhere, and values that fit nowhere.
const VALUES: [&str; 36] = [
    "true",
    "0",
    "1",
    "-1",
    "5000",
    "70000",
    "99999999999",
    "1.5",
    "''",
    "'x'",
    "'x y'",
    "'*'",
    "'a*b'",
    "'~'",
    "'~/x'",
    "'/x'",
    "'x:1'",
    "'x:'",
    "'http://x'",
    "'5 USD'",
    "'5 usd'",
    "'0s'",
    "'3s'",
    "'3 s'",
    "'4KiB'",
    "'4kib'",
    "'info'",
    "'a=debug'",
    "'a/b'",
    "[]",
    "['x']",
    "['']",
    "[1]",
    "['x', ['y']]",
    "{}",
    "{ X = 'x' }",
];

/// What only acpd can tell: whether something is there, fits to the rest, or can be used as a pattern.
const BEYOND: [&str; 11] = [
    "no agent",
    "has no `command`",
    "has both",
    "has neither",
    "has `",
    "has a limit",
    "has a `tcp.port`",
    "the least is",
    "is too small",
    "cannot be used",
    "`policy`",
];

#[test]
fn a_value_is_refused_if_acpd_refuses_it() {
    let (mut good, mut bad) = (0, 0);
    for (header, pointer) in TABLES {
        for key in keys_at(pointer) {
            for value in VALUES {
                let text = format!("{header}\n{key} = {value}\n");
                if header.contains(&format!("\n{key} =")) {
                    continue;
                }
                let (said, found) = (mistakes(&text), findings(&text));
                if said.is_empty() {
                    assert!(found.is_empty(), "acpd takes this:\n{text}{found:#?}");
                    good += 1;
                } else if !said.iter().all(|said| BEYOND.iter().any(|it| said.contains(it))) {
                    assert!(!found.is_empty(), "acpd refuses this:\n{text}{said:#?}");
                    bad += 1;
                }
            }
        }
    }
    assert!(good > 500 && bad > 3000, "{good} {bad}");
}

#[test]
fn the_examples_of_the_documents_have_no_mistake() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut pages = vec![root.join("README.md")];
    pages.extend(fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path()));
    let mut examples = 0;
    for page in pages.iter().filter(|page| page.extension().is_some_and(|it| it == "md")) {
        let text = fs::read_to_string(page).unwrap();
        for block in text.split("\n```").filter_map(|block| block.strip_prefix("toml\n")) {
            assert_eq!(mistakes(block), [""; 0], "{}:\n{block}", page.display());
            assert_eq!(findings(block), [""; 0], "{}:\n{block}", page.display());
            examples += 1;
        }
    }
    assert!(examples > 10, "{examples}");
}
