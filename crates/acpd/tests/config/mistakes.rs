//! Mistakes in a file: each with its place and what to do, and all at once.

use insta::assert_snapshot;

use super::mistake;

#[test]
fn all_mistakes_are_told_in_the_order_of_the_file_each_with_its_way_out() {
    assert_snapshot!(mistake(
        "default_agent = 5\n\
         [daemon]\nzzz = 1\nmax_clients = 0\n\
         [agents.claude]\ncomand = 'x'\nstop.eof = 3\n\
         [agents.mine]\nidle_timeout = '1m'\n\
         [agents.Mine]\n\
         [mcp.a]\nagents = ['copilto', 'codxe']\n\
         [[workspace]]\nagent = 'dmo'",
    ), @r#"
    error: the configuration has 12 mistakes:
      `default_agent` must be a string, not a whole number (config.toml:1:17)
        hint: put it in quotes
      unknown key `zzz` in `[daemon]` (config.toml:3:1)
      `max_clients` in `[daemon]` must be a whole number from 1, not 0 (config.toml:4:15)
      unknown key `comand` in `[agents.claude]` (config.toml:6:1)
        hint: did you mean `command`?
      `stop.eof` in `[agents.claude]` must be a duration like "3s", not a whole number (config.toml:7:12)
        hint: the units are ms, s, m, h and d, as in "250ms" or "30m"
      agent `mine` has no `command` (config.toml:8:9)
        hint: say how to start it: `command = ["mine", …]`
      `Mine` is not a name for an agent (config.toml:10:9)
        hint: a name is made of lower-case letters, digits and `-`, and begins with a letter
      MCP server `a` has neither `command` nor `url` (config.toml:11:6)
        hint: say how to start it (`command = ["program", …]`) or where it is (`url`)
      `agents` in `[mcp.a]`: no agent is called `codxe` (config.toml:12:10)
        hint: did you mean `codex`?
      `agents` in `[mcp.a]`: no agent is called `copilto` (config.toml:12:10)
        hint: did you mean `copilot`?
      `[[workspace]]` has no `path` (config.toml:13:1)
        hint: say which directory it is: `path = "~/src/api"`
      `agent` in `[[workspace]]`: no agent is called `dmo` (config.toml:13:1)
        hint: did you mean `demo`?
    "#);
}

/// Files with a mistake each. What may come of it is not told: the last ones may well have a command or a server.
const MISTAKES: [&str; 59] = [
    "[hosts.'a b']",
    "[hosts.all]",
    "[hosts.box]\nmap = { '/a' = '~/b' }",
    "[hosts.box]\nshared = ['/a', 'b']",
    "[hosts.box]\nshared = '/a'",
    "[daemon]\nhost = 'direct'",
    "[hooks]\non_login = ''",
    "[hooks]\non_login = 5",
    "[hooks]\non_logon = 'x'",
    "on_crash = 'x'",
    "[agents.a]\ncommand = 'a'\ntcp.port = 1",
    "[agents.a]\ncommand = 'a'\ntcp.connect = 'x:1'",
    "[agents.a]\ntcp = { connect = 'x:1', spawn = true }",
    "[agents.a]\ntcp.connect = 'x'",
    "[agents.a]\ntcp = { spawn = true, port = 70000 }",
    "[agents.a]\ntcp.spawn = true",
    "[defaults]\ncommand = 'x'",
    "[agents.claude]\ntried = true",
    "[defaults]\nstop = '3s'",
    "[agents.claude]\nargs = ['a', 5]",
    "[agents.claude]\nargs = 'a'",
    "[defaults]\nenv = 1979-05-27",
    "[[workspace]]\npath = 5",
    "[agents.claude]\ncommand = true",
    "[agents.claude]\nlate_replay = 'yes'",
    "[defaults]\nidle_timeout = '30 minutes'",
    "[defaults]\nidle_timeout = '400d'",
    "[defaults]\nstart_timeout = '0s'",
    "[daemon]\nline_limit = 64",
    "[daemon]\nline_limit = '1GiB'",
    "[daemon]\nmax_clients = -1",
    "[daemon]\nlog_level = 'inof'",
    "[defaults]\nrestore = ['resume', 'new']",
    "[agents.claude]\nclient_meta = ['a..b']",
    "[agents.claude]\nclient_meta = ['_acpd.client']",
    "[defaults]\ninherit_env = ['A*B']",
    "[defaults]\ncwd = 'work'",
    "[agents.claude]\ncommand = []",
    "defaults.env = { 'Ä' = 'ö', B = 1 }",
    "[agents.a]\ncommand = 'a'\ncredentials.TOKEN = { keyring = 'groq/ada' }",
    "[budget]\nper_day = '5'",
    "per_day = '5 USD'",
    "[workspace]\npath = '/src'",
    "[mcp.a]\ncommand = 'a'\nworkspace = 'src/**'",
    "[mcp.'a b']\ncommand = 'a'",
    "[mcp.a]\ncommand = 'a'\nurl = 'http://x'",
    "[mcp.a]\nbuiltin = ['delegate']",
    "[mcp.a]\ncommand = 'a'\nmax_depth = 3",
    "[mcp.a]\nbuiltin = ['dig']",
    "[mcp.a]\ncommand = 'a'\ntype = 'sse'",
    "[mcp.a]\nurl = 'http://x'\nargs = ['a']",
    "[mcp.a]\nurl = 'ftp://x'",
    "[mcp.a]\nurl = 'http://x'\ntype = 'stdio'",
    "[mcp.a]\ncommand = 'a'\nagents = []",
    "[mcp.a]\ncommand = 'a'\nworkspace = []",
    "[agents.mine]\ncommand = 5",
    "[mcp.a]\ncomand = 'a'",
    "[daemon\nzzz = 1\n[hooks]\na b = 2",
    "[defaults]\nidle_timeout = 30\n[agents.mine]\ncommand = 'a'",
];

#[test]
fn each_mistake_has_its_place_and_its_way_out() {
    let explained = MISTAKES.map(|text| format!("{text}\n\n{}\n\n--\n\n", mistake(text)));
    assert_snapshot!("each_mistake", explained.concat());
}

#[test]
fn each_rule_of_the_policy_has_its_place() {
    assert_snapshot!(mistake(
        "[policy]\ndefault = 'alow'\nrule = 1\n\
         [[policy.rules]]\ndecision = 'allow'\npath = []\n\
         [[policy.rules]]\ndecision = 'allow'\ncomand = 'x'\n\
         [[policy.rules]]\nname = 'w'\ndecision = 'allow'\nworkspace = 'src'",
    ), @r#"
    error: the configuration has 5 mistakes:
      `default` in `[policy]` must be "ask" or "allow" or "reject", not "alow" (config.toml:2:11)
        hint: did you mean `allow`?
      unknown key `rule` in `[policy]` (config.toml:3:1)
        hint: did you mean `rules`?
      `policy`: policy rule `rule 1`: `path` is an empty list (config.toml:4:1)
        hint: remove the condition, or list what it should match
      unknown key `comand` in `[[policy.rules]]` (config.toml:9:1)
        hint: did you mean `command`?
      `policy`: policy rule `w`: the glob `src` of `workspace` is not an absolute path (config.toml:10:1)
        hint: start it with `/`, `~/` or `**/`
    "#);
}

#[test]
fn a_file_of_nothing_but_mistakes_is_not_told_to_its_end() {
    let lines: Vec<String> = (0..150).map(|key| format!("key{key} = 1")).collect();
    let told = mistake(&lines.join("\n"));
    assert!(told.starts_with("error: the configuration has 150 mistakes:\n  unknown key `key0`"));
    assert!(told.ends_with("unknown key `key99` (config.toml:100:1)\n  and 50 more"), "{told}");
}
