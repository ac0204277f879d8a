//! Tools with which an agent searches and reads files, and finds mistakes in them.
//!
//! They need no daemon: the folders and the commands come with the start of the server. Answers are plain text, as the
//! tools of a terminal give it; only `diagnostics` has members.

mod checks;
mod findings;
mod folders;
mod list;
mod read;
mod search;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{CallToolResult, ContentBlock, ProgressNotificationParam};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, tool, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::{Instant, interval_at};

use crate::daemon::off;
use crate::failure::Failure;
use crate::report::said;
use crate::running::locked;
use crate::server::Server;
use checks::{Checks, Stop};
use folders::Folders;

/// How often the host hears that a command still runs.
const STILL_RUNS: Duration = Duration::from_secs(5);

/// The folders that the tools are for, and the commands that find mistakes there.
#[derive(Debug)]
pub(crate) struct Workspace {
    folders: Vec<PathBuf>,
    commands: Vec<String>,
    /// Held while commands run.
    checks: Mutex<Checks>,
}

/// Arguments of `search`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct SearchArgs {
    /// A regular expression in the syntax of Rust's `regex`, looked for in each line.
    pattern: String,
    /// Take the pattern as it is, and not as a regular expression.
    #[serde(default)]
    literal: bool,
    /// Take capital and small letters as the same.
    #[serde(default)]
    ignore_case: bool,
    /// A file, or a folder with all below it. Default: everywhere.
    #[serde(default)]
    path: Option<PathBuf>,
    /// Only files whose path matches this glob, like `*.rs` or `src/**/*.ts`; with a `!` before it, only others.
    #[serde(default)]
    glob: Option<String>,
    /// Lines before and behind each match; 20 at most. Default: 0.
    #[serde(default)]
    context: usize,
    /// Matching lines; 2000 at most. Default: 200.
    #[serde(default)]
    max_matches: Option<usize>,
    /// Also in files that git ignores.
    #[serde(default)]
    ignored: bool,
}

/// Arguments of `find`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct FindArgs {
    /// A glob of paths, like `*.rs`, `src/**/test_*.py` or `Cargo.toml`.
    glob: String,
    /// A folder, with all below it. Default: everywhere.
    #[serde(default)]
    path: Option<PathBuf>,
    /// Also files that git ignores.
    #[serde(default)]
    ignored: bool,
}

/// Arguments of `read`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct ReadArgs {
    /// The file.
    path: PathBuf,
    /// The first line, counted from 1. Default: 1.
    #[serde(default)]
    from_line: Option<u32>,
    /// How many lines; 5000 at most. Default: 500.
    #[serde(default)]
    lines: Option<u32>,
}

/// Arguments of `tree`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct TreeArgs {
    /// The folder. Default: all of the session.
    #[serde(default)]
    path: Option<PathBuf>,
    /// How many levels; 20 at most. Default: 3.
    #[serde(default)]
    depth: Option<usize>,
    /// Also what git ignores.
    #[serde(default)]
    ignored: bool,
}

/// Arguments of `diagnostics`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct DiagnosticsArgs {
    /// Only mistakes in this file, or below this folder.
    #[serde(default)]
    path: Option<PathBuf>,
    /// Run the commands although no file has changed since the last time.
    #[serde(default)]
    refresh: bool,
}

#[tool_router(router = workspace, vis = "pub(crate)")]
impl Server {
    /// Searches the text of files, those that git ignores left out. Returns the matching lines with their numbers below the
    /// name of each file.
    #[tool(annotations(read_only_hint = true))]
    async fn search(&self, Parameters(args): Parameters<SearchArgs>) -> CallToolResult {
        self.looked(move |folders| search::search(folders, &args)).await
    }

    /// Finds files by their names, those that git ignores left out.
    #[tool(annotations(read_only_hint = true))]
    async fn find(&self, Parameters(args): Parameters<FindArgs>) -> CallToolResult {
        self.looked(move |folders| list::find(folders, &args)).await
    }

    /// Reads lines of a text file, each behind its number.
    #[tool(annotations(read_only_hint = true))]
    async fn read(&self, Parameters(args): Parameters<ReadArgs>) -> CallToolResult {
        self.looked(move |folders| read::read(folders, &args)).await
    }

    /// Shows folders and files as a tree, what git ignores left out.
    #[tool(annotations(read_only_hint = true))]
    async fn tree(&self, Parameters(args): Parameters<TreeArgs>) -> CallToolResult {
        self.looked(move |folders| list::tree(folders, &args)).await
    }

    /// Finds mistakes: runs the compilers and linters that a person has configured for this directory, and returns what
    /// they say of which line. What has not changed is not checked again.
    #[tool]
    async fn diagnostics(
        &self,
        Parameters(args): Parameters<DiagnosticsArgs>,
        context: RequestContext<RoleServer>,
    ) -> CallToolResult {
        said(
            async {
                let workspace = Arc::clone(&self.workspace);
                // Dropped with this call, whoever ends that: it stops what runs.
                let (stop, stopped) = Stop::new();
                let work = off(move || {
                    let mut checks = locked(&workspace.checks);
                    let folders = Folders::open(&workspace.folders)?;
                    checks.run(&folders, &workspace.commands, &args, &stopped)
                });
                tokio::pin!(work);
                let mut ticks = interval_at(Instant::now() + STILL_RUNS, STILL_RUNS);
                let mut count = 0;
                loop {
                    tokio::select! {
                        done = &mut work => return done,
                        () = context.ct.cancelled() => {
                            drop(stop);
                            return Err(Failure::new("the call was cancelled"));
                        }
                        _ = ticks.tick() => {
                            count += 1;
                            still_runs(&context, count).await;
                        }
                    }
                }
            }
            .await,
        )
    }
}

async fn still_runs(context: &RequestContext<RoleServer>, count: u32) {
    let Some(token) = context.meta.get_progress_token() else { return };
    let progress = ProgressNotificationParam::new(token, count.into()).with_message("still runs");
    // A host that is gone is noticed elsewhere.
    drop(context.peer.notify_progress(progress).await);
}

impl Server {
    /// What a look at the folders finds, as text.
    async fn looked(
        &self,
        look: impl FnOnce(&Folders) -> Result<String, Failure> + Send + 'static,
    ) -> CallToolResult {
        let workspace = Arc::clone(&self.workspace);
        match off(move || look(&Folders::open(&workspace.folders)?)).await {
            Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
            Err(failure) => failure.result(),
        }
    }
}

impl Workspace {
    /// Of these folders, the working directory first; without any, of the directory of this process.
    pub(crate) fn new(folders: Vec<PathBuf>, commands: Vec<String>) -> Workspace {
        let folders = if folders.is_empty() { vec![PathBuf::from(".")] } else { folders };
        Workspace { folders, commands, checks: Mutex::default() }
    }

    /// Waits until no command runs.
    pub(crate) fn until_idle(&self) {
        drop(locked(&self.checks));
    }
}
