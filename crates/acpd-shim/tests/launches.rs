//! Launches come out as they went in.

use std::ffi::OsString;
use std::time::Duration;

use acpd_shim::launch::{How, LadderTimes, Launch, Program};
use acpd_sys::process::os_string;

fn launch(how: How) -> Launch {
    let second = Duration::from_secs(1);
    Launch {
        how,
        marker: "7-3".to_owned(),
        socket: "/run/s".into(),
        memory: 1,
        spool: 2,
        ladder: LadderTimes { eof: second, term: 2 * second, leftovers: 3 * second },
        lease: Some(4 * second),
    }
}

#[test]
fn a_launch_comes_out_as_it_went_in() {
    // On some systems not everything can be a text.
    let text = || os_string(b"a\xff\n").unwrap_or_else(|| OsString::from("a\n"));
    let program = Program {
        program: text().into(),
        args: vec![text(), OsString::new()],
        env: vec![(text(), text())],
        cwd: text().into(),
    };
    let (timeout, addr) = (Duration::from_millis(5), "[::1]:9".parse().unwrap());
    for how in [
        How::Stdio(program.clone()),
        How::Command { program: program.clone(), is_line: true },
        How::TcpSpawn { program, port: 9, timeout },
        How::TcpConnect { addr, timeout },
    ] {
        let launch = launch(how);
        assert_eq!(Launch::decode(&launch.encode()), Ok(launch));
    }
}

#[test]
fn a_launch_that_cannot_be_read_is_refused() {
    let refusal = |bytes: &[u8]| Launch::decode(bytes).unwrap_err();
    assert_eq!(refusal(&[1, 0, 0]), "the launch has version 1, not 2: the program was replaced");
    for bytes in [&[][..], &[2, 0], &[2, 0, b'{']] {
        assert_eq!(refusal(bytes), "the launch is damaged");
    }
}
