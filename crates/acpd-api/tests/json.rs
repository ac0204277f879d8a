//! The JSON of this crate is an interface: a change here is a change for every client.

use acp_wire::dialect::WorkKind;
use acp_wire::{Id, Version};
use acpd_api::{
    AgentInfo, AgentMetrics, AgentNotice, AgentState, AgentTroubleInfo, Amount, Answered,
    ArchiveFilter, AttachParams, AuthInfo, AuthSource, AuthState, Bucket, BudgetInfo, CancelParams,
    CaughtUp, ClientMeta, ClientToken, ConfigChanged, ConfigMistake, ConfigPlace, ConfigValue,
    ConfigValues, Cost, DaemonInfo, DaemonStopParams, Doing, DoingKind, ErrorData, ExitCode,
    GcLimit, GcParams, GcResult, GcSession, Histogram, Hit, HookEvent, HookInfo, InteractionInfo,
    JournalMetrics, LabelParams, Latencies, Leaving, LinePosition, LoadMeta, LoginMethod,
    LoginShellInfo, McpInfo, McpKind, Metrics, NewSessionMeta, OptionInfo, Outcome, PackageInfo,
    Part, PermissionDecided, PermissionMeta, PromptQueued, PromptRepeated, Question,
    QueueEditParams, QueueInfo, QueueMetrics, QueueRemoveParams, QueuedPrompt, RawCall, Reason,
    Received, RemoveParams, RemoveResult, RenameParams, ReseedParams, RestoreLevel, Restored,
    Resume, Resumed, Role, SearchParams, SearchResult, SessionGone, SessionInfo, SessionListParams,
    SessionNotice, SessionRef, SessionRowKey, SessionState, SessionsExpired, ShimInfo, Shown,
    ShownDiff, ShownUnclear, Skipped, Speaker, StateChanged, Status, StoreState, TitleParams,
    Tokens, TurnEndInfo, TurnEnded, TurnInfo, TurnMetrics, TurnStarted, TurnState, TurnUsage,
    UndoParams, UndoResult, UpdateMeta, Usage, UsageBy, UsageParams, UsageReport, UsageTotal,
    VariableFrom, VariableInfo, WorkInfo,
};
use serde_json::value::RawValue;
use serde_json::{Value, json};

fn usd(units: f64) -> Cost {
    Cost { amount: Amount::from_units(units).expect("an amount"), currency: "USD".into() }
}

fn session() -> SessionInfo {
    SessionInfo {
        session_id: "s-1".into(),
        agent: "demo".into(),
        name: Some("fix".into()),
        title: Some("Fix it".into()),
        labels: vec!["team=infra".into(), "urgent".into()],
        cwd: "/src".into(),
        parent: Some(SessionRowKey { agent: "other".into(), session_id: "s-0".into() }),
        state: SessionState::Blocked,
        pid: Some(42),
        archived: false,
        reason: Some("a login is needed".into()),
        hint: Some("log in".into()),
        restore: Some(RestoreLevel::Loaded),
        turn: TurnInfo {
            state: TurnState::NeedsAction,
            since: 5,
            last: Some("end_turn".into()),
            reason: None,
        },
        limited_until: Some(12),
        queued: 1,
        background: vec![WorkInfo {
            kind: WorkKind::Terminal,
            id: "t".into(),
            title: Some("make".into()),
            can_be_cancelled: true,
        }],
        clients: 2,
        prompts: 3,
        usage: Some(Usage { used: Some(9_000), size: None, cost: Some(usd(0.25)) }),
        seq: 4,
        created: 6,
        updated: 7,
        last_line: Some(8),
        doing: Some(Doing { kind: DoingKind::Command, text: "make".into(), since: 9 }),
    }
}

