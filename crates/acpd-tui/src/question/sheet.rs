//! The whole question in lines. A bar precedes an agent's text, so that it cannot pass for acpd's
//! words.

use acpd_api::{InteractionInfo, Question, Untrusted, escape};
use acpd_view::text::Text;
use acpd_view::{Role, Sheet, about, text};

use super::form;

const BAR: &str = "  │ ";

pub fn rows(question: &InteractionInfo, width: usize) -> Vec<Text> {
    match &question.question {
        Question::Permission { shown: Some(shown), changed, .. } => {
            Sheet::new("", shown, *changed).whole(Some(width))
        }
        Question::Permission { title, subject, .. } => {
            let unknown = "  a daemon of another version does not say what is asked";
            let asked = subject.as_ref().or(title.as_ref());
            let asked = asked.map(|asked| behind_bar(asked, Role::Plain, width));
            let mut rows = vec![Text::of(Role::Warning, unknown)];
            rows.extend(asked.into_iter().flatten());
            rows
        }
        Question::Form { message, .. } => {
            let mut rows = behind_bar(message, Role::Plain, width);
            let form = form::read(question);
            let about = form.iter().flat_map(|form| form.title.iter().chain(&form.description));
            rows.extend(about.flat_map(|about| behind_bar(&about.into(), Role::Plain, width)));
            if form.is_none() {
                let how = text!("  fill it in: acpctl answer {}", question.id);
                rows.push(Text::of(Role::Warning, how));
            }
            rows
        }
        Question::Url { message, url } => {
            let mut rows = behind_bar(message, Role::Plain, width);
            rows.extend(behind_bar(url, Role::Link, width));
            let host = about::host_of(url.raw()).map(Untrusted::from);
            rows.extend(host.map(|host| Text::of(Role::Name, text!("  leads to {}", host))));
            rows
        }
    }
}

fn behind_bar(text: &Untrusted, role: Role, width: usize) -> Vec<Text> {
    let room = width.saturating_sub(BAR.chars().count()).max(2);
    let lines = text.raw().trim_end().split('\n');
    let lines = lines.map(|line| Text::of(role, Text::from(escape::prose(line))));
    lines.flat_map(|line| line.wrap(room)).map(|row| Text::of(Role::Dim, BAR) + row).collect()
}
