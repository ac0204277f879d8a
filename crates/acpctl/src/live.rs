//! A connection on which anything may come at any time, and the keyboard beside it.

use std::io;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use acp_wire::{ErrorObject, Id, Message, Outcome, build, code, parse};
use acpd_api::{ExitCode, Untrusted, method};
use acpd_client::{CallError, Incoming, LinkError, LinkReader, LinkWriter, Paths, stopped_daemon};
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::error::{CommandError, Result, gone};
use crate::paint::DIM;
use crate::render::sentence;
use crate::text::{Text, text};
use crate::ui::{TICK, Ui};
use crate::{signal, terminal};

/// Messages that wait to be shown; beyond that, the daemon waits (it bounds what it keeps).
const QUEUE: usize = 256;
/// How long the daemon may be away before the user is told.
const QUIET: Duration = Duration::from_secs(1);
/// How often it is looked whether a daemon that says nothing is stopped.
const LOOK: Duration = Duration::from_secs(5);
/// How long the last words to the daemon may take.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// What happens.
#[derive(Debug)]
pub(crate) enum Event {
    /// The daemon sent a line.
    Line(Bytes),
    /// The daemon closed the connection, and it cannot be taken up again.
    Closed,
    /// The connection was lost for good.
    Failed(LinkError),
    /// Ctrl-C.
    Interrupt,
    /// A key was pressed.
    Key(u8),
}

/// What happens, and how the connection is.
#[derive(Debug)]
enum News {
    Event(Event),
    Lost,
    Back,
}

/// Whether the daemon is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    There,
    AwaySince(Instant),
    /// Away, and the user knows.
    Told,
    /// There, but a signal has stopped it, and the user knows.
    Stopped,
}

/// The connection, its events and what is sent.
#[derive(Debug)]
pub(crate) struct Live {
    writer: LinkWriter,
    last_id: u64,
    news: Receiver<News>,
    sender: SyncSender<News>,
    reads_keys: bool,
    presence: Presence,
    /// When it was last looked whether the daemon is stopped.
    looked: Instant,
}

impl Live {
    /// Starts to listen to the daemon and to Ctrl-C.
    pub(crate) fn new((mut reader, writer): (LinkReader, LinkWriter)) -> Result<Live> {
        let (sender, news) = mpsc::sync_channel(QUEUE);
        let lines = sender.clone();
        let read = move || {
            loop {
                let (news, is_last) = match reader.recv() {
                    Ok(Incoming::Line(line)) => (News::Event(Event::Line(line)), false),
                    Ok(Incoming::Lost) => (News::Lost, false),
                    Ok(Incoming::Back) => (News::Back, false),
                    Ok(Incoming::Closed) => (News::Event(Event::Closed), true),
                    Err(error) => (News::Event(Event::Failed(error)), true),
                };
                // Nobody waits any more if this fails.
                if lines.send(news).is_err() || is_last {
                    return;
                }
            }
        };
        thread::Builder::new().name("reader".to_owned()).spawn(read)?;
        let interrupts = sender.clone();
        let interrupt = move || drop(interrupts.send(News::Event(Event::Interrupt)));
        let leaver = writer.clone();
        signal::on_interrupt(interrupt, move || leave(&leaver))?;
        let presence = Presence::There;
        let looked = Instant::now();
        Ok(Live { writer, last_id: 0, news, sender, reads_keys: false, presence, looked })
    }

    /// The next event. What was printed is sent out before a wait, and the spinner moves during it.
    pub(crate) fn next(&mut self, ui: &mut Ui) -> Result<Event> {
        loop {
            let news = match self.news.try_recv() {
                Ok(news) => news,
                Err(TryRecvError::Disconnected) => return Ok(Event::Closed),
                Err(TryRecvError::Empty) => {
                    ui.flush()?;
                    match self.wait(ui) {
                        Some(news) => news,
                        None => return Ok(Event::Closed),
                    }
                }
            };
            if self.presence == Presence::Stopped {
                self.presence = Presence::There;
            }
            match news {
                News::Event(event) => return Ok(event),
                News::Lost => self.presence = Presence::AwaySince(Instant::now()),
                News::Back => {
                    if self.presence == Presence::Told {
                        note(ui, "acpd is back");
                    }
                    self.presence = Presence::There;
                }
            }
        }
    }

