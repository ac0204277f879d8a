//! The two streams: data goes to stdout, messages go to stderr.
//!
//! Users read [`Text`], which cannot affect the terminal. An agent's data, such as its answer, is
//! escaped on a terminal; pipes and files get it byte for byte ([`Ui::relay`]).

#![expect(clippy::disallowed_methods, reason = "the one place that writes to the streams")]

use std::env;
use std::io::{self, BufRead as _, BufWriter, IsTerminal as _, Stderr, Write as _};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use acpd_api::{Untrusted, json};
use anstream::{AutoStream, ColorChoice};
use serde::Serialize;
use serde_json::value::RawValue;
use terminal_size::{Height, Width, terminal_size_of};

use crate::args::When;
use crate::error::Result;
use crate::machine::OtherMachine;
use crate::text::{Role, Text, text};
use crate::user_programs::Pager;

pub(crate) const TICK: Duration = Duration::from_millis(100);

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
const CLEAR_LINE: &str = "\r\u{1b}[K";
/// Turns off wrapping, so that long lines end at the edge.
const NO_WRAP: &str = "\u{1b}[?7l";
const CLEAR_REST: &str = "\u{1b}[J\u{1b}[?7h";

/// The spinner is visible. Global, because a signal ends the process from another thread.
static SPINNER_SHOWN: Mutex<bool> = Mutex::new(false);

/// Leaves the terminal on an empty line, from any thread. Keeps the lock, so that the spinner
/// stops.
pub(crate) fn leave_line() {
    let mut err = io::stderr();
    if err.is_terminal() {
        let shown = spinner_shown();
        let _ = err.write_all(if *shown { CLEAR_LINE.as_bytes() } else { b"\n" });
        std::mem::forget(shown);
    }
}

pub(crate) fn complain(line: impl Into<Text>) {
    let _ = writeln!(io::stderr(), "{}", line.into());
}

fn spinner_shown() -> MutexGuard<'static, bool> {
    SPINNER_SHOWN.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) struct Ui {
    /// The command may start a daemon.
    pub(crate) may_start: bool,
    /// The command works on another machine.
    pub(crate) machine: Option<OtherMachine>,
    /// Stdout, or stdin of the pager.
    out: BufWriter<Box<dyn io::Write>>,
    pager: Option<Pager>,
    err: Stderr,
    pub(crate) out_is_coloured: bool,
    err_is_coloured: bool,
    out_is_terminal: bool,
    pub(crate) err_is_terminal: bool,
    /// The last line of stdout or stderr is unfinished.
    out_open: bool,
    err_open: bool,
    /// The last piece of data for a pipe or a file. It is written together with the end of its
    /// line, so that lines of several programs on one pipe stay whole.
    held: Vec<u8>,
    redrawn: usize,
    can_spin: bool,
    spinner: Option<Spinner>,
    /// The last line of stdout will be written again.
    previews: bool,
}

#[derive(Debug)]
struct Spinner {
    label: Text,
    since: Instant,
    frame: usize,
}

impl Ui {
    pub(crate) fn new(color: When, may_start: bool) -> Ui {
        let (out, err) = (io::stdout(), io::stderr());
        let is_coloured = |auto: ColorChoice| match color {
            When::Auto => auto != ColorChoice::Never,
            When::Always => true,
            When::Never => false,
        };
        Ui {
            may_start,
            machine: None,
            out_is_coloured: is_coloured(AutoStream::choice(&out)),
            err_is_coloured: is_coloured(AutoStream::choice(&err)),
            out_is_terminal: out.is_terminal(),
            err_is_terminal: err.is_terminal(),
            can_spin: err.is_terminal() && terminal_redraws(),
            out: buffered(out),
            pager: None,
            err,
            out_open: false,
            err_open: false,
            held: Vec::new(),
            redrawn: 0,
            spinner: None,
            previews: false,
        }
    }

    /// Shows further data in the user's pager if stdout is a terminal, as git does. Messages go
    /// through the pager too, so that they do not overwrite it.
    pub(crate) fn page(&mut self) {
        if self.out_is_terminal && self.pager.is_none() {
            let _ = self.out.flush();
            if let Some((pager, stdin)) = Pager::start() {
                (self.pager, self.out) = (Some(pager), buffered(stdin));
            }
        }
    }

    /// Columns of the terminal on stdout; none for a pipe or a file.
    pub(crate) fn out_width(&self) -> Option<usize> {
        let size = if self.out_is_terminal { terminal_size_of(io::stdout()) } else { None };
        size.map(|(Width(columns), _)| usize::from(columns)).filter(|columns| *columns > 0)
    }

    /// Columns and rows of the terminal on stderr; 80 by 24 if not known.
    pub(crate) fn err_size(&self) -> (usize, usize) {
        let size = if self.err_is_terminal { terminal_size_of(io::stderr()) } else { None };
        let size = size.map(|(Width(columns), Height(rows))| (columns.into(), rows.into()));
        size.filter(|(columns, rows)| *columns > 0 && *rows > 0).unwrap_or((80, 24))
    }

