//! The corpus: journals of real agents and corner cases, and the blocks that they are. Another program that folds
//! journals reads the same files.
//!
//! `UPDATE_BLOCKS=1 cargo test -p acpd-view --test blocks` updates the blocks.

use std::fs;
use std::path::{Path, PathBuf};

use acp_wire::legible;
use acpd_api::{LogEntry, Untrusted, escape};
use acpd_view::{Block, Folding, Id, Kind, State, Text, group_summary, rows};
use proptest::prelude::*;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// A journal of the corpus.
struct Journal {
    path: PathBuf,
    session: Untrusted,
    lines: Vec<String>,
}

impl Journal {
    fn all() -> Vec<Journal> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/blocks");
        let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<PathBuf> =
            files.filter(|path| path.extension().is_some_and(|ext| ext == "jsonl")).collect();
        files.sort();
        assert!(files.len() >= 10);
        files.into_iter().map(Journal::read).collect()
    }

    fn read(path: PathBuf) -> Journal {
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        let first: Value = serde_json::from_str(&lines[0]).unwrap();
        let session = first["params"]["sessionId"].as_str().unwrap().into();
        Journal { path, session, lines }
    }

    /// Folded line by line, as it comes live.
    fn folded(&self) -> State {
        let mut state = State::new(&self.session);
        for line in &self.lines {
            state.fold(line.as_bytes());
        }
        state
    }

    /// The entries of the journal, without what is not in it.
    fn entries(&self) -> Vec<LogEntry> {
        let entry = |line: &String| {
            let value: Value = serde_json::from_str(&legible(line)).unwrap();
            let seq = value["params"]["_meta"]["_acpd"]["seq"].as_u64()?;
            Some(LogEntry { seq, line: serde_json::from_str(line).unwrap() })
        };
        self.lines.iter().filter_map(entry).collect()
    }
}

fn folded(session: &Untrusted, entries: &[LogEntry]) -> State {
    let mut state = State::new(session);
    for entry in entries {
        state.fold_entry(entry.seq, entry.line.get());
    }
    state
}

fn blocks(state: &State) -> Vec<&Block> {
    state.turns().iter().flat_map(|turn| &turn.blocks).collect()
}

/// A block as the corpus has it.
fn shown(block: &Block) -> Value {
    let mut value = json!({
        "id": id(block.id),
        "last": block.last,
        "kind": block.kind.name(),
        "progress": format!("{:?}", block.progress).to_lowercase(),
        "folding": match block.folding {
            Folding::Open => json!("open"),
            Folding::Closed => json!("closed"),
            Folding::First(lines) => json!({"first": lines}),
            Folding::Last(lines) => json!({"last": lines}),
        },
        "summary": block.summary().as_str(),
    });
    if let Some(message) = block.message() {
        value["text"] = json!(message.text());
    }
    if let Kind::Call(call) | Kind::Edit(call) | Kind::Command(call) = &block.kind {
        let lines: Vec<String> = call.output().iter().map(Text::to_string).collect();
        if !lines.is_empty() {
            value["output"] = json!(lines);
        }
        let lines = call.body(false).files.into_iter().flat_map(|(_, change)| {
            let lines = change.lines.into_iter().map(|line| line.line().to_string());
            std::iter::once(change.head.to_string()).chain(lines)
        });
        let lines: Vec<String> = lines.collect();
        if !lines.is_empty() {
            value["files"] = json!(lines);
        }
    }
    if let Kind::Subagent(subagent) = &block.kind {
        value["rows"] = rows_of(&subagent.blocks);
    }
    value
}

fn rows_of(blocks: &[Block]) -> Value {
    let rows = rows(blocks, |block| block.folding).into_iter().map(|row| match row {
        [block] => shown(block),
        blocks => json!({
            "kind": "group",
            "summary": group_summary(blocks).as_str(),
            "rows": blocks.iter().map(shown).collect::<Vec<_>>(),
        }),
    });
    rows.collect()
}

fn id(id: Id) -> Value {
    match id {
        Id::Line(seq) => json!(seq),
        Id::Around(seq) => json!({"around": seq}),
    }
}

