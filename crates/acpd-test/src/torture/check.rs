//! Compares the agents' records, the journals and the clients' lines, once a round has come to
//! rest.

use std::collections::BTreeMap;

use serde_json::Value;

use super::ledger::{Ledger, Received};
use super::plan::Prompt;
use super::view::{Journal, Turn};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Answer {
    Stopped(String),
    /// Any other answer, in words.
    Failed(String),
    /// Version 2: the prompt is known, and its turn is over.
    Repeated,
    /// The sender was killed before.
    Nobody,
}

pub(super) struct Case<'a> {
    pub(super) prompts: Vec<&'a Prompt>,
    pub(super) answers: &'a BTreeMap<String, Answer>,
    pub(super) journal: &'a Journal,
    pub(super) before: u64,
    pub(super) ledger: &'a Ledger,
    /// The agent, or its shim, was struck in this round.
    pub(super) struck: bool,
    /// It may be unknown whether a prompt arrived: the daemon was struck as well, or the agent has to
    /// say that it did.
    pub(super) may_be_unknown: bool,
}

impl Case<'_> {
    pub(super) fn differences(&self) -> Vec<String> {
        let turns = self.journal.turns(self.before);
        let mut found = Vec::new();
        for turn in &turns {
            let known = self.prompts.iter().filter(|prompt| prompt.tag == turn.tag).count();
            let runs = turns.iter().filter(|other| other.tag == turn.tag).count();
            if known != 1 || runs != 1 {
                found.push(format!("turn `{}` is {runs} times in the journal", turn.tag));
            }
            if turn.ends != 1 {
                found.push(format!("turn `{}` ended {} times", turn.tag, turn.ends));
            }
        }
        let order: Vec<_> = turns.iter().map(|turn| &turn.tag).collect();
        let mut sorted = order.clone();
        sorted.sort();
        if order != sorted {
            found.push(format!("turns ran in the order {order:?}"));
        }
        for prompt in &self.prompts {
            let turn = turns.iter().find(|turn| turn.tag == prompt.tag);
            let problem = match turn {
                Some(turn) => self.turn(prompt, turn),
                None => self.no_turn(prompt),
            };
            found.extend(problem.map(|problem| format!("prompt `{}`: {problem}", prompt.tag)));
        }
        for ((pid, id), answers) in &self.ledger.questions {
            if *answers > 1 {
                found.push(format!("question {id} of process {pid} was answered {answers} times"));
            }
        }
        found
    }

    fn answer(&self, prompt: &Prompt) -> &Answer {
        self.answers.get(&prompt.tag).unwrap_or(&Answer::Nobody)
    }

    fn no_turn(&self, prompt: &Prompt) -> Option<String> {
        if self.ledger.prompts.contains_key(&prompt.tag) {
            return Some("the agent got it, and the journal does not have it".to_owned());
        }
        let answer = self.answer(prompt);
        // The agent died before it could get the prompt, or was stopped with the daemon.
        if self.struck && matches!(answer, Answer::Failed(_)) {
            return None;
        }
        (*answer != Answer::Nobody)
            .then(|| format!("it is in no journal, and the answer {answer:?}"))
    }

    fn turn(&self, prompt: &Prompt, turn: &Turn) -> Option<String> {
        let nothing = Received::default();
        let got = self.ledger.prompts.get(&prompt.tag).unwrap_or(&nothing);
        if got.by.len() > 1 {
            return Some(format!("the agent got it {} times, in {:?}", got.by.len(), got.by));
        }
        if !got.chunks.starts_with(&turn.chunks) {
            let sent: Vec<&str> = got.chunks.iter().map(String::as_str).collect();
            let differs = chunks(&turn.chunks, &sent);
            return differs.map(|what| format!("the journal is not what was sent: {what}"));
        }
        let kind = turn.outcome["kind"].as_str().unwrap_or_default();
        let reason = turn.outcome["stopReason"].as_str().unwrap_or_default();
        let broken = match kind {
            "stopped" if reason == "end_turn" => return self.whole(prompt, turn, got),
            "interrupted" => self.struck,
            "outcome_unknown" => self.struck && self.may_be_unknown,
            _ => false,
        };
        if !broken {
            return Some(format!("it ended with {} although nothing struck it", turn.outcome));
        }
        match self.answer(prompt) {
            Answer::Stopped(reason) if reason != "cancelled" => {
                Some(format!("it ended with {}, and was answered with {reason}", turn.outcome))
            }
            _ => None,
        }
    }

    fn whole(&self, prompt: &Prompt, turn: &Turn, got: &Received) -> Option<String> {
        if got.answers != 1 {
            return Some(format!("the agent answered it {} times", got.answers));
        }
        if turn.chunks.len() as u64 != prompt.chunks || got.chunks.len() as u64 != prompt.chunks {
            return Some(format!(
                "{} chunks were wanted, {} sent, and {} are in the journal",
                prompt.chunks,
                got.chunks.len(),
                turn.chunks.len()
            ));
        }
        match self.answer(prompt) {
            Answer::Stopped(reason) if reason == "end_turn" => None,
            Answer::Nobody => None,
            other => Some(format!("it ended well, and was answered with {other:?}")),
        }
    }
}

