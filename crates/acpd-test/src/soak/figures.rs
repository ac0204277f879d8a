//! Memory and files of the daemon and its shims, and their growth.

use std::fs;
use std::path::Path;
use std::time::Duration;

use acpd_sys::process::rss_bytes;

use crate::home::{Home, Result};
use crate::process::{command_of, is_shim, pids};

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Figures([u64; KINDS.len()]);

/// Figures: their unit in the table, and the noise: a part of the figure, and a minimum.
const KINDS: [Kind; 10] = [
    Kind { name: "daemon fds", unit: 1, part: 0.2, least: 12 },
    Kind { name: "threads", unit: 1, part: 0.2, least: 4 },
    Kind { name: "RSS MB", unit: 1_000_000, part: 0.2, least: 12_000_000 },
    Kind { name: "shims", unit: 1, part: 0.0, least: 4 },
    Kind { name: "fds of one", unit: 1, part: 0.2, least: 4 },
    Kind { name: "RSS MB of one", unit: 1_000_000, part: 0.2, least: 4_000_000 },
    Kind { name: "processes", unit: 1, part: 0.2, least: 8 },
    Kind { name: "files MB", unit: 1_000_000, part: 0.25, least: 24_000_000 },
    Kind { name: "logs MB", unit: 1_000_000, part: 0.25, least: 4_000_000 },
    Kind { name: "zombies", unit: 1, part: 0.0, least: 0 },
];

struct Kind {
    name: &'static str,
    unit: u64,
    part: f64,
    least: u64,
}

impl Figures {
    pub(super) fn of(home: &Home) -> Result<Figures> {
        let daemon = home.daemon()?.pid;
        let processes = home.processes();
        let shims: Vec<u32> = processes
            .iter()
            .map(|process| process.pid)
            .filter(|pid| is_shim(&command_of(*pid)))
            .collect();
        let most = |of: &dyn Fn(u32) -> u64| shims.iter().map(|pid| of(*pid)).max().unwrap_or(0);
        Ok(Figures([
            entries(daemon, "fd"),
            entries(daemon, "task"),
            rss_bytes(daemon)?,
            shims.len() as u64,
            most(&|pid| entries(pid, "fd")),
            most(&|pid| rss_bytes(pid).unwrap_or(0)),
            processes.len() as u64,
            files(&home.path("state"), &home.path("state/log")),
            files(&home.path("state/log"), Path::new("")),
            zombies(daemon),
        ]))
    }

    pub(super) fn print(&self, at: Duration) {
        let minute = format!("{:.1}", at.as_secs_f64() / 60.0);
        row(&minute, |kind| shown(kind, self.0[kind]));
    }
}

fn entries(pid: u32, what: &str) -> u64 {
    fs::read_dir(format!("/proc/{pid}/{what}")).map_or(0, |entries| entries.count() as u64)
}

/// Bytes of all files in a folder except for another one. For the state without its logs that is
/// the database, the search index and the spools of shims.
fn files(folder: &Path, without: &Path) -> u64 {
    let mut folders = vec![folder.to_owned()];
    let mut sum = 0;
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.metadata() {
                Ok(found) if found.is_dir() && entry.path() != without => {
                    folders.push(entry.path());
                }
                Ok(found) => sum += found.len(),
                // The file disappeared meanwhile.
                Err(_) => {}
            }
        }
    }
    sum
}

/// Zombies of the daemon, in a check that lasts longer than it takes to reap one.
fn zombies(daemon: u32) -> u64 {
    let find = || pids().filter(|pid| is_zombie_of(*pid, daemon)).collect::<Vec<_>>();
    let mut left = find();
    for _ in 0..50 {
        if left.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
        let still = find();
        left.retain(|pid| still.contains(pid));
    }
    left.len() as u64
}

fn is_zombie_of(pid: u32, parent: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let mut words = stat.rsplit_once(") ").map_or("", |(_, rest)| rest).split(' ');
    words.next() == Some("Z") && words.next() == Some(&parent.to_string())
}

pub(super) fn print_names() {
    row("minute", |at| KINDS[at].name.to_owned());
}

fn row(name: &str, cell: impl Fn(usize) -> String) {
    let cells = KINDS.iter().enumerate().map(|(at, kind)| {
        let width = kind.name.len().max(5);
        format!("{:>width$}", cell(at))
    });
    println!("{name:>8}  {}", cells.collect::<Vec<_>>().join("  "));
}

#[derive(Debug, Default)]
pub(super) struct Series(Vec<Look>);

#[derive(Debug, Clone, Copy)]
struct Look {
    /// Set once the daemon was warm.
    counts: bool,
    figures: Figures,
}

impl Series {
    pub(super) fn add(&mut self, counts: bool, figures: Figures) {
        self.0.push(Look { counts, figures });
    }

    pub(super) fn print(&self) {
        let (measure, end) = self.compared();
        row("measure", |at| shown(at, measure[at]));
        row("end", |at| shown(at, end[at]));
    }

    /// The medians of each figure in the first and in the second half of the counted checks.
    fn compared(&self) -> ([u64; KINDS.len()], [u64; KINDS.len()]) {
        let counted: Vec<Figures> =
            self.0.iter().filter(|look| look.counts).map(|look| look.figures).collect();
        let (first, second) = counted.split_at(counted.len() / 2);
        let middle = |half: &[Figures]| {
            std::array::from_fn(|at| {
                let mut values: Vec<u64> = half.iter().map(|figures| figures.0[at]).collect();
                values.sort_unstable();
                values.get(values.len() / 2).copied().unwrap_or(0)
            })
        };
        (middle(first), middle(second))
    }

    /// Fails with the figures that have grown beyond noise.
    pub(super) fn check(&self) -> Result {
        let (measure, end) = self.compared();
        let grown = (0..KINDS.len()).filter(|at| {
            let Kind { part, least, .. } = KINDS[*at];
            let noise = ((measure[*at] as f64 * part) as u64).max(least);
            end[*at] > measure[*at] + noise
        });
        let grown: Vec<String> = grown
            .map(|at| {
                let (from, to) = (shown(at, measure[at]), shown(at, end[at]));
                format!("{} from {from} to {to}", KINDS[at].name)
            })
            .collect();
        if grown.is_empty() { Ok(()) } else { Err(format!("grown: {}", grown.join(", ")).into()) }
    }
}

fn shown(at: usize, value: u64) -> String {
    let unit = KINDS[at].unit;
    if unit == 1 { value.to_string() } else { format!("{:.1}", value as f64 / unit as f64) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A daemon with this RSS at each check.
    fn series(rss: impl Fn(u64) -> u64) -> Series {
        let mut series = Series::default();
        for n in 0..60 {
            let mut figures = Figures::default();
            figures.0[2] = rss(n) * 1_000_000;
            series.add(n >= 20, figures);
        }
        series
    }

    #[test]
    fn noise_is_no_growth_and_growth_is_no_noise() {
        series(|n| 30 + n * 7 % 5).check().unwrap();
        series(|n| 90_u64.saturating_sub(n * 3).max(30)).check().unwrap();
        let grown = series(|n| 30 + n).check().unwrap_err().to_string();
        assert_eq!(grown, "grown: RSS MB from 60.0 to 80.0");
    }

    #[test]
    fn a_zombie_is_seen() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let own = std::process::id();
        crate::home::wait_for("its end", Duration::from_secs(30), || is_zombie_of(child.id(), own))
            .unwrap();
        child.wait().unwrap();
        assert!(!is_zombie_of(child.id(), own));
    }
}