fn agent() -> AgentInfo {
    AgentInfo {
        name: "demo".into(),
        title: "Demo".into(),
        state: AgentState::NeedsAuth,
        since: 1,
        reason: Some("why".into()),
        pid: Some(2),
        other_pids: vec![3],
        rss: Some(3),
        processes: Some(2),
        restarts: 4,
        command: vec!["demo".into(), "--acp".into()],
        version: Some("demo 1.0".into()),
        sessions: 5,
        log: "/log".into(),
        tried: true,
        hint: Some("install it".into()),
        mcp: vec![
            McpInfo {
                name: "files".into(),
                kind: McpKind::Stdio,
                workspace: Vec::new(),
                left_out: None,
            },
            McpInfo {
                name: "web".into(),
                kind: McpKind::Http,
                workspace: vec!["~/src/**".into()],
                left_out: Some("why".into()),
            },
        ],
        auth: AuthInfo {
            state: AuthState::Expired,
            since: 8,
            source: Some(AuthSource::Refused { method: "session/prompt".into() }),
            methods: vec![LoginMethod {
                id: "m".into(),
                name: "Method".into(),
                kind: "terminal".into(),
            }],
            hint: Some("how".into()),
            command: Some("demo login".into()),
        },
        installed: Some(false),
        install: Some("npm install -g demo".into()),
        default_mode: Some("auto".into()),
        protocol: Some(Version::V2),
        packages: vec![PackageInfo {
            name: "demo".into(),
            repository: "github.com/ada/demo".into(),
        }],
        address: Some("127.0.0.1:7000".into()),
        not_found: Some("cannot find `demo`".into()),
        unsupported: vec!["session/load".into()],
        inherits: vec!["DEMO_*".into()],
        inherited: vec!["DEMO_KEY".into()],
        lacks: vec!["WORK_KEY".into()],
        environment: vec![
            VariableInfo {
                name: "PATH".into(),
                value: Some("/bin".into()),
                from: VariableFrom::LoginShell,
            },
            VariableInfo { name: "DEMO_KEY".into(), value: None, from: VariableFrom::Credential },
        ],
        login_shell: Some(LoginShellInfo {
            program: "/bin/zsh".into(),
            problem: Some("why".into()),
        }),
        shims: vec![
            ShimInfo { pid: 9, version: Some("0.2.0".into()) },
            ShimInfo { pid: 10, version: None },
        ],
    }
}

#[test]
fn status_looks_like_this() {
    let daemon = DaemonInfo {
        version: "0.1.0".into(),
        api: 1,
        pid: 2,
        boot: 8,
        since: 3,
        rss: Some(4),
        clients: 5,
        store: StoreState::Failing {
            reason: "the disk is full".into(),
            hint: Some("make room".into()),
            since: 6,
        },
        budget: Some(BudgetInfo { per_day: usd(5.0), spent: usd(5.25).amount, is_over: true }),
        default_agent: "demo".into(),
        default_is_found: true,
        socket: "/socket".into(),
        database: "/database".into(),
        log: "/log".into(),
        config: "/config".into(),
        config_changed: Some(ConfigChanged {
            at: Some(9),
            mistakes: vec![ConfigMistake {
                message: "unknown key".into(),
                file: "/config".into(),
                line: Some(3),
                column: Some(1),
                hint: Some("did you mean another".into()),
            }],
            agents: vec!["demo".into()],
        }),
    };
    let (agents, sessions) = (vec![agent()], vec![session()]);
    let status =
        Status { daemon, agents, unused: Some(42), sessions, omitted: Some(43), hosts: Vec::new() };
    insta::assert_json_snapshot!(status);
}

#[test]
fn what_a_configuration_comes_to_looks_like_this() {
    let value = |key: &str, value: Value, from| ConfigValue { key: key.into(), value, from };
    let file = |line, table: Option<&str>| ConfigPlace::File { line, table: table.map(Into::into) };
    insta::assert_json_snapshot!(ConfigValues {
        file: "/home/ada/.config/acpd/config.toml".into(),
        exists: true,
        agents: vec!["claude".into()],
        values: vec![
            value("default_agent", json!("claude"), vec![file(1, None)]),
            value("daemon.max_clients", json!(64), vec![ConfigPlace::Default]),
            value(
                "agents.claude.env",
                json!({"KEY": "[hidden]"}),
                vec![ConfigPlace::Catalogue, file(7, Some("agents.claude"))],
            ),
        ],
        dir: "/src".into(),
        here: vec![value("model", Value::Null, vec![ConfigPlace::Default])],
    });
}

