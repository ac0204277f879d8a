//! Variables that an agent should inherit from the daemon, and that the daemon does not have.

use acpd_api::{AgentInfo, Environment, Untrusted, is_named};

use crate::human;
use crate::text::{Text, shell_word, text};

/// Variables that the configuration names for an agent and the daemon, of this age if it is known, lacks; and the
/// way to them.
pub(crate) fn lacking(agent: &AgentInfo, age: Option<u64>) -> Option<Text> {
    let here = Environment::own();
    let is_here = |name: &Untrusted| here.names().any(|own| is_named(name.raw(), own.as_bytes()));
    let all_here = agent.lacks.iter().all(is_here);
    sentence(agent, &agent.lacks, age, all_here)
}

/// Variables of this terminal that the agent would inherit if the daemon had them, and the way to that.
pub(crate) fn only_here(agent: &AgentInfo, age: Option<u64>) -> Option<Text> {
    let here = Environment::own();
    let is_wanted = |name: &&str| {
        agent.inherits.iter().any(|pattern| is_named(pattern.raw(), name.as_bytes()))
            && !agent.inherited.iter().any(|known| known == name)
    };
    let names: Vec<Untrusted> = here.names().filter(is_wanted).map(Untrusted::from).collect();
    sentence(agent, &names, age, true)
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
    // A process keeps the environment that it was started with.
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
