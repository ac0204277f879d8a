//! The agent of a prompt, and the result of the turn.

use std::borrow::Cow;

use acp_wire::acp::{AgentCapabilities, InitializeResult, stop_reason};
use acp_wire::str_at;
use acpd_api::{
    AgentInfo, AgentRef, ClientMeta, ExitCode, NAMESPACE, PromptMeta, Reason, SessionRef,
    TurnEnded, TurnUsage, Untrusted, escape, method,
};
use acpd_client::attachment::Attachment;
use acpd_view::cut_short;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Said;
use super::turn::{Turn, TurnArgs};
use crate::error::{CommandError, ErrorKind, Result};
use crate::install;
use crate::live::initialize_params;
use crate::terminal::say_at_end;
use crate::text::{Text, shell_word, text};

impl Turn<'_> {
    /// Binds the connection to an agent, or to that of a directory.
    pub(super) fn bind(&mut self, profile: Option<String>, cwd: &str) -> Result {
        let meta = ClientMeta {
            agent: profile.clone(),
            // The directory decides which agent that is.
            cwd: profile.is_none().then(|| cwd.to_owned()),
            notices: true,
            seq: true,
            originals: !self.is_stream && self.screen.kept().is_none(),
            ..ClientMeta::default()
        };
        if let Some(agent) = &profile {
            offer_to_install(self, agent)?;
        }
        let raw: Box<RawValue> = self.call("initialize", &initialize_params(&meta))?;
        let known = InitializeResult::from_raw(&raw)?;
        // Prefer the name that commands accept to the agent's own name.
        let path = ["agentCapabilities", "_meta", NAMESPACE, "agent"];
        let configured = str_at(raw.get().as_bytes(), &path);
        let name = profile.clone().or(configured.map(Cow::into_owned));
        let name = name.or(known.agent_info.map(|info| info.name));
        self.agent = name.unwrap_or_else(|| "the agent".to_owned());
        (self.profile, self.can, self.hello) = (profile, known.capabilities, Some(raw));
        Ok(())
    }

    /// Sends the prompt, and shows the turn to its end or leaves it.
    pub(super) fn prompt(
        mut self,
        blocks: Vec<Value>,
        how: &TurnArgs,
        mut meta: PromptMeta,
        name: Option<&str>,
    ) -> Result<ExitCode> {
        let mut params = json!({"sessionId": self.session_id, "prompt": blocks});
        // The answer to every permission question of the turn.
        meta.permissions = match (how.yes, how.deny) {
            (true, _) => Some("allow".to_owned()),
            (_, true) => Some("reject".to_owned()),
            _ => None,
        };
        if meta != PromptMeta::default() {
            params["_meta"] = json!({ NAMESPACE: meta });
        }
        if how.detach {
            let session = SessionRef::to(&self.agent, &self.session_id);
            // A script needs this data to return to the turn.
            let session = self.leave_behind(&session, &params)?;
            self.ui.stop_spinning();
            if how.json {
                self.ui.json(&session)?;
            } else {
                self.ui.relay_line(&session.session_id)?;
            }
            return Ok(ExitCode::Ok);
        }
        let id = Untrusted::from(&self.session_id);
        let word = shell_word(&name.map_or(id, Untrusted::from));
        let line =
            text!("the turn continues in the background; come back with: acpctl attach {}", word);
        say_at_end(Some(line.clone()));
        let ended = self.show(&params);
        say_at_end(None);
        match ended {
            Ok(Some(answer)) => {
                if let Some(before) = self.repeated {
                    self.ui.note(text!(
                        "this prompt was already executed as turn {}; see: acpctl session log {}",
                        before,
                        word
                    ));
                }
                let stop = answer.as_ref().ok().and_then(|result| stop_reason(result));
                let stop = stop.map(Untrusted::from);
                let done = match &answer {
                    Ok(result) => Ok(self.end(result)),
                    Err(error) => Err(CommandError::of_agent(&self.agent, error)),
                };
                self.print(stop, &done)?;
                done
            }
            Ok(None) => {
                self.ui.say(line);
                Ok(ExitCode::Ok)
            }
            // The reader has enough, as in `acpctl run … | head`; the agent continues.
            Err(error) if error.kind == ErrorKind::BrokenPipe => {
                self.ui.say(line);
                Ok(ExitCode::OutcomeUnknown)
            }
            Err(error) => Err(error),
        }
    }

    fn print(&mut self, stop_reason: Option<Untrusted>, done: &Result<ExitCode>) -> Result {
        let Some(answer) = self.screen.kept() else { return Ok(()) };
        let answer = Untrusted::from(answer);
        let failed = |error: &CommandError| Failed {
            message: error.message.as_str().into(),
            reason: error.reason,
            hint: error.hints.first().map(|hint| hint.as_str().into()),
        };
        let ended = self.ended.take().map(|ended| {
            let TurnEnded { turn, started_at, at, tools, files, usage, .. } = ended;
            EndedTurn { turn, started_at, at, tools, files, usage }
        });
        let exit_code = done.as_ref().map_or_else(CommandError::code, |code| *code);
        let report = Report {
            session_id: (&self.session_id).into(),
            agent: (&self.agent).into(),
            answer,
            stop_reason,
            error: done.as_ref().err().map(failed),
            exit_code: exit_code.code(),
            ended,
        };
        Ok(self.ui.json(&report)?)
    }

    fn end(&mut self, result: &RawValue) -> ExitCode {
        let stop = stop_reason(result).unwrap_or_default();
        let usual = match self.restored {
            // After a cancel, `&&` must not continue, even if the turn was faster.
            _ if self.is_cancelled => ExitCode::Cancelled,
            Some(level) if level.is_less() => ExitCode::ContextLost,
            _ => ExitCode::Ok,
        };
        let (code, note): (ExitCode, Text) = match &*stop {
            "refusal" => (ExitCode::Refused, "the agent refused".into()),
            "max_tokens" => {
                (usual, "stopped: the answer reached the length limit of the agent".into())
            }
            "max_turn_requests" => {
                (usual, "stopped: the turn reached the request limit of the agent".into())
            }
            "cancelled" => {
                let cut = self.ended.as_ref().and_then(|ended| ended.cut_short.as_ref());
                let others = cut.filter(|_| !self.is_cancelled).map(cut_short);
                (ExitCode::Cancelled, others.unwrap_or_else(|| "cancelled".into()))
            }
            "end_turn" if self.is_cancelled => (usual, "the turn ended before the cancel".into()),
            "end_turn" => return usual,
            "" => (usual, "stopped: the agent gave no reason".into()),
            other => (usual, text!("stopped: {}", Untrusted::from(other))),
        };
        self.ui.say(note);
        code
    }
}

