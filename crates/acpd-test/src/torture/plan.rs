//! The plan of a round, from the seed and the round's number: prompts, targets and times of
//! strikes.

use std::fmt;

use crate::rng::Rng;

/// Agent profiles of the home; each serves one kind of client.
pub(super) const AGENTS: [&str; 3] = ["one", "two", "three"];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum By {
    /// The editor behind the bridge, agent `one`.
    Editor,
    /// `acpctl run`, agent `two`.
    Run,
    /// The client with a token, agent `three`.
    Token,
}

impl By {
    pub(super) const ALL: [By; 3] = [By::Editor, By::Run, By::Token];

    /// Agent (an index of [`AGENTS`]) and session.
    pub(super) fn index(self) -> usize {
        self as usize
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Strike {
    Daemon,
    /// SIGKILL to the daemon; the next one dies at this point, at the given visit.
    Point(String, u32),
    Shim(usize),
    /// SIGKILL to the leader of an agent.
    Agent(usize),
    /// SIGKILL to the processes that an agent has started.
    Child(usize),
    Bridge,
    Run,
    Attach,
    /// The connection of the client with a token is cut.
    Cut,
    Term,
    Restart,
    /// `acpctl daemon stop --detach`.
    Detach,
}

impl Strike {
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Strike::Daemon => "daemon",
            Strike::Point(..) => "daemon at a point",
            Strike::Shim(_) => "shim",
            Strike::Agent(_) => "agent",
            Strike::Child(_) => "agent's child",
            Strike::Bridge => "bridge",
            Strike::Run => "run",
            Strike::Attach => "attach",
            Strike::Cut => "connection cut",
            Strike::Term => "SIGTERM",
            Strike::Restart => "daemon restart",
            Strike::Detach => "daemon stop --detach",
        }
    }
}

impl fmt::Display for Strike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Strike::Point(name, count) => write!(f, "daemon at {name}:{count}"),
            Strike::Shim(agent) | Strike::Agent(agent) | Strike::Child(agent) => {
                write!(f, "{} of {}", self.kind(), AGENTS[*agent])
            }
            _ => f.write_str(self.kind()),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Prompt {
    /// First word of the prompt, and name of its chunks; unique.
    pub(super) tag: String,
    pub(super) by: By,
    pub(super) text: String,
    /// Numbered chunks of the whole answer.
    pub(super) chunks: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) prompts: Vec<Prompt>,
    /// Strikes, with the number of lines seen in this round by then.
    pub(super) strikes: Vec<(u64, Strike)>,
    /// The tool starts a missing daemon, otherwise the clients do.
    pub(super) starts_daemon: bool,
}

impl Plan {
    pub(super) fn random(seed: u64, round: u64, points: &[String]) -> Plan {
        let mut rng = Rng::of_round(seed, round);
        let prompts = prompts(&mut rng, round);
        let lines: u64 = prompts.iter().map(|prompt| 2 * prompt.chunks).sum();
        let strikes = 1 + rng.below_u64(2);
        let mut strikes: Vec<_> = (0..strikes)
            .map(|_| (rng.below_u64(lines + lines / 8), strike(&mut rng, points)))
            .collect();
        strikes.sort_by_key(|(at, _)| *at);
        Plan { prompts, strikes, starts_daemon: rng.below_u64(2) == 0 }
    }

    /// A round of the matrix: the daemon dies at this point, with the events that lead there.
    pub(super) fn at_point(seed: u64, round: u64, point: &str, count: u32) -> Plan {
        let mut rng = Rng::of_round(seed, round);
        let prompts = prompts(&mut rng, round);
        let lines: u64 = prompts.iter().map(|prompt| prompt.chunks).sum();
        let agent = rng.below(3);
        let strikes = vec![
            (lines / 5, Strike::Point(point.to_owned(), count)),
            (lines / 2, Strike::Agent(agent)),
            // Two agents: the first may have been lost with the daemon already.
            (2 * lines / 3, Strike::Agent((agent + 1) % 3)),
            (lines, Strike::Restart),
        ];
        Plan { prompts, strikes, starts_daemon: true }
    }
}

fn prompts(rng: &mut Rng, round: u64) -> Vec<Prompt> {
    let mut prompts = Vec::new();
    for by in By::ALL {
        // The second one waits for the first.
        let count = if by == By::Token { 1 + rng.below_u64(2) } else { 1 };
        for n in 0..count {
            prompts.push(prompt(rng, by, format!("r{round}{}{n}", AGENTS[by.index()])));
        }
    }
    prompts
}

fn prompt(rng: &mut Rng, by: By, tag: String) -> Prompt {
    let chunks = 20 + rng.below_u64(100);
    let pause = rng.below_u64(600);
    let first = 1 + rng.below_u64(chunks - 1);
    let rest = chunks - first;
    // `acpctl run` has no terminal for a question here.
    let middle = match rng.below_u64(6) {
        0 | 1 if by != By::Run => "[ask]",
        2 => "[child-setsid]",
        3 => "[child]",
        _ => "",
    };
    let text = format!("{tag} [number {first} {tag} {pause}]{middle}[number {rest} {tag} {pause}]");
    Prompt { tag, by, text, chunks }
}

fn strike(rng: &mut Rng, points: &[String]) -> Strike {
    let agent = rng.below(3);
    match rng.below_u64(24) {
        0..=5 => Strike::Daemon,
        6..=9 if !points.is_empty() => {
            let point = &points[rng.below(points.len())];
            // Some points are passed once, some hundreds of times.
            let count = [1, 2, 3, 5, 10, 30, 100][rng.below(7)];
            Strike::Point(point.clone(), count)
        }
        6..=9 => Strike::Daemon,
        10 | 11 => Strike::Shim(agent),
        12 | 13 => Strike::Agent(agent),
        14 => Strike::Child(agent),
        15 | 16 => Strike::Bridge,
        17 => Strike::Run,
        18 => Strike::Attach,
        19 | 20 => Strike::Cut,
        21 => Strike::Term,
        22 => Strike::Restart,
        _ => Strike::Detach,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_and_round_give_the_same_plan_and_others_another() {
        let plan = |seed, round| Plan::random(seed, round, &["listening".to_owned()]);
        assert_eq!(plan(1, 7), plan(1, 7));
        assert_ne!(plan(1, 7), plan(2, 7));
        assert_ne!(plan(1, 7), plan(1, 8));
    }

    #[test]
    fn every_kind_of_strike_comes_up() {
        let kinds: std::collections::BTreeSet<_> = (0..400)
            .flat_map(|round| Plan::random(3, round, &["listening".to_owned()]).strikes)
            .map(|(_, strike)| strike.kind())
            .collect();
        assert_eq!(kinds.len(), 12);
    }
}
