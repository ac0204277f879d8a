//! Programs that run other programs (`sudo`, `env`, `find -exec`): finds the commands in their arguments.

/// Ways in which a program runs what it is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Runs a command in its arguments, or an argument as a line, as shells do.
    Wrapper,
    /// Runs the same, with what it reads or finds added to the command.
    Xargs,
    /// Runs the same, but only behind `-exec` and the like.
    Find,
    /// Runs what a wrapper does, but only behind certain words ([`LAUNCHERS`]).
    Launcher,
}

/// The names of shells, without their folder.
pub(crate) const SHELLS: [&str; 9] =
    ["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "rbash"];

/// Programs that run what is in their arguments; others are not looked into.
const WRAPPERS: [&str; 67] = [
    ".",
    "alias",
    "at",
    "batch",
    "builtin",
    "bwrap",
    "busybox",
    "cgexec",
    "chpst",
    "chroot",
    "chrt",
    "cmd",
    "command",
    "crontab",
    "dbus-run-session",
    "direnv",
    "distrobox",
    "docker",
    "doas",
    "entr",
    "env",
    "eval",
    "exec",
    "fakeroot",
    "firejail",
    "flatpak",
    "flock",
    "gdb",
    "ionice",
    "kubectl",
    "ltrace",
    "mosh",
    "nerdctl",
    "nice",
    "nix-shell",
    "noglob",
    "nohup",
    "nsenter",
    "numactl",
    "pkexec",
    "podman",
    "powershell",
    "prlimit",
    "proot",
    "pwsh",
    "rlwrap",
    "runuser",
    "screen",
    "script",
    "setarch",
    "setpriv",
    "setsid",
    "source",
    "ssh",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "systemd-run",
    "taskset",
    "time",
    "timeout",
    "tmux",
    "toybox",
    "trap",
    "unshare",
    "watch",
];

/// Arguments of programs that find things, behind which stands a command to run with them.
const EXEC: [&str; 8] =
    ["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"];

/// Programs that run what is behind these words of theirs. What follows an option may be glued to it.
const LAUNCHERS: [(&str, &[&str]); 29] = [
    ("asdf", &["exec"]),
    ("bundle", &["exec"]),
    ("conda", &["run"]),
    ("doppler", &["run"]),
    ("dotenvx", &["run"]),
    ("git", &["bisect", "run"]),
    ("git", &["rebase", "--exec"]),
    ("git", &["rebase", "-x"]),
    ("git", &["submodule", "foreach"]),
    ("hatch", &["run"]),
    ("mise", &["exec"]),
    ("mise", &["x"]),
    ("nix", &["--command"]),
    ("nix", &["-c"]),
    ("npm", &["exec"]),
    ("npm", &["x"]),
    ("npx", &["--call"]),
    ("npx", &["-c"]),
    ("op", &["run"]),
    ("pipenv", &["run"]),
    ("pixi", &["run"]),
    ("pnpm", &["exec"]),
    ("poetry", &["run"]),
    ("pyenv", &["exec"]),
    ("rbenv", &["exec"]),
    ("rustup", &["run"]),
    ("uv", &["run"]),
    ("volta", &["run"]),
    ("yarn", &["exec"]),
];

/// The options of git before its command that take the next word.
const GIT_VALUES: [&str; 7] =
    ["-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--attr-source"];

/// Returns the name of a program without its folder, as it is looked up: some file systems do not tell case apart.
pub(crate) fn base(program: &str) -> String {
    let name = program.rsplit(['/', '\\']).next().unwrap_or_default().to_ascii_lowercase();
    name.strip_suffix(".exe").unwrap_or(&name).to_owned()
}

/// Returns how the program runs others, if it does.
pub(crate) fn role(program: &str) -> Option<Role> {
    match &*base(program) {
        "xargs" | "parallel" => Some(Role::Xargs),
        "find" | "fd" | "fdfind" => Some(Role::Find),
        name if SHELLS.contains(&name) || WRAPPERS.contains(&name) => Some(Role::Wrapper),
        name => LAUNCHERS.iter().any(|(known, _)| *known == name).then_some(Role::Launcher),
    }
}

/// Returns where the last of the words stands behind which a launcher runs what it is given.
fn launched<S: AsRef<str>>(words: &[S]) -> Option<usize> {
    let is_it = |word: &S, wanted: &str| {
        let word = word.as_ref();
        word == wanted || wanted.starts_with('-') && word.starts_with(wanted)
    };
    let behind = |wanted: &[&str]| {
        wanted.iter().try_fold(0, |at, wanted| {
            let next = words[at + 1..].iter().position(|word| is_it(word, wanted))?;
            Some(at + 1 + next)
        })
    };
    let program = base(words.first()?.as_ref());
    LAUNCHERS.iter().filter(|(known, _)| *known == program).filter_map(|(_, all)| behind(all)).min()
}

/// Returns the words of a call of git without the options before its command, or `None` if there are none.
pub(crate) fn without_git_options<'a>(words: &[&'a str]) -> Option<Vec<&'a str>> {
    let (_, args) = words.split_first().filter(|(program, _)| *base(program) == *"git")?;
    let mut rest = args;
    while let Some(option) = rest.first().filter(|word| word.starts_with('-')) {
        let taken = 1 + usize::from(GIT_VALUES.contains(option));
        rest = rest.get(taken..).unwrap_or_default();
    }
    (rest.len() < args.len()).then(|| [&["git"], rest].concat())
}

/// Returns where commands may begin in the arguments of a program with this role.
pub(crate) fn inner_commands<S: AsRef<str>>(role: Role, words: &[S]) -> Vec<usize> {
    let is_exec = |at: &usize| EXEC.contains(&words[at - 1].as_ref());
    let all = 1..words.len();
    match role {
        Role::Find => all.filter(|at| *at > 1 && is_exec(at)).collect(),
        // Also the word itself, to which the command may be glued.
        Role::Launcher => launched(words).map_or_else(Vec::new, |at| (at..words.len()).collect()),
        _ => all.collect(),
    }
}

/// Returns whether the words do not say what the program runs: it reads that, or gives names to commands.
pub(crate) fn is_open<S: AsRef<str>>(words: &[S]) -> bool {
    let Some((program, args)) = words.split_first() else { return false };
    let mut args = args.iter().map(AsRef::as_ref);
    match &*base(program.as_ref()) {
        "alias" | "at" | "batch" | "crontab" | "ssh" => true,
        "git" => args.any(|word| word.starts_with("alias.")),
        name if SHELLS.contains(&name) || matches!(name, "source" | ".") => {
            let starts = ["-", "/dev/", "/proc/"];
            let is_input = |word: &str| starts.iter().any(|start| word.starts_with(start));
            args.clone().all(is_input) || args.any(|word| word == "-s")
        }
        _ => false,
    }
}

/// Returns an argument, and what is glued to an option or an assignment in it.
pub(crate) fn parts(word: &str) -> impl Iterator<Item = &str> {
    let value = word.split_once('=').map(|(_, value)| value);
    let glued = word.strip_prefix('-').and_then(|option| {
        let mut rest = option.chars();
        rest.next().map(|_| rest.as_str())
    });
    [Some(word), value, glued].into_iter().flatten()
}

/// Joins words to one text. A word of which nothing is known may be none or several.
pub(crate) fn join<S: AsRef<str>>(words: &[S]) -> String {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    words.join(" ")
}
