//! Carries keys, lines and time to the app, and its effects and frames out.
//!
//! Threads read keys, wait for signals, and serve one connection each. All report on one channel.
//! The driver waits for the channel, or for the next moment at which the screen changes. It draws
//! after events only, at most [`FRAMES_PER_SECOND`] times a second.

mod keyboard;

use std::cell::RefCell;
use std::collections::HashMap;
use std::env;
use std::io::{self, Write};
use std::process::Stdio;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender, SyncSender};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use acp_wire::ErrorObject;
use acpd_api::Untrusted;
use acpd_client::{ConnectError, LinkError, LinkEvent, LinkReader, LinkWriter};
use acpd_sys::process;
use acpd_sys::signals::{Signal, end_by, watch};
use acpd_sys::terminal::{self, Utf8};
use acpd_view::text::Text;
use bytes::Bytes;
use ratatui::Terminal;
use ratatui::backend::{Backend as _, CrosstermBackend};
use ratatui::layout::Rect;

use crate::app::{AppEvent, AppState, Cache, Effect, LinkId, Opens, Scene, view};
use crate::files;
use crate::term::{self, Screen};

const FRAMES_PER_SECOND: u32 = 30;
/// Maximum of queued events. Connections wait beyond it.
const MAX_QUEUED: usize = 1024;
/// Events per round, so that a flood of lines does not delay a frame.
const MAX_ROUND: usize = 256;
/// Time for the driver to end after a signal.
const GRACE: Duration = Duration::from_millis(500);
/// Time to send the last lines to the daemon.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// Connects to the daemon. With `true`, starts it even if it was stopped on purpose.
pub type Door = Arc<dyn Fn(bool) -> Result<(LinkReader, LinkWriter), ConnectError> + Send + Sync>;

pub type EditText = fn(&str) -> Result<String, Text>;

pub struct ScreenStart {
    pub scene: Scene,
    pub opens: Opens,
    pub pager: Option<String>,
    /// Called with the terminal in the modes of a shell.
    pub editor: EditText,
    pub door: Door,
}

#[derive(Debug)]
pub enum ScreenError {
    Connect(ConnectError),
    Terminal(io::Error),
    NotBegun { error: ErrorObject, unsent: Vec<String> },
}

#[derive(Debug)]
pub struct ScreenResult {
    /// The handle of the conversation that was open at the end.
    pub session: Option<Untrusted>,
    pub unsent: Vec<String>,
}

impl From<io::Error> for ScreenError {
    fn from(error: io::Error) -> ScreenError {
        ScreenError::Terminal(error)
    }
}

enum DriverEvent {
    App(AppEvent),
    /// The keyboard is read again after these events.
    Typed(Vec<AppEvent>),
    Opened(LinkId, LinkWriter),
    HungUp,
    Signal(Signal),
}

enum Connection {
    /// The lines to send once it is open.
    Opening(Vec<Bytes>),
    Open(LinkWriter),
}

#[derive(Debug, Clone, Default)]
struct Frame(Rc<RefCell<Vec<u8>>>);

impl Write for Frame {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub fn run(start: ScreenStart) -> Result<ScreenResult, ScreenError> {
    let ScreenStart { scene, opens, pager, editor, door } = start;
    // A connection error must be printed before the screen is entered.
    let first = door(true).map_err(ScreenError::Connect)?;
    let (state, effects) = AppState::new(scene, opens, now());
    let _screen = Screen::take()?;
    let (sender, events) = mpsc::sync_channel(MAX_QUEUED);
    let keyboard = keyboard::listen(sender.clone())?;
    listen(sender.clone())?;
    let frame = Frame::default();
    let terminal = Terminal::new(CrosstermBackend::new(frame.clone()))?;
    let mut driver = Driver {
        terminal,
        frame,
        cache: Cache::default(),
        state,
        connections: HashMap::new(),
        first: Some(first),
        keyboard,
        pager,
        editor,
        door,
        sender,
        is_over: false,
        signal: None,
    };
    driver.perform(effects)?;
    let ended = driver.follow(&events);
    driver.leave();
    ended?;
    if let Some(signal) = driver.signal {
        end_by(signal);
    }
    let unsent = driver.state.unsent().collect();
    match driver.state.not_begun {
        Some(error) => Err(ScreenError::NotBegun { error, unsent }),
        None => Ok(ScreenResult { session: driver.state.left, unsent }),
    }
}

struct Driver {
    terminal: Terminal<CrosstermBackend<Frame>>,
    frame: Frame,
    cache: Cache,
    state: AppState,
    connections: HashMap<LinkId, Connection>,
    /// Opened before the screen was entered.
    first: Option<(LinkReader, LinkWriter)>,
    /// Lets the keyboard be read again after its events are handled.
    keyboard: Sender<()>,
    pager: Option<String>,
    editor: EditText,
    door: Door,
    sender: SyncSender<DriverEvent>,
    /// The user leaves, the keyboard is gone, or a signal ends the program.
    is_over: bool,
    signal: Option<Signal>,
}

impl Driver {
    fn follow(&mut self, events: &Receiver<DriverEvent>) -> Result<(), ScreenError> {
        let pace = Duration::from_secs(1) / FRAMES_PER_SECOND;
        // An empty first frame would delay the first content.
        let mut next = Instant::now() + pace;
        let (mut is_first, mut is_due) = (true, true);
        while !self.is_over {
            let wait = if is_due {
                next.saturating_duration_since(Instant::now())
            } else {
                self.state.wakes_at().map_or(Duration::from_mins(1), |at| {
                    Duration::from_millis(at.saturating_sub(now()).max(1))
                })
            };
            match events.recv_timeout(wait) {
                Ok(first) => {
                    is_due = true;
                    for event in std::iter::once(first).chain(events.try_iter().take(MAX_ROUND)) {
                        self.take(event)?;
                        if self.is_over {
                            return Ok(());
                        }
                    }
                }
                Err(RecvTimeoutError::Timeout) if !is_due => {
                    self.update(AppEvent::Time)?;
                    is_due = true;
                }
                Err(_) => {}
            }
            // Nothing is drawn after the last screen.
            let may_draw = Instant::now() >= next || (is_first && self.state.is_filled());
            if is_due && !self.is_over && may_draw {
                self.draw()?;
                (next, is_first, is_due) = (Instant::now() + pace, false, false);
            }
        }
        Ok(())
    }

