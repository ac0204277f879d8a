//! Connections to the daemon: for requests ([`Door`]), with events at any time and the keyboard
//! ([`Live`]), and of all rows ([`RowWatch`]).

use std::sync::mpsc::{self, Receiver, SyncSender};
use std::time::{Duration, Instant};
use std::{io, thread};

use acp_wire::{Id, Message, parse};
use acpd_api::{
    AttachParams, AttachResult, Changed, ClientMeta, ClientName, Empty, ExitCode, Role,
    SessionInfo, SessionRef, Untrusted, Watched, method,
};
use acpd_client::{
    ConnectError, Connection, LinkError, LinkEvent, LinkWriter, NotAnswering, Options, Paths,
    Place, connect, connect_lasting, read_answer, read_result,
};
use acpd_sys::signals::Signal;
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::error::{CommandError, Result};
use crate::render::sentence;
use crate::terminal;
use crate::text::{Text, text};
use crate::ui::{TICK, Ui, complain};

/// Maximum of queued messages. Beyond it, the daemon waits, and limits its own queue.
const QUEUE: usize = 256;
/// Absence of the daemon until it is reported.
const QUIET: Duration = Duration::from_secs(1);
/// Maximum time to hold back the last piece of data; until then, the end of its line probably
/// arrives.
const HOLD: Duration = Duration::from_millis(500);
/// Time to send the last lines to the daemon.
const LAST_WORDS: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(crate) enum Event {
    Line(Bytes),
    Ended(LinkError),
    Interrupt,
    Detach,
    /// The command's timeout.
    Late,
    Key(u8),
    /// Any other event of the link; [`Live::next`] handles it.
    Link(LinkEvent),
}

#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) writer: LinkWriter,
    events: Receiver<Event>,
    sender: SyncSender<Event>,
    reads_keys: bool,
    /// Lines of agents come as they are, not in the version of the protocol that is printed.
    pub(crate) originals: bool,
    /// Since when the daemon is away, and whether that was reported.
    away: Option<(Instant, bool)>,
    /// The timeout passed during a request.
    is_late: bool,
}

impl Live {
    pub(crate) fn new(connection: Connection) -> Result<Live> {
        let (mut reader, writer) = connection.split()?;
        reader.report_silence();
        let (sender, events) = mpsc::sync_channel(QUEUE);
        let lines = sender.clone();
        let read = move || {
            loop {
                let (event, is_last) = match reader.recv() {
                    Ok(LinkEvent::Line(line)) => (Event::Line(line), false),
                    Ok(event) => (Event::Link(event), false),
                    Err(error) => (Event::Ended(error), true),
                };
                // Fails only after the receiver is gone.
                if lines.send(event).is_err() || is_last {
                    return;
                }
            }
        };
        thread::Builder::new().name("reader".to_owned()).spawn(read)?;
        let interrupts = sender.clone();
        let take = move |signal| {
            let event = if signal == Signal::Quit { Event::Detach } else { Event::Interrupt };
            drop(interrupts.send(event));
        };
        let leaver = writer.clone();
        terminal::on_keys(take, move || leave(&leaver))?;
        Ok(Live {
            writer,
            events,
            sender,
            reads_keys: false,
            originals: true,
            away: None,
            is_late: false,
        })
    }

    /// Waits for the next event. Flushes the output first, and moves the spinner during the wait.
    /// Reports a daemon that does not answer, and continues to wait, because the daemon may
    /// recover.
    pub(crate) fn next(&mut self, ui: &mut Ui) -> Result<Event> {
        if std::mem::take(&mut self.is_late) {
            return Ok(Event::Late);
        }
        loop {
            match self.step(ui)? {
                Event::Link(LinkEvent::Silent(silent)) => ui.note(in_words(&silent)),
                event => return Ok(event),
            }
        }
    }

    /// Also returns when the daemon does not answer.
    fn step(&mut self, ui: &mut Ui) -> Result<Event> {
        loop {
            let event = match self.events.try_recv() {
                Ok(event) => event,
                Err(_) => {
                    ui.flush_but_last()?;
                    let next = if ui.holds() { self.events.recv_timeout(HOLD).ok() } else { None };
                    match next {
                        Some(event) => event,
                        None => {
                            ui.flush()?;
                            self.wait(ui)
                        }
                    }
                }
            };
            match event {
                Event::Link(LinkEvent::Reconnecting | LinkEvent::Stopped) => {
                    self.away = Some((Instant::now(), false));
                }
                Event::Link(LinkEvent::Resumed) => {
                    if let Some((_, true)) = self.away.take() {
                        note(ui, "acpd is back");
                    }
                }
                event => return Ok(event),
            }
        }
    }

