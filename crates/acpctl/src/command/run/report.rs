//! Output of `run --json`.

use acpd_api::{ExitCode, Reason, TurnEnded, TurnUsage, Untrusted};
use serde::Serialize;

use crate::error::{CommandError, Result};

/// A turn that is over, for scripts.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    session_id: Untrusted,
    agent: Untrusted,
    answer: Untrusted,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_reason: Option<Untrusted>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Failed>,
    exit_code: u8,
    #[serde(flatten)]
    ended: Option<Ended>,
}

/// Why there is no stop reason.
#[derive(Debug, Serialize)]
struct Failed {
    message: Untrusted,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Reason>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<Untrusted>,
}

/// The part about a turn that began.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Ended {
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

impl Report {
    pub(super) fn new(
        (session_id, agent): (&str, &str),
        answer: Untrusted,
        stop_reason: Option<Untrusted>,
        ended: Option<TurnEnded>,
        done: &Result<ExitCode>,
    ) -> Report {
        let exit_code = match done {
            Ok(code) => *code,
            Err(error) => error.code(),
        };
        let failed = |error: &CommandError| Failed {
            message: error.message().as_str().into(),
            reason: error.reason(),
            hint: error.first_hint().map(|hint| hint.as_str().into()),
        };
        let ended = ended.map(|ended| {
            let TurnEnded { turn, started_at, at, tools, files, usage, .. } = ended;
            Ended { turn, started_at, at, tools, files, usage }
        });
        Report {
            session_id: session_id.into(),
            agent: agent.into(),
            answer,
            stop_reason,
            error: done.as_ref().err().map(failed),
            exit_code: exit_code.code(),
            ended,
        }
    }
}
