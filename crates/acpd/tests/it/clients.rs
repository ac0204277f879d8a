//! Several clients at one session, and clients that go or do not keep up.

use std::io::Write as _;
use std::os::unix::net::UnixStream;

use acpd_test::harness::{Config, peak_rss, rss, seq_of, until};

use crate::{echo, home, home_with};

const MIB: u64 = 1 << 20;

// peers 20
#[test]
fn a_client_that_does_not_read_harms_nobody_and_misses_nothing() {
    const CHUNKS: usize = 200_000;
    let env = home([echo().unrecorded()]);
    let mut fast = env.client("echo");
    let session = fast.new_session(&env.work("main"), Some("fix"));
    let mut slow = env.client("echo");
    slow.attach("fix", Some(0));
    let daemon = env.daemon_pid();
    let base = rss(daemon);
    fast.prompt(&session, &format!("[chunks {CHUNKS}]"));
    let mut last = 0;
    let mut chunks = 0;
    loop {
        let line = fast.read_line("the next chunk").expect("the connection goes on");
        let Some(seq) = seq(&line) else {
            if line.windows(10).any(|window| window == b"stopReason") {
                break;
            }
            continue;
        };
        assert!(seq > last, "{seq} after {last}");
        last = seq;
        chunks += usize::from(is_chunk(&line));
    }
    assert!(chunks >= CHUNKS, "the fast one has everything: {chunks}");

    let mut expected = 1;
    let mut chunks = 0;
    while expected <= last {
        let line = slow.read_line("the next line").expect("the connection goes on");
        let Some(seq) = seq(&line) else { continue };
        assert_eq!(seq, expected, "no gap and no double");
        expected += 1;
        chunks += usize::from(is_chunk(&line));
    }
    assert!(chunks >= CHUNKS, "{chunks}");
    // The client has caught up, and gets lines as they come again.
    fast.say(&session, "say #live").unwrap();
    slow.hear("tags=live");
    let most = peak_rss(daemon);
    assert!(most < base + 64 * MIB, "the daemon grew from {base} to {most}");
}

#[test]
fn a_client_that_asks_and_asks_and_reads_nothing_is_let_go() {
    let config = Config::new([echo()]);
    let env =
        home_with(&config.daemon("client_queue", "\"64KiB\"").daemon("line_limit", "\"64KiB\""));
    let mut other = env.client("echo");
    let mut greedy = UnixStream::connect(env.socket()).unwrap();
    let question = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"_acpd/status\",\"params\":{}}\n";
    let questions = question.repeat(1000);
    let cut = (0..1000).find_map(|_| greedy.write_all(&questions).err());
    assert!(cut.is_some(), "the connection is closed");
    other.sync();
    until("the client to be gone", || (env.status()["daemon"]["clients"] == 2).then_some(()));
}

fn seq(line: &[u8]) -> Option<u64> {
    seq_of(&serde_json::from_slice(line).expect("JSON"))
}

fn is_chunk(line: &[u8]) -> bool {
    line.windows(19).any(|window| window == b"agent_message_chunk")
}
