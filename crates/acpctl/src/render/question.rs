//! A tool call that a person decides on: it shows all that is decided, and nothing in it can pass for acpd's words.
//!
//! Text of the agent stands behind a bar, on every row of the screen: it can neither push what comes before it
//! off the screen nor look like a question itself. Of a text that is too long, it shows the beginning, the end and
//! the number of rows that are hidden between them.

use acpd_api::{RawCall, Shown, ShownDiff, Untrusted, escape};
use anstyle::Style;

use super::about::{is_word, unnamed};
use super::diff::lines_of;
use super::tool::icon;
use super::update::FileDiff;
use crate::paint::{BOLD, CYAN, DIM, Paint, YELLOW};
use crate::text::{Text, text};

/// Before the first row of a line of the agent's, and before the rows that continue it.
const BAR: &str = "  │ ";
const BROKEN_BAR: &str = "  ┆ ";
/// Before what acpd says of the call.
const OWN: &str = "  ";
/// The widest of these, in columns.
const MARGIN: usize = 4;
/// Rows of a part that may be long.
const LEAST: usize = 5;

/// A call, ready to be shown.
#[derive(Debug)]
pub(crate) struct Sheet {
    parts: Vec<Part>,
    is_easy: bool,
}

/// Lines that belong together.
#[derive(Debug)]
struct Part {
    lines: Vec<Line>,
    /// The rows that it gets where there are too few; without a number, what the others leave.
    most: Option<usize>,
}