#[test]
fn what_is_not_known_is_left_out() {
    let agent = AgentInfo {
        reason: None,
        pid: None,
        other_pids: vec![],
        rss: None,
        processes: None,
        version: None,
        hint: None,
        mcp: vec![],
        installed: None,
        install: None,
        default_mode: None,
        protocol: None,
        packages: Vec::new(),
        address: None,
        not_found: None,
        unsupported: Vec::new(),
        inherits: vec![],
        inherited: vec![],
        lacks: vec![],
        environment: vec![],
        login_shell: None,
        shims: Vec::new(),
        ..agent()
    };
    let session = SessionInfo {
        name: None,
        title: None,
        labels: Vec::new(),
        parent: None,
        pid: None,
        reason: None,
        limited_until: None,
        restore: None,
        last_line: None,
        doing: None,
        usage: None,
        turn: TurnInfo { state: TurnState::Idle, since: 0, last: None, reason: None },
        ..session()
    };
    insta::assert_json_snapshot!((agent, session));
}

#[test]
fn notices_look_like_this() {
    let session_id = || "s-1".into();
    let ended = |outcome| TurnEnded {
        session_id: session_id(),
        turn: 2,
        started_at: 7,
        at: 9,
        outcome,
        cut_short: None,
        tools: Some(1),
        files: vec!["/w/a".into()],
        usage: Some(TurnUsage {
            tokens: Tokens { total: Some(12), output: Some(8), ..Tokens::default() },
            cost: Some(usd(0.25)),
        }),
    };
    let reason = || "it died".into();
    insta::assert_json_snapshot!((
        TurnStarted { session_id: session_id(), turn: 2, at: 8 },
        ended(Outcome::Stopped { stop_reason: "end_turn".into() }),
        ended(Outcome::Error { code: -32603, message: "no".into() }),
        ended(Outcome::Interrupted { reason: reason() }),
        ended(Outcome::OutcomeUnknown { reason: reason() }),
        Restored {
            session_id: session_id(),
            level: RestoreLevel::Lost,
            at: 1,
            reason: Some(reason()),
            gets: None
        },
        StateChanged {
            session_id: session_id(),
            state: SessionState::Live,
            archived: true,
            turn: TurnState::Working,
            queued: 1,
            asked: vec!["call-1".into()],
            reason: None,
            hint: None
        },
        SessionGone { session_id: session_id() },
        SessionNotice { session_id: session_id(), severity: "info".into(), text: reason() },
        Skipped { session_id: session_id(), bytes: 10, limit: 5 },
        PromptQueued { session_id: session_id(), ahead: 1 },
        PromptRepeated { session_id: session_id(), turn: 2 },
        CaughtUp { session_id: session_id(), seq: 4 },
        AgentNotice { agent: "demo".into(), state: AgentState::Backoff, reason: None },
        PermissionDecided {
            session_id: session_id(),
            tool_call_id: Some("call-1".into()),
            title: None,
            subject: None,
            shown: Some(Box::new(Shown { kind: "read".into(), ..Shown::default() })),
            option_id: "y".into(),
            verdict: "allow".into(),
            by: "rule `read`".into(),
        },
    ));
}

/// A call with everything that there can be in one.
fn shown() -> Shown {
    let diff = |path: &str| ShownDiff { path: path.into(), ..ShownDiff::default() };
    Shown {
        kind: "execute".into(),
        title: Some("Run it".into()),
        commands: vec!["make".into()],
        folder: Some("/src".into()),
        paths: vec!["/src/a".into()],
        urls: vec!["https://a.example/".into()],
        diffs: vec![
            ShownDiff { old_text: Some("x".into()), new_text: "y".into(), ..diff("/src/a") },
            ShownDiff { left_out: 200_000, ..diff("/src/b") },
        ],
        unclear: vec![ShownUnclear { member: "env".into(), why: "is not known".into() }],
        raw: Some(RawCall { text: "{\"title\":\"Run it\"".into(), left_out: 7 }),
        always: Some("run `make`".into()),
    }
}

