//! The installed package that `npx` or `uvx` would run.
//!
//! Both may ask a registry at each start, and `npx` stays as a process above the agent. A restart
//! after a crash should need neither. So a command of an exactly known form is replaced by the
//! package's own program:
//!
//! | command | looked for, in this order |
//! | --- | --- |
//! | `npx [-y\|--yes] PACKAGE[@VERSION] …` | `node_modules` in the profile's `cwd`; next to the folders of `PATH`, where `npm install -g` puts packages; the cache of `npx` |
//! | `uvx PACKAGE[@VERSION] …` | packages of `uv tool install` |
//!
//! Architecture invariant: never another version than the command asks for. A version is compared
//! with the installed package's. Without a version, only packages that the user installed count,
//! and a cache that was made for exactly this command.

use std::env::consts::EXE_SUFFIX;
use std::env::home_dir;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use acpd_sys::programs;
use serde_json::{Value as Json, json};

use crate::config::launch::variable;
use crate::config::profile::Profile;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Installed {
    /// No package runner, or an unknown form, or the profile wants the runner.
    Other,
    /// The package's own program, with the arguments of the command from `args` on.
    Here {
        program: PathBuf,
        args: usize,
    },
    Missing {
        install: String,
    },
}

struct Wanted<'a> {
    text: &'a str,
    name: &'a str,
    version: Option<&'a str>,
}

/// Looks for the package in the profile's command. `env` is from
/// [`environment`](super::environment). A missing package of the catalogue is always reported,
/// because the user has not allowed its download.
pub fn installed(profile: &Profile, env: &[(OsString, OsString)]) -> Installed {
    match package(profile, env) {
        missing @ Installed::Missing { .. } if profile.is_known_command => missing,
        _ if !profile.prefer_installed => Installed::Other,
        found => found,
    }
}

fn package(profile: &Profile, env: &[(OsString, OsString)]) -> Installed {
    let words: Vec<&str> = profile.command.iter().map(String::as_str).collect();
    let (package, args, install) = match words.as_slice() {
        ["npx", "-y" | "--yes", package, ..] => (package, 3, "npm install -g"),
        ["npx", package, ..] => (package, 2, "npm install -g"),
        ["uvx", package, ..] => (package, 2, "uv tool install"),
        _ => return Installed::Other,
    };
    // `--` ends the options of the runner, which would remove it.
    let Some(wanted) = wanted(package).filter(|_| words.get(args) != Some(&"--")) else {
        return Installed::Other;
    };
    let home = variable(env, "HOME").map_or_else(|| home_dir().unwrap_or_default(), PathBuf::from);
    let found = match words[0] {
        "npx" => node_package(&wanted, profile, env, &home),
        _ => uv_tool(&wanted, env, &home),
    };
    match found {
        Some(program) => Installed::Here { program, args },
        None => Installed::Missing { install: format!("{install} {package}") },
    }
}

/// Parses a package with an exact version or none. Options, tags, ranges, folders and addresses are
/// left to the runner.
fn wanted(text: &str) -> Option<Wanted<'_>> {
    let at = text.char_indices().skip(1).find(|(_, char)| *char == '@').map(|(at, _)| at);
    let (name, version) = match at {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let is_word = |word: &str| {
        let first = word.chars().next();
        let rest = |char: char| char.is_ascii_alphanumeric() || "-_.".contains(char);
        first.is_some_and(|first| first.is_ascii_alphanumeric()) && word.chars().all(rest)
    };
    let is_name = match name.strip_prefix('@').map(|scoped| scoped.split_once('/')) {
        None => is_word(name),
        Some(scoped) => scoped.is_some_and(|(scope, name)| is_word(scope) && is_word(name)),
    };
    // `1` and `1.2` are ranges; `1.2.3-beta.4` is a version.
    let is_exact = |version: &str| {
        let numbers = version.split(['-', '+']).next().unwrap_or_default();
        let number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        let allowed = |char: char| char.is_ascii_alphanumeric() || "-+.".contains(char);
        numbers.split('.').count() == 3
            && numbers.split('.').all(number)
            && version.chars().all(allowed)
    };
    (is_name && version.is_none_or(is_exact)).then_some(Wanted { text, name, version })
}

