//! A git worktree for a session that is about to begin, as `acpctl run --worktree` makes it.
//!
//! ```text
//!  POST ─▶ made, and remembered for its token ──▶ session/new there
//!                                                   └── refused ─▶ DELETE ─▶ removed, if nothing is in it
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;

use acpd_api::Scope;
use acpd_client::worktree::{Error, Worktree};
use axum::body::Body;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use serde_json::json;

use crate::body;
use crate::door::SignedIn;
use crate::failure::Failure;
use crate::refusal::{Refusal, json as answer};
use crate::state::Server;
use crate::store::TokenInfo;

#[derive(Deserialize)]
struct Wanted {
    /// A directory of the repository.
    cwd: String,
    /// The name for the branch; a number if there is none.
    #[serde(default)]
    name: Option<String>,
}

#[derive(Deserialize)]
struct Unwanted {
    path: String,
}

/// `POST /worktree`: makes a worktree; the answer has the session's directory.
pub(crate) async fn make(
    State(server): State<Arc<Server>>,
    SignedIn(token): SignedIn,
    body: Body,
) -> Result<Response, Refusal> {
    let token = allowed(token)?;
    let Some(Wanted { cwd, name }) = body::json(body).await else { return Err(unreadable()) };
    let made = server.off(move |server| Ok(make_in(server, token, &cwd, name.as_deref()))).await?;
    let (cwd, worktree) = made?;
    let told = json!({"cwd": cwd, "path": worktree.path, "branch": worktree.branch});
    Ok(answer(StatusCode::OK, &told))
}

/// `DELETE /worktree`: no session began there.
pub(crate) async fn remove(
    State(server): State<Arc<Server>>,
    SignedIn(token): SignedIn,
    body: Body,
) -> Result<Response, Refusal> {
    let token = allowed(token)?;
    let Some(Unwanted { path }) = body::json(body).await else { return Err(unreadable()) };
    server.off(move |server| Ok(server.made.remove(&token.id, &path))).await??;
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn make_in(
    server: &Server,
    token: TokenInfo,
    cwd: &str,
    name: Option<&str>,
) -> Result<(PathBuf, Worktree), Refusal> {
    let dir = Path::new(cwd);
    if !dir.is_absolute() {
        let why = format!("`{cwd}` is no absolute path");
        return Err(Refusal::new(StatusCode::BAD_REQUEST, &why, "give the whole path"));
    }
    let dir = dir.canonicalize().map_err(|error| {
        let why = format!("cannot enter `{cwd}`: {error}");
        Refusal::new(StatusCode::CONFLICT, &why, "choose a directory that exists")
    })?;
    Ok(server.made.make(token.id, &dir, name)?)
}

fn allowed(token: TokenInfo) -> Result<TokenInfo, Refusal> {
    if token.scopes.has(Scope::Prompt) {
        return Ok(token);
    }
    let hint = "pair this browser again, with the scope `prompt`";
    Err(Refusal::new(StatusCode::FORBIDDEN, "this token may not begin sessions", hint))
}

fn unreadable() -> Refusal {
    Refusal::new(StatusCode::BAD_REQUEST, "this cannot be read", "docs/web.md has what is sent")
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        let hint = match &error {
            Error::Exists(_) | Error::BranchExists(_) => "choose another name for the session",
            Error::BadName(_) => "choose a name of letters, digits and dashes",
            Error::NoRepository(_) => "begin it without a worktree of its own",
            Error::NoCommit(_) => "commit something first",
            Error::Path(_) | Error::NotUtf8 => {
                "agents take only paths that JSON can hold; rename it"
            }
            _ => return Failure::new(error).into(),
        };
        let is_bad = matches!(error, Error::BadName(_));
        let status = if is_bad { StatusCode::BAD_REQUEST } else { StatusCode::CONFLICT };
        Refusal::new(status, &error.to_string(), hint)
    }
}
