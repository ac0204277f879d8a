//! Starts agents: each gets a shim made from its profile.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use acpd_core::SpawnError;
use acpd_core::ids::HostId;
use acpd_core::record::{HostRow, HostState};
use acpd_shim::frame::Status;
use acpd_shim::launch::{self, How, LadderTimes, Program};
use acpd_sys::files::private_dir;
use acpd_sys::paths::Paths;
use acpd_sys::process::running_program;

use super::HostEvents;
use super::reaper::Reaper;
use super::shim::{Place, Shim, Start};
use crate::config::{self, Config, OnDisk, Profile, Transport};
use crate::environment::environment_of;
use crate::failure::Failure;
use crate::log::BoundedLog;

/// Time for a shim to start its agent, in addition to the agent's time to listen. Also the time for
/// the daemon to connect to the shim of a command.
const START: Duration = Duration::from_secs(10);
/// Output that a shim keeps in memory, in bytes.
const MEMORY: u64 = 4 << 20;
/// Output that a shim keeps on disk in addition, in bytes.
const SPOOL: u64 = 256 << 20;
/// From SIGTERM to SIGKILL of a command that is killed or released, or whose daemon has died.
pub const COMMAND_GRACE: Duration = Duration::from_secs(1);
/// A line has room, wherever it starts.
const _: () = assert!(2 * config::LONGEST_LINE < MEMORY + SPOOL);

/// Mark of commands, before the number of a terminal.
pub(super) const COMMAND: &str = "t";

#[derive(Debug)]
pub struct Agents {
    pub config: Arc<Config>,
    pub config_file: Arc<OnDisk>,
    pub paths: Paths,
    /// Marks the processes of this journal.
    pub generation: String,
    /// Path of this program, at which an upgrade may have put another one, or none.
    pub exe: PathBuf,
    pub managed: bool,
    pub reaper: Reaper,
    pub events: HostEvents,
    /// By profile. One handle per file, because it counts the written bytes.
    pub logs: BTreeMap<String, BoundedLog>,
}

impl Agents {
    /// Starts an agent with its credentials. A later failure is reported as `Refused`; after an
    /// error nothing is reported.
    pub fn spawn(
        &mut self,
        host: HostId,
        agent: &str,
        secrets: Vec<(String, String)>,
    ) -> Result<Shim, SpawnError> {
        let log = self.log(agent);
        let profile = self.config.agent(agent).map_err(|why| why.of_start(true))?;
        let mut env = environment_of(profile);
        env.retain(|(name, _)| !secrets.iter().any(|(secret, _)| name == secret.as_str()));
        env.extend(secrets.into_iter().map(|(name, value)| (name.into(), value.into())));
        let start = self.start(host, profile, env)?;
        tracing::info!(agent, host = host.0, "starting an agent");
        Ok(Shim::spawn(host, start, self.place(log)))
    }

    /// Takes over an agent of an earlier daemon, which may have sent the chunks `remade` with other
    /// bytes.
    pub fn adopt(&mut self, adopt: HostState, remade: BTreeSet<u64>) -> Shim {
        let HostRow { host, agent, pid, .. } = &adopt.row;
        tracing::info!(agent, host = host.0, pid, "adopting an agent");
        let log = self.log(agent);
        let marker = self.marker(*host);
        Shim::adopt(adopt, remade, &marker, self.place(log))
    }

    pub fn environment(&self, agent: &str) -> Vec<(OsString, OsString)> {
        self.config.agent(agent).map_or_else(|_| Vec::new(), environment_of)
    }

    fn marker(&self, host: HostId) -> String {
        format!("{}-{}", self.generation, host.0)
    }

    fn log(&mut self, agent: &str) -> BoundedLog {
        let (path, size) = (self.paths.agent_log(agent), self.config.daemon.log_max_bytes);
        let log = self.logs.entry(agent.to_owned());
        log.or_insert_with(|| BoundedLog::open(&path, size)).clone()
    }

    pub(super) fn place(&self, log: BoundedLog) -> Place {
        let daemon = &self.config.daemon;
        Place {
            state: self.paths.state.clone(),
            reaper: self.reaper.clone(),
            events: self.events.clone(),
            log,
            line_limit: daemon.line_limit as usize,
            idle_lease: ms(daemon.orphan_timeout),
            busy_lease: ms(daemon.busy_orphan_timeout),
            command: None,
        }
    }

