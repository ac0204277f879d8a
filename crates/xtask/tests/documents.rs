//! Every command of the README and of the documents, as it is there, by the real programs and the built-in agent.
//!
//! A page is played from its first block of commands to its last. What a `console` block shows is compared with what comes:
//! a line `…` stands for any lines, and a row of ticks for any row of ticks. What cannot be run has its reason here, and is
//! printed; the options of such commands are looked up all the same, as are those of commands in the text.
#![expect(clippy::print_stdout, reason = "what is not run is told")]

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;
use xtask::home::{Home, kill_tree, wait_for};
use xtask::workspace;

/// The folder that the person works in.
const FOLDER: &str = "hello";
/// State before the first command: a folder under git, agents, and a program that waits for a time.
const BEGINNING: &str = r#"
mkdir -p src tasks ../bin
seq -f '// line %g' 30 > src/main.rs
printf '\211PNG\r\n\032\n' > screenshot.png
for file in question.txt task.md tasks/parser.md tasks/docs.md; do echo 'what is this?' > $file; done
echo src/main.rs > files.txt
printf '#!/bin/sh\nexec sh\n' > ../bin/at
chmod +x ../bin/at
git init -q -b main . && git add . && git commit -q -m 'a beginning'
echo '// more' >> src/main.rs
for agent in claude codex; do
    printf '[agents.%s]\ncommand = ["%s", "scripted-agent"]\n' $agent "$ACPD_EXE"
done > ../config/config.toml
echo 'default_agent = "demo"' | cat - ../config/config.toml > ../config/new
mv ../config/new ../config/config.toml
"#;

#[test]
fn the_readme() {
    let mut page = Page::open("README.md");
    page.not_run(
        "git clone REPOSITORY",
        "there is no repository to clone; CI builds in a fresh clone",
    );
    page.not_run("cargo xtask demo", "both build everything; the second runs this very test");
    page.play("$ acpctl run -a demo -s main 'say #one'");
    page.play_until("$ acpctl run -s main 'say #two [slow 30]'", "tick 7", |home| {
        kill_tree(home.agent("demo").unwrap());
    });
    // A person takes a moment; without it the next command reports the restore itself.
    wait_for("the session", Duration::from_mins(1), || {
        page.home.read_json(&["session", "show", "main"]).is_ok_and(|main| main["state"] == "live")
    })
    .unwrap();
    page.play("$ acpctl run -s main 'say #three'");
    page.play("$ acpctl session log main");
    page.play_until("$ acpctl run -s main 'say #four [slow 6]'", "tick 3", |home| {
        kill(pid(home.daemon().unwrap().pid), Signal::SIGKILL).unwrap();
    });
    page.play_but(
        "acpctl ps ",
        &[
            ("acpctl cancel main", "no turn is running"),
            ("acpctl run --steer main", "no turn is running"),
        ],
    );
    page.play("acpctl run --file src/main.rs:10-20");
    page.before("git add . && git commit -q -m more");
    page.play_but(
        "acpctl run --worktree=fix 'fix the parser'",
        &[("acpctl session rm main", "asks a person")],
    );
    page.play("$ acpctl run -a coplot hi");
    page.end();
}

#[test]
fn configuration() {
    let mut page = Page::open("docs/configuration.md");
    page.play("$ acpctl config show daemon.max_clients");
    page.end();
}

#[test]
fn delegation() {
    let mut page = Page::open("docs/delegation.md");
    page.not_run(
        "claude mcp add acpd",
        "needs Claude Code; tests/real_tools.rs has another host of `acpctl mcp`",
    );
    page.end();
}

#[test]
fn editors() {
    let mut page = Page::open("docs/editors.md");
    page.play_and_interrupt("$ acpctl run -a claude 'hello'", "INFO");
    page.not_run("toad acp", "needs toad");
    page.not_run("acpx --agent", "needs acpx; tests/real_clients.rs runs it");
    page.end();
}

#[test]
fn phone() {
    let mut page = Page::open("docs/phone.md");
    page.not_run("acpctl web --behind", "needs Tailscale; tests of acpd have another proxy");
    page.not_run("npm install -g happy", "needs Happy and a phone");
    page.end();
}

