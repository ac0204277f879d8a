//! A permission question on the screen, and the input for its answers.

use acp_wire::Id;
use acp_wire::acp::{PermissionOption, PermissionRequest};
use acpd_api::{PermissionMeta, RawCall, Shown, ShownUnclear, Untrusted};
use acpd_view::{Sheet, about};
use serde_json::value::RawValue;

use crate::text::{BOLD, Role, Text, text};

/// For an answer that does not fit on the screen and has no key.
const CUT_WIDTH: usize = 28;
/// Minimum rows for the call.
const CALL_ROWS: usize = 8;
const INDENT: &str = "      ";

#[derive(Debug)]
pub(super) struct Question {
    pub(super) id: Id,
    /// The name in the daemon's notices.
    pub(super) name: String,
    pub(super) sheet: Sheet,
    choices: Vec<Choice>,
    always: Option<Untrusted>,
}

#[derive(Debug)]
struct Choice {
    typed: Typed,
    option: PermissionOption,
    is_cut: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Typed {
    Key(char),
    /// A word and Enter.
    Word(&'static str),
    /// None: the answer is too long to be shown whole.
    Elsewhere,
}

/// A daemon of another version sends nothing about the call, so the call counts as not understood.
pub(super) fn unknown(question: &PermissionRequest<'_>, params: &RawValue) -> PermissionMeta {
    let unclear =
        ShownUnclear { why: "comes from a daemon of another version".into(), ..Default::default() };
    let shown = Shown {
        kind: question.kind.as_deref().unwrap_or("other").into(),
        title: question.title.as_deref().map(Into::into),
        unclear: vec![unclear],
        raw: Some(RawCall::beginning(params.get())),
        ..Shown::default()
    };
    PermissionMeta { shown, ..PermissionMeta::default() }
}

impl Question {
    pub(super) fn new(
        id: Id,
        head: &'static str,
        meta: &PermissionMeta,
        question: &PermissionRequest<'_>,
    ) -> Question {
        let PermissionMeta { id: name, shown, changed } = meta;
        let sheet = Sheet::new(head, shown, *changed);
        let choices = choices(&question.options, sheet.is_easy());
        Question { id, name: name.clone(), sheet, choices, always: shown.always.clone() }
    }

    pub(super) fn of_key(&self, key: char) -> Option<&PermissionOption> {
        self.choices.iter().find(|choice| choice.typed == Typed::Key(key)).map(|c| &c.option)
    }

    pub(super) fn of_word(&self, typed: &str) -> Option<&PermissionOption> {
        let is_it = |choice: &&Choice| matches!(choice.typed, Typed::Word(word) if word == typed);
        self.choices.iter().find(is_it).map(|choice| &choice.option)
    }

    pub(super) fn takes_words(&self) -> bool {
        self.choices.iter().any(|choice| matches!(choice.typed, Typed::Word(_)))
    }

    /// Removes the key of each allowing answer that is too long for this screen.
    pub(super) fn fit(&mut self, (width, height): (usize, usize)) {
        let together: usize = self.choices.iter().map(|choice| choice.line().width() + 2).sum();
        if together <= width {
            return;
        }
        let mut room = height.saturating_sub(CALL_ROWS).max(height / 2);
        for choice in &mut self.choices {
            let rows = hanging(&choice.line(), width).len();
            if rows <= room {
                room -= rows;
            } else {
                choice.is_cut = true;
                if !is_refusal(&choice.option) {
                    choice.typed = Typed::Elsewhere;
                }
            }
        }
    }

    /// Returns the question, all of it if it fits on the screen.
    pub(super) fn prompt(&self, (width, height): (usize, usize)) -> Text {
        // The cursor needs a row.
        let keys = self.keys(usize::MAX, width).len() + 1;
        let (mut lines, hidden) = self.sheet.fitting(width, height.saturating_sub(keys));
        lines.extend(self.keys(hidden, width));
        Text::lines(&lines)
    }

    /// Returns the rows with the possible input: one row if everything fits, or else at least one
    /// per answer. The scope of an "always" answer has its own row.
    pub(super) fn keys(&self, hidden: usize, width: usize) -> Vec<Text> {
        let view = Text::of(BOLD, "[v]").and(Role::Plain, " show all of it");
        let mut lines: Vec<Text> = self.choices.iter().map(Choice::line).collect();
        if hidden > 0 {
            lines.push(view);
        }
        let together: usize = lines.iter().map(|line| line.width() + 2).sum();
        let mut rows = Vec::new();
        if together <= width {
            rows.push(lines.into_iter().map(|line| Text::from("  ") + line).collect());
        } else {
            rows.extend(lines.iter().flat_map(|line| hanging(line, width)));
        }
        let has_always = self.choices.iter().any(|choice| choice.option.kind == "allow_always");
        let always = has_always.then(|| about::remembers(self.always.as_ref()));
        let always = always.map(|always| Text::of(Role::Dim, text!("always: {}", always)));
        rows.extend(always.iter().flat_map(|line| hanging(line, width)));
        rows
    }
}

impl Choice {
    fn line(&self) -> Text {
        let typed = match self.typed {
            Typed::Key(key) => text!("[{}]", key),
            Typed::Word(word) => text!("[{} + Enter]", word),
            Typed::Elsewhere => "[ ]".into(),
        };
        let label = label(&self.option);
        let label = match self.typed {
            Typed::Elsewhere => text!("{} too long for a key: acpctl answer", label.cut(CUT_WIDTH)),
            _ if self.is_cut => label.cut(CUT_WIDTH),
            _ => label,
        };
        Text::of(BOLD, typed).and(Role::Plain, text!(" {}", label))
    }
}

pub(super) fn label(option: &PermissionOption) -> Text {
    about::option(&option.kind, &option.name.as_str().into())
}

fn is_refusal(option: &PermissionOption) -> bool {
    option.kind.starts_with("reject_")
}

/// Wraps a line with a hanging indent.
fn hanging(line: &Text, width: usize) -> Vec<Text> {
    let rows = line.wrap(width.saturating_sub(INDENT.len()).max(INDENT.len()));
    let rows = rows.into_iter().enumerate();
    rows.map(|(at, row)| Text::from(if at == 0 { "  " } else { INDENT }) + row).collect()
}

pub(super) fn waiting(question: &Question) -> Text {
    let names = question.choices.iter().map(|choice| label(&choice.option));
    let call = Text::lines(&question.sheet.whole(None));
    let names = text!("  ({})", Text::join(names, " / "));
    let hint = "answer with `acpctl allow` or `acpctl deny`, or in another client; Ctrl-C cancels the turn";
    text!("{}{}\n{}\n", call, Text::styled(Role::Warning, names), Text::styled(Role::Dim, hint))
}

/// Assigns input to each option: a letter by its kind, or a number if several have the kind. If the
/// question is not easy, only a refusal has a key; the others need a word. An answer whose name
/// says the opposite of its effect also needs a word. Options without input are answered elsewhere.
fn choices(options: &[PermissionOption], is_easy: bool) -> Vec<Choice> {
    const DIGITS: &str = "123456789";
    let is_alone = |kind: &str| options.iter().filter(|option| option.kind == kind).count() == 1;
    let of_kind = |kind: &str| match kind {
        "allow_once" => Some(('y', "allow")),
        "allow_always" => Some(('a', "always")),
        "reject_once" => Some(('n', "reject")),
        "reject_always" => Some(('d', "never")),
        _ => None,
    };
    let by_place = |at: usize| {
        let digit = DIGITS.get(at..=at)?;
        Some((digit.chars().next()?, digit))
    };
    let choice = |(at, option): (usize, &PermissionOption)| {
        let by_kind = of_kind(&option.kind).filter(|_| is_alone(&option.kind));
        let (key, word) = by_kind.or_else(|| by_place(at))?;
        let is_plain = !about::says_the_opposite(&option.kind, &option.name.as_str().into());
        let is_key = is_plain && (is_easy || is_refusal(option));
        let typed = if is_key { Typed::Key(key) } else { Typed::Word(word) };
        Some(Choice { typed, option: option.clone(), is_cut: false })
    };
    options.iter().enumerate().filter_map(choice).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meta(title: &str, command: &str) -> PermissionMeta {
        let shown = Shown {
            kind: "execute".into(),
            title: Some(title.into()),
            commands: vec![command.into()],
            ..Shown::default()
        };
        PermissionMeta { shown, ..PermissionMeta::default() }
    }

    fn question(meta: &PermissionMeta, kinds: &[&str]) -> Question {
        let option = |kind: &&str| PermissionOption {
            option_id: format!("id-{kind}"),
            name: kind.replace('_', " "),
            kind: (*kind).to_owned(),
        };
        let options: Vec<PermissionOption> = kinds.iter().map(option).collect();
        let request = PermissionRequest { options, ..PermissionRequest::of_call(None) };
        Question::new(1.into(), "allow? ", meta, &request)
    }

    fn prompt(question: &Question) -> Text {
        question.prompt((80, 24))
    }

    const ALL: [&str; 4] = ["allow_once", "allow_always", "reject_once", "reject_always"];

    #[test]
    fn each_kind_has_its_letter() {
        let question = question(&meta("rm -rf build", "rm -rf build"), &ALL);
        insta::assert_snapshot!(prompt(&question), @"
        allow? $ rm -rf build
          [y] allow once  [a] allow always  [n] reject once  [d] reject always
          always: acpd remembers nothing; the agent may remember more than this call
        ");
        insta::assert_snapshot!(waiting(&question), @"
        allow? $ rm -rf build
          (allow once / allow always / reject once / reject always)
        answer with `acpctl allow` or `acpctl deny`, or in another client; Ctrl-C cancels the turn
        ");
    }

    #[test]
    fn l6_a_question_fits_on_the_screen_whatever_is_in_it() {
        let fake = "\n".repeat(45) + "  [y] Allow";
        let many = ["x".repeat(9000).leak() as &str; 20];
        let mut question = question(&meta(&"t".repeat(9000), &fake), &many);
        question.fit((80, 24));
        let text = question.prompt((80, 24));
        let rows: usize = text.as_str().lines().map(|line| line.chars().count().div_ceil(80)).sum();
        assert!(rows < 24, "{text}");
        assert!(text.as_str().starts_with("allow? $ t"));
        assert!(text.as_str().ends_with("[v] show all of it\n"), "{text}");
    }

    #[test]
    fn what_a_key_allows_is_never_cut() {
        let option = |kind: &str, name: &str| PermissionOption {
            option_id: kind.into(),
            name: name.into(),
            kind: kind.into(),
        };
        let long = "Yes, and don't ask again for touch made* and rm -rf target commands";
        let options = vec![
            option("allow_once", "No, reject it"),
            option("allow_always", long),
            option("reject_once", "No"),
        ];
        let request = PermissionRequest { options, ..PermissionRequest::of_call(None) };
        let mut meta = meta("t", "touch made");
        meta.shown.always = Some("run `touch made` in /w".into());
        let mut question = Question::new(1.into(), "allow? ", &meta, &request);
        question.fit((60, 24));
        insta::assert_snapshot!(question.prompt((60, 24)), @r#"
        allow? $ t
          │ touch made
          [allow + Enter] allow once: "No, reject it"
          [a] allow always: "Yes, and don't ask again for touch
              made* and rm -rf target commands"
          [n] No
          always: acpd remembers exactly this: run `touch made`
              in /w
        "#);
        // Only a word allows what is called a refusal.
        assert_eq!(question.of_key('y'), None);
        assert_eq!(question.of_word("allow").unwrap().kind, "allow_once");
        // On a screen that cannot show it, nothing can be pressed for it.
        question.fit((30, 10));
        assert_eq!(question.of_key('a'), None);
        assert_eq!(question.of_key('n').unwrap().kind, "reject_once");
    }

    #[test]
    fn choosers_and_unknown_kinds_get_numbers() {
        let kinds = ["allow_once", "allow_once", "reject_once", "allow_persistent"];
        let question = question(&meta("t", "ls"), &kinds);
        let keys = question.choices.iter().map(|choice| match choice.typed {
            Typed::Key(key) => key,
            Typed::Word(_) | Typed::Elsewhere => '?',
        });
        assert_eq!(keys.collect::<String>(), "12n4");
    }
}
