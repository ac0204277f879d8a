//! Where the directories are, by environment.
#![cfg(target_os = "linux")]

mod common;

use std::io::Write as _;

use acpd_sys::paths::Paths;
use acpd_sys::users::own_uid;

/// `RUNTIME STATE CONFIG`, or the error, as a process with only these variables sees them.
fn discover(variables: &[(&str, &str)]) -> String {
    let out = common::helper("discover")
        .env_clear()
        .env(common::PART, "discover")
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let (_, rest) = text.split_once("<<").expect(&text);
    rest.split_once(">>").expect(&text).0.to_owned()
}

#[test]
#[ignore = "a helper process of the others"]
fn helper() {
    if common::part().is_none() {
        return;
    }
    let text = match Paths::discover() {
        Ok(paths) => {
            let all = [paths.runtime, paths.state, paths.config];
            all.map(|path| path.display().to_string()).join(" ")
        }
        Err(error) => format!("{error}; {}", error.hint().unwrap()),
    };
    write!(std::io::stdout(), "<<{text}>>").unwrap();
}

#[test]
fn home_is_enough() {
    let runtime = format!("/tmp/acpd-{}", own_uid());
    assert_eq!(
        discover(&[("HOME", "/home/me")]),
        format!("{runtime} /home/me/.local/state/acpd /home/me/.config/acpd")
    );
}

#[test]
fn the_systems_variables_go_before_home_and_ours_before_them() {
    let system = [
        ("HOME", "/home/me"),
        ("XDG_RUNTIME_DIR", "/run/user/7"),
        ("XDG_STATE_HOME", "/xs"),
        ("XDG_CONFIG_HOME", "/xc"),
    ];
    assert_eq!(discover(&system), "/run/user/7/acpd /xs/acpd /xc/acpd");
    let ours = [("ACPD_RUNTIME_DIR", "/r"), ("ACPD_STATE_DIR", "/s"), ("ACPD_CONFIG_DIR", "")];
    assert_eq!(discover(&[&system[..], &ours].concat()), "/r /s /xc/acpd");
}

#[test]
fn relative_and_overlong_directories_are_refused_with_the_way_out() {
    let error = discover(&[("HOME", "/home/me"), ("ACPD_STATE_DIR", "here")]);
    assert!(error.contains("ACPD_STATE_DIR is `here`"), "{error}");
    let error = discover(&[("HOME", "home")]);
    assert!(error.contains("HOME is `home`"), "{error}");
    let long = "/".to_owned() + &"d".repeat(120);
    let error = discover(&[("HOME", "/home/me"), ("XDG_RUNTIME_DIR", &long)]);
    assert!(error.contains("the system allows 107"), "{error}");
    assert!(error.contains("; set ACPD_RUNTIME_DIR"), "{error}");
}

#[test]
fn our_variables_alone_need_no_home() {
    let ours = [
        ("ACPD_RUNTIME_DIR", "/r"),
        ("ACPD_STATE_DIR", "/s"),
        ("ACPD_CONFIG_DIR", "/c"),
        ("HOME", ""),
    ];
    assert_eq!(discover(&ours), "/r /s /c");
}