    /// Waits for news; none will come any more if there are none.
    fn wait(&mut self, ui: &mut Ui) -> Option<News> {
        loop {
            let news = match self.presence {
                _ if ui.spins() => self.news.recv_timeout(TICK),
                Presence::AwaySince(since) => {
                    self.news.recv_timeout(QUIET.saturating_sub(since.elapsed()))
                }
                Presence::There => self.news.recv_timeout(LOOK),
                Presence::Told | Presence::Stopped => {
                    self.news.recv().map_err(RecvTimeoutError::from)
                }
            };
            match news {
                Ok(news) => return Some(news),
                Err(RecvTimeoutError::Timeout) => ui.tick(),
                Err(RecvTimeoutError::Disconnected) => return None,
            }
            match self.presence {
                Presence::AwaySince(since) if since.elapsed() >= QUIET => {
                    note(ui, "acpd is restarting...");
                    self.presence = Presence::Told;
                }
                Presence::There if self.looked.elapsed() >= LOOK => {
                    self.looked = Instant::now();
                    if let Some(stopped) = Paths::discover().ok().and_then(|p| stopped_daemon(&p)) {
                        let (told, hint) =
                            (Untrusted::of(&stopped), Untrusted::from(stopped.hint()));
                        note(ui, text!("{}; {}", told, hint));
                        self.presence = Presence::Stopped;
                    }
                }
                _ => {}
            }
        }
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
    /// for the word that the agent does not answer. Ctrl-C ends the wait, not what was asked for.
    pub(crate) fn call<R: DeserializeOwned>(
        &mut self,
        ui: &mut Ui,
        method: &str,
        params: &impl Serialize,
    ) -> Result<R> {
        let id = self.request(method, params)?;
        loop {
            let line = match self.next(ui)? {
                Event::Line(line) => line,
                Event::Closed => return Err(CallError::Closed.into()),
                Event::Failed(error) => return Err(error.into()),
                Event::Interrupt => {
                    return Err(CommandError::new(
                        ExitCode::Cancelled,
                        "no longer waiting; acpd goes on with it",
                    ));
                }
                Event::Key(_) => continue,
            };
            match parse(&line) {
                Ok(Message::Response { id: answered, outcome }) if answered == id => {
                    return match outcome {
                        Outcome::Error(error) => {
                            Err(CommandError::rpc(&ErrorObject::from_raw(error)))
                        }
                        Outcome::Result(result) => Ok(result_of(method, result)?),
                    };
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

    /// Sends a request and returns its id: 1, 2, 3 and so on.
    pub(crate) fn request(&mut self, method: &str, params: &impl Serialize) -> Result<Id> {
        self.last_id += 1;
        let id = Id::from(self.last_id);
        self.send(build::request(&id, method, params))?;
        Ok(id)
    }

    /// Sends a notification.
    pub(crate) fn notify(&mut self, method: &str, params: &impl Serialize) -> Result {
        self.send(build::notification(method, params))
    }

    /// Answers a request of the daemon.
    pub(crate) fn answer(&mut self, id: &Id, result: &impl Serialize) -> Result {
        self.send(build::response(id, result))
    }

    /// Answers a request for a service that acpctl does not have.
    pub(crate) fn refuse(&mut self, id: &Id, method: &str) -> Result {
        let text = format!("acpctl has no `{method}`");
        let error = ErrorObject::new(code::METHOD_NOT_FOUND, text);
        self.send(build::error(id, &error))
    }

    fn send(&mut self, line: Bytes) -> Result {
        if self.writer.send(line) { Ok(()) } else { Err(gone()) }
    }
}

impl Drop for Live {
    /// However the command ends, it does not come back; and what it has sent is to arrive.
    fn drop(&mut self) {
        leave(&self.writer);
    }
}

fn leave(daemon: &LinkWriter) {
    daemon.leave();
    daemon.flush(LAST_WORDS);
}

/// A word about the connection, for people.
fn note(ui: &mut Ui, text: impl Into<Text>) {
    if ui.talks_to_terminal() {
        ui.say(ui.err_paint().apply(DIM, text));
    }
}

/// Reads the result of a request.
pub(crate) fn result_of<R: DeserializeOwned>(
    method: &str,
    result: &RawValue,
) -> std::result::Result<R, CallError> {
    serde_json::from_str(result.get())
        .map_err(|source| CallError::Unreadable { method: method.to_owned(), source })
}