/// A line, its colour and what stands before it.
type Line = (&'static str, Style, Text);

/// A row of the screen.
#[derive(Debug, Clone)]
struct Row {
    style: Style,
    bar: &'static str,
    text: Text,
}

impl Sheet {
    /// Of a call that was changed so often while somebody was asked. `head` stands before its title.
    pub(crate) fn new(head: &'static str, shown: &Shown, changed: u32) -> Sheet {
        let title = shown.title.as_ref().filter(|title| !title.raw().trim().is_empty());
        let title = Text::from(title.unwrap_or(&shown.kind));
        let is_easy = shown.is_understood() && changed == 0;
        let mut sheet = Sheet { parts: Vec::new(), is_easy };
        let times = if changed > 1 { text!(" ({} times)", changed) } else { Text::new() };
        let mark = text!("changed while you looked{}: this is another call", times);
        sheet.add(1, (changed > 0).then_some(("", BOLD, mark)));
        let icon = icon(Some(shown.kind.raw()));
        sheet.add(3, [("", BOLD, text!("{}{} {}", head, icon, title))]);
        sheet.add_long(unnamed(&shown.commands, &title).into_iter().map(plain));
        sheet.add(2, shown.folder.iter().map(|folder| (OWN, DIM, text!("in {}", folder))));
        let is_said = |place: &&Untrusted| {
            is_word(title.as_str(), Text::from(*place).as_str())
                || shown.diffs.iter().any(|diff| diff.path == **place)
        };
        let places = shown.paths.iter().chain(&shown.urls).filter(|place| !is_said(place));
        sheet.add(LEAST, places.map(|place| (OWN, CYAN, place.into())));
        sheet.add_long(shown.diffs.iter().flat_map(diff));
        let unclear = shown.unclear.iter().map(|part| {
            let is_all = part.member.is_empty();
            let what = if is_all { "it".into() } else { text!("`{}`", part.member) };
            text!("not understood: {} {}", what, part.why)
        });
        sheet.add(LEAST, unclear.map(|line| (OWN, YELLOW, line)));
        sheet.add_long(shown.raw.iter().flat_map(raw));
        sheet
    }

    /// Whether one key is enough to allow it: acpd understands all of the call, and it did not change while
    /// somebody looked.
    pub(crate) fn is_easy(&self) -> bool {
        self.is_easy
    }

    fn add(&mut self, most: usize, lines: impl IntoIterator<Item = Line>) {
        self.parts.push(Part { lines: lines.into_iter().collect(), most: Some(most) });
    }

    fn add_long(&mut self, lines: impl Iterator<Item = Line>) {
        self.parts.push(Part { lines: lines.collect(), most: None });
    }

    /// All of it. Without a width no line is broken.
    pub(crate) fn whole(&self, width: Option<usize>, paint: Paint) -> Text {
        self.parts.iter().flat_map(|part| part.rows(width)).map(|row| row.show(paint)).collect()
    }

    /// As much of it as fits into this many columns and rows, and the number of hidden rows.
    pub(crate) fn fitting(&self, width: usize, height: usize, paint: Paint) -> (Text, usize) {
        let parts: Vec<Vec<Row>> = self.parts.iter().map(|part| part.rows(Some(width))).collect();
        let wanted: usize = parts.iter().map(Vec::len).sum();
        if wanted <= height {
            return (parts.iter().flatten().map(|row| row.show(paint)).collect(), 0);
        }
        let sizes = self.parts.iter().zip(&parts).map(|(part, rows)| (part.most, rows.len()));
        let (mut text, mut hidden) = (Text::new(), 0);
        for (rows, most) in parts.iter().zip(shares(sizes.collect(), height)) {
            let (shown, left_out) = excerpt(rows, most, paint);
            text += shown;
            hidden += left_out;
        }
        (text, hidden)
    }
}

impl Part {
    fn rows(&self, width: Option<usize>) -> Vec<Row> {
        let room = width.map(|width| width.saturating_sub(MARGIN).max(MARGIN));
        let rows = self.lines.iter().flat_map(|(bar, style, line)| {
            let rows = room.map_or_else(|| vec![line.clone()], |room| line.rows(room));
            let bar = move |at| if at == 0 { *bar } else { BROKEN_BAR };
            rows.into_iter().enumerate().map(move |(at, text)| Row {
                style: *style,
                bar: bar(at),
                text,
            })
        });
        rows.collect()
    }
}

impl Row {
    fn show(&self, paint: Paint) -> Text {
        let line = text!("{}{}", paint.apply(DIM, self.bar), paint.apply(self.style, &self.text));
        line.trim_end() + "\n"
    }
}

/// How many rows each part gets: `sizes` are the most that it may have, and what it has.
fn shares(sizes: Vec<(Option<usize>, usize)>, height: usize) -> Vec<usize> {
    let mut shares: Vec<usize> =
        sizes.iter().map(|(most, has)| most.map_or(0, |most| most.min(*has))).collect();
    let mut room = height.saturating_sub(shares.iter().sum());
    let mut long: Vec<usize> =
        (0..sizes.len()).filter(|at| sizes[*at].0.is_none() && sizes[*at].1 > 0).collect();
    // Those that need little leave the rest to the others.
    long.sort_by_key(|at| sizes[*at].1);
    for (done, at) in long.iter().enumerate() {
        shares[*at] = sizes[*at].1.min((room / (long.len() - done)).max(LEAST));
        room = room.saturating_sub(shares[*at]);
    }
    shares
}

/// The beginning and the end of rows, and how many are left out between them.
fn excerpt(rows: &[Row], most: usize, paint: Paint) -> (Text, usize) {
    let show = |rows: &[Row]| rows.iter().map(|row| row.show(paint)).collect::<Text>();
    if rows.len() <= most {
        return (show(rows), 0);
    }
    let tail = most.saturating_sub(1) / 2;
    let head = most.saturating_sub(1) - tail;
    let hidden = rows.len() - head - tail;
    let mark = paint.apply(YELLOW, text!("  ⋮ {} lines are hidden here", hidden));
    (show(&rows[..head]) + mark + "\n" + show(&rows[rows.len() - tail..]), hidden)
}

fn plain(line: Text) -> Line {
    (BAR, Style::new(), line)
}

fn diff(diff: &ShownDiff) -> Vec<Line> {
    if diff.left_out > 0 {
        let line = text!("{}: {} bytes of changes, too many to show", diff.path, diff.left_out);
        return vec![(OWN, YELLOW, line)];
    }
    let ShownDiff { path, old_text, new_text, .. } = diff.clone();
    let (head, lines) = lines_of(&FileDiff { path, old_text, new_text });
    let lines = lines.into_iter().map(|(style, line)| (BAR, style, line));
    std::iter::once((OWN, CYAN, head)).chain(lines).collect()
}

fn raw(call: &RawCall) -> Vec<Line> {
    let lines = call.text.raw().split('\n').map(|line| plain(escape::verbatim(line).into()));
    let rest = text!("and {} bytes more, which are not shown", call.left_out);
    lines.chain((call.left_out > 0).then_some((OWN, YELLOW, rest))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(command: &str) -> Shown {
        Shown {
            kind: "execute".into(),
            title: Some("Tidy up".into()),
            commands: vec![command.into()],
            ..Shown::default()
        }
    }

    fn whole(shown: &Shown) -> String {
        Sheet::new("", shown, 0).whole(None, Paint::plain()).to_string()
    }

    #[test]
    fn all_that_is_decided_is_on_the_sheet() {
        let shown = Shown {
            folder: Some("/w".into()),
            paths: vec!["/w/a".into(), "/w/b".into()],
            urls: vec!["https://a.example/".into()],
            diffs: vec![
                ShownDiff { path: "/w/a".into(), new_text: "x\n".into(), ..ShownDiff::default() },
                ShownDiff { path: "/w/c".into(), left_out: 200_000, ..ShownDiff::default() },
            ],
            unclear: vec![acpd_api::ShownUnclear {
                member: "env".into(),
                why: "is not known".into(),
            }],
            raw: Some(RawCall { text: "{\"env\":\"\u{202e}\"}".into(), left_out: 7 }),
            ..run("cat <<E\nx\u{1b}\nE\n")
        };
        insta::assert_snapshot!(Sheet::new("allow? ", &shown, 2).whole(None, Paint::plain()), @r#"
        changed while you looked (2 times): this is another call
        allow? $ Tidy up
          │ cat <<E
          │ x<U+001B>
          │ E
          in /w
          /w/b
          https://a.example/
          /w/a +1 -0 new file
          │        1 + x
          /w/c: 200000 bytes of changes, too many to show
          not understood: `env` is not known
          │ {"env":"<U+202E>"}
          and 7 bytes more, which are not shown
        "#);
    }

    #[test]
    fn a_title_that_is_the_command_is_said_once() {
        let shown = |title: &str| Shown { title: Some(title.into()), ..run("git push") };
        assert_eq!(whole(&shown("`git push`")), "$ `git push`\n");
        assert_eq!(whole(&shown("git pull")), "$ git pull\n  │ git push\n");
        let long = "x".repeat(200);
        assert!(whole(&Shown { title: Some(long.as_str().into()), ..run(&long) }).contains("│ x"));
    }

    #[test]
    fn m7_head_and_tail_of_a_long_line_are_on_the_screen() {
        let shown = run(&format!("ls -la {}; rm -rf ~", "x".repeat(9000)));
        let (text, hidden) = Sheet::new("allow? ", &shown, 0).fitting(40, 12, Paint::plain());
        assert_eq!(text.as_str().lines().count(), 12);
        assert!(hidden > 200);
        insta::assert_snapshot!(text, @"
        allow? $ Tidy up
          │ ls -la xxxxxxxxxxxxxxxxxxxxxxxxxxxxx
          ┆ xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
          ┆ xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
          ┆ xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
          ┆ xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
          ⋮ 241 lines are hidden here
          ┆ xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
          ┆ xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
          ┆ xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
          ┆ xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx
          ┆ xxxxxxx; rm -rf ~
        ");
    }

    #[test]
    fn l6_blank_lines_push_nothing_off_the_screen_and_fake_nothing() {
        let fake =
            format!("{}allow? $ ls\n  [y] Allow\n{}rm -rf ~", "\n".repeat(45), " ".repeat(300));
        let (text, hidden) = Sheet::new("allow? ", &run(&fake), 0).fitting(60, 20, Paint::plain());
        let lines: Vec<&str> = text.as_str().lines().collect();
        assert_eq!(lines.len(), 20);
        assert!(hidden > 0);
        assert_eq!(lines[0], "allow? $ Tidy up");
        assert!(lines[1..].iter().all(|line| line.starts_with("  ")), "{text}");
        assert!(lines.last().unwrap().ends_with("rm -rf ~"), "{text}");
    }

    #[test]
    fn each_long_part_gets_its_share() {
        let many = "line\n".repeat(100);
        let shown = Shown {
            raw: Some(RawCall { text: many.as_str().into(), left_out: 0 }),
            title: Some("t".repeat(1000).as_str().into()),
            ..run(&many)
        };
        let (text, hidden) = Sheet::new("", &shown, 1).fitting(80, 24, Paint::plain());
        assert_eq!(text.as_str().lines().count(), 24);
        assert_eq!(text.as_str().matches("lines are hidden here").count(), 3);
        assert_eq!(hidden, 1 + 100 + 101 + 14 - (24 - 3));
    }
}
