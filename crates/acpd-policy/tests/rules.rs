//! Conditions of rules, and what they match.

mod support;

use acpd_policy::Verdict::{Allow, Reject};
use acpd_policy::{Situation, decide};
use serde_json::{Value, json};
use support::{
    CWD, allow, compile, edit, here, in_a_line_of_bash, outcome, params, place, policy, reject,
    request, run, verdict,
};

#[test]
fn a_rule_needs_every_condition_that_it_names() {
    let policy = allow("agent = 'claude*'\nkind = ['read', 'search']\ntitle = 'Read *'");
    assert_eq!(outcome(&policy, json!({"kind": "read", "title": "Read a"})), Some(Allow));
    assert_eq!(outcome(&policy, json!({"kind": "read", "title": "Look at a"})), None);
    assert_eq!(outcome(&policy, json!({"kind": "edit", "title": "Read a"})), None);
    assert_eq!(outcome(&policy, json!({"kind": "read"})), None);
    let elsewhere = Situation { agent: "gemini", ..here() };
    let read = params(json!({"kind": "read", "title": "Read a"}));
    assert_eq!(verdict(&decide(&policy, &[], &elsewhere, &request(&read))), None);
}

#[test]
fn a_workspace_is_compared_in_its_plain_form() {
    let policy = allow("workspace = '~/src/**'");
    let asked = |cwd| {
        let read = params(json!({"kind": "read"}));
        verdict(&decide(&policy, &[], &Situation { cwd: &place(cwd), ..here() }, &request(&read)))
    };
    assert_eq!(asked(CWD), Some(Allow));
    assert_eq!(asked("/home/me/src/../src/app/."), Some(Allow));
    assert_eq!(asked("/home/me/src/../../you/src/app"), None);
    assert_eq!(asked("/home/me/srcs/app"), None);
    assert_eq!(asked("src/app"), None);
}

#[test]
fn a_kind_that_is_missing_or_unknown_is_other() {
    let policy = allow("kind = 'other'");
    for call in
        [json!({}), json!({"kind": "teleport"}), json!({"kind": 7}), json!({"kind": "other"})]
    {
        assert_eq!(outcome(&policy, call), Some(Allow));
    }
    assert_eq!(outcome(&policy, json!({"kind": "read"})), None);
}

#[test]
fn rule_on_a_kind_covers_no_command_and_no_edit() {
    let diff = json!([{"type": "diff", "path": "/home/me/.bashrc", "newText": "x"}]);
    let calls = [
        json!({"rawInput": {"command": "rm -rf /"}}),
        json!({"rawInput": {"command": ["rm", "-rf", "/"]}}),
        json!({"rawInput": {"commands": [{"line": "rm"}]}}),
        json!({"rawInput": {"file_path": "a"}, "content": diff}),
        json!({"rawInput": {"path": "a", "old_string": "a", "new_string": "b"}}),
        json!({"rawInput": {"path": "a", "command": "create"}}),
        json!({"rawInput": {"file_path": "a", "content": "x"}}),
        json!({"rawInput": {"changes": {"/home/me/a": {"content": "x"}}}}),
    ];
    for kind in ["read", "think", "search", "fetch", "other"] {
        let rules = [
            format!("kind = '{kind}'"),
            format!("kind = '{kind}'\nagent = '*'"),
            format!("kind = '{kind}'\ntitle = '*'"),
        ];
        for (call, rule) in calls.iter().flat_map(|call| rules.iter().map(move |rule| (call, rule)))
        {
            let mut call = call.clone();
            call["kind"] = json!(kind);
            call["title"] = json!("t");
            assert_eq!(outcome(&allow(rule), call.clone()), None, "{rule} {call}");
        }
    }
    // A diff is no part of a command, and none of a title.
    let command =
        json!({"kind": "execute", "title": "ls", "rawInput": {"command": "ls"}, "content": diff});
    assert_eq!(outcome(&allow("command = 'ls'"), command.clone()), None);
    assert_eq!(outcome(&allow("title = 'ls'"), command), None);
    let read = json!({"kind": "read", "content": diff});
    assert_eq!(outcome(&allow("kind = 'read'\npath = '**'"), read), None);

    for (rule, call) in [
        ("kind = 'read'", json!({"kind": "read", "rawInput": {"file_path": "a", "offset": 1}})),
        ("kind = 'think'", json!({"kind": "think", "rawInput": {"content": "x"}})),
        ("kind = 'execute'", json!({"kind": "execute", "rawInput": {"command": "make"}})),
        ("kind = ['read', 'edit']", json!({"kind": "edit", "content": diff})),
        (
            "kind = 'edit'",
            json!({"kind": "edit", "rawInput": {"changes": {"a": {"content": "x"}}}}),
        ),
        ("kind = 'read'", json!({"kind": "read", "rawInput": {"path": "a", "command": "view"}})),
        ("agent = '*'", json!({"kind": "read", "rawInput": {"command": "make"}})),
    ] {
        assert_eq!(outcome(&allow(rule), call.clone()), Some(Allow), "{rule} {call}");
    }
}

