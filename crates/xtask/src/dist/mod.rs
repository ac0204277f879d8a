//! `cargo xtask dist`: the files of a release, in `target/dist`.
//!
//! ```text
//!                       ┌─▶ acpd-VERSION-TARGET.tar.gz
//!  build ─▶ stage/usr ──┼─▶ agent-client-protocol-daemon_VERSION-REVISION_ARCH.deb   dpkg-deb
//!                       └─▶ agent-client-protocol-daemon-VERSION-REVISION.ARCH.rpm   rpmbuild
//!  Cargo.lock ────────────▶ acpd-VERSION.cdx.json   bill of materials
//!  all of these ──────────▶ SHA256SUMS
//! ```
//!
//! Every file is a function of the commit: times are the commit's, paths of the machine do not
//! occur, and tools get fixed values instead of the machine's. `--verify` builds everything a
//! second time in another folder and compares.

mod materials;
mod stage;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Result;
use crate::workspace::{self, cargo_command, read, succeed};

/// The name of the packages. `acpd` alone is one letter away from `acpid`, which handles laptops'
/// lids.
pub const PACKAGE: &str = "agent-client-protocol-daemon";

/// Options of a release.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Build nothing: pack the programs of this folder, stripped and quickly. For tests of the packages.
    #[arg(long, value_name = "DIR")]
    programs: Option<PathBuf>,
    /// The triple of the target [default: this machine's]. Its programs write completions and manual pages: for another
    /// machine, name an emulator in cargo's `CARGO_TARGET_…_RUNNER`.
    #[arg(long)]
    target: Option<String>,
    /// The number of the package among those of one version.
    #[arg(long, default_value_t = 1)]
    revision: u32,
    /// Make only packages of these kinds.
    #[arg(long, value_delimiter = ',', default_value = "tar,deb,rpm")]
    only: Vec<Kind>,
    /// Build everything once more, elsewhere, and compare.
    #[arg(long, conflicts_with = "programs")]
    verify: bool,
}

/// How programs are packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Kind {
    /// For any Linux with a C library of GNU; for any at all if the target is one of musl.
    Tar,
    /// For Debian and what comes from it.
    Deb,
    /// For Fedora, SUSE and what comes from them.
    Rpm,
}

/// Makes the files of a release. Fails if a tool is missing or fails, or two builds differ.
pub fn run(options: &Options) -> Result {
    let release = Release::new(options)?;
    release.make()?;
    print!("{}", fs::read_to_string(release.out.join(SUMS))?);
    if options.verify {
        let again = Release { build: release.dist.join("again"), ..Release::new(options)? };
        let first = fs::read(release.out.join(SUMS))?;
        again.make()?;
        if fs::read(again.out.join(SUMS))? != first {
            return Err("two builds of one commit differ".into());
        }
        fs::remove_dir_all(&again.build)?;
        eprintln!("a second build is the same, byte for byte");
    }
    Ok(())
}

const SUMS: &str = "SHA256SUMS";

struct Release {
    /// `target/dist` of the workspace: the manifests name files staged in it.
    dist: PathBuf,
    out: PathBuf,
    build: PathBuf,
    programs: Option<PathBuf>,
    version: String,
    target: String,
    revision: u32,
    kinds: Vec<Kind>,
    /// The commit's time in seconds since 1970.
    time: String,
}

impl Release {
    fn new(options: &Options) -> Result<Release> {
        let target = match &options.target {
            Some(target) => target.clone(),
            None => workspace::host()?,
        };
        let time = read(
            Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(workspace::root()),
        )?;
        let dist = workspace::root().join("target/dist");
        let build = workspace::bin_dir("")?;
        Ok(Release {
            out: dist.join("release"),
            dist,
            build,
            programs: options.programs.clone(),
            version: workspace::version()?,
            target,
            revision: options.revision,
            kinds: options.only.clone(),
            time: time.trim().to_owned(),
        })
    }

    fn make(&self) -> Result {
        let _ = fs::remove_dir_all(&self.out);
        fs::create_dir_all(&self.out)?;
        let programs = self.programs()?;
        let root = self.dist.join("stage");
        let runner = runner(&self.target);
        stage::stage(&root, &stage::Programs { dir: &programs, runner }, self.programs.is_some())?;
        for kind in &self.kinds {
            match kind {
                Kind::Tar => self.tarball(&root)?,
                Kind::Deb => self.deb(&root)?,
                Kind::Rpm => self.rpm(&root)?,
            }
        }
        let bill = materials::bill(&self.version)?;
        fs::write(self.out.join(format!("acpd-{}.cdx.json", self.version)), bill)?;
        self.sums()
    }

    /// Builds the programs unless they are given, and returns their folder.
    fn programs(&self) -> Result<PathBuf> {
        if let Some(programs) = &self.programs {
            return Ok(programs.clone());
        }
        let mut cargo =
            cargo_command(&["build", "--release", "--locked", "-p", "acpd", "-p", "acpctl"]);
        cargo.arg("--target").arg(&self.target).arg("--target-dir").arg(&self.build);
        cargo.env("RUSTC_WRAPPER", self.compiler()?);
        cargo.env("SOURCE_DATE_EPOCH", &self.time);
        succeed(&mut cargo)?;
        Ok(self.build.join(&self.target).join("release"))
    }

    /// A compiler that knows no path of this machine: such paths would get into messages of panics,
    /// and so into the programs. Flags of cargo would not reach macros and build scripts, by whose
    /// hashes the crates that use them differ.
    fn compiler(&self) -> Result<PathBuf> {
        let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
        let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo")));
        let home = home.ok_or("there is no home directory")?;
        let flags = [(workspace::root(), "acpd"), (self.build.clone(), "build"), (home, "cargo")]
            .map(|(from, to)| format!(" '--remap-path-prefix={}={to}'", from.display()));
        let compiler = self.dist.join("rustc");
        fs::write(&compiler, format!("#!/bin/sh\nexec \"$@\"{}\n", flags.concat()))?;
        fs::set_permissions(&compiler, fs::Permissions::from_mode(0o755))?;
        Ok(compiler)
    }