#[test]
fn journals_are_these_blocks() {
    for journal in Journal::all() {
        let state = journal.folded();
        let header = state.header();
        let now = json!({
            "header": {
                "mode": header.mode,
                "model": header.option("model").map(acpd_view::ConfigOption::value_name),
                "commands": header.commands.iter().flatten().map(|command| &command.name).collect::<Vec<_>>(),
                "usage": header.usage.as_ref().map(|usage| [usage.used, usage.size].map(Option::unwrap_or_default)),
                "working": header.working.unwrap_or_default(),
            },
            "turns": state.turns().iter().map(|turn| rows_of(&turn.blocks)).collect::<Vec<_>>(),
        });
        let path = journal.path.with_extension("blocks.json");
        if std::env::var_os("UPDATE_BLOCKS").is_some() {
            fs::write(&path, acpd_api::json::pretty(&now).unwrap() + "\n").unwrap();
        }
        let then = fs::read_to_string(&path).unwrap_or_default();
        let then: Value = serde_json::from_str(&then).unwrap_or_default();
        assert!(now == then, "{} is not up to date:\n{now:#}", path.display());
    }
}

#[test]
fn a_journal_is_the_same_whether_it_is_replayed_or_comes_live() {
    for journal in Journal::all() {
        let mut live = journal.folded();
        // What was asked is announced again behind this.
        let caught_up = json!({"jsonrpc": "2.0", "method": "_acpd/caught_up", "params": {"sessionId": journal.session, "seq": 1}});
        live.fold(caught_up.to_string().as_bytes());
        let replayed = folded(&journal.session, &journal.entries());
        assert_eq!(blocks(&live), blocks(&replayed), "{}", journal.path.display());
    }
}

#[test]
fn what_comes_again_after_a_lost_connection_changes_nothing() {
    for journal in Journal::all() {
        let mut state = journal.folded();
        let before = state.clone();
        for entry in journal.entries() {
            assert_eq!(state.fold(entry.line.get().as_bytes()), []);
        }
        assert_eq!(blocks(&state), blocks(&before));
        assert_eq!(state.header(), before.header());
    }
}

#[test]
fn what_a_line_changes_is_told() {
    for journal in Journal::all() {
        let mut state = State::new(&journal.session);
        for line in &journal.lines {
            let before = state.clone();
            let changed = state.fold(line.as_bytes());
            fn all<'a>(blocks: impl Iterator<Item = &'a Block>, into: &mut Vec<Block>) {
                for block in blocks {
                    into.push(block.clone());
                    if let Kind::Subagent(subagent) = &block.kind {
                        all(subagent.blocks.iter(), into);
                    }
                }
            }
            let (mut old, mut new) = (Vec::new(), Vec::new());
            all(before.blocks(), &mut old);
            all(state.blocks(), &mut new);
            for block in new.iter().chain(&old) {
                if state.get(block.id) != before.get(block.id) {
                    assert!(changed.contains(&block.id), "{line}: {:?} is not told", block.id);
                }
            }
            let ids: std::collections::BTreeSet<Id> = new.iter().map(|block| block.id).collect();
            assert_eq!(ids.len(), new.len(), "an id stands for one block");
            for id in changed {
                assert!(state.get(id).is_some() || before.get(id).is_some(), "{line}: {id:?}");
            }
        }
    }
}

#[test]
fn what_a_person_has_to_decide_is_never_folded_away() {
    let mut has_asked = false;
    for journal in Journal::all() {
        let mut about = Vec::new();
        let mut state = State::new(&journal.session);
        for line in &journal.lines {
            state.fold(line.as_bytes());
            let told: Value = serde_json::from_str(&legible(line)).unwrap();
            if told["method"] == "_acpd/session_state" {
                about = told["params"]["asked"].as_array().cloned().unwrap_or_default();
                has_asked |= !about.is_empty();
            }
            let blocks: Vec<Block> = blocks(&state).into_iter().cloned().collect();
            assert_open(&blocks, &about);
        }
    }
    assert!(has_asked);
}

/// What an open question is about, and what that is in, is open. Returns whether there was such a block.
fn assert_open(blocks: &[Block], about: &[Value]) -> bool {
    let is_asked = |id: &Untrusted| about.iter().any(|asked| *asked == *id.raw());
    let mut any = false;
    for block in blocks {
        let asks = match &block.kind {
            Kind::Subagent(subagent) => {
                assert_open(&subagent.blocks, about) || is_asked(&subagent.session)
            }
            _ => block.tool_call().is_some_and(|call| is_asked(&call.id())),
        };
        assert!(!asks || block.folding == Folding::Open, "{block:?}");
        any |= asks;
    }
    for row in rows(blocks, |block| block.folding) {
        assert!(row.len() == 1 || row.iter().all(|block| block.folding == Folding::Closed));
    }
    any
}