    /// Returns a function that starts a command for an agent, and what will be its exit. Nothing of
    /// the command outlives this daemon. No process has the number `host`. Call the function on the
    /// runtime.
    pub fn command(
        &mut self,
        host: HostId,
        agent: &str,
        events: HostEvents,
    ) -> (impl FnOnce(How) -> Result<Shim, SpawnError> + use<>, Arc<OnceLock<Status>>) {
        let exit = Arc::default();
        let log = self.log(agent);
        let place = Place {
            events,
            // At once: 0 means no limit.
            idle_lease: 1,
            busy_lease: 1,
            command: Some(Arc::clone(&exit)),
            ..self.place(log)
        };
        let marker = format!("{}-{COMMAND}{}", self.generation, host.0);
        let (exe, paths) = (self.exe.clone(), self.paths.clone());
        let start = move |how| {
            let ladder =
                LadderTimes { eof: Duration::ZERO, term: COMMAND_GRACE, leftovers: COMMAND_GRACE };
            let launch = launch::Launch {
                how,
                socket: paths.shim_socket(&marker),
                marker,
                memory: MEMORY,
                // The terminal takes all output at once.
                spool: 0,
                ladder,
                lease: Some(START),
            };
            let hint = "check the command and the PATH of the agent's environment";
            let start = start_of(&exe, &paths, launch, START, hint)?;
            Ok(Shim::spawn(host, start, place))
        };
        (start, exit)
    }

    fn start(
        &self,
        host: HostId,
        profile: &Profile,
        env: Vec<(OsString, OsString)>,
    ) -> Result<Start, SpawnError> {
        let mut hint = "check `command` in the configuration, or the permissions of that file";
        if !profile.start_dir().is_dir() {
            hint = "make that directory, or set `cwd` in the configuration";
        }
        let timeout = profile.start_timeout;
        let (how, deadline) = match profile.transport() {
            Transport::Stdio => (How::Stdio(self.launched(profile, env, None)?), START),
            Transport::TcpSpawn(port) => {
                hint = "check that the command listens on that port; `{port}` stands for it";
                let port = if port == 0 { free_port()? } else { port };
                let program = self.launched(profile, env, Some(port))?;
                (How::TcpSpawn { program, port, timeout }, START + timeout)
            }
            Transport::TcpConnect(address) => {
                hint = "check that the agent listens there, or change `tcp.connect`";
                (How::TcpConnect { addr: resolve(address)?, timeout }, START + timeout)
            }
        };
        let marker = self.marker(host);
        let launch = launch::Launch {
            how,
            socket: self.paths.shim_socket(&marker),
            marker,
            memory: MEMORY,
            spool: SPOOL,
            ladder: LadderTimes {
                eof: profile.stop.eof,
                term: profile.stop.term,
                leftovers: profile.stop.leftovers,
            },
            lease: self.config.daemon.orphan_timeout,
        };
        start_of(&self.exe, &self.paths, launch, deadline, hint)
    }

    fn launched(
        &self,
        profile: &Profile,
        env: Vec<(OsString, OsString)>,
        port: Option<u16>,
    ) -> Result<Program, SpawnError> {
        let arg = |arg: String| match port {
            Some(port) => arg.replace("{port}", &port.to_string()).into(),
            None => arg.into(),
        };
        let own = running_program(&self.exe);
        let (program, args) =
            config::command_line(profile, &env, &own).map_err(|why| why.of_start(true))?;
        Ok(Program {
            program,
            args: args.into_iter().map(arg).collect(),
            env,
            cwd: profile.start_dir(),
        })
    }
}

fn start_of(
    exe: &Path,
    paths: &Paths,
    launch: launch::Launch,
    deadline: Duration,
    hint: &str,
) -> Result<Start, SpawnError> {
    private_dir(&paths.shim_sockets())
        .map_err(|error| Failure::new(&error, error.hint()).of_start(false))?;
    Ok(Start { exe: running_program(exe), launch, deadline, hint: hint.to_owned() })
}

fn ms(time: Option<Duration>) -> u64 {
    time.map_or(0, |time| time.as_millis() as u64)
}

fn free_port() -> Result<u16, SpawnError> {
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|bound| bound.local_addr());
    port.map(|address| address.port()).map_err(|error| {
        let hint = "set `tcp.port` in the configuration";
        Failure::new(format!("cannot find a free port: {error}"), Some(hint)).of_start(false)
    })
}

fn resolve(address: &str) -> Result<SocketAddr, SpawnError> {
    let found = address.to_socket_addrs().map_err(|error| error.to_string());
    let first = found.and_then(|mut found| found.next().ok_or("it has no address".to_owned()));
    first.map_err(|why| {
        let hint = "check `tcp.connect` in the configuration";
        Failure::new(format!("cannot find `{address}`: {why}"), Some(hint)).of_start(false)
    })
}
