//! The running server: where it listens, and how it ends.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use acpd_client::Paths;
use acpd_sys::lock::{self, InstanceLock, LockError};
use acpd_sys::signals::{self, Signal, nudges};
use axum::routing::{get, post};
use axum::{Router, middleware};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::failure::Failure;
use crate::guess::Guesses;
use crate::invitation::Invitation;
use crate::made::Made;
use crate::names::Names;
use crate::page::{Page, page};
use crate::scope::Scopes;
use crate::state::{Event, GOODBYE, Limits, Server};
use crate::store::{Store, folder, server_lock};
use crate::{door, push, sign, socket, tls, worktree};

/// The first port to try: the letters of `acpd` on a telephone.
const PORT: u16 = 2273;
/// The number of ports to try from there.
const PORTS: u16 = 20;
/// Pause after the system refused a connection: it has no descriptors, say.
const PAUSE: Duration = Duration::from_millis(50);

#[derive(Debug)]
pub struct Options {
    pub paths: Paths,
    /// The daemon, or those of several machines.
    pub daemon: acpd_client::Options,
    pub open: bool,
    pub address: IpAddr,
    /// `None` for the first free one of a few.
    pub port: Option<u16>,
    /// A certificate and its key.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// The host of the proxy that browsers open, from [`proxy_host`](crate::proxy_host).
    pub behind: Option<String>,
    pub limits: Limits,
}

/// Serves until a user or the system ends the server.
pub fn serve(
    options: Options,
    tell: impl Fn(Event) + Send + Sync + 'static,
) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::about("cannot begin", &error))?;
    runtime.block_on(run(options, Box::new(tell)))
}

async fn run(options: Options, tell: Box<dyn Fn(Event) + Send + Sync>) -> Result<(), Failure> {
    // Caught before the lock is taken: other commands send signals to its holder.
    let failed = |error: io::Error| Failure::about("cannot catch signals", &error);
    let ending = [Signal::Interrupt, Signal::Terminate, Signal::HangUp];
    let ends = signals::watch(&ending).map_err(failed)?;
    let changes = nudges().map_err(failed)?;
    let (store, folder) = (Store::open(&options.paths)?, folder(&options.paths));
    let lock = take_lock(&options.paths)?;
    if options.tls.is_none() && options.behind.is_none() && !options.address.is_loopback() {
        let error = Failure::new(format!(
            "`{}` is open to others, and without TLS they read everything",
            options.address
        ));
        return Err(error.hint("give `--cert` and `--key`, or name the proxy that has TLS with `--behind https://NAME`"));
    }
    let listener = listen(options.address, options.port).await?;
    let at = listener.local_addr().map_err(|error| Failure::about("cannot listen", &error))?;
    let tls = options.tls.as_ref().map(|(chain, key)| tls::load(chain, key)).transpose()?;
    let (tls, certificate) = tls.unzip();
    let names = match (options.behind, certificate) {
        (Some(behind), _) => Names::Behind(behind),
        (None, Some(certificate)) => Names::Certificate(certificate, at),
        (None, None) => Names::Loopback(at),
    };
    let daemon = options.daemon;
    // A user who opens the page wants the daemon. The first socket reports a failure to start it,
    // too.
    let first = daemon.clone();
    tokio::task::spawn_blocking(move || acpd_client::open_socket(&first)).await??;
    let address = names.address()?;
    lock.add_line(&address).map_err(|error| Failure::about("cannot write the lock", &error))?;
    let prefix = if names.is_secure() { "__Host-" } else { "" };
    let server = Arc::new(Server {
        cookie: format!("{prefix}acpd-{}", at.port()),
        names,
        wrong_codes: Guesses::default(),
        wrong_keys: Guesses::default(),
        sockets: Arc::new(Semaphore::new(options.limits.sockets)),
        limits: options.limits,
        tell,
        daemon,
        store,
        tokens: watch::Sender::default(),
        end: watch::Sender::default(),
        made: Made::default(),
    });
    let code = server.off(|server| server.store.add_code(Scopes::default(), None)).await?;
    let invitation = Invitation::new(&address, &code);
    // Announced first, so that the address comes before an error of opening.
    (server.tell)(Event::Listening(invitation.clone()));
    let opened = options.open.then(|| invitation.open(&folder)).transpose()?;
    let pushes = tokio::spawn(push::run(Arc::clone(&server)));
    let (ended, changed) = (Arc::clone(&server), Arc::clone(&server));
    // Without the receiver, a second signal would end the process before its goodbyes.
    thread::spawn(move || {
        ends.for_each(|_| {
            ended.end.send_replace(true);
        });
    });
    thread::spawn(move || changes.for_each(|()| changed.tokens.send_replace(())));
    accept(&server, listener, tls).await;
    pushes.abort();
    drop((lock, opened));
    Ok(())
}