    /// Packs the staged tree, as it lies below `/usr` or `~/.local`.
    fn tarball(&self, root: &Path) -> Result {
        let name = format!("acpd-{}-{}", self.version, self.target);
        let mut tar = Command::new("tar");
        tar.args(["--create", "--sort=name", "--owner=0", "--group=0", "--numeric-owner"])
            .args(["--mode=go-w", "--format=ustar", "--use-compress-program=gzip -n9"])
            .arg(format!("--mtime=@{}", self.time))
            .arg(format!("--transform=s,^usr,{name},"))
            .arg("--file")
            .arg(self.out.join(format!("{name}.tar.gz")))
            .arg("--directory")
            .arg(root)
            .arg("usr");
        succeed(&mut tar)
    }

    fn deb(&self, stage: &Path) -> Result {
        let arch = if self.target.starts_with("aarch64") { "arm64" } else { "amd64" };
        let root = self.copy(stage, "deb")?;
        // Debian has another folder for zsh.
        let share = root.join("usr/share");
        fs::rename(share.join("zsh/site-functions"), share.join("zsh/vendor-completions"))?;
        let doc = share.join("doc").join(PACKAGE);
        fs::rename(share.join("doc/acpd"), &doc)?;
        fs::rename(share.join("licenses/acpd/LICENSE-MIT"), doc.join("copyright"))?;
        fs::rename(share.join("licenses/acpd/LICENSE-APACHE"), doc.join("LICENSE-APACHE"))?;
        fs::remove_dir_all(share.join("licenses"))?;

        let control = root.join("DEBIAN");
        fs::create_dir(&control)?;
        let sums = "find usr -type f -print0 | sort -z | xargs -0 md5sum";
        let sums = read(Command::new("sh").args(["-c", sums]).current_dir(&root))?;
        fs::write(control.join("md5sums"), sums)?;
        let size =
            read(Command::new("du").args(["-sk", "--apparent-size", "usr"]).current_dir(&root))?;
        let size = size.split_whitespace().next().unwrap_or_default().to_owned();
        let version = format!("{}-{}", self.version, self.revision);
        let values = [("VERSION", version.as_str()), ("ARCHITECTURE", arch), ("SIZE", &size)];
        fs::write(control.join("control"), packaging("deb/control", &values)?)?;

        let file = format!("{PACKAGE}_{version}_{arch}.deb");
        let mut deb = Command::new("dpkg-deb");
        if self.programs.is_some() {
            deb.args(["-Zgzip", "-z1"]);
        }
        deb.args(["--root-owner-group", "--build"]).arg(&root).arg(self.out.join(file));
        succeed(deb.env("SOURCE_DATE_EPOCH", &self.time).stdout(Stdio::null()))
    }

    fn rpm(&self, stage: &Path) -> Result {
        let arch = self.target.split('-').next().unwrap_or_default();
        let root = self.copy(stage, "rpm")?;
        let revision = self.revision.to_string();
        let root = root.to_string_lossy();
        let values =
            [("VERSION", self.version.as_str()), ("REVISION", &revision), ("STAGE", &root)];
        let spec = self.dist.join("acpd.spec");
        fs::write(&spec, packaging("rpm/acpd.spec", &values)?)?;
        let define = |name: &str, value: &str| format!("--define={name} {value}");
        let mut rpm = Command::new("rpmbuild");
        rpm.args(["-bb", "--quiet", "--target", arch])
            .arg(define("_topdir", &self.dist.join("rpmbuild").to_string_lossy()))
            .arg(define("_rpmdir", &self.out.to_string_lossy()))
            .arg(define("_rpmfilename", "%{NAME}-%{VERSION}-%{RELEASE}.%{ARCH}.rpm"))
            .arg(define("_buildhost", "acpd"))
            .arg(define("use_source_date_epoch_as_buildtime", "1"))
            .arg(define("clamp_mtime_to_source_date_epoch", "1"))
            .arg(spec);
        succeed(rpm.env("SOURCE_DATE_EPOCH", &self.time))
    }

    fn copy(&self, stage: &Path, kind: &str) -> Result<PathBuf> {
        let root = self.dist.join(kind);
        let _ = fs::remove_dir_all(&root);
        succeed(Command::new("cp").arg("--archive").arg(stage).arg(&root))?;
        Ok(root)
    }

    fn sums(&self) -> Result {
        let mut names = Vec::new();
        for file in fs::read_dir(&self.out)? {
            names.push(file?.file_name());
        }
        names.sort();
        let sums = read(Command::new("sha256sum").args(names).current_dir(&self.out))?;
        Ok(fs::write(self.out.join(SUMS), sums)?)
    }
}

/// Cargo's runner for programs of another machine, with its arguments: `CARGO_TARGET_…_RUNNER`,
/// such as an emulator.
fn runner(target: &str) -> Vec<String> {
    let name = target.to_uppercase().replace('-', "_");
    let runner = std::env::var(format!("CARGO_TARGET_{name}_RUNNER")).unwrap_or_default();
    runner.split_whitespace().map(str::to_owned).collect()
}

/// A file of `packaging/`, with its words in `@` replaced.
fn packaging(file: &str, values: &[(&str, &str)]) -> Result<String> {
    let mut text = fs::read_to_string(workspace::root().join("packaging").join(file))?;
    for (name, value) in values {
        text = text.replace(&format!("@{name}@"), value);
    }
    Ok(text)
}
