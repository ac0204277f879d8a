//! `acpd login`: becomes the program that logs an agent in, in the user's terminal. `acpctl auth
//! login` runs it, because only the daemon's program knows how agents are started.

use std::io;
use std::process::Command;

use acpd_sys::process::become_program;

use crate::check;
use crate::config;
use crate::failure::Failure;

#[derive(Debug, clap::Args)]
pub struct Login {
    /// The agent.
    agent: String,
    /// Add the words to the agent's own command line.
    #[arg(long)]
    own: bool,
    /// A variable to set.
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// The command line.
    #[arg(last = true)]
    words: Vec<String>,
}

/// Executes the login in this process, with the agent's environment; returns only on failure.
pub fn run(login: Login) -> Failure {
    let agent = login.agent.clone();
    match prepare(login) {
        Ok(mut command) => {
            let error = become_program(&mut command);
            let program = command.get_program().to_string_lossy();
            let hint = (error.kind() == io::ErrorKind::NotFound).then(|| {
                format!("install it, or set another command: `login` of `[agents.{agent}]`")
            });
            Failure::new(format!("cannot run `{program}`: {error}"), hint)
        }
        Err(failure) => failure,
    }
}

fn prepare(login: Login) -> Result<Command, Failure> {
    let config = check::configuration(&check::paths()?)?;
    let profile = config.agent(&login.agent)?;
    let mut env = config::environment(profile, std::env::vars_os());
    for variable in &login.env {
        if let Some((name, value)) = variable.split_once('=') {
            env.push((name.into(), value.into()));
        }
    }
    let (program, args) = if login.own {
        let exe = std::env::current_exe().unwrap_or_default();
        let (program, args) = config::command_line(profile, &env, &exe)?;
        (program, args.into_iter().chain(login.words).collect::<Vec<_>>())
    } else {
        let mut words = login.words.into_iter();
        (words.next().unwrap_or_default().into(), words.collect())
    };
    let mut command = Command::new(program);
    command.args(args).env_clear().envs(env);
    if let Some(cwd) = profile.cwd.as_ref().filter(|_| login.own) {
        command.current_dir(cwd);
    }
    Ok(command)
}
