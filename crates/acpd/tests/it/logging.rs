//! The daemon's own log: what is in it, and how long it gets.

use std::collections::BTreeSet;
use std::fs;

use acpd_test::harness::Config;
use serde_json::{Value, json};

use crate::{echo, home, home_with};

#[test]
fn what_the_running_daemon_logs_changes_until_it_starts_again_and_is_said_in_the_log() {
    let env = home([echo()]);
    env.acpctl(&["daemon", "log-level"]).code(3).explains(&["acpd is not running"]);
    env.acpctl(&["daemon", "start"]).success();
    assert_eq!(env.acpctl(&["daemon", "log-level"]).success().stdout(), "info\n");
    // An agent that says something odd is told at `debug`.
    let odd = |name: &str| {
        env.acpctl(&["run", "-s", name, "[noise] hello"]).success();
        env.daemon_log().matches("an agent did something odd").count()
    };
    assert_eq!(odd("one"), 0);
    let changed = env.acpctl(&["daemon", "log-level", "debug"]).success();
    changed.explains(&["acpd logs `debug` until it restarts", "the configured level is `info`"]);
    assert!(env.daemon_log().contains("the log level was changed level=\"debug\" before=\"info\""));
    assert!(odd("two") > 0, "{}", env.daemon_log());
    let told: Value =
        serde_json::from_str(env.acpctl(&["daemon", "log-level", "--json"]).success().stdout())
            .unwrap();
    assert_eq!(told, json!({"level": "debug", "configured": "info"}));
    // To less: that is said before it would be left out. And a filter.
    env.acpctl(&["daemon", "log-level", "error"]).success();
    assert!(env.daemon_log().contains("level=\"error\" before=\"debug\""));
    env.acpctl(&["daemon", "log-level", "warn,acpd=debug"]).success();
    assert!(env.daemon_log().contains("before=\"error\""), "{}", env.daemon_log());
    for (odd, hint) in [("debg", "did you mean `debug`?"), ("x,y=z", "the levels are")] {
        env.acpctl(&["daemon", "log-level", odd]).code(2).explains(&["is no level", hint]);
    }
    env.acpctl(&["daemon", "restart"]).success();
    assert_eq!(env.acpctl(&["daemon", "log-level"]).success().stdout(), "info\n");
}

#[test]
fn a_log_of_bounded_size_loses_no_line_when_it_is_moved_aside_and_daemons_follow_each_other() {
    let limit = 4 << 10;
    let env = home_with(&Config::new([echo()]).daemon("log_max_bytes", "\"4KiB\""));
    env.acpctl(&["daemon", "start"]).success();
    let path = env.path("state/log/acpd.log");
    let aside = path.with_extension("log.1");
    let mut seen = BTreeSet::new();
    let mut rotations = 0;
    let mut last = 0;
    for round in 0..80 {
        if round % 8 == 0 {
            env.acpctl(&["daemon", "restart"]).success();
        }
        env.acpctl(&["daemon", "log-level", &format!("info,acpd{round}=debug")]).success();
        let now = fs::read_to_string(&path).unwrap();
        rotations += usize::from(now.len() < last);
        last = now.len();
        for line in fs::read_to_string(&aside).unwrap_or_default().lines().chain(now.lines()) {
            assert!(line.starts_with("20"), "half a line: {line:?}");
            seen.extend(
                line.split_once("level=\"info,acpd")
                    .map(|(_, rest)| rest.split_once('=').unwrap().0.parse::<u32>().unwrap()),
            );
        }
        for file in [&path, &aside] {
            let size = file.metadata().map_or(0, |file| file.len());
            assert!(size <= limit, "{} has {size} bytes", file.display());
        }
    }
    assert!(rotations > 1, "it was moved aside {rotations} times");
    assert_eq!(seen, (0..80).collect(), "every line was there");
    let files = fs::read_dir(path.parent().unwrap()).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let own: BTreeSet<String> = names.filter(|name| name.starts_with("acpd.log")).collect();
    assert_eq!(own, ["acpd.log", "acpd.log.1"].map(str::to_owned).into());
    // The last words of a panic are not lost with a file that is gone.
    #[cfg(target_os = "linux")]
    {
        let stderr = fs::read_link(format!("/proc/{}/fd/2", env.daemon_pid())).unwrap();
        assert_eq!(stderr, path.canonicalize().unwrap());
    }
    // A reader of the end does not see where the file was moved aside.
    let both = fs::read_to_string(&aside).unwrap() + &fs::read_to_string(&path).unwrap();
    let all: Vec<&str> = both.lines().collect();
    let wanted = fs::read_to_string(&path).unwrap().lines().count() + 3;
    let shown = env.acpctl(&["daemon", "logs", "-n", &wanted.to_string()]).success();
    let shown: Vec<&str> = shown.stdout().lines().collect();
    assert_eq!(shown, all[all.len() - wanted..]);
}
