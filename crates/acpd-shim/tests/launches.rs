//! Launches come out as they went in.

use std::ffi::OsString;
use std::net::SocketAddr;
use std::time::Duration;

use acpd_shim::launch::{How, LadderTimes, Launch, LaunchError, Program};
use acpd_sys::process::os_string;
use proptest::prelude::*;

fn any_text() -> impl Strategy<Value = OsString> {
    let bytes = prop::collection::vec(any::<u8>(), 0..20);
    // On some systems not everything can be a text.
    bytes.prop_map(|bytes| os_string(&bytes).unwrap_or_else(|| format!("{bytes:?}").into()))
}

fn any_time() -> impl Strategy<Value = Duration> {
    any::<u64>().prop_map(Duration::from_millis)
}

fn any_program() -> impl Strategy<Value = Program> {
    let args = prop::collection::vec(any_text(), 0..4);
    let env = prop::collection::vec((any_text(), any_text()), 0..4);
    (any_text(), args, env, any_text()).prop_map(|(program, args, env, cwd)| Program {
        program: program.into(),
        args,
        env,
        cwd: cwd.into(),
    })
}

fn any_how() -> impl Strategy<Value = How> {
    prop_oneof![
        any_program().prop_map(How::Stdio),
        (any_program(), any::<u16>(), any_time())
            .prop_map(|(program, port, timeout)| How::TcpSpawn { program, port, timeout }),
        (any::<SocketAddr>(), any_time()).prop_map(|(mut addr, timeout)| {
            // Neither is part of what people write.
            if let SocketAddr::V6(v6) = &mut addr {
                v6.set_flowinfo(0);
                v6.set_scope_id(0);
            }
            How::TcpConnect { addr, timeout }
        }),
    ]
}

fn any_launch() -> impl Strategy<Value = Launch> {
    let ladder = (any_time(), any_time(), any_time());
    let limits = (any::<u64>(), any::<u64>());
    let lease = (1_u64..).prop_map(Duration::from_millis);
    (any_how(), ".*", any_text(), limits, ladder, prop::option::of(lease)).prop_map(
        |(how, marker, socket, (memory, spool), (eof, term, leftovers), lease)| Launch {
            how,
            marker,
            socket: socket.into(),
            memory,
            spool,
            ladder: LadderTimes { eof, term, leftovers },
            lease,
        },
    )
}

proptest! {
    #[test]
    fn a_launch_comes_out_as_it_went_in(launch in any_launch()) {
        prop_assert_eq!(Launch::decode(&launch.encode()), Ok(launch));
    }

    #[test]
    fn a_launch_that_is_cut_off_is_refused(launch in any_launch(), cut in any::<prop::sample::Index>()) {
        let bytes = launch.encode();
        let result = Launch::decode(&bytes[..cut.index(bytes.len())]);
        prop_assert_eq!(result, Err(LaunchError::Damaged));
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = Launch::decode(&[&[2, 0], &bytes[..]].concat());
    }
}

#[test]
fn a_launch_of_another_version_is_refused_by_name() {
    assert_eq!(Launch::decode(&[1, 0, 0]), Err(LaunchError::Version(1)));
}
