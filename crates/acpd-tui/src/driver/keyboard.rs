//! Keys of the terminal. A thread reads them, and waits until its events are handled, so that it
//! reads nothing while another program has the terminal.

use std::io;
use std::sync::mpsc::{self, Sender, SyncSender};
use std::thread;
use std::time::Duration;

use acpd_sys::terminal;
use crossterm::event::{self, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEventKind};

use super::DriverEvent;
use crate::app::AppEvent;
use crate::term;

/// Pause between polls for unannounced keys.
const PAUSE: Duration = Duration::from_millis(2);
/// This many keys at once are pasted, not typed.
const MIN_PASTED: usize = 4;
const WHEEL_LINES: isize = 3;

/// Returns the sender that lets the thread continue after its events are handled.
pub(super) fn listen(sender: SyncSender<DriverEvent>) -> io::Result<Sender<()>> {
    let (next, dealt_with) = mpsc::channel();
    let read = move || {
        loop {
            let event = batch().map_or(DriverEvent::HungUp, DriverEvent::Typed);
            let is_last = matches!(event, DriverEvent::HungUp);
            if sender.send(event).is_err() || is_last || dealt_with.recv().is_err() {
                return;
            }
        }
    };
    thread::Builder::new().name("keys".to_owned()).spawn(read)?;
    Ok(next)
}

fn batch() -> io::Result<Vec<AppEvent>> {
    let mut events = Vec::new();
    while events.is_empty() {
        terminal::wait()?;
        while event::poll(Duration::ZERO)? {
            events.push(event::read()?);
        }
        if events.is_empty() {
            // crossterm reports keys once, and loses the report if the size changes at the same
            // time.
            term::announce_again();
            thread::sleep(PAUSE);
        }
    }
    if terminal::HAS_BARE_KEYS {
        events = dressed(events);
    }
    Ok(meant(events))
}

/// Converts bare keys to what a terminal sends.
fn dressed(mut events: Vec<event::Event>) -> Vec<event::Event> {
    const ALT_GR: KeyModifiers = KeyModifiers::CONTROL.union(KeyModifiers::ALT);
    events.retain(|event| !event.is_key_release());
    for event in &mut events {
        if let event::Event::Key(KeyEvent { code: KeyCode::Char(char), modifiers, .. }) = event
            && modifiers.contains(ALT_GR)
            // With real Ctrl and Alt, a key has no other character.
            && !char.is_ascii_alphanumeric()
        {
            modifiers.remove(ALT_GR);
        }
    }
    match pasted(&events) {
        Some(text) => vec![event::Event::Paste(text)],
        None => events,
    }
}

/// Returns the text of pasted keys with a newline, because that newline must not send the line.
fn pasted(events: &[event::Event]) -> Option<String> {
    let character = |event: &event::Event| match event.as_key_event()? {
        KeyEvent { modifiers, .. } if !KeyModifiers::SHIFT.contains(modifiers) => None,
        KeyEvent { code: KeyCode::Char(char), .. } => Some(char),
        KeyEvent { code: KeyCode::Enter, .. } => Some('\n'),
        KeyEvent { code: KeyCode::Tab, .. } => Some('\t'),
        _ => None,
    };
    let text: String = events.iter().map(character).collect::<Option<_>>()?;
    (events.len() >= MIN_PASTED && text.contains('\n')).then_some(text)
}

/// Converts events of one read. Without mouse reports, a terminal sends several arrows for a step
/// of the wheel.
fn meant(events: Vec<event::Event>) -> Vec<AppEvent> {
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
                meant.push(AppEvent::Wheel(
                    way * isize::try_from(same.len()).unwrap_or(WHEEL_LINES),
                ));
            }
            _ => meant.extend(same.iter().map(of_terminal)),
        }
    }
    meant
}

/// Maps keys that a terminal without the kitty protocol cannot distinguish. Ctrl-J is not one of
/// them: Enter sends another byte in raw mode.
fn as_legacy(key: KeyEvent) -> KeyEvent {
    let code = match key.code {
        _ if key.modifiers != KeyModifiers::CONTROL => return key,
        KeyCode::Char('h') => KeyCode::Backspace,
        KeyCode::Char('i') => KeyCode::Tab,
        KeyCode::Char('m') => KeyCode::Enter,
        KeyCode::Char('[') => KeyCode::Esc,
        // crossterm names the bytes 0x1C to 0x1F by the digits, as xterm sends them.
        KeyCode::Char(digit @ '4'..='7') => {
            let char = ['\\', ']', '^', '_'][digit as usize - '4' as usize];
            return KeyEvent { code: KeyCode::Char(char), ..key };
        }
        _ => return key,
    };
    KeyEvent { code, modifiers: KeyModifiers::NONE, ..key }
}

