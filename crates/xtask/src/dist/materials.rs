//! The bill of materials: each crate of a release, in `CycloneDX`'s words.

use serde_json::{Value, json};

use crate::Result;
use crate::workspace::tree;

pub(super) fn bill(version: &str) -> Result<String> {
    let everywhere = ["--locked", "--all-features", "--target", "all"];
    let crates = tree(&["acpd", "acpctl"], "{p}\t{l}\t", &everywhere)?;
    let mut components: Vec<Value> = crates.iter().filter_map(|line| component(line)).collect();
    // A crate whose own tree was shown before has a second line, with a mark.
    components.dedup();
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

/// Reads a line `NAME vVERSION …`, a tab, the licence; `None` for crates of the workspace, whose
/// line has their path.
fn component(line: &str) -> Option<Value> {
    let (package, licence) = line.split_once('\t')?;
    let (licence, _) = licence.split_once('\t')?;
    if package.contains("(/") {
        return None;
    }
    let mut words = package.split(' ');
    let (name, version) = (words.next()?, words.next()?.strip_prefix('v')?);
    let purl = format!("pkg:cargo/{name}@{version}");
    Some(json!({
        "type": "library", "bom-ref": purl, "purl": purl, "name": name, "version": version,
        "licenses": [{"expression": licence.replace('/', " OR ")}],
    }))
}