#[test]
fn nothing_of_an_agent_is_shown_unescaped() {
    for journal in Journal::all() {
        let state = journal.folded();
        for block in state.blocks() {
            for width in [1, 7, 40, 200] {
                for folding in [block.folding, Folding::Open, Folding::Closed] {
                    for line in block.lines(width, folding) {
                        let text = line;
                        let escaped = escape::prose(text.as_str()).to_string();
                        assert_eq!(text.as_str(), escaped, "it can be printed as it is");
                        assert!(!escaped.contains(['\n', '\t']), "a line is a line");
                    }
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_journal_is_the_same_however_it_was_paged(
        which in any::<prop::sample::Index>(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..6),
        live in any::<prop::sample::Index>(),
    ) {
        let journals = Journal::all();
        let journal = which.get(&journals);
        let entries = journal.entries();
        let whole = folded(&journal.session, &entries);
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(entries.len())).collect();
        cuts.sort_unstable_by(|a, b| b.cmp(a));
        // The newest page first, then the older ones, and live lines at some moment in between.
        let live = live.index(entries.len());
        let (read, later) = entries.split_at(live);
        let mut state = State::new(&journal.session);
        let mut end = read.len();
        let mut later = Some(later);
        for (number, cut) in cuts.iter().copied().chain([0]).enumerate() {
            let cut = cut.min(end);
            let page = &read[cut..end];
            if number == 0 {
                for entry in page {
                    state.fold_entry(entry.seq, entry.line.get());
                }
            } else {
                state.earlier(page);
            }
            end = cut;
            if number == 1 {
                for entry in later.take().unwrap_or_default() {
                    state.fold_entry(entry.seq, entry.line.get());
                }
            }
        }
        for entry in later.take().unwrap_or_default() {
            state.fold_entry(entry.seq, entry.line.get());
        }
        prop_assert_eq!(blocks(&state), blocks(&whole));
        prop_assert_eq!(state.header(), whole.header());
        prop_assert_eq!(state.first(), whole.first());
    }

    #[test]
    fn whatever_an_agent_writes_is_folded(
        lines in prop::collection::vec(line(), 0..40),
    ) {
        let session = Untrusted::from("s");
        let mut state = State::new(&session);
        for (seq, line) in (1..).zip(&lines) {
            for id in state.fold_entry(seq, line) {
                if let Some(block) = state.get(id) {
                    prop_assert_eq!(block.id, id);
                    drop(block.lines(20, block.folding));
                }
            }
        }
    }
}

/// One of the words, which single spaces separate.
fn words(words: &'static str) -> impl Strategy<Value = &'static str> {
    prop::sample::select(words.split(' ').collect::<Vec<_>>())
}

/// A notification of known members with values that need not fit.
fn line() -> impl Strategy<Value = String> {
    let text =
        words("s k j a b  text completed failed idle running execute diff in_progress \u{1b}[2J");
    let leaf = prop_oneof![
        text.prop_map(|text| json!(text)),
        (0..3_u64).prop_map(|number| json!(number)),
        Just(Value::Null),
        Just(json!({"type": "text", "text": "x"})),
        Just(json!({"state": "idle"})),
        Just(json!([{"type": "diff", "path": "p", "newText": "x"}])),
        Just(json!([{"type": "terminal", "terminalId": "a"}])),
    ];
    let names = words(
        "toolCallId status title content messageId entries sessionId state kind planId \
         compactionId plan currentModeId rawInput terminalId data output exitStatus",
    );
    let kinds = words(
        "user_message_chunk agent_message_chunk agent_thought_chunk tool_call user_message \
         agent_message agent_thought tool_call_content_chunk terminal_update terminal_output_chunk \
         tool_call_update plan plan_update plan_removed subagent_update compaction_update \
         notice current_mode_update config_option_update",
    );
    let methods = words(
        "session/update session/update session/update _acpd/turn_started _acpd/turn_ended \
         _acpd/restored _acpd/skipped _acpd/answered",
    );
    let sessions = words("s s k j");
    let members = prop::collection::btree_map(names, leaf, 0..6);
    (methods, sessions, kinds, members).prop_map(|(method, session, kind, members)| {
        let mut update = json!(members);
        update["sessionUpdate"] = json!(kind);
        let params = json!({"sessionId": session, "update": update, "turn": 1, "at": 5, "bytes": 7,
            "limit": 1, "level": "lost", "outcome": {"kind": "stopped", "stopReason": "x"},
            "_meta": {"_acpd": {"version": 2}}});
        json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()
    })
}

/// JSON of another type than expected, or that no type of Rust holds.
fn unreadable() -> Vec<String> {
    let deep = format!("{}{}", "[".repeat(300), "]".repeat(300));
    [r#""\ud83d""#, "5", "-1e999", "true", "[1]", r#"{"\udc00":1}"#, "[]", "{}", "null", &deep]
        .map(str::to_owned)
        .into()
}

/// Every value in it that is no text of acpd: where its text begins and ends.
fn values(json: &str) -> Vec<std::ops::Range<usize>> {
    fn inside(value: &Value, path: &[String], all: &mut Vec<Vec<String>>) {
        for (name, member) in value.as_object().into_iter().flatten() {
            let path = [path, std::slice::from_ref(name)].concat();
            inside(member, &path, all);
            all.push(path);
        }
    }
    let mut paths = Vec::new();
    inside(&serde_json::from_str(json).unwrap(), &[], &mut paths);
    let ranges = paths.iter().filter_map(|path| {
        let names: Vec<&str> = path.iter().map(String::as_str).collect();
        acp_wire::locate(json.as_bytes(), &names)
    });
    ranges.collect()
}

#[test]
fn one_bad_member_hides_nothing_but_itself() {
    let text = |words: &str| json!({"type": "text", "text": words});
    let updates = [
        json!({"sessionUpdate": "user_message_chunk", "messageId": "u", "content": text("<1>")}),
        json!({"sessionUpdate": "agent_message_chunk", "messageId": "a", "content": text("<2>")}),
        json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "<3>", "kind": "read",
            "status": "completed", "locations": {"path": "/w", "line": 7}, "rawInput": {"path": "/w"},
            "content": {"type": "content", "content": text("<4>")}}),
        json!({"sessionUpdate": "plan", "entries": [
            {"content": "<5>", "status": "completed", "priority": "low"}]}),
        json!({"sessionUpdate": "notice", "severity": "info", "title": "<6>", "description": "<7>"}),
        json!({"sessionUpdate": "tool_call", "toolCallId": "e", "title": "edit", "content": {
            "type": "diff", "path": "/w/<8>", "oldText": "<9>", "newText": "<10>"}}),
        json!({"sessionUpdate": "agent_message_chunk", "messageId": "b", "content": text("<11>")}),
    ];
    let updates: Vec<String> = updates.iter().map(Value::to_string).collect();
    let shown = |updates: &[String]| {
        let mut state = State::new(&"s".into());
        for (seq, update) in (1..).zip(updates) {
            let params = format!(r#"{{"sessionId":"s","_meta":{{}},"update":{update}}}"#);
            let line = format!(r#"{{"method":"session/update","params":{params}}}"#);
            state.fold_entry(seq, &line);
        }
        let blocks = state.blocks().flat_map(|block| block.lines(80, Folding::Open));
        blocks.map(|line| line.to_string()).collect::<Vec<_>>().join("\n")
    };
    let marks: Vec<String> = (1..=11).map(|number| format!("<{number}>")).collect();
    let whole = shown(&updates);
    for mark in &marks {
        assert!(whole.contains(mark), "{mark} is not in {whole}");
    }
    for (at, update) in updates.iter().enumerate() {
        for range in values(update) {
            for bad in unreadable() {
                let mut changed = updates.clone();
                changed[at].replace_range(range.clone(), &bad);
                let says_kind = changed[at].contains(r#""sessionUpdate":""#)
                    && !changed[at].contains(r#"Update":"\ud"#);
                let others = updates.iter().enumerate().filter(|(other, _)| *other != at);
                let others: String = others.map(|(_, other)| other.as_str()).collect();
                let kept = if says_kind { others + &changed[at] } else { others };
                let seen = shown(&changed);
                for mark in marks.iter().filter(|mark| kept.contains(*mark)) {
                    assert!(seen.contains(mark), "{mark} is hidden by {}:\n{seen}", changed[at]);
                }
            }
        }
    }
}

#[test]
fn plans_are_left_out_where_the_daemon_says_so() {
    let has_plan = |state: &State| {
        let has_block = state.blocks().any(|block| matches!(block.kind, Kind::Plan(_)));
        (has_block, state.header().plan.as_ref().is_some_and(|plan| !plan.is_empty()))
    };
    let hello = |show: &str| {
        let own = format!(r#"{{"agentCapabilities":{{"_meta":{{"_acpd":{{"api":1{show}}}}}}}}}"#);
        RawValue::from_string(own).unwrap()
    };
    for (show, expected) in
        [("", true), (r#","showPlan":true"#, true), (r#","showPlan":false"#, false)]
    {
        for journal in Journal::all().iter().filter(|it| it.path.ends_with("plan.jsonl")) {
            let mut state = State::new(&journal.session);
            state.heed(&hello(show));
            for line in &journal.lines {
                state.fold(line.as_bytes());
            }
            assert_eq!(has_plan(&state), (expected, expected), "live, {show}");
            let mut state = state.emptied();
            state.earlier(&journal.entries());
            assert_eq!(has_plan(&state), (expected, expected), "older lines, {show}");
        }
    }
}

/// The block of a single update.
fn block_of(update: &Value) -> Block {
    let params = json!({"sessionId": "s", "update": update});
    let line = json!({"jsonrpc": "2.0", "method": "session/update", "params": params});
    let mut state = State::new(&"s".into());
    state.fold_entry(1, &line.to_string());
    state.blocks().next().unwrap().clone()
}

#[test]
fn m2_delegation_names_agent_and_session() {
    let summary = |title: &str, input: Value| {
        let call = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": title, "rawInput": input});
        block_of(&call).summary().to_string()
    };
    let arguments = json!({"session_name": "review", "agent": "codex", "prompt": "look"});
    assert_eq!(summary("mcp__acpd__prompt", arguments.clone()), "codex [review]");
    let input = json!({"server": "acpd", "tool": "prompt", "arguments": {"session_name": "a\u{202e}", "prompt": "x"}});
    assert_eq!(summary("Tool: prompt", input), "another agent [a<U+202E>]");
    assert_eq!(summary("prompt", arguments), "prompt");
    assert_eq!(summary("mcp__acpd__wait", json!({"ticket": "review"})), "mcp__acpd__wait");
}

#[test]
fn a_result_that_is_only_raw_is_shown() {
    let output = |raw: Value| {
        let call = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "t", "status": "completed",
            "rawOutput": raw});
        let lines = block_of(&call).tool_call().unwrap().output();
        lines.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(output(json!("one\ntwo")), ["one", "two"]);
    assert_eq!(output(json!({"output": "one", "metadata": {"x": 1}})), ["one"]);
    assert_eq!(output(json!({"content": [{"type": "text", "text": "one"}]})), ["one"]);
    assert_eq!(output(json!({"rows": [1]})), ["{", "  \"rows\": [", "    1", "  ]", "}"]);
    assert_eq!(output(json!({"exitCode": 0})), [""; 0]);
    let long = output(json!("x\n".repeat(100_000) + "end"));
    assert!((10_000..50_000).contains(&long.len()), "{}", long.len());
    assert_eq!(long.last().unwrap(), "end");
}

/// Summaries of a call while people are asked about it, when they have answered, and when it is over.
fn asked_call(kind: &str, answer: &str, status: &str) -> Vec<String> {
    let call = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "Change a", "kind": kind,
        "status": "pending", "rawInput": {"command": "make"}, "content": if kind == "edit" {
            json!([{"type": "diff", "path": "a", "oldText": "x\n", "newText": "y\n"}]) } else { json!([]) }});
    let state = |asked: Value| {
        json!({"method": "_acpd/session_state", "params":
        {"sessionId": "s", "state": "live", "turn": "working", "queued": 0, "asked": asked}})
    };
    let line = |seq: u64, method: &str, mut params: Value| {
        params["sessionId"] = "s".into();
        params["_meta"] = json!({"_acpd": {"seq": seq}});
        json!({"method": method, "params": params})
    };
    let option = json!({"optionId": "o", "name": "x", "kind": answer});
    let lines = [
        line(1, "session/update", json!({"update": call})),
        state(json!(["c"])),
        line(
            2,
            "_acpd/answered",
            json!({"id": "q", "toolCallId": "c", "title": "Change a", "at": 1,
            "answer": {"kind": "option", "option": option}, "by": {"name": "x"}}),
        ),
        state(json!([])),
        line(
            3,
            "session/update",
            json!({"update": {"sessionUpdate": "tool_call_update", "toolCallId": "c",
            "status": status}}),
        ),
    ];
    let mut state = State::new(&"s".into());
    let summaries = lines.iter().map(|line| {
        let mut line = line.clone();
        line["jsonrpc"] = "2.0".into();
        state.fold(line.to_string().as_bytes());
        state.blocks().next().unwrap().summary().to_string()
    });
    summaries.collect()
}

#[test]
fn u11_call_waits_or_was_denied() {
    assert_eq!(
        asked_call("edit", "reject_once", "failed"),
        [
            "editing a +1 -1",
            "wants to edit a +1 -1 · waiting for you",
            "wants to edit a +1 -1 · waiting for you",
            "editing a +1 -1",
            "edit a +1 -1 · denied"
        ]
    );
    assert_eq!(asked_call("edit", "allow_once", "completed").pop().unwrap(), "edited a +1 -1");
    assert_eq!(
        asked_call("execute", "reject_always", "completed").pop().unwrap(),
        "$ make · denied"
    );
    assert_eq!(asked_call("execute", "allow_once", "failed").pop().unwrap(), "$ make · failed");
}
