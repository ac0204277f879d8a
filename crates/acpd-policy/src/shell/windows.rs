//! Lines on Windows. An agent there has bash, cmd.exe or PowerShell, and no call tells which.
//!
//! An `allow` rule takes only a line that all three read alike ([`unlike`]). Other rules compare what each of them would
//! run: bash as everywhere, the other two here ([`commands`]). Both work on text, so they are tested on every system.

use super::UNKNOWN;
use super::cmdlets::full_name;

/// What ends the name of a program; case counts for none.
const ENDINGS: [&str; 5] = [".exe", ".com", ".cmd", ".bat", ".ps1"];
/// Programs and words that run what is behind them, beside those of other systems. Those of PowerShell are here by their
/// full names.
const WRAPPERS: [&str; 32] = [
    ".",
    "call",
    "conhost",
    "cscript",
    "exit",
    "for",
    "foreach-object",
    "forfiles",
    "gsudo",
    "if",
    "invoke-command",
    "invoke-item",
    "invoke-wmimethod",
    "measure-command",
    "mshta",
    "pcalua",
    "psexec",
    "return",
    "runas",
    "rundll32",
    "sc",
    "schtasks",
    "start-job",
    "start-process",
    "start-threadjob",
    "throw",
    "trace-command",
    "where-object",
    "wmic",
    "wscript",
    "wsl",
    "wt",
];
/// Words before a command that say nothing of it.
const BEFORE_COMMANDS: [&str; 3] = ["do", "else", "then"];
/// What PowerShell takes for `'` and for `"`.
const SINGLE_QUOTES: [char; 5] = ['\'', '\u{2018}', '\u{2019}', '\u{201a}', '\u{201b}'];
const DOUBLE_QUOTES: [char; 4] = ['"', '\u{201c}', '\u{201d}', '\u{201e}'];
/// What it takes for `-`.
const DASHES: [char; 3] = ['\u{2013}', '\u{2014}', '\u{2015}'];

/// The name of a program as it is looked up, without its folder.
pub(crate) fn program(name: &str) -> String {
    let name = name.to_lowercase();
    let stem = ENDINGS.iter().find_map(|ending| name.strip_suffix(ending));
    stem.filter(|stem| !stem.is_empty()).unwrap_or(&name).to_owned()
}

/// Whether this program, or word of a shell, runs what is behind it.
pub(crate) fn is_wrapper(name: &str) -> bool {
    WRAPPERS.contains(&name) || WRAPPERS.contains(&full_name(name))
}

/// Whether its arguments are a line of PowerShell.
pub(crate) fn is_eval(name: &str) -> bool {
    full_name(name) == "invoke-expression"
}

/// Whether it gives another name to one of its arguments.
pub(crate) fn makes_alias(name: &str) -> bool {
    matches!(full_name(name), "new-alias" | "set-alias")
}

/// The first part of a line that one of the three shells reads in its own way. The line is one plain command to bash, and
/// has no operators.
///
/// A program is named by letters alone: behind other characters cmd.exe sees arguments, and PowerShell shows what is
/// in quotes. A word is in `"` as a whole or not at all, with no `\` that could escape something.
pub(crate) fn unlike(line: &str) -> Option<&str> {
    let name = line.split([' ', '\t']).next().unwrap_or_default();
    let is_letter = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if name.starts_with('-') || name.is_empty() || !name.chars().all(is_letter) {
        return Some(name);
    }
    let mut before = ' ';
    let mut is_quoted = false;
    for (at, c) in line.char_indices() {
        let this = &line[at..at + c.len_utf8()];
        let next = line[at + c.len_utf8()..].chars().next().unwrap_or(' ');
        let is_alike = match c {
            '"' if is_quoted => !matches!(before, '"' | '\\') && matches!(next, ' ' | '\t'),
            '"' => matches!(before, ' ' | '\t' | '='),
            '\\' => is_quoted && (next.is_ascii_alphanumeric() || matches!(next, '_' | '.' | '-')),
            ' ' | '_' | '.' | '/' | ':' | '=' | '+' | '-' => true,
            '\t' => !is_quoted,
            '@' => is_quoted || !matches!(before, ' ' | '\t' | '"' | '='),
            ',' | '\'' | '#' | '~' | '*' | '?' | '[' | ']' | '{' | '}' => is_quoted,
            c => c.is_alphanumeric(),
        };
        if !is_alike {
            return Some(this);
        }
        is_quoted ^= c == '"';
        before = c;
    }
    is_quoted.then_some("\"")
}

