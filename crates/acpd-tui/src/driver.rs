//! Carries keys, lines and time to the app, and its effects and frames out.
//!
//! A thread reads keys, one waits for what the system tells, and each connection has one. All of them report on one channel. The
//! driver waits for that channel and for the next moment at which the screen changes by itself; it draws at most
//! [`FRAMES`] times a second, and only after something happened.

mod keyboard;

use std::cell::RefCell;
use std::collections::HashMap;
use std::env;
use std::io::{self, Write};
use std::process::Stdio;
use std::rc::Rc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use acp_wire::ErrorObject;
use acpd_api::{ClientName, Untrusted};
use acpd_client::{ConnectError, Incoming, LinkError, LinkReader, LinkWriter};
use acpd_sys::asked::{Ask, end_by};
use acpd_sys::program;
use acpd_sys::screen::{self, Told, told};
use acpd_sys::terminal::Utf8;
use acpd_view::text::Text;
use bytes::Bytes;
use ratatui::Terminal;
use ratatui::backend::{Backend as _, CrosstermBackend};
use ratatui::layout::Rect;

use crate::app::{Cache, Effect, Event, Link, Opens, Scene, State, view};
use crate::canvas::Theme;
use crate::files;
use crate::term::{self, Screen};
use keyboard::Keyboard;

/// Frames in a second.
const FRAMES: u32 = 30;
/// What may wait for the driver; beyond that, connections wait.
const QUEUE: usize = 1024;
/// What is taken at once, so that a flood of lines does not hold up a frame.
const ROUND: usize = 256;
/// How long the driver has to leave when somebody asks for that.
const GRACE: Duration = Duration::from_millis(500);
/// How long the last words to the daemon may take.
const LAST_WORDS: Duration = Duration::from_millis(300);

/// The way to the daemon. Without `true`, one that a person has stopped is not started.
pub type Door = Box<dyn Fn(bool) -> Result<(LinkReader, LinkWriter), ConnectError> + Send + Sync>;

/// What became of a text in an editor, or why nothing did.
pub type EditText = fn(&str) -> Result<String, Text>;

/// What a program starts with.
pub struct Start {
    pub theme: Theme,
    /// The person's home directory.
    pub home: Option<String>,
    /// The directory that new sessions work in.
    pub cwd: String,
    /// Where the person is, for others who are told who did something: `pts/3`.
    pub place: Option<String>,
    /// What is on the screen first.
    pub opens: Opens,
    /// The command that shows a long text page by page, if the person wants one.
    pub pager: Option<String>,
    /// Lets the person change a text in an editor of their choice, on a terminal that is as a shell wants it.
    pub editor: EditText,
    /// The way to the daemon.
    pub door: Door,
}

/// Why there is no screen.
#[derive(Debug)]
pub enum Failed {
    /// The daemon cannot be reached.
    Connect(ConnectError),
    /// The terminal cannot be used.
    Terminal(io::Error),
    /// The session that was asked for does not begin.
    NotBegun {
        error: ErrorObject,
        /// What was written and not sent.
        unsent: Vec<String>,
    },
}

/// What a person has left.
#[derive(Debug)]
pub struct Left {
    /// What people call the conversation that was the last thing on the screen.
    pub session: Option<Untrusted>,
    /// What was written and not sent.
    pub unsent: Vec<String>,
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Failed {
        Failed::Terminal(error)
    }
}

enum News {
    Event(Event),
    /// Of the keyboard, which is read again when these were dealt with.
    Typed(Vec<Event>),
    Opened(Link, LinkWriter),
    /// The keyboard is gone.
    HungUp,
    Told(Told),
}

/// How the program ends.
#[derive(Clone, Copy)]
enum End {
    /// The person leaves, or is gone.
    Left,
    /// Somebody asks for it.
    Asked(Ask),
}

