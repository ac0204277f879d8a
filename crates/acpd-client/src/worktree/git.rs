//! Runs git: to look, which runs no program that the repository names, or to change something as
//! the user would.

use std::path::Path;
use std::process::{Command, Stdio};

use super::error::{Error, Result};

/// Variables that redirect git to another repository, as those of a hook do.
const ELSEWHERE: [&str; 10] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_COMMON_DIR",
    "GIT_PREFIX",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_SHALLOW_FILE",
    "GIT_GRAFT_FILE",
];
/// Variables of git that a look keeps: where the user's configuration and git's own programs are.
const KEPT: [&str; 6] = [
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_CEILING_DIRECTORIES",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
    "GIT_EXEC_PATH",
];
/// Keys by which a repository names programs that a look would run.
const PROGRAMS: [(&str, &str); 4] = [
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("diff.external", ""),
];
/// Keys of a filter that a look empties.
const FILTER: [&str; 4] = ["clean", "smudge", "process", "required"];
/// Levels of submodules to look into.
const DEEPEST: usize = 8;

/// Runs git for a look. Returns its output without the last newline.
pub(super) fn look(dir: &Path, args: &[&str]) -> Result<String> {
    looking(dir, args, &[])
}

/// Runs git to change something, with the user's hooks and filters.
pub(super) fn change(dir: &Path, args: &[&str]) -> Result<String> {
    let mut command = Command::new("git");
    for name in ELSEWHERE {
        command.env_remove(name);
    }
    run(command, dir, args)
}

/// Counts the files with uncommitted changes. A submodule with changes counts as one.
pub(super) fn count_changes(dir: &Path, with_untracked: bool) -> Result<usize> {
    count_below(dir, with_untracked, 0)
}

fn count_below(dir: &Path, with_untracked: bool, depth: usize) -> Result<usize> {
    let filters = filters(dir)?;
    let untracked =
        if with_untracked { "--untracked-files=normal" } else { "--untracked-files=no" };
    // Git would look into submodules with the filters that they name.
    let args = ["status", "--porcelain", "--ignore-submodules=dirty", untracked];
    let status = looking(dir, &args, &filters)?;
    let mut count = status.lines().count();
    if depth < DEEPEST && dir.join(".gitmodules").exists() {
        let top = look(dir, &["rev-parse", "--show-toplevel"])?;
        let files = look(dir, &["ls-files", "--stage", "-z", "--full-name", ":/"])?;
        let submodules = files.split('\0').filter(|line| line.starts_with("160000 "));
        for path in submodules.filter_map(|line| Some(line.split_once('\t')?.1)) {
            let module = Path::new(&top).join(path);
            let is_told = status.lines().any(|line| line.get(3..) == Some(path));
            if !is_told && module.join(".git").exists() {
                count += usize::from(count_below(&module, with_untracked, depth + 1)? > 0);
            }
        }
    }
    Ok(count)
}

fn filters(dir: &Path) -> Result<Vec<String>> {
    let args = ["config", "--name-only", "-z", "--get-regexp", r"^filter\..*"];
    let Some(keys) = or_no(look(dir, &args))? else { return Ok(Vec::new()) };
    let mut names: Vec<&str> =
        keys.split('\0').filter_map(|key| Some(key.rsplit_once('.')?.0)).collect();
    names.dedup();
    let keys = names.iter().flat_map(|name| FILTER.map(|key| format!("{name}.{key}")));
    Ok(keys.collect())
}

fn looking(dir: &Path, args: &[&str], emptied: &[String]) -> Result<String> {
    let mut command = Command::new("git");
    command.arg("--no-pager");
    for (name, _) in std::env::vars_os() {
        let is_of_git = name.to_str().is_none_or(|name| name.starts_with("GIT_"));
        if is_of_git && !KEPT.iter().any(|kept| name == *kept) {
            command.env_remove(name);
        }
    }
    // Variables, since a key may have any character. Submodules get them, too.
    let programs = PROGRAMS.iter().copied().chain(emptied.iter().map(|key| (key.as_str(), "")));
    for (number, (key, value)) in programs.clone().enumerate() {
        command.env(format!("GIT_CONFIG_KEY_{number}"), key);
        command.env(format!("GIT_CONFIG_VALUE_{number}"), value);
    }
    command.env("GIT_CONFIG_COUNT", programs.count().to_string());
    // Git writes, fetches and asks nothing.
    command.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_NO_LAZY_FETCH", "1");
    command.env("GIT_TERMINAL_PROMPT", "0");
    run(command, dir, args)
}

fn run(mut command: Command, dir: &Path, args: &[&str]) -> Result<String> {
    command.arg("-C").arg(dir).args(args).stdin(Stdio::null());
    let output = command.output().map_err(Error::CannotRun)?;
    if output.status.success() {
        let text = String::from_utf8(output.stdout).map_err(|_| Error::NotUtf8)?;
        return Ok(text.trim_end_matches('\n').to_owned());
    }
    let mut said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if said.is_empty() {
        // Git reports conflicts on stdout.
        String::from_utf8_lossy(&output.stdout).trim().clone_into(&mut said);
    }
    let verb = args.first().copied().unwrap_or_default().to_owned();
    Err(Error::Failed { verb, said })
}

/// `None` where git reports a no by its exit code.
pub(super) fn or_no(printed: Result<String>) -> Result<Option<String>> {
    match printed {
        Err(Error::Failed { .. }) => Ok(None),
        printed => printed.map(Some),
    }
}
