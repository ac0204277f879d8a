//! The frames: their bytes, and what is made of bytes that are none.

use acpd_shim::frame::{
    FrameError, Hello, Inbox, PIECE, Stage, Status, Step, ToDaemon, ToShim, VERSION,
};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

fn to_shim(frame: ToShim<'_>) -> String {
    let mut bytes = Vec::new();
    frame.encode(&mut bytes);
    let mut inbox = Inbox::default();
    inbox.push(&bytes);
    assert_eq!(inbox.next_frame(), Ok(Some(frame)));
    assert_eq!(inbox.next_frame::<ToShim<'_>>(), Ok(None));
    hex(&bytes)
}

fn to_daemon(frame: ToDaemon<'_>) -> String {
    let mut bytes = Vec::new();
    frame.encode(&mut bytes);
    let mut inbox = Inbox::default();
    inbox.push(&bytes);
    assert_eq!(inbox.next_frame(), Ok(Some(frame)));
    assert_eq!(inbox.next_frame::<ToDaemon<'_>>(), Ok(None));
    hex(&bytes)
}

#[test]
fn what_a_daemon_says_has_these_bytes() {
    assert_eq!(VERSION, 1);
    assert_eq!(
        to_shim(ToShim::Hello { version: 1, from: 0x0102_0304_0506_0708 }),
        "01 0a 00 00 00 01 00 08 07 06 05 04 03 02 01"
    );
    assert_eq!(
        to_shim(ToShim::In { chunk: 3, at: 0x10, last: true, bytes: b"{}\n" }),
        "02 10 00 00 00 03 00 00 00 00 00 00 00 10 00 00 00 01 7b 7d 0a"
    );
    assert_eq!(to_shim(ToShim::Ack { offset: 9 }), "03 08 00 00 00 09 00 00 00 00 00 00 00");
    assert_eq!(to_shim(ToShim::Lease { ms: 1000 }), "04 08 00 00 00 e8 03 00 00 00 00 00 00");
    assert_eq!(to_shim(ToShim::Signal(Step::CloseStdin)), "05 01 00 00 00 01");
    assert_eq!(to_shim(ToShim::Signal(Step::Term)), "05 01 00 00 00 02");
    assert_eq!(to_shim(ToShim::Signal(Step::Kill)), "05 01 00 00 00 03");
    assert_eq!(to_shim(ToShim::Exit), "06 00 00 00 00");
}

#[test]
fn what_a_shim_says_has_these_bytes() {
    let hello = Hello {
        version: 1,
        shim: 2,
        agent: 3,
        start: 4,
        base: 5,
        end: 6,
        chunk: 7,
        at: 8,
        written: 9,
        credit: 10,
        release: None,
    };
    assert_eq!(
        to_daemon(ToDaemon::Hello(hello)),
        "81 3a 00 00 00 01 00 02 00 00 00 03 00 00 00 04 00 00 00 00 00 00 00 \
         05 00 00 00 00 00 00 00 06 00 00 00 00 00 00 00 07 00 00 00 00 00 00 00 \
         08 00 00 00 09 00 00 00 00 00 00 00 0a 00 00 00"
    );
    assert_eq!(
        to_daemon(ToDaemon::Out { offset: 7, bytes: b"ab" }),
        "82 0a 00 00 00 07 00 00 00 00 00 00 00 61 62"
    );
    assert_eq!(to_daemon(ToDaemon::Err { bytes: b"!" }), "83 01 00 00 00 21");
    assert_eq!(to_daemon(ToDaemon::Credit { bytes: 258 }), "84 04 00 00 00 02 01 00 00");
    assert_eq!(to_daemon(ToDaemon::Written { chunk: 2 }), "85 08 00 00 00 02 00 00 00 00 00 00 00");
    let exit = |stage, status| to_daemon(ToDaemon::Exit { stage, status, stderr: b"x" });
    assert_eq!(exit(Stage::Ended, Status::Code(-1)), "86 07 00 00 00 01 00 ff ff ff ff 78");
    assert_eq!(exit(Stage::Gone, Status::Signal(9)), "86 07 00 00 00 02 01 09 00 00 00 78");
    assert_eq!(exit(Stage::Gone, Status::Closed), "86 07 00 00 00 02 02 00 00 00 00 78");
    assert_eq!(exit(Stage::Gone, Status::Unknown), "86 07 00 00 00 02 03 00 00 00 00 78");
}

#[test]
fn what_a_newer_side_adds_is_skipped() {
    let mut bytes = vec![0x7f, 3, 0, 0, 0, 1, 2, 3];
    // An acknowledgement with a field more.
    bytes.extend([0x03, 9, 0, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0xff]);
    let mut inbox = Inbox::default();
    inbox.push(&bytes);
    assert_eq!(inbox.next_frame(), Ok(Some(ToShim::Ack { offset: 5 })));
    assert_eq!(inbox.next_frame::<ToShim<'_>>(), Ok(None));
}

#[test]
fn what_is_no_frame_ends_the_connection() {
    let error = |bytes: &[u8]| {
        let mut inbox = Inbox::default();
        inbox.push(bytes);
        inbox.next_frame::<ToShim<'_>>().unwrap_err()
    };
    assert_eq!(error(&[3, 0xff, 0xff, 0xff, 0x7f]), FrameError::TooLong(0x7fff_ffff));
    assert_eq!(error(&[3, 2, 0, 0, 0, 1, 1]), FrameError::CutOff(3));
    assert_eq!(error(&[5, 1, 0, 0, 0, 4]), FrameError::Value(5, 4));
}

#[test]
#[cfg_attr(miri, ignore = "so much takes minutes there")]
fn the_longest_pieces_pass() {
    let bytes = vec![b'x'; PIECE];
    to_shim(ToShim::In { chunk: 1, at: 0, last: false, bytes: &bytes });
    to_daemon(ToDaemon::Out { offset: 0, bytes: &bytes });
    to_daemon(ToDaemon::Err { bytes: &bytes });
}
