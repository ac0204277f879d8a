//! The tree below `/usr` that all packages have in common.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use crate::Result;
use crate::workspace::{self, read, succeed};

const PROGRAMS: [&str; 4] = ["acpctl", "acpctl-mcp", "acpctl-web", "acpd"];
const UNITS: [&str; 2] = ["acpd.service", "acpd.socket"];
const DOCS: [&str; 2] = ["README.md", "CHANGELOG.md"];
const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];
/// Folders of each shell's completions.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "share/bash-completion/completions/acpctl"),
    ("fish", "share/fish/vendor_completions.d/acpctl.fish"),
    ("zsh", "share/zsh/site-functions/_acpctl"),
];

pub(super) struct Programs<'a> {
    pub(super) dir: &'a Path,
    /// Runner of the programs, with its arguments; empty on their own machine.
    pub(super) runner: Vec<String>,
}

impl Programs<'_> {
    fn run(&self, name: &str) -> Command {
        let program = self.dir.join(name);
        let Some((runner, args)) = self.runner.split_first() else { return Command::new(program) };
        let mut command = Command::new(runner);
        command.args(args).arg(program);
        command
    }
}

/// Builds the tree from scratch. `strip` removes the symbols that a release build strips by itself.
pub(super) fn stage(root: &Path, programs: &Programs<'_>, strip: bool) -> Result {
    let _ = fs::remove_dir_all(root);
    let usr = root.join("usr");
    let put = |path: &str, bytes: &[u8], mode: u32| -> Result {
        let path = usr.join(path);
        fs::create_dir_all(path.parent().ok_or("a file has a folder")?)?;
        fs::write(&path, bytes)?;
        Ok(fs::set_permissions(&path, fs::Permissions::from_mode(mode))?)
    };
    for name in PROGRAMS {
        put(&format!("bin/{name}"), &fs::read(programs.dir.join(name))?, 0o755)?;
        if strip {
            succeed(Command::new("strip").arg(usr.join("bin").join(name)))?;
        }
        let sections = read(Command::new("readelf").arg("-SW").arg(usr.join("bin").join(name)))?;
        if sections.contains(".symtab") {
            return Err(format!("`{name}` still has its symbols").into());
        }
    }
    for name in UNITS {
        let unit = fs::read(workspace::root().join("systemd").join(name))?;
        put(&format!("lib/systemd/user/{name}"), &unit, 0o644)?;
    }
    for (shell, path) in COMPLETIONS {
        let script = read(programs.run("acpctl").args(["completions", shell]))?;
        put(path, script.as_bytes(), 0o644)?;
    }
    for name in DOCS {
        put(&format!("share/doc/acpd/{name}"), &fs::read(workspace::root().join(name))?, 0o644)?;
    }
    for folder in ["docs", "docs/examples"] {
        for doc in fs::read_dir(workspace::root().join(folder))? {
            let path = doc?.path();
            if path.is_file() {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                put(&format!("share/doc/acpd/{folder}/{name}"), &fs::read(&path)?, 0o644)?;
            }
        }
    }
    for name in LICENCES {
        put(
            &format!("share/licenses/acpd/{name}"),
            &fs::read(workspace::root().join(name))?,
            0o644,
        )?;
    }
    manuals(programs, &usr.join("share/man/man1"))
}

/// The manual pages, which each program writes from its own command line.
fn manuals(programs: &Programs<'_>, dir: &Path) -> Result {
    fs::create_dir_all(dir)?;
    for (program, args) in [
        ("acpctl", &["man"][..]),
        ("acpctl-mcp", &["--man"]),
        ("acpctl-web", &["man"]),
        ("acpd", &["man"]),
    ] {
        succeed(programs.run(program).args(args).arg(dir))?;
    }
    for page in fs::read_dir(dir)? {
        let path = page?.path();
        succeed(Command::new("gzip").args(["-n9", "--force"]).arg(&path))?;
    }
    Ok(())
}
