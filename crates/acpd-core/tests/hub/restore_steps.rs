//! Which step of a restore follows which, as a table. What comes of it in the hub is in `restores.rs`.

use acp_wire::code;
use acpd_api::{Reason, RestoreLevel};
use acpd_core::restore::{Event, Facts, Next, Progress, Step};

const BEGUN: Event<'_> = Event::Begun { is_fresh: false, is_held: false };
const GONE: Event<'_> = Event::Refused { code: code::NOT_FOUND, is_gone: true, text: "no" };
const MISSING: Event<'_> = refused(code::METHOD_NOT_FOUND);
const BROKEN: Event<'_> = refused(code::INTERNAL);
const LISTED: Event<'_> = Event::Listed { is_there: true, more: None };
const UNLISTED: Event<'_> = Event::Listed { is_there: false, more: None };

const fn refused(code: i64) -> Event<'static> {
    Event::Refused { code, is_gone: false, text: "no" }
}

fn another_page() -> Event<'static> {
    Event::Listed { is_there: false, more: Some("2".to_owned()) }
}

/// An agent that can do everything.
const ABLE: Facts<'_> = Facts {
    agent: "a",
    resumes: true,
    loads: true,
    lists: true,
    late_replay: false,
    has_servers: false,
    timeout: 30_000,
    too_young: 0,
};
const ONLY_LOADS: Facts<'_> = Facts { resumes: false, lists: false, ..ABLE };
const UNABLE: Facts<'_> = Facts { resumes: false, loads: false, ..ABLE };

fn lost(text: &str) -> Next {
    Next::Lost(text.to_owned())
}

fn failed(reason: Reason, text: &str) -> Next {
    Next::Failed(reason, text.to_owned())
}

/// Lets these events happen one after the other and returns what follows from the last.
fn after(mut progress: Progress, facts: &Facts<'_>, events: &[Event<'_>]) -> (Progress, Next) {
    let mut next = Next::SetAgain;
    for event in events {
        (progress, next) = progress.next(facts, event.clone());
    }
    (progress, next)
}

#[test]
fn each_step_is_followed_by_the_best_that_is_left() {
    let fresh = Event::Begun { is_fresh: true, is_held: false };
    let held = Event::Begun { is_fresh: false, is_held: true };
    let directory = Step::Directory(1);
    let in_time = "the agent did not bring it back within 30 s";
    let table = [
        // How it begins.
        (directory, ABLE, fresh, Next::Ask(Step::New)),
        (directory, ABLE, held, lost("the agent has given its id to another session")),
        (directory, ABLE, BEGUN, Next::Ask(Step::Resume)),
        (directory, Facts { resumes: false, ..ABLE }, BEGUN, Next::Ask(Step::List)),
        (directory, ONLY_LOADS, BEGUN, Next::Ask(Step::Load)),
        (directory, UNABLE, BEGUN, lost("agent `a` can neither resume nor load sessions")),
        // Reactions of the agent.
        (Step::New, ABLE, Event::Accepted, Next::SetAgain),
        (Step::Resume, ABLE, Event::Accepted, Next::SetAgain),
        (Step::Load, ABLE, Event::Accepted, Next::SetAgain),
        (Step::Load, Facts { late_replay: true, ..ABLE }, Event::Accepted, Next::Settle),
        (Step::Resume, Facts { late_replay: true, ..ABLE }, Event::Accepted, Next::SetAgain),
        (Step::List, ABLE, LISTED, Next::Ask(Step::Load)),
        (Step::List, ABLE, another_page(), Next::AskPage("2".to_owned())),
        (Step::List, ABLE, UNLISTED, Next::Ask(Step::ListAll)),
        (Step::ListAll, ABLE, LISTED, Next::Ask(Step::Load)),
        (Step::ListAll, ABLE, UNLISTED, lost("the agent does not list it")),
        // Refused requests.
        (Step::New, ABLE, BROKEN, failed(Reason::AgentStartFailed, "no")),
        (Step::Resume, ABLE, BROKEN, Next::Ask(Step::List)),
        (Step::Resume, ONLY_LOADS, GONE, Next::Ask(Step::Load)),
        (Step::Resume, UNABLE, MISSING, lost("agent `a` cannot resume it: no")),
        (Step::List, ABLE, MISSING, Next::Ask(Step::Load)),
        (Step::ListAll, ABLE, GONE, Next::Ask(Step::Load)),
        (Step::Load, ABLE, GONE, lost("the agent does not know it: no")),
        (Step::Load, UNABLE, MISSING, lost("agent `a` cannot resume it: no")),
        (Step::Load, ABLE, BROKEN, Next::Pause(500)),
        // Slow requests.
        (Step::Retry, ABLE, Event::Late, Next::Ask(Step::Load)),
        (Step::Settle, ABLE, Event::Late, Next::SetAgain),
        (directory, ABLE, Event::Late, failed(Reason::AgentTimeout, in_time)),
        (Step::Load, ABLE, Event::Late, failed(Reason::AgentTimeout, in_time)),
    ];
    for (step, facts, event, expected) in table {
        let (progress, next) = Progress::new(step).next(&facts, event.clone());
        assert_eq!(next, expected, "{step:?}, {event:?}");
        let at = match next {
            Next::Ask(step) => step,
            Next::Pause(_) => Step::Retry,
            Next::Settle => Step::Settle,
            Next::SetAgain => Step::Settings,
            _ => step,
        };
        assert_eq!(progress.step, at, "{step:?}, {event:?}");
    }
}

#[test]
fn a_load_is_tried_three_times_and_its_servers_may_be_to_blame() {
    let load = Progress::new(Step::Load);
    let twice = [BROKEN, Event::Late, BROKEN, Event::Late];
    assert_eq!(after(load, &ABLE, &twice[..3]).1, Next::Pause(1_000));
    let (third, _) = after(load, &ABLE, &twice);
    let blocked = failed(Reason::SessionBlocked, "it could not be loaded: no");
    assert_eq!(third.next(&ABLE, BROKEN).1, blocked);
    let invalid = refused(code::INVALID_PARAMS);
    assert_eq!(third.next(&ABLE, invalid.clone()).1, blocked, "it has no servers");
    let with_servers = Facts { has_servers: true, ..ABLE };
    let (bare, next) = third.next(&with_servers, invalid.clone());
    assert_eq!((bare.without_servers, next), (true, Next::Ask(Step::Load)));
    assert_eq!(bare.next(&with_servers, invalid).1, blocked, "that was not the reason");
}

#[test]
fn a_session_that_is_listed_elsewhere_and_not_loaded_is_lost() {
    let listed = [UNLISTED, LISTED, BROKEN, Event::Late, BROKEN, Event::Late, BROKEN];
    let (_, next) = after(Progress::new(Step::List), &ABLE, &listed);
    assert_eq!(next, lost("the agent does not load it in another directory: no"));
}

#[test]
fn the_level_says_how_it_came_back() {
    let level = |step| Progress::new(step).next(&ABLE, Event::Accepted).0.level;
    assert_eq!(level(Step::Resume), RestoreLevel::Resumed);
    assert_eq!(level(Step::Load), RestoreLevel::Loaded);
    assert_eq!(level(Step::New), RestoreLevel::Renewed);
}
