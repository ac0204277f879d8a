//! Options that many verbs have, and arguments that are declared lazily.

use clap::builder::{PossibleValue, PossibleValuesParser, Resettable, TypedValueParser};
use clap::{ArgMatches, Args, Command, Error, FromArgMatches, Subcommand, ValueEnum};
use serde::de::DeserializeOwned;

/// Options of every verb.
#[derive(Debug, Args)]
pub(crate) struct Global {
    /// Fail instead of starting the daemon.
    #[arg(long, global = true, help_heading = "Global options")]
    pub(crate) no_spawn: bool,
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

/// Machine-readable output.
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

/// Arguments that are declared only for the typed verb, to start faster.
#[derive(Debug)]
pub(crate) struct LazyArgs<T>(pub(crate) T);

impl<T: FromArgMatches> FromArgMatches for LazyArgs<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<LazyArgs<T>, Error> {
        T::from_arg_matches(matches).map(LazyArgs)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl<T: Args> Args for LazyArgs<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(|command| keep_about(command, T::augment_args))
    }

    fn augment_args_for_update(command: Command) -> Command {
        command.defer(|command| keep_about(command, T::augment_args_for_update))
    }
}

impl<T: Subcommand> Subcommand for LazyArgs<T> {
    fn augment_subcommands(command: Command) -> Command {
        command.defer(|command| keep_about(command, T::augment_subcommands))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        command.defer(|command| keep_about(command, T::augment_subcommands_for_update))
    }

    fn has_subcommand(name: &str) -> bool {
        T::has_subcommand(name)
    }
}

/// Declares arguments. The verb's description in the list of verbs replaces that of its arguments.
fn keep_about(command: Command, declare: fn(Command) -> Command) -> Command {
    let (about, long) = (command.get_about().cloned(), command.get_long_about().cloned());
    declare(command).about(Resettable::from(about)).long_about(Resettable::from(long))
}
