//! Choice of the sessions over the configured limits, without side effects. The hub measures and
//! deletes them.
//!
//! Each kind of limit comes from the innermost workspace that has it, else from the general limits.
//! Sessions under the same limit are one group, whose most recently used sessions stay.
//!
//! Architecture invariant: a session in use, or in a workspace with `keep`, is never deleted.
//! Sessions in use count, so all sessions over a limit afterwards are in use.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use acpd_api::GcLimit;

use crate::ids::{SessionKey, Time};
use crate::profile::{Limits, Workspace, workspaces_of};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules<'c> {
    pub(crate) all: Limits,
    pub(crate) workspaces: &'c [Workspace],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) key: SessionKey,
    pub(crate) cwd: String,
    pub(crate) updated: Time,
    pub(crate) bytes: u64,
    /// The session works, waits, or is open in a client.
    pub(crate) in_use: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Goes {
    pub(crate) key: SessionKey,
    pub(crate) bytes: u64,
    pub(crate) limit: GcLimit,
    /// The workspace with the limit; none for a general one.
    pub(crate) workspace: Option<String>,
}

impl<'c> Rules<'c> {
    pub(crate) fn are_any(&self) -> bool {
        self.limits().any(|limits| limits != Limits::default())
    }

    pub(crate) fn need_sizes(&self) -> bool {
        self.limits().any(|limits| limits.max_size.is_some())
    }

    fn limits(&self) -> impl Iterator<Item = Limits> {
        self.workspaces.iter().map(|workspace| workspace.retention).chain([self.all])
    }