/// Where a connection is.
enum Connection {
    /// On its way; what is to be sent waits.
    Opening(Vec<Bytes>),
    Open(LinkWriter),
    /// Nobody wants it any more, and it is not there yet.
    Unwanted,
}

/// Bytes of the frame that is being drawn.
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

/// Shows the screens until the person leaves.
pub fn run(start: Start) -> Result<Left, Failed> {
    let Start { theme, home, cwd, place, opens, pager, editor, door } = start;
    // Whether there is a daemon at all is told on the terminal as it is.
    let first = door(true).map_err(Failed::Connect)?;
    let who = ClientName {
        name: crate::app::CLIENT.into(),
        title: None,
        place: place.map(Untrusted::from),
    };
    let (state, effects) = State::new(Scene { theme, home, cwd, who }, opens, now());
    let _screen = Screen::take()?;
    let (sender, news) = mpsc::sync_channel(QUEUE);
    let keyboard = Keyboard::listen(sender.clone())?;
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
        door: door.into(),
        sender,
        is_over: false,
    };
    driver.perform(effects)?;
    let ended = driver.follow(&news);
    driver.leave();
    if let End::Asked(ask) = ended? {
        end_by(ask);
    }
    let unsent = driver.state.unsent().collect();
    match driver.state.not_begun() {
        Some(error) => Err(Failed::NotBegun { error: error.clone(), unsent }),
        None => Ok(Left { session: driver.state.left().cloned(), unsent }),
    }
}

/// Opens a connection; starts the daemon for it if the argument is true.
type SharedDoor =
    std::sync::Arc<dyn Fn(bool) -> Result<(LinkReader, LinkWriter), ConnectError> + Send + Sync>;

struct Driver {
    terminal: Terminal<CrosstermBackend<Frame>>,
    frame: Frame,
    cache: Cache,
    state: State,
    connections: HashMap<Link, Connection>,
    /// The connection that is there already.
    first: Option<(LinkReader, LinkWriter)>,
    keyboard: Keyboard,
    pager: Option<String>,
    editor: EditText,
    door: SharedDoor,
    sender: SyncSender<News>,
    is_over: bool,
}

