//! Short forms of agents' texts for lists: the beginning, or the last line.

use acpd_api::Doing;

/// Returns the beginning of a text, on one line without control characters.
pub(crate) fn gist(text: &str) -> String {
    let mut gist = String::new();
    add_to_gist(&mut gist, text);
    gist.trim_end().to_owned()
}

/// Continues a beginning, up to its greatest length.
pub(crate) fn add_to_gist(gist: &mut String, more: &str) {
    let mut chars = gist.chars().count();
    for c in more.chars() {
        let c = if c.is_whitespace() { ' ' } else { c };
        let is_nothing = c == ' ' && (gist.is_empty() || gist.ends_with(' '));
        if c.is_control() || is_nothing {
            continue;
        }
        if chars == Doing::TEXT {
            gist.pop();
            return gist.push('…');
        }
        gist.push(c);
        chars += 1;
    }
}

pub(crate) fn is_full(gist: &str) -> bool {
    gist.ends_with('…') && gist.chars().count() == Doing::TEXT
}

/// Returns the last line of an unfinished text, or its last words that fit.
pub(crate) fn last_line(text: &str) -> String {
    let line = text.trim_end().rsplit('\n').next().unwrap_or_default();
    let mut words = Vec::new();
    let mut room = Doing::TEXT + 1;
    for word in line.split_whitespace().rev() {
        let takes = word.chars().count() + 1;
        if takes > room && !words.is_empty() {
            break;
        }
        room = room.saturating_sub(takes);
        words.push(word);
    }
    words.reverse();
    gist(&words.join(" "))
}
