//! Output of `acpctl` in scripts, word for word: lines of a shell without a terminal, and what they print.

use acpd_test::harness::{Agent, Config, Running};

use crate::transcripts::{FILTERS, add, assert_transcript};
use crate::{echo, home_with};

/// A line has the exit code of its last command only: those of the others are on stderr.
const SHOWS_CODES: &str = r#"acpctl() { command acpctl "$@"; c=$?; [ $c = 0 ] || echo "[exit $c]" >&2; return $c; }
"#;

/// Parts that differ from run to run.
const DIFFERENT: [(&str, &str); 7] = [
    (r"user/\d+", "user/[id]"),
    (r#""(at|since|startedAt|created|updated|lastLine|seq|pid)": ?\d+"#, r#""$1": [number]"#),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?", "[date]"),
    (r"demo-[0-9a-f]{16,}", "[id]"),
    (r"(?m)(^|stderr: |deny` )1-\d+\b", "$1[question]"),
    (r"\b(used|changed) (\d+ ?(ms|s|m|min|h)( ago)?|now|just now)\b", "$1 [time]"),
    (r"\b\d+(\.\d+)? [KM]B\b", "[size]"),
];

/// Prompts, sessions and what is exported of them.
const SESSIONS: [&str; 68] = [
    "acpctl run -s old 'say #one' >/dev/null 2>&1; acpctl session rename old better; acpctl run -s better 'say #two' 2>/dev/null; acpctl session show old",
    "acpctl session close better; acpctl session show better | grep '^state'; acpctl run -s better 'say #three' 2>/dev/null",
    "acpctl session rm --yes --now better; acpctl session log better; acpctl run -s better 'say #four'; grep -c session/close ../../agents/echo.record; grep -c session/delete ../../agents/echo.record",
    "acpctl run -s fix '[think a secret] read [tool Edit the parser] it'",
    "acpctl run --json -s fix '[chunks 2] [tool Edit again] [cost 0.25] #two' 2>/dev/null",
    "acpctl run --json -s fix '[error -32603 no model]' 2>/dev/null",
    "acpctl run -s fix '[stop refusal]' && echo done",
    "acpctl run -s fix '[stop cancelled]'",
    "acpctl run -s fix '[stop max_tokens]'",
    "mkdir ../here ../there && acpctl run --cwd ../here -s fix 'here?'",
    "acpctl run --cwd ../there -s fix 'and there?'",
    "acpctl run -c more",
    "acpctl run --continue -a other more",
    "acpctl run -c -s fix more",
    "acpctl run -d -s bg hello; acpctl wait bg",
    r"printf 'hello\n' | acpctl run",
    r"printf 'a\000b' | acpctl run",
    r"printf '%b\n' '-caf\351' '+caf\303\251' | acpctl run",
    r"printf 'first\n\n' >first.md; printf 'from stdin\n' | acpctl run --prompt-file first.md --prompt-file - now go",
    r"printf '\211PNG' >dot.png; printf 'a diff\n' | acpctl run -s blocks --file first.md --image dot.png review - 2>/dev/null; acpctl session export blocks --format json | grep 'type.:.user' | tr '{},[]' '\n' | sort -u",
    r"printf 'one\nhello' | acpctl chat --plain --new -a echo 2>/dev/null | grep -v waiting",
    "printf '[error -32603 no model]' | acpctl chat --plain --new -a echo",
    "acpctl run -s set --model 'demo large' --mode code --set verbose=on go",
    "acpctl session log -n 1 --answer",
    "acpctl run -s none --mode nope go; acpctl run -s none --set x=y go; acpctl session show none",
    "acpctl session set set",
    "acpctl session set set MODEL",
    "acpctl session set set verbose",
    "acpctl session set set model 'demo small'",
    "acpctl session set set verbose off --json | tr -d , | sort",
    "acpctl session mode set",
    "acpctl session mode set ask",
    "acpctl session commands set",
    "acpctl session commands set --json | tr -d , | sort | head -n 9",
    "acpctl run -s story --file first.md '[think hm] [plan] see [tool Edit a.rs]' 2>/dev/null",
    "acpctl run -s story '[tool Edit b.rs] [chunks 2] [crash]'",
    "acpctl run -s story 'and now?' 2>/dev/null",
    "acpctl session export story",
    r#"acpctl session export story --format json | grep -o '"\(type\|title\|outcome\|level\)":"[^"]*"' | sort | uniq -c"#,
    "acpctl session handoff story --to other -s taken 'go on'",
    "acpctl session handoff story --to other -s taken 'go on'",
    r#"for word in one two three; do acpctl run -s long "[big 30000] $word" >/dev/null; done 2>&1"#,
    "acpctl session handoff long --to other go on",
    "grep session/prompt ../../agents/other.record | tail -n 1 | grep -o 'big 30000. [a-z]*'",
    "acpctl session handoff long --to other --all go on",
    "acpctl run -s short '[big 80000]' >/dev/null && acpctl session handoff short --to other go on",
    "acpctl run -s gone --cwd ../here stay && rm -r ../here && acpctl agent restart echo",
    "acpctl session show gone | head -n 2; cd ../there && rmdir ../there && acpctl session show gone | head -n 2",
    "acpctl run -r gone more",
    "acpctl wait gone",
    "acpctl session handoff gone --to other 'go on'",
    "mkdir ../new && acpctl session move gone --cwd ../new; acpctl run -r gone '#more'",
    "acpctl run -d -s asks '[ask]'; until command acpctl pending asks; do sleep 0.02; done 2>/dev/null",
    "acpctl session log asks",
    "acpctl pending as",
    "acpctl allow as",
    "acpctl allow asks; acpctl wait asks; acpctl session log asks | tail -n 2",
    "acpctl run -s asked '[ask]' >out 2>&1 & until command acpctl pending asked; do sleep 0.02; done >/dev/null 2>&1; acpctl allow asked; wait; cat out; acpctl pending; acpctl allow",
    "acpctl run -d -s busy '[hang-cancel]'; acpctl session rm --yes busy",
    "acpctl wait busy --timeout 100ms",
    "acpctl session rm --yes --force busy",
    "acpctl help run >/dev/full",
    "acpctl ps --watch",
    "acpctl attach fix --control",
    "acpctl session rm fix --older-than 1d",
    "acpctl session rm --older-than 30",
    "acpctl session rm --glob [",
    "acpctl wait fix --timeout 10",
];

/// Sessions in worktrees of git.
const WORKTREES: [&str; 30] = [
    r"printf 'first\n' >first.md; acpctl run --worktree=tree look",
    "git init -q -b main . && acpctl run --worktree=tree look",
    "git config user.name a && git config user.email a@b && git add . && git commit -q -m one && echo 1 >>first.md",
    "acpctl run --worktree=tree look",
    "acpctl run --worktree=tree look",
    "git branch acpd/other && acpctl run --worktree=other look",
    "acpctl run --worktree='a b' look",
    "acpctl run --worktree=../x look",
    "acpctl run --worktree=a/b look",
    "acpctl run --worktree=.. look",
    "acpctl run --worktree= look",
    "PATH=${PATH%%:*} acpctl run --worktree=other look",
    "acpctl run --worktree=nobody -a nope look; ls ../main.worktrees; git branch --list 'acpd/n*'",
    "cd ../main.worktrees/tree && echo 2 >new && git add . && git commit -q -m two && echo 3 >more",
    "acpctl session worktree",
    "acpctl session worktree tree",
    "acpctl session worktree tree --merge",
    "rm ../main.worktrees/tree/more; acpctl session worktree tree --remove",
    "acpctl run -d -s tree '[hang-cancel]' --cwd ../main.worktrees/tree; acpctl session worktree tree --merge; acpctl cancel tree",
    "git checkout -q first.md && acpctl session worktree tree --merge --json",
    "cat new; acpctl session worktree tree --remove; ls ../main.worktrees; git branch --list 'acpd/t*'",
    "acpctl run --worktree=kept look && acpctl session rm --yes kept",
    r"printf '#!/bin/sh\necho no husky >&2; exit 1\n' >.git/hooks/post-checkout && chmod +x .git/hooks/post-checkout",
    "acpctl run --worktree=hook look; rm .git/hooks/post-checkout; git -C ../main.worktrees/hook status --porcelain",
    "cd ../main.worktrees/hook && echo theirs >first.md && git commit -q -a -m theirs; cd - >/dev/null && echo ours >first.md && git commit -q -a -m ours",
    "git switch -q -c mine HEAD~1 && git commit -q --allow-empty -m mine && git switch -q main && git merge -q --no-commit --no-ff mine 2>/dev/null; acpctl session worktree hook --merge",
    "ls .git/MERGE_HEAD; git merge --abort; acpctl session worktree hook --merge --remove; git status --porcelain; ls ../main.worktrees",
    "acpctl session worktree hook --remove --force; ls ../main.worktrees",
    "echo 'first.md filter=f' >.gitattributes && git add . && git commit -q -m filter && git config filter.f.smudge false && git config filter.f.required true",
    "acpctl run --worktree=half look; ls ../main.worktrees; git branch --list 'acpd/h*'; git config --get-regexp 'acpd/h'",
];

/// A configuration that changes under the daemon: shown, edited, checked, reloaded.
const CONFIGURATION: [&str; 21] = [
    r#"acpctl config path && acpctl config show --file | cmp - "$(acpctl config path)""#,
    "acpctl run -a other -s fix 'say #one' && acpctl daemon reload",
    r"acpctl config show daemon.max_clients; acpctl config show | grep '^default_agent\|^max_clients\|^# agent'",
    "acpctl config show deamon",
    "cd $ACPD_CONFIG_DIR && cp config.toml whole && acpctl config show | sed 's/ *#.*//' >shown && cp shown config.toml && acpctl config show | sed 's/ *#.*//' | cmp - shown && mv whole config.toml",
    r#"printf '%s\n' '[budget]' "per_day = '3 USD'" >more; EDITOR="sh -c 'cat more >>\"\$1\"' edit" acpctl config edit"#,
    "acpctl ps | grep -c 'changed now and is not reloaded'; acpctl daemon status | grep -o '`acpctl daemon reload`'; acpctl run -a nope hello",
    "acpctl daemon reload; acpctl ps | grep -c changed",
    r"printf '%s\n' 'per_dya = 1' '[daemno]' 'x = 1' >>$ACPD_CONFIG_DIR/config.toml; acpctl config check",
    "acpctl config check --json",
    "acpctl daemon reload; acpctl config show",
    r"kill -HUP $(acpctl daemon status | sed -n 's/.* pid \([0-9]*\) .*/\1/p'); until grep -q 'keeps the old' $ACPD_STATE_DIR/log/acpd.log; do sleep 0.02; done; sed -n 's/.* WARN //p' $ACPD_STATE_DIR/log/acpd.log | tail -n 1",
    "cd $ACPD_CONFIG_DIR && head -n -3 config.toml >whole && sed '/agents.other/,/^$/d' whole >config.toml && acpctl daemon reload",
    "acpctl run --resume fix 'say #two'",
    "acpctl agent show other; acpctl agent start other; acpctl run -a other 'say #two'",
    "acpctl agent ls | grep -o 'not configured any more'; acpctl session log fix --answer",
    "acpctl session handoff fix --to echo -N 'say #two' >/dev/null",
    "cd $ACPD_CONFIG_DIR && mv whole config.toml && acpctl daemon reload && acpctl run --resume fix 'say #two'",
    r#"acpctl run -s turn '[pause here] #two' >out 2>&1 & until [ -e ../../points/here.hit ]; do sleep 0.02; done; sed -i 's/^\[agents.echo\]/&\ninherit_env = ["NEW"]/' $ACPD_CONFIG_DIR/config.toml; acpctl daemon reload; touch ../../points/here.go; wait; cat out"#,
    "rm $ACPD_CONFIG_DIR/*; for show in 'show budget' 'show --file' check; do acpctl config $show; done; EDITOR=true acpctl config edit; ls $ACPD_CONFIG_DIR",
    r#"EDITOR="sh -c 'cat more >>\"\$1\"' edit" acpctl config edit; cat $ACPD_CONFIG_DIR/config.toml; acpctl config schema | cmp - $ACPD_CONFIG_DIR/config.schema.json"#,
];

/// Loops, stdin and completion in a shell; `offer` prints what a shell would offer.
const SHELLS: [&str; 12] = [
    r#"printf '#!/bin/sh\n{ ACPCTL_COMPLETE=fish timeout 3 acpctl -- acpctl "$@"; [ $? = 124 ] && echo late; } | cut -f 1 | grep -v ^--\n' >offer; chmod +x offer; ./offer attach ''; ./offer daemon log-level de; ls $ACPD_RUNTIME_DIR"#,
    r#"acpctl daemon start 2>/dev/null; printf 'task 1\ntask 2\ntask 3\n' | while read -r line; do acpctl run -N "$line"; done 2>/dev/null"#,
    r"printf 'task 1\ntask 2\ntask 3\n' | xargs -I {} acpctl run '{}' 2>/dev/null",
    r#"printf 'task 1\ntask 2\ntask 3\n' | while read -r line; do id=$(acpctl run -Nd "$line"); acpctl wait "$id"; done"#,
    "acpctl run -N; acpctl run -N -",
    "mkfifo in; exec 3<>in; command acpctl run <in >out 2>err 3<&- & until grep -qs stdin err; do sleep 0.02; done; echo hello >&3; exec 3>&-; wait; cat err out",
    r#"for name in fix-login fix-logout 'fix it all'; do acpctl run -s "$name" hello; done >/dev/null 2>&1"#,
    "./offer attach fix; ./offer session rm fix-logo; ./offer run --session fix-logo; ./offer trace fix-logo; ./offer attach '' | grep -c demo-",
    "./offer run --agent oth; ./offer agent show oth; ./offer trace --agent oth",
    "./offer session mode fix-login ''; ./offer session set fix-login ''; ./offer session set fix-login model ''; ./offer run --model ''",
    "acpctl run -d -s ask '[ask]' 2>/dev/null; until command acpctl pending ask; do sleep 0.02; done >/dev/null 2>&1; ./offer allow ''; ./offer allow ask --option ''; acpctl deny ask",
    r"pid=$(acpctl daemon status | sed -n 's/.* pid \([0-9]*\) .*/\1/p'); kill -STOP $pid; ./offer attach ''; kill -CONT $pid; ./offer attach fix-logi",
];

/// Files that are no backup, and restores that are refused: the daemon stays.
const BACKUPS: [&str; 9] = [
    "acpctl run -s fix 'say #one' >/dev/null && acpctl backup good",
    "echo 'my novel' >novel; acpctl restore novel --yes; acpctl backup novel; cat novel",
    "acpctl backup $ACPD_STATE_DIR/acpd.db; acpctl restore good",
    "mkfifo pipe; acpctl restore pipe --yes",
    r"{ head -c 60 good; printf '\000\000\000\143'; tail -c +65 good; } >newer; acpctl restore newer --yes",
    r"size=$(stat -c %s good); { head -c $((size / 8192 * 4096)) good; head -c $((size - size / 8192 * 4096)) /dev/zero | tr '\0' Z; } >damaged; acpctl restore damaged --yes",
    "cp $ACPD_CONFIG_DIR/config.toml good.toml; echo '[daemno]' >$ACPD_CONFIG_DIR/config.toml; acpctl restore good --yes; mv good.toml $ACPD_CONFIG_DIR/config.toml",
    "acpctl run -s fix '#two [pause middle] done' >out 2>&1 & until [ -e ../../points/middle.hit ]; do sleep 0.02; done; acpctl restore good --yes; touch ../../points/middle.go; wait",
    "ls $ACPD_STATE_DIR | grep restore; acpctl session log fix --answer; acpctl daemon logs | grep -c 'acpd is ready'",
];

/// The log level, messages into a turn, metrics, limits of what is kept.
const VERBS: [&str; 14] = [
    "acpctl daemon log-level; acpctl --no-spawn metrics",
    "acpctl daemon start 2>/dev/null; acpctl daemon log-level",
    "acpctl run -s one '[noise] hello' 2>/dev/null; grep -c 'something odd' $ACPD_STATE_DIR/log/acpd.log",
    "acpctl daemon log-level debug; acpctl run -s two '[noise] hello' >/dev/null; grep -q 'something odd' $ACPD_STATE_DIR/log/acpd.log; acpctl daemon log-level --json",
    "acpctl daemon log-level error; acpctl daemon log-level warn,acpd=debug; sed -n 's/.*the log level/the log level/p' $ACPD_STATE_DIR/log/acpd.log",
    "acpctl daemon log-level debg; acpctl daemon log-level x,y=z; acpctl daemon restart 2>/dev/null; acpctl daemon log-level",
    "acpctl run -s fix '#one [pause middle]' >out 2>err & until [ -e ../../points/middle.hit ]; do sleep 0.02; done; acpctl run --steer fix take '#two'; acpctl run -s fix --steer 'and #three'; touch ../../points/middle.go; wait; grep -h . out err | sort",
    "acpctl session log fix | grep . | sort; acpctl session search take | head -n 1 | cut -d ' ' -f 1; acpctl run --steer fix late; acpctl session show fix | grep '^prompts'",
    "acpctl run -s asks --yes '[ask]'; acpctl run -d -s asks '[ask]' 2>/dev/null; until command acpctl pending asks; do sleep 0.02; done >/dev/null 2>&1; acpctl run -d -s asks later 2>/dev/null",
    r"acpctl metrics | grep '^acpd_questions_open\|^acpd_turns_running\|^acpd_prompts_queued'; acpctl deny asks; acpctl wait asks",
    r"acpctl run -s asks '[crash]' 2>/dev/null; acpctl run -s asks more >/dev/null 2>&1; acpctl metrics | grep '^acpd_agent_up\|^acpd_agent_restarts\|^acpd_turns_ended.* [1-9]\|duration_seconds_count\|wait_seconds_count\|start_seconds_count'",
    r"printf '[retention]\nmax_sessions = 1\n' >>$ACPD_CONFIG_DIR/config.toml && acpctl daemon reload && acpctl gc --dry-run | cut -c 1-8",
    "acpctl gc; acpctl gc --yes; acpctl gc --yes; acpctl session undo fix; acpctl session ls | cut -c 1-8",
    "acpctl gc --yes --now --json | grep name; acpctl session ls | cut -c 1-8",
];

/// A service of the user, with a `systemctl` that notes what it is asked.
const SERVICE: [&str; 11] = [
    r#"printf '#!/bin/sh\necho "$*" >>%s/calls\n. %s/answer\n' $PWD $PWD >systemctl; printf '#!/bin/sh\necho "journal $*"\n' >journalctl; chmod +x systemctl journalctl; echo "echo 'Failed to connect to bus: No medium found' >&2; exit 1" >answer; echo "PATH=$PWD:\$PATH; unset ACPD_STATE_DIR ACPD_CONFIG_DIR" >as"#,
    ". ./as; acpctl service install; acpctl service status 2>&1 | grep -v linger; acpctl service logs -f; ls $HOME",
    r#"echo exit 0 >answer; printf '#!/bin/sh\nprintf "error: no room\\n\\nhint: make some\\n" >&2; exit 1\n' >acpd; chmod +x acpd; . ./as; ACPD_EXE=$PWD/acpd acpctl service install; ls $HOME"#,
    r#". ./as; rm calls acpd; echo "case \$2 in show) printf 'Id=acpd.service\nUnitFileState=enabled\nMainPID=0\n\nId=acpd.socket\nActiveState=active\n';; esac" >answer; acpctl service install 2>&1 | grep -v linger; tail -n 4 calls; ls $HOME/.config/systemd/user"#,
    ". ./as; acpctl service install 2>&1 | grep -v linger; tail -n 1 calls | cut -c 1-11; acpctl service status --json | grep -v linger",
    ". ./as; echo '[Service]' >$HOME/.config/systemd/user/acpd.service; acpctl service install 2>&1 | grep -v linger; acpctl service status | grep -v linger",
    ". ./as; acpctl service uninstall; tail -n 3 calls; ls $HOME/.config",
    r#"mkdir -p $ACPD_STATE_DIR/log; echo 'the file' >$ACPD_STATE_DIR/log/acpd.log; . ./as; export ACPD_STATE_DIR=$HOME/../state; acpctl daemon logs -n 7; echo "printf 'MainPID=812\nId=acpd.service\nActiveState=active\nUnitFileState=enabled\n'" >answer; mkdir -p $HOME/.config/systemd/user; touch $HOME/.config/systemd/user/acpd.service; acpctl daemon logs -n 7"#,
    ". ./as; state=$HOME/.local/state/acpd; mkdir -p $state/log $state/web $HOME/.config/acpd $HOME/.config/systemd/user/acpd.service.d; for file in acpd.db acpd-before-restore-1.db log/acpd.log web/tokens; do printf x >$state/$file; done; touch $HOME/.config/acpd/config.toml $HOME/.config/systemd/user/acpd.service.d/override.conf; echo 'source <(acpctl completions bash)' >$HOME/.bashrc",
    ". ./as; acpctl service uninstall --purge; acpctl service uninstall --purge --dry-run | grep -v '/run '",
    ". ./as; acpctl service uninstall --purge --yes --no-spawn 2>&1 | grep -v '/run '; find $HOME -type f; ls -d $ACPD_RUNTIME_DIR 2>/dev/null; mkdir -m 700 $ACPD_RUNTIME_DIR",
];

/// Problems, and what mends them.
const DOCTOR: [&str; 7] = [
    "acpctl doctor | cut -c 1-22; ls $ACPD_RUNTIME_DIR",
    "SSH_AUTH_SOCK=$PWD/agent.1 acpctl daemon start 2>/dev/null; acpctl run hello >/dev/null 2>&1; acpctl doctor | grep SSH_AUTH_SOCK; acpctl doctor | cut -c 1-22",
    "for name in 1.db 2.db 2.db-wal; do head -c 4096 /dev/zero >$ACPD_STATE_DIR/acpd-before-restore-$name; done; acpctl doctor | grep -A 1 aside",
    r#"sh -c "$(acpctl doctor | sed -n 's/.*: \(rm .*\)/\1/p')"; ls $ACPD_STATE_DIR | grep restore; acpctl doctor | grep -c aside"#,
    r#"printf '[agents.gone]\ncommand = ["no-such-program"]\n[agents.noexec]\ncommand = ["/etc/passwd"]\n' >>$ACPD_CONFIG_DIR/config.toml; acpctl doctor | grep -A 1 'warning.*conf'"#,
    "acpctl doctor --fix >/dev/null; acpctl doctor | grep -A 1 'problem.*agents'",
    r"printf '#!/bin/sh\n' >no-such-program; chmod +x no-such-program; PATH=$PWD:$PATH acpctl doctor | grep -o 'this terminal finds.*'",
];

/// The agent of commands that name none, where the configuration names none.
const UNCONFIGURED: [&str; 3] = [
    r#"rm $ACPD_CONFIG_DIR/config.toml; mkdir installed; echo "PATH=$PWD/installed:\$PATH" >as; printf '#!/bin/sh\nexec "%s" scripted-agent\n' "$ACPD_EXE" >agent; chmod +x agent; . ./as; acpctl run 'say #one'"#,
    ". ./as; acpctl daemon status | grep '^default'; cp agent installed/copilot; cp agent installed/goose; acpctl run 'say #two'; acpctl daemon status | grep '^default'",
    ". ./as; cp agent installed/claude-agent-acp; acpctl run 'say #three'; acpctl session ls | tr -s ' ' | cut -d ' ' -f 2 | sort; acpctl config show default_agent",
];

/// Conversations that the agents have lost: `echo` forgets them, `broken` cannot load them.
const LOSSES: [&str; 6] = [
    "acpctl run -s fix 'say #one'; acpctl agent restart echo 2>/dev/null; acpctl run -s fix 'say #two'",
    "acpctl session show fix | grep '^restore'; acpctl session log fix | grep 'could not'; acpctl run -s fix 'say #three'",
    "acpctl run -a broken -s bad 'say #one' 2>/dev/null; acpctl agent restart broken 2>/dev/null; acpctl run -s bad -a broken 'say #two'",
    "acpctl session show bad | grep -o 'acpctl session reseed bad'; acpctl ps | grep -o 'acpctl session reseed bad'",
    "acpctl session reseed bad; acpctl run -s bad -a broken 'say #three'; acpctl run -s bad -a broken 'say #four' 2>/dev/null",
    "acpctl session log bad; acpctl session show bad | grep '^restore'",
];

/// Packages are installed after a yes, from the repository that acpd knows.
const DOWNLOADS: [&str; 5] = [
    r#"for name in npx npm; do printf '#!/bin/sh\n[ "$1" = view ] && { cat %s/address; exit; }\necho "$0 $*" >>%s/calls\n' $PWD $PWD >$name; chmod +x $name; done; echo "PATH=$PWD:\$PATH" >as; echo git+https://github.com/agentclientprotocol/claude-agent-acp.git >address"#,
    ". ./as; acpctl run -a claude hello; acpctl agent install claude; cat calls",
    ". ./as; echo git+https://github.com/eve/claude-agent-acp.git >address; acpctl agent install claude --yes; : >address; acpctl agent install claude --yes; cat calls",
    ". ./as; rm address; acpctl agent install claude --yes; cat calls",
    r". ./as; echo git+https://github.com/agentclientprotocol/claude-agent-acp.git >address; acpctl agent install claude --yes; sed 's/.*\///' calls",
];

/// A yes for always, which holds over a restart until it is forgotten, and a rule.
const PERMISSIONS: [&str; 7] = [
    "acpctl run -s one go >out 2>&1 & until command acpctl pending one; do sleep 0.02; done >/dev/null 2>&1; acpctl allow --always; wait; cat out",
    "acpctl daemon restart 2>/dev/null; acpctl run -s two go; acpctl policy ls | grep -o 'run .*'",
    "mkdir ../other; acpctl run -d --cwd ../other -s three go >/dev/null 2>&1; until command acpctl pending three; do sleep 0.02; done >/dev/null 2>&1; acpctl deny; acpctl wait three",
    "acpctl policy forget 1; acpctl policy forget 1",
    "acpctl run -d -s two go >/dev/null; until command acpctl pending two; do sleep 0.02; done >/dev/null 2>&1; acpctl deny two; acpctl wait two; acpctl session log two --last",
    r#"printf '\n[[policy.rules]]\nname = "tests"\ndecision = "allow"\ncommand = "make test"\n' >>$ACPD_CONFIG_DIR/config.toml; acpctl daemon reload; acpctl policy test --command 'make test'; acpctl policy test --command 'make install'"#,
    "acpctl run -d -s rule go >/dev/null 2>&1; acpctl wait rule; acpctl session log rule",
];

/// Logins by a call and by a command.
const LOGINS: [&str; 7] = [
    "acpctl run 'say #one'",
    "acpctl auth login echo --method x; acpctl auth login echo",
    r"acpctl run 'say #one'; acpctl auth status echo | grep -o 'logged in\|needs login'",
    "acpctl auth logout echo; acpctl auth logout echo --yes",
    r"acpctl run 'say #two'; acpctl auth status echo | grep -o 'logged in\|needs login'",
    "acpctl auth login command; ls done",
    "acpctl auth login failing; acpctl auth login missing",
];

/// A shell that asks one question in each turn, and says what was answered.
///
/// Unlike the scripted agent it tells the command, so that a decision on it can be remembered.
const ASKS: &str = r#"
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
while read -r line; do
    id=$(printf '%s' "$line" | sed 's/.*"id":\("[0-9]*-[0-9]*"\).*/\1/')
    case $line in
    *'"initialize"'*) answer '{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}' ;;
    *'"session/new"'*) answer '{"sessionId":"s'$$-$(printf %s "$id" | tr -d '"')'"}' ;;
    *'"session/load"'*) answer '{}' ;;
    *'"session/prompt"'*)
        session=$(printf '%s' "$line" | sed 's/.*"sessionId":"\([^"]*\)".*/\1/')
        echo '{"jsonrpc":"2.0","id":"ask","method":"session/request_permission","params":{"sessionId":"SESSION",'\
