//! One round: all clients prompt, the killer strikes, everything comes to rest, and is compared.

use std::collections::BTreeSet;

use acpd_sys::process::{StopSignal, signal_one};
use serde_json::json;

use super::check::{self, Answer, Case};
use super::clients::{Program, Run};
use super::lines::Who;
use super::plan::{AGENTS, By, Plan, Prompt, Strike};
use super::scene::kill9;
use super::stage::Stage;
use crate::home::Result;

struct Round<'a> {
    stage: &'a mut Stage,
    plan: &'a Plan,
    strikes: std::slice::Iter<'a, (u64, Strike)>,
    struck: [bool; 3],
    daemon_struck: bool,
}

/// Plays a round and compares. The error has the differences.
pub(super) fn play(stage: &mut Stage, plan: &Plan) -> Result {
    stage.seen = 0;
    stage.answers.clear();
    stage.asked.clear();
    stage.starts_daemon = plan.starts_daemon;
    let before = [0, 1, 2].map(|index| stage.journals[index].last());
    let losses = stage.losses;
    // An agent that was lost with a daemon while it started has no successor before it is needed.
    let leaders = stage.leaders()?.map(|pid| pid.filter(|pid| stage.scene.ours(*pid).is_some()));
    let mut round = Round {
        stage,
        plan,
        strikes: plan.strikes.iter(),
        struck: [false; 3],
        daemon_struck: false,
    };
    plan.prompts.iter().try_for_each(|prompt| round.stage.prompt(prompt))?;
    round.strike_in_time()?;
    round.rest()?;
    round.send_again()?;
    let Round { struck, mut daemon_struck, stage, .. } = round;
    daemon_struck |= stage.losses > losses;
    commands_succeeded(stage, plan)?;
    let mut found = compare(stage, plan, before, struck, daemon_struck)?;
    for (index, (old, new)) in leaders.into_iter().zip(stage.leaders()?).enumerate() {
        if let Some(old) = old.filter(|old| !struck[index] && !stage.killed.contains(old))
            && new != Some(old)
        {
            found.push(format!("agent {}: {new:?} took the place of {old}", AGENTS[index]));
        }
    }
    if found.is_empty() { Ok(()) } else { Err(found.join("\n  ").into()) }
}

