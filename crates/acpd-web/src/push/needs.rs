//! Notifications from the daemon's rows: a question, the end of a long turn, a failure. Never the
//! text of a conversation: a locked phone shows them to anyone.
//!
//! ```text
//!  session: idle ──works──▶ working since … ──ends──▶ notified, if that took a minute or went wrong
//!  question: new ──▶ notified once
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use acpd_api::{
    Changed, InteractionInfo, SessionInfo, SessionRowKey, TurnState, Untrusted, Watched, escape,
};
use serde_json::json;

/// The end of a shorter turn is not reported.
const LONG: Duration = Duration::from_mins(1);
/// Characters of a name.
const LONGEST: usize = 80;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct News {
    pub(super) is_urgent: bool,
    /// JSON for the service worker.
    pub(super) text: String,
}

impl News {
    /// `what` is said of the agent, `title` names the session.
    fn new(
        is_urgent: bool,
        what: &str,
        title: &str,
        agent: &Untrusted,
        session: Option<&Untrusted>,
    ) -> News {
        let body = format!("{} {what}", escape::one_line(agent.raw()));
        let text = json!({"title": title, "body": body, "agent": agent, "session": session});
        News { is_urgent, text: text.to_string() }
    }
}

#[derive(Debug, Default)]
pub(super) struct Needs {
    questions: BTreeSet<String>,
    /// Start of running turns (ms since the epoch).
    working: BTreeMap<SessionRowKey, u64>,
}

impl Needs {
    /// Takes all rows. Turns that ended while the daemon was away are reported as well.
    pub(super) fn snapshot(
        &mut self,
        Watched { sessions, interactions, .. }: Watched,
    ) -> Vec<News> {
        let open: BTreeSet<String> =
            interactions.iter().map(|question| question.id.raw().to_owned()).collect();
        self.questions.retain(|id| open.contains(id));
        self.changed(Changed { sessions, interactions, ..Changed::default() })
    }

    /// Takes changed rows.
    pub(super) fn changed(&mut self, changed: Changed) -> Vec<News> {
        for id in &changed.removed.interactions {
            self.questions.remove(id.raw());
        }
        for key in &changed.removed.sessions {
            self.working.remove(key);
        }
        let asked = changed.interactions.iter().filter_map(|question| self.asked(question));
        let mut news: Vec<News> = asked.collect();
        news.extend(changed.sessions.iter().filter_map(|session| self.session(session)));
        news
    }

    fn asked(&mut self, question: &InteractionInfo) -> Option<News> {
        let is_new = self.questions.insert(question.id.raw().to_owned());
        is_new.then(|| {
            let title = name(question.name.as_ref(), question.cwd.as_ref());
            let session = question.session_id.as_ref();
            News::new(true, "asks you something", &title, &question.agent, session)
        })
    }

    fn session(&mut self, session: &SessionInfo) -> Option<News> {
        let (key, turn) = (session.row_key(), &session.turn);
        if turn.state != TurnState::Idle {
            self.working.entry(key).or_insert(turn.since);
            return None;
        }
        let since = self.working.remove(&key)?;
        let took = Duration::from_millis(session.updated.saturating_sub(since));
        // The parent agent is notified of its own sessions, and a user who cancelled knows.
        let (is_urgent, what) = match turn.last.as_ref().map_or("", Untrusted::raw) {
            "interrupted" | "unwedged" | "outcome_unknown" | "error" => {
                (true, "was interrupted".to_owned())
            }
            "cancelled" => return None,
            _ if took < LONG => return None,
            _ => (false, format!("is done, after {} min", took.as_secs() / 60)),
        };
        let title = name(session.name.as_ref(), Some(&session.cwd));
        let is_own = session.parent.is_none();
        is_own.then(|| News::new(is_urgent, &what, &title, &key.agent, Some(&key.session_id)))
    }
}