'"toolCall":{"toolCallId":"t","kind":"execute","title":"Test","rawInput":{"command":"make test"}},'\
'"options":[{"optionId":"yes","name":"Allow","kind":"allow_once"},'\
'{"optionId":"always","name":"Always allow","kind":"allow_always"},{"optionId":"no","name":"Reject","kind":"reject_once"}]}}' | sed "s/SESSION/$session/"
        read -r said
        said=$(printf '%s' "$said" | sed 's/.*"optionId":"\([a-z]*\)".*/\1/')
        echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"'$session'",'\
'"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"got $said"'"}}}}'
        answer '{"stopReason":"end_turn"}' ;;
    esac
done
"#;

/// Runs these lines one after the other, in a home with this configuration.
fn play(name: &str, config: &Config, lines: &[&str]) {
    let env = home_with(config);
    let acpctl = env.program("acpctl");
    let programs = acpctl.parent().expect("a folder").display().to_string();
    let mut transcript = String::new();
    for line in lines {
        let mut command = env.command("sh");
        command
            .args(["-c", &format!("{SHOWS_CODES}{line}")])
            .env("PATH", format!("{programs}:/usr/bin:/bin"))
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CONFIG_NOSYSTEM", "1");
        add(&mut transcript, line, &Running::start(command).finish());
    }
    let transcript = transcript.replace(&programs, "[programs]");
    assert_transcript(name, &[&FILTERS[..], &DIFFERENT].concat(), &transcript);
}