/// The same for arguments that go to a program without a shell, which may be a script of cmd.exe all the same.
pub(crate) fn unlike_word(word: &str) -> Option<&str> {
    let is_odd = |c: char| matches!(c, '"' | '%' | '!' | '^') || c.is_control();
    let odd = word.char_indices().find(|(_, c)| is_odd(*c));
    let odd = odd.map(|(at, c)| &word[at..at + c.len_utf8()]);
    odd.or(word.ends_with('\\').then_some(word))
}

/// Every command that cmd.exe or PowerShell would run in the line, as words, with [`UNKNOWN`] for what they fill in.
pub(crate) fn commands(line: &str) -> Vec<Vec<String>> {
    let mut found = cmd(line, true);
    if line.contains(['%', '!']) {
        // A name that is no variable may stay as it is.
        found.extend(cmd(line, false));
    }
    found.extend(powershell(line));
    let mut more = Vec::new();
    for words in &found {
        let is_before = |word: &String| BEFORE_COMMANDS.contains(&&*word.to_lowercase());
        let before = words.iter().take_while(|word| is_before(word)).count();
        more.extend((before > 0).then(|| words[before..].to_vec()));
        more.extend(behind(words));
    }
    found.extend(more);
    found.retain(|words| !words.is_empty());
    found
}

/// What a command runs that is not a word of it: glued to `/c`, in code, or read from somewhere.
fn behind(words: &[String]) -> Option<Vec<String>> {
    let (first, args) = words.split_first()?;
    let name = first.rsplit(['/', '\\']).next().unwrap_or_default();
    let unknown = || Some(vec![UNKNOWN.to_string()]);
    let is_option = |word: &String| word.starts_with(['-', '/']);
    match program(name).as_str() {
        "cmd" => {
            let glued = args.iter().position(|word| {
                let word = word.to_lowercase();
                word.starts_with('/') && ["/c", "/k", "/r"].iter().any(|flag| word.contains(flag))
            });
            let Some(at) = glued else { return args.iter().all(is_option).then(unknown)? };
            let word = args[at].to_lowercase();
            let flag = ["/c", "/k", "/r"].iter().filter_map(|flag| word.find(flag)).min()?;
            let tail = args[at].get(flag + 2..).filter(|tail| !tail.is_empty());
            tail.map(|tail| [&[tail.to_owned()], &args[at + 1..]].concat())
        }
        "powershell" | "pwsh" => {
            let is_code = |word: &String| {
                let option = word.trim_start_matches(['-', '/']).to_lowercase();
                is_option(word)
                    && !option.is_empty()
                    && ("encodedcommand".starts_with(&option) || option == "ec")
            };
            let reads = args.iter().all(is_option);
            (reads || args.iter().any(is_code)).then(unknown)?
        }
        name if is_eval(name) && args.is_empty() => unknown(),
        _ => None,
    }
}

/// Read and commands while a line is read.
#[derive(Debug, Default)]
struct Read {
    /// Those before this one.
    commands: Vec<Vec<String>>,
    words: Vec<String>,
    word: Option<String>,
    /// The next word is a file, from which is read or into which is written.
    is_target: bool,
}

impl Read {
    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn end_word(&mut self) {
        if let Some(word) = self.word.take()
            && !std::mem::take(&mut self.is_target)
        {
            self.words.push(word);
        }
    }

    /// `2>` is one sign.
    fn redirect(&mut self) {
        if self.word.as_ref().is_some_and(|word| matches!(word.as_bytes(), [b'0'..=b'9' | b'*'])) {
            self.word = None;
        }
        self.end_word();
        self.is_target = true;
    }

    fn take(&mut self) -> Vec<String> {
        self.end_word();
        self.is_target = false;
        std::mem::take(&mut self.words)
    }

    fn end_command(&mut self) {
        let words = self.take();
        self.commands.push(words);
    }
}

