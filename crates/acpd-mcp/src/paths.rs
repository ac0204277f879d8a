use std::path::{Path, PathBuf};

use acp_wire::acp::{ContentBlock, file_uri};
use acpd_api::SessionInfo;
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::ticket::decoded;

/// The directory of a session, or the working directory.
pub(crate) fn folder(own: Option<&SessionInfo>) -> Result<String, Failure> {
    match own {
        Some(own) => Ok(own.cwd.raw().to_owned()),
        None => {
            let cwd = std::env::current_dir().and_then(|cwd| cwd.canonicalize());
            let cwd = cwd.map_err(|error| Failure::new(format!("the directory: {error}")))?;
            text_of(&cwd)
        }
    }
}

fn text_of(path: &Path) -> Result<String, Failure> {
    let text = path.to_str().map(str::to_owned);
    text.ok_or_else(|| Failure::new(format!("`{}` is not UTF-8", path.display())))
}

pub(crate) fn directory(path: &Path) -> Result<String, Failure> {
    let found = path.canonicalize().and_then(|path| {
        let is_one = path.metadata()?.is_dir();
        is_one.then_some(path).ok_or_else(|| std::io::ErrorKind::NotADirectory.into())
    });
    match found {
        Ok(path) => text_of(&path),
        Err(error) => Err(Failure::new(format!("`cwd` `{}`: {error}", path.display()))),
    }
}

/// The path of a URI, or of a relative path.
pub(crate) fn of_uri(uri: &str) -> Option<PathBuf> {
    let path = decoded(uri.strip_prefix("file://").unwrap_or(uri))?;
    // A drive has a slash before it.
    let behind = path.strip_prefix('/').filter(|rest| Path::new(rest).is_absolute());
    Some(behind.unwrap_or(&path).into())
}

/// A link to a file. The other agent reads it, with its own rights.
pub(crate) fn link(path: &Path) -> Result<Value, Failure> {
    let found = path.canonicalize();
    let found = found.map_err(|error| Failure::new(format!("`{}`: {error}", path.display())))?;
    let name = found.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let uri = file_uri(&text_of(&found)?);
    Ok(json!(ContentBlock::ResourceLink { uri, name, mime_type: None, size: None }))
}