#[test]
fn what_hooks_are_told_looks_like_this() {
    let option =
        OptionInfo { option_id: "y".into(), name: "Yes".into(), kind: "allow_once".into() };
    let question = Question::Permission {
        title: Some("Run it".into()),
        tool_kind: Some("execute".into()),
        subject: Some("run `make`".into()),
        shown: Some(Box::new(shown())),
        changed: 1,
        options: vec![option],
    };
    let trouble = |reason: &str| AgentTroubleInfo {
        agent: "demo".into(),
        session_id: None,
        name: None,
        cwd: None,
        at: 1,
        reason: reason.into(),
    };
    let hooks = [
        HookInfo::Permission(InteractionInfo {
            id: "i-1".into(),
            agent: "demo".into(),
            session_id: Some("s-1".into()),
            name: Some("fix".into()),
            cwd: Some("/src".into()),
            parent: Some("plan".into()),
            at: 1,
            question,
        }),
        HookInfo::TurnEnd(TurnEndInfo {
            agent: "demo".into(),
            session_id: "s-1".into(),
            name: None,
            cwd: "/src".into(),
            at: 1,
            turn: 2,
            outcome: Outcome::Stopped { stop_reason: "end_turn".into() },
        }),
        HookInfo::Crash(trouble("it ended with exit code 3")),
        HookInfo::Login(trouble("authentication required")),
    ];
    for hook in &hooks {
        let told = serde_json::to_value(hook).unwrap();
        assert_eq!(told["event"], <&str>::from(HookEvent::from(hook)));
        assert_eq!(&serde_json::from_value::<HookInfo>(told).unwrap(), hook);
    }
    insta::assert_json_snapshot!(hooks);
}

#[test]
fn parameters_and_meta_look_like_this() {
    let session = SessionRef {
        session: "fix".to_owned(),
        agent: Some("demo".to_owned()),
        cwd: Some("/src".to_owned()),
        exact_name: true,
        number: Some(7),
    };
    let plain = SessionRef { session: "fix".to_owned(), ..SessionRef::default() };
    insta::assert_json_snapshot!((
        ClientMeta {
            agent: Some("demo".to_owned()),
            cwd: Some("/w".to_owned()),
            notices: true,
            seq: true,
            originals: true,
            max_line: Some(1 << 20),
            client: None,
            role: Some(Role::Observer),
            place: Some("pts/3".to_owned()),
            tool: true,
        },
        ClientMeta::default(),
        NewSessionMeta {
            name: Some("fix".to_owned()),
            reuse: true,
            parent: Some(7),
            labels: Some(vec!["urgent".to_owned()]),
        },
        AttachParams { session: session.clone(), after: Some(0), role: Role::Observer },
        CancelParams { session: plain.clone(), turn_only: false, background: true, by: None },
        CancelParams { session: plain.clone(), turn_only: true, background: false, by: None },
        RenameParams { session: plain.clone(), name: None },
        ReseedParams { session: plain.clone(), discard: false },
        ReseedParams { session: plain.clone(), discard: true },
        (
            TitleParams { session: plain.clone(), title: Some("Fix it".to_owned()) },
            LabelParams {
                session: plain,
                add: vec!["urgent".to_owned()],
                remove: vec!["later".to_owned()],
            },
        ),
        SessionListParams::default(),
        SessionListParams {
            archived: Some(ArchiveFilter::Only),
            labels: vec!["urgent".to_owned()],
            ..SessionListParams::default()
        },
        UpdateMeta { seq: Some(4), version: Some(2), ..UpdateMeta::default() },
        UpdateMeta { steered: true, ..UpdateMeta::default() },
        PermissionMeta {
            id: "i-1".to_owned(),
            shown: Shown { kind: "read".into(), ..Shown::default() },
            changed: 0
        },
        session,
    ));
}

#[test]
fn a_search_and_its_hits_look_like_this() {
    let words = vec!["parser".to_owned(), "fail*".to_owned()];
    let part = |text: &str, hit| Part { text: text.to_owned().into(), hit };
    let hit = |by, snippet| Hit { session: session(), seq: 3, at: 9, by, snippet };
    let hits = vec![
        hit(Speaker::Agent, vec![part("the ", false), part("parser", true)]),
        hit(Speaker::User, Vec::new()),
        hit(Speaker::Tool, Vec::new()),
    ];
    insta::assert_json_snapshot!((
        SearchParams {
            words: words.clone(),
            agent: Some("demo".to_owned()),
            cwd: Some("/src".to_owned()),
            limit: Some(5),
        },
        SearchParams { words, ..SearchParams::default() },
        SearchResult { hits },
    ));
}