fn two_agents() -> Config {
    Config::new([echo(), Agent::new("other")])
}

#[test]
fn sessions_are_as_they_were() {
    play("sessions", &two_agents(), &SESSIONS);
}

#[test]
fn worktrees_are_as_they_were() {
    play("worktrees", &two_agents(), &WORKTREES);
}

#[test]
fn configurations_are_as_they_were() {
    play("configuration", &two_agents(), &CONFIGURATION);
}

#[test]
fn shells_get_what_they_got() {
    play("shells", &two_agents(), &SHELLS);
}

#[test]
fn backups_are_refused_as_they_were() {
    play("backups", &two_agents(), &BACKUPS);
}

#[test]
fn verbs_of_the_daemon_are_as_they_were() {
    play("verbs", &two_agents(), &VERBS);
}

#[test]
fn a_service_is_installed_as_it_was() {
    play("service", &two_agents(), &SERVICE);
}

#[test]
fn doctors_find_what_they_found() {
    play("doctor", &two_agents(), &DOCTOR);
}

#[test]
fn default_agents_are_as_they_were() {
    play("unconfigured", &two_agents(), &UNCONFIGURED);
}

#[test]
fn lost_conversations_go_on_with_a_summary() {
    let broken = Agent::new("broken").flags("no-resume no-list load-error=-32603");
    play("losses", &Config::new([echo().flags("forget"), broken]), &LOSSES);
}

#[test]
fn package_of_another_repository_is_not_installed() {
    play("downloads", &two_agents(), &DOWNLOADS);
}

#[test]
fn permissions_are_answered_as_they_were() {
    let asks = Agent::new("asks").command(&["sh", "-c", ASKS]);
    play("permissions", &Config::new([asks]), &PERMISSIONS);
}

#[test]
fn logins_are_as_they_were() {
    let login = |name: &str, command: &str| Agent::new(name).set("login", command);
    let others = [
        ("command", "\"touch done\""),
        ("failing", "\"false\""),
        ("missing", "\"no-such-program login\""),
    ];
    let others = others.map(|(name, command)| login(name, command));
    let agents = std::iter::once(echo().flags("auth-required")).chain(others);
    play("logins", &Config::new(agents), &LOGINS);
}