/// The user's name for a session, or its directory. A title may quote the conversation.
fn name(name: Option<&Untrusted>, cwd: Option<&Untrusted>) -> String {
    let folder = || Path::new(cwd?.raw()).file_name()?.to_str();
    let name = name.map(Untrusted::raw).or_else(folder).unwrap_or("acpd");
    escape::one_line(name).to_string().chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    const MINUTE: u64 = 60_000;

    /// A session whose turn is in this state since then.
    fn row(state: &str, last: &str, at: u64) -> Value {
        json!({"sessionId": "s1", "agent": "claude", "cwd": "/home/me/api", "title": "my secret plan",
            "state": "live", "turn": {"state": state, "since": at, "last": last}, "queued": 0, "clients": 0,
            "prompts": 1, "seq": 9, "created": 1, "updated": at})
    }

    fn changed(needs: &mut Needs, row: Value) -> Vec<Value> {
        told(needs.changed(serde_json::from_value(json!({"sessions": [row]})).unwrap()))
    }

    fn snapshot(needs: &mut Needs, rows: &Value, questions: &Value) -> Vec<Value> {
        let all = json!({"sessions": rows, "agents": [], "interactions": questions});
        told(needs.snapshot(serde_json::from_value(all).unwrap()))
    }

    fn told(news: Vec<News>) -> Vec<Value> {
        news.iter().map(|news| serde_json::from_str(&news.text).unwrap()).collect()
    }

    #[test]
    fn what_took_a_minute_or_went_wrong_is_told_without_what_was_said() {
        let mut needs = Needs::default();
        assert!(snapshot(&mut needs, &json!([row("idle", "end_turn", 5)]), &json!([])).is_empty());
        let mut turn = |took: u64, last: &str| {
            assert!(changed(&mut needs, row("working", "", 1000)).is_empty());
            assert!(changed(&mut needs, row("needs_action", "", 1500)).is_empty());
            let first = changed(&mut needs, row("idle", last, 1000 + took));
            assert!(
                changed(&mut needs, row("idle", last, 2000 + took)).is_empty(),
                "it is told once"
            );
            first
        };
        assert!(turn(MINUTE - 1, "end_turn").is_empty());
        let done = json!({"title": "api", "body": "claude is done, after 2 min", "agent": "claude",
            "session": "s1"});
        assert_eq!(turn(2 * MINUTE, "end_turn"), [done]);
        assert_eq!(turn(5, "interrupted")[0]["body"], "claude was interrupted");
        assert!(turn(9 * MINUTE, "cancelled").is_empty());
        // Sessions that an agent has begun are reported to that agent.
        assert!(changed(&mut needs, row("working", "", 1)).is_empty());
        let mut child = row("idle", "end_turn", 9 * MINUTE);
        child["parent"] = json!({"agent": "claude", "sessionId": "s0"});
        assert!(changed(&mut needs, child).is_empty());
    }

    #[test]
    fn a_question_is_told_once_also_over_a_lost_daemon() {
        let mut needs = Needs::default();
        let question = json!([{"id": "q1", "agent": "claude", "sessionId": "s1", "name": "fix", "cwd": "/",
            "at": 5, "question": {"kind": "permission", "title": "rm -rf /", "options": []}}]);
        let asked = snapshot(&mut needs, &json!([]), &question);
        assert_eq!(asked[0]["body"], "claude asks you something");
        assert_eq!((asked[0]["title"].as_str(), asked.len()), (Some("fix"), 1));
        assert!(snapshot(&mut needs, &json!([]), &question).is_empty());
        assert!(snapshot(&mut needs, &json!([]), &json!([])).is_empty());
        assert_eq!(snapshot(&mut needs, &json!([]), &question).len(), 1, "the id was free again");
        // A turn that ended while the daemon was away.
        assert!(changed(&mut needs, row("working", "", 1)).is_empty());
        let rows = json!([row("idle", "end_turn", 3 * MINUTE)]);
        assert_eq!(snapshot(&mut needs, &rows, &question).len(), 1);
    }
}
