//! All that a question is about, in lines. Text of an agent stands behind a bar, so that it cannot pass for acpd's
//! words.

use acpd_api::{InteractionInfo, Question, RawCall, Shown, ShownDiff, Untrusted, escape};
use acpd_view::text::Text;
use acpd_view::{Line, Role, Style, text};

use super::needs_filling;
use crate::canvas::{Theme, wrap};

/// The rows of a question, wrapped for this width: what is asked, whole.
pub(crate) fn rows(question: &InteractionInfo, width: usize, theme: Theme) -> Vec<Line> {
    let bar = Line::of(Role::Dim, text!("  {} ", theme.mark("│", "|")));
    let broken = Line::of(Role::Dim, text!("  {} ", theme.mark("┆", ":")));
    let own = Line::of(Role::Plain, "  ");
    let row = |(is_agents, line): (bool, Line)| {
        let (first, next) = if is_agents { (&bar, &broken) } else { (&own, &own) };
        let mut whole = first.clone();
        line.spans.into_iter().for_each(|span| whole.push(span));
        wrap(&whole, width, next)
    };
    lines(question).into_iter().flat_map(row).collect()
}

/// The lines, and whether each is an agent's.
fn lines(question: &InteractionInfo) -> Vec<(bool, Line)> {
    match &question.question {
        Question::Permission { shown: Some(shown), changed, .. } => {
            of_call(shown, *changed, question.cwd.as_ref())
        }
        Question::Permission { title, subject, .. } => {
            let told = subject.as_ref().or(title.as_ref()).map(verbatim);
            let unknown = "a daemon of another version does not say what is asked";
            let warning = (false, Line::of(Role::Warning, unknown));
            std::iter::once(warning).chain(told.into_iter().flatten()).collect()
        }
        Question::Form { message, .. } => {
            let mut lines: Vec<(bool, Line)> = prose(message);
            if needs_filling(question) {
                let how = text!("fill it in: acpctl answer {}", question.id);
                lines.push((false, Line::of(Role::Warning, how)));
            }
            lines
        }
        Question::Url { message, url } => {
            let mut lines = prose(message);
            lines.extend(verbatim(url).into_iter().map(|(own, line)| (own, of(line, Role::Link))));
            lines
        }
    }
}

/// What runs and what is touched, then what it is called: the agent's own words for it come last.
fn of_call(shown: &Shown, changed: u32, cwd: Option<&Untrusted>) -> Vec<(bool, Line)> {
    let mut lines = Vec::new();
    if changed > 0 {
        let times = if changed > 1 { text!(" ({} times)", changed) } else { Text::new() };
        let mark = text!("changed while you looked{}: this is another call", times);
        lines.push((false, Line::of(Style::of(Role::Warning).strong(), mark)));
    }
    lines.extend(shown.commands.iter().flat_map(verbatim));
    let is_said = |path: &&Untrusted| !shown.diffs.iter().any(|diff| diff.path == **path);
    let places = shown.paths.iter().filter(is_said).chain(&shown.urls);
    lines.extend(places.map(|place| (true, Line::of(Role::Name, Text::from(place)))));
    lines.extend(shown.diffs.iter().flat_map(of_diff));
    for part in &shown.unclear {
        let is_all = part.member.is_empty();
        let what = if is_all { "it".into() } else { text!("`{}`", part.member) };
        let line = text!("not understood: {} {}", what, part.why);
        lines.push((false, Line::of(Role::Warning, line)));
    }
    lines.extend(shown.raw.iter().flat_map(of_raw));
    if let Some(folder) = shown.folder.as_ref().or(cwd) {
        lines.push((false, Line::of(Role::Dim, text!("in {}", folder))));
    }
    if let Some(title) = shown.title.as_ref().filter(|title| !title.raw().trim().is_empty()) {
        lines.push((false, Line::of(Role::Dim, text!("called by the agent: \"{}\"", title))));
    }
    lines
}

fn of_diff(diff: &ShownDiff) -> Vec<(bool, Line)> {
    let head = |more: Text| (false, Line::of(Role::Name, &diff.path).and(Role::Plain, more));
    if diff.left_out > 0 {
        return vec![head(text!(": {} bytes of changes, too many to show", diff.left_out))];
    }
    let old = diff.old_text.as_ref().map(|text| marked(text, "- ", Role::Removed));
    let new = marked(&diff.new_text, "+ ", Role::Added);
    let kind = if diff.old_text.is_none() { " new file" } else { "" };
    std::iter::once(head(kind.into())).chain(old.into_iter().flatten()).chain(new).collect()
}

fn marked(text: &Untrusted, mark: &'static str, role: Role) -> Vec<(bool, Line)> {
    let line = |line| (true, Line::of(role, text!("{}{}", mark, escape::verbatim(line))));
    text.raw().lines().map(line).collect()
}

fn of_raw(call: &RawCall) -> Vec<(bool, Line)> {
    let mut lines = verbatim(&call.text);
    if call.left_out > 0 {
        let rest = text!("and {} bytes more, which are not shown", call.left_out);
        lines.push((false, Line::of(Role::Warning, rest)));
    }
    lines
}

/// Every line as it is.
fn verbatim(text: &Untrusted) -> Vec<(bool, Line)> {
    let line = |line| (true, Line::of(Role::Plain, Text::from(escape::verbatim(line))));
    text.raw().trim_end_matches('\n').split('\n').map(line).collect()
}

fn prose(text: &Untrusted) -> Vec<(bool, Line)> {
    let line = |line| (true, Line::of(Role::Plain, Text::from(escape::prose(line))));
    text.raw().trim_end().split('\n').map(line).collect()
}

fn of(line: Line, role: Role) -> Line {
    Line::of(role, line.plain())
}
