//! Services of acpd for agents when no editor offers them.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use crate::{echo, home};

#[test]
fn files_are_read_in_the_folder_of_the_session_and_nowhere_else() {
    let env = home([echo()]);
    let work = env.work("main");
    let (inside, outside) = (work.join("a.txt"), env.path("secret"));
    fs::write(&inside, "one\n").unwrap();
    fs::write(&outside, "do not tell\n").unwrap();
    symlink(&outside, work.join("link")).unwrap();
    let read = |path: &Path| {
        let prompt = format!("[fs-read {}]", path.display());
        env.acpctl(&["run", "-s", "files", &prompt]).success().stdout().to_owned()
    };
    assert!(read(&inside).contains("file: one"));
    for path in [&outside, &work.join("link"), &work.join("../secret")] {
        let said = read(path);
        assert!(said.contains("is refused") && !said.contains("do not tell"), "{said}");
    }
    let hello = &env.received("echo", "initialize")[0];
    assert_eq!(hello["params"]["clientCapabilities"]["fs"]["readTextFile"], true);
}
