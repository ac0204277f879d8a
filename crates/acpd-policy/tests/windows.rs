//! Rules about the paths of Windows, where one file has many spellings: what allows fits none that it does not
//! surely mean, what denies fits all. The forms themselves are tested in `place/windows.rs`, on every system.
#![cfg(windows)]

mod support;

use acpd_policy::Verdict::{Allow, Reject};
use acpd_policy::{Situation, decide};
use serde_json::json;
use support::{allow, compile, edit, here, outcome, params, reject, request, run, verdict};

#[test]
fn an_allow_rule_takes_both_separators_and_the_drive_in_either_case() {
    for glob in ["src/**", r"src\**", "C:/home/me/src/app/src/**", r"c:\home\me\src\app\src\**"] {
        let policy = allow(&format!("path = '{glob}'"));
        for path in [
            "src/a.rs",
            r"src\b\a.rs",
            r"C:\home\me\src\app\src\a.rs",
            "c:/home/me/src/app/src/a.rs",
            r"\\?\C:\home\me\src\app\src\a.rs",
            r"~\src\app\src\a.rs",
        ] {
            assert_eq!(outcome(&policy, edit(&[path])), Some(Allow), "{glob} {path}");
        }
        for path in [
            r"src\..\a.rs",
            r"SRC\a.rs",
            "D:/home/me/src/app/src/a.rs",
            r"\home\me\src\app\src\a.rs",
            "C:src/a.rs",
            r"\\host\C$\home\me\src\app\src\a.rs",
            "src/a.rs:stream",
            r"src\SECRET~1",
            "src/nul",
            r"src\..\src. \a.rs",
        ] {
            assert_eq!(outcome(&policy, edit(&[path])), None, "{glob} {path}");
        }
    }
}

#[test]
fn a_reject_rule_sees_the_file_behind_each_spelling() {
    let policy = reject("path = ['.env', 'C:/Geheim/**', '//host/share/**', '**/*.pem']");
    for path in [
        ".env",
        ".ENV",
        r".\.env",
        ".env.",
        ".env ",
        ".env::$DATA",
        "c:.env",
        r"C:\HOME\Me\src\APP\.env",
        "/c/home/me/src/app/.env",
        r"\home\me\src\app\.env",
        r"\\?\c:\home\me\src\app\.env",
        r"c:\GEHEIM\x",
        r"\\localhost\c$\geheim\x",
        "file:///C:/geheim/x",
        r"\\HOST\share\a",
        "//host/SHARE/a",
        r"\\?\UNC\host\share\a",
        r"D:\Schlüssel\A.PEM",
        r"\\other\share\deep\a.pem",
    ] {
        assert_eq!(outcome(&policy, edit(&[path])), Some(Reject), "{path}");
    }
    for path in [".envrc", r"D:\geheim\x", "src/.env"] {
        assert_eq!(outcome(&policy, edit(&[path])), None, "{path}");
    }
    let umlaut = reject("path = '**/Schlüssel/**'");
    assert_eq!(outcome(&umlaut, edit(&[r"D:\SCHLÜSSEL\a"])), Some(Reject));
}

#[test]
fn a_short_name_might_be_that_of_any_file() {
    let rules = "default = 'allow'\nrules = [{ decision = 'reject', path = 'secrets.json' }]";
    let policy = compile(rules).expect("it is sound");
    assert_eq!(outcome(&policy, edit(&["SECRET~1.JSO"])), None);
    assert_eq!(outcome(&policy, edit(&["others.json"])), Some(Allow));
}

