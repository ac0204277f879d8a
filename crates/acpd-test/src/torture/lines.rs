//! Lines of all clients in one queue: a thread for each socket and pipe reads them, and the round
//! takes one after the other.

use std::io::{BufRead as _, BufReader, Read};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::Sender;
use std::thread;
use std::time::{Duration, Instant};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    Editor,
    Run,
    Attach,
    Token,
    Observer,
}

#[derive(Debug)]
pub(super) struct Event {
    pub(super) who: Who,
    /// Number of its connection or process: events of an earlier one are ignored.
    pub(super) life: u32,
    pub(super) what: What,
}

#[derive(Debug)]
pub(super) enum What {
    Up(UnixStream),
    /// A line without its newline.
    Line(Vec<u8>),
    End,
}

/// Reads lines in a thread until the other side ends.
pub(super) fn read(who: Who, life: u32, source: impl Read + Send + 'static, to: Sender<Event>) {
    thread::spawn(move || read_all(who, life, source, &to));
}

fn read_all(who: Who, life: u32, source: impl Read, to: &Sender<Event>) {
    let mut reader = BufReader::with_capacity(64 << 10, source);
    let mut line = Vec::new();
    // A line without a newline was cut off.
    while matches!(reader.read_until(b'\n', &mut line), Ok(1..)) && line.ends_with(b"\n") {
        line.pop();
        let what = What::Line(std::mem::take(&mut line));
        if to.send(Event { who, life, what }).is_err() {
            return;
        }
    }
    // The scene may have ended.
    to.send(Event { who, life, what: What::End }).ok();
}

/// Connects as soon as there is a daemon, then reads. Calls `start` after each `patience` without
/// one, and gives up after a minute.
pub(super) fn connect(
    who: Who,
    life: u32,
    socket: PathBuf,
    patience: Duration,
    mut start: impl FnMut() + Send + 'static,
    to: Sender<Event>,
) {
    thread::spawn(move || {
        let begin = Instant::now();
        let mut last = begin;
        while begin.elapsed() < Duration::from_mins(1) {
            match UnixStream::connect(&socket).and_then(|stream| Ok((stream.try_clone()?, stream)))
            {
                Ok((reader, writer)) => {
                    let up = Event { who, life, what: What::Up(writer) };
                    if to.send(up).is_ok() {
                        read_all(who, life, reader, &to);
                    }
                    return;
                }
                Err(_) if last.elapsed() >= patience => {
                    start();
                    last = Instant::now();
                }
                Err(_) => thread::sleep(Duration::from_millis(1)),
            }
        }
        to.send(Event { who, life, what: What::End }).ok();
    });
}