// Windows has its own spellings; see `place.rs`.
#[cfg(unix)]
#[test]
fn rejected_place_is_not_passed_by_another_spelling() {
    let asks = |rule: &str, input: Value| {
        let rules = format!("default = 'allow'\nrules = [{{ decision = 'reject', {rule} }}]");
        outcome(&policy(&rules), json!({"kind": "read", "rawInput": input})) != Some(Allow)
    };
    let etc = "path = '/etc/**'";
    for path in [
        "/etc/passwd",
        "/etc",
        "/etc/",
        "//etc/./x",
        "file:///etc/passwd",
        "FILE:/etc/passwd",
        "$HOME/../../etc/passwd",
        "${ROOT}/etc/passwd",
        "~other/x",
        "/proc/self/root/etc/passwd",
        "/x/../proc/1/cwd",
    ] {
        assert!(asks(etc, json!({"path": path})), "{path}");
    }
    for member in ["url", "uri"] {
        assert!(asks(etc, json!({member: "file:///etc/passwd"})), "{member}");
    }
    for path in ["/home/me/a", "src/$id.tsx", "src/a%20b", "/etcetera"] {
        assert!(!asks(etc, json!({"path": path})), "{path}");
    }
    for rule in ["url = 'https://evil.org/**'", "url = '*evil.org*'", "url = '*://evil.org/**'"] {
        for url in [
            "https://evil.org",
            "https://evil.org/x/y",
            "https://evil.org:443/x",
            "https://evil.org./x",
            "https:/evil.org/x",
            "https:evil.org/x",
            "https:\\\\evil.org\\x",
            "https://ev%69l.org/x",
            "https://me:you@evil.org/x",
            "HTTPS://EVIL.ORG/x",
            " https://evil\t.org/x",
            "evil.org/x",
            "//evil.org/x",
            "evil.org:443/x",
            "https://",
        ] {
            assert!(asks(rule, json!({"url": url})), "{rule} {url}");
        }
        for url in ["https://good.org/x", "https://good.org:8443/", "https://good.org/a%20b"] {
            assert!(!asks(rule, json!({"url": url})), "{rule} {url}");
        }
    }
    assert!(asks("url = 'https://evil.org/secret'", json!({"url": "https://evil.org/%73ecret"})));
}

#[test]
fn glob_that_matches_no_address_is_a_mistake() {
    for (decision, url) in [
        ("allow", "*example.com*"),
        ("allow", "https://docs.rs"),
        ("allow", "docs.rs"),
        ("reject", "example.com"),
        ("reject", "https://example.com:443/"),
    ] {
        let rule = format!("rules = [{{ decision = '{decision}', url = '{url}' }}]");
        let error = compile(&rule).expect_err("refused").to_string();
        assert!(error.contains("matches no address"), "{error}");
    }
    for (decision, url) in [
        ("allow", "https://docs.rs/"),
        ("allow", "https://*.example.org/**"),
        ("reject", "*example.com*"),
        ("reject", "https://Example.com/x"),
    ] {
        let rule = format!("rules = [{{ decision = '{decision}', url = '{url}' }}]");
        policy(&rule);
    }
}

#[test]
fn a_command_is_found_in_all_the_forms_that_agents_send() {
    let policy = allow("command = 'git status*'");
    let inputs = [
        json!({"command": "git status -s"}),
        json!({"command": ["git", "status", "-s"]}),
        json!({"command": ["bash", "-lc", "git status -s"], "cwd": CWD, "parsed_cmd": []}),
        json!({"command": ["/usr/bin/zsh", "-lc", "git status -s"]}),
        json!({"command": "/bin/zsh -lc 'git status -s'"}),
        json!({"command": "git", "args": ["status", "-s"]}),
        json!({"cmd": "git status"}),
        json!({"commands": ["git status", "git status -s"]}),
    ];
    for input in inputs {
        let call = json!({"kind": "execute", "rawInput": input});
        assert_eq!(outcome(&policy, call), in_a_line_of_bash(&input), "{input}");
    }
}