    pub(crate) fn can_ask(&self) -> bool {
        self.err_is_terminal && io::stdin().is_terminal()
    }

    pub(crate) fn is_on_terminal(&self) -> bool {
        self.err_is_terminal || self.out_is_terminal || io::stdin().is_terminal()
    }

    pub(crate) fn print(&mut self, text: impl Into<Text>) -> io::Result<()> {
        let text = coded(&text.into(), self.out_is_coloured);
        self.put(text.as_bytes())
    }

    /// Returns whether stdout is a terminal that can overwrite text.
    pub(crate) fn can_redraw(&self) -> bool {
        self.out_is_terminal && terminal_redraws()
    }

    /// Replaces the previous text, as far as the new one fits on the terminal.
    pub(crate) fn redraw(&mut self, text: &Text) -> io::Result<()> {
        let size = terminal_size_of(io::stdout());
        let height = size.map_or(24, |(_, Height(rows))| usize::from(rows));
        let text = coded(text, self.out_is_coloured);
        let rows: Vec<&str> = text.lines().take(height.saturating_sub(1)).collect();
        let mut frame = match std::mem::replace(&mut self.redrawn, rows.len()) {
            0 => NO_WRAP.to_owned(),
            before => format!("{NO_WRAP}\r\u{1b}[{before}A"),
        };
        for row in rows {
            frame.push_str(row);
            frame.push_str("\u{1b}[K\n");
        }
        frame.push_str(CLEAR_REST);
        self.put(frame.as_bytes())?;
        self.flush()
    }

    /// Writes an agent's data: escaped on a terminal, byte for byte elsewhere.
    pub(crate) fn relay(&mut self, text: &Untrusted) -> io::Result<()> {
        self.relay_bytes(text.raw().as_bytes())
    }

    /// Shows an incomplete line, which the next output replaces. Only on a terminal.
    pub(crate) fn preview(&mut self, line: impl Into<Text>) -> io::Result<()> {
        if self.can_redraw() && self.pager.is_none() {
            if self.err_open || self.out_open {
                self.end_talk();
            }
            self.hide_spinner();
            self.out.write_all(coded(&line.into(), self.out_is_coloured).as_bytes())?;
            self.previews = true;
        }
        Ok(())
    }

    /// Writes a name or an id as data, with a newline.
    pub(crate) fn relay_line(&mut self, text: &Untrusted) -> io::Result<()> {
        if self.out_is_terminal {
            self.print(text)?;
        } else {
            self.relay(text)?;
        }
        self.put(b"\n")
    }

