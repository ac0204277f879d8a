//! Writes each piece of a conversation to stdout or to stderr.

use std::io;

use acpd_api::{Untrusted, method};

use crate::render::{Flow, Options, Piece, Transcript};
use crate::settings::Settings;
use crate::ui::Ui;

/// A conversation on the screen.
#[derive(Debug)]
pub(crate) struct Screen {
    transcript: Transcript,
    /// Everything is data (a transcript was asked for), not only the agent's answer.
    whole: bool,
    /// Nothing but the answer is shown.
    bare: bool,
    flow: Option<Flow>,
}

impl Screen {
    /// The answer on stdout, everything else on stderr.
    pub(crate) fn answer(ui: &Ui, thoughts: bool) -> Screen {
        let options = Options { paint: ui.err_paint(), thoughts, whole: false };
        Screen { transcript: Transcript::new(options), whole: false, bare: false, flow: None }
    }

    /// The answer on stdout, and nothing else.
    pub(crate) fn only_answer(ui: &Ui) -> Screen {
        Screen { bare: true, ..Screen::answer(ui, false) }
    }

    /// Everything on stdout.
    pub(crate) fn whole(ui: &Ui, thoughts: bool) -> Screen {
        let options = Options { paint: ui.out_paint(), thoughts, whole: true };
        Screen { transcript: Transcript::new(options), whole: true, bare: false, flow: None }
    }

    /// Takes whose conversation it is: what subagents say in sessions of their own is no part of it.
    pub(crate) fn of(&mut self, session: &Untrusted) {
        self.transcript.of(session);
    }

    /// Takes the settings that the session begins with.
    pub(crate) fn know(&mut self, settings: Settings) {
        self.transcript.know(settings);
    }

    /// Shows a notification.
    pub(crate) fn show(&mut self, ui: &mut Ui, name: &str, params: &str) -> io::Result<()> {
        if self.bare && name == method::TURN_STARTED {
            // Another answer begins on a line of its own.
            ui.end_line()?;
        }
        let pieces = self.transcript.notification(name, params);
        self.put(ui, pieces)
    }

    /// Shows how a turn ended that this command ran.
    pub(crate) fn end_turn(&mut self, ui: &mut Ui) -> io::Result<()> {
        let pieces = self.transcript.turn_ended();
        self.put(ui, pieces)
    }

    fn put(&mut self, ui: &mut Ui, pieces: Vec<Piece>) -> io::Result<()> {
        for piece in pieces {
            match piece {
                Piece::Lines(_) | Piece::Flow(..) if self.bare => {}
                Piece::Lines(lines) if self.whole => {
                    ui.end_line()?;
                    ui.print(&lines)?;
                    self.flow = None;
                }
                Piece::Answer(text) => {
                    self.turn_to(Flow::Answer, ui)?;
                    ui.relay(&text)?;
                }
                Piece::Flow(flow, text) if self.whole => {
                    self.turn_to(flow, ui)?;
                    ui.print(&text)?;
                }
                Piece::Lines(lines) => ui.talk(&lines),
                Piece::Flow(_, text) => ui.mutter(&text),
            }
        }
        Ok(())
    }

    /// In a whole conversation another voice begins on a line of its own.
    fn turn_to(&mut self, flow: Flow, ui: &mut Ui) -> io::Result<()> {
        if self.whole && self.flow.replace(flow) != Some(flow) {
            ui.end_line()?;
        }
        Ok(())
    }
}
