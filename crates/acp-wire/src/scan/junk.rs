//! Removes junk of launchers and terminals around a JSON line: byte order marks, escape sequences,
//! stray control bytes.

use std::ops::Range;

use memchr::{memchr, memchr2};

const ESC: u8 = 0x1b;
const BEL: u8 = 0x07;
const BOM: &[u8] = b"\xef\xbb\xbf";

pub(crate) fn trim(line: &[u8]) -> Range<usize> {
    let start = junk_len(line);
    let mut end = line.len() - trailing(&line[start..], is_control);
    // A clean line ends in its brace. Otherwise the first escape byte starts the tail: JSON holds
    // no raw one.
    if !is_clean(&line[end..]) || line[start..end].last() != Some(&b'}') {
        let escape = memchr(ESC, &line[start..]).map(|at| start + at);
        if let Some(at) = escape.filter(|&at| junk_len(&line[at..]) == line.len() - at) {
            end = at - trailing(&line[start..at], is_control);
        }
    }
    start..end
}

/// Returns whether a line has control bytes that no terminal sends and that are no white space.
pub(crate) fn is_noise(line: &[u8]) -> bool {
    let is_quiet = |byte: &u8| byte.is_ascii_whitespace() || *byte == BEL || *byte == 0x08;
    !line.contains(&ESC) && !line.starts_with(BOM) && !line.iter().all(is_quiet)
}

fn trailing(bytes: &[u8], junk: fn(u8) -> bool) -> usize {
    bytes.iter().rev().take_while(|&&byte| junk(byte)).count()
}

fn is_clean(cut: &[u8]) -> bool {
    cut.iter().all(u8::is_ascii_whitespace)
}

fn is_control(byte: u8) -> bool {
    byte <= b' ' || byte == 0x7f
}

fn junk_len(bytes: &[u8]) -> usize {
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let rest = &bytes[at..];
        at += match byte {
            ESC => escape_len(rest),
            _ if is_control(byte) => 1,
            _ if rest.starts_with(BOM) => BOM.len(),
            _ => break,
        };
    }
    at
}

/// The length of the escape sequence at the front. A sequence that is cut short counts as its
/// introducer alone, and a `{` never ends one.
fn escape_len(bytes: &[u8]) -> usize {
    match bytes.get(1) {
        Some(b'[') => {
            let body = run(&bytes[2..], |byte| (0x20..=0x3f).contains(&byte));
            2 + body + final_len(bytes.get(2 + body))
        }
        // Operating system command and the other strings: to BEL or to ESC \.
        Some(b']' | b'P' | b'X' | b'^' | b'_') => match memchr2(BEL, ESC, &bytes[2..]) {
            Some(at) if bytes[2 + at] == BEL => 2 + at + 1,
            Some(at) if bytes.get(2 + at + 1) == Some(&b'\\') => 2 + at + 2,
            _ => 2,
        },
        _ => {
            let body = run(&bytes[1..], |byte| (0x20..=0x2f).contains(&byte));
            1 + body + final_len(bytes.get(1 + body))
        }
    }
}

fn run(bytes: &[u8], part: fn(u8) -> bool) -> usize {
    bytes.iter().take_while(|&&byte| part(byte)).count()
}

fn final_len(byte: Option<&u8>) -> usize {
    usize::from(byte.is_some_and(|&byte| (0x30..=0x7e).contains(&byte) && byte != b'{'))
}