pub(super) fn answer(message: &Value) -> Answer {
    match message["result"]["stopReason"].as_str() {
        Some(reason) => Answer::Stopped(reason.to_owned()),
        None if message["result"]["messageId"].is_string() => Answer::Repeated,
        None => Answer::Failed(message["error"].to_string()),
    }
}

pub(super) fn chunks(seen: &[String], journal: &[&str]) -> Option<String> {
    if seen == journal {
        return None;
    }
    let at = seen.iter().zip(journal).take_while(|(seen, journal)| seen == *journal).count();
    Some(format!(
        "chunk {at} is {:?} and not {:?} ({} of {} chunks)",
        seen.get(at),
        journal.get(at),
        seen.len(),
        journal.len()
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::torture::plan::By;

    /// A successful turn of two chunks, and a variant of its facts.
    struct Turned {
        sent: &'static [&'static str],
        journal: &'static [&'static str],
        outcome: Value,
        answer: Answer,
        got: usize,
        struck: bool,
    }

    fn well() -> Turned {
        Turned {
            sent: &["t/1", "t/2"],
            journal: &["t/1", "t/2"],
            outcome: json!({"kind": "stopped", "stopReason": "end_turn"}),
            answer: Answer::Stopped("end_turn".to_owned()),
            got: 1,
            struck: false,
        }
    }

    fn cut(journal: &'static [&'static str]) -> Turned {
        let outcome = json!({"kind": "interrupted"});
        Turned { journal, outcome, answer: Answer::Failed(String::new()), struck: true, ..well() }
    }

    fn is_fine(turned: Turned) -> bool {
        let update = |kind: &str, text: &str| {
            let content = json!({"text": text});
            let update = json!({"sessionUpdate": kind, "content": content});
            json!({"method": "session/update", "params": {"update": update}})
        };
        let mut lines = vec![json!({"method": "_acpd/turn_started"})];
        lines.push(update("user_message_chunk", "t [number 2 t 0]"));
        let chunk = |chunk: &&str| update("agent_message_chunk", &format!("{chunk}\n"));
        lines.extend(turned.journal.iter().map(chunk));
        let params = json!({"outcome": turned.outcome});
        lines.push(json!({"method": "_acpd/turn_ended", "params": params}));
        let mut journal = Journal::default();
        let entry = |(seq, line)| json!({"seq": seq, "line": line});
        journal.extend(&(1_u64..).zip(lines).map(entry).collect::<Vec<_>>(), false).unwrap();
        let mut ledger = Ledger::new("/".into());
        let received = Received {
            by: vec![7; turned.got],
            chunks: turned.sent.iter().map(|chunk| (*chunk).to_owned()).collect(),
            answers: u32::from(!turned.struck),
        };
        ledger.prompts.insert("t".to_owned(), received);
        let text = String::new();
        let prompt = Prompt { tag: "t".to_owned(), by: By::Run, text, chunks: 2 };
        let case = Case {
            prompts: vec![&prompt],
            answers: &BTreeMap::from([("t".to_owned(), turned.answer)]),
            journal: &journal,
            before: 0,
            ledger: &ledger,
            struck: turned.struck,
            may_be_unknown: false,
        };
        case.differences().is_empty()
    }

    #[test]
    fn a_turn_of_an_agent_that_lives_has_exactly_what_was_sent() {
        assert!(is_fine(well()));
        assert!(!is_fine(Turned { journal: &["t/1"], ..well() }));
        assert!(!is_fine(Turned { journal: &["t/2"], ..well() }));
        assert!(!is_fine(Turned { journal: &["t/2", "t/1"], ..well() }));
        assert!(!is_fine(Turned { journal: &["t/1", "t/1", "t/2"], ..well() }));
        assert!(!is_fine(Turned { journal: &["t/1"], sent: &["t/1"], ..well() }));
    }

    #[test]
    fn a_prompt_is_carried_out_once_and_its_sender_hears_how_it_ended() {
        assert!(!is_fine(Turned { got: 2, ..well() }));
        assert!(!is_fine(Turned { answer: Answer::Failed(String::new()), ..well() }));
        assert!(is_fine(Turned { answer: Answer::Nobody, ..well() }));
    }

    #[test]
    fn only_what_was_struck_may_be_cut_off_and_only_at_its_end() {
        assert!(is_fine(cut(&["t/1"])));
        assert!(!is_fine(cut(&["t/2"])));
        assert!(!is_fine(Turned { struck: false, ..cut(&["t/1"]) }));
        assert!(!is_fine(Turned { answer: Answer::Stopped("end_turn".to_owned()), ..cut(&[]) }));
        let outcome = json!({"kind": "outcome_unknown"});
        assert!(!is_fine(Turned { outcome, ..cut(&["t/1"]) }));
    }
}
