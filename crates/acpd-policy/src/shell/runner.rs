//! Programs that run others: what they are given is looked into, too.

use super::UNKNOWN;

/// How a program runs what it is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A shell: `-c SCRIPT`, or what it reads.
    Shell,
    /// Its arguments, joined, are a line.
    Eval,
    /// Some of its arguments are a command, or one of them a line.
    Wrapper,
    /// As a wrapper, and what it reads or finds is added to the command.
    Xargs,
    /// As that, but only behind `-exec` and the like.
    Find,
}

/// The names of shells, without their folder.
pub(crate) const SHELLS: [&str; 9] =
    ["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "rbash"];

/// Programs that run what is in their arguments; others are not looked into.
const WRAPPERS: [&str; 62] = [
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
    "script",
    "setarch",
    "setpriv",
    "setsid",
    "ssh",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "systemd-run",
    "taskset",
    "time",
    "timeout",
    "toybox",
    "trap",
    "unshare",
    "watch",
];

/// What finds things and runs a command with them, behind these arguments.
const EXEC: [&str; 8] =
    ["-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch"];

/// The name of a program without its folder.
pub(crate) fn base(program: &str) -> &str {
    let name = program.rsplit(['/', '\\']).next().unwrap_or_default();
    name.strip_suffix(".exe").unwrap_or(name)
}

/// How the program runs others, if it does.
pub(crate) fn role(program: &str) -> Option<Role> {
    match base(program) {
        name if SHELLS.contains(&name) => Some(Role::Shell),
        "eval" => Some(Role::Eval),
        "xargs" | "parallel" => Some(Role::Xargs),
        "find" | "fd" | "fdfind" => Some(Role::Find),
        name => WRAPPERS.contains(&name).then_some(Role::Wrapper),
    }
}

/// Where commands may begin in the arguments of a program with this role.
pub(crate) fn inner_commands<S: AsRef<str>>(role: Role, words: &[S]) -> Vec<usize> {
    let is_exec = |at: &usize| EXEC.contains(&words[at - 1].as_ref());
    let all = 1..words.len();
    if role == Role::Find {
        all.filter(|at| *at > 1 && is_exec(at)).collect()
    } else {
        all.collect()
    }
}

/// Where the script is in the arguments of a shell.
pub(crate) fn script<S: AsRef<str>>(words: &[S]) -> Option<usize> {
    let is_option = |word: &str| word.starts_with(['-', '+']);
    let takes_script =
        |word: &str| is_option(word) && !word.starts_with("--") && word.contains('c');
    let flag = 1 + words.iter().skip(1).position(|word| takes_script(word.as_ref()))?;
    let behind = words[flag + 1..].iter().position(|word| !is_option(word.as_ref()))?;
    Some(flag + 1 + behind)
}

/// Whether the command runs what it reads.
pub(crate) fn runs_input<S: AsRef<str>>(words: &[S]) -> bool {
    let Some((program, args)) = words.split_first() else { return false };
    let is_option = |word: &S| word.as_ref().starts_with('-') || word.as_ref() == "/dev/stdin";
    match base(program.as_ref()) {
        "ssh" | "at" | "batch" => true,
        "crontab" | "source" | "." => args.iter().all(is_option),
        name if SHELLS.contains(&name) => {
            let reads = |word: &S| word.as_ref() == "-s";
            script(words).is_none() && (args.iter().all(is_option) || args.iter().any(reads))
        }
        _ => false,
    }
}

/// What could be a line for a shell in an argument: the whole, what stands behind `=`, what stands
/// behind a one-letter option.
pub(crate) fn lines_in(word: &str) -> impl Iterator<Item = &str> {
    let value = word.split_once('=').map(|(_, value)| value);
    let glued = word.strip_prefix('-').and_then(|option| {
        let mut rest = option.chars();
        rest.next().filter(char::is_ascii_alphabetic).map(|_| rest.as_str())
    });
    let is_line = |text: &&str| text.contains(|c: char| c.is_whitespace() || ";&|(`".contains(c));
    [Some(word), value, glued].into_iter().flatten().filter(is_line)
}

/// The words as one text. A word of which nothing is known may be none or several.
pub(crate) fn join<S: AsRef<str>>(words: &[S]) -> String {
    let words: Vec<&str> = words.iter().map(AsRef::as_ref).collect();
    words.join(" ")
}

/// The text with no blanks around words of which nothing is known, since those may be no words.
pub(crate) fn without_blanks_around_unknown(text: &str) -> String {
    let mut joined = String::new();
    let mut was_known = false;
    for word in text.split(' ') {
        let is_known = word.is_empty() || word.contains(|c| c != UNKNOWN);
        if was_known && is_known {
            joined.push(' ');
        }
        joined.push_str(word);
        was_known = is_known;
    }
    joined
}