fn manifest(folder: &Path) -> Option<Json> {
    serde_json::from_slice(&std::fs::read(folder.join("package.json")).ok()?).ok()
}

fn node_package(
    wanted: &Wanted<'_>,
    profile: &Profile,
    env: &[(OsString, OsString)],
    home: &Path,
) -> Option<PathBuf> {
    let path = variable(env, "PATH").unwrap_or_default();
    let with_bin = |modules: PathBuf| (modules.join(".bin"), modules);
    let local = profile.cwd.as_deref().map(|cwd| with_bin(cwd.join("node_modules")));
    let global = std::env::split_paths(path)
        .filter(|bin| bin.is_absolute())
        .filter_map(|bin| Some((bin.clone(), programs::npm_packages_of(&bin)?)));
    let user = local.into_iter().chain(global);
    user.chain(npx_caches(wanted, env, home).into_iter().map(with_bin))
        .find_map(|(bin, modules)| node_program(wanted, &bin, &modules))
}

/// Returns the `node_modules` of the cache folders that were made for this package.
fn npx_caches(wanted: &Wanted<'_>, env: &[(OsString, OsString)], home: &Path) -> Vec<PathBuf> {
    let given = |name: &str| variable(env, name).map(PathBuf::from);
    let cache = given("npm_config_cache").unwrap_or_else(|| programs::npm_cache(home, given));
    // The request for which `npx` made the folder.
    let is_for = json!([wanted.text]);
    let fits = |folder: &PathBuf| {
        manifest(folder).is_some_and(|manifest| manifest["_npx"]["packages"] == is_for)
    };
    let folders = entries(&cache.join("_npx")).into_iter().filter(fits);
    folders.map(|folder| folder.join("node_modules")).collect()
}

/// Returns the package's program in `modules`, if the version is right and `npx` would take this
/// program.
fn node_program(wanted: &Wanted<'_>, bin: &Path, modules: &Path) -> Option<PathBuf> {
    let folder = modules.join(wanted.name);
    let manifest = manifest(&folder)?;
    if wanted.version.is_some() && manifest["version"].as_str() != wanted.version {
        return None;
    }
    let own = wanted.name.rsplit('/').next().unwrap_or_default();
    let (name, file) = match &manifest["bin"] {
        file @ Json::String(_) => (own, file),
        Json::Object(files) if files.len() == 1 => {
            let (name, file) = files.iter().next()?;
            (name.as_str(), file)
        }
        files => (own, files.get(own)?),
    };
    // The program of this name may be another package's.
    programs::npm_program_of(bin, name, &folder.join(file.as_str()?))
}

fn uv_tool(wanted: &Wanted<'_>, env: &[(OsString, OsString)], home: &Path) -> Option<PathBuf> {
    let given =
        |name: &str| variable(env, name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let tools = variable(env, "UV_TOOL_DIR").map(PathBuf::from);
    let tools = tools.unwrap_or_else(|| programs::uv_tools(home, given));
    // Case and the kind of dash do not count (PEP 503).
    let normal = wanted.name.to_ascii_lowercase().replace(['_', '.'], "-");
    let tool = tools.join(&normal);
    if let Some(version) = wanted.version {
        let info = format!("{}-{version}.dist-info", normal.replace('-', "_"));
        // `lib/python3.13`, or on Windows `Lib` alone.
        let lib = tool.join("lib");
        let sites = entries(&lib).into_iter().chain([lib]).map(|lib| lib.join("site-packages"));
        let is_it =
            |path: &PathBuf| path.file_name().is_some_and(|name| name.eq_ignore_ascii_case(&info));
        sites.flat_map(|site| entries(&site)).find(is_it)?;
    }
    let program = format!("{}{EXE_SUFFIX}", wanted.name);
    let programs = ["bin", "Scripts"].map(|folder| tool.join(folder).join(&program));
    programs.into_iter().find(|program| program.is_file())
}

/// Returns what is in a folder, sorted; nothing if it cannot be read.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut entries: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    entries.sort();
    entries
}
