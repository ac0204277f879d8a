//! The bill of materials: each crate that a release is made of, in `CycloneDX`'s words.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::Result;
use crate::workspace::metadata;

/// The bill, as a JSON document.
pub(super) fn bill(version: &str) -> Result<String> {
    let metadata = metadata(&["--locked", "--all-features"])?;
    let built = built(&metadata)?;
    let mut components: Vec<Value> = metadata["packages"]
        .as_array()
        .ok_or("cargo tells no packages")?
        .iter()
        .filter(|package| package["id"].as_str().is_some_and(|id| built.contains(id)))
        .filter(|package| !package["source"].is_null())
        .map(component)
        .collect();
    components.sort_by_key(|component| component["bom-ref"].to_string());
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "acpd", "version": version,
            "bom-ref": format!("pkg:cargo/acpd@{version}")}},
        "components": components,
    });
    Ok(format!("{bill:#}\n"))
}

fn component(package: &Value) -> Value {
    let text = |key: &str| package[key].as_str().unwrap_or_default();
    let purl = format!("pkg:cargo/{}@{}", text("name"), text("version"));
    json!({
        "type": "library", "bom-ref": purl, "purl": purl, "name": text("name"), "version": text("version"),
        "licenses": [{"expression": text("license").replace('/', " OR ")}],
    })
}

/// The ids of the packages that the two programs need, tests aside.
fn built(metadata: &Value) -> Result<BTreeSet<&str>> {
    let nodes = metadata["resolve"]["nodes"].as_array().ok_or("cargo tells no graph")?;
    let name_of = |id: &str| {
        id.rsplit(['/', '#'])
            .next()
            .unwrap_or_default()
            .split('@')
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    let mut next: Vec<&str> = nodes
        .iter()
        .filter_map(|node| node["id"].as_str())
        .filter(|id| {
            ["acpd", "acpctl"].contains(&name_of(id).as_str())
                || id.contains("crates/acpd#")
                || id.contains("crates/acpctl#")
        })
        .collect();
    let mut seen = BTreeSet::new();
    while let Some(id) = next.pop() {
        if !seen.insert(id) {
            continue;
        }
        let node = nodes
            .iter()
            .find(|node| node["id"] == id)
            .ok_or("a package is missing in the graph")?;
        let is_in = |kinds: &Value| {
            kinds.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind["kind"] != "dev"))
        };
        for dependency in
            node["deps"].as_array().into_iter().flatten().filter(|dep| is_in(&dep["dep_kinds"]))
        {
            next.extend(dependency["pkg"].as_str());
        }
    }
    Ok(seen)
}
