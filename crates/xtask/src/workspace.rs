use std::collections::BTreeSet;
use std::env;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::Result;

pub fn root() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).unwrap_or(package).to_owned()
}

/// Returns whether this is continuous integration, which skips nothing.
pub fn in_ci() -> bool {
    env::var_os("CI").is_some_and(|ci| ci == "true")
}

/// Reports that something is skipped because of something missing; in continuous integration that
/// is an error.
pub fn skip(what: &str, missing: impl Display) -> Result {
    if in_ci() {
        return Err(missing.to_string().into());
    }
    eprintln!("SKIPPED: {what}: {missing}");
    Ok(())
}

pub fn cargo_command(args: &[&str]) -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(args).current_dir(root());
    // The outer cargo sets these, and build scripts that read them would run again in the inner one.
    let is_outer = |of: &String| of.starts_with("CARGO_PKG_") || of.starts_with("CARGO_MANIFEST_");
    let names = env::vars_os().filter_map(|(name, _)| name.into_string().ok());
    names.filter(is_outer).for_each(|name| _ = command.env_remove(name));
    command
}

pub fn has_cargo(name: &str) -> bool {
    let mut version = Command::new("cargo");
    version.args([name, "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    version.status().is_ok_and(|status| status.success())
}

pub fn succeed(command: &mut Command) -> Result {
    let words: Vec<_> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy())
        .collect();
    let line = words.join(" ");
    let status = command.status().map_err(|error| format!("cannot run `{line}`: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("`{line}` failed: {status}").into()) }
}

/// Runs a command to its end, and returns its output, which must be UTF-8.
pub fn read(command: &mut Command) -> Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.map_err(|error| format!("cannot run `{name}`: {error}"))?;
    if !output.status.success() {
        return Err(format!("`{name}` failed: {}", output.status).into());
    }
    Ok(String::from_utf8(output.stdout)?)
}

pub fn version() -> Result<String> {
    let metadata = metadata(&["--no-deps"])?;
    let packages = metadata["packages"].as_array().ok_or("cargo tells no packages")?;
    let acpd = packages.iter().find(|package| package["name"] == "acpd");
    let version = acpd.and_then(|acpd| acpd["version"].as_str());
    Ok(version.ok_or("cargo tells no version of acpd")?.to_owned())
}

pub fn cargo(args: &[&str]) -> Result {
    succeed(&mut cargo_command(args))
}

/// The output of `cargo metadata` with these further arguments.
pub fn metadata(args: &[&str]) -> Result<Value> {
    Ok(serde_json::from_str(&read(
        cargo_command(&["metadata", "--format-version", "1"]).args(args),
    )?)?)
}

/// The crates of which packages of the workspace are built, themselves included, each in this
/// format of `cargo tree`; with these further arguments.
pub fn tree(packages: &[&str], format: &str, args: &[&str]) -> Result<BTreeSet<String>> {
    let mut command = cargo_command(&["tree", "--prefix", "none", "--edges", "normal,build"]);
    command.args(["--format", format]);
    for package in packages {
        command.args(["-p", package]);
    }
    let text = read(command.args(args))?;
    Ok(text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect())
}

pub fn host() -> Result<String> {
    Ok(read(Command::new("rustc").args(["--print", "host-tuple"]))?.trim().to_owned())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Profile {
    Debug,
    Release,
}

/// Builds the programs, and returns their directory.
pub fn build(profile: Profile) -> Result<PathBuf> {
    let mut args = vec!["build", "--bins", "-p", "acpd", "-p", "acpctl", "-p", "acpd-test"];
    let folder = match profile {
        Profile::Debug => "debug",
        Profile::Release => {
            args.push("--release");
            "release"
        }
    };
    cargo(&args)?;
    bin_dir(folder)
}

/// The directory of a profile's programs (`debug`, `release`).
pub fn bin_dir(folder: &str) -> Result<PathBuf> {
    let metadata = metadata(&["--no-deps"])?;
    let target = metadata["target_directory"].as_str().ok_or("cargo tells no target directory")?;
    Ok(Path::new(target).join(folder))
}