#[test]
fn a_workspace_that_is_denied_is_found_in_any_case_and_one_that_is_allowed_in_its_own() {
    let asked = |policy: &acpd_policy::Policy, cwd: &str| {
        let read = params(json!({"kind": "read"}));
        verdict(&decide(policy, &[], &Situation { cwd, ..here() }, &request(&read)))
    };
    let (yes, no) = (allow("workspace = '~/src/**'"), reject(r"workspace = '~\src\**'"));
    assert_eq!(asked(&yes, r"c:\home\me\src\app"), Some(Allow));
    assert_eq!(asked(&yes, r"C:\HOME\me\src\app"), None);
    assert_eq!(asked(&no, r"c:\HOME\me\src\app\"), Some(Reject));
    assert_eq!(asked(&no, r"C:\home\me\elsewhere"), None);
}

#[test]
fn a_glob_without_its_drive_is_refused_with_a_way_out() {
    for glob in ["/tmp/**", r"\tmp", "C:tmp"] {
        let error = compile(&format!(
            "[[rules]]\ndecision = 'reject'\npath = \"{}\"",
            glob.escape_default()
        ));
        assert!(error.expect_err(glob).hint().is_some_and(|hint| hint.contains("`C:/`")));
    }
    let everywhere = reject("path = '?:/Geheim/**'");
    assert_eq!(outcome(&everywhere, edit(&[r"Z:\geheim\a"])), Some(Reject));
}

#[test]
fn a_backslash_in_a_command_is_no_slash() {
    let policy = allow("command = 'bin/tool *'");
    let call = |program: &str| json!({"kind": "execute", "rawInput": {"command": [program, "x"]}});
    assert_eq!(outcome(&policy, call("bin/tool")), Some(Allow));
    assert_eq!(outcome(&policy, call(r"bin\tool")), None);
}

#[test]
fn a_wildcard_allows_what_bash_cmd_and_powershell_read_alike() {
    let policy = allow("command = 'git *'");
    for line in ["git status -s", "git commit -m \"a, 'b'\"", "git log --format=%h"] {
        let expected = (!line.contains('%')).then_some(Allow);
        assert_eq!(outcome(&policy, run(line)), expected, "{line}");
    }
    for line in [
        "git log %X%",
        "git show HEAD^",
        "git log !X!",
        "git commit -m 'a'",
        "git log $env:X",
        r"git add src\a.rs",
        "git log \u{2018}a\u{2019}",
        r#"git log "a\" --output=C:/x "b""#,
    ] {
        assert_eq!(outcome(&policy, run(line)), None, "{line}");
    }
    // What a person has written down to the letter is what that person means.
    let exact = allow("command = 'git show HEAD^'");
    assert_eq!(outcome(&exact, run("git show HEAD^")), Some(Allow));
    let wrapped = allow("command = ['start *', 'iex *', 'return *', 'CMD *', '*']");
    for line in ["start git push", "iex git", "return git push", "CMD /c git", "Start-Process git"]
    {
        assert_eq!(outcome(&wrapped, run(line)), None, "{line}");
    }
    let words =
        json!({"kind": "execute", "rawInput": {"command": ["git", "commit", "-m", "a 'b'"]}});
    assert_eq!(outcome(&policy, words), Some(Allow));
    let words = json!({"kind": "execute", "rawInput": {"command": ["git", "log", "%X%"]}});
    assert_eq!(outcome(&policy, words), None);
}

#[test]
fn a_reject_rule_sees_a_command_in_each_shell() {
    let rules = "default = 'allow'\nrules = [{ decision = 'reject', command = 'git push*' }]";
    let policy = compile(rules).expect("it is sound");
    for line in [
        "g^it push",
        "@git push",
        "cmd /c git push",
        "cmd /cgit push",
        "CMD.EXE /s /c \"git push\"",
        "powershell -Command \"git push\"",
        "pwsh -c git push",
        "& \"git\" push",
        "g`it push",
        "iex \"git push\"",
        "if exist x git push",
        "for %i in (x) do git push",
        r"C:\tools\GIT.EXE push",
        "1 | % { git push }",
        "$x = git push",
        "start git push",
        "echo a & git push",
        "echo a; git push",
        "powershell -Command \"& { git push }\"",
    ] {
        assert_eq!(outcome(&policy, run(line)), Some(Reject), "{line}");
    }
    for line in [
        "powershell -EncodedCommand ZwBpAHQAIABwAHUAcwBoAA==",
        "%X% push",
        "git %X%",
        "& $x push",
        "git $env:X",
        "'git push' | iex -",
        "echo a | cmd",
    ] {
        assert_ne!(outcome(&policy, run(line)), Some(Allow), "{line}");
    }
    for line in ["git status", "bash -c 'git pull'", "dir C:/x", "date +%Y"] {
        assert_eq!(outcome(&policy, run(line)), Some(Allow), "{line}");
    }
}

#[test]
fn a_reject_rule_sees_a_command_of_powershell_under_each_of_its_names() {
    let rule = |command: &str| {
        let rules = "default = 'allow'\nrules = [{ decision = 'reject', command = 'X' }]";
        compile(&rules.replace('X', command)).expect("it is sound")
    };
    for (command, lines) in [
        ("Remove-Item *", "rm x|del x|RD x|ri -r x|erase x|rmdir x|Remove-Item x|sudo rm x"),
        ("rm *", "Remove-Item x|del x|r`m x|cmd /c del x|powershell -c \"ri x\"|iex 'rd x'"),
        ("Invoke-WebRequest *", "iwr x|curl x|wget x|$y = iwr x|(curl.exe x).Content"),
        ("cat *", "gc x|type x|Get-Content x|bash -c 'cat x'"),
        ("copy *", "cp x y|cpi x y|if (1) { Copy-Item x y }"),
        ("Start-Process *", "saps x|start x"),
        ("git push*", "icm { git push }|ii git push|saps git push|sal g git; g push; git push"),
    ] {
        let policy = rule(command);
        for line in lines.split('|') {
            let line = line.trim();
            assert_eq!(outcome(&policy, run(line)), Some(Reject), "{command}: {line}");
        }
        assert_eq!(outcome(&policy, run("Rename-Item x y")), Some(Allow), "{command}");
    }
    // Which command a new name stands for is not followed.
    for line in ["Set-Alias g git; g push", "nal -Name g -Value git"] {
        assert_ne!(outcome(&rule("git push*"), run(line)), Some(Allow), "{line}");
    }
}

#[test]
fn an_allow_rule_takes_the_name_that_is_written() {
    let policy = allow("command = ['ls *', 'Get-Content *']");
    for (line, expected) in [
        ("ls src", Some(Allow)),
        ("Get-Content a.txt", Some(Allow)),
        ("dir src", None),
        ("gci src", None),
        ("cat a.txt", None),
        ("gc a.txt", None),
    ] {
        assert_eq!(outcome(&policy, run(line)), expected, "{line}");
    }
}
