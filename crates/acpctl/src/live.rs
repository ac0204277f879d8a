//! A connection that delivers events at any time, together with the keyboard.

use std::io;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use acp_wire::{Id, Message, parse};
use acpd_api::{
    AttachParams, AttachResult, ClientMeta, ExitCode, Role, SessionInfo, SessionRef, Untrusted,
    method,
};
use acpd_client::{Connection, LinkError, LinkEvent, LinkWriter, NotAnswering, read_answer};
use acpd_sys::signals::Signal;
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::door::initialize_params;
use crate::error::{CommandError, Result};
use crate::render::sentence;
use crate::terminal;
use crate::text::{Text, text};
use crate::ui::{TICK, Ui};

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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    There,
    AwaySince(Instant),
    Reported,
}

#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) writer: LinkWriter,
    events: Receiver<Event>,
    sender: SyncSender<Event>,
    reads_keys: bool,
    presence: Presence,
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
        let presence = Presence::There;
        Ok(Live { writer, events, sender, reads_keys: false, presence, is_late: false })
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
                    self.presence = Presence::AwaySince(Instant::now());
                }
                Event::Link(LinkEvent::Resumed) => {
                    if self.presence == Presence::Reported {
                        note(ui, "acpd is back");
                    }
                    self.presence = Presence::There;
                }
                event => return Ok(event),
            }
        }
    }

    /// The channel never closes: `self` holds a sender.
    fn wait(&mut self, ui: &mut Ui) -> Event {
        loop {
            let event = match self.presence {
                _ if ui.spins() => self.events.recv_timeout(TICK).ok(),
                Presence::AwaySince(since) => {
                    self.events.recv_timeout(QUIET.saturating_sub(since.elapsed())).ok()
                }
                Presence::There | Presence::Reported => self.events.recv().ok(),
            };
            if let Some(event) = event {
                return event;
            }
            ui.tick();
            if matches!(self.presence, Presence::AwaySince(since) if since.elapsed() >= QUIET) {
                note(ui, "acpd is restarting...");
                self.presence = Presence::Reported;
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
        let meta = ClientMeta { agent, notices: true, seq: true, role, ..ClientMeta::default() };
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
    if ui.talks_to_terminal() {
        ui.note(text);
    }
}