#[test]
fn recipes() {
    let mut page = Page::open("docs/recipes.md");
    page.before("acpctl daemon start");
    page.play("echo \"acpctl --no-spawn run");
    page.play("id=$(acpctl run -N --detach -a claude --yes");
    for hook in ["#!/bin/sh", "jq -cn --arg text", "notify-send"] {
        page.not_run(hook, "is played by tests/recipes.rs, with what is told of");
    }
    page.before("acpctl run --detach -s asks '[ask]'");
    page.follow("acpctl ps --watch");
    page.follow("acpctl pending --follow --json");
    page.play("id=$(acpctl run -N --detach -s tests");
    page.play("acpctl run -N --json --yes");
    page.play("acpctl run -N -s nightly --key");
    page.play("while read -r file");
    page.before("git add . && git commit -q -m more");
    page.play("for task in parser docs");
    page.before("acpctl run -s main 'say #one'");
    page.play("acpctl session handoff main --to codex");
    page.before("acpctl session rm --yes --force --now tidy; acpctl run --detach -s tidy '[ask]'");
    page.play_but(
        "acpctl run -N --detach -s tidy 'rename",
        &[("acpctl queue edit tidy 1", "opens an editor on a terminal")],
    );
    page.not_run("#!/bin/sh", "is played by tests/recipes.rs, with what reads the file");
    page.end();
}

#[test]
fn service() {
    let mut page = Page::open("docs/service.md");
    page.not_run(
        "acpctl service install",
        "is for a service manager; tests/user_service.rs has a real one",
    );
    page.before("acpctl run -s main 'say #one'");
    page.before(
        "printf '[retention]\\nmax_age = \"90d\"\\n' >> \"$(acpctl config path)\" && acpctl daemon reload",
    );
    page.play("acpctl gc --dry-run");
    page.play_but(
        "acpctl backup ~/acpd.backup",
        &[("acpctl restore ~/acpd.backup", "asks a person; tests of acpd restore with --yes")],
    );
    page.end();
}

#[test]
fn web() {
    let mut page = Page::open("docs/web.md");
    page.not_run("acpctl web --open", "opens a browser; tests/page.rs has one");
    page.not_run("acpctl web --behind", "needs Tailscale; tests of acpd have another proxy");
    page.not_run(
        "acpctl web --listen",
        "would listen off this machine; tests of acpd have certificates and a free port",
    );
    page.play("acpctl web token new ide");
    page.end();
}

#[test]
fn hosts() {
    let mut page = Page::open("docs/hosts.md");
    page.not_run("acpctl --host box run", "needs another machine; tests of acpd play one");
    page.not_run("acpctl --host all ps", "as above");
    page.end();
}

/// A document with commands that a test above does not play is missing there.
#[test]
fn no_document_is_missing() {
    let test = include_str!("documents.rs");
    for page in pages() {
        let text = fs::read_to_string(workspace::root().join(&page)).unwrap();
        let is_played = test.contains(&format!("Page::open(\"{page}\")"));
        assert!(is_played || blocks(&text).is_empty(), "no test plays the commands of {page}");
    }
}

/// Commands that are not played are looked up: in the text, in tables, in blocks of settings.
#[test]
fn every_command_that_is_named_exists_with_its_options() {
    let home = Home::new(&workspace::bin_dir("debug").unwrap()).unwrap();
    let mut helps = BTreeMap::new();
    let mut looked_up = 0;
    for page in pages() {
        let text = fs::read_to_string(workspace::root().join(&page)).unwrap();
        for command in named(&text) {
            let command = match &command[..] {
                [first, rest @ ..] if first == "--no-spawn" => rest,
                [first, _, rest @ ..] if first == "--host" => rest,
                all => all,
            };
            // Hidden ones are for programs that acpd starts.
            if command.starts_with(&["mcp".to_owned(), "--session".to_owned()]) {
                continue;
            }
            let (verbs, help) = verbs_of(&home, command, &mut helps);
            for option in command.iter().skip(verbs).take_while(|word| *word != "--") {
                let Some(name) = option.strip_prefix("--") else { continue };
                let name = name.split(['=', '[']).next().unwrap_or(name);
                let known = help.split(|c: char| !(c.is_alphanumeric() || c == '-'));
                let known = known.into_iter().any(|word| word.strip_prefix("--") == Some(name));
                assert!(known, "{page}: `--{name}` of `acpctl {}`", command.join(" "));
            }
            looked_up += 1;
        }
    }
    assert!(looked_up > 300, "{looked_up}");
}