#[test]
fn a_command_that_is_not_surely_known_is_not_allowed() {
    let policy = allow("command = ['git status*', 'ls']");
    let inputs = [
        json!({}),
        json!({"script": "git status"}),
        json!({"command": "git status", "cwd": "/home/me"}),
        json!({"command": "git status", "workdir": "../other"}),
        json!({"command": {"line": "git status"}}),
        json!({"command": ["git status", 7]}),
        json!({"command": "git status", "cmd": "rm -rf /"}),
        json!({"Command": "git status", "command": "rm -rf /"}),
        json!({"commands": ["git status", "rm"]}),
        json!({"command": "ls", "args": ["-R"]}),
        json!({"command": "ls", "args": "-R"}),
        json!({"command": ["/tmp/bash", "-c", "git status"]}),
        json!({"command": "bash -lc git' status'$'\\x3brm'"}),
        json!({"command": "bash -lc 'git status' extra"}),
        json!({"command": "bash --rcfile evil -c 'git status'"}),
        json!("git status"),
        json!(["git status"]),
    ];
    for input in inputs {
        let call = json!({"kind": "execute", "title": "git status", "rawInput": input});
        assert_eq!(outcome(&policy, call), None, "{input}");
    }
    assert_eq!(outcome(&policy, json!({"kind": "execute", "title": "git status"})), None);
}

#[test]
fn a_line_is_what_a_shell_makes_of_it_also_at_its_ends() {
    let policy = allow("command = 'git status'");
    for blank in ["", " ", "\t", "\n", " \n\t "] {
        assert_eq!(outcome(&policy, run(&format!("{blank}git status{blank}"))), Some(Allow));
    }
    // To a shell these are a part of the word next to them: another program, another argument.
    for letter in ["\r", "\r\n", "\u{b}", "\u{c}", "\u{85}", "\u{a0}", "\u{2003}", "\u{3000}"] {
        for line in [format!("git status{letter}"), format!("{letter}git status")] {
            assert_eq!(outcome(&policy, run(&line)), None, "{line:?}");
            let script = json!({"command": ["bash", "-lc", line]});
            assert_eq!(outcome(&policy, json!({"rawInput": script})), None, "{line:?}");
        }
    }
}

#[test]
fn a_title_that_may_be_a_command_is_treated_as_one() {
    let policy = allow("title = 'git status*'");
    let titled = |kind: &str, title: &str| outcome(&policy, json!({"kind": kind, "title": title}));
    assert_eq!(titled("execute", "git status -s"), Some(Allow));
    assert_eq!(titled("execute", "`git status -s`"), Some(Allow));
    assert_eq!(titled("execute", "git status; rm x"), None);
    assert_eq!(titled("", "git status; rm x"), None);
    assert_eq!(titled("think", "git status (again)"), Some(Allow));
    let no = reject("title = 'rm *'");
    assert_eq!(outcome(&no, json!({"kind": "execute", "title": "`ls; rm x`"})), Some(Reject));
}

#[test]
fn an_allowed_path_must_be_inside_and_so_must_all_others() {
    let policy = allow("path = ['src/**', '~/notes/*.md', '/tmp/**']");
    let inside = [
        &["/home/me/src/app/src/a/b.rs"][..],
        &["src/a.rs", "/tmp/x", "/home/me/notes/a.md", "~/notes/b.md"],
        &["src/../src/./a.rs"],
    ];
    for paths in inside {
        assert_eq!(outcome(&policy, edit(paths)), Some(Allow), "{paths:?}");
    }
    let outside = [
        &[][..],
        &["src/a.rs", "Cargo.toml"],
        &["src/../Cargo.toml"],
        &["/home/me/src/app/src/../../other/src/a.rs"],
        &["/tmp/../etc/passwd"],
        &["/home/me/notes/deep/a.md"],
        &["~you/notes/a.md"],
        &["~//tmp/a.md"],
        &["file:///tmp/x"],
        &["src"],
        &["SRC/a.rs"],
        &[""],
    ];
    for paths in outside {
        assert_eq!(outcome(&policy, edit(paths)), None, "{paths:?}");
    }
}

#[test]
fn the_places_of_a_command_are_not_taken_for_all_that_it_touches() {
    let call = json!({"kind": "execute", "locations": [{"path": "src/a"}],
        "rawInput": {"command": "rm src/a", "url": "https://a.org/"}});
    assert_eq!(outcome(&allow("path = 'src/**'"), call.clone()), None);
    assert_eq!(outcome(&allow("url = 'https://a.org/'"), call.clone()), None);
    assert_eq!(outcome(&allow("command = 'rm *'\npath = 'src/**'"), call.clone()), None);
    let all = "command = 'rm *'\npath = 'src/**'\nurl = 'https://a.org/'";
    assert_eq!(outcome(&allow(all), call), Some(Allow));
}

