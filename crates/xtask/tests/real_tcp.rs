//! A real agent on a TCP port: started by acpd and killed, and started elsewhere and cut off.
//!
//! Installs the agent if need be, and is skipped like the tests of `real_agents.rs`.

mod program;

use std::io::copy;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use program::Program;
use xtask::home::{Home, kill_tree, wait_for};
use xtask::real::{Scripts, ready};
use xtask::{Result, workspace};

const AGENT: &str = "copilot";
/// Prompts until the agent has come to itself.
const TRIES: usize = 40;
/// How long the agent may take to listen.
const START: Duration = Duration::from_secs(30);

#[test]
fn copilot_started_by_acpd_is_killed_and_comes_back() {
    let Some(scripts) = ready(&[AGENT]).unwrap() else { return };
    spawned(&scripts).unwrap();
}

#[test]
fn copilot_started_by_somebody_else_is_cut_off_and_connected_again() {
    let Some(scripts) = ready(&[AGENT]).unwrap() else { return };
    connected(&scripts).unwrap();
}

fn spawned(scripts: &Scripts) -> Result {
    let model = scripts.start_model()?;
    let home = Home::new(&workspace::bin_dir("debug")?)?;
    let command = [scripts.command(AGENT), ["--port", "{port}"].map(str::to_owned).into()].concat();
    let profile = scripts.profile(&home, &model, AGENT, &command, &[]);
    home.configure(&(profile + "tcp = { spawn = true, port = 0 }\n"))?;
    conversation(&home, || {
        kill_tree(home.agent(AGENT)?);
        Ok(())
    })?;
    home.stop()
}

fn connected(scripts: &Scripts) -> Result {
    let model = scripts.start_model()?;
    let home = Home::new(&workspace::bin_dir("debug")?)?;
    let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let mut command = home.command(&scripts.run_agent());
    command.args([AGENT, "--port", &port.to_string()]);
    command.envs(scripts.environment(&home, &model));
    let mut agent = Agent::start(command, port)?;
    let wire = Wire::to(SocketAddr::from(([127, 0, 0, 1], port)))?;
    home.configure(&format!("[agents.{AGENT}]\ntcp = {{ connect = \"{}\" }}\n", wire.address))?;
    conversation(&home, || {
        wire.cut();
        Ok(())
    })?;
    home.read(&["daemon", "stop"])?;
    assert!(agent.0.try_wait()?.is_none(), "it is not acpd's to stop");
    drop(agent);
    home.stop()
}

/// Three prompts; `strike` comes in the middle of the second.
fn conversation(home: &Home, strike: impl FnOnce() -> Result) -> Result {
    let run = |prompt: &str| home.acpctl(&["run", "-a", AGENT, "-s", "work", prompt]);
    Program::start(&mut run("say #one"))?.finish()?.answers("tags=one");
    let mut second = Program::start(&mut run("say #two [slow 50]"))?;
    second.read_to("tick 1/50")?;
    strike()?;
    second.finish()?.is(6, &[]);
    // After a cut Copilot goes on clearing up the old connection for as long as its turn would have
    // lasted, and takes the session away from new ones, each time with an error. Then it is back.
    for _ in 0..TRIES {
        let third = Program::start(&mut run("say #three"))?.finish()?;
        if third.code == Some(0) {
            third.answers("tags=one,two,three");
            return Ok(());
        }
    }
    Err(format!("the session is not back after {TRIES} prompts").into())
}

/// An agent that is not acpd's.
struct Agent(Child);

impl Agent {
    /// Starts it and waits until it listens.
    fn start(mut command: Command, port: u16) -> Result<Agent> {
        let agent = Agent(command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
        let listens = || TcpStream::connect(("127.0.0.1", port)).is_ok();
        wait_for("the agent to listen", START, listens)?;
        Ok(agent)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        if let Some(leader) = acpd_sys::process::ProcessId::of(self.0.id()) {
            kill_tree(leader);
        }
        self.0.wait().ok();
    }
}

/// A wire to a port that can be cut.
struct Wire {
    address: SocketAddr,
    ends: Arc<Mutex<Vec<TcpStream>>>,
}

impl Wire {
    fn to(target: SocketAddr) -> Result<Wire> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let ends = Arc::new(Mutex::new(Vec::new()));
        let wire = Wire { address: listener.local_addr()?, ends: Arc::clone(&ends) };
        // This thread ends with the process of the test.
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                let Ok(far) = TcpStream::connect(target) else { continue };
                let pairs =
                    [(near.try_clone(), far.try_clone()), (far.try_clone(), near.try_clone())];
                ends.lock().unwrap_or_else(PoisonError::into_inner).extend([near, far]);
                for pair in pairs {
                    let (Ok(mut from), Ok(mut to)) = pair else { continue };
                    thread::spawn(move || {
                        copy(&mut from, &mut to).ok();
                        to.shutdown(Shutdown::Both).ok();
                    });
                }
            }
        });
        Ok(wire)
    }

    fn cut(&self) {
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        for end in ends.drain(..) {
            end.shutdown(Shutdown::Both).ok();
        }
    }
}