/// The documents for people who use acpd, from the root of the project.
fn pages() -> Vec<String> {
    let docs = fs::read_dir(workspace::root().join("docs")).unwrap();
    let names = docs.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let names = names.filter(|name| Path::new(name).extension().is_some_and(|it| it == "md"));
    let mut pages: Vec<String> = names.map(|name| format!("docs/{name}")).collect();
    pages.push("README.md".to_owned());
    pages
}

/// The words behind each `acpctl` of a page, up to what ends a command.
fn named(text: &str) -> Vec<Vec<String>> {
    let mut commands = Vec::new();
    for piece in text.split("acpctl ").skip(1) {
        let end = piece
            .find(['`', '\n', '|', ';', '&', '#', '"', ')', '<', '>', ','])
            .unwrap_or(piece.len());
        let words = piece[..end].split_whitespace().map(str::to_owned);
        // In a sentence about acpctl there is no command.
        let words: Vec<String> = words.collect();
        commands.push(words);
    }
    commands
}

/// How many of the words are verbs, and the help for them.
fn verbs_of<'h>(
    home: &Home,
    words: &[String],
    helps: &'h mut BTreeMap<String, String>,
) -> (usize, &'h str) {
    let is_verb = |word: &&String| {
        word.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !word.starts_with('-')
    };
    let most = words.iter().take(3).take_while(is_verb).count();
    for count in (0..=most).rev() {
        let verbs = words[..count].join(" ");
        if !helps.contains_key(&verbs) {
            let mut args: Vec<&str> = words[..count].iter().map(String::as_str).collect();
            args.push("--help");
            let help = home.read(&args).unwrap_or_default();
            helps.insert(verbs.clone(), help);
        }
        if !helps[&verbs].is_empty() {
            return (count, &helps[&verbs]);
        }
    }
    panic!("no help at all for {words:?}");
}

/// A block of commands.
#[derive(Debug)]
struct Block {
    line: usize,
    is_console: bool,
    /// Of a block in a list.
    indent: usize,
    text: String,
}

fn blocks(page: &str) -> VecDeque<Block> {
    let mut blocks = VecDeque::new();
    let mut open: Option<Block> = None;
    for (line, number) in page.lines().zip(1..) {
        let fence = line.trim_start();
        match &mut open {
            Some(_) if fence == "```" => blocks.extend(open.take()),
            Some(block) => {
                let line = line.get(block.indent..).unwrap_or_default();
                block.text.extend([
                    line.trim_end(),
                    "
",
                ]);
            }
            None if fence == "```console" || fence == "```sh" => {
                let is_console = fence == "```console";
                let indent = line.len() - fence.len();
                open = Some(Block { line: number, is_console, indent, text: String::new() });
            }
            None => {}
        }
    }
    blocks
}

/// A document whose commands are played one after the other.
struct Page {
    name: &'static str,
    blocks: VecDeque<Block>,
    home: Home,
}

impl Page {
    fn open(name: &'static str) -> Page {
        let blocks = blocks(&fs::read_to_string(workspace::root().join(name)).unwrap());
        assert!(!blocks.is_empty(), "{name} has no commands");
        Page { name, blocks, home: beginning() }
    }

    /// The next block, which must begin so.
    fn next(&mut self, begins: &str) -> Block {
        let block = self.blocks.pop_front();
        let block =
            block.unwrap_or_else(|| panic!("{}: no more blocks, but for: {begins}", self.name));
        let Block { line, text, .. } = &block;
        assert!(text.starts_with(begins), "{}:{line}: is not `{begins}…`:\n{text}", self.name);
        block
    }

