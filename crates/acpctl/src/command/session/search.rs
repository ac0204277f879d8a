//! `acpctl session search`: full-text search in conversations.

use acpd_api::{Hit, Part, SearchParams, SearchResult, Speaker, escape, method};
use clap::Args;

use crate::args::Json;
use crate::dirs::current_dir;
use crate::error::Result;
use crate::human;
use crate::text::{BOLD, Role, Text, text};
use crate::ui::Ui;

#[derive(Debug, Args)]
#[command(after_long_help = examples!(
    "\
Searches messages and titles of tool calls, and ignores case, accents and punctuation. Quoted words must be adjacent: \
'merge conflict'. A `*` stands for the rest of a word: 'pars*'. Only ended turns are searched.";
    "acpctl session search parser 'merge conf*'" =>
        "Find turns with `parser` and, for example, `merge conflict`",
    "acpctl session search --here flaky" => "Search only sessions of this directory",
))]
pub(in crate::command) struct Search {
    /// Words to find; a match has all of them.
    #[arg(required = true, value_name = "WORDS")]
    words: Vec<String>,
    /// Only in sessions of this agent.
    #[arg(short, long)]
    agent: Option<String>,
    /// Only in sessions of the current directory.
    #[arg(long)]
    here: bool,
    /// Show at most N matches.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20,
        value_parser = clap::value_parser!(u32).range(1..=1000))]
    limit: u32,
    #[command(flatten)]
    json: Json,
}

pub(super) fn search(args: &Search, ui: &mut Ui) -> Result {
    let here = || ui.place_of(&current_dir()?);
    let params = SearchParams {
        words: args.words.clone(),
        agent: args.agent.clone(),
        cwd: args.here.then(here).transpose()?,
        limit: Some(args.limit),
    };
    let found: SearchResult = ui.door().connect()?.call(method::SESSION_SEARCH, &params)?;
    let (now, nothing) = (human::now(), found.hits.is_empty().then_some("nothing found"));
    let hits: Text = found.hits.iter().map(|hit| entry(hit, now)).collect();
    ui.show_list(args.json.json, &found, nothing, hits)
}

fn entry(hit: &Hit, now: u64) -> Text {
    let by = match hit.by {
        Speaker::User => "you",
        Speaker::Agent => "agent",
        Speaker::Tool => "tool",
    };
    let place = text!("{}  {}  {}", hit.session.agent, human::ago(hit.at, now), by);
    let handle = Text::styled(Role::Name, hit.session.handle());
    text!("{}  {}\n    {}\n", handle, Text::styled(Role::Dim, place), line(&hit.snippet))
}

fn line(snippet: &[Part]) -> Text {
    let mut after_space = true;
    let pieces = snippet.iter().map(|part| {
        let mut text = String::new();
        for char in part.text.raw().chars() {
            let is_space = char.is_whitespace();
            if !(is_space && after_space) {
                text.push(if is_space { ' ' } else { char });
            }
            after_space = is_space;
        }
        let text = escape::verbatim(&text);
        if part.hit { Text::styled(BOLD, text) } else { text.into() }
    });
    pieces.collect::<Text>().trim_end()
}
