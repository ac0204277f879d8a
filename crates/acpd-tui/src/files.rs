//! Files of a directory, for `@`. A thread reads them, because a directory may be large or slow.

use std::path::{MAIN_SEPARATOR, Path};

use acpd_api::{Untrusted, escape};
use acpd_client::attachment;
use acpd_view::text::Text;
use ignore::WalkBuilder;
use serde_json::Value;

use crate::app::{PromptFile, PromptFiles, Refused};

const MAX_PATHS: usize = 20_000;
/// Includes directories and ignored files.
const MAX_VISITED: usize = 10 * MAX_PATHS;

/// Returns the relative paths of files, with `/` on every system, those at the top first. Ignored
/// and hidden files are skipped, and names that must be escaped.
pub(crate) fn of(directory: &str) -> Vec<String> {
    let directory = Path::new(directory);
    // A `.gitignore` counts also outside of repositories.
    let walk = WalkBuilder::new(directory).require_git(false).build();
    // Unreadable directories are skipped.
    let entries = walk.take(MAX_VISITED).flatten();
    let files = entries.filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()));
    let paths = files.filter_map(|entry| {
        let path = entry.path().strip_prefix(directory).ok()?.to_str()?;
        let path = path.replace(MAIN_SEPARATOR, "/");
        (escape::verbatim(&path).to_string() == path).then_some(path)
    });
    let mut paths: Vec<String> = paths.take(MAX_PATHS).collect();
    paths.sort_by_cached_key(|path| (path.matches('/').count(), path.clone()));
    paths
}

/// Returns a block for each file, or the first error.
pub(crate) fn attached(prompt: &PromptFiles) -> Result<Vec<Value>, Refused> {
    let blocks = prompt.files.iter().map(|PromptFile { path, name }| {
        attachment::mentioned(Path::new(path), name, prompt.can).map_err(|error| Refused {
            why: Text::from(&Untrusted::of(&error)),
            hint: error.hints.first().map(|hint| Text::from(*hint)),
        })
    });
    blocks.collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn ignored_hidden_and_odd_files_are_left_out() {
        let dir = tempfile::tempdir().unwrap();
        for path in ["src/a.rs", "b.md", "target/x.o", ".env", "odd\u{202e}.txt", "ö.txt"] {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        fs::write(dir.path().join(".gitignore"), "target\n").unwrap();
        assert_eq!(of(dir.path().to_str().unwrap()), ["b.md", "ö.txt", "src/a.rs"]);
        assert!(of("/does/not/exist").is_empty());
    }
}
