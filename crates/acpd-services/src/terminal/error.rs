//! Errors of terminals, in words for the agent.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use super::types::{MOST_IN_ALL, MOST_OF_OWNER};

#[derive(Debug, Error)]
pub enum TerminalError {
    #[error("terminal `{id}` does not exist or was released")]
    Unknown { id: String },
    #[error("this agent has {MOST_OF_OWNER} terminals, which is the limit")]
    TooManyOfOwner,
    #[error("all agents together have {MOST_IN_ALL} terminals, which is the limit")]
    TooMany,
    #[error("cannot run a command in `{}`: it is not a directory", .cwd.display())]
    NoDirectory { cwd: PathBuf },
    #[error("`{name}` cannot be the name of an environment variable: it is empty or has a `=`")]
    BadVariable { name: String },
    #[error("cannot start `{command}`: {source}")]
    Start { command: String, source: io::Error },
}

impl TerminalError {
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            TerminalError::TooManyOfOwner | TerminalError::TooMany => {
                Some("release terminals that are not needed any more")
            }
            TerminalError::Start { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                Some("check the command and the PATH of the agent's environment")
            }
            TerminalError::Unknown { .. }
            | TerminalError::NoDirectory { .. }
            | TerminalError::BadVariable { .. }
            | TerminalError::Start { .. } => None,
        }
    }
}
