//! Variables of agents, and those that the daemon lacks.

use std::path::Path;

use acpd_api::{AgentInfo, Environment, Untrusted, VariableFrom, VariableInfo, is_named};

use crate::human;
use crate::text::{BOLD, Role, Table, Text, shell_word, text};

/// Describes the configured variables of an agent that the daemon lacks, and how to add them. `age`
/// is the daemon's age, if known.
pub(crate) fn lacking(agent: &AgentInfo, age: Option<u64>) -> Option<Text> {
    let here = Environment::own();
    let is_here = |name: &Untrusted| here.names().any(|own| is_named(name.raw(), own.as_bytes()));
    let all_here = agent.lacks.iter().all(is_here);
    sentence(agent, &agent.lacks, age, all_here)
}

/// Describes this terminal's variables that the agent would inherit from a daemon with them.
pub(crate) fn only_here(agent: &AgentInfo, age: Option<u64>) -> Option<Text> {
    let here = Environment::own();
    let is_wanted = |name: &&str| {
        agent.inherits.iter().any(|pattern| is_named(pattern.raw(), name.as_bytes()))
            && !agent.inherited.iter().any(|known| known == name)
    };
    let names: Vec<Untrusted> = here.names().filter(is_wanted).map(Untrusted::from).collect();
    sentence(agent, &names, age, true)
}

pub(crate) fn table(variables: &[VariableInfo], width: Option<usize>) -> Text {
    let row = |VariableInfo { name, value, from }: &VariableInfo| {
        let from = match from {
            VariableFrom::Daemon => "acpd",
            VariableFrom::LoginShell => "login shell",
            VariableFrom::Config => "configuration",
            VariableFrom::Credential => "credentials",
            VariableFrom::Other => "-",
        };
        let value = match value {
            Some(value) => Text::from(value),
            None => Text::styled(Role::Dim, "not shown"),
        };
        [Text::styled(BOLD, name), from.into(), value]
    };
    Table::new(["NAME", "FROM", "VALUE"], variables.iter().map(row)).render(width)
}

/// Describes how acpd can find an agent's program that this terminal finds.
pub(crate) fn found_here(agent: &AgentInfo) -> Option<Text> {
    let program = unknown_program(agent)?;
    let here = which::which(program.raw()).ok()?;
    let shell = match &agent.login_shell {
        None => text!(
            "; or let acpd ask your login shell: `login_shell = \"always\"` in `[daemon]`, then \
             `acpctl daemon restart`"
        ),
        Some(shell) => shell
            .problem
            .as_ref()
            .map(|why| text!("; your login shell: {}", why))
            .unwrap_or_default(),
    };
    Some(text!(
        "this terminal finds `{}`, but acpd does not: set `command = \"{}\"` in `[agents.{}]`{}",
        program,
        here,
        agent.name,
        shell
    ))
}

/// Explains a missing program by a login shell that did not report, because the shell may know more
/// than this terminal.
pub(crate) fn asked_in_vain(agent: &AgentInfo) -> Option<Text> {
    unknown_program(agent)?;
    let why = agent.login_shell.as_ref()?.problem.as_ref()?;
    Some(text!("your login shell did not report its environment: {}", why))
}

/// Returns the program if acpd does not find it in its search path.
fn unknown_program(agent: &AgentInfo) -> Option<&Untrusted> {
    let program = agent.command.first().filter(|_| agent.installed == Some(false))?;
    (Path::new(program.raw()).components().count() == 1).then_some(program)
}

fn sentence(
    agent: &AgentInfo,
    names: &[Untrusted],
    age: Option<u64>,
    is_here: bool,
) -> Option<Text> {
    if names.is_empty() {
        return None;
    }
    let names = Text::join(names.iter().map(Text::from), ", ");
    let age = age.map(|age| text!(", up {},", human::duration(age)));
    // A process keeps the environment of its start.
    let word = shell_word(&agent.name);
    let again = agent.pid.map(|_| text!(" && acpctl agent restart {}", word));
    let place = if is_here { "this terminal" } else { "a terminal that has it" };
    Some(text!(
        "acpd{} does not have {} in its environment: in {}, run `acpctl daemon restart{}`",
        age,
        names,
        place,
        again
    ))
}
