//! Finds processes of an earlier run: none may be alive when the next one starts.

use std::fs;

const MARK: &str = "ACPD_AGENT_MARK";

/// Returns pid and command line of other processes with this agent's mark in their environment.
/// Empty without a mark or `/proc`. A zombie has no environment.
pub(crate) fn others() -> Vec<String> {
    let Ok(mark) = std::env::var(MARK) else { return Vec::new() };
    let wanted = format!("{MARK}={mark}");
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let marked = |pid: &u32| {
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environ.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
    };
    pids.filter(|pid| *pid != std::process::id()).filter(marked).map(describe).collect()
}

fn describe(pid: u32) -> String {
    let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    format!("{pid} {}", String::from_utf8_lossy(&line).replace('\0', " ").trim_end())
}
