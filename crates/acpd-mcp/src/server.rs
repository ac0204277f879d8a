use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use acpd_api::Tools;
use acpd_client::{Options as ConnectOptions, Paths, Place};
use rmcp::handler::server::tool::ToolRouter;
use rmcp::model::{
    Implementation, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    PaginatedRequestParams, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    Resource, ResourceContents, ResourceTemplate, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt as _, tool_handler};
use tokio::sync::Semaphore;

use crate::daemon::{Daemon, run_blocking};
use crate::failure::Failure;
use crate::options::Options;
use crate::report::transcript;
use crate::ticket::{TEMPLATE, Ticket};
use crate::turns::{AT_ONCE, SentTurns, locked};
use crate::workspace::Workspace;

/// The resource with the list of files in the workspace.
const FILES: &str = "acpd://workspace/files";
/// Most bytes of a turn in a resource.
const RESOURCE: usize = 1 << 20;

const ABOUT: &str = "acpd keeps coding agents and their conversations alive. `prompt` gives work to another agent in a \
    session with a name: a new name begins one, a known name continues it, also after a restart of everything. \
    Questions of that agent are answered by people, unless they are in `toAnswer`.";

#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) daemon: Daemon,
    /// The session that the server is lent to, by acpd's number.
    pub(crate) own: Option<u64>,
    /// The agent may answer questions in the turns that it has begun.
    pub(crate) answers: bool,
    pub(crate) turns: Arc<Mutex<SentTurns>>,
    /// Places for running turns of this server.
    pub(crate) places: Arc<Semaphore>,
    /// Places to wait for turns of others; each has a connection.
    pub(crate) followed: Arc<Semaphore>,
    pub(crate) workspace: Arc<Workspace>,
    /// The tools for files are lent, and with them the list of files.
    has_workspace: bool,
    tool_router: ToolRouter<Self>,
}

/// Serves on standard input and output until the host is gone. Running turns continue.
pub fn serve(options: &Options) -> io::Result<()> {
    let paths = Paths::discover().map_err(io::Error::other)?;
    let daemon =
        Daemon { options: ConnectOptions { spawn: options.spawn, place: Place::Here(paths) } };
    let workspace = Arc::new(Workspace::new(options));
    let server = Server {
        daemon,
        own: options.session,
        answers: options.answer,
        turns: Arc::default(),
        places: Arc::new(Semaphore::new(AT_ONCE)),
        followed: Arc::new(Semaphore::new(AT_ONCE)),
        workspace: Arc::clone(&workspace),
        has_workspace: options.tools.contains(&Tools::Workspace),
        tool_router: Server::tools(options),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let served = runtime.block_on(async {
        let running = server.serve(rmcp::transport::stdio()).await.map_err(io::Error::other)?;
        running.waiting().await.map_err(io::Error::other)
    });
    runtime.shutdown_background();
    // No call is left, so the processes of their commands are being ended.
    workspace.until_idle();
    served.map(drop)
}

impl Server {
    fn tools(options: &Options) -> ToolRouter<Server> {
        let mut router = ToolRouter::new();
        for tools in &options.tools {
            router += match tools {
                Tools::Delegate => Server::delegate(),
                Tools::History => Server::history(),
                Tools::Workspace => Server::workspace(),
            };
        }
        if !options.answer {
            router.remove_route("answer");
        }
        router
    }

    pub(crate) fn turns(&self) -> MutexGuard<'_, SentTurns> {
        locked(&self.turns)
    }

    /// A turn as Markdown for people.
    async fn full_text(&self, ticket: &Ticket) -> Result<String, Failure> {
        let session = self.session_of(ticket).await?;
        let turn = self.daemon.turn(session, ticket.turn).await?;
        Ok(transcript(&turn.blocks, RESOURCE))
    }
}

#[tool_handler(router = self.tool_router)]
impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().enable_resources().build();
        let mut info = ServerConfig::new(capabilities).with_instructions(ABOUT);
        info.server_info = Implementation::new("acpd", env!("CARGO_PKG_VERSION"));
        info
    }

    async fn list_resources(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let files = Resource::new(FILES, "workspace_files")
            .with_title("Files of the workspace")
            .with_description("The names of files, those that git ignores left out.")
            .with_mime_type("text/plain");
        let all = if self.has_workspace { vec![files] } else { Vec::new() };
        Ok(ListResourcesResult::with_all_items(all))
    }

    /// An empty list, since some hosts drop a server that answers with an error.
    async fn list_prompts(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(Vec::new()))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let turn = ResourceTemplate::new(TEMPLATE, "turn")
            .with_title("A turn of a session")
            .with_description("Everything that was said and done in it, for people.")
            .with_mime_type("text/markdown");
        Ok(ListResourceTemplatesResult::with_all_items(vec![turn]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let no_such = |text: String| ErrorData::resource_not_found(text, None);
        let (text, kind) = if request.uri == FILES && self.has_workspace {
            let workspace = Arc::clone(&self.workspace);
            (run_blocking(move || workspace.files()).await, "text/plain")
        } else {
            let ticket = Ticket::parse(&request.uri)
                .ok_or_else(|| no_such(format!("addresses look like `{TEMPLATE}`")))?;
            (self.full_text(&ticket).await, "text/markdown")
        };
        let text = text.map_err(|failure| no_such(failure.text()))?;
        let contents = ResourceContents::text(text, request.uri).with_mime_type(kind);
        Ok(ReadResourceResult::new(vec![contents]).into())
    }
}