    fn take(&mut self, event: DriverEvent) -> Result<(), ScreenError> {
        match event {
            DriverEvent::App(event) => self.update(event)?,
            DriverEvent::Typed(events) => {
                for event in events {
                    self.update(event)?;
                }
                // The thread waits as long as there is a keyboard.
                let _ = self.keyboard.send(());
            }
            DriverEvent::Opened(link, writer) => {
                match self.connections.insert(link, Connection::Open(writer.clone())) {
                    Some(Connection::Opening(lines)) => lines.into_iter().for_each(|line| {
                        // A lost connection is reported as an event.
                        let _ = writer.send(line);
                    }),
                    // Ended before it was open.
                    _ => self.end(link),
                }
            }
            DriverEvent::Signal(Signal::Continue) => {
                term::enter()?;
                self.redraw()?;
            }
            DriverEvent::Signal(Signal::Resize) => {}
            DriverEvent::Signal(signal) => (self.is_over, self.signal) = (true, Some(signal)),
            DriverEvent::HungUp => self.is_over = true,
        }
        Ok(())
    }

    fn update(&mut self, event: AppEvent) -> Result<(), ScreenError> {
        let effects = self.state.update(now(), event);
        self.perform(effects)
    }

    fn perform(&mut self, effects: Vec<Effect>) -> Result<(), ScreenError> {
        for effect in effects {
            match effect {
                Effect::Open(link) => self.open(link)?,
                Effect::Start => {
                    let door = self.door.clone();
                    // The watching connection reconnects by itself.
                    self.aside("start", move || match door(true) {
                        Ok(_) => AppEvent::Time,
                        Err(error) => AppEvent::Failed(Text::from(&Untrusted::of(&error))),
                    })?;
                }
                Effect::Send(link, line) => match self.connections.get_mut(&link) {
                    Some(Connection::Opening(lines)) => lines.push(line),
                    Some(Connection::Open(writer)) => drop(writer.send(line)),
                    None => {}
                },
                Effect::Leave(link) => self.end(link),
                Effect::Copy(text) => term::copy(&text)?,
                Effect::Page(text) => self.page(&text)?,
                Effect::Mouse(is_on) => term::capture_mouse(is_on)?,
                Effect::ReadFiles(directory) => self.aside("files", move || {
                    let paths = files::of(&directory);
                    AppEvent::Files { directory, paths }
                })?,
                Effect::ReadAttached(files) => self.aside("attached", move || {
                    let read = files::attached(&files);
                    AppEvent::AttachedRead(files, read)
                })?,
                Effect::Edit(text) => {
                    let editor = self.editor;
                    let edited = self.lend(|| editor(&text))?;
                    self.update(AppEvent::Edited(edited))?;
                }
                Effect::Redraw => self.redraw()?,
                Effect::Suspend if !terminal::CAN_SUSPEND => {
                    self.update(AppEvent::Failed(
                        "no program can be suspended on this system".into(),
                    ))?;
                }
                Effect::Suspend => {
                    term::restore();
                    terminal::suspend();
                    term::enter()?;
                    self.redraw()?;
                }
                Effect::Quit => self.is_over = true,
            }
        }
        Ok(())
    }

    fn open(&mut self, link: LinkId) -> io::Result<()> {
        self.connections.insert(link, Connection::Opening(Vec::new()));
        let (sender, first, door) = (self.sender.clone(), self.first.take(), self.door.clone());
        self.aside("connection", move || {
            let opened = first.map_or_else(|| door(false), Ok);
            // Without a driver, this event is not sent.
            follow(link, opened, &sender).unwrap_or(AppEvent::Time)
        })
    }

