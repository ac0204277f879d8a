//! Framing: lines, offsets, junk, limits, memory.

use acp_wire::{Body, Frame, Framer};
use proptest::prelude::*;

const LIMIT: usize = 64;

fn drain(framer: &mut Framer, frames: &mut Vec<Frame>) {
    while let Some(frame) = framer.next_frame() {
        frames.push(frame);
    }
}

fn finish(mut framer: Framer, mut frames: Vec<Frame>) -> (Vec<Frame>, u64) {
    while let Some(frame) = framer.finish() {
        frames.push(frame);
    }
    (frames, framer.offset())
}

fn whole(limit: usize, stream: &[u8]) -> (Vec<Frame>, u64) {
    let mut framer = Framer::new(limit);
    framer.push(stream);
    let mut frames = Vec::new();
    drain(&mut framer, &mut frames);
    finish(framer, frames)
}

fn lines(stream: &[u8]) -> Vec<String> {
    let texts = whole(1 << 20, stream).0.into_iter();
    texts
        .map(|frame| match frame.body {
            Body::Line(line) => String::from_utf8_lossy(&line).into_owned(),
            Body::Oversized { .. } => panic!("no line here is over the limit"),
        })
        .collect()
}

/// The frames of a stream of letters and newlines, by the book.
fn by_the_book(limit: usize, stream: &[u8]) -> Vec<Frame> {
    let mut end = 0;
    let mut frames = Vec::new();
    for line in stream.split_inclusive(|&byte| byte == b'\n') {
        end += line.len() as u64;
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        if text.len() > limit {
            frames.push(Frame {
                end,
                body: Body::Oversized {
                    head: text[..text.len().min(4096)].to_vec().into(),
                    len: text.len() as u64,
                    inside: false,
                },
            });
        } else if !text.is_empty() {
            frames.push(Frame { end, body: Body::Line(text.to_vec().into()) });
        }
    }
    frames
}

/// The frames without what depends on how much of an oversized line was there when it was told.
fn plain(limit: usize, mut frames: Vec<Frame>) -> Vec<Frame> {
    for frame in &mut frames {
        if let Body::Oversized { head, len, inside } = &mut frame.body {
            head.truncate(limit + 1);
            (*len, *inside, frame.end) = (0, false, 0);
        }
    }
    frames
}

fn piece() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => Just(b"\n".to_vec()),
        2 => Just(b"\r\n".to_vec()),
        2 => Just(br#"{"id":1}"#.to_vec()),
        1 => Just(b"\xef\xbb\xbf".to_vec()),
        1 => Just(b"\x1b[32;1m".to_vec()),
        1 => Just(b"\x1b]0;title}\x07".to_vec()),
        1 => Just(b"\x1b]8;;x\x1b\\".to_vec()),
        1 => Just(b"\x1b(B".to_vec()),
        1 => Just(b" \t".to_vec()),
        1 => prop::collection::vec(any::<u8>(), 0..8),
        1 => Just(vec![b'x'; LIMIT + 1]),
        1 => Just(vec![b'y'; 5000]),
    ]
}

fn stream() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(piece(), 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_split_of_a_stream_gives_the_same_frames(
        stream in stream(),
        sizes in prop::collection::vec(1_usize..700, 1..12),
        read in any::<bool>(),
    ) {
        let mut framer = Framer::new(LIMIT);
        let mut frames = Vec::new();
        let mut rest = stream.as_slice();
        for size in sizes.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (chunk, later) = rest.split_at((*size).min(rest.len()));
            if read {
                framer.read_buf().extend_from_slice(chunk);
            } else {
                framer.push(chunk);
            }
            drain(&mut framer, &mut frames);
            rest = later;
        }
        let (frames, offset) = finish(framer, frames);
        let (wanted, wanted_offset) = whole(LIMIT, &stream);
        prop_assert_eq!(plain(LIMIT, frames), plain(LIMIT, wanted));
        prop_assert_eq!(offset, wanted_offset);
    }

    #[test]
    fn frames_are_what_a_plain_split_gives(
        stream in prop::collection::vec(prop::sample::select(b"ab\n".as_slice()), 0..200),
        limit in 1_usize..12,
    ) {
        let (frames, offset) = whole(limit, &stream);
        prop_assert_eq!(plain(limit, frames), plain(limit, by_the_book(limit, &stream)));
        prop_assert_eq!(offset, stream.len() as u64);
    }
}

#[test]
fn line_endings_and_the_byte_order_mark_are_stripped() {
    assert_eq!(lines(b"\xef\xbb\xbf{}\r\n{\"a\":1}\n{}"), ["{}", "{\"a\":1}", "{}"]);
}

