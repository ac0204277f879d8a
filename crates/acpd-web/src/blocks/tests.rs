//! The blocks of a page are those of the journal, however it was read. A daemon of the test has a journal, and leaves
//! out lines of the page's own.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use acp_wire::legible;
use proptest::prelude::*;

use super::*;

use std::collections::VecDeque;

static JOURNALS: LazyLock<Vec<Journal>> = LazyLock::new(Journal::all);

/// A session of the corpus, and its lines with numbers.
struct Journal {
    name: String,
    session: String,
    lines: Vec<(u64, Value)>,
}

impl Journal {
    fn all() -> Vec<Journal> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../acpd-view/fixtures/blocks");
        let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let mut files: Vec<_> =
            files.filter(|path| path.extension().is_some_and(|ext| ext == "jsonl")).collect();
        files.sort();
        assert!(files.len() >= 10);
        let read = |path: &Path| {
            let text = fs::read_to_string(path).unwrap();
            let values =
                text.lines().map(|line| -> Value { serde_json::from_str(&legible(line)).unwrap() });
            let values: Vec<Value> = values.collect();
            let session = values[0]["params"]["sessionId"].as_str().unwrap().to_owned();
            let numbered = values.into_iter().filter(|line| line.get("id").is_none()).filter_map(
                |mut line| {
                    // The lines between are for other versions, also whole pages of them.
                    let seq = line["params"]["_meta"]["_acpd"]["seq"].as_u64()?;
                    let seq = if seq > 12 { 3 * seq + 5_000 } else { 3 * seq };
                    line["params"]["_meta"]["_acpd"]["seq"] = seq.into();
                    Some((seq, line))
                },
            );
            Journal { name: path.display().to_string(), session, lines: numbered.collect() }
        };
        files.iter().map(|path| read(path)).collect()
    }

    fn last(&self) -> u64 {
        self.lines.last().map_or(0, |(seq, _)| *seq)
    }
}

/// The daemon of one connection.
struct Daemon<'a> {
    journal: &'a Journal,
    /// The last line that there is by now.
    head: u64,
    /// Entries of one answer.
    most: usize,
}

impl Daemon<'_> {
    fn answer(&self, line: &Bytes) -> Vec<Bytes> {
        let request: Value = serde_json::from_slice(line).unwrap();
        let params = &request["params"];
        let id = RequestId::from_value(&request["id"]).unwrap();
        let after = params["after"].as_u64().unwrap_or_default();
        let info = json!({"sessionId": self.journal.session, "agent": "a", "cwd": "/w", "state": "live",
            "turn": {"state": "idle", "since": 0}, "queued": 0, "clients": 1, "prompts": 1, "seq": self.head,
            "created": 1, "updated": 1});
        let there =
            self.journal.lines.iter().filter(|(seq, _)| (after + 1..=self.head).contains(seq));
        match request["method"].as_str().unwrap() {
            method::SESSION_SHOW => vec![build::response(&id, &info)],
            method::SESSION_ATTACH => {
                let caught = json!({"sessionId": self.journal.session, "seq": self.head});
                let lines = there.map(|(_, line)| Bytes::from(line.to_string()));
                std::iter::once(build::response(&id, &json!({"session": info})))
                    .chain(lines)
                    .chain([build::notification(method::CAUGHT_UP, &caught)])
                    .collect()
            }
            method::SESSION_LOG => {
                let most =
                    params["limit"].as_u64().map_or(1000, |most| most as usize).min(self.most);
                // Lines that are not shown count, too.
                let last = self.head.min(after + most as u64);
                let entries: Vec<Value> = there
                    .filter(|(seq, _)| *seq <= last)
                    .map(|(seq, line)| json!({"seq": seq, "at": 1, "line": line}))
                    .collect();
                let next = Some(last).filter(|last| *last < self.head);
                let mut log = json!({"sessionId": self.journal.session, "entries": entries});
                if let Some(next) = next {
                    log["next"] = next.into();
                }
                vec![build::response(&id, &log)]
            }
            other => panic!("{other}"),
        }
    }
}

/// Blocks of a page, which takes messages as `page/blocks.js` does.
#[derive(Debug, Default)]
struct Page {
    blocks: BTreeMap<String, Value>,
    head: Map<String, Value>,
    range: Value,
    last: u64,
}

impl Page {
    fn take(&mut self, line: &Bytes) {
        let message: Value = serde_json::from_slice(line).unwrap();
        let params = &message["params"];
        let id = params["id"].to_string();
        self.last = self.last.max(params["last"].as_u64().unwrap_or_default());
        match message["method"].as_str().unwrap_or_default() {
            "_page/block" => drop(self.blocks.insert(id, params.clone())),
            "_page/delta" => {
                let block = self.blocks.get_mut(&id).unwrap();
                let last = block["content"].as_array_mut().unwrap().last_mut().unwrap();
                *last = format!("{}{}", last.as_str().unwrap(), params["text"].as_str().unwrap())
                    .into();
                block["last"] = params["last"].clone();
            }
            "_page/done" => encoding::extend(self.blocks.get_mut(&id).unwrap(), params.clone()),
            "_page/gone" => drop(self.blocks.remove(&id)),
            "_page/head" => self.head.extend(params.as_object().unwrap().clone()),
            "_page/live" => {
                self.last = self.last.max(params["seq"].as_u64().unwrap());
                self.range = params.clone();
            }
            "" => {
                assert!(message.get("error").is_none(), "{message}");
                if message["result"].get("hasOlder").is_some() {
                    self.range = message["result"].clone();
                }
            }
            other => panic!("{other}"),
        }
    }
}