impl Round<'_> {
    /// Strikes after a number of lines, or when no more come.
    fn strike_in_time(&mut self) -> Result {
        while let Some((at, strike)) = self.strikes.next() {
            let plan = self.plan;
            self.stage.wait("lines or answers", |stage| {
                stage.collect(plan);
                let enough = stage.seen >= *at || stage.answers.len() == plan.prompts.len();
                if enough { Ok(()) } else { Err(format!("{} lines of {at}", stage.seen)) }
            })?;
            self.strike(strike)?;
        }
        Ok(())
    }

    fn rest(&mut self) -> Result {
        let plan = self.plan;
        self.stage.wait("the end of the round", |stage| {
            stage.collect(plan);
            if stage.answers.len() < plan.prompts.len() {
                return Err(format!("answers came only to {:?}", stage.answers.keys()));
            }
            stage.settled()?;
            // Read again: the daemon may have died before its answers came.
            match stage.read_journals() {
                Ok(Some(())) => Ok(()),
                Ok(None) => Err("the daemon does not answer".to_owned()),
                Err(error) => Err(error.to_string()),
            }
        })
    }

    /// All clients repeat their finished prompts under their keys: nothing runs again, and the
    /// answers are the first ones.
    fn send_again(&mut self) -> Result {
        let (plan, mut sent) = (self.plan, Vec::new());
        let first = std::mem::take(&mut self.stage.answers);
        for prompt in plan.prompts.iter().filter(|prompt| prompt.by != By::Run) {
            let turns = self.stage.journals[prompt.by.index()].turns(0);
            if turns.iter().any(|turn| turn.tag == prompt.tag) {
                self.stage.prompt(prompt)?;
                sent.push(&prompt.tag);
            }
        }
        self.stage.wait("answers to what was sent again", |stage| {
            stage.collect(plan);
            let text = || format!("answers came only to {:?}", stage.answers.keys());
            let has_all = sent.iter().all(|tag| stage.answers.contains_key(*tag));
            if has_all { Ok(()) } else { Err(text()) }
        })?;
        let again = std::mem::replace(&mut self.stage.answers, first);
        for tag in sent {
            let first = self.stage.answers.get(tag).unwrap_or(&Answer::Nobody);
            let second = &again[tag];
            let is_same = match (first, second) {
                (Answer::Nobody, _) | (_, Answer::Repeated) => true,
                (Answer::Failed(_), Answer::Failed(_)) => true,
                (first, second) => first == second,
            };
            if !is_same {
                let text = format!("`{tag}` was answered {first:?}, and then {second:?}");
                return Err(text.into());
            }
        }
        self.stage.read_journals().map(drop)
    }

    fn strike(&mut self, strike: &Strike) -> Result {
        let leaders = self.stage.leaders()?;
        let stage = &mut *self.stage;
        match strike {
            Strike::Daemon => kill_daemon(stage)?,
            Strike::Point(name, count) => {
                stage.scene.arm(name, *count)?;
                kill_daemon(stage)?;
            }
            Strike::Term => {
                if let Some(daemon) = stage.scene.daemon() {
                    stage.shot.insert(daemon.pid);
                    signal_one(daemon, StopSignal::Term);
                }
            }
            Strike::Restart => {
                let restart = stage.scene.spawn(&["daemon", "restart"])?;
                stage.beside.push(restart);
            }
            Strike::Detach => {
                stage.shot.extend(stage.scene.daemon().map(|daemon| daemon.pid));
                let stop = stage.scene.spawn(&["daemon", "stop", "--detach"])?;
                stage.beside.push(stop);
            }
            Strike::Shim(agent) | Strike::Agent(agent) => {
                let Some(leader) = leaders[*agent].and_then(|pid| stage.scene.ours(pid)) else {
                    return Ok(());
                };
                let shim = stage.scene.home.shim(leader.pid);
                let victim = if matches!(strike, Strike::Shim(_)) { shim } else { Some(leader) };
                let Some(victim) = victim else { return Ok(()) };
                self.struck[*agent] = true;
                stage.killed.insert(leader.pid);
                kill9(victim)?;
            }
            Strike::Child(agent) => {
                let leader = leaders[*agent].unwrap_or_default();
                if let Some(child) = stage.scene.children(*agent, leader).first() {
                    kill9(*child)?;
                }
            }
            Strike::Bridge => {
                stage.editor.program.kill();
                let lost = stage.asked.extract_if(.., |(by, _), _| *by == By::Editor);
                stage.answers.extend(lost.map(|(_, tag)| (tag, Answer::Nobody)));
            }
            Strike::Run => {
                let running = stage.run.as_mut().filter(|run| run.ended.is_none());
                let killed = running.map(|run| {
                    run.program.kill();
                    run.tag.clone()
                });
                // The user repeats it, with the same key.
                let mut prompts = self.plan.prompts.iter();
                let prompt = prompts.find(|prompt| killed.as_ref() == Some(&prompt.tag));
                if let Some(prompt) = prompt {
                    start_run(stage, prompt, true)?;
                }
            }
            Strike::Attach => stage.attach.program.kill(),
            Strike::Cut => stage.token.cut(),
        }
        self.daemon_struck |= matches!(
            strike,
            Strike::Daemon | Strike::Point(..) | Strike::Term | Strike::Restart | Strike::Detach
        );
        Ok(())
    }
}

impl Stage {
    /// Has the client send a prompt, whose key is its tag.
    fn prompt(&mut self, prompt: &Prompt) -> Result {
        let Prompt { tag, by, text, .. } = prompt;
        let params = json!({
            "sessionId": self.sessions[by.index()],
            "prompt": [{"type": "text", "text": text}],
            "_meta": {"_acpd": {"idempotencyKey": tag}},
        });
        let id = match by {
            By::Editor => self.editor.prompt(params, tag),
            By::Token => self.token.request("session/prompt", &params),
            By::Run => return start_run(self, prompt, false),
        };
        self.asked.insert((*by, id), tag.clone());
        Ok(())
    }

    /// Takes the answers that have come.
    fn collect(&mut self, plan: &Plan) {
        for (id, message) in std::mem::take(&mut self.editor.answers) {
            match self.asked.remove(&(By::Editor, id)) {
                Some(tag) => drop(self.answers.insert(tag, check::answer(&message))),
                None => drop(self.editor.answers.insert(id, message)),
            }
        }
        for (id, message) in std::mem::take(&mut self.token.answers) {
            if let Some(tag) = self.asked.remove(&(By::Token, id)) {
                self.answers.insert(tag, check::answer(&message));
            }
        }
        let Some(run) = &self.run else { return };
        let Some(ended) = &run.ended else { return };
        if plan.prompts.iter().any(|prompt| prompt.tag == run.tag) {
            let answer = match ended.code {
                _ if ended.killed || ended.never_began() => Answer::Nobody,
                Some(0) => Answer::Stopped("end_turn".to_owned()),
                _ => Answer::Failed(format!("{ended:?}")),
            };
            self.answers.entry(run.tag.clone()).or_insert(answer);
        }
    }
}