    /// Runs slow work on a thread, which then reports an event.
    fn aside(
        &self,
        name: &str,
        work: impl FnOnce() -> AppEvent + Send + 'static,
    ) -> io::Result<()> {
        let sender = self.sender.clone();
        // A send fails only after the driver has ended.
        let work = move || drop(sender.send(DriverEvent::App(work())));
        thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
    }

    fn end(&mut self, link: LinkId) {
        if let Some(Connection::Open(writer)) = self.connections.remove(&link) {
            writer.end();
        }
    }

    /// Ends all connections after their last lines.
    fn leave(&mut self) {
        term::restore();
        for connection in self.connections.values() {
            if let Connection::Open(writer) = connection {
                writer.leave();
                writer.flush(LAST_WORDS);
            }
        }
    }

    fn lend<T>(&mut self, run: impl FnOnce() -> T) -> Result<T, ScreenError> {
        let done = term::lend(run)?;
        self.redraw()?;
        Ok(done)
    }

    fn page(&mut self, text: &str) -> Result<(), ScreenError> {
        let Some(line) = self.pager.clone() else {
            return self.update(AppEvent::Failed("no pager: $PAGER names none".into()));
        };
        let mut command = process::shell(&line);
        command.stdin(Stdio::piped());
        // `less` must stay open even if the text fits.
        let less = env::var("LESS").unwrap_or_else(|_| "R".to_owned());
        command.env("LESS", format!("{less} -+F"));
        let shown = self.lend(|| -> io::Result<()> {
            let mut child = command.spawn()?;
            let _encoding = Utf8::set();
            if let Some(mut stdin) = child.stdin.take() {
                // A pager may end before it reads everything.
                let _ = stdin.write_all(text.as_bytes());
            }
            child.wait().map(drop)
        })?;
        match shown {
            Ok(()) => Ok(()),
            Err(_) => {
                self.update(AppEvent::Failed("the pager cannot be started: see $PAGER".into()))
            }
        }
    }

    fn redraw(&mut self) -> Result<(), ScreenError> {
        let size = self.terminal.backend().size()?;
        // `clear` would request the cursor's position and wait for the answer.
        self.terminal.resize(Rect::new(0, 0, size.width, size.height))?;
        Ok(())
    }

    fn draw(&mut self) -> Result<(), ScreenError> {
        let (state, cache) = (&self.state, &mut self.cache);
        let mut on_screen = None;
        self.terminal.draw(|frame| on_screen = Some(view(state, cache, frame)))?;
        let frame = std::mem::take(&mut *self.frame.0.borrow_mut());
        term::show(&frame)?;
        on_screen.map_or(Ok(()), |on_screen| self.update(AppEvent::Drawn(on_screen)))
    }
}

/// Reports the lines and states of a connection. Returns its end; none if the driver has ended.
fn follow(
    link: LinkId,
    opened: Result<(LinkReader, LinkWriter), ConnectError>,
    sender: &SyncSender<DriverEvent>,
) -> Option<AppEvent> {
    let ended =
        |why: &dyn std::fmt::Display| Some(AppEvent::Ended(link, Text::from(&Untrusted::of(why))));
    let (mut reader, writer) = match opened {
        Ok(opened) => opened,
        Err(error) => return ended(&error),
    };
    sender.send(DriverEvent::Opened(link, writer)).ok()?;
    loop {
        let event = match reader.recv() {
            Ok(LinkEvent::Line(line)) => AppEvent::Line(link, line),
            Ok(LinkEvent::Reconnecting) => AppEvent::Lost(link),
            Ok(LinkEvent::Resumed) => AppEvent::Back(link),
            Ok(LinkEvent::Stopped) => AppEvent::Stopped(link),
            Ok(LinkEvent::Silent(_)) => continue,
            Err(LinkError::Stopped) if matches!(link, LinkId::Chat(_)) => {
                return Some(AppEvent::Stopped(link));
            }
            Err(error) => return ended(&error),
        };
        sender.send(DriverEvent::App(event)).ok()?;
    }
}

fn listen(sender: SyncSender<DriverEvent>) -> io::Result<()> {
    let received = watch(&[&Signal::ENDING[..], &[Signal::Continue, Signal::Resize]].concat())?;
    let wait = move || {
        for signal in received.map(|received| received.signal) {
            if matches!(signal, Signal::Interrupt | Signal::Quit) && term::is_lent() {
                // Ctrl-C is for the program that has the terminal.
                continue;
            }
            // A full queue has enough to draw.
            let _ = sender.try_send(DriverEvent::Signal(signal));
            if Signal::ENDING.contains(&signal) {
                // A terminal that reads nothing may block the driver.
                thread::sleep(GRACE);
                term::restore();
                end_by(signal);
            }
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(wait).map(drop)
}

fn now() -> u64 {
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
