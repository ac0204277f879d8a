//! Tools to read earlier conversations. Documentation of arguments and tools is their description
//! for models.

use acpd_api::{SearchParams, SearchResult, method};
use acpd_view::Kind;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::CallToolResult;
use rmcp::{tool, tool_router};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};

use crate::daemon::run_blocking;
use crate::failure::Failure;
use crate::paths::folder;
use crate::report::{age, block_text, line, row};
use crate::server::Server;

const HITS: u32 = 20;
/// Characters of a page of a conversation, and of a part of it.
const PAGE: usize = 16_000;
const PART: usize = 4_000;

#[derive(Debug, Deserialize, JsonSchema)]
struct SearchArgs {
    /// Words that a message or the title of a tool call has, all of them; a `*` at the end of a word stands for its rest.
    #[serde(deserialize_with = "words")]
    words: Vec<String>,
    /// Also in sessions of other directories.
    #[serde(default)]
    everywhere: bool,
}

/// Reads a list of words, or a text of words: models send either.
fn words<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Words {
        List(Vec<String>),
        Text(String),
    }
    Ok(match Words::deserialize(deserializer)? {
        Words::List(words) => words,
        Words::Text(text) => text.split_whitespace().map(str::to_owned).collect(),
    })
}

#[derive(Debug, Deserialize, JsonSchema)]
struct ReadArgs {
    /// The name or the id of the session, or a ticket of one of its turns.
    session: String,
    /// Begin at this `seq`. Default: the beginning.
    #[serde(default)]
    from_seq: u64,
}

#[tool_router(router = history, vis = "pub(crate)")]
impl Server {
    /// Searches what people and agents said and did in the sessions of this directory, the best first.
    #[tool(annotations(read_only_hint = true))]
    async fn search_history(
        &self,
        Parameters(SearchArgs { words, everywhere }): Parameters<SearchArgs>,
    ) -> Result<CallToolResult, Failure> {
        if words.iter().all(|word| word.trim().is_empty()) {
            return Err(Failure::new("`words` is empty"));
        }
        let own = self.own_session().await?;
        let cwd = if everywhere { None } else { Some(folder(own.as_ref())?) };
        let params = SearchParams { words, cwd, limit: Some(HITS), agent: None };
        let found: SearchResult = self.daemon.ask(method::SESSION_SEARCH, params).await?;
        // The `seq` is the one to continue reading from.
        let rows = found.hits.iter().map(|hit| {
            let text: String = hit.snippet.iter().map(|part| part.text.raw()).collect();
            row(json!({
                "sessionName": hit.session.name.as_ref().map(line),
                "sessionId": line(&hit.session.session_id), "agent": line(&hit.session.agent),
                "seq": hit.seq, "age": age(hit.at), "by": hit.by, "text": line(&text.into()),
            }))
        });
        Ok(CallToolResult::structured(json!({"hits": rows.collect::<Value>()})))
    }

    /// Reads a conversation from a `seq` on, a page at a time.
    #[tool(annotations(read_only_hint = true))]
    async fn read_history(
        &self,
        Parameters(args): Parameters<ReadArgs>,
    ) -> Result<CallToolResult, Failure> {
        let session = self.session_of(&self.ticket(&args.session).await?).await?;
        let (daemon, of) = (self.daemon.clone(), session.clone());
        let after = args.from_seq.saturating_sub(1);
        let (parts, next) = run_blocking(move || {
            let (state, next) = daemon.page(&of, after)?;
            Ok(parts(&state, next))
        })
        .await?;
        Ok(CallToolResult::structured(json!({
            "sessionName": session.name.as_ref().map(line),
            "sessionId": line(&session.session_id),
            "agent": line(&session.agent),
            "parts": parts,
            "nextSeq": next,
        })))
    }
}

/// The blocks of a page, as many as fit, and the `seq` of the next page.
fn parts(state: &acpd_view::State, next: Option<u64>) -> (Vec<Value>, Option<u64>) {
    let mut rows = Vec::new();
    let mut room = PAGE;
    for block in state.blocks() {
        let by = match &block.kind {
            Kind::Prompt(_) => "user",
            Kind::Answer(_) => "agent",
            Kind::Call(_) | Kind::Edit(_) | Kind::Command(_) => "tool",
            Kind::Turn(_) | Kind::Notice(_) | Kind::Gap(_) => "acpd",
            Kind::Subagent(_) => "subagent",
            Kind::Plan(_) => "plan",
            Kind::Thought(_) | Kind::Question(_) => continue,
        };
        let text = block_text(block, PART);
        let seq = block.id.seq();
        let length = text.chars().count();
        if length > room && !rows.is_empty() {
            return (rows, Some(seq));
        }
        room = room.saturating_sub(length);
        rows.push(json!({"seq": seq, "by": by, "text": text}));
    }
    (rows, next)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_come_in_a_list_or_in_a_text() {
        for said in [json!(["parser", "bug"]), json!(" parser  bug ")] {
            let args: SearchArgs = serde_json::from_value(json!({ "words": said })).unwrap();
            assert_eq!(args.words, ["parser", "bug"]);
        }
        assert!(serde_json::from_value::<SearchArgs>(json!({"words": 3})).is_err());
    }
}
