//! Writes each piece of a conversation to stdout or stderr.
//!
//! On a terminal, an answer is Markdown: rows are written when later text cannot change them, and
//! the last row previews the rest. Elsewhere it is the agent's text, byte for byte.

use std::io;

use acpd_api::{Untrusted, method};
use acpd_view::Markdown;

use crate::render::{Flow, Options, Piece, Transcript};
use crate::text::Text;
use crate::ui::Ui;

/// Up to this size, text is parsed at each piece; above it, at each line.
const SMALL: usize = 2048;

#[derive(Debug, Default)]
pub(crate) struct Screen {
    pub(crate) transcript: Transcript,
    /// Everything is data, as in a transcript, not only the agent's answer.
    whole: bool,
    bare: bool,
    /// Show text as it arrives. Messages of the history are shown when complete.
    is_live: bool,
    previews: bool,
    flow: Option<Flow>,
    answer: Option<Answer>,
    after_answer: bool,
    /// The answers so far, if they are kept instead of shown.
    kept: Option<Untrusted>,
}

#[derive(Debug)]
struct Answer {
    markdown: Markdown,
    written: Vec<Text>,
}

impl Screen {
    /// The answer goes to stdout, or is kept; everything else goes to stderr.
    pub(crate) fn answer(thoughts: bool, is_kept: bool) -> Screen {
        let kept = is_kept.then(Untrusted::default);
        Screen { kept, ..Screen::new(thoughts, false, true) }
    }

    pub(crate) fn only_answer() -> Screen {
        Screen { bare: true, is_live: false, ..Screen::answer(false, false) }
    }

    /// Everything goes to stdout. Lines are history until the daemon reports its end.
    pub(crate) fn whole(thoughts: bool) -> Screen {
        Screen::new(thoughts, true, false)
    }

    /// Everything goes to stdout at once; written text never changes.
    #[cfg(feature = "tui")]
    pub(crate) fn plain() -> Screen {
        Screen { previews: false, ..Screen::new(false, true, true) }
    }

    fn new(thoughts: bool, whole: bool, is_live: bool) -> Screen {
        let transcript = Transcript::new(Options { thoughts, whole });
        Screen { transcript, whole, is_live, previews: true, ..Screen::default() }
    }

    /// Returns the kept answers without the last newline.
    pub(crate) fn kept(&self) -> Option<&str> {
        self.kept.as_ref().map(|kept| kept.raw().strip_suffix('\n').unwrap_or(kept.raw()))
    }

    pub(crate) fn show(&mut self, ui: &mut Ui, name: &str, params: &str) -> io::Result<()> {
        if name == method::CAUGHT_UP {
            self.is_live = true;
        }
        let pieces = self.transcript.notification(name, params);
        self.put(ui, pieces)
    }

    pub(crate) fn end_turn(&mut self, ui: &mut Ui) -> io::Result<()> {
        let pieces = self.transcript.turn_ended();
        self.put(ui, pieces)
    }

    pub(crate) fn finish(&mut self, ui: &mut Ui) -> io::Result<()> {
        self.rows(ui, true)?;
        self.answer = None;
        let is_open = |kept: &&mut Untrusted| !kept.is_empty() && !kept.raw().ends_with('\n');
        if let Some(kept) = self.kept.as_mut().filter(is_open) {
            kept.push("\n");
        }
        ui.end_line()
    }

    fn put(&mut self, ui: &mut Ui, pieces: Vec<Piece>) -> io::Result<()> {
        for piece in pieces {
            match piece {
                Piece::Lines(_) | Piece::Flow(..) if self.bare => continue,
                Piece::Lines(lines) if self.whole => {
                    ui.end_line()?;
                    ui.print(&lines)?;
                    self.flow = None;
                }
                Piece::Answer(text) => {
                    self.turn_to(Flow::Answer, ui)?;
                    self.say(&text, ui)?;
                }
                Piece::AnswerEnds => {
                    self.finish(ui)?;
                    self.after_answer = true;
                    continue;
                }
                Piece::Flow(flow, text) if self.whole => {
                    self.turn_to(flow, ui)?;
                    ui.print(&text)?;
                }
                Piece::Lines(lines) => ui.talk(&lines),
                Piece::Flow(_, text) => ui.mutter(&text),
            }
            self.after_answer = false;
        }
        Ok(())
    }

    fn say(&mut self, text: &Untrusted, ui: &mut Ui) -> io::Result<()> {
        if let Some(kept) = &mut self.kept {
            kept.push(text.raw());
            return Ok(());
        }
        let Some(width) = ui.out_width() else { return ui.relay(text) };
        if self.answer.is_none() && self.after_answer {
            ui.print("\n")?;
        }
        let answer = self
            .answer
            .get_or_insert_with(|| Answer { markdown: Markdown::new(width), written: Vec::new() });
        answer.markdown.push(text);
        let is_small = answer.markdown.unsettled() < SMALL || text.raw().contains('\n');
        if self.is_live && is_small { self.rows(ui, false) } else { Ok(()) }
    }

    /// Writes the settled rows of the answer, or all rows.
    fn rows(&mut self, ui: &mut Ui, all: bool) -> io::Result<()> {
        let Some(Answer { markdown, written }) = &mut self.answer else { return Ok(()) };
        let settled = if all { usize::MAX } else { markdown.settled() };
        let lines = markdown.lines();
        // In the unlikely case that written rows changed, they are written again.
        let same = written
            .iter()
            .zip(lines)
            .take_while(|(old, line)| old.as_str() == line.as_str())
            .count();
        let until = settled.min(lines.len());
        written.truncate(same);
        for line in lines.iter().take(until).skip(same) {
            ui.print(line.clone() + "\n")?;
            written.push(line.clone());
        }
        match lines.last() {
            Some(last) if self.previews && until < lines.len() => ui.preview(last.clone()),
            _ => Ok(()),
        }
    }

    /// In a whole conversation, each speaker begins on a new line.
    fn turn_to(&mut self, flow: Flow, ui: &mut Ui) -> io::Result<()> {
        if self.whole && self.flow.replace(flow) != Some(flow) {
            ui.end_line()?;
        }
        Ok(())
    }
}