    /// Passes over a block.
    fn not_run(&mut self, begins: &str, why: &str) {
        let block = self.next(begins);
        println!("NOT RUN {}:{}: {why}", self.name, block.line);
    }

    /// Does what the person has done before.
    fn before(&self, script: &str) {
        let output = shell(&self.home, script).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{script}: {}\n{said}", output.status);
    }

    fn play(&mut self, begins: &str) {
        self.play_but(begins, &[]);
    }

    /// Plays a block, but for the lines that begin with one of these.
    fn play_but(&mut self, begins: &str, left_out: &[(&str, &str)]) {
        let mut block = self.next(begins);
        for (begin, why) in left_out {
            let before = block.text.len();
            let kept = block.text.lines().filter(|line| !line.starts_with(begin));
            block.text = kept.flat_map(|line| [line, "\n"]).collect();
            assert!(block.text.len() < before, "{}: no `{begin}…`", self.name);
            println!("NOT RUN {}: {begin}: {why}", self.name);
        }
        self.played(&block, None, |_, _| ()).compare(&block, exactly);
    }

    /// Plays a block; something else happens once it has said this.
    fn play_until(&mut self, begins: &str, line: &str, then: impl FnOnce(&Home)) {
        let block = self.next(begins);
        self.played(&block, Some(line), |home, _| then(home)).compare(&block, exactly);
    }

    /// Plays a block whose last command goes on until Ctrl-C, which comes once it has said this.
    fn play_and_interrupt(&mut self, begins: &str, line: &str) {
        let block = self.next(begins);
        let mut transcript = self.played(&block, Some(line), |_, child| interrupt(child));
        let shown = block.text.lines().count();
        let end = transcript.text.lines().take(shown).map(|line| line.len() + 1).sum();
        transcript.text.truncate(end);
        transcript.compare(&block, loosely);
    }

    /// Plays commands each of which goes on until Ctrl-C, which comes with its first line.
    fn follow(&mut self, begins: &str) {
        let block = self.next(begins);
        for command in block.text.split("\nacpctl ") {
            let command = command.strip_prefix("acpctl ").unwrap_or(command);
            let text = format!("acpctl {command}");
            self.played(&Block { text, ..block }, Some(""), |_, child| interrupt(child));
        }
    }

    /// Runs a block to its end.
    fn played(
        &self,
        block: &Block,
        until: Option<&str>,
        then: impl FnOnce(&Home, &Child),
    ) -> Transcript {
        let place = format!("{}:{}", self.name, block.line);
        let script = if block.is_console { in_terminal(&block.text) } else { block.text.clone() };
        let mut command = shell(&self.home, &script);
        let mut child = command.stdout(Stdio::piped()).process_group(0).spawn().unwrap();
        let (mut text, mut then, mut waits) = (String::new(), Some(then), until);
        for line in BufReader::new(child.stdout.take().unwrap()).lines() {
            let line = line.unwrap();
            let folder = self.home.path(FOLDER).display().to_string();
            text.extend([&*line.trim_end().replace(&folder, "/home/you/hello"), "\n"]);
            if waits.is_some_and(|wanted| line.contains(wanted) && !line.starts_with("$ "))
                && let Some(then) = then.take()
            {
                waits = None;
                then(&self.home, &child);
            }
        }
        let status = child.wait().unwrap();
        assert!(waits.is_none(), "{place}: never said {until:?}:\n{script}\n{text}");
        let interrupted = until.is_some();
        assert!(status.success() || interrupted, "{place}: {status}:\n{script}\n{text}");
        Transcript { place, text }
    }

    /// All has been played, and nothing is left.
    fn end(self) {
        if let Some(block) = self.blocks.front() {
            panic!("{}:{}: not played:\n{}", self.name, block.line, block.text);
        }
        if !self.home.processes().is_empty() {
            self.home.stop().unwrap();
        }
    }
}

/// Output of a block.
struct Transcript {
    place: String,
    text: String,
}