    /// The channel never closes: `self` holds a sender.
    fn wait(&mut self, ui: &mut Ui) -> Event {
        loop {
            let event = match self.away {
                _ if ui.spins() => self.events.recv_timeout(TICK).ok(),
                Some((since, false)) => {
                    self.events.recv_timeout(QUIET.saturating_sub(since.elapsed())).ok()
                }
                _ => self.events.recv().ok(),
            };
            if let Some(event) = event {
                return event;
            }
            ui.tick();
            if let Some((since, is_reported)) = &mut self.away
                && !*is_reported
                && since.elapsed() >= QUIET
            {
                note(ui, "acpd is restarting...");
                *is_reported = true;
            }
        }
    }

    /// Returns [`Event::Late`] from [`Live::next`] after this time.
    pub(crate) fn end_after(&self, time: Duration) -> io::Result<()> {
        let late = self.sender.clone();
        let wait = move || {
            thread::sleep(time);
            // Fails only after the receiver is gone.
            drop(late.send(Event::Late));
        };
        thread::Builder::new().name("deadline".to_owned()).spawn(wait).map(drop)
    }

    pub(crate) fn listen_to_keys(&mut self) -> io::Result<()> {
        if !self.reads_keys {
            self.reads_keys = true;
            let keys = self.sender.clone();
            terminal::read_keys(move |key| keys.send(Event::Key(key)).is_ok())?;
        }
        Ok(())
    }

    /// Sends a request that may take long, and waits for its result. Other messages are dropped,
    /// except the report that the agent does not answer. Ctrl-C and a daemon that does not answer
    /// end the wait, not the request.
    pub(crate) fn call<R: DeserializeOwned>(
        &mut self,
        ui: &mut Ui,
        method: &str,
        params: &impl Serialize,
    ) -> Result<R> {
        let id = self.writer.request(method, params)?;
        loop {
            let line = match self.step(ui)? {
                Event::Line(line) => line,
                Event::Ended(error) => return Err(error.into()),
                // No turn is running that would justify a longer wait.
                Event::Link(LinkEvent::Silent(silent)) => {
                    return Err(LinkError::from(silent).into());
                }
                Event::Interrupt | Event::Detach => {
                    return Err(CommandError::new(
                        ExitCode::Cancelled,
                        "stopped waiting; acpd continues",
                    ));
                }
                Event::Key(_) | Event::Link(_) => continue,
                Event::Late => {
                    self.is_late = true;
                    continue;
                }
            };
            match parse(&line) {
                Ok(Message::Response { id: answered, outcome }) if answered == id => {
                    return Ok(read_answer(method, outcome)?);
                }
                Ok(Message::Notification { method, params: Some(params) })
                    if method == method::UNANSWERED =>
                {
                    if let Some(sentence) = sentence(&method, params.get()) {
                        ui.say(sentence);
                    }
                }
                _ => {}
            }
        }
    }

    /// Binds the connection to an agent: only its notices arrive, and no other agent is
    /// initialized. `can` adds capabilities to [`initialize_params`]. Returns the daemon's answer.
    pub(crate) fn bind(
        &mut self,
        agent: &Untrusted,
        role: Role,
        can: impl IntoIterator<Item = (&'static str, Value)>,
        ui: &mut Ui,
    ) -> Result<Box<RawValue>> {
        let (agent, role) = (Some(agent.raw().to_owned()), Some(role));
        let meta = ClientMeta {
            agent,
            notices: true,
            seq: true,
            originals: self.originals,
            role,
            ..ClientMeta::default()
        };
        let mut params = initialize_params(&meta);
        for (name, value) in can {
            params["clientCapabilities"][name] = value;
        }
        self.call(ui, "initialize", &params)
    }

    /// Attaches to a session, from its end or from after a line of its journal.
    pub(crate) fn attach(
        &mut self,
        session: SessionRef,
        after: Option<u64>,
        role: Role,
        ui: &mut Ui,
    ) -> Result<SessionInfo> {
        let params = AttachParams { session, after, role };
        let attached: AttachResult = self.call(ui, method::SESSION_ATTACH, &params)?;
        Ok(attached.session)
    }

    pub(crate) fn refuse(&mut self, id: &Id, method: &str) -> Result {
        Ok(self.writer.refuse(id, format!("acpctl has no `{method}`"))?)
    }
}

impl Drop for Live {
    /// However the command ends, it will not reconnect; sent lines must still arrive.
    fn drop(&mut self) {
        leave(&self.writer);
    }
}

/// Notifies the daemon that this client will not reconnect, and sends the last lines.
pub(crate) fn leave(daemon: &LinkWriter) {
    daemon.leave();
    daemon.flush(LAST_WORDS);
}

pub(crate) fn in_words(silent: &NotAnswering) -> Text {
    text!("{}; {}", Untrusted::of(silent), Untrusted::from(silent.hint()))
}

fn note(ui: &mut Ui, text: impl Into<Text>) {
    if ui.err_is_terminal {
        ui.note(text);
    }
}

#[derive(Debug)]
pub(crate) enum RowEvent {
    All(Watched),
    Changed(Changed),
    /// The daemon is away; later, all rows arrive again.
    Away,
    /// A user stopped the daemon.
    Stopped,
}

/// All rows of the daemon (`_acpd/watch`), while the command runs.
///
/// A lost connection is restored, and then all rows arrive again. This starts no daemon: a user who
/// stops the daemon wants it stopped.
#[derive(Debug)]
pub(crate) struct RowWatch {
    connection: Connection,
    /// Already reported; a stopping daemon may accept one more connection.
    is_stopped: bool,
}

impl RowWatch {
    pub(crate) fn begin(ui: &Ui) -> Result<RowWatch> {
        let connection = ui.door_to_running().connect_lasting()?;
        let rows = RowWatch { connection, is_stopped: false };
        rows.ask()?;
        Ok(rows)
    }