/// Calls `acpctl run` with a prompt, whose key is its tag.
fn start_run(stage: &mut Stage, prompt: &Prompt, came_late: bool) -> Result {
    let Prompt { tag, text, .. } = prompt;
    let args = ["run", "-s", "cli", "-a", AGENTS[1], "--key", tag, "--json-stream", text];
    let command = stage.scene.acpctl(&args);
    let life = stage.new_life(Who::Run);
    let program = Program::start(command, Who::Run, life, &stage.to)?;
    stage.run = Some(Run { program, tag: tag.clone(), chunks: Vec::new(), ended: None, came_late });
    Ok(())
}

fn kill_daemon(stage: &mut Stage) -> Result {
    // There may be no daemon now.
    let Some(daemon) = stage.scene.daemon() else { return Ok(()) };
    stage.shot.insert(daemon.pid);
    kill9(daemon)
}

/// A command that was the only strike must have succeeded.
fn commands_succeeded(stage: &mut Stage, plan: &Plan) -> Result {
    for child in std::mem::take(&mut stage.beside) {
        let output = child.wait_with_output()?;
        if !output.status.success() && plan.strikes.len() == 1 {
            let error = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            return Err(format!("`acpctl daemon` ended with {}: {error}", output.status).into());
        }
    }
    Ok(())
}

fn compare(
    stage: &mut Stage,
    plan: &Plan,
    before: [u64; 3],
    struck: [bool; 3],
    daemon_struck: bool,
) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for ledger in &mut stage.ledgers {
        ledger.refresh()?;
    }
    for by in By::ALL {
        let index = by.index();
        found.extend(std::mem::take(&mut stage.ledgers[index].beside));
        let case = Case {
            prompts: plan.prompts.iter().filter(|prompt| prompt.by == by).collect(),
            answers: &stage.answers,
            journal: &stage.journals[index],
            before: before[index],
            ledger: &stage.ledgers[index],
            struck: struck[index],
            // Only the first agent speaks version 1.
            may_be_unknown: daemon_struck || index > 0,
        };
        let agent = AGENTS[index];
        found.extend(case.differences().into_iter().map(|what| format!("agent {agent}: {what}")));
        let (id, journal) = (&stage.sessions[index], &stage.journals[index]);
        if let Some(view) = stage.observer.views.get_mut(id) {
            let differs = view.differences(journal, |_| false);
            found.extend(differs.map(|what| format!("observer of {agent}: {what}")));
        }
    }
    let journal = &stage.journals[By::Run.index()];
    let mut note = |who: &str, differs: Option<String>| {
        found.extend(differs.map(|what| format!("{who}: {what}")));
    };
    note("attach", stage.attach.view.differences(journal, |_| false));
    // One that came late may have seen anything.
    if let Some(run) = stage.run.take().filter(|run| !run.came_late) {
        let turns = journal.turns(before[By::Run.index()]);
        let turn = turns.iter().find(|turn| turn.tag == run.tag);
        let chunks: Vec<&str> =
            turn.into_iter().flat_map(|turn| turn.chunks.iter().map(String::as_str)).collect();
        // A killed client has seen a beginning.
        let seen = if run.program.killed { run.chunks.len() } else { chunks.len() };
        note("run", check::chunks(&run.chunks, &chunks[..seen.min(chunks.len())]));
    }
    let index = By::Token.index();
    if let Some(view) = stage.token.views.get_mut(&stage.sessions[index]) {
        let own =
            |line: &serde_json::Value| super::view::text(line, "user_message_chunk").is_some();
        note("token", view.differences(&stage.journals[index], own));
    }
    let journal = stage.journals[By::Editor.index()].chunks();
    note("editor", check::chunks(&stage.editor.chunks, &journal));
    let unknown: BTreeSet<_> =
        stage.token.views.keys().filter(|id| **id != stage.sessions[index]).collect();
    if !unknown.is_empty() {
        found.push(format!("token: lines of sessions that are not its own: {unknown:?}"));
    }
    Ok(found)
}
