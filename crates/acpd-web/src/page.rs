//! The files of the page, built into the program. Addresses of code have the [`VERSION`], so
//! browsers keep code for good. Everything else is checked at each use, so a new version shows at
//! once.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderMap, IF_NONE_MATCH,
    VARY,
};
use axum::http::{HeaderName, StatusCode};
use axum::response::{IntoResponse as _, Response};
use sha2::{Digest as _, Sha256};

use crate::refusal::Refusal;
use crate::secret::hex;

/// Path below `page`, content, content packed by gzip.
static FILES: &[(&str, &[u8], &[u8])] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

pub(crate) const VERSION: &str = include!(concat!(env!("OUT_DIR"), "/version.rs"));

#[derive(Debug)]
struct File {
    path: &'static str,
    kind: String,
    mark: String,
    plain: &'static [u8],
    packed: &'static [u8],
}

#[derive(Debug)]
pub(crate) struct Page(Vec<File>);

impl Page {
    pub(crate) fn new() -> Page {
        let file = |&(path, plain, packed): &(&'static str, &'static [u8], &'static [u8])| {
            let mark = format!("W/\"{}\"", &hex(&Sha256::digest(plain))[..16]);
            File { path, kind: kind(path), mark, plain, packed }
        };
        Page(FILES.iter().map(file).collect())
    }

    /// A file, by its path with or without this version.
    fn find(&self, path: &str) -> Option<&File> {
        let path = path.strip_prefix('/')?;
        let path = in_version(path).unwrap_or(path);
        let path = if path.is_empty() { "index.html" } else { path };
        self.0.iter().find(|file| file.path == path)
    }
}

/// The path behind this version.
fn in_version(path: &str) -> Option<&str> {
    path.strip_prefix(VERSION)?.strip_prefix('/').filter(|path| !path.is_empty())
}

/// The media type of a file.
fn kind(path: &str) -> String {
    let kind = mime_guess::from_path(path).first_or_octet_stream();
    let is_text = kind.type_() == "text";
    if is_text { format!("{kind}; charset=utf-8") } else { kind.to_string() }
}

pub(crate) async fn page(State(page): State<Arc<Page>>, request: Request) -> Response {
    let Some(file) = page.find(request.uri().path()) else {
        let hint = "the page is at `/`";
        return Refusal::new(StatusCode::NOT_FOUND, "there is no such file", hint).into_response();
    };
    let is_fixed =
        request.uri().path().strip_prefix('/').is_some_and(|path| in_version(path).is_some());
    let keep = if is_fixed { "max-age=31536000, immutable" } else { "no-cache" };
    let headers = request.headers();
    let response = if has_token(headers, &IF_NONE_MATCH, &file.mark) {
        StatusCode::NOT_MODIFIED.into_response()
    } else if has_token(headers, &ACCEPT_ENCODING, "gzip") {
        ([(CONTENT_ENCODING, "gzip")], file.packed).into_response()
    } else {
        file.plain.into_response()
    };
    let headers = [
        (CONTENT_TYPE, &*file.kind),
        (ETAG, &*file.mark),
        (CACHE_CONTROL, keep),
        (VARY, "accept-encoding"),
    ];
    (headers, response).into_response()
}

/// Returns whether a list in a header has this word.
fn has_token(headers: &HeaderMap, name: &HeaderName, word: &str) -> bool {
    let lists = headers.get_all(name).into_iter().filter_map(|list| list.to_str().ok());
    let mut words = lists.flat_map(|list| list.split(','));
    words.any(|found| found.split(';').next().is_some_and(|found| found.trim() == word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shell_and_the_service_worker_name_the_files_of_their_version() {
        let page = Page::new();
        let text = |path| String::from_utf8(page.find(path).unwrap().plain.to_vec()).unwrap();
        let shell = text("/");
        let named: Vec<&str> =
            shell.split("=\"/").skip(1).filter_map(|rest| rest.split('"').next()).collect();
        assert!(named.len() > 12);
        for name in named {
            let kind = std::path::Path::new(name).extension();
            let is_code = kind.is_some_and(|kind| kind == "js" || kind == "css");
            assert!(page.find(&format!("/{name}")).is_some(), "{name}");
            assert_eq!(in_version(name).is_some(), is_code, "{name}");
        }
        let worker = text("/sw.js");
        assert!(worker.contains(&format!("VERSION = '{VERSION}'")), "{worker}");
        let list = worker.split("FILES = ").nth(1).and_then(|rest| rest.split(';').next()).unwrap();
        let files: Vec<String> = serde_json::from_str(list).unwrap();
        assert!(files.contains(&"ui/conversation.js".to_owned()));
        assert!(files.iter().all(|name| page.find(&format!("/{VERSION}/{name}")).is_some()));
    }

    #[test]
    fn every_file_has_a_type_and_nothing_else_is_found() {
        let page = Page::new();
        for file in &page.0 {
            assert_ne!(file.kind, "application/octet-stream", "{}", file.path);
        }
        assert_eq!(page.find("/").unwrap().kind, "text/html; charset=utf-8");
        for path in ["", "/../Cargo.toml", "//index.html", "/page/index.html", "/.", "/INDEX.html"]
        {
            assert!(page.find(path).is_none(), "{path}");
        }
        let in_version = page.find(&format!("/{VERSION}/main.js")).unwrap();
        assert_eq!(in_version.path, "main.js");
        assert!(
            page.find(&format!("/{VERSION}/")).is_none() && page.find("/v-0/main.js").is_none()
        );
        assert_eq!(kind("a/b.js"), "text/javascript; charset=utf-8");
        assert_eq!(kind("a.css"), "text/css; charset=utf-8");
        assert_eq!(kind("a.webmanifest"), "application/manifest+json");
        assert_eq!(kind("a.svg"), "image/svg+xml");
    }
}
