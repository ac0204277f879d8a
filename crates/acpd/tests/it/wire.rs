//! An agent that lies: it speaks in acpd's name, and answers with what is no answer.

use std::path::{Path, PathBuf};

use acpd_test::harness::{TestEnv, until};
use serde_json::json;

use crate::{echo, home};

/// Commands as an agent's tool runs them.
struct Tool<'a> {
    env: &'a TestEnv,
    /// How `acpctl` is called with an environment of its own.
    acpctl: String,
}

/// How a tool hides where it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hides {
    /// Not at all but for its environment.
    Environment,
    /// In a session of its own, whose parent is gone.
    Orphan,
    /// And it says that it is a command of acpd's.
    Mark,
}

impl<'a> Tool<'a> {
    fn new(env: &'a TestEnv) -> Tool<'a> {
        let command = env.acpctl_command(&[]);
        let set = command
            .get_envs()
            .filter_map(|(name, value)| Some(format!("'{}={}'", name.display(), value?.display())));
        let set: Vec<String> = set.collect();
        let program = Path::new(command.get_program()).display();
        Tool { env, acpctl: format!("env -i MARK {} '{program}'", set.join(" ")) }
    }

    /// A file in which a tool calls `acpctl` so, and then writes the exit code and what was said.
    fn script(&self, args: &str, hides: Hides) -> (PathBuf, PathBuf) {
        let name = format!("tool-{}", args.replace(|c: char| !c.is_alphanumeric(), "-"));
        let (script, out) = (self.env.path(&name), self.env.path(&format!("{name}.out")));
        let mark = if hides == Hides::Mark { "ACPD_HOST=-" } else { "" };
        let call = format!("{} {args}", self.acpctl.replace("MARK", mark));
        let path = out.display();
        let call = format!("{call} > '{path}.new' 2>&1; echo \"exit $?\" >> '{path}.new'");
        let lines = match hides {
            Hides::Environment => format!("{call}\nmv '{path}.new' '{path}'\n"),
            Hides::Orphan | Hides::Mark => {
                let inner = self.env.path(&format!("{name}.sh"));
                // Not before it was given to the shim, or to the daemon.
                let orphan = "parent() { cut -d' ' -f4 < /proc/$$/stat; }\n\
                              until [ \"$(cat /proc/$(parent)/comm)\" = acpd ]; do :; done\n";
                let inner_lines = format!("{orphan}{call}\nmv '{path}.new' '{path}'\n");
                std::fs::write(&inner, inner_lines).expect("a file");
                let inner = inner.display();
                format!(
                    "(env -i PATH=\"$PATH\" {mark} setsid sh '{inner}' </dev/null >/dev/null 2>&1 &)\n"
                )
            }
        };
        std::fs::write(&script, lines).expect("a file");
        (script, out)
    }

    fn outcome(out: &Path) -> (i32, String) {
        let text = until("the tool's command to end", || std::fs::read_to_string(out).ok());
        std::fs::remove_file(out).expect("its output");
        let (said, code) = text.rsplit_once("exit ").expect("an exit code");
        (code.trim().parse().expect("a number"), said.to_owned())
    }

    /// Exit code and output of `acpctl` as a tool of the agent calls it.
    fn runs(&self, args: &str, hides: Hides) -> (i32, String) {
        let (script, out) = self.script(args, hides);
        let prompt = format!("[tool-run {}]", script.display());
        let run = self.env.acpctl(&["run", "-s", "tools", &prompt]).success();
        assert!(run.stdout().contains("tool: "), "{run:?}");
        Tool::outcome(&out)
    }
}

#[track_caller]
fn assert_refused((code, said): &(i32, String), what: &str) {
    assert!(
        *code == 5 && said.contains(&format!("a process that runs under an agent may not {what}")),
        "exit code {code}: {said}"
    );
}

fn assert_refused_however_it_hides(run: impl Fn(Hides) -> (i32, String)) {
    for hides in [Hides::Environment, Hides::Orphan, Hides::Mark] {
        assert_refused(&run(hides), "answer questions of agents");
    }
}

/// An open question in the session `asks`.
fn asks(env: &TestEnv) -> acpd_test::harness::Running {
    let run = env.spawn_acpctl(&["run", "-s", "asks", "[ask] say #one"]);
    env.wait_questions();
    run
}

#[test]
fn m1_m2_an_agents_tool_works_with_agents_and_decides_nothing() {
    let env = home([echo()]);
    let tool = Tool::new(&env);
    let run = asks(&env);
    let hides = Hides::Environment;
    for (args, what) in [
        ("run -s other --yes '[ask] say #one'", "answer questions of agents beforehand"),
        ("run -s other --deny '[ask] say #one'", "answer questions of agents beforehand"),
        ("allow", "answer questions of agents"),
        ("agent stop echo", "stop an agent"),
        ("daemon stop", "stop the daemon"),
    ] {
        assert_refused(&tool.runs(args, hides), what);
    }
    for args in ["ps", "session ls", "session log asks", "pending", "run -s other 'say #two'"] {
        let (code, said) = tool.runs(args, hides);
        assert_eq!(code, 0, "{args}: {said}");
    }
    assert_eq!(env.session("asks")["turn"]["state"], "needs_action");
    env.acpctl(&["deny", "asks"]).success();
    run.finish().success();
}

#[test]
fn l1_what_hides_its_environment_and_its_parents_is_still_under_its_agent() {
    let env = crate::home([echo()]);
    let tool = Tool::new(&env);
    let run = asks(&env);
    assert_refused_however_it_hides(|hides| tool.runs("allow", hides));
    // The shim is none of the next daemon's children.
    env.kill_daemon();
    env.acpctl(&["daemon", "start"]).success();
    assert_refused_however_it_hides(|hides| tool.runs("allow", hides));
    env.acpctl(&["deny", "asks"]).success();
    run.finish().success();
}

#[test]
fn l1_a_command_that_acpd_runs_for_an_agent_is_under_it() {
    let env = crate::home([echo().set("services", "[\"fs\", \"terminal\"]")]);
    let tool = Tool::new(&env);
    let run = asks(&env);
    assert_refused_however_it_hides(|hides| {
        let (script, out) = tool.script("allow", hides);
        let request = env.path("request.json");
        let command = json!({"command":"sh","args":[script]}).to_string();
        std::fs::write(&request, command).unwrap();
        let request = request.display();
        let prompt =
            format!("[terminal create {request}][terminal wait_for_exit][terminal output]");
        env.acpctl(&["run", "-s", "tools", &prompt]).success();
        Tool::outcome(&out)
    });
    env.acpctl(&["deny", "asks"]).success();
    run.finish().success();
}