/// The commands that cmd.exe sees. `^` takes the meaning of the next character, `"` that of all up to the next one.
fn cmd(line: &str, expands: bool) -> Vec<Vec<String>> {
    let chars: Vec<char> = line.chars().collect();
    let mut read = Read::default();
    let mut is_quoted = false;
    let mut at = 0;
    while let Some(c) = chars.get(at).copied() {
        at += 1;
        match c {
            '"' => {
                is_quoted = !is_quoted;
                read.word.get_or_insert_default();
            }
            '^' if !is_quoted => {
                let escaped = chars.get(at).filter(|c| !matches!(c, '\r' | '\n'));
                at += 1;
                if let Some(c) = escaped {
                    read.push(*c);
                }
            }
            '%' | '!' if expands => match variable(&chars[at..], c) {
                Some(length) => {
                    at += length;
                    read.push(UNKNOWN);
                }
                None => read.push(c),
            },
            '&' | '|' | '(' | ')' | '\n' | '\r' if !is_quoted => read.end_command(),
            '<' | '>' if !is_quoted => {
                read.redirect();
                at += chars[at..].iter().take_while(|c| matches!(c, '>' | '&')).count();
            }
            c if !is_quoted && c.is_whitespace() => read.end_word(),
            // Between the name of a command and its arguments they are blanks.
            ',' | ';' | '=' if !is_quoted && read.words.is_empty() => read.end_word(),
            c => read.push(c),
        }
    }
    read.end_command();
    read.commands.into_iter().flat_map(without_signs).collect()
}

/// How much of a text, behind the first sign, names a variable: up to the second, or one of `for` or of a script.
fn variable(text: &[char], sign: char) -> Option<usize> {
    let is_end = |c: &char| matches!(c, '&' | '|' | '<' | '>' | '\r' | '\n');
    let end = text.iter().position(|c| *c == sign || is_end(c));
    if let Some(end) = end.filter(|end| *end > 0 && text[*end] == sign) {
        return Some(end + 1);
    }
    let is_short = |c: &&char| c.is_ascii_alphanumeric() || matches!(c, '*' | '~' | '%');
    (sign == '%').then(|| text.first().filter(is_short)).flatten().map(|_| 1)
}

/// A command without the sign that hides it, and also with arguments that are glued to its name.
fn without_signs(words: Vec<String>) -> Vec<Vec<String>> {
    let Some((first, args)) = words.split_first() else { return Vec::new() };
    let first = first.trim_start_matches('@');
    let with = |names: &[&str]| -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).chain(args.iter().cloned()).collect()
    };
    let end = first.find(['/', '.', '+', '[', ']', '\\', ':']).filter(|end| *end > 0);
    let glued = end.map(|end| with(&[&first[..end], &first[end..]]));
    [Some(with(&[first])), glued].into_iter().flatten().collect()
}

/// What is read of PowerShell when something begins in parentheses.
struct Outer {
    words: Vec<String>,
    word: Option<String>,
    is_quoted: bool,
    is_called: bool,
}

/// The commands that PowerShell sees, also those in blocks and in what it computes.
fn powershell(line: &str) -> Vec<Vec<String>> {
    let chars: Vec<char> = line.chars().collect();
    let mut read = Read::default();
    let mut outer: Vec<Outer> = Vec::new();
    let mut found = Vec::new();
    let (mut is_quoted, mut is_called) = (false, false);
    let mut at = 0;
    while let Some(c) = chars.get(at).copied() {
        at += 1;
        let next = chars.get(at).copied();
        match c {
            '`' => {
                at += 1;
                match next {
                    Some('\r' | '\n') => read.end_word(),
                    Some(c) => read.push(c),
                    None => {}
                }
            }
            '$' | '@' if next == Some('(') || c == '@' && next == Some('{') && !is_quoted => {
                at += 1;
                open(&mut read, &mut outer, &mut is_quoted, &mut is_called);
            }
            '$' => match name(&chars[at..]) {
                0 => read.push('$'),
                length => {
                    at += length;
                    read.push(UNKNOWN);
                }
            },
            c if DOUBLE_QUOTES.contains(&c) => {
                is_quoted = !is_quoted;
                read.word.get_or_insert_default();
            }
            c if is_quoted => read.push(c),
            c if SINGLE_QUOTES.contains(&c) => {
                let inside = chars[at..].iter().take_while(|c| !SINGLE_QUOTES.contains(c)).count();
                read.word.get_or_insert_default().extend(&chars[at..at + inside]);
                at += inside + 1;
            }
            '(' | '{' => open(&mut read, &mut outer, &mut is_quoted, &mut is_called),
            ')' | '}' => {
                found.extend(run(read.take(), is_called));
                if let Some(before) = outer.pop() {
                    (read.words, read.word) = (before.words, before.word);
                    (is_quoted, is_called) = (before.is_quoted, before.is_called);
                }
            }
            ';' | '|' | '&' | '\n' | '\r' => {
                found.extend(run(read.take(), is_called));
                is_called = c == '&';
            }
            '<' | '>' => {
                read.redirect();
                at += chars[at..].iter().take_while(|c| matches!(c, '>' | '&')).count();
            }
            '#' if read.word.is_none() => {
                at += chars[at..].iter().take_while(|c| !matches!(c, '\r' | '\n')).count();
            }
            '@' if read.word.is_none() => read.push(UNKNOWN),
            c if c.is_whitespace() => read.end_word(),
            c if DASHES.contains(&c) => read.push('-'),
            c => read.push(c),
        }
    }
    found.extend(run(read.take(), is_called));
    for before in outer.into_iter().rev() {
        (read.words, read.word) = (before.words, before.word);
        found.extend(run(read.take(), before.is_called));
    }
    found
}