    /// [`Ui::relay`] for data that may not be UTF-8.
    pub(crate) fn relay_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.out_is_terminal {
            self.print(Untrusted::from(String::from_utf8_lossy(bytes)).prose())
        } else {
            self.put(&[])?;
            self.held.extend_from_slice(bytes);
            Ok(())
        }
    }

    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        let held = std::mem::take(&mut self.held);
        self.write(&held)?;
        self.write(bytes)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        self.hide_spinner();
        if self.out_is_terminal && self.err_open {
            self.end_talk();
        }
        self.out.write_all(bytes)?;
        self.out_open = !bytes.ends_with(b"\n");
        Ok(())
    }

    pub(crate) fn end_line(&mut self) -> io::Result<()> {
        self.put(&[])?;
        if self.out_open {
            self.put(b"\n")?;
        }
        Ok(())
    }

    pub(crate) fn json(&mut self, value: &impl Serialize) -> io::Result<()> {
        self.put((json::pretty(value)? + "\n").as_bytes())
    }

    pub(crate) fn show(
        &mut self,
        json: bool,
        value: &impl Serialize,
        text: impl Into<Text>,
    ) -> Result {
        Ok(if json { self.json(value) } else { self.print(text) }?)
    }

    /// Prints a list; for users, `nothing` instead of an empty list.
    pub(crate) fn show_list(
        &mut self,
        json: bool,
        list: &impl Serialize,
        nothing: Option<impl Into<Text>>,
        text: impl Into<Text>,
    ) -> Result {
        match nothing.filter(|_| !json) {
            Some(nothing) => {
                self.say(nothing);
                Ok(())
            }
            None => self.show(json, list, text),
        }
    }

    pub(crate) fn json_line(&mut self, value: &(impl Serialize + ?Sized)) -> io::Result<()> {
        self.json_item(value)?;
        self.put(b"\n")
    }

    pub(crate) fn json_item(&mut self, value: &(impl Serialize + ?Sized)) -> io::Result<()> {
        self.put(json::line(value)?.as_bytes())
    }

    pub(crate) fn json_relayed(&mut self, line: &[u8]) -> io::Result<()> {
        self.json_line(serde_json::from_slice::<&RawValue>(line)?)
    }

    /// Prints whole lines to stderr. Write errors are ignored.
    pub(crate) fn talk(&mut self, lines: &Text) {
        if self.err_is_terminal && self.pager.is_some() {
            // A user who has left the pager does not want the rest.
            drop(self.end_line().and_then(|()| self.print(lines)));
            return;
        }
        self.end_talk();
        let _ = self.err.write_all(coded(lines, self.err_is_coloured).as_bytes());
    }

    pub(crate) fn say(&mut self, line: impl Into<Text>) {
        self.talk(&(line.into() + "\n"));
    }

    /// Prints the result of a command.
    #[expect(clippy::unnecessary_wraps, reason = "it is the last expression of a command")]
    pub(crate) fn done(&mut self, line: impl Into<Text>) -> Result {
        self.say(line);
        Ok(())
    }

    pub(crate) fn note(&mut self, line: impl Into<Text>) {
        self.say(Text::styled(Role::Dim, line));
    }

    pub(crate) fn warn(&mut self, line: impl Into<Text>) {
        self.say(Text::styled(Role::Warning, line));
    }

    /// Prints a part of a line to stderr.
    pub(crate) fn mutter(&mut self, text: impl Into<Text>) {
        if !self.err_open {
            self.end_talk();
        }
        let text = text.into();
        let _ = self.err.write_all(coded(&text, self.err_is_coloured).as_bytes());
        self.err_open = !text.as_str().ends_with('\n');
    }

    /// Asks for a line on a terminal; none at the end of input.
    pub(crate) fn ask(&mut self, prompt: impl Into<Text>) -> io::Result<Option<String>> {
        self.mutter(prompt);
        let mut line = Vec::new();
        io::stdin().lock().read_until(b'\n', &mut line)?;
        // The typed newline is also on the screen.
        self.err_open = !line.ends_with(b"\n");
        Ok((!line.is_empty()).then(|| String::from_utf8_lossy(&line).trim().to_owned()))
    }

    /// Starts a new line on stderr. If both streams share a terminal, also after data: the data
    /// itself never gets a newline that the agent did not write.
    fn end_talk(&mut self) {
        self.hide_spinner();
        let _ = self.flush();
        if self.err_open || (self.out_open && self.out_is_terminal && self.err_is_terminal) {
            let _ = self.err.write_all(b"\n");
            self.err_open = false;
            self.out_open = false;
        }
    }

    /// Returns whether data is held back until its line ends.
    pub(crate) fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    /// Flushes everything except held data.
    pub(crate) fn flush_but_last(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.put(&[])?;
        self.out.flush()
    }

    /// Ends all lines, and waits until the user leaves the pager; data goes to stdout again.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.stop_spinning();
        if self.err_open {
            self.end_talk();
        }
        let done = self.end_line().and_then(|()| self.flush());
        if let Some(pager) = self.pager.take() {
            self.out = buffered(io::stdout());
            pager.wait();
        }
        done
    }

    /// Shows a spinner while nothing streams. Only on a terminal.
    pub(crate) fn spin(&mut self, label: impl Into<Text>) {
        self.hide_spinner();
        let since = self.spinner.take().map_or_else(Instant::now, |spinner| spinner.since);
        if self.can_spin {
            let label = label.into();
            self.spinner = Some(Spinner { label, since, frame: 0 });
        }
    }

    pub(crate) fn stop_spinning(&mut self) {
        self.hide_spinner();
        self.spinner = None;
    }

    pub(crate) fn spins(&self) -> bool {
        self.spinner.is_some() && !self.out_open && !self.err_open && !self.previews
    }

    pub(crate) fn tick(&mut self) {
        if !self.spins() {
            return;
        }
        let Some(spinner) = &mut self.spinner else { return };
        let passed = match spinner.since.elapsed().as_secs() {
            seconds @ 0..60 => text!("{}s", seconds),
            seconds => text!("{}m {:02}s", seconds / 60, seconds % 60),
        };
        let sign = Text::styled(Role::Name, FRAMES[spinner.frame % FRAMES.len()]);
        let label = Text::styled(Role::Dim, text!("{} {}", spinner.label, passed));
        let line = coded(&text!("{} {}", sign, label), self.err_is_coloured);
        spinner.frame += 1;
        let mut shown = spinner_shown();
        *shown = true;
        let _ = write!(self.err, "{CLEAR_LINE}{line}");
    }

    fn hide_spinner(&mut self) {
        if std::mem::take(&mut self.previews) {
            // Errors of a closed terminal do not matter.
            let _ = self.out.write_all(CLEAR_LINE.as_bytes());
        }
        let mut shown = spinner_shown();
        if std::mem::take(&mut *shown) {
            let _ = self.err.write_all(CLEAR_LINE.as_bytes());
        }
    }
}

fn buffered(out: impl io::Write + 'static) -> BufWriter<Box<dyn io::Write>> {
    BufWriter::with_capacity(64 * 1024, Box::new(out))
}

pub(crate) fn coded(text: &Text, is_coloured: bool) -> String {
    let parts = text.parts().map(|(words, style)| match style.look() {
        look if is_coloured && !look.is_plain() => format!("{look}{words}{look:#}"),
        _ => words.to_owned(),
    });
    parts.collect()
}

fn terminal_redraws() -> bool {
    env::var_os("TERM").is_none_or(|term| term != "dumb")
}
