//! Deletion of sessions over the configured limits: on request (`_acpd/gc`) and by a timer.
//!
//! ```text
//!  request, timer ─▶ Measure ─▶ sizes ─▶ crate::retention plans ─┬▶ reported (dry run)
//!                                                                └▶ some deleted ─▶ more later
//! ```
//!
//! A client calls again until nothing is left; the timer comes again after [`NEXT`].

use std::collections::{BTreeMap, BTreeSet};

use acp_wire::{build, code};
use acpd_api::{GcParams, GcResult, GcSession, Reason, SessionsExpired, method};

use crate::clients::Served;
use crate::fault::{Fault, store_fault};
use crate::hub::Hub;
use crate::ids::{Requester, SessionKey};
use crate::input::{Effect, Look};
use crate::retention::{Candidate, Goes, Rules};
use crate::timers::Timer;

/// Time from the daemon's start to the first look (ms): restores go first.
const FIRST: u64 = 5 * 60_000;
/// Time between looks (ms).
const PAUSE: u64 = 60 * 60_000;
/// Time to the next look while a client is away (ms): it may have any session open.
const AWAITED: u64 = 10 * 60_000;
/// Maximum number of sessions deleted at once: one transaction deletes all of them.
const ROUND: usize = 16;
/// Time between rounds of deletions (ms).
const NEXT: u64 = 1000;

/// Bytes by session.
type Sizes = BTreeMap<SessionKey, u64>;

impl Hub {
    fn gc_session(&self, goes: &Goes) -> GcSession {
        let row = &self.session(goes.key).row;
        GcSession {
            session_id: row.public_id.clone().into(),
            number: goes.key.0,
            agent: row.agent.clone().into(),
            name: row.name.clone().map(Into::into),
            title: row.shown_title().map(Into::into),
            cwd: row.cwd.clone().into(),
            updated: row.updated.0,
            bytes: goes.bytes,
            limit: goes.limit,
            workspace: goes.workspace.clone().map(Into::into),
        }
    }

    fn rules(&self) -> Rules<'_> {
        Rules { all: self.cx.config.retention, workspaces: &self.cx.config.workspaces }
    }

    pub(crate) fn collect(&mut self, to: &Requester, params: GcParams) -> Served {
        if !self.rules().are_any() {
            let text = "nothing in the configuration limits how much is kept";
            let hint =
                "add `[retention]` with `max_age = \"90d\"`, say, then `acpctl daemon reload`";
            let fault = Fault::new(Reason::Invalid, text).with_code(code::INVALID_REQUEST);
            return Err(fault.hint(hint));
        }
        // Measuring reads the journal: measure all sessions only where sizes decide.
        let sessions = if self.rules().need_sizes() {
            self.sessions.keys().copied().collect()
        } else {
            self.chosen(&params, &Sizes::new()).0.iter().map(|goes| goes.key).collect()
        };
        let look = Look(Some((to.clone(), params)));
        self.cx.send(Effect::Measure { look, sessions });
        Ok(())
    }

    pub(crate) fn on_measured(&mut self, look: Look, sizes: Result<Sizes, String>) {
        match (look.0, sizes) {
            (Some((to, params)), Ok(sizes)) => {
                match store_fault(&self.cx.store).filter(|_| !params.dry_run) {
                    Some(fault) => self.refuse(&to, &fault),
                    None => {
                        let result = self.collect_measured(&params, &sizes);
                        self.answer(&to, &result);
                    }
                }
            }
            (Some((to, _)), Err(reason)) => {
                let text = format!("the journal could not be read: {reason}");
                self.refuse(&to, &Fault::new(Reason::StoreFailed, text));
            }
            (None, sizes) => self.collect_by_time(sizes),
        }
    }

    fn collect_measured(&mut self, params: &GcParams, sizes: &Sizes) -> GcResult {
        let (gone, left) = self.chosen(params, sizes);
        let sessions: Vec<GcSession> = gone.iter().map(|goes| self.gc_session(goes)).collect();
        let bytes = sessions.iter().map(|session| session.bytes).sum();
        let mut until = None;
        if !params.dry_run {
            self.tally.expired += gone.len() as u64;
            let ends = gone.iter().filter_map(|goes| self.delete_for_person(goes.key, params.now));
            until = ends.max().map(|until| until.0);
        }
        let next = self.cx.timers.get(Timer::Retention).map(|at| at.0);
        GcResult { sessions, bytes, left, until, next }
    }

    /// Returns the sessions of one answer and the number left.
    fn chosen(&self, params: &GcParams, sizes: &Sizes) -> (Vec<Goes>, u32) {
        // Unused sessions are deleted by their own timer.
        let used = self.sessions.iter().filter(|(_, session)| !session.is_unused());
        let candidates = used.map(|(key, session)| Candidate {
            key: *key,
            cwd: session.row.cwd.clone(),
            updated: session.row.updated,
            bytes: sizes.get(key).copied().unwrap_or(0),
            // A prompt that waits for a login needs no process, but keeps the session.
            in_use: self.is_in_use(*key) || !session.queue.is_empty(),
        });
        let mut gone = self.rules().plan(self.cx.now, candidates.collect());
        if let Some(only) = &params.only {
            let only: BTreeSet<u32> = only.iter().copied().collect();
            gone.retain(|goes| only.contains(&goes.key.0));
        }
        let most = if params.dry_run { gone.len() } else { ROUND };
        let left = gone.len().saturating_sub(most) as u32;
        gone.truncate(most);
        (gone, left)
    }

    pub(crate) fn watch_retention(&mut self) {
        if self.rules().are_any() {
            self.cx.timers.set(Timer::Retention, self.cx.now.after(FIRST));
        }
    }

    pub(crate) fn on_retention_timer(&mut self) {
        if self.clients.are_awaited() {
            self.cx.timers.set(Timer::Retention, self.cx.now.after(AWAITED));
        } else if self.rules().need_sizes() {
            let sessions = self.sessions.keys().copied().collect();
            self.cx.send(Effect::Measure { look: Look(None), sessions });
        } else {
            self.collect_by_time(Ok(Sizes::new()));
        }
    }

    /// Deletes nothing while the store fails: deletions would pile up.
    fn collect_by_time(&mut self, sizes: Result<Sizes, String>) {
        let sizes = sizes.ok().filter(|_| !self.cx.is_failing());
        let result = sizes.map(|sizes| self.collect_measured(&GcParams::default(), &sizes));
        let is_more = result.as_ref().is_some_and(|result| result.left > 0);
        if let Some(GcResult { sessions, until, .. }) = result.filter(|of| !of.sessions.is_empty())
        {
            let ids = sessions.iter().map(|session| session.session_id.raw().to_owned()).collect();
            self.cx.send(Effect::Expired { sessions: ids, can_undo: until.is_some() });
            let notice = SessionsExpired { sessions, at: self.cx.now.0, until };
            let line = build::notification(method::SESSIONS_EXPIRED, &notice);
            self.clients.tell_all(&mut self.cx, &line);
        }
        let pause = if is_more { NEXT } else { PAUSE };
        self.cx.timers.set(Timer::Retention, self.cx.now.after(pause));
    }
}
