//! One connection to the daemons of several machines, for clients that know only one daemon.
//!
//! ```text
//!  client ── a pair of sockets ── thread: router ─┬─ thread: link to this machine
//!                                                 ├─ thread: link to `box`, over ssh
//!                                                 └─ …
//! ```
//!
//! A link connects when the router has the first line for it, and resumes a lost connection itself.
//! So the client's own connection has nothing to resume.

mod names;
mod router;

use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use acp_wire::{Body, Framer};
use acpd_sys::paths::{PathError, Paths};
use acpd_sys::socket::{self, Stream, hang_up};
use bytes::Bytes;

use self::router::{RouteStep, Router, shown};
use crate::connect::{Join, Options, Place};
use crate::connection::connect_lasting;
use crate::error::ConnectError;
use crate::host::Host;
use crate::link::{LinkEvent, LinkReader, LinkWriter};
use crate::stream::{read_block, write_line};

/// Most queued events. Machines wait beyond it.
const QUEUE: usize = 256;
const BLOCK: usize = 64 * 1024;
/// Time to send the last lines to each machine.
const LAST_LINES: Duration = Duration::from_millis(300);

enum MachineEvent {
    Client(Bytes),
    ClientLeft,
    Up(usize, OpenLink),
    Line(usize, Bytes),
    Away(usize),
    Back(usize),
    Down(usize, String),
}

enum MachineLink {
    Idle,
    /// The lines to send once it is open.
    Opening(Vec<Bytes>),
    Open(OpenLink),
}

/// Ends its link when it is dropped, also with an event that is no longer taken.
struct OpenLink(LinkWriter);

impl Drop for OpenLink {
    fn drop(&mut self) {
        self.0.end();
    }
}

struct Exchange {
    machines: Arc<[Place]>,
    links: Vec<MachineLink>,
    router: Router,
    client: Arc<Stream>,
    spawn: bool,
    sender: SyncSender<MachineEvent>,
}

/// Several machines as one: a place to connect to.
#[derive(Debug)]
pub struct Machines(Arc<[Place]>);

impl Machines {
    /// The daemons of these machines; `None` is this one.
    pub fn new(hosts: Vec<Option<Host>>) -> Result<Machines, PathError> {
        let place = |host: Option<Host>| match host {
            None => Paths::discover().map(Place::Here),
            Some(host) => Ok(Place::Host(Arc::new(host))),
        };
        hosts.into_iter().map(place).collect::<Result<_, _>>().map(Machines)
    }
}

impl Join for Machines {
    fn names(&self) -> String {
        let names: Vec<_> = self.0.iter().map(|machine| shown(name(machine))).collect();
        names.join(", ")
    }

    /// Fails if there is one machine only, and it cannot be reached.
    fn open(&self, spawn: bool) -> Result<Stream, ConnectError> {
        let machines = Arc::clone(&self.0);
        let (near, client) = socket::pair().map_err(ConnectError::System)?;
        let (client, (sender, events)) = (Arc::new(client), mpsc::sync_channel(QUEUE));
        let mut exchange = Exchange {
            links: machines.iter().map(|_| MachineLink::Idle).collect(),
            router: Router::new(machines.iter().map(|machine| name(machine).to_owned()).collect()),
            client: Arc::clone(&client),
            sender: sender.clone(),
            machines,
            spawn,
        };
        if let [machine] = &*self.0 {
            let (reader, writer) = connect(machine, spawn)?;
            exchange.links[0] = MachineLink::Open(OpenLink(writer));
            let sender = sender.clone();
            start_thread("machine", move || follow(0, reader, &sender))?;
        }
        start_thread("client", move || read_client(&client, &sender))?;
        start_thread("machines", move || exchange.run(&events))?;
        Ok(near)
    }
}

fn start_thread(name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), ConnectError> {
    let started = thread::Builder::new().name(name.to_owned()).spawn(run);
    started.map(drop).map_err(ConnectError::System)
}

/// Returns the first part of the names of a machine's sessions; empty for this machine.
fn name(machine: &Place) -> &str {
    match machine {
        Place::Host(host) => &host.name,
        Place::Here(_) | Place::Machines(_) => "",
    }
}

fn connect(machine: &Place, spawn: bool) -> Result<(LinkReader, LinkWriter), ConnectError> {
    let options = Options { spawn, place: machine.clone() };
    connect_lasting(&options, machine.patience())?.split()
}

