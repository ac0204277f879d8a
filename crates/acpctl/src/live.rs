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
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::door::initialize_params;
use crate::error::{CommandError, Result};
use crate::render::sentence;
use crate::terminal::{self, TerminalKey};
use crate::text::{Text, text};
use crate::ui::{TICK, Ui};

/// Messages that wait to be shown; beyond that, the daemon waits (it bounds what it keeps).
const QUEUE: usize = 256;
/// Time after which the absence of the daemon is reported.
const QUIET: Duration = Duration::from_secs(1);
/// For how long the last piece of data is held back: most likely the end of its line comes until then.
const HOLD: Duration = Duration::from_millis(500);
/// Longest time for the last lines to the daemon.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Events that [`Live::next`] returns.
#[derive(Debug)]
pub(crate) enum Event {
    /// The daemon sent a line.
    Line(Bytes),
    /// The connection has ended.
    Ended(LinkError),
    Interrupt,
    Detach,
    /// The time that was given to the command is over.
    Late,
    /// A key was pressed.
    Key(u8),
}

/// Reports of the threads.
#[derive(Debug)]
enum News {
    Event(Event),
    Link(LinkEvent),
}

/// Presence of the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    There,
    AwaySince(Instant),
    /// Away, and the user knows.
    Told,
}

/// The connection, its events and what is sent.
#[derive(Debug)]
pub(crate) struct Live {
    writer: LinkWriter,
    news: Receiver<News>,
    sender: SyncSender<News>,
    reads_keys: bool,
    presence: Presence,
    /// The time was over while an answer was waited for.
    is_late: bool,
}

impl Live {
    /// Starts to listen to the daemon and to Ctrl-C.
    pub(crate) fn new(connection: Connection) -> Result<Live> {
        let (mut reader, writer) = connection.split()?;
        reader.report_silence();
        let (sender, news) = mpsc::sync_channel(QUEUE);
        let lines = sender.clone();
        let read = move || {
            loop {
                let (news, is_last) = match reader.recv() {
                    Ok(event) => (News::Link(event), false),
                    Err(error) => (News::Event(Event::Ended(error)), true),
                };
                // Fails only after the receiver is gone.
                if lines.send(news).is_err() || is_last {
                    return;
                }
            }
        };
        thread::Builder::new().name("reader".to_owned()).spawn(read)?;
        let interrupts = sender.clone();
        let take = move |key| {
            let event = match key {
                TerminalKey::Interrupt => Event::Interrupt,
                TerminalKey::Detach => Event::Detach,
            };
            drop(interrupts.send(News::Event(event)));
        };
        let leaver = writer.clone();
        terminal::on_keys(take, move || leave(&leaver))?;
        let presence = Presence::There;
        Ok(Live { writer, news, sender, reads_keys: false, presence, is_late: false })
    }

    /// Waits for the next event. Flushes the output before the wait and moves the spinner during it. Reports a
    /// daemon that does not answer, and keeps waiting: it may recover.
    pub(crate) fn next(&mut self, ui: &mut Ui) -> Result<Event> {
        if std::mem::take(&mut self.is_late) {
            return Ok(Event::Late);
        }
        loop {
            match self.step(ui)? {
                Ok(event) => return Ok(event),
                Err(silent) => ui.note(in_words(&silent)),
            }
        }
    }

    /// Waits for the next event, or for the report that the daemon does not answer.
    fn step(&mut self, ui: &mut Ui) -> Result<std::result::Result<Event, NotAnswering>> {
        loop {
            let news = match self.news.try_recv() {
                Ok(news) => news,
                Err(_) => {
                    ui.flush_but_last()?;
                    let next = if ui.holds() { self.news.recv_timeout(HOLD).ok() } else { None };
                    match next {
                        Some(news) => news,
                        None => {
                            ui.flush()?;
                            self.wait(ui)
                        }
                    }
                }
            };
            match news {
                News::Event(event) => return Ok(Ok(event)),
                News::Link(LinkEvent::Line(line)) => return Ok(Ok(Event::Line(line))),
                News::Link(LinkEvent::Silent(silent)) => return Ok(Err(silent)),
                News::Link(LinkEvent::Reconnecting | LinkEvent::Stopped) => {
                    self.presence = Presence::AwaySince(Instant::now());
                }
                News::Link(LinkEvent::Resumed) => {
                    if self.presence == Presence::Told {
                        note(ui, "acpd is back");
                    }
                    self.presence = Presence::There;
                }
            }
        }
    }

