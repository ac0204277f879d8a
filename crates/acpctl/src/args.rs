//! Options that many verbs have.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use serde::de::DeserializeOwned;

/// Options of every verb.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Fail instead of starting the daemon.
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) no_spawn: bool,
    /// Work on another machine over ssh, or on `all` (or set `ACPCTL_HOST`).
    #[arg(long, global = true, help_heading = "Global options", value_name = "NAME")]
    pub(crate) host: Option<String>,
    /// Colour the output: auto, always or never [default: auto].
    #[arg(
        long,
        global = true,
        help_heading = "Global options",
        value_name = "WHEN",
        default_value = "auto",
        hide_default_value = true,
        hide_possible_values = true
    )]
    pub(crate) color: When,
}

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    Always,
    Never,
}

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Json {
    /// Print JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Reads a word as a value of acpd's API. Each word has a description or an empty text.
pub(crate) fn words<T: DeserializeOwned + Clone + Send + Sync + 'static>(
    words: impl IntoIterator<Item = (&'static str, &'static str)>,
) -> impl TypedValueParser<Value = T> {
    let value = |(word, what): (&'static str, &'static str)| match what {
        "" => PossibleValue::new(word),
        what => PossibleValue::new(word).help(what),
    };
    PossibleValuesParser::new(words.into_iter().map(value))
        .try_map(|word| serde_json::from_value(word.into()))
}
