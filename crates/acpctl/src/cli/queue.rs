//! Arguments of `queue`.

use acpd_api::QueueStep;
use clap::{Args, Subcommand, ValueEnum};

use super::{Json, Which, WhichOrLast};

/// Arguments of `queue`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Queue {
    #[command(subcommand)]
    pub(crate) command: Option<QueueCommand>,
    #[command(flatten)]
    pub(crate) which: WhichOrLast,
    #[command(flatten)]
    pub(crate) json: Json,
}

#[derive(Debug, Subcommand)]
pub(crate) enum QueueCommand {
    /// Say something else in a prompt that waits. Files and images that are with it stay.
    Edit {
        #[command(flatten)]
        which: Which,
        /// Its number, as `acpctl queue SESSION` shows it: 1 is the next.
        #[arg(value_name = "N")]
        number: u32,
        /// The new words [default: from stdin, or on a terminal from $VISUAL or $EDITOR].
        #[arg(value_name = "PROMPT")]
        prompt: Vec<String>,
    },
    /// Move a prompt that waits: one up, one down, or before all others.
    Move {
        #[command(flatten)]
        which: Which,
        /// Its number, as `acpctl queue SESSION` shows it: 1 is the next.
        #[arg(value_name = "N")]
        number: u32,
        /// Where to.
        #[arg(value_name = "WHERE")]
        to: Step,
    },
    /// Take back prompts that wait. Whoever sent one is told.
    Rm {
        #[command(flatten)]
        which: Which,
        /// Their numbers, as `acpctl queue SESSION` shows them.
        #[arg(required = true, value_name = "N")]
        numbers: Vec<u32>,
    },
}

/// Where `queue move` moves a prompt to.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum Step {
    /// Before all others.
    First,
    /// Before the one in front of it.
    Up,
    /// Behind the one that follows it.
    Down,
}

impl From<Step> for QueueStep {
    fn from(step: Step) -> QueueStep {
        match step {
            Step::First => QueueStep::First,
            Step::Up => QueueStep::Up,
            Step::Down => QueueStep::Down,
        }
    }
}