/// Returns the content blocks of a prompt for an agent with these capabilities.
pub(super) fn blocks(said: &Said, agent: &str, can: AgentCapabilities) -> Result<Vec<Value>> {
    let mut blocks = Vec::new();
    if !said.prompt.trim().is_empty() {
        blocks.push(json!({"type": "text", "text": said.prompt}));
    }
    for attachment in &said.attachments {
        let refused = match attachment {
            Attachment::Image(_) if !can.image => Some(("images", "leave out `--image`")),
            Attachment::Audio(_) if !can.audio => Some(("audio", "leave out `--audio`")),
            Attachment::Blob(_) if !can.embedded_context => {
                Some(("binary files", "write the file's path in the prompt"))
            }
            _ => None,
        };
        if let Some((what, instead)) = refused {
            let agent = escape::one_line(agent);
            return Err(CommandError::usage(text!("{} does not accept {}", agent, what))
                .hint(text!("choose another agent with `--agent`, or {}", instead)));
        }
        blocks.extend(attachment.blocks(can.embedded_context));
    }
    Ok(blocks)
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    session_id: Untrusted,
    agent: Untrusted,
    answer: Untrusted,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_reason: Option<Untrusted>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Failed>,
    exit_code: u8,
    #[serde(flatten)]
    ended: Option<EndedTurn>,
}

#[derive(Debug, Serialize)]
struct Failed {
    message: Untrusted,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Reason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<Untrusted>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct EndedTurn {
    turn: u64,
    started_at: u64,
    at: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    files: Vec<Untrusted>,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<TurnUsage>,
}

/// Offers to install a missing agent. Nothing is downloaded without a yes.
fn offer_to_install(turn: &mut Turn<'_>, agent: &str) -> Result {
    if !turn.ui.can_ask() {
        return Ok(());
    }
    let agent = AgentRef { agent: agent.to_owned() };
    match turn.try_call::<AgentInfo>(method::AGENT_SHOW, &agent)? {
        Ok(info) if install::can_install(&info) => {
            turn.ui.stop_spinning();
            install::install(&info, false, turn.ui)
        }
        // An unknown agent is reported later.
        _ => Ok(()),
    }
}
