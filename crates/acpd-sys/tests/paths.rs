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
fn the_systems_variables_go_before_home_and_ours_before_them() {
    let home = [("HOME", "/home/me")];
    let system =
        [("XDG_RUNTIME_DIR", "/run/user/7"), ("XDG_STATE_HOME", "/xs"), ("XDG_CONFIG_HOME", "/xc")];
    let ours = [("ACPD_RUNTIME_DIR", "/r"), ("ACPD_STATE_DIR", "/s"), ("ACPD_CONFIG_DIR", "/c")];
    let usual = format!("/tmp/acpd-{} /home/me/.local/state/acpd /home/me/.config/acpd", own_uid());
    for (variables, expected) in [
        (&[&home[..]][..], &*usual),
        (&[&home, &system], "/run/user/7/acpd /xs/acpd /xc/acpd"),
        (&[&home, &system, &ours], "/r /s /c"),
        (&[&home, &system, &ours[..2], &[("ACPD_CONFIG_DIR", "")]], "/r /s /xc/acpd"),
        (&[&ours, &[("HOME", "")]], "/r /s /c"),
    ] {
        assert_eq!(discover(&variables.concat()), expected, "{variables:?}");
    }
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
