//! Worktrees of git for sessions that a page begins.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use acpd_test::harness::TestEnv;
use serde_json::{Value, json};

use super::{Answer, Web, token};
use crate::{echo, home};

fn git(dir: &Path, args: &[&str]) -> String {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=a", "-c", "user.email=a@b"]).arg("-C").arg(dir).args(args);
    // As if the person had set nothing.
    git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    let done = git.output().unwrap();
    assert!(done.status.success(), "{done:?}");
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

/// A repository with a commit in which there is the directory `sub`.
fn repository(env: &TestEnv) -> PathBuf {
    let top = env.work("main").canonicalize().unwrap();
    fs::create_dir(top.join("sub")).unwrap();
    fs::write(top.join("sub/file"), "").unwrap();
    git(&top, &["init", "-q", "-b", "main"]);
    git(&top, &["add", "."]);
    git(&top, &["commit", "-q", "-m", "first"]);
    top
}

fn ask(web: &Web, token: &str, method: &str, body: &Value) -> Answer {
    let request = web.bare(&format!("{method} /worktree")).header("host", &web.host);
    request.header("authorization", &format!("Bearer {token}")).json(body).send()
}

#[test]
fn one_is_made_where_the_session_is_to_work_and_taken_back_if_it_is_empty() {
    let env = home([echo()]);
    let top = repository(&env);
    let web = Web::start(&env);
    let mine = token(&env, "mine", "watch,prompt");
    let place = |name: &str| top.with_file_name("main.worktrees").join(name);
    let named = ask(&web, &mine, "POST", &json!({"cwd": top.join("sub"), "name": "fix"}));
    assert_eq!(named.status, 200, "{named:?}");
    let expected =
        json!({"cwd": place("fix").join("sub"), "path": place("fix"), "branch": "acpd/fix"});
    assert_eq!(named.json(), expected);
    let numbered = ask(&web, &mine, "POST", &json!({"cwd": top}));
    assert_eq!(numbered.json()["path"], json!(place("1")));

    let watcher = token(&env, "watcher", "watch");
    assert_eq!(ask(&web, &watcher, "POST", &json!({"cwd": top})).status, 403);
    assert_eq!(ask(&web, &mine, "POST", &json!({"cwd": "main"})).status, 400);
    let told = ask(&web, &mine, "POST", &json!({"cwd": env.path("state")}));
    assert!(told.status == 409 && told.json()["hint"].is_string(), "{told:?}");

    // Only by who had it made, and only while nothing is in it.
    let path = |name: &str| json!({ "path": place(name) });
    let other = token(&env, "other", "watch,prompt");
    assert_eq!(ask(&web, &other, "DELETE", &path("fix")).status, 409);
    assert_eq!(ask(&web, &mine, "DELETE", &json!({ "path": top })).status, 409);
    fs::write(place("fix").join("work"), "").unwrap();
    assert_eq!(ask(&web, &mine, "DELETE", &path("fix")).status, 409);
    git(&place("fix"), &["add", "."]);
    git(&place("fix"), &["commit", "-q", "-m", "work"]);
    assert_eq!(ask(&web, &mine, "DELETE", &path("fix")).status, 409);
    assert!(place("fix").join("work").exists());
    assert_eq!(ask(&web, &mine, "DELETE", &path("1")).status, 204);
    assert!(!place("1").exists());
    assert_eq!(ask(&web, &mine, "DELETE", &path("1")).status, 409, "it was made once");
    assert_eq!(git(&top, &["branch", "--list", "--format=%(refname:short)", "acpd/*"]), "acpd/fix");
}
