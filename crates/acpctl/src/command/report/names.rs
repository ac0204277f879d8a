//! Removes the user and the machine from a text.

use std::env;
use std::path::is_separator;

use acpd_api::redact::{HIDDEN, is_secret_name};

/// Shorter values are not replaced: they occur in many words.
const MIN_SECRET_LENGTH: usize = 6;

/// Returns names of this user and machine, and secrets in the environment, each with its
/// replacement.
fn names() -> Vec<(String, &'static str)> {
    let variable = |name: &str| env::var(name).ok();
    let home = env::home_dir().and_then(|home| home.into_os_string().into_string().ok());
    let user = variable("USER").or_else(|| variable("LOGNAME"));
    let of_home =
        home.as_deref().and_then(|home| home.rsplit(is_separator).next()).map(str::to_owned);
    let host = acpd_sys::machine::host_name();
    let short = host.as_deref().and_then(|host| host.split('.').next()).map(str::to_owned);
    let secrets = env::vars_os().filter_map(|(name, value)| {
        let is_secret = name.to_str().is_some_and(is_secret_name);
        value.into_string().ok().filter(|value| is_secret && value.len() >= MIN_SECRET_LENGTH)
    });
    let mut all: Vec<(String, &'static str)> = secrets.map(|secret| (secret, HIDDEN)).collect();
    let home = home.map(|home| home.trim_end_matches(is_separator).to_owned());
    all.extend(home.map(|home| (home, "~")));
    all.extend([user, of_home].into_iter().flatten().map(|user| (user, "USER")));
    all.extend([host, short].into_iter().flatten().map(|host| (host, "HOST")));
    all.retain(|(name, _)| !name.is_empty());
    all
}

/// Replaces names that are whole words.
pub(super) fn without_names(text: &str) -> String {
    names().iter().fold(text.to_owned(), |text, (name, instead)| replaced(&text, name, instead))
}

fn replaced(text: &str, name: &str, instead: &str) -> String {
    let is_part = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = None;
    while let Some(at) = rest.find(name) {
        let (head, tail) = rest.split_at(at);
        let (found, after) = tail.split_at(name.len());
        out.push_str(head);
        let is_inside =
            is_part(head.chars().next_back().or(before)) && is_part(name.chars().next());
        let goes_on = is_part(after.chars().next()) && is_part(name.chars().next_back());
        out.push_str(if is_inside || goes_on { found } else { instead });
        before = found.chars().next_back();
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_words_are_replaced_and_parts_of_others_stay() {
        let names = [("/home/ada", "~"), ("ada", "USER"), ("box", "HOST"), ("hunter2", HIDDEN)];
        let text = "/home/ada/x of ada@box, adamant boxes and box.local; /home/adam hunter2!";
        let clean = "~/x of USER@HOST, adamant boxes and HOST.local; /home/adam [hidden]!";
        let shown =
            names.iter().fold(text.to_owned(), |text, (name, by)| replaced(&text, name, by));
        assert_eq!(shown, clean);
    }
}
