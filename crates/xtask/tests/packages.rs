//! The package for Debian in a clean Debian: installed, used, upgraded under a turn that goes on, and purged.
//!
//! Needs root, `mmdebstrap` and `dpkg-deb`. Outside of continuous integration the test is skipped, with a line that says
//! so, when something is missing.
#![cfg(target_os = "linux")]
#![expect(clippy::print_stdout, reason = "it shows what the scripts say")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::unistd::Uid;
use xtask::Result;
use xtask::dist::PACKAGE;
use xtask::workspace::{self, succeed};

/// Common beginning of both scripts.
const COMMON: &str = include_str!("packages/common.sh");
const UPGRADE: &str = include_str!("packages/upgrade.sh");
const NEWCOMER: &str = include_str!("packages/newcomer.sh");

/// Runs the script of the root directory that is its argument: all that it starts ends with its first process.
/// Its control groups are in a mount of its own, so that it does not matter which are mounted on this machine, and how; where
/// that is refused, those of the machine. The groups are taken away in the end, as soon as all that was in them has left.
const INSIDE: &str = r#"
mount -t cgroup2 none "$0/sys/fs/cgroup" && mkdir "$0/sys/fs/cgroup/$GROUP" || {
    echo "== with the control groups of this machine, for want of a mount of cgroup2"
    mount --rbind /sys/fs/cgroup "$0/sys/fs/cgroup"
}
unshare --pid --fork --kill-child chroot "$0" sh -c 'mount -t proc proc /proc && exec sh /script'
code=$?
for _ in $(seq 100); do
    left=$(find "$0/sys/fs/cgroup" -depth -type d -path "*/$GROUP*" -exec rmdir {} + 2>&1) && break
    sleep 0.1
done
test -z "$left" || echo "$left" >&2
exit $code
"#;

#[test]
fn a_clean_debian_installs_uses_upgrades_and_purges_the_package() {
    match missing() {
        Some(missing) => workspace::skip("package for Debian", missing),
        None => package(),
    }
    .unwrap();
}

fn missing() -> Option<String> {
    if !Uid::effective().is_root() {
        return Some("it needs root, for a root directory of its own".to_owned());
    }
    let is_there = |program: &str| {
        let found = Command::new(program).arg("--version").stdout(Stdio::null()).status();
        found.is_ok_and(|status| status.success())
    };
    let missing = ["mmdebstrap", "dpkg-deb", "unshare"].into_iter().find(|name| !is_there(name))?;
    Some(format!("`{missing}` is missing"))
}

fn package() -> Result {
    let dir = tempfile::tempdir()?;
    let root = dir.path().join("root");
    let sources = ["/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list"];
    let sources = sources.into_iter().find(|path| Path::new(path).exists());
    let mut debian = Command::new("mmdebstrap");
    debian.args(["--quiet", "--variant=minbase", "--include=procps,systemd", "--format=directory"]);
    debian.arg(codename()?).arg(&root);
    succeed(debian.args(sources))?;
    for (revision, name) in [("1", "one.deb"), ("2", "two.deb")] {
        fs::copy(built(revision)?, root.join(name))?;
    }

    play(&root, UPGRADE)?;
    play(&root, NEWCOMER)
}

/// Runs a script in a root directory.
fn play(root: &Path, script: &str) -> Result {
    fs::create_dir_all(root.join("sys/fs/cgroup"))?;
    fs::write(root.join("script"), format!("{COMMON}{script}"))?;
    let mut run = Command::new("unshare");
    run.args(["--mount", "--kill-child", "--fork", "sh", "-c", INSIDE]).arg(root);
    run.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    run.env("GROUP", format!("acpd-test-{}.slice", std::process::id())).env("PACKAGE", PACKAGE);
    let done = run.env("DEBIAN_FRONTEND", "noninteractive").output()?;
    let (said, told) =
        (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert!(done.status.success() && said.ends_with("== done\n"), "{said}\n{told}");
    println!("{said}");
    Ok(())
}

/// The name of the Debian that this runs on: packages of it are near.
fn codename() -> Result<String> {
    let release = fs::read_to_string("/etc/os-release")?;
    let name = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    Ok(name.ok_or("this is no Debian")?.to_owned())
}

/// The package of this revision, from the programs that the tests use.
fn built(revision: &str) -> Result<PathBuf> {
    let mut dist = Command::new(env!("CARGO_BIN_EXE_xtask"));
    dist.args(["dist", "--only", "deb", "--revision", revision, "--programs"]);
    succeed(dist.arg(workspace::bin_dir("debug")?).stdout(Stdio::null()))?;
    let out = workspace::root().join("target/dist/release");
    let files = fs::read_dir(out)?.collect::<std::io::Result<Vec<_>>>()?;
    let deb = files
        .iter()
        .map(fs::DirEntry::path)
        .find(|path| path.extension().is_some_and(|end| end == "deb"));
    Ok(deb.ok_or("no package was made")?)
}
