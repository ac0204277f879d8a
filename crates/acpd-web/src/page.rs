//! The files of the page, and nothing else. They are in the program; a browser asks each time whether its copy is
//! still the one, so a new version shows at once.

use std::borrow::Cow;
#[cfg(debug_assertions)]
use std::path::PathBuf;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_TYPE, ETAG, HeaderMap, IF_NONE_MATCH,
    VARY,
};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use sha2::{Digest as _, Sha256};

use crate::refusal::Refusal;
use crate::secret::hex;

/// Path below `page`, content, content packed by gzip.
static FILES: &[(&str, &[u8], &[u8])] = include!(concat!(env!("OUT_DIR"), "/files.rs"));

/// A file, ready to be sent.
#[derive(Debug)]
struct File {
    path: String,
    kind: String,
    mark: String,
    plain: Cow<'static, [u8]>,
    packed: Option<&'static [u8]>,
}

impl File {
    fn new(path: &str, plain: Cow<'static, [u8]>, packed: Option<&'static [u8]>) -> File {
        let mark = format!("W/\"{}\"", &hex(&Sha256::digest(&plain))[..16]);
        File { path: path.to_owned(), kind: kind(path), mark, plain, packed }
    }

    /// As it is on disk at this moment, for those who work on the page. No release looks there.
    #[cfg(debug_assertions)]
    fn on_disk(path: &str) -> Option<File> {
        let folder = PathBuf::from(std::env::var_os("ACPD_WEB_PAGE")?);
        let is_plain = path.split('/').all(|part| !part.is_empty() && !part.starts_with('.'));
        let plain = std::fs::read(folder.join(path)).ok().filter(|_| is_plain)?;
        Some(File::new(path, plain.into(), None))
    }
}

/// All files.
#[derive(Debug)]
pub(crate) struct Page(Vec<Arc<File>>);

impl Page {
    pub(crate) fn new() -> Page {
        let file = |(path, plain, packed): &(&str, &'static [u8], &'static [u8])| {
            Arc::new(File::new(path, Cow::Borrowed(*plain), Some(*packed)))
        };
        Page(FILES.iter().map(file).collect())
    }

    fn find(&self, path: &str) -> Option<Arc<File>> {
        let path = path.strip_prefix('/')?;
        let path = if path.is_empty() { "index.html" } else { path };
        #[cfg(debug_assertions)]
        if let Some(file) = File::on_disk(path) {
            return Some(Arc::new(file));
        }
        self.0.iter().find(|file| file.path == path).cloned()
    }
}

/// What a browser takes a file for; the text of the page is UTF-8.
fn kind(path: &str) -> String {
    let kind = mime_guess::from_path(path).first_or_octet_stream();
    let is_text = kind.type_() == "text";
    if is_text { format!("{kind}; charset=utf-8") } else { kind.to_string() }
}

/// Answers with a file.
pub(crate) async fn page(State(page): State<Arc<Page>>, request: Request) -> Response {
    let Some(file) = page.find(request.uri().path()) else {
        let hint = "the page is at `/`";
        return Refusal::new(StatusCode::NOT_FOUND, "there is no such file", hint).into_response();
    };
    let headers = request.headers();
    let mut response = if has_token(headers, &IF_NONE_MATCH, &file.mark) {
        StatusCode::NOT_MODIFIED.into_response()
    } else if let Some(packed) =
        file.packed.filter(|_| has_token(headers, &ACCEPT_ENCODING, "gzip"))
    {
        ([(CONTENT_ENCODING, "gzip")], packed).into_response()
    } else {
        file.plain.clone().into_response()
    };
    let headers = [
        (CONTENT_TYPE, &*file.kind),
        (ETAG, &*file.mark),
        (CACHE_CONTROL, "no-cache"),
        (VARY, "accept-encoding"),
    ];
    for (name, value) in headers {
        // Types and marks have no characters that a header may not have.
        let _ =
            HeaderValue::from_str(value).map(|value| response.headers_mut().insert(name, value));
    }
    response
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
        assert_eq!(kind("a/b.js"), "text/javascript; charset=utf-8");
        assert_eq!(kind("a.css"), "text/css; charset=utf-8");
        assert_eq!(kind("a.webmanifest"), "application/manifest+json");
        assert_eq!(kind("a.svg"), "image/svg+xml");
    }
}
