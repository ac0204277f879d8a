//! What somebody who continues a conversation has to know at least: the last words, the files that were changed,
//! the plan.

use std::collections::BTreeSet;

use acpd_api::{SessionInfo, Untrusted};
use acpd_client::Connection;
use acpd_view::{Block, Kind, Turn, fenced_in};

use super::markdown::{Markdown, Part, head};
use super::{raw, read};
use crate::error::Result;
use crate::text::{Text, text};

/// The end of a conversation, in few words.
#[derive(Debug, Default)]
pub(crate) struct Digest {
    /// How many turns it is of.
    pub(crate) turns: usize,
    prompt: Option<Block>,
    answer: Option<Block>,
    plan: Option<Block>,
    files: BTreeSet<Untrusted>,
}

impl Digest {
    pub(crate) fn read(info: &SessionInfo, connection: &mut Connection) -> Result<Digest> {
        let mut digest = Digest::default();
        read(info, 0, connection, |turn| {
            digest.turn(turn);
            Ok(())
        })?;
        Ok(digest)
    }

    fn turn(&mut self, turn: Turn) {
        self.turns += usize::from(turn.started.is_some());
        for block in turn.blocks {
            match &block.kind {
                Kind::Prompt(_) => self.prompt = Some(block),
                Kind::Answer(_) => self.answer = Some(block),
                Kind::Plan(_) => self.plan = Some(block),
                Kind::Turn(end) => self.files.extend(end.files.iter().cloned()),
                _ => {}
            }
        }
    }

    /// It in Markdown, behind what its agent wrote for this.
    pub(crate) fn text(&self, info: &SessionInfo, summary: Option<&str>) -> String {
        let mut parts: Vec<Part> = vec![head(info).into()];
        if let Some(summary) = summary {
            let summary = Part::Theirs(fenced_in(summary.trim()).into());
            parts.extend([
                text!("\n## Summary, by {}\n\n", info.agent).into(),
                summary,
                "\n".into(),
            ]);
        }
        let mut markdown = Markdown::new(&info.agent);
        let last = [&self.prompt, &self.answer, &self.plan];
        parts.extend(last.into_iter().flatten().flat_map(|block| markdown.block(block)));
        if !self.files.is_empty() {
            let files = self.files.iter().map(|file| text!("- `{}`\n", file));
            parts.push(text!("\n## Changed files\n\n{}", files.collect::<Text>()).into());
        }
        parts.extend(markdown.end());
        raw(parts)
    }
}
