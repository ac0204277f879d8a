//! An agent that exists on every system: this program. It does one thing after the other:
//!
//! | word | what it does |
//! | --- | --- |
//! | `say TEXT`, `err TEXT` | writes a line to stdout or stderr |
//! | `pid` | writes its pid, a line |
//! | `count N` | writes the numbers from 1 to N, a line each |
//! | `env` | writes its environment, a line for each variable |
//! | `read` | reads a line |
//! | `cat` | writes what it reads, up to the end |
//! | `child SCRIPT` | starts another one, whose words have a comma between them |
//! | `deaf` | lets requests to end pass |
//! | `stay` | waits for ever |
//! | `exit N` | exits |

use std::io::{self, BufRead as _, Write as _};
use std::process::{Command, ExitCode};

use acpd_sys::signals::{self, Signal};

use crate::common::own;

pub(crate) fn play(script: &str) -> ExitCode {
    let (mut out, mut err) = (io::stdout().lock(), io::stderr());
    let mut children = Vec::new();
    for words in script.split(';') {
        let (word, rest) = words.split_once(' ').unwrap_or((words, ""));
        match word {
            "say" => writeln!(out, "{rest}").unwrap(),
            // In one piece: it is not gathered.
            "err" => err.write_all(format!("{rest}\n").as_bytes()).unwrap(),
            "pid" => writeln!(out, "{}", std::process::id()).unwrap(),
            "count" => count(&mut out, rest.parse().unwrap()),
            "env" => std::env::vars().for_each(|(name, value)| {
                writeln!(out, "{name}={value}").unwrap();
            }),
            "read" => drop(io::stdin().lock().read_line(&mut String::new()).unwrap()),
            "cat" => cat(&mut out),
            "child" => {
                let script = rest.replace(',', ";");
                children.push(Command::new(own()).args(["agent", &script]).spawn().unwrap());
            }
            "deaf" => signals::ignore(&[Signal::Terminate, Signal::Quit]).unwrap(),
            "stay" => loop {
                std::thread::park();
            },
            "exit" => return ExitCode::from(rest.parse::<u8>().unwrap()),
            other => unreachable!("{other}"),
        }
        out.flush().unwrap();
    }
    ExitCode::SUCCESS
}

fn count(out: &mut impl io::Write, last: u64) {
    let mut out = io::BufWriter::with_capacity(64 << 10, out);
    for number in 1..=last {
        writeln!(out, "{number}").unwrap();
    }
}

/// Passes on input at once, whether or not it is a whole line.
fn cat(out: &mut impl io::Write) {
    let mut stdin = io::stdin().lock();
    loop {
        let length = {
            let piece = stdin.fill_buf().unwrap();
            out.write_all(piece).unwrap();
            out.flush().unwrap();
            piece.len()
        };
        if length == 0 {
            return;
        }
        stdin.consume(length);
    }
}
