//! `cargo xtask vendor`: the libraries of the page, as npm has them.
//!
//! The page is served as it lies in `crates/acpd-web/page`, so its libraries lie there, too: a few
//! files of a few packages, unchanged but for the names by which they import each other. A test
//! makes them again, and compares.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::workspace::{self, succeed};
use crate::{Result, test};

/// A package of npm, and its files for the page.
struct Library {
    name: &'static str,
    version: &'static str,
    /// Of the whole package, as npm reports it.
    hash: &'static str,
    licence: &'static str,
    files: &'static [File],
}

/// A file in a package, and its name in the page.
struct File {
    from: &'static str,
    to: &'static str,
    /// Names in its imports, and their replacements.
    imports: &'static [(&'static str, &'static str)],
}

const fn plain(from: &'static str, to: &'static str) -> File {
    File { from, to, imports: &[] }
}

const LIBRARIES: [Library; 4] = [
    Library {
        name: "preact",
        version: "11.2.0",
        hash: "sha512-/HfHI/7N84e6GrWBJ3J280z3mLaRJiDcSvj/A+y/4AbLnND/1UlGHe1sR6oYuTGwId0nP7dqDU9OnLxMPZ7xBg==",
        licence: "MIT",
        files: &[
            plain("dist/preact.mjs", "preact.js"),
            File {
                from: "hooks/dist/hooks.mjs",
                to: "hooks.js",
                imports: &[("from\"preact\"", "from\"./preact.js\"")],
            },
        ],
    },
    Library {
        name: "htm",
        version: "3.1.1",
        hash: "sha512-983Vyg8NwUE7JkZ6NmOqpCZ+sh1bKv2iYTlUkzlWmA5JD2acKoxd4KVxbMmxX/85mtfdnDmTFoNKcg5DGAvxNQ==",
        licence: "Apache-2.0",
        files: &[plain("dist/htm.mjs", "htm.js")],
    },
    Library {
        name: "marked",
        version: "18.2.1",
        hash: "sha512-ii4bxCTCqqwpT86XZWgJNs+ZnAIZksmLGYMViWA7PDIXYIeNo1x6cDdX3JOip9NM/cI6p8z57FxliACboTruMA==",
        licence: "MIT",
        files: &[plain("lib/marked.esm.js", "marked.js")],
    },
    Library {
        name: "@highlightjs/cdn-assets",
        version: "11.12.0",
        hash: "sha512-KvOKXODaiFmId9xaq3xc5xCL66wVLUuOngDbO9B/kewbFTqdGbn2nJxNhN3H5R1cgDTVj6R8vH0zgiNDEGjpDw==",
        licence: "BSD-3-Clause",
        files: &[
            plain("es/core.min.js", "highlight.js"),
            plain("es/languages/bash.min.js", "highlight-bash.js"),
            plain("es/languages/diff.min.js", "highlight-diff.js"),
            plain("es/languages/go.min.js", "highlight-go.js"),
            plain("es/languages/json.min.js", "highlight-json.js"),
            plain("es/languages/python.min.js", "highlight-python.js"),
            plain("es/languages/rust.min.js", "highlight-rust.js"),
            plain("es/languages/typescript.min.js", "highlight-typescript.js"),
            plain("es/languages/yaml.min.js", "highlight-yaml.js"),
        ],
    },
];

pub fn folder() -> PathBuf {
    workspace::root().join("crates/acpd-web/page/lib")
}

pub fn run() -> Result {
    let folder = folder();
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fetch(&folder)
}

/// Fetches the libraries into a new folder. Fails if npm is missing, does not have them, or has
/// other content under their names.
pub fn fetch(folder: &Path) -> Result {
    if !test::on_path("npm") {
        return Err("npm is missing, which fetches the libraries".into());
    }
    fs::create_dir_all(folder)?;
    let mut licences = String::from("Libraries of the page, and their licences.\n");
    for library in &LIBRARIES {
        let package = tempfile::tempdir()?;
        library.unpack(package.path())?;
        let read = |name: &str| fs::read_to_string(package.path().join("package").join(name));
        for file in library.files {
            let text = file.rewritten(&read(file.from)?)?;
            fs::write(folder.join(file.to), text)?;
        }
        let Library { name, version, licence, .. } = library;
        let text = read("LICENSE")?.replace("\r\n", "\n");
        let text = text.trim();
        writeln!(licences, "\n---\n\n{name} {version} ({licence})\n\n{text}")?;
    }
    Ok(fs::write(folder.join("LICENSES.txt"), licences)?)
}

impl Library {
    /// Fetches the package, and checks its hash.
    fn unpack(&self, folder: &Path) -> Result {
        let name = format!("{}@{}", self.name, self.version);
        let mut pack = Command::new("npm");
        pack.args(["pack", &name, "--json"]).current_dir(folder).stderr(Stdio::null());
        let output = pack.output()?;
        if !output.status.success() {
            return Err(format!("`npm pack {name}` failed: {}", output.status).into());
        }
        // A list, or in later versions an object by the names of the packages.
        let told: Value = serde_json::from_slice(&output.stdout)?;
        let told = told.get(0).or_else(|| told.get(self.name)).ok_or("npm tells nothing")?;
        if told["integrity"] != self.hash {
            return Err(
                format!("{name} is another package than before: {}", told["integrity"]).into()
            );
        }
        let file = told["filename"].as_str().ok_or("npm tells no file name")?;
        // Packages in a scope: their `/` is no folder.
        let file = file.trim_start_matches('@').replace('/', "-");
        succeed(Command::new("tar").args(["-xzf", &file]).current_dir(folder))
    }
}

impl File {
    /// The text with rewritten imports, and without a link to a source map that the page does not
    /// have.
    fn rewritten(&self, text: &str) -> Result<String> {
        let is_kept = |line: &&str| !line.starts_with("//# sourceMappingURL=");
        let mut text =
            text.lines().filter(is_kept).flat_map(|line| [line, "\n"]).collect::<String>();
        for (from, to) in self.imports {
            if !text.contains(from) {
                return Err(format!("`{}` does not import {from} any more", self.from).into());
            }
            text = text.replace(from, to);
        }
        Ok(text)
    }
}
