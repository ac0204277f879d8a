//! Tools to search files and to find mistakes in them. Documentation of tools is their description
//! for models.

use std::sync::Arc;
use std::time::Duration;

use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::CallToolResult;
use rmcp::service::RequestContext;
use rmcp::{RoleServer, tool, tool_router};
use serde_json::Value;
use tokio::time::{Instant, interval_at};

use crate::daemon::run_blocking;
use crate::failure::Failure;
use crate::lent::{self, Lent};
use crate::server::Server;
use crate::teller::progress;
use crate::workspace::{DiagnosticsArgs, FindArgs, SearchArgs, Stop, Stopped};

/// Time between two progress reports of a command.
const STILL_RUNS: Duration = Duration::from_secs(5);

#[tool_router(router = workspace, vis = "pub(crate)")]
impl Server {
    /// Searches the text of files, those that git ignores left out. Returns the matching lines with their numbers below the
    /// name of each file.
    #[tool(annotations(read_only_hint = true))]
    async fn search(&self, Parameters(args): Parameters<SearchArgs>) -> Result<String, Failure> {
        let workspace = Arc::clone(&self.workspace);
        run_blocking(move || workspace.search(&args)).await
    }

    /// Finds files by their names, those that git ignores left out.
    #[tool(annotations(read_only_hint = true))]
    async fn find(&self, Parameters(args): Parameters<FindArgs>) -> Result<String, Failure> {
        let workspace = Arc::clone(&self.workspace);
        run_blocking(move || workspace.find(&args)).await
    }

    /// Finds mistakes: asks the editor of the session if it lends a tool for that, else runs the compilers and linters that a
    /// person has configured for this directory, and returns what they say of which line. What has not changed is not
    /// checked again.
    #[tool]
    async fn diagnostics(
        &self,
        Parameters(args): Parameters<DiagnosticsArgs>,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResult, Failure> {
        // Dropping it at the end of the call stops the running commands.
        let (_stop, stopped) = Stop::new();
        let work = self.checked(args, stopped);
        tokio::pin!(work);
        let mut ticks = interval_at(Instant::now() + STILL_RUNS, STILL_RUNS);
        let mut count = 0;
        loop {
            tokio::select! {
                done = &mut work => return Ok(CallToolResult::structured(done?)),
                () = context.ct.cancelled() => return Err(Failure::new("the call was cancelled")),
                _ = ticks.tick() => {
                    count += 1;
                    progress(&context, count, "still runs").await;
                }
            }
        }
    }
}

impl Server {
    /// Returns the mistakes that the session's editor reports, otherwise those that the commands
    /// find.
    async fn checked(&self, args: DiagnosticsArgs, stopped: Stopped) -> Result<Value, Failure> {
        let workspace = Arc::clone(&self.workspace);
        let file = workspace.file(&args)?;
        let lent = match self.own {
            Some(own) => lent::ask(&self.daemon, own, workspace.tools(), file.as_deref()).await,
            None => Lent::Absent,
        };
        run_blocking(move || workspace.check(&args, &lent, &stopped)).await
    }
}
