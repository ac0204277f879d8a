//! Globs of directories outside of rules.

mod support;

use acpd_policy::Workspaces;
use support::{HOME, place};

fn globs(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| place(text)).collect()
}

#[test]
fn a_directory_matches_in_its_plain_form() {
    let workspaces = Workspaces::new(&globs(&["~/src/**", "/work"]), Some(HOME)).unwrap();
    for inside in ["/home/me/src/app", "/home/me/src/a/../b/.", "/work", "/work/"] {
        assert!(workspaces.contain(&place(inside)), "{inside}");
    }
    for outside in ["/home/me/srcs/app", "/home/me/src/../../you", "/work/app", "src/app"] {
        assert!(!workspaces.contain(&place(outside)), "{outside}");
    }
    assert_eq!(workspaces.texts().collect::<Vec<_>>(), ["~/src/**".to_owned(), place("/work")]);
}

#[test]
fn a_glob_that_could_never_match_is_an_error_with_the_way_out() {
    let error = Workspaces::new(&globs(&["/a", "src/**"]), None).unwrap_err();
    assert_eq!(error.to_string(), "the glob `src/**` is not an absolute path");
    assert_eq!(error.hint, Some("start it with `/`, `~/` or `**/`"));
}
