//! Limits, and what a detached child starts with. One test: both change this process.
#![cfg(target_os = "linux")]

use std::os::unix::process::CommandExt as _;
use std::process::Command;

use acpd_sys::limits::{no_core_dumps, private_files, raise_nofile_limit};
use acpd_sys::process::detach_child;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SigHandler, SigSet, Signal, signal};
use nix::sys::stat::{Mode, umask};

fn output(command: &mut Command) -> String {
    let out = command.output().unwrap();
    assert!(out.status.success(), "{out:?}");
    String::from_utf8(out.stdout).unwrap()
}

#[test]
fn a_detached_child_has_the_limits_and_signals_that_any_program_expects() {
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    let soft = 200.min(hard);
    setrlimit(Resource::RLIMIT_NOFILE, soft, hard).unwrap();
    raise_nofile_limit().unwrap();
    assert_eq!(getrlimit(Resource::RLIMIT_NOFILE).unwrap(), (hard, hard));
    let (_, hard) = getrlimit(Resource::RLIMIT_CORE).unwrap();
    let core = 512.min(hard);
    setrlimit(Resource::RLIMIT_CORE, core, hard).unwrap();
    no_core_dumps().unwrap();
    assert_eq!(getrlimit(Resource::RLIMIT_CORE).unwrap(), (0, hard));
    umask(Mode::from_bits_truncate(0o027));
    private_files();
    private_files();

    // SAFETY: no handler of ours is set.
    unsafe { signal(Signal::SIGUSR1, SigHandler::SigIgn).unwrap() };
    SigSet::from(Signal::SIGUSR2).thread_block().unwrap();

    let mut sh = Command::new("sh");
    sh.args([
        "-c",
        "ulimit -n; ulimit -c; umask; cat /proc/self/status; cut -d' ' -f1,6 /proc/$$/stat",
    ]);
    detach_child(sh.arg0("sh"));
    let text = output(&mut sh);
    let mut lines = text.lines();
    assert_eq!(lines.next().unwrap(), soft.to_string());
    // In blocks of 512 bytes.
    assert_eq!(lines.next().unwrap(), (core / 512).to_string());
    assert_eq!(lines.next().unwrap(), "0027");
    for field in ["SigBlk:", "SigIgn:"] {
        let line = text.lines().find(|line| line.starts_with(field)).unwrap();
        let mask = line.rsplit('\t').next().unwrap();
        let mask = u64::from_str_radix(mask, 16).unwrap();
        // The C library keeps the numbers above 31 for itself or for the program.
        assert_eq!(mask & 0x7fff_ffff, 0, "{line}");
    }
    let (pid, session) = text.lines().last().unwrap().split_once(' ').unwrap();
    assert_eq!(pid, session);
}
