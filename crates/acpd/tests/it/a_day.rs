//! A day on a terminal: what each verb shows there, as one transcript.
//!
//! Ids, times and sizes differ from run to run, so they are replaced. Of tables, only the first column is taken down;
//! whether their rows fit is asked of the screen itself.

use std::cell::Cell;
use std::process::Command;

use acpd_test::harness::{Config, Screen, TestEnv, until};

use crate::{echo, home_with};

const SIZE: (u16, u16) = (80, 24);
/// Printed after each command.
const END: &str = "[exit ";

/// A home, and what was typed and shown on a terminal.
struct Day {
    env: TestEnv,
    transcript: String,
}

impl Day {
    fn new() -> Day {
        let config = Config::new([echo()]).tables("[budget]\nper_day = \"5 USD\"");
        Day { env: home_with(&config), transcript: String::new() }
    }

    /// Starts a line of shell on the terminal.
    fn start(&self, line: &str) -> Screen {
        let mut command: Command = self.env.command("sh");
        let bin = self.env.program("acpctl");
        let bin = bin.parent().expect("a directory").display().to_string();
        // Paths below the home of a person are shown with `~`.
        command
            .env("HOME", self.env.path("home").parent().expect("a home"))
            .env("PATH", format!("{bin}:/usr/bin:/bin"));
        command.env("ACPCTL_PAGER", "cat").env("GIT_CONFIG_GLOBAL", "/dev/null");
        command.env_remove("COLUMNS");
        command.args(["-c", &format!("{line}; echo \"{END}$?]\"")]);
        Screen::start(command, SIZE)
    }

    /// Runs a line of shell and takes down what the screen shows in the end.
    fn runs(&mut self, line: &str) {
        self.talks(line, &[]);
    }

    /// Like [`Day::runs`], with a person who types something when something is shown.
    fn talks(&mut self, line: &str, talk: &[(&str, &str)]) {
        let mut screen = self.start(line);
        for (shown, keys) in talk {
            screen.sees(shown);
            screen.types(keys);
        }
        let wrapped = Cell::new(None);
        let shown = screen.waits(END, |screen| {
            wrapped.set((0..SIZE.1).find(|row| screen.row_wrapped(*row)));
            screen.contents().contains(END)
        });
        assert!(screen.ends().success());
        // A sentence may go on in the next row, and a row of a table may not.
        let is_table = TABLES.iter().any(|table| line.starts_with(&format!("acpctl {table}")));
        assert!(!is_table || wrapped.get().is_none(), "{line} at {SIZE:?}:\n{shown}");
        let shown = shown.trim_end();
        let shown = shown.strip_suffix("[exit 0]").unwrap_or(shown).trim_end();
        // Which columns there is room for depends on how long things took.
        let first = |row: &str| row.split("  ").next().unwrap_or_default().to_owned();
        let rows: Vec<String> =
            shown.lines().map(|row| if is_table { first(row) } else { row.to_owned() }).collect();
        let shown = &rows.join("\n");
        for part in ["$ ", line, "\n", shown, "\n\n"] {
            self.transcript.push_str(part);
        }
    }

    /// Waits until the agent has been given `count` prompts.
    fn waits_for_prompts(&self, count: usize) {
        let given = || self.env.received("echo", "session/prompt").len();
        until("a prompt at the agent", || (given() == count).then_some(()));
    }
}

/// Verbs that print rows.
const TABLES: [&str; 7] =
    ["ps", "session ls", "agent ls", "pending", "queue", "usage", "session worktree"];

/// Text that differs from run to run, and its replacement.
const FILTERS: [(&str, &str); 11] = [
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "[id]"),
    (r"\b[0-9a-f]{8,32}\b", "[id]"),
    (r"acpd \d+\.\d+\.\d+", "acpd [version]"),
    (r"\b1-\d+\b", "[question]"),
    (r"\b(\d+ ?(ms|s|m|min|h)|now|just now)\b( ago)?", "[time]"),
    (r"\d{4}-\d\d-\d\d( \d\d:\d\d(:\d\d)?)?", "[date]"),
    (r"/tmp/acpd-\w{6}", "[home]"),
    (r"/tmp/acpd-\S*…\S*", "[home]…"),
    (r" {3,}", "  "),
    (r"\d+ entries", "[count] entries"),
    (r"process  \d+", "process  [pid]"),
];

#[test]
fn what_is_typed_in_a_day() {
    let mut day = Day::new();
    day.runs("acpctl run -s fix 'read the parser [tool Edit the parser] [cost 0.25]'");
    day.runs("acpctl run -s fix --model nope 'more'");
    day.runs("acpctl run --detach -s long 'wait [hang-cancel]' >/dev/null && acpctl run -d -s long 'then commit' >/dev/null");
    day.waits_for_prompts(2);
    day.runs("acpctl ps");
    day.runs("acpctl queue long");
    day.runs("acpctl queue edit long 1 'then push'");
    day.runs("acpctl kill long");
    day.runs("acpctl cancel --queued long");
    day.runs("acpctl cancel --queued long");
    day.runs("acpctl wait long; acpctl wait fix");
    day.runs("for text in '[hang-cancel]' 'then push' 'then rest'; do acpctl run -d -s long \"$text\"; done >/dev/null 2>&1");
    day.waits_for_prompts(3);
    day.talks("acpctl cancel long", &[("y/n", "n\n")]);
    day.runs("acpctl wait long");
    let asks = day.start("acpctl run -s ask '[ask] clean the build'");
    day.env.wait_questions();
    day.runs("acpctl pending");
    day.talks("acpctl allow ask", &[("type `y`", "y\n")]);
    asks.sees(END);
    day.runs("acpctl ps --all");
    day.runs("acpctl session ls");
    day.runs("acpctl session show fix");
    day.runs("acpctl session log fix --last --answer");
    day.runs("acpctl session log fix -n 1");
    day.runs("acpctl session search parser");
    day.runs("acpctl attach fix --until-idle --tail");
    day.runs("acpctl session fork fix --name copy >/dev/null");
    day.runs("acpctl session archive copy");
    day.runs("acpctl session ls --archived");
    day.runs("acpctl session unarchive copy");
    day.runs("acpctl session rename ask build");
    day.talks("acpctl session rm build", &[("y/n", "n\n")]);
    day.runs("acpctl session rm --glob 'b*' --dry-run");
    day.talks("acpctl session rm build", &[("y/n", "y\n")]);
    day.runs("acpctl session undo");
    day.runs("acpctl run --resume nope 'x'");
    day.runs("acpctl usage");
    day.runs("acpctl agent ls");
    day.runs("acpctl session handoff fix --to echo -s next 'go on'");
    day.runs("git init -q . && git -c user.name=a -c user.email=a@b commit -q --allow-empty -m a && acpctl run --worktree -s tree 'look' && acpctl session worktree");
    day.runs("acpctl policy forget nope");
    day.runs("acpctl daemon stop");
    insta::with_settings!({ filters => FILTERS.to_vec(), omit_expression => true }, {
        insta::assert_snapshot!("at_80x24", day.transcript);
    });
}