    /// Returns the limit, and the directory of the workspace that has it.
    fn find<T>(
        &self,
        inside: &[&'c Workspace],
        kind: impl Fn(&Limits) -> Option<T>,
    ) -> Option<(T, Option<&'c str>)> {
        let own = inside.iter().find_map(|of| Some((kind(&of.retention)?, Some(of.path.as_str()))));
        own.or_else(|| Some((kind(&self.all)?, None)))
    }

    /// Returns the sessions over a limit, least recently used first.
    pub(crate) fn plan(&self, now: Time, mut sessions: Vec<Candidate>) -> Vec<Goes> {
        let inside = |session: &Candidate| workspaces_of(self.workspaces, &session.cwd);
        sessions.retain(|session| !inside(session).iter().any(|of| of.keep));
        // Sessions in use come first, because they count in any case; then the most recently used.
        sessions.sort_by_key(|one| (!one.in_use, Reverse((one.updated, one.key))));
        let (mut counts, mut sizes) = (BTreeMap::new(), BTreeMap::new());
        let mut gone = Vec::new();
        for session in sessions {
            let inside = inside(&session);
            let age = self.find(&inside, |limits| limits.max_age);
            let count = self.find(&inside, |limits| limits.max_sessions);
            let size = self.find(&inside, |limits| limits.max_size);
            let (counted, taken) = (
                counts.entry(count.map(|(_, group)| group)).or_insert(0_u32),
                sizes.entry(size.map(|(_, group)| group)).or_insert(0_u64),
            );
            let with_it = taken.saturating_add(session.bytes);
            let too_old = age.filter(|(most, _)| now.since(session.updated) > *most);
            let too_many = count.filter(|(most, _)| *counted >= *most);
            let too_large = size.filter(|(most, _)| with_it > *most);
            let over = too_old.map(|(_, of)| (GcLimit::MaxAge, of));
            let over = over.or(too_many.map(|(_, of)| (GcLimit::MaxSessions, of)));
            let over = over.or(too_large.map(|(_, of)| (GcLimit::MaxSize, of)));
            match over.filter(|_| !session.in_use) {
                Some((limit, workspace)) => {
                    if limit == GcLimit::MaxSize {
                        // Less recently used sessions do not stay longer than this one.
                        *taken = u64::MAX;
                    }
                    let (key, bytes) = (session.key, session.bytes);
                    gone.push(Goes { key, bytes, limit, workspace: workspace.map(str::to_owned) });
                }
                None => {
                    *counted = counted.saturating_add(1);
                    *taken = with_it;
                }
            }
        }
        gone.reverse();
        gone
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn session(key: u32, cwd: &str, updated: u64, bytes: u64) -> Candidate {
        let (key, cwd, updated) = (SessionKey(key), cwd.to_owned(), Time(updated));
        Candidate { key, cwd, updated, bytes, in_use: false }
    }

    fn workspace(path: &str, retention: Limits) -> Workspace {
        Workspace { path: path.to_owned(), retention, ..Workspace::default() }
    }

    fn went(gone: &[Goes]) -> Vec<(u32, GcLimit)> {
        gone.iter().map(|goes| (goes.key.0, goes.limit)).collect()
    }

    fn under(all: Limits) -> Rules<'static> {
        Rules { all, workspaces: &[] }
    }

    #[test]
    fn each_limit_lets_those_go_that_were_used_longest_ago() {
        let by = |all| {
            let sessions = (1..=5).map(|n| session(n, "/w", u64::from(n) * 100, 10)).collect();
            went(&under(all).plan(Time(1000), sessions))
        };
        assert_eq!(by(Limits::default()), []);
        let age = Limits { max_age: Some(750), ..Limits::default() };
        assert_eq!(by(age), [(1, GcLimit::MaxAge), (2, GcLimit::MaxAge)]);
        let count = Limits { max_sessions: Some(3), ..Limits::default() };
        assert_eq!(by(count), [(1, GcLimit::MaxSessions), (2, GcLimit::MaxSessions)]);
        let size = Limits { max_size: Some(45), ..Limits::default() };
        assert_eq!(by(size), [(1, GcLimit::MaxSize)]);
    }

    #[test]
    fn a_workspace_has_limits_in_place_of_those_for_all() {
        let days = |max_age| Limits { max_age: Some(max_age), ..Limits::default() };
        let one = Limits { max_sessions: Some(1), ..Limits::default() };
        let workspaces = [workspace("/w", days(500)), workspace("/w/api", one)];
        let rules = Rules { all: days(100), workspaces: &workspaces };
        let sessions = vec![
            session(1, "/w/api", 600, 10),
            session(2, "/w/api/sub", 700, 10),
            session(3, "/w/api-two", 800, 10),
            session(4, "/w/api-two", 400, 10),
            session(5, "/elsewhere", 800, 10),
        ];
        let gone = rules.plan(Time(1000), sessions);
        let of = gone.iter().map(|goes| (goes.key.0, goes.limit, goes.workspace.as_deref()));
        let of: Vec<_> = of.collect();
        assert_eq!(
            of,
            [
                (4, GcLimit::MaxAge, Some("/w")),
                (1, GcLimit::MaxSessions, Some("/w/api")),
                (5, GcLimit::MaxAge, None),
            ]
        );
    }

    #[test]
    fn nothing_goes_of_a_workspace_that_is_kept_and_it_takes_no_room() {
        let kept = Workspace { keep: true, ..workspace("/k", Limits::default()) };
        let limits = Limits { max_age: Some(1), max_sessions: Some(1), max_size: Some(5) };
        let rules = Rules { all: limits, workspaces: &[kept] };
        let sessions = vec![session(1, "/k/sub", 1, 99), session(2, "/w", 1000, 5)];
        assert_eq!(rules.plan(Time(1000), sessions), []);
    }

    fn any_limits() -> impl Strategy<Value = Limits> {
        let (age, count) = (prop::option::of(0..50_u64), prop::option::of(1..8_u32));
        (age, count, prop::option::of(0..200_u64)).prop_map(|(max_age, max_sessions, max_size)| {
            Limits { max_age, max_sessions, max_size }
        })
    }

    /// The directory of the limit of a kind, in the words of the documentation.
    fn group<T>(rules: &Rules<'_>, cwd: &str, kind: impl Fn(&Limits) -> Option<T>) -> usize {
        let inner = (cwd == "/a/b").then_some(1).into_iter();
        let around = inner.chain(cwd.starts_with("/a").then_some(0));
        let mut around = around.filter(|n| kind(&rules.workspaces[*n].retention).is_some());
        around.next().unwrap_or(2)
    }

    proptest! {
        #[test]
        fn afterwards_only_what_is_in_use_or_kept_is_over_a_limit(
            sessions in prop::collection::vec((0..4_usize, 0..60_u64, 0..80_u64, any::<bool>()), 0..24),
            limits in [any_limits(), any_limits(), any_limits()],
        ) {
            let sessions = (1..).zip(sessions).map(|(key, (dir, at, bytes, in_use))| {
                let cwd = ["/a", "/a/b", "/c", "/kept"][dir];
                Candidate { in_use, ..session(key, cwd, at, bytes) }
            });
            let sessions: Vec<Candidate> = sessions.collect();
            let workspaces = [
                workspace("/a", limits[0]),
                workspace("/a/b", limits[1]),
                Workspace { keep: true, ..workspace("/kept", Limits::default()) },
            ];
            let (rules, now) = (Rules { all: limits[2], workspaces: &workspaces }, Time(60));
            let gone = rules.plan(now, sessions.clone());
            let mut turned = sessions.clone();
            turned.reverse();
            prop_assert_eq!(&rules.plan(now, turned), &gone, "the order is no matter");

            let keys: Vec<SessionKey> = gone.iter().map(|goes| goes.key).collect();
            let (went, left): (Vec<_>, Vec<_>) =
                sessions.into_iter().partition(|one| keys.contains(&one.key));
            prop_assert_eq!(went.len(), gone.len(), "each goes once");
            prop_assert!(went.iter().all(|one| !one.in_use && one.cwd != "/kept"));

            let counted: Vec<_> = left.iter().filter(|one| one.cwd != "/kept").collect();
            for n in 0..3 {
                let of = |kind: fn(&Limits) -> Option<u64>| {
                    let in_group = counted.iter().filter(|one| group(&rules, &one.cwd, kind) == n);
                    (kind(&limits[n]), in_group.copied().collect::<Vec<_>>())
                };
                let is_free = |ones: &[&Candidate]| ones.iter().any(|one| !one.in_use);
                let (most, ones) = of(|limits| limits.max_sessions.map(u64::from));
                let is_over = most.is_some_and(|most| ones.len() as u64 > most);
                prop_assert!(!(is_over && is_free(&ones)), "too many sessions");
                let (most, ones) = of(|limits| limits.max_size);
                let size: u64 = ones.iter().map(|one| one.bytes).sum();
                prop_assert!(!(most.is_some_and(|most| size > most) && is_free(&ones)), "too large");
                let (most, ones) = of(|limits| limits.max_age);
                let is_old = |one: &&Candidate| most.is_some_and(|most| now.since(one.updated) > most);
                prop_assert!(!ones.iter().any(|one| is_old(one) && !one.in_use), "too old");
            }
            prop_assert_eq!(rules.plan(now, left), [], "nothing more goes");
        }
    }
}
