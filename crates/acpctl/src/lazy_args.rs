//! Arguments that are declared when their verb is typed: one verb does not pay for all the others.

use clap::builder::Resettable;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches, Subcommand};

/// Arguments of one verb.
#[derive(Debug)]
pub(crate) struct LazyArgs<T>(pub(crate) T);

impl<T: FromArgMatches> FromArgMatches for LazyArgs<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<LazyArgs<T>, Error> {
        T::from_arg_matches(matches).map(LazyArgs)
    }

    fn from_arg_matches_mut(matches: &mut ArgMatches) -> Result<LazyArgs<T>, Error> {
        T::from_arg_matches_mut(matches).map(LazyArgs)
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

/// Declares arguments. The description of the verb in the list of verbs wins over that of its arguments.
fn keep_about(command: Command, declare: fn(Command) -> Command) -> Command {
    let (about, long) = (command.get_about().cloned(), command.get_long_about().cloned());
    declare(command).about(Resettable::from(about)).long_about(Resettable::from(long))
}
