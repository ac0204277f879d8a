//! Access to the page: sign-in, tokens, origins.

use serde_json::json;

use super::{Browser, Socket, Web, token};
use crate::{echo, home};

#[test]
fn a_code_lets_one_browser_in_once() {
    let env = home([echo()]);
    let web = Web::start(&env);
    let answer = web.sign_in_with(&web.code);
    assert_eq!(answer.status, 200);
    let signed_in = answer.json();
    assert_eq!(signed_in["scopes"], json!(["watch", "prompt", "answer"]));
    let cookie = answer.header("set-cookie").unwrap();
    let port = web.host.split_once(':').unwrap().1;
    assert!(cookie.starts_with(&format!("acpd-{port}=")), "{cookie}");
    for word in ["HttpOnly", "SameSite=Strict", "Path=/", "Max-Age="] {
        assert!(cookie.contains(word), "{word} is missing: {cookie}");
    }
    assert!(!cookie.contains("Secure"), "a browser would not take it without TLS: {cookie}");

    assert_eq!(web.sign_in_with(&web.code).status, 401, "a code works once");
    let browser = Browser::of(&web, &answer);
    let me = browser.me(&web);
    assert_eq!(me.status, 200);
    assert_eq!(me.json()["scopes"], signed_in["scopes"]);
    assert_eq!(me.json()["version"], env!("CARGO_PKG_VERSION"));

    // A second browser, with fewer scopes and a name, and while the first one stays.
    let pair = env.acpctl(&["web", "pair", "--name", "phone", "--scope", "watch"]).success();
    let (origin, code) = pair.stdout().trim().split_once("/#code=").unwrap();
    assert_eq!(origin, web.origin);
    let phone = web.sign_in_with(code).json();
    assert_eq!(phone["name"], "phone");
    assert_eq!(phone["scopes"], json!(["watch"]));
    let list = env.acpctl(&["web", "token", "list"]).success();
    assert_eq!(list.stdout().lines().count(), 2, "{}", list.stdout());
    // The verbs are also those of all other lists.
    let same = env.acpctl(&["web", "token", "ls"]).success();
    assert_eq!(same.stdout(), list.stdout());
    env.acpctl(&["web", "token", "rm", "phone"]).success().explains(&["revoked: phone"]);
}

#[test]
fn who_guesses_codes_is_stopped_and_who_is_in_stays_in() {
    let env = home([echo()]);
    let web = Web::start(&env);
    let browser = web.sign_in();
    let pair = env.acpctl(&["web", "pair"]).success();
    let code = pair.stdout().trim().split_once("/#code=").unwrap().1.to_owned();
    let tries: Vec<u16> =
        (0..11).map(|guess| web.sign_in_with(&format!("{guess:032x}")).status).collect();
    assert_eq!(tries, [&[401; 10][..], &[429]].concat());
    let answer = web.sign_in_with(&code);
    assert_eq!((answer.status, answer.header("retry-after")), (429, Some("60")));
    assert_eq!(browser.me(&web).status, 200);
    browser.socket().unwrap();
}

#[test]
fn a_name_of_a_stranger_is_refused_wherever_it_leads() {
    let env = home([echo()]);
    let web = Web::start(&env);
    let browser = web.sign_in();
    let port = web.host.split_once(':').unwrap().1;
    let strangers = [format!("evil.example:{port}"), "127.0.0.1".to_owned()];
    for host in &strangers {
        for line in ["GET /", "GET /me", "POST /sign-in", "POST /sign-out", "GET /acp", "GET /none"]
        {
            let request =
                web.bare(line).header("host", host).header("origin", &format!("http://{host}"));
            let request = request
                .header("cookie", &browser.cookie)
                .header("authorization", &browser.bearer());
            assert_eq!(
                request.json(&json!({"code": web.code})).send().status,
                421,
                "{line} at {host}"
            );
        }
    }
    assert_eq!(web.bare("GET /").send().status, 421, "no name at all");
    let twice = web.bare("GET /").header("host", &web.host).header("host", "evil.example").send();
    assert!([400, 421].contains(&twice.status), "{twice:?}");
    let elsewhere = web.bare("GET http://evil.example/").header("host", &web.host).send();
    assert!([400, 421].contains(&elsewhere.status), "{elsewhere:?}");
    for name in ["localhost", "127.0.0.1", "[::1]"] {
        assert_eq!(web.bare("GET /").header("host", &format!("{name}:{port}")).send().status, 200);
    }
}

#[test]
fn another_site_is_refused_before_its_key_is_looked_at() {
    let env = home([echo()]);
    let web = Web::start(&env);
    let browser = web.sign_in();
    let port = web.host.split_once(':').unwrap().1;
    let strangers =
        ["http://evil.example".to_owned(), "null".to_owned(), format!("https://127.0.0.1:{port}")];
    for origin in &strangers {
        for line in ["GET /", "GET /me", "POST /sign-in", "POST /sign-out", "GET /acp"] {
            let request = web.bare(line).header("host", &web.host).header("origin", origin);
            let request = request
                .header("cookie", &browser.cookie)
                .header("authorization", &browser.bearer());
            assert_eq!(
                request.json(&json!({"code": web.code})).send().status,
                403,
                "{line} from {origin}"
            );
        }
        let url = format!("ws://{}/acp", web.host);
        let headers = [
            ("origin", &**origin),
            ("cookie", &browser.cookie),
            ("sec-websocket-protocol", &format!("acp.v1, bearer.{}", browser.key)),
        ];
        assert_eq!(Socket::open(&web.host, &url, &headers).unwrap_err(), 403, "{origin}");
    }
    // Requests that a form or a script of another site may send without asking first.
    let form =
        web.own("POST /sign-in").header("content-type", "text/plain").header("content-length", "0");
    assert_eq!(form.send().status, 415);
    // A browser that asks first learns of nothing that it may do.
    let asks = web.own("OPTIONS /acp").header("access-control-request-method", "POST").send();
    assert_eq!((asks.status, asks.header("access-control-allow-origin")), (405, None));
    // Neither a page nor a program.
    let nobody =
        web.bare("POST /sign-in").header("host", &web.host).json(&json!({"code": web.code}));
    assert_eq!(nobody.send().status, 403);
    assert_eq!(browser.me(&web).status, 200);
}