/// A page, its socket and the daemon behind it.
struct Scene<'a> {
    daemon: Daemon<'a>,
    conversation: PageConversation,
    page: Page,
    requests: u64,
}

impl<'a> Scene<'a> {
    fn new(journal: &'a Journal, head: u64, most: usize) -> Scene<'a> {
        let daemon = Daemon { journal, head, most };
        let (conversation, page) = (PageConversation::default(), Page::default());
        Scene { daemon, conversation, page, requests: 0 }
    }

    fn open(&mut self) {
        let mut params = json!({"agent": "a", "session": self.daemon.journal.session});
        if let Some(first) = self.page.range["first"].as_u64() {
            params["first"] = first.into();
            params["after"] = self.page.last.into();
        }
        self.request("_page/open", &params);
    }

    fn request(&mut self, method: &str, params: &Value) {
        self.requests += 1;
        let id = RequestId::from_value(&self.requests.into()).unwrap();
        let lines = self.conversation.on_page(&build::request(&id, method, params));
        self.carry(lines);
    }

    /// Carries lines until there are none.
    fn carry(&mut self, lines: Outgoing) {
        let mut to_daemon = VecDeque::from(lines.to_daemon);
        lines.to_page.iter().for_each(|line| self.page.take(line));
        while let Some(request) = to_daemon.pop_front() {
            for line in self.daemon.answer(&request) {
                let more = self.conversation.on_daemon(line);
                more.to_page.iter().for_each(|line| self.page.take(line));
                to_daemon.extend(more.to_daemon);
            }
        }
    }

    /// The next line is written; the daemon sends it unless it is the page's own.
    fn write(&mut self, is_own: bool) {
        self.daemon.head += 1;
        let head = self.daemon.head;
        let line = self.daemon.journal.lines.iter().find(|(seq, _)| *seq == head);
        if let Some((_, line)) = line.filter(|_| !is_own) {
            let lines = self.conversation.on_daemon(Bytes::from(line.to_string()));
            self.carry(lines);
        }
    }

    fn lose(&mut self) {
        self.conversation = PageConversation::default();
        self.open();
    }

    fn older(&mut self) {
        if self.page.range["hasOlder"] == true {
            self.request("_page/older", &json!({}));
        }
    }

    fn bodies(&mut self, ids: Vec<Value>) {
        self.request("_page/bodies", &json!({"ids": ids}));
    }

    /// Reads all that there is, and unfolds all of it.
    fn finish(mut self) -> BTreeMap<String, Value> {
        while self.daemon.head < self.daemon.journal.last() {
            self.write(false);
        }
        // An answer to a request of the page shows what it wrote.
        let lines = self.conversation.on_daemon(build::response(&RequestId::null(), &json!({})));
        self.carry(lines);
        for _ in 0..200 {
            self.older();
        }
        assert_eq!(self.page.range["hasOlder"], false);
        for _ in 0..4 {
            let folded = self.page.blocks.values().filter(|block| block["has"] != "whole");
            let folded = folded.map(|block| block["id"].clone()).collect();
            self.bodies(folded);
        }
        self.page.blocks
    }
}

fn whole(journal: &Journal) -> BTreeMap<String, Value> {
    let mut scene = Scene::new(journal, journal.last(), 1000);
    scene.open();
    scene.finish()
}

#[test]
fn page_has_each_block_of_the_fold() {
    for journal in JOURNALS.iter() {
        let page = whole(journal);
        let mut state = State::new(&journal.session.as_str().into()).within(&"/w".into());
        for (seq, line) in &journal.lines {
            state.fold_entry(*seq, &line.to_string());
        }
        let all = state.turns().iter().flat_map(|turn| ids(&turn.blocks));
        let wanted: BTreeSet<String> = all.map(|id| encoding::id(id).to_string()).collect();
        assert_eq!(page.keys().cloned().collect::<BTreeSet<_>>(), wanted, "{}", journal.name);
        for block in page.values() {
            assert_eq!(block["has"], "whole", "{block}");
            let id = encoding::read_id(&block["id"]).unwrap();
            let folded = state.get(id).unwrap();
            assert_eq!(block["kind"], folded.kind.name());
            if let Some(message) = folded.message() {
                let text: String =
                    block["content"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
                assert_eq!(text, message.text().raw());
            }
        }
    }
}

#[test]
fn a_message_that_grows_is_sent_once() {
    let line = |seq: u64, text: &str| {
        let update = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}});
        (
            seq,
            json!({"jsonrpc": "2.0", "method": "session/update",
            "params": {"sessionId": "s", "update": update, "_meta": {"_acpd": {"seq": seq}}}}),
        )
    };
    let lines = (1..=50).map(|seq| line(seq, "0123456789")).collect();
    let journal = Journal { name: String::new(), session: "s".to_owned(), lines };
    let mut scene = Scene::new(&journal, 0, 1000);
    scene.open();
    let mut sizes = Vec::new();
    for (_, line) in &journal.lines {
        let lines = scene.conversation.on_daemon(Bytes::from(line.to_string()));
        sizes.extend(lines.to_page.iter().map(Bytes::len));
        scene.carry(lines);
    }
    assert!(sizes.len() >= 50 && sizes[10..].iter().all(|size| *size < 200), "{sizes:?}");
    assert_eq!(scene.page.blocks["1"]["content"][0], "0123456789".repeat(50));
}