impl Transcript {
    /// Compares it with what the block shows, if it shows anything. `see` makes of each line what counts of it.
    fn compare(&self, block: &Block, see: impl Fn(&str) -> String) {
        let shows = |line: &str| !line.starts_with("$ ");
        if !block.is_console || !block.text.lines().any(shows) {
            return;
        }
        let lines =
            |text: &str| without_ticks(text).iter().map(|line| see(line)).collect::<Vec<_>>();
        let (wanted, found) = (lines(&block.text), lines(&self.text));
        let told =
            format!("{}:\n{}\nbut the document shows:\n{}", self.place, self.text, block.text);
        assert!(fits(&wanted, &found), "{told}\n{wanted:#?}\n{found:#?}");
    }
}

fn exactly(line: &str) -> String {
    line.to_owned()
}

/// Without numbers, times and sizes.
fn loosely(line: &str) -> String {
    let is_number = |word: &str| word.contains(|c: char| c.is_ascii_digit()) || word == "now";
    let words = line.split_whitespace().filter(|word| !["ago", "MB", "KB"].contains(word));
    words.map(|word| if is_number(word) { "N" } else { word }).collect::<Vec<_>>().join(" ")
}

/// Returns whether lines match the wanted ones; `…` matches any.
fn fits(wanted: &[String], found: &[String]) -> bool {
    match (wanted.split_first(), found.split_first()) {
        (None, None) => true,
        (Some((first, rest)), _) if first == "…" => {
            (0..=found.len()).any(|from| fits(rest, &found[from..]))
        }
        (Some((wanted, rest)), Some((found, others))) => wanted == found && fits(rest, others),
        _ => false,
    }
}

/// The lines, with one for each row of ticks: how many come before something happens is never the same.
fn without_ticks(text: &str) -> Vec<String> {
    let number =
        |line: &str| line.strip_prefix("tick ").and_then(|number| number.parse::<u32>().ok());
    let mut lines: Vec<String> = Vec::new();
    let mut last = None;
    for line in text.lines() {
        let tick = number(line);
        if !(tick.is_some() && last.is_some_and(|last: u32| tick == Some(last + 1))) {
            lines.push(if tick.is_some() { "ticks".to_owned() } else { line.to_owned() });
        }
        last = tick;
    }
    lines
}

/// The commands of a block that shows what a person types, each told before it is run, as a terminal would show it.
fn in_terminal(text: &str) -> String {
    let commands = text.lines().filter_map(|line| line.strip_prefix("$ "));
    let told = commands.map(|command| {
        let shown = command.replace('\'', r"'\''");
        format!("last=$?; printf '$ %s\\n' '{shown}'; (exit $last)\n{command}\n")
    });
    told.collect::<String>() + "true\n"
}

fn beginning() -> Home {
    let home = Home::new(&workspace::bin_dir("debug").unwrap()).unwrap();
    fs::create_dir(home.path(FOLDER)).unwrap();
    let output = shell(&home, BEGINNING).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    home
}

/// A shell in the folder of a home, whose every mistake is its end unless what it does is a person's.
fn shell(home: &Home, script: &str) -> Command {
    let mut command = home.command(Path::new("sh"));
    let flags = if script.contains("printf '$ ") { "-c" } else { "-ec" };
    command.args([flags, &format!("exec 2>&1\n{script}")]).current_dir(home.path(FOLDER));
    let own = [home.path("bin"), home.program("acpctl").parent().unwrap().to_owned()];
    let others = std::env::var_os("PATH").unwrap_or_default();
    let path: OsString =
        std::env::join_paths(own.into_iter().chain(std::env::split_paths(&others))).unwrap();
    command.env("PATH", path).env("EDITOR", "true");
    for name in ["GIT_AUTHOR", "GIT_COMMITTER"] {
        command.env(format!("{name}_NAME"), "You").env(format!("{name}_EMAIL"), "you@example.org");
    }
    command
}

/// Ctrl-C, for all that a shell has started.
fn interrupt(shell: &Child) {
    killpg(pid(shell.id()), Signal::SIGINT).unwrap();
}

fn pid(id: u32) -> Pid {
    Pid::from_raw(id.try_into().unwrap())
}