#[test]
fn neither_a_key_nor_a_cookie_is_enough_alone() {
    let env = home([echo()]);
    let web = Web::start(&env);
    let browser = web.sign_in();
    let other = {
        let pair = env.acpctl(&["web", "pair"]).success();
        Browser::of(&web, &web.sign_in_with(pair.stdout().trim().split_once("/#code=").unwrap().1))
    };
    let protocols = format!("acp.v1, bearer.{}", browser.key);
    let open = |headers: &[(&str, &str)]| {
        Socket::open(&web.host, &format!("ws://{}/acp", web.host), headers).err()
    };
    let origin = ("origin", &*web.origin);
    assert_eq!(open(&[origin, ("sec-websocket-protocol", &protocols)]), Some(401), "a key alone");
    assert_eq!(
        open(&[origin, ("cookie", &browser.cookie), ("sec-websocket-protocol", "acp.v1")]),
        Some(401)
    );
    assert_eq!(
        open(&[origin, ("cookie", &other.cookie), ("sec-websocket-protocol", &protocols)]),
        Some(401)
    );
    assert_eq!(
        open(&[("authorization", &browser.bearer())]),
        Some(401),
        "a browser's key is none for a program"
    );
    // A page cannot use the token of a program, even if it has found one.
    let program = token(&env, "ide", "watch");
    let protocols = format!("acp.v1, bearer.{program}");
    assert_eq!(
        open(&[origin, ("cookie", &browser.cookie), ("sec-websocket-protocol", &protocols)]),
        Some(401)
    );
    assert_eq!(
        open(&[("sec-websocket-protocol", &protocols)]),
        Some(403),
        "neither a page nor a program"
    );
    assert_eq!(open(&[]), Some(403));
    web.program(&program);
    browser.socket().unwrap();
}

#[test]
fn every_answer_has_its_headers() {
    let env = home([echo()]);
    let web = Web::start(&env);
    let get = |path: &str| web.own(&format!("GET {path}")).send();
    let page = get("/");
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(page.header("cache-control"), Some("no-cache"));
    let mark = page.header("etag").unwrap().to_owned();
    let unchanged = web.own("GET /").header("if-none-match", &mark).send();
    assert_eq!((unchanged.status, unchanged.body.len()), (304, 0));
    let packed = web.own("GET /").header("accept-encoding", "br, gzip;q=0.8").send();
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert!(packed.body.starts_with(&[0x1f, 0x8b]));
    assert!(web.own("HEAD /").send().body.is_empty());
    assert_eq!(get("/index.html").body, page.body);

    let answers = [
        page,
        unchanged,
        packed,
        get("/none"),
        get("/../Cargo.toml"),
        get("/me"),
        get("/acp"),
        web.own("DELETE /").send(),
        web.sign_in_with("wrong"),
        web.bare("GET /").header("host", "evil").send(),
        web.own("GET /").header("origin", "http://evil").send(),
        web.sign_in_with(&web.code),
    ];
    assert_eq!(
        answers.each_ref().map(|answer| answer.status),
        [200, 304, 200, 404, 404, 401, 401, 405, 401, 421, 403, 200]
    );
    for answer in &answers {
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("referrer-policy"), Some("no-referrer"));
        assert_eq!(answer.header("cross-origin-opener-policy"), Some("same-origin"));
        assert_eq!(answer.header("cross-origin-resource-policy"), Some("same-origin"));
        assert_eq!(answer.header("access-control-allow-origin"), None);
        let policy = answer.header("content-security-policy").unwrap();
        let sockets =
            if answer.status == 421 { String::new() } else { format!(" ws://{}", web.host) };
        assert!(
            policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"),
            "{policy}"
        );
        assert!(
            policy.contains("require-trusted-types-for 'script'; trusted-types acpd-sw;"),
            "{policy}"
        );
        assert!(policy.ends_with(&format!("; connect-src 'self'{sockets}")), "{policy}");
        if answer.status >= 400 && answer.status != 405 {
            assert!(answer.json()["error"].is_string() && answer.json()["hint"].is_string());
        }
    }
}

#[test]
fn there_is_one_server_and_it_is_found() {
    let env = home([echo()]);
    env.acpctl(&["web", "pair"]).code(1).explains(&["`acpctl web` does not run", "hint: start it"]);
    let web = Web::start(&env);
    let pid = web.pid().to_string();
    env.acpctl(&["web"]).code(1).explains(&[
        "runs already at",
        &web.origin,
        &pid,
        "acpctl web pair",
    ]);
}

#[test]
fn an_agent_lets_nobody_in() {
    let env = home([echo()]);
    let _web = Web::start(&env);
    for args in [&["web", "pair"][..], &["web", "token", "new", "mine"]] {
        let mut command = env.acpctl_command(args);
        command.env("ACPD_HOST", "some-agent");
        let done = acpd_test::harness::Running::start(command).finish().code(1);
        assert_eq!(done.explains(&["under an agent"]).stdout(), "");
    }
}