impl Exchange {
    fn run(mut self, events: &Receiver<MachineEvent>) {
        loop {
            let now = Instant::now();
            let event = match self.router.wakes_at() {
                Some(at) => events.recv_timeout(at.saturating_duration_since(now)),
                None => events.recv().map_err(RecvTimeoutError::from),
            };
            let mut steps = event.map(|event| self.take(event)).unwrap_or_default();
            // Also while a machine sends lines without a pause.
            steps.extend(self.router.on_time(Instant::now()));
            if steps.into_iter().any(|step| !self.perform(step)) {
                return self.leave();
            }
        }
    }

    fn take(&mut self, event: MachineEvent) -> Vec<RouteStep> {
        match event {
            MachineEvent::Client(line) => self.router.on_client(line, Instant::now()),
            MachineEvent::ClientLeft => vec![RouteStep::Close],
            MachineEvent::Line(machine, line) => self.router.on_machine(machine, &line),
            MachineEvent::Away(machine) => self.router.on_away(machine),
            MachineEvent::Back(machine) => self.router.on_back(machine),
            MachineEvent::Up(machine, link) => {
                if let MachineLink::Opening(lines) = &mut self.links[machine] {
                    // A lost connection is reported as an event.
                    for line in lines.drain(..) {
                        drop(link.0.send(line));
                    }
                }
                self.links[machine] = MachineLink::Open(link);
                self.router.on_up(machine)
            }
            MachineEvent::Down(machine, error) => {
                self.links[machine] = MachineLink::Idle;
                self.router.on_down(machine, &error, Instant::now())
            }
        }
    }

    /// Returns whether the connection continues.
    fn perform(&mut self, step: RouteStep) -> bool {
        match step {
            RouteStep::ToClient(line) => write_line(&self.client, &line).is_ok(),
            RouteStep::ToMachine(machine, line) => {
                match &mut self.links[machine] {
                    MachineLink::Open(link) => drop(link.0.send(line)),
                    MachineLink::Opening(lines) => lines.push(line),
                    link @ MachineLink::Idle => {
                        *link = MachineLink::Opening(vec![line]);
                        return self.start(machine);
                    }
                }
                true
            }
            RouteStep::Close => false,
        }
    }

    fn start(&self, at: usize) -> bool {
        let (machine, spawn) = (self.machines[at].clone(), self.spawn);
        let sender = self.sender.clone();
        let run = move || match connect(&machine, spawn) {
            Ok((reader, writer)) => {
                if sender.send(MachineEvent::Up(at, OpenLink(writer))).is_ok() {
                    follow(at, reader, &sender);
                }
            }
            Err(error) => drop(sender.send(MachineEvent::Down(at, error.to_string()))),
        };
        start_thread("machine", run).is_ok()
    }

    /// Ends all links after their last lines, then the connection of the client.
    fn leave(self) {
        let open = self.links.iter().filter_map(|link| match link {
            MachineLink::Open(link) => Some(&link.0),
            _ => None,
        });
        let open: Vec<_> = open.inspect(|writer| writer.end()).collect();
        for writer in open {
            writer.flush(LAST_LINES);
        }
        hang_up(&self.client);
    }
}

fn read_client(client: &Stream, sender: &SyncSender<MachineEvent>) {
    let (mut framer, mut block) = (Framer::new(usize::MAX), vec![0; BLOCK]);
    while let Ok(count @ 1..) = read_block(client, &mut block) {
        framer.push(&block[..count]);
        while let Some(frame) = framer.next_frame() {
            let Body::Line(line) = frame.body else { continue };
            if sender.send(MachineEvent::Client(line)).is_err() {
                return;
            }
        }
    }
    // Fails only after the exchange has ended.
    drop(sender.send(MachineEvent::ClientLeft));
}

/// Reports the lines and states of a link until it ends.
fn follow(at: usize, mut reader: LinkReader, sender: &SyncSender<MachineEvent>) {
    loop {
        let event = match reader.recv() {
            Ok(LinkEvent::Line(line)) => MachineEvent::Line(at, line),
            Ok(LinkEvent::Reconnecting | LinkEvent::Stopped) => MachineEvent::Away(at),
            Ok(LinkEvent::Resumed) => MachineEvent::Back(at),
            Ok(LinkEvent::Silent(_)) => continue,
            Err(error) => {
                drop(sender.send(MachineEvent::Down(at, error.to_string())));
                return;
            }
        };
        if sender.send(event).is_err() {
            return;
        }
    }
}
