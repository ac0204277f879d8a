//! Services of acpd for agents when no editor offers them.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use acpd_test::harness::Agent;

use crate::home;

/// A shell that speaks just enough ACP to ask for files: each prompt names one, and is answered with
/// what came back.
const READER: &str = r#"
n=1000
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$1" "$2"; }
ask() { n=$((n + 1)); printf '{"jsonrpc":"2.0","id":%s,"method":"fs/%s","params":{"sessionId":"s",%s}}\n' $n "$1" "$2"; }
while read -r line; do
    id=$(printf '%s' "$line" | sed 's/.*"id":\("[0-9]*-[0-9]*"\).*/\1/')
    text=$(printf '%s' "$line" | sed -n 's/.*"text":"\([^"]*\)".*/\1/p')
    case $line in
    *'"initialize"'*)
        printf '%s\n' "$line" >"$ACPD_TEST_POINTS/hello"
        answer $id '{"protocolVersion":1,"agentCapabilities":{}}' ;;
    *'"session/new"'*) answer $id '{"sessionId":"s"}' ;;
    *'"session/prompt"'*)
        prompt=$id
        case $text in
        "read "*) ask read_text_file "\"path\":\"${text#read }\"" ;;
        "far "*)
            for i in 1 2 3 4 5 6 7 8; do
                ask read_text_file "\"path\":\"${text#far }\",\"line\":2"
            done ;;
        "write "*) ask write_text_file "\"path\":\"${text#write }\",\"content\":\"new\\n\"" ;;
        esac ;;
    *'"id":10'*)
        said=$(printf '%s' "$line" | tr -d '"\\{}')
        printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%s"}}}}\n' "$said"
        answer $prompt '{"stopReason":"end_turn"}' ;;
    esac
done
"#;

#[test]
fn files_are_read_and_written_in_the_folder_of_the_session_and_nowhere_else() {
    let env = home([Agent::new("reader").command(&["sh", "-c", READER])]);
    let work = env.work("main");
    let (inside, outside) = (work.join("a.txt"), env.path("secret"));
    fs::write(&inside, "one\n").unwrap();
    fs::write(&outside, "do not tell\n").unwrap();
    symlink(&outside, work.join("link")).unwrap();
    let run = |prompt: String| {
        let out = env.acpctl_in("main", &["run", "-s", "files", &prompt]).success();
        out.stdout().to_owned()
    };
    assert!(run(format!("read {}", inside.display())).contains("content:one"));
    run(format!("write {}", inside.display()));
    assert_eq!(fs::read_to_string(&inside).unwrap(), "new\n");
    let made = work.join("folder/b.txt");
    run(format!("write {}", made.display()));
    assert_eq!(fs::read_to_string(&made).unwrap(), "new\n");
    assert_ne!(fs::metadata(&made).unwrap().permissions().mode() & 0o044, 0, "it is no secret");
    for path in [outside.clone(), work.join("link"), work.join("../secret")] {
        for what in ["read", "write"] {
            let said = run(format!("{what} {}", path.display()));
            assert!(said.contains("is refused"), "{what} {}: {said}", path.display());
            assert!(!said.contains("do not tell"));
        }
    }
    assert_eq!(fs::read_to_string(&outside).unwrap(), "do not tell\n");
    let missing = run(format!("read {}", work.join("missing").display()));
    assert!(missing.contains("-32002"), "{missing}");
    let hello = fs::read_to_string(env.points().join("hello")).unwrap();
    assert!(hello.contains("\"readTextFile\":true"), "{hello}");
}

#[test]
fn m4_a_file_without_an_end_holds_up_neither_its_agent_nor_another() {
    let reader = |name: &str| Agent::new(name).command(&["sh", "-c", READER]);
    let env = home([reader("greedy"), reader("modest")]);
    let work = env.work("main");
    let sparse = work.join("sparse");
    fs::File::create(&sparse).unwrap().set_len(8 << 40).unwrap();
    fs::write(work.join("a.txt"), "one\n").unwrap();

    let far = format!("far {}", sparse.display());
    let greedy = env.spawn_acpctl(&["run", "-a", "greedy", "-s", "far", &far]);
    let near = format!("read {}", work.join("a.txt").display());
    let modest = env.acpctl(&["run", "-a", "modest", "-s", "near", &near]).success();
    assert!(modest.stdout().contains("content:one"), "{modest:?}");
    let refused = greedy.finish().success();
    assert!(refused.stdout().contains("no more is looked at"), "{refused:?}");
}
