//! The package for Debian in a clean Debian: installed, used, upgraded under a turn that goes on, and purged.
//!
//! Needs root, `mmdebstrap` and `dpkg-deb`. Outside of continuous integration the test is skipped, with a line that says
//! so, when something is missing.
#![cfg(target_os = "linux")]
#![expect(clippy::print_stdout, reason = "a skipped test says so")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::unistd::Uid;
use xtask::Result;
use xtask::dist::PACKAGE;
use xtask::workspace::{self, in_ci, succeed};

/// Runs as root in the clean Debian. A person's commands run as `ada`, whose home is empty at first.
const SCRIPT: &str = r#"
set -eu
step() { echo "== $*"; }
as_ada() { su ada --shell /bin/sh --command "cd && $1"; }
daemon_pid() { as_ada 'acpctl daemon status --json' | tr ',{' '\n\n' | sed -n 's/ *"pid": *\([0-9]*\).*/\1/p' | head -n 1; }

touch /begun
step installed
dpkg --install /one.deb
dpkg --verify "$PACKAGE"
grep -q '^ExecStart=/usr/bin/acpd run$' /usr/lib/systemd/user/acpd.service
for page in acpd acpctl acpctl-run acpctl-mcp acpctl-web acpctl-web-pair; do test -s "/usr/share/man/man1/$page.1.gz"; done

step used
useradd --create-home ada
as_ada 'mkdir -p .config/acpd && printf "[daemon]\nhost = \"shim\"\n" > .config/acpd/config.toml'
as_ada 'acpctl run -a demo -s fix -n "say #one"' | grep -x 'You said: say #one | history=0 tags=one'
as_ada 'acpctl run -s fix -n --detach "[slow 200]"' > /dev/null
before=$(daemon_pid)

step upgraded in the middle of an answer
dpkg --install /two.deb
test "$(readlink "/proc/$before/exe")" = '/usr/bin/acpd (deleted)'
as_ada 'acpctl run -a demo -s other -n "begun by the old daemon"' | grep -q '^You said: begun by the old daemon'
if as_ada 'acpctl wait fix --timeout 1s' 2> /dev/null; then echo 'the answer was over too early'; exit 1; fi
as_ada 'acpctl daemon restart'
test "$(readlink "/proc/$(daemon_pid)/exe")" = /usr/bin/acpd
as_ada 'acpctl wait fix'
test "$(as_ada 'acpctl session log fix --last --answer' | grep -c '^tick ')" -eq 200
as_ada 'acpctl run -s fix -n "say #two"' | grep -x 'You said: say #two | history=2 tags=one,two'

step purged
as_ada 'acpctl daemon stop'
dpkg --purge "$PACKAGE"
left=$(find / -xdev -newer /begun \( -name '*acpd*' -o -name '*acpctl*' -o -name "*$PACKAGE*" \) \
    -not -path '/proc/*' -not -path '/home/*' -not -path '/tmp/acpd-*')
test -z "$left" || { echo "left: $left"; exit 1; }
step done
"#;

/// What somebody does who has never seen acpd, in the same Debian: with a service manager, a reboot, and all of it taken out.
const NEWCOMER: &str = r#"
set -eu
step() { echo "== $*"; }
mkdir -p /run/systemd/system
useradd --create-home eve
runtime=/run/user/$(id -u eve)
as_eve() { su eve --shell /bin/sh --command "cd && export XDG_RUNTIME_DIR=$runtime && $1"; }
tells() { echo "$ $1"; as_eve "$1" > /told 2>&1 || { cat /told; exit 1; }; cat /told; }
says() { grep -F -q -- "$1" /told || { echo "not said: $1"; exit 1; }; }
groups() { for group in /sys/fs/cgroup /sys/fs/cgroup/systemd /sys/fs/cgroup/unified; do
    test ! -f "$group/cgroup.procs" || echo "$group/$GROUP"; done; }