/// What is in parentheses or braces is a line of its own, and the word that it becomes is not known.
fn open(read: &mut Read, outer: &mut Vec<Outer>, is_quoted: &mut bool, is_called: &mut bool) {
    read.push(UNKNOWN);
    let (words, word) = (std::mem::take(&mut read.words), read.word.take());
    outer.push(Outer {
        words,
        word,
        is_quoted: std::mem::take(is_quoted),
        is_called: std::mem::take(is_called),
    });
}

/// How much of a text is the name of a variable behind `$`.
fn name(text: &[char]) -> usize {
    if text.first() == Some(&'{') {
        return text.iter().position(|c| *c == '}').map_or(text.len(), |end| end + 1);
    }
    let is_part = |c: &&char| c.is_alphanumeric() || matches!(c, '_' | ':' | '?' | '^' | '$');
    text.iter().take_while(is_part).count()
}

/// What runs in a command of PowerShell. A value is only shown, unless `&` or `.` is before it; behind `=` is a command.
fn run(words: Vec<String>, is_called: bool) -> Option<Vec<String>> {
    let first = words.first()?;
    if is_called || !first.contains(UNKNOWN) {
        return Some(words);
    }
    if let Some((_, value)) = first.split_once('=') {
        let value = Some(value.to_owned()).filter(|value| !value.is_empty());
        return Some(value.into_iter().chain(words[1..].iter().cloned()).collect());
    }
    let sets = words.get(1).is_some_and(|word| word.ends_with('='));
    let glued = words.get(1).and_then(|word| word.strip_prefix('=')).map(str::to_owned);
    match (sets, glued) {
        (true, _) => Some(words[2..].to_vec()),
        (false, Some(value)) => Some([&[value], &words[2..]].concat()),
        (false, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{UNKNOWN, cmd, commands, powershell, program, unlike, unlike_word};

    fn joined(commands: &[Vec<String>]) -> Vec<String> {
        commands.iter().map(|words| words.join(" ")).collect()
    }

    #[test]
    fn what_all_shells_read_alike_is_narrow() {
        for line in [
            "git status",
            "cargo test --manifest-path=crates/a/Cargo.toml -p a",
            "git commit -m \"what's new, in two words\"",
            "npm install left-pad@1.2.3",
            r#"type "C:\Users\me\a.txt""#,
            "cl /W4 /Fe:a.exe größe.c",
        ] {
            assert_eq!(unlike(line), None, "{line}");
        }
        for (line, odd) in [
            ("echo %PATH%", "%"),
            ("echo a!b!", "!"),
            ("git show HEAD^", "^"),
            ("echo $x", "$"),
            ("git commit -m 'a'", "'"),
            (r"type C:\a", "\\"),
            (r#"echo "C:\a\""#, "\\"),
            (r#"echo "a\"b""#, "\\"),
            (r#"echo "" a"#, "\""),
            (r#"echo a"b c""#, "\""),
            (r#"echo "a"b"#, "\""),
            ("echo @x", "@"),
            ("echo a,b", ","),
            ("echo \u{2018}a\u{2019}", "\u{2018}"),
            ("echo \u{2013}x", "\u{2013}"),
            ("echo a\u{a0}b", "\u{a0}"),
            ("bin/tool x", "bin/tool"),
            (r"bin\tool x", r"bin\tool"),
            ("del.x", "del.x"),
            ("\"git\" x", "\"git\""),
            ("@del x", "@del"),
            ("X=1 git x", "X=1"),
            ("del,x", "del,x"),
            ("-x", "-x"),
        ] {
            assert_eq!(unlike(line), Some(odd), "{line}");
        }
        assert_eq!(unlike_word("a b & 'c'"), None);
        assert_eq!((unlike_word("a%b"), unlike_word(r"C:\")), (Some("%"), Some(r"C:\")));
    }

    #[test]
    fn programs_are_known_by_their_names_in_any_case() {
        assert_eq!(
            ["GIT.EXE", "npm.Cmd", "PowerShell", ".bat"].map(program),
            ["git", "npm", "powershell", ".bat"]
        );
    }

    #[test]
    fn cmd_runs_what_is_behind_its_signs() {
        for line in [
            "d^el x",
            "^d^e^l x",
            "@del x",
            "@@del x",
            ">nul del x",
            "del 2>&1 x",
            "del >>log x",
            "echo a & del x",
            "echo a&&del x",
            "(del x)",
            "echo \"a\"&del x",
            "del,x",
            ";del;x",
            "\"del\" x",
            "cmd /cdel x",
            "CMD.exe /s/cdel x",
            "echo 5% & del x",
            "if exist x (echo) else del x",
            "for %i in (x) do del x",
            "%x& del x &%",
        ] {
            assert!(
                joined(&commands(line)).contains(&"del x".to_owned()),
                "{line}: {:?}",
                commands(line)
            );
        }
        assert!(joined(&cmd("del/q x", true)).contains(&"del /q x".to_owned()));
        assert_eq!(joined(&cmd("%x% y", true)), [format!("{UNKNOWN} y")]);
        assert_eq!(joined(&cmd("echo !a! %~dp0", true)), [format!("echo {UNKNOWN} {UNKNOWN}dp0")]);
    }

    #[test]
    fn powershell_runs_what_is_behind_its_signs() {
        for line in [
            "d`el x",
            "del `\nx",
            "& 'del' x",
            "& \"del\" x",
            "& \u{2018}del\u{2019} x",
            "$y = del x",
            "$y=del x",
            "[string]$y = del x",
            "1 | % { del x }",
            "if ($true) { del x }",
            "echo $(del x)",
            "echo \"a $(del x) b\"",
            "@(del x)",
            "(del x).Length",
            "echo (del x",
            "echo a; del x",
            "echo a > b; del x",
            "echo # c\ndel x",
            "{ del x",
        ] {
            assert!(
                joined(&powershell(line)).contains(&"del x".to_owned()),
                "{line}: {:?}",
                powershell(line)
            );
        }
        assert_eq!(joined(&powershell("& $x y")), ["", &format!("{UNKNOWN} y")][1..]);
        assert_eq!(joined(&powershell("del $env:X ${y z}")), [format!("del {UNKNOWN} {UNKNOWN}")]);
        assert!(powershell("$x").is_empty() && powershell("$x = 'a'").len() == 1);
        for line in [
            "powershell -EncodedCommand ZABlAGwA",
            "pwsh -nop -e ZABl",
            "powershell -ec x",
            "'del x' | iex",
            "echo del x | cmd",
            "powershell -",
        ] {
            assert!(joined(&commands(line)).contains(&UNKNOWN.to_string()), "{line}");
        }
        assert!(!joined(&commands("powershell -ExecutionPolicy x")).contains(&UNKNOWN.to_string()));
    }

    proptest! {
        #[test]
        fn no_line_is_too_odd_to_be_read(line in "[ -~\\n\u{2018}\u{201c}ä]{0,40}") {
            commands(&line);
            let _ = unlike(&line);
        }

        #[test]
        fn what_all_read_alike_is_one_command_with_the_same_program_to_each(
            line in "[a-zA-Z0-9_.:/=+@\"\\\\,'#%$^!;&|`(){}<> -]{1,24}",
        ) {
            if unlike(&line).is_none() && crate::readings::operator(&line).is_none() {
                let words = shlex::split(&line).expect("bash reads it");
                for read in [cmd(&line, true), powershell(&line)] {
                    prop_assert_eq!(&read[0][0], &words[0]);
                    // cmd.exe has no more than one reading, that of all.
                    prop_assert_eq!(&read, &vec![words.clone()]);
                }
            }
        }

        #[test]
        fn a_command_is_seen_behind_any_escape(
            places in prop::collection::vec(0_usize..5, 0..4), sign in prop::sample::select(vec!['^', '`']),
            before in prop::sample::select(vec!["", "echo a & ", "echo a | ", "(", "echo \"x\" && "]),
        ) {
            let mut line = String::new();
            for (at, c) in "del x".chars().enumerate() {
                if c != ' ' && places.contains(&at) {
                    line.push(sign);
                }
                line.push(c);
            }
            let seen = joined(&commands(&format!("{before}{line}")));
            prop_assert!(seen.contains(&"del x".to_owned()), "{:?}", seen);
        }
    }
}