/// One server for each user: it owns the sockets of all tokens.
fn take_lock(paths: &Paths) -> Result<InstanceLock, Failure> {
    let path = server_lock(paths);
    match InstanceLock::acquire(&path) {
        Err(LockError::Held { pid, .. }) => {
            let at = lock::signature(&path).and_then(|signature| signature.line);
            let at = at.map(|address| format!(" at {address}")).unwrap_or_default();
            let process = pid.map(|pid| format!(" (process {pid})")).unwrap_or_default();
            let hint =
                "`acpctl web pair` lets another browser in; end that one first to serve elsewhere";
            Err(Failure::new(format!("`acpctl web` runs already{at}{process}")).hint(hint))
        }
        other => Ok(other?),
    }
}

async fn listen(address: IpAddr, port: Option<u16>) -> Result<TcpListener, Failure> {
    let last = port.unwrap_or(PORT + PORTS - 1);
    let mut ports = port.unwrap_or(PORT)..=last;
    loop {
        let port = ports.next().unwrap_or(last);
        match TcpListener::bind((address, port)).await {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && port != last => {}
            Err(error) => {
                let what = format!("cannot listen on {}", SocketAddr::from((address, port)));
                return Err(Failure::about(what, &error).hint("choose another port with `--port`"));
            }
            Ok(listener) => return Ok(listener),
        }
    }
}

/// Accepts connections until the end, and then waits a moment for the goodbyes.
async fn accept(server: &Arc<Server>, listener: TcpListener, tls: Option<TlsAcceptor>) {
    let mut end = server.end.subscribe();
    let connections = Arc::new(Semaphore::new(server.limits.connections));
    let service = TowerToHyperService::new(router(server));
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = end.wait_for(|ends| *ends) => break,
        };
        let Ok((stream, _)) = accepted else {
            sleep(PAUSE).await;
            continue;
        };
        // Beyond the limit, the newest is closed.
        let Ok(place) = Arc::clone(&connections).try_acquire_owned() else { continue };
        let (service, tls, head) = (service.clone(), tls.clone(), server.limits.head);
        tokio::spawn(async move {
            // A client that breaks off, or speaks something else, is no error of the server.
            match tls {
                None => drop(speak(stream, service, head).await),
                Some(tls) => {
                    if let Ok(Ok(stream)) = timeout(head, tls.accept(stream)).await {
                        drop(speak(stream, service, head).await);
                    }
                }
            }
            drop(place);
        });
    }
    let all = server.limits.sockets as u32;
    let _ = timeout(GOODBYE, server.sockets.acquire_many(all)).await;
}

async fn speak(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    service: TowerToHyperService<Router>,
    head: Duration,
) -> hyper::Result<()> {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(head);
    http.serve_connection(TokioIo::new(stream), service).with_upgrades().await
}

fn router(server: &Arc<Server>) -> Router {
    let service = Router::new()
        .route("/sign-in", post(sign::sign_in))
        .route("/sign-out", post(sign::sign_out))
        .route("/me", get(sign::me))
        .route("/push", get(push::key).post(push::subscribe).delete(push::unsubscribe))
        .route("/worktree", post(worktree::make).delete(worktree::remove))
        .route("/acp", get(socket::acp).fallback(socket::no_stream))
        .route(door::PAGE, get(socket::acp).fallback(socket::no_stream))
        .fallback_service(get(page).with_state(Arc::new(Page::new())));
    let door = middleware::from_fn_with_state(Arc::clone(server), door::door);
    service.layer(door).with_state(Arc::clone(server))
}
