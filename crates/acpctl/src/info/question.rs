use acpd_api::{AnswerInfo, AnswerResult, InteractionInfo, Question, QuestionAnswered, Untrusted};
use acpd_view::about;

use crate::human;
use crate::text::{BOLD, Role, Table, Text, shell_word, text};

pub(crate) fn own_option(name: &Untrusted) -> Text {
    text!(
        "the agent remembers its own option `{}`: it may not ask again, and `policy forget` does not undo that",
        name
    )
}

pub(crate) fn remembered(open: &InteractionInfo, given: &AnswerResult, kind: &str) -> Vec<Text> {
    let mut lines: Vec<Text> = given.own_option.iter().map(own_option).collect();
    if let Some(id) = given.remembered {
        let agent = &open.agent;
        lines.push(text!(
            "acpd remembers exactly this call; to undo it: acpctl policy forget {}",
            id
        ));
        if let (Question::Permission { options, .. }, None) = (&open.question, &given.own_option)
            && let Some(own) = options.iter().find(|option| option.kind == kind)
        {
            let word = shell_word(&own.option_id);
            lines.push(text!(
                "{} keeps asking, and acpd answers; its own option `{}` (`--option {}`) may cover more",
                agent,
                own.name,
                word
            ));
        }
    }
    lines
}

pub(crate) fn table(open: &[InteractionInfo], now: u64, width: Option<usize>) -> Text {
    let row = |open: &InteractionInfo| {
        [
            Text::styled(BOLD, &open.id),
            human::duration(now.saturating_sub(open.at)),
            (&open.agent).into(),
            Text::styled(Role::Name, text!("{}{}", session(open), wanted_by(open))),
            asked(&open.question),
        ]
    };
    let titles = ["ID", "AGE", "AGENT", "SESSION", "QUESTION"];
    Table::new(titles, open.iter().map(row)).render(width)
}

pub(crate) fn described(open: &InteractionInfo) -> Text {
    text!("{} {}", asked(&open.question), asker(open))
}

pub(crate) fn given(answered: &QuestionAnswered) -> Text {
    match &answered.answer {
        AnswerInfo::Option { option } => (&option.name).into(),
        AnswerInfo::Accept => "accepted".into(),
        AnswerInfo::Decline => "declined".into(),
        AnswerInfo::Cancel => "cancelled".into(),
    }
}

pub(crate) fn asker(open: &InteractionInfo) -> Text {
    let session = session(open).map(|session| text!(", {}", session));
    text!("({}{}{})", open.agent, session, wanted_by(open))
}

/// Returns the session that delegated to the asking session.
fn wanted_by(open: &InteractionInfo) -> Option<Text> {
    open.parent.as_ref().map(|parent| text!(", for {}", parent))
}

pub(crate) fn waits(open: &InteractionInfo) -> Text {
    let (what, how) = match &open.question {
        Question::Permission { .. } => ("permission", "`acpctl allow` or `acpctl deny`"),
        Question::Form { .. } | Question::Url { .. } => ("an answer", "`acpctl answer`"),
    };
    text!("waiting for {}: {} ({} {})", what, asked(&open.question), how, open.id)
}

fn session(open: &InteractionInfo) -> Option<&Untrusted> {
    open.name.as_ref().or(open.session_id.as_ref())
}

/// Describes a question in one line: by acpd's reading of the call, or else by the agent's title.
pub(crate) fn asked(question: &Question) -> Text {
    match question {
        Question::Permission { title, subject, .. } => {
            subject.as_ref().or(title.as_ref()).map_or_else(|| "a tool call".into(), Text::from)
        }
        Question::Form { .. } | Question::Url { .. } => about::asked(question),
    }
}
