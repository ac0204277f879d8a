//! The agent of the benchmarks: as little work as possible between a prompt and its lines.
//!
//! Prompts: `flood N` writes N lines in large writes, `pace N MICROS` one line at a time with the
//! time of day in it, `text CHARACTERS` two megabytes of acpd's sources in chunks, `nothing` none. A
//! load replays `nothing`.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, BufRead as _, Write};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use crate::{Result, workspace};

/// Bytes of a line of a stream, with its newline.
const LINE: usize = 256;
/// Bytes of [`text`].
const TEXT: usize = 2_000_000;
/// Bytes per write.
const WRITE: usize = 64 << 10;

pub fn run() -> Result {
    let mut stdout = io::stdout().lock();
    let mut sessions = 0;
    for line in io::stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) else {
            continue;
        };
        let params = &message["params"];
        let result = match method {
            "initialize" => json!({"protocolVersion": 1, "authMethods": [],
                "agentCapabilities": {"loadSession": true,
                    "sessionCapabilities": {"resume": {}, "close": {}}}}),
            "session/new" => {
                sessions += 1;
                json!({"sessionId": format!("bench-{}-{sessions}", std::process::id())})
            }
            "session/prompt" => {
                let session = params["sessionId"].as_str().unwrap_or_default();
                let prompt = params["prompt"][0]["text"].as_str().unwrap_or_default();
                obey(&mut stdout, session, prompt)?;
                json!({"stopReason": "end_turn"})
            }
            "session/load" => {
                let session = params["sessionId"].as_str().unwrap_or_default();
                replay(&mut stdout, session)?;
                json!({})
            }
            _ => json!({}),
        };
        writeln!(stdout, "{}", json!({"jsonrpc": "2.0", "id": id, "result": result}))?;
        stdout.flush()?;
    }
    Ok(())
}

fn obey(out: &mut impl Write, session: &str, prompt: &str) -> Result {
    let mut words = prompt.split(' ');
    let verb = words.next().unwrap_or_default();
    let mut number = || words.next().and_then(|word| word.parse::<usize>().ok()).unwrap_or(0);
    match verb {
        "flood" => {
            let mut block = Vec::with_capacity(WRITE + LINE);
            for n in 0..number() {
                chunk(&mut block, session, &format!("{n:020}"));
                if block.len() >= WRITE {
                    out.write_all(&block)?;
                    block.clear();
                }
            }
            out.write_all(&block)?;
        }
        "pace" => {
            let (count, pause) = (number(), Duration::from_micros(number() as u64));
            let mut line = Vec::with_capacity(LINE);
            for _ in 0..count {
                thread::sleep(pause);
                line.clear();
                chunk(&mut line, session, &format!("{:020}", nanos()));
                out.write_all(&line)?;
                out.flush()?;
            }
        }
        "text" => {
            let characters: Vec<char> = text()?.chars().collect();
            for text in characters.chunks(number().max(1)) {
                let text = text.iter().collect::<String>();
                let update = json!({"sessionUpdate": "agent_message_chunk",
                    "content": {"type": "text", "text": text}});
                notify(out, session, &update)?;
            }
        }
        _ => {}
    }
    Ok(out.flush()?)
}

/// Returns documents and sources of acpd.
pub(super) fn text() -> Result<String> {
    let mut text = String::new();
    let mut left = vec![workspace::root().join("docs"), workspace::root().join("crates")];
    while let Some(path) = left.pop() {
        if path.is_dir() {
            let inside = fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path()));
            left.extend(inside.collect::<io::Result<BTreeSet<_>>>()?);
        } else if path.extension().is_some_and(|end| end == "md" || end == "rs") {
            text.push_str(&fs::read_to_string(path)?);
        }
        if text.len() > TEXT {
            text.truncate(text.floor_char_boundary(TEXT));
            break;
        }
    }
    Ok(text)
}

/// Replays a prompt: a load without one would wait for more.
fn replay(out: &mut impl Write, session: &str) -> Result {
    let update = json!({"sessionUpdate": "user_message_chunk",
        "content": {"type": "text", "text": "nothing"}});
    notify(out, session, &update)
}

fn notify(out: &mut impl Write, session: &str, update: &Value) -> Result {
    let params = json!({"sessionId": session, "update": update});
    let line = json!({"jsonrpc": "2.0", "method": "session/update", "params": params});
    Ok(writeln!(out, "{line}")?)
}

fn chunk(to: &mut Vec<u8>, session: &str, text: &str) {
    const HEAD: &str = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":""#;
    const MIDDLE: &str = concat!(
        r#"","update":{"sessionUpdate":"agent_message_chunk","#,
        r#""content":{"type":"text","text":""#
    );
    const TAIL: &str = "\"}}}}\n";
    let end = to.len() + LINE;
    for part in [HEAD, session, MIDDLE, text] {
        to.extend_from_slice(part.as_bytes());
    }
    let text_end = end.saturating_sub(TAIL.len());
    if to.len() < text_end {
        to.resize(text_end, b'.');
    }
    to.extend_from_slice(TAIL.as_bytes());
}

/// The time of day, which two processes share.
pub(super) fn nanos() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos()
}

pub(super) fn stamp(line: &[u8]) -> Option<u128> {
    const BEFORE: &[u8] = br#""text":""#;
    let at = line.windows(BEFORE.len()).position(|window| window == BEFORE)? + BEFORE.len();
    std::str::from_utf8(line.get(at..at + 20)?).ok()?.parse().ok()
}
