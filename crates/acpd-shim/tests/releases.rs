//! Bytes and files of shims of each release, as their programs wrote them, never to be changed.
//!
//! A release adds a folder of its own. `to-daemon` is what a shim said to a daemon that said `to-shim`; `shim` and
//! `exit` are from its directory. `tests/process.rs` says `to-shim` to a shim of this program.

use std::fs;
use std::path::PathBuf;

use acpd_shim::frame::{Inbox, RELEASE, Release, Stage, Status, Step, ToDaemon, ToShim};
use acpd_shim::shim_dir::ShimDir;

/// The folder of a release.
fn release(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/releases")).join(name)
}

fn read(name: &str, file: &str) -> Vec<u8> {
    fs::read(release(name).join(file)).unwrap()
}

/// In the line that the daemon sent, and in the agent's answer.
const ID: &str = "\"id\":900719";

fn has_id(line: &[u8]) -> bool {
    String::from_utf8_lossy(line).contains(ID)
}

#[test]
#[cfg_attr(miri, ignore = "opens files as Miri cannot")]
fn what_shims_of_every_release_say_is_understood() {
    for (name, said) in [("0.1.0", None), ("0.2.0", Some(Release(0, 2, 0)))] {
        let bytes = read(name, "to-daemon");
        let mut inbox = Inbox::default();
        inbox.push(&bytes);
        let Ok(Some(ToDaemon::Hello(hello))) = inbox.next_frame() else { panic!("no hello") };
        assert_eq!((hello.version, hello.release), (1, said), "{name}");
        assert_eq!(
            (hello.base, hello.chunk, hello.at, hello.written),
            (hello.end, 4, 0, 3),
            "{name}"
        );
        assert_eq!(inbox.next_frame(), Ok(Some(ToDaemon::Written { chunk: 4 })), "{name}");
        let Ok(Some(ToDaemon::Out { offset, bytes })) = inbox.next_frame() else {
            panic!("{name} says nothing of its agent")
        };
        assert!(offset == hello.end && has_id(bytes), "{name}");
        for stage in [Stage::Ended, Stage::Gone] {
            let exit = ToDaemon::Exit { stage, status: Status::Code(0), stderr: b"" };
            assert_eq!(inbox.next_frame(), Ok(Some(exit)), "{name}");
        }
        assert_eq!(inbox.next_frame::<ToDaemon<'_>>(), Ok(None), "{name}");

        let files = ShimDir::at(release(name));
        let record = files.record().unwrap().unwrap();
        assert_eq!((record.version, record.shim.pid), (1, hello.shim), "{name}");
        assert_eq!(record.agent.map(|agent| agent.pid), Some(hello.agent), "{name}");
        assert!(record.socket.starts_with("/run/user/1000/acpd/s"), "{name}");
        assert_eq!(files.exit().unwrap(), Some(Status::Code(0)), "{name}");
    }
}

#[test]
fn what_daemons_of_every_release_say_is_understood() {
    for name in ["0.1.0", "0.2.0"] {
        let bytes = read(name, "to-shim");
        let mut inbox = Inbox::default();
        inbox.push(&bytes);
        let next = |inbox: &mut Inbox, wanted: ToShim<'_>| {
            assert_eq!(inbox.next_frame(), Ok(Some(wanted)), "{name}");
        };
        next(&mut inbox, ToShim::Hello { version: 1, from: 0 });
        next(&mut inbox, ToShim::Lease { ms: 3_600_000 });
        let Ok(Some(ToShim::In { chunk: 4, at: 0, last: true, bytes })) = inbox.next_frame() else {
            panic!("{name} gives no line")
        };
        assert!(has_id(bytes), "{name}");
        let Ok(Some(ToShim::Ack { .. })) = inbox.next_frame() else {
            panic!("{name} takes nothing")
        };
        next(&mut inbox, ToShim::Signal(Step::CloseStdin));
        next(&mut inbox, ToShim::Signal(Step::Term));
        next(&mut inbox, ToShim::Exit);
        assert_eq!(inbox.next_frame::<ToShim<'_>>(), Ok(None), "{name}");
    }
}

#[test]
fn each_minor_release_has_left_what_it_says() {
    let Release(major, minor, _) = RELEASE;
    let kept = release(&format!("{major}.{minor}.0"));
    assert!(kept.is_dir(), "record what a shim of {major}.{minor} says, in {}", kept.display());
}
