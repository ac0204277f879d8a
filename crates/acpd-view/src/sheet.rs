//! Layout of a tool call that a user decides on. All of the decision is visible, and no text of the
//! agent can pass for acpd's.
//!
//! A bar precedes each row of the agent's text. So the text can neither push earlier rows off the
//! screen nor imitate a question. Of a long text, the beginning, the end and the number of hidden
//! rows are shown.

use acpd_api::{RawCall, Shown, ShownDiff, Untrusted, escape};

use crate::about::{is_word, unnamed};
use crate::diff::{Change, FileContent, FileDiff};
use crate::human::counted;
use crate::summary::icon;
use crate::text;
use crate::text::{BOLD, Role, Text};

/// Before the first row of an agent's line, and before its continuation rows.
const BAR: &str = "  │ ";
const BROKEN_BAR: &str = "  ┆ ";
/// Before acpd's own lines.
const OWN: &str = "  ";
const BAR_WIDTH: usize = 4;
const MIN_PART_ROWS: usize = 5;

#[derive(Debug)]
pub struct Sheet {
    /// Lines, and their maximum of rows if the screen is too small; none for an equal share of the
    /// remaining rows.
    parts: Vec<(Option<usize>, Vec<Marked>)>,
    is_easy: bool,
}

type Marked = (&'static str, Text);

impl Sheet {
    /// `changed` counts the changes of the call since the user was asked. `head` precedes the
    /// title.
    pub fn new(head: &'static str, shown: &Shown, changed: u32) -> Sheet {
        let title = shown.title.as_ref().filter(|title| !title.raw().trim().is_empty());
        let title = Text::from(title.unwrap_or(&shown.kind));
        let is_easy = shown.is_understood() && changed == 0;
        let mut sheet = Sheet { parts: Vec::new(), is_easy };
        let times = if changed > 1 { text!(" ({} times)", changed) } else { Text::new() };
        let mark = text!("changed while you looked{}: this is another call", times);
        sheet.add(Some(1), (changed > 0).then_some(("", Text::of(BOLD, mark))));
        let icon = icon(Some(shown.kind.raw()));
        sheet.add(Some(3), [("", Text::of(BOLD, text!("{}{} {}", head, icon, title)))]);
        sheet.add(None, unnamed(&shown.commands, &title).into_iter().map(plain));
        sheet.add(
            Some(2),
            shown.folder.iter().map(|folder| (OWN, Text::of(Role::Dim, text!("in {}", folder)))),
        );
        let is_said = |place: &&Untrusted| {
            is_word(title.as_str(), Text::from(*place).as_str())
                || shown.diffs.iter().any(|diff| diff.path == **place)
        };
        let places = shown.paths.iter().chain(&shown.urls).filter(|place| !is_said(place));
        sheet.add(Some(MIN_PART_ROWS), places.map(|place| (OWN, Text::of(Role::Name, place))));
        sheet.add(None, shown.diffs.iter().flat_map(diff));
        let unclear = shown.unclear.iter().map(|part| {
            let is_all = part.member.is_empty();
            let what = if is_all { "it".into() } else { text!("`{}`", part.member) };
            text!("not understood: {} {}", what, part.why)
        });
        sheet.add(Some(MIN_PART_ROWS), unclear.map(|line| (OWN, Text::of(Role::Warning, line))));
        sheet.add(None, shown.raw.iter().flat_map(raw));
        sheet
    }

    /// Returns whether one key is enough to allow the call: acpd understands all of it, and the
    /// call did not change since the user was asked.
    pub fn is_easy(&self) -> bool {
        self.is_easy
    }

    fn add(&mut self, most: Option<usize>, lines: impl IntoIterator<Item = Marked>) {
        self.parts.push((most, lines.into_iter().collect()));
    }

    /// Without a width, lines are not broken.
    pub fn whole(&self, width: Option<usize>) -> Vec<Text> {
        self.parts.iter().flat_map(|(_, lines)| rows(lines, width)).collect()
    }

    /// Returns the rows that fit, and the number of hidden rows.
    pub fn fitting(&self, width: usize, height: usize) -> (Vec<Text>, usize) {
        let parts = self.parts.iter().map(|(_, lines)| rows(lines, Some(width)));
        let parts: Vec<Vec<Text>> = parts.collect();
        let wanted: usize = parts.iter().map(Vec::len).sum();
        if wanted <= height {
            return (parts.concat(), 0);
        }
        let sizes = self.parts.iter().zip(&parts).map(|((most, _), rows)| (*most, rows.len()));
        let (mut lines, mut hidden) = (Vec::new(), 0);
        for (rows, most) in parts.iter().zip(shares(sizes.collect(), height)) {
            hidden += excerpt(rows, most, &mut lines);
        }
        (lines, hidden)
    }
}

fn rows(lines: &[Marked], width: Option<usize>) -> Vec<Text> {
    let room = width.map(|width| width.saturating_sub(BAR_WIDTH).max(BAR_WIDTH));
    let rows = lines.iter().flat_map(|(bar, line)| {
        let rows = room.map_or_else(|| vec![line.clone()], |room| line.split(room));
        let bar = move |at| if at == 0 { *bar } else { BROKEN_BAR };
        let row = move |(at, text)| (Text::of(Role::Dim, bar(at)) + text).trim_end();
        rows.into_iter().enumerate().map(row)
    });
    rows.collect()
}

/// Returns the rows for each part. `sizes` are each part's maximum and its number of rows.
fn shares(sizes: Vec<(Option<usize>, usize)>, height: usize) -> Vec<usize> {
    let mut shares: Vec<usize> =
        sizes.iter().map(|(most, has)| most.map_or(0, |most| most.min(*has))).collect();
    let mut room = height.saturating_sub(shares.iter().sum());
    let mut long: Vec<usize> =
        (0..sizes.len()).filter(|at| sizes[*at].0.is_none() && sizes[*at].1 > 0).collect();
    // Short parts leave their remainder to longer ones.
    long.sort_by_key(|at| sizes[*at].1);
    for (done, at) in long.iter().enumerate() {
        shares[*at] = sizes[*at].1.min((room / (long.len() - done)).max(MIN_PART_ROWS));
        room = room.saturating_sub(shares[*at]);
    }
    shares
}

/// Adds the first and last rows; returns the number of rows between them.
fn excerpt(rows: &[Text], most: usize, lines: &mut Vec<Text>) -> usize {
    if rows.len() <= most {
        lines.extend_from_slice(rows);
        return 0;
    }
    let tail = most.saturating_sub(1) / 2;
    let head = most.saturating_sub(1) - tail;
    let hidden = rows.len() - head - tail;
    lines.extend_from_slice(&rows[..head]);
    lines.push(Text::of(Role::Warning, text!("  ⋮ {} lines are hidden here", hidden)));
    lines.extend_from_slice(&rows[rows.len() - tail..]);
    hidden
}

fn plain(line: Text) -> Marked {
    (BAR, Text::of(Role::Plain, line))
}

fn diff(diff: &ShownDiff) -> Vec<Marked> {
    if diff.left_out > 0 {
        let line = text!("{}: {} bytes of changes, too many to show", diff.path, diff.left_out);
        return vec![(OWN, Text::of(Role::Warning, line))];
    }
    let Change { head, lines, .. } = asked_change(diff);
    let lines = lines.iter().map(|line| (BAR, line.line()));
    std::iter::once((OWN, head)).chain(lines).collect()
}

/// Returns a file change for a decision; its head warns of lost content.
pub fn asked_change(diff: &ShownDiff) -> Change {
    let ShownDiff { path, old_text, new_text, replaces, unseen, .. } = diff.clone();
    let gone = old_text.as_ref().map_or(0, |old| old.raw().lines().count());
    // A change without known old content must not look like a new file.
    let old_text = old_text.or_else(|| unseen.then(Untrusted::default));
    let content = FileContent::Texts(old_text, new_text);
    let change = Change::of(&path, &FileDiff { path: path.clone(), old_path: None, content });
    let head = if replaces {
        let gone = counted(gone, "line");
        Text::of(Role::Warning, "replaces ") + change.head + text!(" ({})", gone)
    } else if unseen {
        change.head.and(Role::Warning, " (what is there now is not known)")
    } else {
        change.head
    };
    Change { head, ..change }
}

fn raw(call: &RawCall) -> Vec<Marked> {
    let lines = call.text.raw().split('\n').map(|line| plain(escape::verbatim(line).into()));
    let rest = text!("and {} bytes more, which are not shown", call.left_out);
    let rest = (call.left_out > 0).then(|| (OWN, Text::of(Role::Warning, rest)));
    lines.chain(rest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain_text(lines: &[Text]) -> String {
        lines.iter().map(|line| line.to_string() + "\n").collect()
    }

    fn run(command: &str) -> Shown {
        Shown {
            kind: "execute".into(),
            title: Some("Tidy up".into()),
            commands: vec![command.into()],
            ..Shown::default()
        }
    }

    fn whole(shown: &Shown) -> String {
        plain_text(&Sheet::new("", shown, 0).whole(None))
    }

    #[test]
    fn a_file_that_is_written_whole_shows_what_it_replaces() {
        let diff = |more: ShownDiff| {
            let diffs = vec![ShownDiff { path: "/w/a".into(), new_text: "x\n".into(), ..more }];
            let shown =
                Shown { kind: "edit".into(), title: Some("t".into()), diffs, ..Shown::default() };
            let text = whole(&shown);
            text.lines().skip(1).collect::<Vec<_>>().join("\n")
        };
        let old =
            ShownDiff { old_text: Some("x\ny\n".into()), replaces: true, ..ShownDiff::default() };
        insta::assert_snapshot!(diff(old), @"
          replaces /w/a +0 -1 (2 lines)
          │        1   x
          │        2 - y
        ");
        insta::assert_snapshot!(diff(ShownDiff { unseen: true, ..ShownDiff::default() }), @"
          /w/a +1 -0 (what is there now is not known)
          │        1 + x
        ");
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
        insta::assert_snapshot!(plain_text(&Sheet::new("allow? ", &shown, 2).whole(None)), @r#"
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
    fn m7_head_and_tail_of_a_long_line_are_on_the_screen() {
        let shown = run(&format!("ls -la {}; rm -rf ~", "x".repeat(9000)));
        let (lines, hidden) = Sheet::new("allow? ", &shown, 0).fitting(40, 12);
        let text = plain_text(&lines);
        assert_eq!(lines.len(), 12);
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
        let (lines, hidden) = Sheet::new("allow? ", &run(&fake), 0).fitting(60, 20);
        let text = plain_text(&lines);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 20);
        assert!(hidden > 0);
        assert_eq!(lines[0], "allow? $ Tidy up");
        assert!(lines[1..].iter().all(|line| line.starts_with("  ")), "{text}");
        assert!(lines.last().unwrap().ends_with("rm -rf ~"), "{text}");
    }
}
