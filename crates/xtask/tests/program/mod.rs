//! Programs that run, and how they ended.

use std::io::Read as _;
use std::process::{ChildStdout, Command, Stdio};

use xtask::Result;
use xtask::home::ChildGuard;

/// A running program with its standard output so far. Dropping it kills it.
#[derive(Debug)]
pub(crate) struct Program {
    child: ChildGuard,
    stdout: ChildStdout,
    seen: Vec<u8>,
}

impl Program {
    pub(crate) fn start(command: &mut Command) -> Result<Program> {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().ok_or("a pipe is missing")?;
        Ok(Program { child: ChildGuard(child), stdout, seen: Vec::new() })
    }

    /// Reads the output up to the next end of `text`.
    pub(crate) fn read_to(&mut self, text: &str) -> Result {
        let mut byte = [0];
        while !self.seen.ends_with(text.as_bytes()) {
            if self.stdout.read(&mut byte)? == 0 {
                let seen = String::from_utf8_lossy(&self.seen);
                return Err(format!("the program ended with {seen:?}").into());
            }
            self.seen.push(byte[0]);
        }
        Ok(())
    }

    /// Waits for the end. Nothing reads stderr before, which holds what a pipe holds.
    pub(crate) fn finish(mut self) -> Result<Ended> {
        let (mut stderr, child) = (String::new(), &mut self.child.0);
        self.stdout.read_to_end(&mut self.seen)?;
        child.stderr.take().ok_or("a pipe is missing")?.read_to_string(&mut stderr)?;
        Ok(Ended { code: child.wait()?.code(), stdout: String::from_utf8(self.seen)?, stderr })
    }
}

/// Output and exit code of a program.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    /// With this code, and these words on stderr.
    #[track_caller]
    pub(crate) fn is(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:?}");
        for word in words {
            assert!(self.stderr.contains(word), "no {word:?} in {self:?}");
        }
    }

    /// With success, and a line that ends so.
    #[track_caller]
    pub(crate) fn answers(&self, end: &str) {
        self.is(0, &[]);
        let mut lines = self.stdout.lines();
        assert!(
            lines.any(|line| line.trim_end().ends_with(end)),
            "no line ends with {end:?}: {self:?}"
        );
    }
}
