//! The keys of the terminal, read by a thread that waits until what it has read was dealt with: while another program
//! has the terminal, nobody else reads from it.

use std::io;
use std::os::fd::AsFd as _;
use std::sync::mpsc::{self, Sender, SyncSender};
use std::thread;
use std::time::Duration;

use crossterm::event::{self, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEventKind};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::News;
use crate::app::Event;
use crate::term;

/// From one look at keys that nobody has told of to the next.
const PAUSE: Duration = Duration::from_millis(2);
/// Lines that a step of the wheel scrolls by.
const STEP: isize = 3;

/// The thread that reads keys.
#[derive(Debug)]
pub(super) struct Keyboard {
    /// Lets it read on.
    next: Sender<()>,
}

impl Keyboard {
    /// Begins to report keys.
    pub(super) fn listen(sender: SyncSender<News>) -> io::Result<Keyboard> {
        let (next, dealt_with) = mpsc::channel();
        let read = move || {
            loop {
                let news = batch().map_or(News::HungUp, News::Typed);
                let is_last = matches!(news, News::HungUp);
                if sender.send(news).is_err() || is_last || dealt_with.recv().is_err() {
                    return;
                }
            }
        };
        thread::Builder::new().name("keys".to_owned()).spawn(read)?;
        Ok(Keyboard { next })
    }

    /// What was read is dealt with.
    pub(super) fn reads_on(&self) {
        // It listens for as long as there is a keyboard.
        let _ = self.next.send(());
    }
}

/// Waits for keys, and reads all that are there.
fn batch() -> io::Result<Vec<Event>> {
    let mut events = Vec::new();
    while events.is_empty() {
        wait()?;
        while event::poll(Duration::ZERO)? {
            events.push(event::read()?);
        }
        if events.is_empty() {
            // crossterm hears of keys once, and forgets it over a change of the size at the same time.
            term::tell_again();
            thread::sleep(PAUSE);
        }
    }
    Ok(meant(events))
}

/// Waits until there is something to read.
fn wait() -> io::Result<()> {
    let stdin = io::stdin();
    let mut keys = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    match poll(&mut keys, PollTimeout::NONE) {
        Ok(_) => match keys[0].revents() {
            Some(told) if told.intersects(PollFlags::POLLHUP | PollFlags::POLLERR) => {
                Err(io::ErrorKind::UnexpectedEof.into())
            }
            _ => Ok(()),
        },
        Err(Errno::EINTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// What events mean that were read at once. Without mouse capture, a terminal sends a step of the wheel as several
/// arrows; no finger is that quick.
fn meant(events: Vec<event::Event>) -> Vec<Event> {
    let arrow = |event: &event::Event| match event {
        event::Event::Key(KeyEvent { code, modifiers: KeyModifiers::NONE, .. }) => match code {
            KeyCode::Up => Some(-1),
            KeyCode::Down => Some(1),
            _ => None,
        },
        _ => None,
    };
    let mut meant = Vec::new();
    for same in events.chunk_by(|one, other| arrow(one).is_some() && arrow(one) == arrow(other)) {
        match (arrow(&same[0]), same.len()) {
            (Some(way), 2..) => {
                meant.push(Event::Wheel(way * isize::try_from(same.len()).unwrap_or(STEP)));
            }
            _ => meant.extend(same.iter().map(of_terminal)),
        }
    }
    meant
}

fn of_terminal(event: &event::Event) -> Event {
    match event {
        event::Event::Key(key) => Event::Key(*key),
        event::Event::Paste(text) => Event::Paste(text.clone()),
        event::Event::FocusGained => Event::Focused(true),
        event::Event::FocusLost => Event::Focused(false),
        event::Event::Resize(..) => Event::Time,
        event::Event::Mouse(mouse) => match mouse.kind {
            MouseEventKind::ScrollUp => Event::Wheel(-STEP),
            MouseEventKind::ScrollDown => Event::Wheel(STEP),
            MouseEventKind::Down(MouseButton::Left) => Event::Click(mouse.row),
            _ => Event::Time,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(code: KeyCode) -> event::Event {
        event::Event::Key(KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn arrows_that_come_at_once_are_the_wheel_and_one_is_a_key() {
        let (up, down, x) = (press(KeyCode::Up), press(KeyCode::Down), press(KeyCode::Char('x')));
        let all = vec![up.clone(), x.clone(), x, down.clone(), down.clone(), down, up];
        let meant = meant(all);
        let told: Vec<String> = meant
            .iter()
            .map(|event| match event {
                Event::Key(key) => key.code.to_string(),
                other => format!("{other:?}"),
            })
            .collect();
        assert_eq!(told, ["Up", "x", "x", "Wheel(3)", "Up"]);
    }
}