fn of_terminal(event: &event::Event) -> AppEvent {
    match event {
        event::Event::Key(key) => AppEvent::Key(as_legacy(*key)),
        event::Event::Paste(text) => AppEvent::Paste(text.clone()),
        event::Event::FocusGained => AppEvent::Focused(true),
        event::Event::FocusLost => AppEvent::Focused(false),
        event::Event::Resize(..) => AppEvent::Time,
        event::Event::Mouse(mouse) => match mouse.kind {
            MouseEventKind::ScrollUp => AppEvent::Wheel(-WHEEL_LINES),
            MouseEventKind::ScrollDown => AppEvent::Wheel(WHEEL_LINES),
            MouseEventKind::Down(MouseButton::Left) => AppEvent::Click(mouse.row),
            _ => AppEvent::Time,
        },
    }
}

#[cfg(test)]
mod tests {
    use crossterm::event::KeyEventKind;

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
                AppEvent::Key(key) => key.code.to_string(),
                other => format!("{other:?}"),
            })
            .collect();
        assert_eq!(told, ["Up", "x", "x", "Wheel(3)", "Up"]);
    }

    #[test]
    fn keys_that_legacy_terminals_send_alike_mean_the_same_everywhere() {
        let read = |code| of_terminal(&key(code, KeyModifiers::CONTROL, KeyEventKind::Press));
        let told = |code| match read(code) {
            AppEvent::Key(key) => format!("{}{}", key.modifiers, key.code),
            other => format!("{other:?}"),
        };
        let all = ['h', 'i', 'j', 'm', '[', '4', '5', '6', '7', '\\', 'c'];
        let all: Vec<String> = all.into_iter().map(|char| told(KeyCode::Char(char))).collect();
        let control = |char| format!("{}{char}", KeyModifiers::CONTROL);
        let bare = ["Backspace", "Tab", "Enter", "Esc"];
        assert_eq!(all[..2], bare[..2]);
        assert_eq!(all[2], control('j'), "a newline");
        assert_eq!(all[3..5], bare[2..]);
        assert_eq!(all[5..], ['\\', ']', '^', '_', '\\', 'c'].map(control));
    }

    fn key(code: KeyCode, modifiers: KeyModifiers, kind: KeyEventKind) -> event::Event {
        event::Event::Key(KeyEvent::new_with_kind(code, modifiers, kind))
    }

    #[test]
    fn bare_keys_are_what_a_terminal_makes_of_them() {
        let alt_gr = KeyModifiers::CONTROL | KeyModifiers::ALT;
        let at = |modifiers| key(KeyCode::Char('@'), modifiers, KeyEventKind::Press);
        let a = key(KeyCode::Char('a'), alt_gr, KeyEventKind::Press);
        let released = key(KeyCode::Char('@'), KeyModifiers::NONE, KeyEventKind::Release);
        let events = vec![at(alt_gr), released.clone(), a.clone()];
        assert_eq!(dressed(events), [at(KeyModifiers::NONE), a]);
        assert_eq!(dressed(vec![released]), []);
    }

    #[test]
    fn bare_keys_that_nobody_can_have_typed_are_pasted_and_send_nothing() {
        let typed = |text: &str| -> Vec<event::Event> {
            let code = |char| if char == '\n' { KeyCode::Enter } else { KeyCode::Char(char) };
            text.chars().map(|char| press(code(char))).collect()
        };
        let paste = |text: &str| vec![event::Event::Paste(text.to_owned())];
        assert_eq!(dressed(typed("ls\nö\n")), paste("ls\nö\n"));
        for text in ["y\n", "\n", "a word"] {
            assert_eq!(dressed(typed(text)), typed(text), "{text:?}");
        }
        let mut with_a_command = typed("ab\nc");
        with_a_command.push(key(KeyCode::Char('c'), KeyModifiers::CONTROL, KeyEventKind::Press));
        assert_eq!(dressed(with_a_command.clone()), with_a_command);
    }
}
