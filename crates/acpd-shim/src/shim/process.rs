//! The shim's work with its agent.

use std::io;
use std::time::Instant;

use acpd_sys::process::{ProcessId, StopSignal, reap, reap_orphans, try_wait_leader};
use acpd_sys::tree::Tree;

use super::{HOLD, LOOK, Shim, scratch_buffer};
use crate::cgroup::Cgroup;
use crate::frame::{PIECE, Status, Step};

/// Limit on reads of stderr after the leader's end: other processes may still write.
const LAST_READS: usize = 16;

impl Shim {
    /// Writes what the agent takes, and closes its stdin if that was ordered.
    pub(super) fn feed(&mut self) {
        let Some(stdin) = &mut self.agent.stdin else { return };
        if self.input.write(stdin).is_err() {
            self.agent.stdin = None;
            self.input.close();
            if self.exit.is_none() {
                self.stop.cut_off(Instant::now());
            }
        } else if self.input.is_closed && self.input.is_empty() {
            self.close_stdin();
        }
    }

    pub(super) fn close_stdin(&mut self) {
        self.input.close();
        if let Some(stdin) = self.agent.stdin.take()
            && self.agent.tcp
        {
            // The agent's output on this connection stays open.
            stdin.shut_down();
        }
    }

    /// Reads up to `most` bytes of output, and drops them if the output is sealed.
    pub(super) fn read_stdout(&mut self, most: usize) {
        let Some(stdout) = &mut self.agent.stdout else {
            self.sealed |= self.exit.is_some();
            return;
        };
        if most == 0 {
            // A read into an empty buffer would look like the end of the output.
            return;
        }
        match stdout.read(&mut scratch_buffer(&mut self.scratch)[..most]) {
            Ok(count) if count > 0 => {
                if !self.drops_output() {
                    self.output.push(&self.scratch[..count]);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.sealed |= self.exit.is_some();
            }
            Ok(_) | Err(_) => self.stdout_ended(),
        }
    }

    fn stdout_ended(&mut self) {
        self.agent.stdout = None;
        let now = Instant::now();
        if self.agent.tcp {
            self.notice_exit();
        }
        if self.agent.tcp && self.exit.is_none() {
            self.hold_exit_until = self.agent.leader.map(|_| now + HOLD);
            self.ended(Status::Closed);
            self.stop.run(now);
        } else if self.exit.is_none() && !self.is_command {
            self.stop.cut_off(now);
        }
        self.sealed |= self.exit.is_some();
    }

    pub(super) fn read_stderr(&mut self, index: usize) -> bool {
        let Some(stderr) = self.agent.stderr.get_mut(index) else { return false };
        match stderr.read(scratch_buffer(&mut self.scratch)) {
            Ok(count) if count > 0 => {
                self.errors.push(&self.scratch[..count], Instant::now());
                return true;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Ok(_) | Err(_) => drop(self.agent.stderr.remove(index)),
        }
        false
    }

    /// Reads what the processes of a command wrote before they ended.
    fn read_last(&mut self) {
        let mut before = None;
        while self.is_command && before != Some(self.output.end) {
            before = Some(self.output.end);
            let room = self.output.room().min(PIECE);
            self.read_stdout(room);
        }
    }

    /// After the leader's end: reads what it wrote before, as far as there is room.
    pub(super) fn drain(&mut self) {
        while self.exit.is_some() && !self.sealed {
            let room = self.output.room().min(PIECE);
            if room == 0 {
                return;
            }
            self.read_rest(room);
        }
        if self.sealed {
            self.leader_output.get_or_insert(self.output.end);
        }
    }

    /// Reads up to `most` bytes that the leader may have written.
    pub(super) fn read_rest(&mut self, most: usize) {
        let before = self.output.end;
        self.read_stdout(most.min(self.left_to_read));
        self.left_to_read -= (self.output.end - before) as usize;
        self.sealed |= self.left_to_read == 0;
    }

    pub(super) fn notice_exit(&mut self) {
        let wanted = self.exit.is_none() || self.hold_exit_until.is_some();
        let Some(leader) = self.agent.leader.filter(|_| wanted) else { return };
        let status = match try_wait_leader(leader.pid) {
            Ok(None) => return,
            Ok(Some(exit)) => exit.into(),
            Err(_) => Status::Unknown,
        };
        self.hold_exit_until = None;
        self.ended(status);
        if !self.is_command {
            self.stop.leader_ended(Instant::now());
        }
    }

    fn ended(&mut self, status: Status) {
        self.exit = Some(status);
        if !self.start_unreported {
            // On a full disk the exit is still sent.
            self.dir.write_exit(status, !self.is_command).ok();
        }
        self.close_stdin();
        for index in (0..self.agent.stderr.len()).rev() {
            // On Windows the first read returns what was read ahead, the next one the rest.
            (0..LAST_READS).take_while(|_| self.read_stderr(index)).for_each(drop);
        }
        self.errors.end(Instant::now());
    }

    /// Schedules a look at the tree now: something may have exited.
    pub(super) fn look_soon(&mut self) {
        self.look = LOOK.0;
        self.look_at = Instant::now();
    }

    pub(super) fn notice_gone(&mut self) {
        if self.exit.is_none() || self.gone {
            return;
        }
        let runs = |leader: ProcessId| matches!(try_wait_leader(leader.pid), Ok(None));
        let empty =
            !self.agent.leader.is_some_and(runs) && self.tree.as_mut().is_none_or(Tree::is_empty);
        self.gone = empty && self.cgroup.iter().all(Cgroup::is_empty);
        if self.gone {
            self.read_last();
            self.notice_exit();
            if let Some(leader) = self.agent.leader {
                reap(leader.pid).ok();
            }
            self.notice_children();
        }
    }

    /// Reaps children that became the shim's when their parent died.
    pub(super) fn notice_children(&mut self) {
        reap_orphans(&self.agent.leader.iter().map(|leader| leader.pid).collect());
    }

    pub(super) fn take_step(&mut self, step: Step) {
        self.look_soon();
        let Some(signal) = step.signal() else {
            self.input.is_closed = true;
            return self.feed();
        };
        let Some(tree) = &mut self.tree else {
            // An agent that acpd did not start is never stopped: only the connection ends.
            return self.stdout_ended();
        };
        if signal == StopSignal::Kill {
            self.cgroup.iter().for_each(Cgroup::kill);
        }
        tree.stop(signal, self.exit.is_some());
        self.look_around();
    }

    /// Looks at the descendants, and records them if there is no cgroup.
    pub(super) fn look_around(&mut self) {
        let Some(tree) = self.tree.as_mut().filter(|_| !self.gone) else { return };
        let alive = tree.alive();
        if self.cgroup.is_none() && alive != self.recorded && self.dir.write_tree(&alive).is_ok() {
            self.recorded = alive;
        }
    }
}