impl Driver {
    /// Until the program ends.
    fn follow(&mut self, news: &Receiver<News>) -> Result<End, Failed> {
        let pace = Duration::from_secs(1) / FRAMES;
        // An empty frame would hold up the first one with something on it.
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
            match news.recv_timeout(wait) {
                Ok(first) => {
                    is_due = true;
                    for news in std::iter::once(first).chain(news.try_iter().take(ROUND)) {
                        if let Some(end) = self.take(news)? {
                            return Ok(end);
                        }
                    }
                }
                Err(RecvTimeoutError::Timeout) if !is_due => {
                    self.update(Event::Time)?;
                    is_due = true;
                }
                Err(_) => {}
            }
            // What is behind the last screen is nobody's business any more.
            let may_draw = Instant::now() >= next || (is_first && self.state.is_filled());
            if is_due && !self.is_over && may_draw {
                self.draw()?;
                (next, is_first, is_due) = (Instant::now() + pace, false, false);
            }
        }
        Ok(End::Left)
    }

    /// Takes news. Returns how the program ends, if it does.
    fn take(&mut self, news: News) -> Result<Option<End>, Failed> {
        match news {
            News::Event(event) => self.update(event)?,
            News::Typed(events) => {
                for event in events {
                    self.update(event)?;
                }
                self.keyboard.reads_on();
            }
            News::Opened(link, writer) => {
                match self.connections.insert(link, Connection::Open(writer.clone())) {
                    Some(Connection::Opening(lines)) => lines.into_iter().for_each(|line| {
                        // A connection that has ended says so itself.
                        let _ = writer.send(line);
                    }),
                    _ => self.end(link),
                }
            }
            News::Told(Told::Continued) => {
                term::enter()?;
                self.redraw()?;
            }
            News::Told(Told::Resized) => {}
            News::Told(Told::Asked(ask)) => return Ok(Some(End::Asked(ask))),
            News::HungUp => return Ok(Some(End::Left)),
        }
        Ok(None)
    }

    fn update(&mut self, event: Event) -> Result<(), Failed> {
        let effects = self.state.update(now(), event);
        self.perform(effects)
    }

    fn perform(&mut self, effects: Vec<Effect>) -> Result<(), Failed> {
        for effect in effects {
            match effect {
                Effect::Open(link) => self.open(link)?,
                Effect::Start => {
                    let door = self.door.clone();
                    // The connection that watches comes back as soon as a daemon is there.
                    self.aside("start", move || match door(true) {
                        Ok(_) => Event::Time,
                        Err(error) => Event::Failed(Text::from(&Untrusted::of(&error))),
                    })?;
                }
                Effect::Send(link, line) => match self.connections.get_mut(&link) {
                    Some(Connection::Opening(lines)) => lines.push(line),
                    // As above.
                    Some(Connection::Open(writer)) => drop(writer.send(line)),
                    Some(Connection::Unwanted) | None => {}
                },
                Effect::Leave(link) => self.end(link),
                Effect::Copy(text) => term::copy(&text)?,
                Effect::Page(text) => self.page(&text)?,
                Effect::Mouse(is_on) => term::capture_mouse(is_on)?,
                Effect::ReadFiles(directory) => self.aside("files", move || {
                    let paths = files::of(&directory);
                    Event::Files { directory, paths }
                })?,
                Effect::ReadAttached(files) => self.aside("attached", move || {
                    let read = files::attached(&files);
                    Event::AttachedRead(files, read)
                })?,
                Effect::Edit(text) => {
                    let editor = self.editor;
                    let edited = self.lend(|| editor(&text))?;
                    self.update(Event::Edited(edited))?;
                }
                Effect::Redraw => self.redraw()?,
                Effect::Suspend if !screen::CAN_SUSPEND => {
                    self.update(Event::Failed(
                        "no program can be suspended on this system".into(),
                    ))?;
                }
                Effect::Suspend => {
                    term::restore();
                    screen::suspend();
                    term::enter()?;
                    self.redraw()?;
                }
                Effect::Quit => self.is_over = true,
            }
        }
        Ok(())
    }

    fn open(&mut self, link: Link) -> io::Result<()> {
        self.connections.insert(link, Connection::Opening(Vec::new()));
        let (sender, first, door) = (self.sender.clone(), self.first.take(), self.door.clone());
        let follow = move || {
            let tell = |news| sender.send(news).is_ok();
            let ended = |why: &dyn std::fmt::Display| {
                News::Event(Event::Ended(link, Text::from(&Untrusted::of(why))))
            };
            let (mut reader, writer) = match first.map_or_else(|| door(false), Ok) {
                Ok(opened) => opened,
                // Nobody listens any more if a report fails.
                Err(error) => {
                    tell(ended(&error));
                    return;
                }
            };
            if !tell(News::Opened(link, writer)) {
                return;
            }
            loop {
                let event = match reader.recv() {
                    Ok(Incoming::Line(line)) => Event::Line(link, line),
                    Ok(Incoming::Lost) => Event::Lost(link),
                    Ok(Incoming::Back) => Event::Back(link),
                    Ok(Incoming::Stopped) => Event::Stopped(link),
                    Err(LinkError::Stopped) if matches!(link, Link::Chat(_)) => {
                        tell(News::Event(Event::Stopped(link)));
                        return;
                    }
                    Ok(Incoming::Closed) => {
                        tell(ended(&"acpd closed the connection"));
                        return;
                    }
                    Err(error) => {
                        tell(ended(&error));
                        return;
                    }
                };
                if !tell(News::Event(event)) {
                    return;
                }
            }
        };
        thread::Builder::new().name("connection".to_owned()).spawn(follow).map(drop)
    }

    /// Does something slow on a thread of its own, and takes what came of it.
    fn aside(&self, name: &str, work: impl FnOnce() -> Event + Send + 'static) -> io::Result<()> {
        let sender = self.sender.clone();
        // Nobody listens any more if this fails.
        let work = move || drop(sender.send(News::Event(work())));
        thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
    }

    fn end(&mut self, link: Link) {
        match self.connections.remove(&link) {
            Some(Connection::Open(writer)) => writer.end(),
            Some(Connection::Opening(_)) => {
                self.connections.insert(link, Connection::Unwanted);
            }
            Some(Connection::Unwanted) | None => {}
        }
    }

    /// However we end, we do not come back; what was sent must still arrive.
    fn leave(&mut self) {
        term::restore();
        for connection in self.connections.values() {
            if let Connection::Open(writer) = connection {
                writer.leave();
                writer.flush(LAST_WORDS);
            }
        }
    }

    /// Leaves the terminal to another program until that has ended.
    fn lend<T>(&mut self, run: impl FnOnce() -> T) -> Result<T, Failed> {
        let done = term::lend(run)?;
        self.redraw()?;
        Ok(done)
    }

    /// Shows a text page by page.
    fn page(&mut self, text: &str) -> Result<(), Failed> {
        let Some(line) = self.pager.clone() else {
            return self.update(Event::Failed("no pager: $PAGER names none".into()));
        };
        let mut command = program::shell(&line);
        command.stdin(Stdio::piped());
        // `less` must not end at once when all fits: nobody would see it.
        let less = env::var("LESS").unwrap_or_else(|_| "R".to_owned());
        command.env("LESS", format!("{less} -+F"));
        let shown = self.lend(|| -> io::Result<()> {
            let mut child = command.spawn()?;
            let encoding = Utf8::begin();
            if let Some(mut stdin) = child.stdin.take() {
                // Who leaves early reads no more.
                let _ = stdin.write_all(text.as_bytes());
            }
            let ended = child.wait().map(drop);
            encoding.end();
            ended
        })?;
        match shown {
            Ok(()) => Ok(()),
            Err(_) => self.update(Event::Failed("the pager cannot be started: see $PAGER".into())),
        }
    }

    fn redraw(&mut self) -> Result<(), Failed> {
        let size = self.terminal.backend().size()?;
        // In place of `clear`, which asks the terminal where the cursor is and waits for its answer.
        self.terminal.resize(Rect::new(0, 0, size.width, size.height))?;
        Ok(())
    }

    fn draw(&mut self) -> Result<(), Failed> {
        let (state, cache) = (&self.state, &mut self.cache);
        let mut on_screen = None;
        self.terminal.draw(|frame| on_screen = Some(view(state, cache, frame)))?;
        let frame = std::mem::take(&mut *self.frame.0.borrow_mut());
        term::show(&frame)?;
        on_screen.map_or(Ok(()), |on_screen| self.update(Event::Drawn(on_screen)))
    }
}

fn listen(sender: SyncSender<News>) -> io::Result<()> {
    let all = told()?;
    let wait = move || {
        for told in all {
            let ask = match told {
                // Ctrl-C is for the program that has the terminal now.
                Told::Asked(Ask::Interrupt | Ask::Quit) if term::is_lent() => continue,
                Told::Asked(ask) => Some(ask),
                Told::Continued | Told::Resized => None,
            };
            // If it does not fit, there is enough to draw anyway.
            let _ = sender.try_send(News::Told(told));
            if let Some(ask) = ask {
                // The driver may be stuck in a terminal that takes nothing.
                thread::sleep(GRACE);
                term::restore();
                end_by(ask);
            }
        }
    };
    thread::Builder::new().name("signals".to_owned()).spawn(wait).map(drop)
}

/// Milliseconds since the epoch.
fn now() -> u64 {
    let since = SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
