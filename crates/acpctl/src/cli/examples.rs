//! What is typed, and what it does: the examples of every command, in one table.
//!
//! `--help` shows them below everything else, and the manual page in a section of its own (`manual.rs`); `-h` leaves
//! them out. They are looked up when a command is declared, that is when it is meant (`later.rs`): a command does not
//! pay for the examples of others. The programs behind `acpctl mcp` and `acpctl web` have theirs from here, too.

use std::fmt::Write as _;

use clap::Command;

/// A line as a person types it, and what it does.
pub(crate) type Example = (&'static str, &'static str);

/// The heading above examples.
const HEADING: &str = "Examples:";

/// The examples of each command that does something, by what is typed of it.
pub(crate) const ALL: &[(&str, &[Example])] = &[
    (
        "acpctl",
        &[
            ("acpctl run 'why does the build fail?'", "Ask the default agent about this directory"),
            (
                "acpctl run -a claude -s fix --detach 'make the tests pass'",
                "Let an agent work without a terminal, in a session named `fix`",
            ),
            ("acpctl attach --control fix", "Follow it, and answer its questions with one key"),
            ("acpctl top", "See all sessions on one screen, what needs you first"),
            ("acpctl doctor", "Find out what does not work, and what to do about it"),
        ],
    ),
    // Turns, and who looks at them.
    ("top", &[("acpctl top", "Show all sessions; Enter opens a conversation, `?` shows the keys")]),
    (
        "chat",
        &[
            ("acpctl chat", "Go on with the session that was last used here, or begin one"),
            ("acpctl chat --new -a claude", "Begin a session with this agent"),
            ("acpctl chat main --plain", "Read and write line by line, for a screen reader"),
        ],
    ),
    (
        "run",
        &[
            (
                "acpctl run -s fix 'make the tests pass'",
                "Prompt the session `fix` of this directory, or begin it",
            ),
            ("git diff | acpctl run 'review this'", "Attach what another program prints"),
            (
                "id=$(acpctl run -N --detach --worktree=docs --yes 'update the docs')",
                "Have it done in a worktree of its own, and keep the session's id for `acpctl wait`",
            ),
        ],
    ),
    (
        "attach",
        &[
            (
                "acpctl attach",
                "Follow the session that was last used: its history, then what comes",
            ),
            ("acpctl attach --control main", "Answer the agent's questions here, too"),
            (
                "acpctl attach main --tail --until-idle",
                "Show only what comes, and end with the work",
            ),
        ],
    ),
    (
        "wait",
        &[
            ("acpctl wait main docs --timeout 30m", "Wait for both, half an hour at most"),
            ("acpctl wait main docs --any", "Wait for the one that is done first"),
        ],
    ),
    (
        "cancel",
        &[
            ("acpctl cancel main", "End the turn, and take back what waits behind it"),
            ("acpctl cancel main --turn", "End the turn alone; the next prompt begins"),
        ],
    ),
    (
        "acp",
        &[
            ("acpctl acp claude", "What an editor starts as its agent"),
            (
                "acpctl acp claude -s main",
                "The same, in the session `main`, which others can follow",
            ),
        ],
    ),
    (
        "ps",
        &[
            ("acpctl ps", "Show what runs, and the sessions that were used last"),
            ("acpctl ps --watch", "Keep showing it, until Ctrl-C"),
            ("acpctl ps --tree", "Show which agent has begun which session"),
        ],
    ),
    (
        "usage",
        &[
            ("acpctl usage --since 7d --by day", "What each day of the last week has used"),
            ("acpctl usage --by session --json", "All sessions, for a program"),
        ],
    ),
    // Sessions.
    (
        "session ls",
        &[
            ("acpctl session ls", "List all sessions but those in the archive"),
            ("acpctl session ls --cwd . -a claude", "Those of an agent in this directory"),
            ("acpctl session ls --archived", "What is in the archive"),
        ],
    ),
    (
        "session show",
        &[
            ("acpctl session show", "Show the session that was last used"),
            ("acpctl session show main --json", "Print what is known of `main`, for a program"),
        ],
    ),
    (
        "session log",
        &[
            ("acpctl session log main", "Read the whole conversation"),
            ("acpctl session log main --last --answer", "Print only what the agent said last"),
            ("acpctl session log main --since 2h", "Read the turns of the last two hours"),
        ],
    ),
    (
        "session search",
        &[
            (
                "acpctl session search parser 'merge conf*'",
                "Find turns with `parser` and, say, `merge conflict`",
            ),
            ("acpctl session search --here flaky", "Look only in sessions of this directory"),
        ],
    ),
    (
        "session export",
        &[
            ("acpctl session export main > main.md", "Write a transcript to a file"),
            ("acpctl session export main --json | jq '.[].type'", "Give all of it to a program"),
        ],
    ),
    (
        "session mode",
        &[
            ("acpctl session mode main", "Show the modes, and which one it is in"),
            ("acpctl session mode main code", "Switch to the mode `code`"),
        ],
    ),
    (
        "session set",
        &[
            ("acpctl session set main", "Show the options and their values"),
            ("acpctl session set main model", "List the models that there are"),
            ("acpctl session set main model demo-large", "Use this one from now on"),
        ],
    ),
    (
        "session commands",
        &[("acpctl session commands main", "List the slash commands of its agent")],
    ),
    (
        "session rename",
        &[
            ("acpctl session rename main parser", "Call the session `parser`"),
            ("acpctl session rename parser --clear", "Take its name away; its id stays"),
        ],
    ),
    (
        "session title",
        &[
            ("acpctl session title main 'Fix the parser'", "Give it a title that stays"),
            ("acpctl session title main --clear", "Show the agent's own title again"),
        ],
    ),
    (
        "session fork",
        &[(
            "acpctl session fork main --name other",
            "Try another way in a copy, and keep the first",
        )],
    ),
    (
        "session worktree",
        &[
            ("acpctl session worktree", "List the worktrees of all sessions"),
            ("acpctl session worktree fix", "Show what is not committed and not merged"),
            ("acpctl session worktree fix --merge --remove", "Merge its branch; then it goes"),
        ],
    ),
    (
        "session move",
        &[(
            "acpctl session move main --cwd ~/src/app",
            "Tell where the directory of `main` is now",
        )],
    ),
    (
        "session reseed",
        &[
            (
                "acpctl session reseed main",
                "Continue in a new session where the agent cannot bring it back",
            ),
            (
                "acpctl session reseed main --discard",
                "Do it even if the agent may still have the conversation",
            ),
        ],
    ),
    (
        "session close",
        &[("acpctl session close main", "Let the agent free what it holds for `main`")],
    ),
    (
        "session archive",
        &[("acpctl session archive main", "Put it away; `session ls --archived` shows it")],
    ),
    ("session unarchive", &[("acpctl session unarchive main", "Have it in lists again")]),
    (
        "session rm",
        &[
            ("acpctl session rm main", "Delete a session, after a question"),
            ("acpctl session rm --older-than 30d --dry-run", "List what a month has not touched"),
            ("acpctl session rm --glob 'ci-*' --yes", "Delete many by their names, in a script"),
        ],
    ),
    (
        "session undo",
        &[
            ("acpctl session undo", "Bring back what was deleted last"),
            ("acpctl session undo main", "Bring back the session `main`"),
            (
                "acpctl session undo --all --since 1h",
                "Bring back all that was deleted in the last hour",
            ),
        ],
    ),
    (
        "session handoff",
        &[
            (
                "acpctl session handoff main --to codex 'finish it'",
                "Let another agent go on in the same directory",
            ),
            (
                "acpctl session handoff main --to codex --all -s main-2",
                "Hand over all turns; the new session is named `main-2`",
            ),
        ],
    ),
    // Prompts that wait.
    ("queue", &[("acpctl queue main", "Show the prompts that wait, with their numbers")]),
    (
        "queue edit",
        &[
            ("acpctl queue edit main 1", "Change the next prompt in your editor"),
            ("acpctl queue edit main 2 'only the parser'", "Say this in place of the second one"),
        ],
    ),
    (
        "queue move",
        &[("acpctl queue move main 3 first", "Have the third one go before all others")],
    ),
    ("queue rm", &[("acpctl queue rm main 2 3", "Take two of them back")]),
    // Agents.
    (
        "agent ls",
        &[
            ("acpctl agent ls", "List the agents that are installed"),
            ("acpctl agent ls --all", "List the others as well, with how to install them"),
        ],
    ),
    ("agent show", &[("acpctl agent show claude", "Show how it is started, and how it is")]),
    (
        "agent env",
        &[("acpctl agent env claude", "Find out which variables it gets, and from whom")],
    ),
    (
        "agent discover",
        &[("acpctl agent discover", "Ask what is installed, and see a configuration for it")],
    ),
    (
        "agent install",
        &[
            ("acpctl agent install codex", "See the command, and run it after a yes"),
            ("acpctl agent install codex --yes", "Run it without a question"),
        ],
    ),
    ("agent start", &[("acpctl agent start claude", "Start it, also after too many crashes")]),
    ("agent stop", &[("acpctl agent stop claude", "End it, until somebody starts it again")]),
    (
        "agent restart",
        &[
            ("acpctl agent restart claude", "Start it anew, after it was upgraded say"),
            (
                "acpctl agent restart claude --force",
                "Do not wait for a process that nothing can end",
            ),
        ],
    ),
    (
        "agent logs",
        &[
            ("acpctl agent logs claude -f", "Follow what it writes to stderr"),
            ("acpctl agent logs claude -n 200", "Print the last 200 lines"),
        ],
    ),
    (
        "auth status",
        &[
            ("acpctl auth status", "Show which agents are logged in"),
            ("acpctl auth status copilot --json", "Print it for one agent and a program"),
        ],
    ),
    ("auth login", &[("acpctl auth login copilot", "Log in; prompts that waited for it go on")]),
    ("auth logout", &[("acpctl auth logout copilot", "Log out everybody who uses the agent")]),
    // Questions, and who answers them.
    (
        "pending",
        &[
            ("acpctl pending", "List what agents ask"),
            ("acpctl pending main", "Show all of what the session `main` asks"),
            ("acpctl pending --follow", "Tell each new question, and who answered it"),
        ],
    ),
    (
        "allow",
        &[
            ("acpctl allow", "Say yes to the only open question"),
            (
                "acpctl allow main --always",
                "Say yes to `main`, and remember it for the agent and the directory",
            ),
        ],
    ),
    (
        "deny",
        &[
            ("acpctl deny", "Say no to the only open question"),
            (
                "acpctl deny main --always",
                "Say no to `main`, and remember it for the agent and the directory",
            ),
        ],
    ),
    (
        "answer",
        &[
            ("acpctl answer main", "Fill in the form of `main`, field by field"),
            (
                "acpctl answer main --field branch=main",
                "Fill in one field; the others get their defaults",
            ),
            ("acpctl answer main --decline", "Say no to it"),
        ],
    ),
    ("policy ls", &[("acpctl policy ls", "List what was allowed or refused for always")]),
    ("policy forget", &[("acpctl policy forget 3", "Be asked again")]),
    (
        "policy test",
        &[
            ("acpctl policy test --command 'git push'", "See who would answer for this command"),
            ("acpctl policy test -a claude --kind edit --path .env", "See it for a file"),
        ],
    ),
    // The daemon.
    ("daemon start", &[("acpctl daemon start", "Have the daemon run before anybody needs it")]),
    (
        "daemon stop",
        &[
            ("acpctl daemon stop", "End turns, agents and the daemon"),
            ("acpctl daemon stop --detach", "End the daemon alone, and leave the agents at work"),
        ],
    ),
    ("daemon restart", &[("acpctl daemon restart", "Run the new acpd after an upgrade")]),
    ("daemon reload", &[("acpctl daemon reload", "Use the configuration as it is now")]),
    (
        "daemon status",
        &[("acpctl daemon status", "See whether it runs; the exit code tells it to a script")],
    ),
    ("daemon logs", &[("acpctl daemon logs -f", "Follow what the daemon does")]),
    (
        "daemon log-level",
        &[
            ("acpctl daemon log-level", "Show what is logged"),
            ("acpctl daemon log-level debug", "See more while something goes wrong"),
            ("acpctl daemon log-level info", "As before"),
        ],
    ),
    (
        "doctor",
        &[
            ("acpctl doctor", "Say what is wrong, and what to do"),
            ("acpctl doctor --fix", "Do what ends no turn"),
        ],
    ),
    (
        "metrics",
        &[
            (
                "acpctl --no-spawn metrics > acpd.prom.tmp && mv acpd.prom.tmp acpd.prom",
                "Write a file for the textfile collector of node_exporter",
            ),
            ("acpctl metrics --json", "Print them for another program"),
        ],
    ),
    (
        "trace",
        &[
            ("acpctl trace fix --method 'session/*'", "Watch what is said about the session `fix`"),
            ("acpctl trace --agent claude --full", "Watch all of an agent, with what is in it"),
        ],
    ),
    (
        "report",
        &[
            ("acpctl report", "Look at it, then have it written to a file here"),
            ("acpctl report --output - | less", "Only look at it"),
        ],
    ),
    (
        "service install",
        &[
            ("acpctl service install --dry-run", "See the files and the commands first"),
            ("acpctl service install", "Have the system start acpd from now on"),
        ],
    ),
    (
        "service uninstall",
        &[
            ("acpctl service uninstall", "Take the service out; what runs goes on"),
            (
                "acpctl service uninstall --purge --dry-run",
                "See what would be deleted, if all of acpd went",
            ),
        ],
    ),
    ("service status", &[("acpctl service status", "See whether the system starts acpd")]),
    ("service logs", &[("acpctl service logs -f", "Follow what the service writes")]),
    // The configuration, and what is kept.
    (
        "config check",
        &[("acpctl config check", "Look for mistakes before the daemon reads the file")],
    ),
    (
        "config show",
        &[
            ("acpctl config show agents.claude", "See what holds for an agent, and who says so"),
            ("acpctl config show daemon.log_level --json", "Print one value for a program"),
            ("acpctl config show --file", "Print the file as it is"),
        ],
    ),
    ("config path", &[("cat \"$(acpctl config path)\"", "Use the file in a command")]),
    ("config edit", &[("acpctl config edit", "Change the file; mistakes in it are told")]),
    (
        "config schema",
        &[(
            "acpctl config schema > ~/.config/acpd/config.schema.json",
            "Give an editor of TOML something to check the file with",
        )],
    ),
    (
        "backup",
        &[
            ("acpctl backup ~/acpd.backup", "Write one file, in place of the one from before"),
            ("acpctl backup ~/acpd-\"$(date +%F)\".db", "Keep one for each day"),
        ],
    ),
    (
        "restore",
        &[(
            "acpctl restore ~/acpd.backup",
            "Have the conversations of the backup, after a question",
        )],
    ),
    (
        "gc",
        &[
            ("acpctl gc --dry-run", "See which sessions are over the limits"),
            ("acpctl gc --yes --json", "Delete them in a script"),
        ],
    ),
    (
        "completions",
        &[
            ("source <(acpctl completions bash)", "Complete in this bash"),
            ("acpctl completions fish | source", "Complete in this fish"),
        ],
    ),
    // Programs of their own.
    (
        "mcp",
        &[
            ("claude mcp add acpd -- acpctl mcp", "Have an agent start it"),
            ("acpctl mcp --tools delegate,history", "Lend only these tools"),
            (
                "acpctl mcp --diagnostics detect",
                "Have it find mistakes with what the files call for",
            ),
        ],
    ),
    (
        "web",
        &[
            ("acpctl web --open", "Serve the page, and open it in the browser"),
            (
                "acpctl web --behind https://desk.tail1234.ts.net",
                "Serve it behind a proxy, for a phone",
            ),
            (
                "acpctl web --listen 0.0.0.0 --cert chain.pem --key key.pem",
                "Serve it in the network, with TLS",
            ),
        ],
    ),
    ("web pair", &[("acpctl web pair --name phone", "Let a phone in by the QR code")]),
    ("web token list", &[("acpctl web token list", "See who may get in")]),
    (
        "web token new",
        &[
            ("acpctl web token new ide", "Make a token for a program"),
            ("acpctl web token new board --scope watch", "Make one that may only look"),
        ],
    ),
    ("web token revoke", &[("acpctl web token revoke ide", "Close the door to that program")]),
];

/// A command with its examples, and with those of the commands below it that are declared by now.
pub(crate) fn shown(command: Command) -> Command {
    // It has a whole name where it is built alone, and only its own where it is built with all the others.
    let whole = command.get_bin_name().unwrap_or(command.get_name());
    let path = whole.strip_prefix("acpctl ").unwrap_or(whole).to_owned();
    with_those_of(command, &path)
}

fn with_those_of(command: Command, path: &str) -> Command {
    let notes = command.get_after_long_help().or(command.get_after_help());
    let text = below(&notes.map(ToString::to_string).unwrap_or_default(), path);
    let command = if text.is_empty() { command } else { command.after_long_help(text) };
    command.mut_subcommands(|under| {
        let path = format!("{path} {}", under.get_name());
        with_those_of(under, &path)
    })
}

/// What stands below the help of a command: notes, if it has some, and its examples.
pub(crate) fn below(notes: &str, path: &str) -> String {
    let mut text = notes.to_owned();
    let Some((_, examples)) = ALL.iter().find(|(of, _)| *of == path) else { return text };
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(HEADING);
    for (line, what) in *examples {
        let _ = write!(text, "\n  {line}\n      {what}");
    }
    text
}