fn id(text: &str) -> Id {
    serde_json::from_str(text).expect("an id")
}

fn client(resume: Option<Resume>) -> ClientMeta {
    let token = "0123456789abcdef".to_owned();
    let positions = resume.is_some();
    ClientMeta { client: Some(ClientToken { token, positions, resume }), ..ClientMeta::default() }
}

#[test]
fn only_a_line_with_a_position_is_split() {
    let line = br#" {"method":"m"}"#;
    for session in ["demo-ed19", "a\"b\n", ""] {
        let at = LinePosition(session.into(), u64::MAX);
        let numbered = at.before(line);
        assert_eq!(LinePosition::split(&numbered), Some((at, &line[..])));
    }
    assert!(LinePosition("s".into(), 7).before(b"{}").starts_with(br#"["s",7]{"#));
    for other in [r#"["s",7]"#, r#"{"jsonrpc":"2.0"}"#, "[", "", "[7]{}", r#"["s",-1]{}"#] {
        assert_eq!(LinePosition::split(other.as_bytes()), None);
    }
}

#[test]
fn usage_looks_like_this() {
    let total = |by: UsageTotal| UsageTotal { turns: 3, ..by };
    let tokens = Tokens {
        total: Some(6),
        input: Some(1),
        output: Some(2),
        thought: Some(3),
        cached_read: Some(4),
        cached_write: Some(5),
    };
    let totals = vec![
        total(UsageTotal {
            agent: Some("demo".into()),
            session_id: Some("s-1".into()),
            tokens,
            costs: vec![usd(0.5)],
            ..UsageTotal::default()
        }),
        total(UsageTotal { cwd: Some("/w".into()), untold: 3, ..UsageTotal::default() }),
        total(UsageTotal { day: Some(86_400_000), ..UsageTotal::default() }),
    ];
    insta::assert_json_snapshot!((
        UsageParams { since: 7, by: UsageBy::Workspace },
        UsageReport { totals },
    ));
}

#[test]
fn metrics_look_like_this() {
    let histogram = Histogram { buckets: vec![Bucket { le: 0.1, count: 1 }], sum: 2.5, count: 2 };
    let agent = AgentMetrics {
        name: "demo".into(),
        state: AgentState::Ready,
        restarts: 1,
        sessions: 2,
        processes: Some(3),
        rss: Some(4_096),
    };
    insta::assert_json_snapshot!(Metrics {
        version: "0.1.0".into(),
        since: 7,
        uptime: 1.5,
        rss: Some(8_192),
        clients: 1,
        agents: vec![agent],
        sessions: [(SessionState::Live, 2)].into(),
        turns: TurnMetrics { running: 1, questions: 0, ended: [("end_turn".to_owned(), 3)].into() },
        queues: QueueMetrics { prompts: 1, ..QueueMetrics::default() },
        journal: JournalMetrics {
            writable: true,
            events: 9,
            bytes: Some(4_096),
            index_bytes: None,
            expired: 2,
            removed: 300,
            given_back: 4_096,
        },
        latencies: Latencies { turn: histogram, ..Latencies::default() },
    });
}

#[test]
fn deleting_and_its_undo_look_like_this() {
    let plain = SessionRef { session: "fix".to_owned(), ..SessionRef::default() };
    insta::assert_json_snapshot!((
        RemoveParams { session: plain, now: true },
        RemoveResult { until: Some(9) },
        UndoParams { session: Some("fix".to_owned()), agent: None, since: Some(5) },
        UndoResult { session: session(), name_taken: Some("fix".into()), kept: 2 },
    ));
}

#[test]
fn what_the_limits_let_go_looks_like_this() {
    let gone = GcSession {
        session_id: "s-1".into(),
        number: 7,
        agent: "demo".into(),
        name: Some("fix".into()),
        title: None,
        cwd: "/w".into(),
        updated: 5,
        bytes: 4_096,
        limit: GcLimit::MaxAge,
        workspace: Some("/w".into()),
    };
    insta::assert_json_snapshot!((
        GcParams { dry_run: true, ..GcParams::default() },
        GcParams { dry_run: false, now: true, only: Some(vec![7]) },
        GcResult {
            sessions: vec![gone.clone()],
            bytes: 4_096,
            left: 3,
            until: Some(9),
            next: Some(8)
        },
        SessionsExpired { sessions: vec![gone], at: 7, until: Some(9) },
        [GcLimit::MaxSessions, GcLimit::MaxSize],
    ));
}

#[test]
fn a_queue_looks_like_this() {
    let prompt = || RawValue::from_string(r#"[{"type":"text","text":"go"}]"#.to_owned()).unwrap();
    let session = SessionRef { session: "fix".to_owned(), ..SessionRef::default() };
    let queued = QueuedPrompt { place: 1, ticket: 5, at: 9, prompt: prompt() };
    insta::assert_snapshot!(
        serde_json::to_string_pretty(&(
            QueueInfo { session_id: "s-1".into(), prompts: vec![queued] },
            QueueRemoveParams { session: session.clone(), ticket: 5, by: None },
            QueueEditParams {
                session,
                ticket: 5,
                prompt: prompt(),
                by: Some("acpctl queue".to_owned())
            },
        ))
        .unwrap()
    );
}

#[test]
fn coming_back_looks_like_this() {
    let resume = Resume {
        generation: "g-1".to_owned(),
        sessions: [("s-1".to_owned(), 4)].into(),
        leaving: [("s-2".to_owned(), Leaving { seq: 9, requests: vec![id("3")] })].into(),
        open: vec![id("3"), id("\"a\\u0062\"")],
        asked: vec![id("9")],
    };
    let shown = json!([
        client(None),
        client(Some(resume)),
        Resumed { generation: "g-1".to_owned(), received: 7, again: vec![id("3")] },
        Received { lines: 7 },
        Answered { ids: vec![id("\"3\"")] },
        LoadMeta { after: Some(4) },
        DaemonStopParams { detach: true },
    ]);
    // The order of members depends on features of a library that other crates turn on.
    insta::with_settings!({sort_maps => true}, { insta::assert_json_snapshot!(shown) });
}

#[test]
fn ids_keep_every_byte_and_what_is_optional_may_be_left_out() {
    let text =
        r#"{"token":"t","resume":{"generation":"g","open":[18446744073709551616,"\u0061"]}}"#;
    let token: ClientToken = serde_json::from_str(text).expect("the shortest form");
    let resume = token.resume.expect("a resume");
    assert_eq!(resume.open, [id("18446744073709551616"), id(r#""\u0061""#)]);
    assert_ne!(resume.open[1], id("\"a\""));
    assert!(resume.sessions.is_empty() && resume.leaving.is_empty() && resume.asked.is_empty());
    let first: ClientToken = serde_json::from_str(r#"{"token":"t"}"#).expect("a first connection");
    assert_eq!(first.resume, None);
    let stop: DaemonStopParams = serde_json::from_value(json!({})).expect("an empty object");
    assert!(!stop.detach);
}

#[test]
fn a_plain_client_may_leave_everything_out() {
    let meta: ClientMeta = serde_json::from_value(json!({})).expect("an empty object");
    assert_eq!(meta, ClientMeta::default());
    let attach = json!({ "ref": { "session": "fix" } });
    let attach: AttachParams = serde_json::from_value(attach).expect("the shortest form");
    assert_eq!((attach.after, attach.role), (None, Role::Controller));
}

#[test]
fn a_reason_of_a_newer_daemon_is_still_a_reason() {
    let data: ErrorData =
        serde_json::from_value(json!({ "reason": "moon_phase" })).expect("an unknown reason");
    assert_eq!(data.reason, Reason::Other);
    assert_eq!(ExitCode::from(data.reason), ExitCode::Error);
}

#[test]
fn every_exit_code_has_its_number_and_its_line() {
    let codes: Vec<Value> = ExitCode::ALL
        .iter()
        .map(|(code, text)| json!({ "code": code.code(), "text": text }))
        .collect();
    insta::assert_json_snapshot!(codes);
}
