//! `search`: lines of files that match; and `find`: names of files.

use std::io;

use acpd_services::fs::{Kind, open};
use grep_matcher::Matcher as _;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkMatch};

use super::folders::{Folders, Page, around};
use super::{FindArgs, SearchArgs, Workspace};
use crate::failure::Failure;

/// Bytes of a list of names.
const NAMES: usize = 32 << 10;
/// Bytes of an answer, and of a line in it.
const ANSWER: usize = 48 << 10;
const LINE: usize = 500;
/// Matching lines by default, and at most.
const USUAL: usize = 200;
const MOST: usize = 2000;
/// Most lines around a match.
const CONTEXT: usize = 20;
/// Bytes of a line that a file may have. A file with a longer one is no text for people.
const HEAP: usize = 16 << 20;

impl Workspace {
    pub(crate) fn search(&self, args: &SearchArgs) -> Result<String, Failure> {
        let folders = Folders::open(&self.folders)?;
        let mut pattern = RegexMatcherBuilder::new();
        pattern.fixed_strings(args.literal).case_insensitive(args.ignore_case);
        pattern.line_terminator(Some(b'\n'));
        let matcher = pattern.build(&args.pattern).map_err(|error| {
            Failure::new(format!("`pattern`: {error}")).hint("`literal: true` takes it as it is")
        })?;
        let glob = folders.glob(args.glob.as_deref())?;
        let context = args.context.min(CONTEXT);
        let mut searcher = SearcherBuilder::new()
            .before_context(context)
            .after_context(context)
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(HEAP))
            .build();
        let most = args.max_matches.unwrap_or(USUAL).clamp(1, MOST);
        let mut hits = Hits {
            page: Page::new(ANSWER),
            matcher: &matcher,
            head: None,
            matches: 0,
            files: 0,
            most,
            cut: None,
        };
        let mut unread = 0;
        let more = folders.walk(args.path.as_deref(), args.ignored, |path, kind| {
            if kind != Kind::File || glob.matched(path, false).is_ignore() {
                return true;
            }
            hits.head = Some(folders.shown(path));
            let searched = open(&folders.roots, path, folders.effort())
                .map_err(io::Error::other)
                .and_then(|file| searcher.search_reader(&matcher, file, &mut hits));
            unread += usize::from(searched.is_err());
            hits.cut.is_none()
        })?;
        let Hits { page, matches, files, cut, .. } = hits;
        let mut notes = vec![format!("{matches} matching lines in {files} files")];
        notes.extend(
            cut.or(more).map(|why| format!("cut: {why}; say more exactly what you look for")),
        );
        if unread > 0 {
            notes.push(format!("{unread} files could not be read to their end"));
        }
        Ok(page.end(&notes))
    }

    pub(crate) fn find(&self, args: &FindArgs) -> Result<String, Failure> {
        let folders = Folders::open(&self.folders)?;
        let glob = folders.glob(Some(&args.glob))?;
        let mut page = Page::new(NAMES);
        let (mut shown, mut left_out) = (0_usize, 0_usize);
        let more = folders.walk(args.path.as_deref(), args.ignored, |path, kind| {
            if kind != Kind::Directory && !glob.matched(path, false).is_ignore() {
                // After the first name that does not fit, shorter ones are left out, too.
                let fits = left_out == 0 && page.line(&folders.shown(path));
                *(if fits { &mut shown } else { &mut left_out }) += 1;
            }
            true
        })?;
        let mut notes = vec![format!("{shown} files")];
        if left_out > 0 {
            notes.push(format!("cut: {left_out} more"));
        }
        notes.extend(more.map(str::to_owned));
        Ok(page.end(&notes))
    }

    /// As many file names as fit into an answer, without those that git ignores.
    pub(crate) fn files(&self) -> Result<String, Failure> {
        self.find(&FindArgs { glob: "**".to_owned(), path: None, ignored: false })
    }
}

struct Hits<'a> {
    page: Page,
    matcher: &'a RegexMatcher,
    /// The name of the file, until its first match.
    head: Option<String>,
    matches: usize,
    files: usize,
    most: usize,
    /// Why the other matches are left out.
    cut: Option<&'static str>,
}

impl Hits<'_> {
    fn line(&mut self, number: Option<u64>, mark: char, bytes: &[u8], at: usize) -> bool {
        if let Some(head) = self.head.take() {
            self.files += 1;
            let gap = if self.files == 1 { "" } else { "\n" };
            self.add(&format!("{gap}{head}"));
        }
        let text = String::from_utf8_lossy(bytes);
        let text = around(text.trim_end_matches(['\r', '\n']), at, LINE);
        self.add(&format!("{}{mark} {text}", number.unwrap_or_default()))
    }

    fn add(&mut self, line: &str) -> bool {
        if self.cut.is_none() && !self.page.line(line) {
            self.cut = Some("the answer would be too long");
        }
        self.cut.is_none()
    }
}

impl Sink for &mut Hits<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        if self.matches == self.most {
            self.cut = Some("there are more matches");
            return Ok(false);
        }
        let first = self.matcher.find(found.bytes()).ok().flatten();
        let fits =
            self.line(found.line_number(), ':', found.bytes(), first.map_or(0, |at| at.start()));
        self.matches += usize::from(fits);
        Ok(fits)
    }

    fn context(&mut self, _: &Searcher, line: &SinkContext<'_>) -> io::Result<bool> {
        Ok(self.line(line.line_number(), '-', line.bytes(), 0))
    }

    fn context_break(&mut self, _: &Searcher) -> io::Result<bool> {
        // Between two files there is a line already.
        Ok(self.head.is_some() || self.add("--"))
    }
}