#[test]
fn only_requests_of_the_page_go_to_its_conversation() {
    for method in ["session/delete", "_acpd/daemon/stop", "_page"] {
        let line = build::request(&RequestId::null(), method, &json!({}));
        assert!(!PageConversation::takes(&line), "{method}");
    }
    let mut conversation = PageConversation::default();
    let unknown = build::request(&RequestId::issued(2), "_page/unknown", &json!({}));
    assert!(PageConversation::takes(&unknown));
    let outgoing = conversation.on_page(&unknown);
    assert!(outgoing.to_daemon.is_empty());
    assert!(str::from_utf8(&outgoing.to_page[0]).unwrap().contains("-32602"));
    let ask = build::request(&RequestId::issued(3), "fs/read_text_file", &json!({}));
    let outgoing = conversation.on_daemon(ask);
    assert!(outgoing.to_page.is_empty());
    assert!(str::from_utf8(&outgoing.to_daemon[0]).unwrap().contains("-32601"));
}

/// A session of many turns: a prompt, a long command, an end.
fn long_session(turns: u64) -> Journal {
    let line = |seq: u64, method: &str, mut params: Value| {
        params["sessionId"] = "s".into();
        params["_meta"] = json!({"_acpd": {"seq": seq}});
        (seq, json!({"jsonrpc": "2.0", "method": method, "params": params}))
    };
    let turn = |turn: u64| {
        let (seq, output) = (turn * 4 + 1, format!("output of {turn}"));
        let content = json!({"type": "content", "content": {"type": "text", "text": output}});
        let call = json!({"sessionUpdate": "tool_call", "toolCallId": format!("c{turn}"), "kind": "execute",
            "title": "make", "status": "completed", "content": [content]});
        let said = json!({"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": "more"}});
        [
            line(seq, method::TURN_STARTED, json!({"turn": turn + 1, "at": 1})),
            line(seq + 1, "session/update", json!({"update": said})),
            line(seq + 2, "session/update", json!({"update": call})),
            line(
                seq + 3,
                method::TURN_ENDED,
                json!({"turn": turn + 1, "startedAt": 1, "at": 2,
                "outcome": {"kind": "stopped", "stopReason": "end_turn"}}),
            ),
        ]
    };
    Journal {
        name: String::new(),
        session: "s".to_owned(),
        lines: (0..turns).flat_map(turn).collect(),
    }
}

#[test]
fn bodies_in_dropped_turns_are_read_again() {
    let journal = long_session(MOST as u64 + 10);
    let mut scene = Scene::new(&journal, 0, 1000);
    scene.open();
    for _ in 0..journal.last() {
        scene.write(false);
    }
    assert!(scene.conversation.state.turns().len() <= MOST, "no turn was dropped");
    assert_eq!(scene.page.blocks["3"]["has"], "line");
    scene.bodies(vec![3.into()]);
    assert_eq!(scene.page.blocks["3"]["output"][0], "output of 0");
    assert_eq!(scene.page.blocks.len(), 3 * (MOST + 10));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn page_has_the_journal_however_it_was_read(
        which in 0_usize..100,
        begins in 0_u64..100,
        most in 1_usize..20,
        steps in proptest::collection::vec(0_u8..6, 0..60),
    ) {
        let journal = &JOURNALS[which % JOURNALS.len()];
        let mut scene = Scene::new(journal, begins.min(journal.last()), most);
        scene.open();
        for step in steps {
            let is_over = scene.daemon.head >= journal.last();
            match step {
                0 | 1 if !is_over => scene.write(false),
                2 if !is_over => scene.write(true),
                3 => scene.lose(),
                4 => scene.older(),
                5 => {
                    let some = scene.page.blocks.values().filter(|block| block["has"] != "whole");
                    let some = some.take(2).map(|block| block["id"].clone()).collect();
                    scene.bodies(some);
                }
                _ => {}
            }
        }
        let (page, wanted) = (scene.finish(), whole(journal));
        let wrong = wanted.iter().filter(|(id, block)| page.get(*id) != Some(*block));
        let wrong: Vec<_> = wrong.map(|(id, block)| (page.get(id), block)).collect();
        prop_assert!(wrong.is_empty() && page.len() == wanted.len(), "{}: {wrong:#?}", journal.name);
    }
}
