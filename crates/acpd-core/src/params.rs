use std::collections::BTreeSet;

use acp_wire::acp::SessionParams;
use acp_wire::bound::LONGEST_PATH;
use acp_wire::{clipped, locate, remove_member};
use acpd_api::{ArchiveFilter, LABEL_BYTES, MAX_LABELS, NAMESPACE, is_label};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::fault::Fault;

/// Maximum size of a new session's params in bytes, because they stay in memory.
const PARAMS_BYTES: usize = 1 << 20;

pub(crate) fn own_meta<T: DeserializeOwned + Default>(meta: Option<&RawValue>) -> Result<T, Fault> {
    let meta = meta.map_or("", |meta| meta.get());
    let Some(range) = locate(meta.as_bytes(), &[NAMESPACE]) else { return Ok(T::default()) };
    let read = serde_json::from_str(&meta[range]);
    read.map_err(|e| Fault::invalid(format!("`_meta.{NAMESPACE}`: {e}")))
}

/// Reads JSON text as a value; `null` if it is invalid.
pub(crate) fn raw(json: &[u8]) -> Box<RawValue> {
    let text = String::from_utf8_lossy(json).into_owned();
    RawValue::from_string(text).unwrap_or_default()
}

pub(crate) fn without_nulls(mut object: Value) -> Value {
    if let Value::Object(members) = &mut object {
        members.retain(|_, value| !value.is_null());
    }
    object
}

pub(crate) fn raw_at<'a>(json: &'a [u8], path: &[&str]) -> Option<&'a RawValue> {
    serde_json::from_slice(&json[locate(json, path)?]).ok()
}

/// Returns a working directory without slashes at its end.
///
/// # Errors
/// When it is not absolute, too long, or contains a NUL.
pub(crate) fn workspace(cwd: &str) -> Result<&str, Fault> {
    path("cwd", cwd)?;
    let trimmed = cwd.trim_end_matches('/');
    Ok(if trimmed.is_empty() { cwd } else { trimmed })
}

/// Reads a request for a new or an adopted session: its directory, its `_acpd` members, and the
/// params without those that no client may set.
pub(crate) fn read_opening<M>(raw: &RawValue) -> Result<(String, M, Bytes), Fault>
where
    M: DeserializeOwned + Default,
{
    let params = SessionParams::from_raw(raw);
    let cwd = params.cwd.as_deref().ok_or_else(|| Fault::invalid("`cwd` is missing"))?;
    let cwd = workspace(cwd)?.to_owned();
    params.additional_directories.iter().try_for_each(|dir| path("additionalDirectories", dir))?;
    bounded(raw)?;
    let given = Bytes::copy_from_slice(raw.get().as_bytes());
    Ok((cwd, own_meta(params.meta)?, remove_member(&given, &[NAMESPACE])))
}

pub(crate) fn session_roots(cwd: &str, params: &[u8]) -> Vec<String> {
    let more = locate(params, &["additionalDirectories"]);
    let more = more.and_then(|at| serde_json::from_slice::<Vec<String>>(&params[at]).ok());
    std::iter::once(cwd.to_owned()).chain(more.unwrap_or_default()).collect()
}

pub(crate) fn bounded(params: &RawValue) -> Result<(), Fault> {
    let bytes = params.get().len();
    if bytes > PARAMS_BYTES {
        return Err(Fault::invalid(format!("`params` of {bytes} bytes are over {PARAMS_BYTES}")));
    }
    Ok(())
}

pub(crate) fn path(member: &str, text: &str) -> Result<(), Fault> {
    let drive = cfg!(windows) && text.as_bytes().get(1) == Some(&b':');
    let is_absolute = text.starts_with('/') || text.starts_with("\\\\") || drive;
    if text.len() > LONGEST_PATH || text.contains('\0') || !is_absolute {
        let text = format!("`{member}` must be an absolute path, not `{}`", clipped(text, 100));
        return Err(Fault::invalid(text));
    }
    Ok(())
}

pub(crate) fn valid_name(name: &str) -> Result<(), Fault> {
    let bad = name.is_empty()
        || name.chars().count() > 100
        || name.starts_with('-')
        || name.trim() != name
        || name.chars().any(char::is_control);
    if bad {
        let text = format!("`{}` is not a session name", clipped(name, 100));
        return Err(Fault::invalid(text).hint(
            "a name has 1 to 100 characters, no control characters, no white space at its ends \
             and does not begin with `-`",
        ));
    }
    Ok(())
}

/// Returns the set of labels that a session will have.
///
/// # Errors
/// When one of them is invalid, or they are too many.
pub(crate) fn valid_labels(
    labels: impl IntoIterator<Item = String>,
) -> Result<BTreeSet<String>, Fault> {
    let labels: BTreeSet<String> = labels.into_iter().collect();
    if let Some(bad) = labels.iter().find(|label| !is_label(label)) {
        let text = format!("`{}` is not a label", clipped(bad, 100));
        return Err(Fault::invalid(text).hint(format!(
            "a label has 1 to {LABEL_BYTES} ASCII letters, digits and `._:=/-`, and does not begin \
             with `-`"
        )));
    }
    if labels.len() > MAX_LABELS {
        let text = format!("a session has at most {MAX_LABELS} labels, not {}", labels.len());
        return Err(Fault::invalid(text).hint("leave some out, or remove others first"));
    }
    Ok(labels)
}

/// # Errors
/// When `archived` has an unknown value.
pub(crate) fn filter_of(params: Option<&RawValue>) -> Result<ArchiveFilter, Fault> {
    let text = params.map_or("{}", |params| params.get());
    let Some(range) = acp_wire::locate(text.as_bytes(), &["archived"]) else {
        return Ok(ArchiveFilter::default());
    };
    let filter: Result<Option<ArchiveFilter>, _> = serde_json::from_str(&text[range.clone()]);
    filter.map(Option::unwrap_or_default).map_err(|_| {
        let text = format!("`archived` cannot be {}", &text[range]);
        Fault::invalid(text).hint("it is \"exclude\", \"include\" or \"only\"")
    })
}

pub(crate) fn read<T: DeserializeOwned>(params: Option<&RawValue>) -> Result<T, Fault> {
    let params = params.ok_or_else(|| Fault::invalid("`params` is missing"))?;
    serde_json::from_str(params.get()).map_err(|error| Fault::invalid(error.to_string()))
}