    fn ask(&self) -> Result {
        self.connection.writer.request(method::WATCH, &Empty {})?;
        Ok(())
    }

    pub(crate) fn next(&mut self, within: Duration) -> Result<Option<RowEvent>> {
        loop {
            let line = match self.connection.reader.recv_within(within)? {
                Some(LinkEvent::Line(line)) => line,
                Some(LinkEvent::Reconnecting) => return Ok(Some(RowEvent::Away)),
                Some(LinkEvent::Stopped) if self.is_stopped => continue,
                Some(LinkEvent::Stopped) => {
                    self.is_stopped = true;
                    return Ok(Some(RowEvent::Stopped));
                }
                Some(LinkEvent::Resumed) => {
                    self.ask()?;
                    continue;
                }
                Some(LinkEvent::Silent(_)) => continue,
                None => return Ok(None),
            };
            self.is_stopped = false;
            if let Some(event) = read(&line)? {
                return Ok(Some(event));
            }
        }
    }
}

fn read(line: &Bytes) -> Result<Option<RowEvent>> {
    Ok(match parse(line) {
        Ok(Message::Response { outcome, .. }) => {
            Some(RowEvent::All(read_answer(method::WATCH, outcome)?))
        }
        Ok(Message::Notification { method, params: Some(params) }) if method == method::CHANGED => {
            Some(RowEvent::Changed(read_result(&method, params)?))
        }
        _ => None,
    })
}

const NAME: &str = "acpctl";

/// Warnings about a daemon that ends with its terminal.
const BOUND: &str = "warning: acpd and its agents stop with this terminal or its program: they are in a Job that Windows \
                     does not let them leave";
const UNBOUND: &str = "\nhint: stop acpd and start it in another terminal: `acpctl daemon stop`, `acpctl daemon start`";

#[derive(Debug, Clone)]
pub(crate) struct Door {
    spawn: bool,
    /// `None`: this machine.
    place: Option<Place>,
}

impl Ui {
    /// Returns the door of this command; `--no-spawn` forbids it to start a daemon.
    pub(crate) fn door(&self) -> Door {
        Door { spawn: self.may_start, place: self.other_place() }
    }

    /// Returns a door that starts no daemon.
    pub(crate) fn door_to_running(&self) -> Door {
        Door { spawn: false, place: self.other_place() }
    }

    fn other_place(&self) -> Option<Place> {
        self.machine.as_ref().map(|machine| machine.place.clone())
    }
}

impl Door {
    /// A door to the daemon of this machine.
    pub(crate) fn here(spawn: bool) -> Door {
        Door { spawn, place: None }
    }

    pub(crate) fn connect(&self) -> Result<Connection> {
        warned(connect(&self.options()?))
    }

    pub(crate) fn options(&self) -> Result<Options> {
        let place = match &self.place {
            Some(place) => place.clone(),
            None => Place::Here(Paths::discover()?),
        };
        Ok(Options { spawn: self.spawn, place })
    }

    /// The connection follows the daemon's successors.
    pub(crate) fn connect_lasting(&self) -> Result<Connection> {
        let options = self.options()?;
        warned(connect_lasting(&options, options.place.patience()))
    }
}

fn warned(connected: Result<Connection, ConnectError>) -> Result<Connection> {
    let connection = connected?;
    if connection.reader.is_bound() {
        complain(BOUND);
        complain(UNBOUND);
    }
    Ok(connection)
}

pub(crate) fn me() -> ClientName {
    let place = terminal::name().map(Into::into);
    ClientName { name: NAME.into(), title: None, place }
}

/// Returns the parameters for `initialize`: acpctl serves no agent, and shows some optional
/// content.
pub(crate) fn initialize_params(meta: &ClientMeta) -> Value {
    let meta = ClientMeta { place: terminal::name(), ..meta.clone() };
    let mut params = acpd_client::initialize_params(&meta, NAME);
    params["clientCapabilities"]["session"] =
        json!({"configOptions": {"boolean": {}}, "notices": {}, "compaction": {}});
    params
}