    /// Waits for news. The channel never closes: we hold a sender ourselves.
    fn wait(&mut self, ui: &mut Ui) -> News {
        loop {
            let news = match self.presence {
                _ if ui.spins() => self.news.recv_timeout(TICK).ok(),
                Presence::AwaySince(since) => {
                    self.news.recv_timeout(QUIET.saturating_sub(since.elapsed())).ok()
                }
                Presence::There | Presence::Told => self.news.recv().ok(),
            };
            if let Some(news) = news {
                return news;
            }
            ui.tick();
            if matches!(self.presence, Presence::AwaySince(since) if since.elapsed() >= QUIET) {
                note(ui, "acpd is restarting...");
                self.presence = Presence::Told;
            }
        }
    }

    /// After this time it is [`Event::Late`].
    pub(crate) fn end_after(&self, time: Duration) -> io::Result<()> {
        let late = self.sender.clone();
        let wait = move || {
            thread::sleep(time);
            // Fails only after the receiver is gone.
            drop(late.send(News::Event(Event::Late)));
        };
        thread::Builder::new().name("deadline".to_owned()).spawn(wait).map(drop)
    }

    /// From now on keys are events, too.
    pub(crate) fn listen_to_keys(&mut self) -> io::Result<()> {
        if !self.reads_keys {
            self.reads_keys = true;
            let keys = self.sender.clone();
            terminal::read_keys(move |key| keys.send(News::Event(Event::Key(key))).is_ok())?;
        }
        Ok(())
    }

    /// Sends a request that may take long and waits for its result. What else comes is dropped, except
    /// for the word that the agent does not answer. Ctrl-C ends the wait, not what was asked for; so does
    /// a daemon that does not answer.
    pub(crate) fn call<R: DeserializeOwned>(
        &mut self,
        ui: &mut Ui,
        method: &str,
        params: &impl Serialize,
    ) -> Result<R> {
        let id = self.request(method, params)?;
        loop {
            // No work is under way that would have to be waited for.
            let event = self.step(ui)?.map_err(LinkError::from)?;
            let line = match event {
                Event::Line(line) => line,
                Event::Ended(error) => return Err(error.into()),
                Event::Interrupt | Event::Detach => {
                    return Err(CommandError::new(
                        ExitCode::Cancelled,
                        "stopped waiting; acpd continues",
                    ));
                }
                Event::Key(_) => continue,
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

    /// Binds the connection to an agent, so that notices come and no other agent is asked what it can do. `can` is
    /// what this verb shows in addition to [`initialize_params`]. Returns the daemon's answer.
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

    /// Attaches to a session, from now on or from behind this line of its journal.
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

    /// Sends a request and returns its id: 1, 2, 3 and so on.
    pub(crate) fn request(&mut self, method: &str, params: &impl Serialize) -> Result<Id> {
        Ok(self.writer.request(method, params)?)
    }

    pub(crate) fn notify(&mut self, method: &str, params: &impl Serialize) -> Result {
        Ok(self.writer.notify(method, params)?)
    }

    /// Answers a request of the daemon.
    pub(crate) fn answer(&mut self, id: &Id, result: &impl Serialize) -> Result {
        Ok(self.writer.answer(id, result)?)
    }

    /// Answers a request for a service that acpctl does not have.
    pub(crate) fn refuse(&mut self, id: &Id, method: &str) -> Result {
        Ok(self.writer.refuse(id, format!("acpctl has no `{method}`"))?)
    }
}

impl Drop for Live {
    /// However the command ends, it will not come back; what it has sent must still arrive.
    fn drop(&mut self) {
        leave(&self.writer);
    }
}

fn leave(daemon: &LinkWriter) {
    daemon.leave();
    daemon.flush(LAST_WORDS);
}

/// Describes a daemon that does not answer, with the hint, on one line.
pub(crate) fn in_words(silent: &NotAnswering) -> Text {
    text!("{}; {}", Untrusted::of(silent), Untrusted::from(silent.hint()))
}

/// A word about the connection, for people.
fn note(ui: &mut Ui, text: impl Into<Text>) {
    if ui.talks_to_terminal() {
        ui.note(text);
    }
}
