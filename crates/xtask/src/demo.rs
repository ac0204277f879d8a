//! `cargo xtask demo`: acpd's main job, for people to watch.

use std::io::{BufRead as _, BufReader, IsTerminal as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::Result;
use crate::home::{ChildGuard, Home, kill_tree};
use crate::workspace::{Profile, build};

/// Time to read between two steps.
const PAUSE: Duration = Duration::from_millis(1500);
/// Time between two checks for Ctrl-C.
const LOOK: Duration = Duration::from_millis(20);
/// Lines of the second answer before its agent is killed.
const SEEN: usize = 12;
/// Exit code of `acpctl run` for an interrupted turn.
const INTERRUPTED: i32 = 6;

/// Shows the job, and fails if any step fails.
pub fn run() -> Result {
    println!("Building acpd and acpctl; the first time this takes a minute or two.");
    let show = Show::new(Home::new(&build(Profile::Debug)?)?)?;
    show.main_job()?;
    println!("\nThat was it: the agent died in mid-sentence and the conversation went on.");
    println!("Try it yourself: `cargo xtask install`, then `acpctl run -s NAME PROMPT`.");
    Ok(())
}

struct Show {
    home: Home,
    interrupted: Arc<AtomicBool>,
    colour: &'static str,
}

impl Show {
    fn new(home: Home) -> Result<Show> {
        let interrupted = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
        }
        let colour = if std::io::stdout().is_terminal() { "always" } else { "never" };
        Ok(Show { home, interrupted, colour })
    }

    fn main_job(&self) -> Result {
        self.tell("A prompt. No daemon runs yet, so acpctl starts it, and the daemon the agent.")?;
        self.expect(&["run", "-s", "demo", "say #one"], 0)?;

        self.tell("A second prompt in the same session; its agent is killed in mid-answer.")?;
        let mut asked = self.start(&["run", "-s", "demo", "say #two [slow 100]"])?;
        for _ in 0..SEEN {
            self.pass_on_line(&mut asked)?;
        }
        let agent = self.home.agent("demo")?;
        let killed = kill_tree(agent);
        println!("    ~~~ kill -9 {}: the agent and all that it had started ~~~", agent.pid);
        while self.pass_on_line(&mut asked)? {}
        check(self.wait(&mut asked.child.0)?, INTERRUPTED, "the interrupted prompt")?;
        check_gone(&killed)?;

        self.tell("What is there now: a new agent, and the same session.")?;
        self.expect(&["ps"], 0)?;

        self.tell("The next prompt. Its answer lists the #words of every prompt it knows.")?;
        let answer = self.expect(&["run", "-s", "demo", "say #three"], 0)?;
        if !answer.contains("tags=one,two,three") {
            return Err(format!("the agent does not know the conversation: {answer}").into());
        }

        self.tell("All of it is in the journal, the half of the second answer too.")?;
        let log = self.expect(&["session", "log", "demo"], 0)?;
        if log.matches("tick 1\n").count() != 1 || log.matches("tags=one,two,three").count() != 1 {
            return Err("the journal does not hold each line once".into());
        }

        self.tell("The end: the daemon stops its agents and itself.")?;
        self.expect(&["daemon", "stop"], 0)?;
        let left = self.home.leftovers();
        if !left.is_empty() {
            return Err(format!("these processes are still alive: {left:?}").into());
        }
        println!("    nothing is left running");
        Ok(())
    }

    /// Prints the next step, after a pause to read the last one.
    fn tell(&self, text: &str) -> Result {
        let looks = PAUSE.as_millis() / LOOK.as_millis();
        for _ in 0..looks {
            self.go_on()?;
            thread::sleep(LOOK);
        }
        println!("\n# {text}");
        Ok(())
    }

    fn go_on(&self) -> Result {
        if self.interrupted.load(Ordering::Relaxed) {
            return Err("interrupted; everything was stopped and removed".into());
        }
        Ok(())
    }

    /// Runs `acpctl`, shows and returns its output.
    fn expect(&self, args: &[&str], code: i32) -> Result<String> {
        let mut running = self.start(args)?;
        while self.pass_on_line(&mut running)? {}
        check(self.wait(&mut running.child.0)?, code, &format!("`acpctl {}`", args.join(" ")))?;
        Ok(std::mem::take(&mut running.printed))
    }

    fn start(&self, args: &[&str]) -> Result<Running> {
        self.go_on()?;
        let quoted = args
            .iter()
            .map(|arg| if arg.contains(' ') { format!("'{arg}'") } else { (*arg).to_owned() });
        println!("$ acpctl {}", quoted.collect::<Vec<_>>().join(" "));
        let mut command: Command = self.home.acpctl(&["--color", self.colour]);
        let mut child = command.args(args).stdout(Stdio::piped()).spawn()?;
        let stdout = child.stdout.take().ok_or("a pipe is missing")?;
        Ok(Running {
            child: ChildGuard(child),
            stdout: BufReader::new(stdout),
            printed: String::new(),
        })
    }

    /// Shows one more line of a command; `false` at its end.
    fn pass_on_line(&self, running: &mut Running) -> Result<bool> {
        self.go_on()?;
        let from = running.printed.len();
        if running.stdout.read_line(&mut running.printed)? == 0 {
            return Ok(false);
        }
        print!("    {}", &running.printed[from..]);
        std::io::stdout().flush()?;
        Ok(true)
    }

    fn wait(&self, child: &mut Child) -> Result<Option<i32>> {
        loop {
            self.go_on()?;
            if let Some(status) = child.try_wait()? {
                return Ok(status.code());
            }
            thread::sleep(LOOK);
        }
    }
}

/// A running `acpctl`.
struct Running {
    child: ChildGuard,
    stdout: BufReader<std::process::ChildStdout>,
    printed: String,
}

fn check(code: Option<i32>, wanted: i32, what: &str) -> Result {
    if code == Some(wanted) {
        return Ok(());
    }
    Err(format!("{what} ended with {code:?} and not with {wanted}").into())
}

fn check_gone(killed: &[acpd_sys::process::ProcessId]) -> Result {
    use acpd_sys::process::Liveness;
    let alive = killed.iter().find(|process| process.is_alive() == Liveness::Alive);
    alive.map_or(Ok(()), |process| Err(format!("{process:?} survived").into()))
}
