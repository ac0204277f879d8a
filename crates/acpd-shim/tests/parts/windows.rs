//! Cases of Windows alone: Jobs.

use acpd_shim::shim_dir::Identity;
use acpd_sys::process::Liveness;

use crate::common::{Host, KILLED, agent, wait_until};

pub(crate) const TESTS: &[(&str, fn())] =
    &[("a_killed_shim_takes_its_agent_along", a_killed_shim_takes_its_agent_along)];

fn a_killed_shim_takes_its_agent_along() {
    let (host, mut daemon) = Host::greeted(agent("child pid,stay;pid;stay"));
    let ids = daemon.read_pids(2);
    assert_eq!(host.kill(), KILLED);
    wait_until(|| ids.iter().all(|id| id.is_alive() == Liveness::Gone));
    assert_eq!(host.shim_dir.verify(), Identity::Dead);
    assert_eq!(host.shim_dir.exit().unwrap(), None);
}
