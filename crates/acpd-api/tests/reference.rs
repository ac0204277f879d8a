//! Generates `docs/reference.md` from the declarations of this crate and their comments.
//! `UPDATE_DOCS=1` writes it, otherwise the test compares it.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use acpd_api::under_agent::{ACP, FLAGS, UnderAgent};
use acpd_api::{ExitCode, Reason, is_own};
use quote::ToTokens as _;
use syn::{Attribute, Fields, GenericArgument, Item, PathArguments, Type};

const HEAD: &str = "# Reference of the socket

Generated from the crate `acpd-api`; [protocol.md](protocol.md) explains how to use it. A `?` marks members that may be absent.
\"Under an agent\" says what a [client under an agent](protocol.md#under-an-agent) may do.
";

/// Types of other crates, with their files.
const BORROWED: [(&str, &str); 2] = [
    ("acp-wire/src/version.rs", "Version"),
    ("acp-wire/src/dialect/agent/background.rs", "WorkKind"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn reference_is_generated() {
    let types = read_types();
    let mut text = HEAD.to_owned();
    write_methods(&mut text, &types);
    write_rights(&mut text);
    text.push_str("\n## Types\n");
    for item in types.values() {
        write_type(&mut text, item, &types);
    }
    let path = root().join("docs/reference.md");
    if env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    assert!(written == text, "docs/reference.md is not up to date: UPDATE_DOCS=1 writes it");
}

/// All public types that are JSON, by name.
fn read_types() -> BTreeMap<String, Item> {
    let mut types = BTreeMap::new();
    let own = fs::read_dir(root().join("crates/acpd-api/src")).unwrap();
    let own = own.map(|entry| entry.unwrap().path());
    for path in own.chain(BORROWED.map(|(file, _)| root().join("crates").join(file))) {
        let text = fs::read_to_string(&path).unwrap();
        let borrowed = BORROWED.iter().find(|(file, _)| path.ends_with(file));
        for item in syn::parse_file(&text).unwrap().items {
            let (name, attrs) = match &item {
                Item::Struct(item) if matches!(item.fields, Fields::Named(_)) => {
                    (&item.ident, &item.attrs)
                }
                Item::Enum(item) => (&item.ident, &item.attrs),
                _ => continue,
            };
            let is_json = attrs.iter().any(|attr| {
                attr.path().is_ident("derive")
                    && attr.to_token_stream().to_string().contains("Serialize")
            });
            if is_json && borrowed.is_none_or(|(_, wanted)| name == wanted) {
                types.insert(name.to_string(), item);
            }
        }
    }
    types
}

/// The comment of a declaration, on one line and with plain names for links to code.
fn doc(attrs: &[Attribute]) -> String {
    let lines = attrs.iter().filter(|attr| attr.path().is_ident("doc")).filter_map(|attr| {
        let value = &attr.meta.require_name_value().ok()?.value;
        let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) = value else {
            return None;
        };
        Some(text.value().trim().to_owned())
    });
    plain(&lines.collect::<Vec<_>>().join(" "))
}

/// Text of a comment without links to code, for a cell of a table.
fn plain(text: &str) -> String {
    let mut text = text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|");
    while let Some((before, rest)) = text.split_once("[`")
        && let Some((name, after)) = rest.split_once("`]")
    {
        let after = match after.split_once(')') {
            Some((_, rest)) if after.starts_with('(') => rest,
            _ => after,
        };
        let name = name.rsplit("::").next().unwrap_or(name);
        text = format!("{before}`{name}`{after}");
    }
    text
}

/// A value of `#[serde(…)]`: `Some("")` for a word alone.
fn serde(attrs: &[Attribute], wanted: &str) -> Option<String> {
    let mut found = None;
    for attr in attrs.iter().filter(|attr| attr.path().is_ident("serde")) {
        attr.parse_nested_meta(|meta| {
            let value = match meta.value() {
                Ok(value) => value.parse::<syn::LitStr>()?.value(),
                Err(_) => String::new(),
            };
            if meta.path.is_ident(wanted) {
                found = Some(value);
            }
            Ok(())
        })
        .unwrap();
    }
    found
}

/// A name as `rename_all` writes it.
fn renamed(name: &str, rule: Option<&str>) -> String {
    let words: Vec<String> = if name.contains('_') || name.chars().all(|c| !c.is_uppercase()) {
        name.split('_').map(str::to_owned).collect()
    } else {
        let starts: Vec<usize> =
            name.char_indices().filter(|(_, c)| c.is_uppercase()).map(|(at, _)| at).collect();
        let ends = starts.iter().skip(1).copied().chain([name.len()]);
        starts.iter().zip(ends).map(|(start, end)| name[*start..end].to_lowercase()).collect()
    };
    match rule {
        Some("snake_case") => words.join("_"),
        Some("camelCase") => {
            let mut name = words[0].clone();
            for word in &words[1..] {
                let (first, rest) = word.split_at(1);
                name.push_str(&first.to_uppercase());
                name.push_str(rest);
            }
            name
        }
        _ => name.to_owned(),
    }
}

/// A type in JSON, with links to the types of this document.
fn json(ty: &Type, types: &BTreeMap<String, Item>) -> String {
    let Type::Path(path) = ty else { panic!("{}", ty.to_token_stream()) };
    let segment = path.path.segments.last().unwrap();
    let arguments: Vec<String> = match &segment.arguments {
        PathArguments::AngleBracketed(arguments) => arguments
            .args
            .iter()
            .filter_map(|argument| match argument {
                GenericArgument::Type(ty) => Some(json(ty, types)),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    };
    match (segment.ident.to_string().as_str(), arguments.as_slice()) {
        ("Option" | "Box", [inner]) => inner.clone(),
        ("Vec", [inner]) => format!("list of {inner}"),
        ("BTreeMap", [_, value]) => format!("object of {value}"),
        ("Environment", []) => "object of string".to_owned(),
        ("String" | "Untrusted", []) => "string".to_owned(),
        ("bool", []) => "boolean".to_owned(),
        ("u8" | "u16" | "u32" | "u64" | "i64" | "f64" | "Amount", []) => "number".to_owned(),
        ("RawValue" | "Value", []) => "JSON".to_owned(),
        ("Id", []) => "id".to_owned(),
        (name, []) => {
            assert!(types.contains_key(name), "no type {name}");
            format!("[{name}](#{})", name.to_lowercase())
        }
        (name, arguments) => panic!("{name}<{arguments:?}>"),
    }
}

/// The rows of the members of an object.
fn members(fields: &Fields, rule: Option<&str>, types: &BTreeMap<String, Item>) -> Vec<String> {
    let row = |field: &syn::Field| {
        let name = field.ident.as_ref().unwrap().to_string();
        let text = doc(&field.attrs);
        let ty = json(&field.ty, types);
        if serde(&field.attrs, "flatten").is_some() {
            return format!("| | all of {ty} | {text} |");
        }
        let name = serde(&field.attrs, "rename").unwrap_or_else(|| renamed(&name, rule));
        assert!(!name.contains('_'), "`{name}` is not in camel case");
        let is_option = field.ty.to_token_stream().to_string().starts_with("Option");
        let may_lack = is_option
            || serde(&field.attrs, "default").is_some()
            || serde(&field.attrs, "skip_serializing_if").is_some();
        format!("| `{name}`{} | {ty} | {text} |", if may_lack { "?" } else { "" })
    };
    fields.iter().map(row).collect()
}

fn write_type(text: &mut String, item: &Item, types: &BTreeMap<String, Item>) {
    match item {
        Item::Struct(item) => {
            write!(text, "\n### {}\n\n{}\n", item.ident, doc(&item.attrs)).unwrap();
            let rows = members(&item.fields, serde(&item.attrs, "rename_all").as_deref(), types);
            if !rows.is_empty() {
                text.push_str("\n| member | type | meaning |\n| --- | --- | --- |\n");
                text.push_str(&rows.join("\n"));
                text.push('\n');
            }
        }
        Item::Enum(item) => {
            write!(text, "\n### {}\n\n{}\n", item.ident, doc(&item.attrs)).unwrap();
            let tag = serde(&item.attrs, "tag");
            let rule = serde(&item.attrs, "rename_all");
            let is_reason = item.ident == "Reason";
            let head = tag.as_deref().map_or("value".to_owned(), |tag| format!("`{tag}`"));
            let (more, line) =
                if is_reason { (" `acpctl` exits with |", " --- |") } else { ("", "") };
            writeln!(text, "\n| {head} | meaning |{more}\n| --- | --- |{line}").unwrap();
            for variant in &item.variants {
                let own = serde(&variant.attrs, "rename");
                let name =
                    own.unwrap_or_else(|| renamed(&variant.ident.to_string(), rule.as_deref()));
                let mut meaning = doc(&variant.attrs);
                if let Fields::Unnamed(_) = &variant.fields {
                    for field in &variant.fields {
                        write!(meaning, " With all of {}.", json(&field.ty, types)).unwrap();
                    }
                }
                write!(text, "| `{name}` | {meaning} |").unwrap();
                if is_reason {
                    let reason: Reason = serde_json::from_value(name.into()).unwrap();
                    write!(text, " {} |", ExitCode::from(reason).code()).unwrap();
                }
                text.push('\n');
            }
            for variant in &item.variants {
                if let Fields::Named(_) = &variant.fields {
                    let name = renamed(&variant.ident.to_string(), rule.as_deref());
                    let rule = serde(&variant.attrs, "rename_all");
                    let rows = members(&variant.fields, rule.as_deref(), types);
                    writeln!(text, "\n| `{name}` also has | type | meaning |\n| --- | --- | --- |")
                        .unwrap();
                    writeln!(text, "{}", rows.join("\n")).unwrap();
                }
            }
        }
        _ => unreachable!("only structs and enums are read"),
    }
}

/// The declarations in `method.rs`: comment, name, types, of which there is one for a notice.
fn declarations() -> Vec<(String, String, Vec<String>)> {
    let source = include_str!("../src/method.rs");
    let mut found = Vec::new();
    let mut comment = String::new();
    for line in source.lines().map(str::trim) {
        if let Some(text) = line.strip_prefix("///") {
            comment.push_str(text);
        } else if let Some((_, rest)) = line.split_once(" = \"_acpd/") {
            let (name, rest) = rest.split_once("\", ").unwrap();
            let types = rest.split([',', ';']).next().unwrap();
            let types = types.split(" => ").map(|ty| ty.trim().to_owned()).collect();
            found.push((plain(&comment), format!("_acpd/{name}"), types));
            comment.clear();
        } else {
            comment.clear();
        }
    }
    found
}

fn write_methods(text: &mut String, types: &BTreeMap<String, Item>) {
    let link = |name: &String| match name.as_str() {
        "Empty" => String::new(),
        "Value" => "JSON".to_owned(),
        name => {
            assert!(types.contains_key(name), "no type {name}");
            format!("[{name}](#{})", name.to_lowercase())
        }
    };
    text.push_str("\n## Methods\n\n| method | params | result | under an agent | effect |\n| --- | --- | --- | --- | --- |\n");
    let (methods, notices): (Vec<_>, Vec<_>) =
        declarations().into_iter().partition(|(.., types)| types.len() == 2);
    assert!(methods.len() > 40 && notices.len() > 15);
    for (comment, name, types) in methods {
        assert!(is_own(&name) && !comment.is_empty(), "{name}");
        let rights = rights(UnderAgent::of_method(&name));
        let (params, result) = (link(&types[0]), link(&types[1]));
        writeln!(text, "| `{name}` | {params} | {result} | {rights} | {comment} |").unwrap();
    }
    text.push_str("\n## Notices\n\nOnly for clients with `notices`, unless it says otherwise. Journalled notices go to attached clients and come again with the journal.\n\n");
    text.push_str("| notice | params | when |\n| --- | --- | --- |\n");
    for (comment, name, types) in notices {
        writeln!(text, "| `{name}` | {} | {comment} |", link(&types[0])).unwrap();
    }
}

fn rights(side: UnderAgent) -> &'static str {
    match side {
        UnderAgent::Allowed => "allowed",
        UnderAgent::OwnTurns(_) => "own turns",
        UnderAgent::OwnSessions(_) => "own sessions",
        UnderAgent::OwnQuestions(_) => "own questions",
        UnderAgent::Refused(_) => "refused",
    }
}

fn write_rights(text: &mut String) {
    text.push_str("\n## ACP under an agent\n\nOther methods are for the agent to decide.\n\n| method, or member of `_meta._acpd` | under an agent |\n| --- | --- |\n");
    let methods = ACP.iter().map(|(name, side, _)| (*name, *side));
    for (name, side) in methods.chain(FLAGS.iter().copied()) {
        writeln!(text, "| `{name}` | {} |", rights(side)).unwrap();
    }
}
