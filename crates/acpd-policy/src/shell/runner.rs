//! Programs that run other programs (`sudo`, `env`, `find -exec`), and the commands in their
//! arguments.

/// Names of shells, without folders.
pub(crate) const SHELLS: [&str; 9] =
    ["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "rbash"];

/// Programs that run their arguments. Arguments of other programs are not searched.
#[rustfmt::skip]
const WRAPPERS: [&str; 69] = [
    ".", "alias", "at", "batch", "builtin", "busybox", "bwrap", "cgexec", "chpst", "chroot", "chrt",
    "cmd", "command", "crontab", "dbus-run-session", "direnv", "distrobox", "doas", "docker",
    "entr", "env", "eval", "exec", "fakeroot", "firejail", "flatpak", "flock", "gdb", "ionice",
    "kubectl", "ltrace", "mosh", "nerdctl", "nice", "nix-shell", "noglob", "nohup", "nsenter",
    "numactl", "parallel", "pkexec", "podman", "powershell", "prlimit", "proot", "pwsh", "rlwrap",
    "runuser", "screen", "script", "setarch", "setpriv", "setsid", "source", "ssh", "stdbuf",
    "strace", "su", "sudo", "systemd-run", "taskset", "time", "timeout", "tmux", "toybox", "trap",
    "unshare", "watch", "xargs",
];

/// Programs that run the arguments after one of these words, possibly after a subcommand.
const LAUNCHERS: [(&[&str], &str, &[&str]); 11] = [
    (&["asdf", "bundle", "pnpm", "pyenv", "rbenv", "yarn"], "", &["exec"]),
    (&["conda", "doppler", "dotenvx", "hatch", "op", "pipenv", "pixi"], "", &["run"]),
    (&["poetry", "rustup", "uv", "volta"], "", &["run"]),
    (&["fd", "fdfind"], "", &["-x", "-X", "--exec", "--exec-batch"]),
    (&["find"], "", &["-exec", "-execdir", "-ok", "-okdir"]),
    (&["git"], "bisect", &["run"]),
    (&["git"], "rebase", &["--exec", "-x"]),
    (&["git"], "submodule", &["foreach"]),
    (&["mise", "npm"], "", &["exec", "x"]),
    (&["nix"], "", &["--command", "-c"]),
    (&["npx"], "", &["--call", "-c"]),
];

/// Options of git before its command that take a value.
const GIT_VALUES: [&str; 7] =
    ["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--attr-source"];

/// Returns the name of a program without its folder, in lower case, because some file systems
/// ignore case.
pub(crate) fn base(program: &str) -> String {
    let name = program.rsplit(['/', '\\']).next().unwrap_or_default().to_ascii_lowercase();
    name.strip_suffix(".exe").unwrap_or(&name).to_owned()
}

fn is_wrapper(name: &str) -> bool {
    SHELLS.contains(&name) || WRAPPERS.contains(&name)
}

pub(crate) fn runs_others(program: &str) -> bool {
    let name = base(program);
    is_wrapper(&name) || LAUNCHERS.iter().any(|(launchers, ..)| launchers.contains(&&*name))
}

pub(crate) fn is_finder(program: &str) -> bool {
    matches!(&*base(program), "find" | "fd" | "fdfind")
}

/// Returns whether the program appends or inserts arguments that it reads or finds.
pub(crate) fn adds_arguments(program: &str) -> bool {
    is_finder(program) || matches!(&*base(program), "xargs" | "parallel")
}

/// Returns the positions of words after which the program runs a command: its own name, or certain
/// arguments. Only a finder has several. For other launchers the command may be glued to the
/// option.
pub(crate) fn launching_words(words: &[&str]) -> Vec<usize> {
    let Some(program) = words.first() else { return Vec::new() };
    let name = base(program);
    if is_wrapper(&name) {
        return vec![0];
    }
    let finds = is_finder(program);
    let is_one = |word: &str, wanted: &&str| {
        word == *wanted || !finds && wanted.starts_with('-') && word.starts_with(wanted)
    };
    let launches = |at: &usize| {
        let mut of_name = LAUNCHERS.iter().filter(|(launchers, ..)| launchers.contains(&&*name));
        of_name.any(|(_, command, behind)| {
            behind.iter().any(|wanted| is_one(words[*at], wanted))
                && (command.is_empty() || words[1..*at].contains(command))
        })
    };
    let most = if finds { usize::MAX } else { 1 };
    (1..words.len()).filter(launches).take(most).collect()
}

/// Returns where commands may begin in the arguments of a program that runs others.
pub(crate) fn inner_commands(words: &[&str]) -> Vec<usize> {
    let launching = launching_words(words);
    if words.first().is_some_and(|program| is_finder(program)) {
        return launching.iter().map(|at| at + 1).filter(|at| *at < words.len()).collect();
    }
    // Also the word itself, to which the command may be glued.
    launching.first().map_or_else(Vec::new, |first| ((*first).max(1)..words.len()).collect())
}

/// Removes git's options before the command; `None` if there are none.
pub(crate) fn without_git_options<'a>(words: &[&'a str]) -> Option<Vec<&'a str>> {
    let (_, args) = words.split_first().filter(|(program, _)| *base(program) == *"git")?;
    let mut rest = args;
    while let Some(option) = rest.first().filter(|word| word.starts_with('-')) {
        let taken = 1 + usize::from(GIT_VALUES.contains(option));
        rest = rest.get(taken..).unwrap_or_default();
    }
    (rest.len() < args.len()).then(|| [&["git"], rest].concat())
}

/// Returns whether the program reads or renames commands.
pub(crate) fn is_open(words: &[&str]) -> bool {
    let Some((program, args)) = words.split_first() else { return false };
    let mut args = args.iter();
    match &*base(program) {
        "alias" | "at" | "batch" | "crontab" | "ssh" => true,
        "git" => args.any(|word| word.starts_with("alias.")),
        name if SHELLS.contains(&name) || matches!(name, "source" | ".") => {
            let starts = ["-", "/dev/", "/proc/"];
            let is_input = |word: &&str| starts.iter().any(|start| word.starts_with(start));
            args.clone().all(is_input) || args.any(|word| *word == "-s")
        }
        _ => false,
    }
}

/// Returns an argument, and values glued to an option or an assignment.
pub(crate) fn parts(word: &str) -> impl Iterator<Item = &str> {
    let value = word.split_once('=').map(|(_, value)| value);
    let glued = word.strip_prefix('-').and_then(|option| {
        let mut rest = option.chars();
        rest.next().map(|_| rest.as_str())
    });
    [Some(word), value, glued].into_iter().flatten()
}