#[test]
fn junk_around_an_object_is_stripped() {
    let clean = "{\"a\":\"\u{1f600}\"}";
    for (before, after) in [
        ("\x1b[0m", ""),
        ("\x1b[?25l\x1b[2J", "\x1b[0m"),
        ("\x1b]0;npx\x07", "\x1b]0;{done}\x07"),
        ("\x1b]8;;http://x\x1b\\", "\x1b]8;;\x1b\\"),
        ("\x1b]0;npx\x07\x1b[1G", "\x07\0"),
        ("\x1bc\x1b(B", " \x1b7\r"),
        ("\x1bP1$r\x1b\\", "\x1b_x\x1b\\"),
        ("\x07\x08\0", "\x7f"),
        ("\x1b[", "\x1b["),
        ("\x1b", "\x1b"),
        ("\u{feff}\u{feff}", "\u{feff}\x1b[0m"),
    ] {
        let after = after.trim_start_matches('\u{feff}');
        let line = format!("{before}{clean}{after}\n");
        assert_eq!(lines(line.as_bytes()), [clean], "{line:?}");
    }
}

#[test]
fn text_that_is_not_junk_stays() {
    for text in ["npm warn old lockfile", "data: {}", "[1,2]", "{} trailing", "0;{}"] {
        assert_eq!(lines(format!("{text}\n").as_bytes()), [text]);
    }
    assert_eq!(lines(b"\x1b]0;never ends{}\n"), ["0;never ends{}"]);
    assert_eq!(lines(b"{}\x1b[0m tail\n"), ["{}\x1b[0m tail"]);
}

#[test]
fn a_line_at_the_limit_passes_and_one_byte_more_does_not() {
    let fits = [b"x".repeat(LIMIT), b"\n".to_vec()].concat();
    assert!(matches!(&whole(LIMIT, &fits).0[0].body, Body::Line(_)));
    let over = [b"x".repeat(LIMIT + 1), b"\n".to_vec()].concat();
    let Body::Oversized { head, len, inside } = &whole(LIMIT, &over).0[0].body else {
        panic!("the line is over the limit");
    };
    assert_eq!((head.len(), *len, *inside), (LIMIT + 1, LIMIT as u64 + 1, false));
}

#[test]
#[cfg_attr(miri, ignore = "so much takes minutes there")]
fn an_oversized_line_is_told_at_once_and_dropped_while_it_streams_by() {
    let limit = 1 << 20;
    let mut framer = Framer::new(limit);
    let chunk = vec![b'z'; 50_000];
    for sent in 1..=200_u64 {
        framer.read_buf().extend_from_slice(&chunk);
        let frame = framer.next_frame();
        assert_eq!(framer.next_frame(), None);
        if sent == 21 {
            let (head, inside) = (vec![b'z'; 4096].into(), true);
            let body = Body::Oversized { head, len: 1_050_000, inside };
            assert_eq!(frame, Some(Frame { end: 1_050_000, body }));
        } else {
            assert_eq!(frame, None);
        }
        assert_eq!(framer.is_inside_oversized(), sent >= 21);
        if sent >= 21 {
            assert!(framer.capacity() <= 256 * 1024, "{}", framer.capacity());
            assert_eq!(framer.offset(), sent * 50_000);
        }
    }
    framer.push(b"\n{}\n");
    assert_eq!(framer.next_frame().map(|frame| frame.end), Some(10_000_004));
    assert!(!framer.is_inside_oversized());
}

#[test]
fn a_framer_goes_on_inside_an_oversized_line() {
    let mut framer = Framer::inside_oversized(LIMIT, 1000);
    framer.push(b"the rest");
    assert_eq!(framer.next_frame(), None);
    assert_eq!(framer.offset(), 1008);
    framer.push(b" of it\n{}\n");
    assert_eq!(framer.next_frame().map(|frame| frame.end), Some(1018));
    let mut framer = Framer::inside_oversized(LIMIT, 0);
    framer.push(b"it never ends");
    assert_eq!(framer.finish(), None);
    assert_eq!(framer.offset(), 13);
}

#[test]
#[cfg_attr(miri, ignore = "so much takes minutes there")]
fn a_big_line_leaves_no_big_buffer_behind() {
    let mut framer = Framer::new(64 << 20);
    for _ in 0..3 {
        framer.push(&vec![b'a'; 8 << 20]);
        assert_eq!(framer.next_frame(), None);
        framer.push(b"\n{\"next\":");
        assert!(framer.next_frame().is_some());
        assert!(framer.capacity() <= 128 * 1024);
        framer.push(b"1}\n");
        assert_eq!(
            framer.next_frame().map(|frame| frame.body),
            Some(Body::Line(b"{\"next\":1}".as_slice().into()))
        );
        framer.read_buf();
        assert!(framer.capacity() <= 128 * 1024);
    }
}

#[test]
fn lines_are_slices_of_the_read_buffer() {
    let mut framer = Framer::new(LIMIT);
    let buf = framer.read_buf();
    buf.extend_from_slice(b" {\"a\":1}\n{}\n");
    let start = buf.as_ptr() as usize;
    let mut found = Vec::new();
    while let Some(Frame { body: Body::Line(line), .. }) = framer.next_frame() {
        found.push(line.as_ptr() as usize - start);
    }
    assert_eq!(found, [1, 9]);
}
