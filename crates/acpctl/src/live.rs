//! A connection that delivers events at any time, together with the keyboard.

use std::io;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

use acp_wire::{ErrorObject, Id, Message, Outcome, build, code, parse, read_legible};
use acpd_api::{ExitCode, Untrusted, method};
use acpd_client::{
    CallError, Doubt, Incoming, LinkError, LinkReader, LinkWriter, NotAnswering, Paths,
    silent_daemon, stopped_daemon,
};
use bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::error::{CommandError, Result, gone};
use crate::render::sentence;
use crate::signal::TerminalKey;
use crate::text::{Role, Text, text};
use crate::ui::{TICK, Ui};
use crate::{signal, terminal};

/// Messages that wait to be shown; beyond that, the daemon waits (it bounds what it keeps).
const QUEUE: usize = 256;
/// Time after which the absence of the daemon is reported.
const QUIET: Duration = Duration::from_secs(1);
/// For how long the last piece of data is held back: most likely the end of its line comes until then.
const HOLD: Duration = Duration::from_millis(500);
/// Interval of checks whether a silent daemon is stopped.
const LOOK: Duration = Duration::from_secs(5);
/// Longest time for the last lines to the daemon.
const LAST_WORDS: Duration = Duration::from_millis(500);

/// Events that [`Live::next`] returns.
#[derive(Debug)]
pub(crate) enum Event {
    /// The daemon sent a line.
    Line(Bytes),
    /// The daemon closed the connection, and it cannot be taken up again.
    Closed,
    /// The connection was lost for good.
    Failed(LinkError),
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
    Lost,
    Back,
    /// Result of a check whether the daemon answers.
    Looked(Option<NotAnswering>),
}

#[derive(Debug)]
enum Step {
    Event(Event),
    Silent(NotAnswering),
}

/// Presence of the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    There,
    AwaySince(Instant),
    /// Away, and the user knows.
    Told,
    /// There, but it does not answer, and the user knows.
    Silent,
}

/// Time since the daemon's last line, and checks that were made since.
#[derive(Debug)]
struct Silence {
    since: Instant,
    looked: Instant,
    is_looking: bool,
    /// When the daemon is asked for a sign of life.
    doubt: Doubt,
}

impl Silence {
    fn begin() -> Silence {
        let now = Instant::now();
        Silence { since: now, looked: now, is_looking: false, doubt: Doubt::new(LOOK) }
    }

    fn ends(&mut self) {
        *self = Silence { is_looking: self.is_looking, ..Silence::begin() };
    }
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
    silence: Silence,
    /// The time was over while an answer was waited for.
    is_late: bool,
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
                    Ok(Incoming::Lost | Incoming::Stopped) => (News::Lost, false),
                    Ok(Incoming::Back) => (News::Back, false),
                    Ok(Incoming::Closed) => (News::Event(Event::Closed), true),
                    Err(error) => (News::Event(Event::Failed(error)), true),
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
        signal::on_keys(take, move || leave(&leaver))?;
        let presence = Presence::There;
        let silence = Silence::begin();
        Ok(Live {
            writer,
            last_id: 0,
            news,
            sender,
            reads_keys: false,
            presence,
            silence,
            is_late: false,
        })
    }

    /// Waits for the next event. Flushes the output before the wait and moves the spinner during it. Reports a
    /// daemon that does not answer, and keeps waiting: it may recover.
    pub(crate) fn next(&mut self, ui: &mut Ui) -> Result<Event> {
        if std::mem::take(&mut self.is_late) {
            return Ok(Event::Late);
        }
        loop {
            match self.step(ui)? {
                Step::Event(event) => return Ok(event),
                Step::Silent(silent) => {
                    self.presence = Presence::Silent;
                    ui.say(Text::styled(Role::Dim, in_words(&silent)));
                }
            }
        }
    }

    fn step(&mut self, ui: &mut Ui) -> Result<Step> {
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
                News::Event(event) => {
                    if matches!(event, Event::Line(_) | Event::Closed | Event::Failed(_)) {
                        self.silence_ends();
                    }
                    return Ok(Step::Event(event));
                }
                News::Looked(silent) => {
                    self.silence.is_looking = false;
                    // The daemon may have sent something since.
                    let is_silent = self.silence.since.elapsed() >= LOOK;
                    let is_news = is_silent && self.presence == Presence::There;
                    if let Some(silent) = silent.filter(|_| is_news) {
                        return Ok(Step::Silent(silent));
                    }
                }
                News::Lost => {
                    self.silence_ends();
                    self.presence = Presence::AwaySince(Instant::now());
                }
                News::Back => {
                    if self.presence == Presence::Told {
                        note(ui, "acpd is back");
                    }
                    self.silence_ends();
                    self.presence = Presence::There;
                }
            }
        }
    }

    /// Something has come from the daemon, or of its connection.
    fn silence_ends(&mut self) {
        self.silence.ends();
        if self.presence == Presence::Silent {
            self.presence = Presence::There;
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
                Presence::There => self.news.recv_timeout(LOOK).ok(),
                Presence::Told | Presence::Silent => self.news.recv().ok(),
            };
            if let Some(news) = news {
                return news;
            }
            ui.tick();
            match self.presence {
                Presence::AwaySince(since) if since.elapsed() >= QUIET => {
                    note(ui, "acpd is restarting...");
                    self.presence = Presence::Told;
                }
                Presence::There => self.look(),
                _ => {}
            }
        }
    }

    /// Checks whether the daemon is there if it has sent nothing for long, on a thread, because that takes
    /// some time.
    fn look(&mut self) {
        let silence = &mut self.silence;
        if silence.is_looking || silence.looked.elapsed() < LOOK {
            return;
        }
        silence.looked = Instant::now();
        let is_asked = silence.since.elapsed() >= silence.doubt.after();
        if is_asked {
            silence.doubt.asked();
        }
        let Ok(paths) = Paths::discover() else { return };
        let tell = self.sender.clone();
        let look = move || {
            let ask = || if is_asked { silent_daemon(&paths) } else { None };
            let silent = stopped_daemon(&paths).or_else(ask);
            // Fails only after the receiver is gone.
            drop(tell.send(News::Looked(silent)));
        };
        self.silence.is_looking =
            thread::Builder::new().name("look".to_owned()).spawn(look).is_ok();
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
        self.result(ui, method, &id)
    }

    /// Waits for the result of a request that was sent, as [`Live::call`] does.
    pub(crate) fn result<R: DeserializeOwned>(
        &mut self,
        ui: &mut Ui,
        method: &str,
        id: &Id,
    ) -> Result<R> {
        loop {
            let event = match self.step(ui)? {
                Step::Event(event) => event,
                // No work is under way that would have to be waited for.
                Step::Silent(silent) => return Err(CallError::from(silent).into()),
            };
            let line = match event {
                Event::Line(line) => line,
                Event::Closed => return Err(CallError::Closed.into()),
                Event::Failed(error) => return Err(error.into()),
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
                Ok(Message::Response { id: answered, outcome }) if answered == *id => {
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
        ui.say(Text::styled(Role::Dim, text));
    }
}

/// Reads the result of a request.
pub(crate) fn result_of<R: DeserializeOwned>(
    method: &str,
    result: &RawValue,
) -> std::result::Result<R, CallError> {
    read_legible(result.get())
        .map_err(|source| CallError::Unreadable { method: method.to_owned(), source })
}
