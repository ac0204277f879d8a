//! Translates the configuration for the hub.

use std::collections::BTreeMap;
use std::time::Duration;

use acpd_api::{DaemonInfo, Untrusted};
use acpd_core::profile::{
    BudgetLimit, Config as HubConfig, Defaults, Delegation, Limits, McpServer, Profile, Restart,
    Services, StopTimes, TimeZone, Workspace,
};
use acpd_sys::paths::Paths;

use crate::config::{self, Config, Offer, RestoreMethod};

pub fn hub_config(config: &Config, paths: &Paths, since: u64) -> HubConfig {
    let agents = config.agents.values().filter(|profile| profile.enabled);
    let config::Budget { per_day, when_over } = config.budget.clone();
    HubConfig {
        default_agent: config.default_agent.clone(),
        default_is_found: config.default_is_found,
        agents: agents.map(|p| (p.name.clone(), hub_profile(config, p, paths))).collect(),
        quirks: quirks(config, paths),
        // Checked when the configuration was read.
        policy: config::policy(&config.policy).unwrap_or_default(),
        line_limit: config.daemon.line_limit,
        max_clients: config.daemon.max_clients,
        newest: config.daemon.protocols.iter().copied().max().unwrap_or_default(),
        cold_starts: config.daemon.cold_starts,
        notify: config.daemon.notify,
        hooks: config.hooks.configured().map(|(event, _)| event).collect(),
        keep_deleted: ms(config.daemon.keep_deleted),
        workspaces: config.workspaces.iter().map(workspace).collect(),
        retention: limits(&config.retention),
        budget: per_day.map(|per_day| BudgetLimit { per_day, when_over }),
        delegation: delegation(config),
        time_zone: TimeZone::system,
        daemon: DaemonInfo {
            version: env!("CARGO_PKG_VERSION").into(),
            pid: std::process::id(),
            since,
            socket: Untrusted::of(paths.socket().display()),
            database: Untrusted::of(paths.database().display()),
            log: Untrusted::of(paths.daemon_log().display()),
            config: Untrusted::of(paths.config_file().display()),
            ..DaemonInfo::default()
        },
        hides_plans: !config.tui.show_plan,
    }
}

fn quirks(config: &Config, paths: &Paths) -> BTreeMap<String, Profile> {
    let named = config.agents.values().filter(|known| !known.info_names.is_empty());
    let profiles = named.flat_map(|known| {
        let names = known.info_names.iter();
        names.map(move |name| (name.clone(), hub_profile(config, known, paths)))
    });
    profiles.collect()
}

fn workspace(workspace: &config::Workspace) -> Workspace {
    Workspace {
        path: workspace.dir().to_string_lossy().into_owned(),
        agent: workspace.agent.clone(),
        defaults: Defaults { model: workspace.model.clone(), mode: workspace.mode.clone() },
        keep: workspace.keep,
        retention: limits(&workspace.retention),
    }
}

fn limits(retention: &config::Retention) -> Limits {
    Limits {
        max_age: retention.max_age.map(ms),
        max_sessions: retention.max_sessions,
        max_size: retention.max_size,
    }
}

fn delegation(config: &Config) -> Delegation {
    config.mcp.values().find(|server| !server.builtin.is_empty()).map_or_else(
        Delegation::default,
        |server| Delegation {
            max_depth: server.max_depth,
            max_sessions: server.max_sessions,
            answer: server.answer,
        },
    )
}

fn hub_profile(config: &Config, profile: &config::Profile, paths: &Paths) -> Profile {
    Profile {
        title: profile.title.clone().unwrap_or_else(|| profile.name.clone()),
        command: profile.command.clone(),
        fingerprint: config::fingerprint(profile),
        log: paths.agent_log(&profile.name).display().to_string(),
        login_hint: profile.login.clone(),
        auth_errors: profile.auth_errors.clone(),
        gone_errors: profile.gone_errors.clone(),
        credentials_ttl: credentials_ttl(profile),
        has_login_file: profile.login_file.is_some(),
        tried: profile.tried,
        sharing: profile.sharing,
        idle_timeout: profile.idle_timeout.map_or(0, ms),
        session_idle_timeout: profile.session_idle_timeout.map_or(0, ms),
        start_timeout: ms(profile.start_timeout),
        restore_timeout: ms(profile.restore_timeout),
        cancel_timeout: ms(profile.cancel_timeout),
        stall_notice: profile.stall_notice.map_or(0, ms),
        stop: StopTimes {
            eof: ms(profile.stop.eof),
            term: ms(profile.stop.term),
            leftovers: ms(profile.stop.leftovers),
        },
        restart: Restart {
            on_failure: profile.restart_on_failure,
            delay: ms(profile.restart_delay),
            max_delay: ms(profile.restart_max_delay),
            budget: profile.restart_budget,
            window: ms(profile.restart_window),
            ready_after: ms(profile.ready_after),
        },
        takes_quirks: profile.position.is_none(),
        late_replay: profile.late_replay,
        load_after: ms(profile.load_after),
        replays: profile.replays,
        empty_turn_fails: profile.empty_turn_fails,
        failed_turn: profile.failed_turn.clone(),
        use_resume: profile.restore.contains(&RestoreMethod::Resume),
        use_load: profile.restore.contains(&RestoreMethod::Load),
        restore_mcp: profile.restore_mcp,
        persist_history: profile.persist_history,
        closed_by: profile.closed_by,
        defaults: Defaults { model: profile.model.clone(), mode: profile.mode.clone() },
        on_lost: profile.on_lost,
        reseed: profile.reseed,
        on_interrupted: profile.on_interrupted,
        on_limit: profile.on_limit,
        mcp: servers(config, &profile.name),
        services: services(profile),
        subagents: profile.subagents,
        protocol: profile.protocol,
        client_meta: profile.client_meta.clone(),
    }
}

pub fn services(profile: &config::Profile) -> Services {
    Services {
        fs: profile.services.contains(&Offer::Fs),
        terminal: profile.services.contains(&Offer::Terminal),
    }
}

/// Returns how long all credentials are valid that can change.
fn credentials_ttl(profile: &config::Profile) -> Option<u64> {
    let changing = profile.credentials.values().filter(|credential| credential.can_change());
    changing.filter_map(|credential| credential.ttl).min().map(ms)
}

/// Returns what the hub may know of the servers for an agent.
fn servers(config: &Config, agent: &str) -> Vec<McpServer> {
    let servers = config.mcp.values().filter(|server| server.is_for(agent));
    let known = |server: &config::McpServer| McpServer {
        name: server.name.clone(),
        kind: server.kind(),
        workspace: server.workspace.clone(),
        builtin: !server.builtin.is_empty(),
    };
    servers.map(known).collect()
}

fn ms(duration: Duration) -> u64 {
    duration.as_millis() as u64
}