log_in() {
    mkdir -p "$runtime" && chown eve "$runtime" && chmod 700 "$runtime"
    sh -c 'for group; do mkdir -p "$group" && chown -R eve "$group" && echo $$ > "$group/cgroup.procs"; done
        exec su eve --shell /bin/sh --command "cd && XDG_RUNTIME_DIR='"$runtime"' exec /usr/lib/systemd/systemd --user"' \
        login $(groups) > /manager 2>&1 &
    for _ in $(seq 200); do test ! -S "$runtime/systemd/private" || break; sleep 0.1; done
    as_eve 'systemctl --user is-system-running --wait' > /dev/null || { cat /manager; exit 1; }
}
# Every process of a person ends at once, and what is kept in memory is gone.
reboot() { as_eve 'kill -KILL -1' || true; rm -r "$runtime"; }

log_in
step installed
dpkg --install /one.deb > /dev/null
files() { (cd /home/eve && find . -not -type d | sort); }
files > /before
tells 'acpctl doctor'
tells 'acpctl service install'
says 'it starts when you log in, or with its first client'
tells 'acpctl service status'
tells 'acpctl doctor'

step used
tells 'acpctl run -s first "say #one"'
says 'You said: say #one | history=0 tags=one'
says 'a script without a model'
tells 'acpctl agent ls -a'
says demo
test -s "/usr/share/doc/$PACKAGE/docs/editors.md"
printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}' > /home/eve/editor
as_eve 'acpctl acp < editor; rm editor' > /told
says '"protocolVersion":1'
daemon=$(as_eve 'systemctl --user show acpd.service --property=MainPID --value')
test "$daemon" -gt 1

step rebooted
as_eve 'acpctl run -s first -n --detach "[slow 600]"' > /dev/null
reboot
log_in
as_eve 'acpctl run -s first -n "say #two"' | grep -x 'You said: say #two | history=2 tags=one,two'
tells 'acpctl --no-spawn daemon status'
tells 'acpctl service status'

step removed
tells 'acpctl service uninstall --purge --yes'
dpkg --purge "$PACKAGE" > /dev/null
files > /after
diff /before /after
left=$(find / -xdev -newer /before \( -name '*acpd*' -o -name '*acpctl*' -o -name "*$PACKAGE*" \) \
    -not -path '/proc/*' -not -path '/sys/*')
test -z "$left" || { echo "left: $left"; exit 1; }
left=$(ps -u eve -o args= | grep acp || true)
test -z "$left" || { echo "runs: $left"; exit 1; }
reboot
step done
"#;

#[test]
fn a_clean_debian_installs_uses_upgrades_and_purges_the_package() {
    match missing() {
        Some(missing) if in_ci() => panic!("{missing}"),
        Some(missing) => println!("SKIPPED package for Debian: {missing}"),
        None => package().unwrap(),
    }
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

    play(&root, SCRIPT)?;
    play(&root, NEWCOMER)
}

/// Runs a script in a root directory. All that it starts ends with its first process, and its mounts with that.
fn play(root: &Path, script: &str) -> Result {
    let inside =
        "mount -t proc proc \"$0/proc\" && mount --rbind /sys/fs/cgroup \"$0/sys/fs/cgroup\" &&
        exec chroot \"$0\" /bin/sh -c \"$1\"";
    fs::create_dir_all(root.join("sys/fs/cgroup"))?;
    let mut run = Command::new("unshare");
    run.args(["--mount", "--pid", "--fork", "--kill-child", "sh", "-c", inside]);
    run.arg(root).arg(script).env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    let group = format!("acpd-test-{}", std::process::id());
    run.env("GROUP", &group).env("PACKAGE", PACKAGE);
    let done = run.env("DEBIAN_FRONTEND", "noninteractive").output()?;
    let groups = "for group in /sys/fs/cgroup/$GROUP /sys/fs/cgroup/*/$GROUP; do
        test ! -d \"$group\" || find \"$group\" -depth -type d -exec rmdir {} +; done";
    succeed(Command::new("sh").args(["-c", groups]).env("GROUP", &group))?;
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