#[test]
fn paths_are_found_wherever_agents_put_them() {
    let policy = reject("path = '**/.env'");
    let calls = [
        json!({"locations": [{"path": "/x/a"}, {"path": "/x/.env", "line": 3}]}),
        json!({"content": [{"type": "content"}, {"type": "diff", "path": ".env", "newText": ""}]}),
        json!({"rawInput": {"file_path": "/y/.env"}}),
        json!({"rawInput": {"filePath": "../.env"}}),
        json!({"rawInput": {"paths": ["a", "b/.ENV"]}}),
        json!({"rawInput": {"edits": [{"path": "a"}, {"path": "b/.env", "old": "x"}]}}),
        json!({"rawInput": {"call_id": "1", "changes": {"/x/.env": {"type": "add"}}}}),
        json!({"rawInput": {"changes": {"/x/a": {"update": 1, "move_path": "/x/.env"}}}}),
        json!({"rawInput": {"changes": [{"path": "/x/.env"}]}}),
    ];
    for call in calls {
        assert_eq!(outcome(&policy, call.clone()), Some(Reject), "{call}");
    }
    assert_eq!(outcome(&policy, edit(&["src/.envrc"])), None);
    let here_only = allow("path = '**/*.md'");
    assert_eq!(outcome(&here_only, edit(&["docs/a.md", "b.md"])), Some(Allow));
    assert_eq!(outcome(&here_only, edit(&["/home/me/b.md"])), None);
}

#[test]
fn an_address_is_allowed_only_if_everybody_reads_it_alike() {
    let policy = allow("url = ['https://docs.rs/**', 'https://*.example.org/**']");
    let fetch = |url: Value| json!({"kind": "fetch", "rawInput": {"url": url, "prompt": "x"}});
    for url in [
        "https://docs.rs/serde",
        "HTTPS://Docs.RS/serde?q=1#top",
        "https://docs.rs",
        "https://www.example.org/a/b",
    ] {
        assert_eq!(outcome(&policy, fetch(json!(url))), Some(Allow), "{url}");
    }
    for url in [
        "http://docs.rs/serde",
        "https://docs.rs.evil.org/",
        "https://docs.rs@evil.org/x",
        "https://evil.org/.example.org/a",
        "https://evil.org?.example.org/a",
        "docs.rs/serde",
        "https://evil.org\\.example.org/a",
        "https://docs.rs/a/%2E./b",
        "https://docs.rs/ x",
        "",
    ] {
        assert_eq!(outcome(&policy, fetch(json!(url))), None, "{url}");
    }
    assert_eq!(outcome(&policy, fetch(json!(["https://docs.rs/a", "https://evil.org/"]))), None);
    assert_eq!(outcome(&policy, fetch(json!([]))), None);
    let no = reject("url = 'https://evil.org/**'");
    for url in
        ["https://evil.org/x", "https://EVIL.org", "https://me@evil.org/", "https:\\\\evil.org\\x"]
    {
        assert_eq!(outcome(&no, fetch(json!(["https://docs.rs/", url]))), Some(Reject), "{url}");
    }
}

#[test]
fn a_rule_that_cannot_be_used_is_named_with_a_way_out() {
    let fault = |rule: &str| {
        let error = compile(&format!("[[rules]]\n[[rules]]\n{rule}").replacen(
            "]]\n[[",
            "]]\ndecision='ask'\n[[",
            1,
        ))
        .expect_err("it is not sound");
        assert!(error.hint.is_some(), "{error}");
        error.to_string()
    };
    assert_eq!(
        fault("decision = 'allow'\nname = 'mine'\ntitle = 'a[b'"),
        "policy rule `mine`: the glob `a[b` of `title` is not a glob: invalid range pattern"
    );
    assert_eq!(
        fault("decision = 'reject'\npath = '**/{a,b}'"),
        "policy rule `rule 2`: the glob `**/{a,b}` of `path` holds `{a,b}`"
    );
    assert_eq!(
        fault("decision = 'allow'\npath = ['a', '../b']"),
        "policy rule `rule 2`: the glob `../b` of `path` holds `.` or `..`"
    );
    assert_eq!(
        fault("decision = 'allow'\npath = 'src/'"),
        "policy rule `rule 2`: the glob `src/` of `path` ends in `/`"
    );
}
