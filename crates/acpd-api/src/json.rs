//! JSON output of programs. It may end up on a terminal, so every character that [`escape`] would
//! not show unchanged becomes `\uXXXX`, which is the same JSON.

use serde::Serialize;
use serde_json::Result;

use crate::escape;

/// A value on one line, without a newline.
pub fn line(value: &(impl Serialize + ?Sized)) -> Result<String> {
    serde_json::to_string(value).map(escape::json)
}

/// A value in indented lines, without a newline at the end.
pub fn pretty(value: &(impl Serialize + ?Sized)) -> Result<String> {
    serde_json::to_string_pretty(value).map(escape::json)
}
