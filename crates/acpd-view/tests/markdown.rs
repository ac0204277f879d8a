//! Markdown that grows: its lines on the screen.

use acpd_api::escape;
use acpd_view::{Markdown, Text};
use proptest::prelude::*;

const SAMPLE: &str = "\
# Why it fails

The cookie was **always marked `secure`**, so plain-HTTP tests never sent it: see
[the docs](https://example.org/cookies) or <https://example.org/>.

1. `set_secure` follows the *configuration* now
2. the test in `tests/login.rs` covers both
   - with TLS, which needs a certificate that is made while the tests run
   - without

> It is ~~not~~ possible
> to quote
>
> - lists, too

```rust
fn main() {
\tprintln!(\"a long line that does not fit into the width of the screen\");
}
```

| file | lines | what |
|:-----|------:|------|
| src/auth/cookie.rs | 12 | builds the cookie from the configuration |
| tests/login.rs | 140 | tries both |

- [x] done
- [ ] to do

---

<b>no html</b> &amp; entities
";

fn text(lines: &[Text]) -> String {
    lines.iter().map(|line| line.to_string() + "\n").collect()
}

fn whole(source: &str, width: usize) -> String {
    text(&Markdown::whole(&source.into(), width))
}

#[test]
fn markdown_looks_like_this() {
    insta::assert_snapshot!("wide", whole(SAMPLE, 80));
    insta::assert_snapshot!("narrow", whole(SAMPLE, 40));
    insta::assert_snapshot!("very_narrow", whole(SAMPLE, 16));
}

#[test]
fn a_link_says_where_it_leads_unless_its_text_does() {
    assert_eq!(whole("[a](https://b.example/)", 80), "a (https://b.example/)\n");
    assert_eq!(whole("<https://b.example/>", 80), "https://b.example/\n");
    let disguised = "<https://good.example@evil.example/>";
    let shown = "https://good.example@evil.example/ (leads to evil.example)\n";
    assert_eq!(whole(disguised, 80), shown);
    assert_eq!(whole("[a](https://b.example/@ada)", 80), "a (https://b.example/@ada)\n");
    assert_eq!(whole("<ada@b.example>", 80), "ada@b.example\n");
    let fake = "[https://good.example](https://evil.example)";
    assert_eq!(whole(fake, 80), "https://good.example (https://evil.example)\n");
}

#[test]
fn m7_lines_of_a_paragraph_stay_lines() {
    let listing = "Output:\ntotal 24\ndrwxr-xr-x **src**\n";
    assert_eq!(whole(listing, 80), "Output:\ntotal 24\ndrwxr-xr-x src\n");
    assert_eq!(whole("- a file\n  and what it is\n", 80), "- a file\n  and what it is\n");
    assert_eq!(whole("> quoted\nstill quoted\n", 80), "│ quoted\n│ still quoted\n");
}

/// Pieces of Markdown that mean something next to each other.
fn source() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "a",
        "word ",
        "日本 ",
        "\n",
        "\n\n",
        "# ",
        "## ",
        "- ",
        "  - ",
        "1. ",
        "2) ",
        "> ",
        "    ",
        "\t",
        "```",
        "```rust\n",
        "~~~",
        "`",
        "*",
        "**",
        "_",
        "~~",
        "[a](b)",
        "[a]",
        "[a]: b\n",
        "![i](j)",
        "<b>",
        "<!-- ",
        "-->",
        "| a | b |\n",
        "|---|:-:|\n",
        "|",
        "---",
        "===",
        "\r",
        "\r\n",
        "&amp;",
        "\\",
        "http://x.example/ ",
        "<http://y.example>",
        "\u{1b}[2J",
        "\u{202e}",
        "\u{200b}",
        "  \n",
        "* * *\n",
        "+ x\n",
        "[x] ",
        "<div>\n",
        "</div>\n\n",
    ]);
    prop::collection::vec(pieces, 0..40).prop_map(|pieces| pieces.concat())
}

/// Lines of a text that comes in pieces, with a frame after each.
fn in_pieces(source: &str, cuts: &[usize], width: usize) -> Vec<Text> {
    let mut markdown = Markdown::new(width);
    let mut start = 0;
    for end in cuts.iter().copied().chain([source.len()]) {
        markdown.push(&source[start..end].into());
        start = end;
        markdown.lines();
    }
    markdown.lines().to_vec()
}

#[test]
fn head_of_a_table_waits_for_its_whole_second_line() {
    let source = "text\n| a\n|---|---|\n\n# b\n";
    for cut in 0..source.len() {
        assert_eq!(text(&in_pieces(source, &[cut], 20)), whole(source, 20), "cut at {cut}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn however_a_text_is_cut_its_lines_are_those_of_the_whole(
        source in source(),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8),
        width in 1..60_usize,
    ) {
        let mut cuts: Vec<usize> = cuts
            .iter()
            .map(|cut| source.floor_char_boundary(cut.index(source.len() + 1)))
            .collect();
        cuts.sort_unstable();
        let lines = in_pieces(&source, &cuts, width);
        prop_assert_eq!(lines, Markdown::whole(&source.as_str().into(), width));
    }

    #[test]
    fn nothing_reaches_a_screen_unescaped_or_leaves_it_at_the_side(
        source in prop_oneof![source(), any::<String>()],
        width in 4..60_usize,
    ) {
        for line in Markdown::whole(&source.as_str().into(), width) {
            let text = &line;
            let escaped = escape::prose(text.as_str()).to_string();
            prop_assert_eq!(text.as_str(), &escaped, "it can be printed as it is");
            prop_assert!(!escaped.contains(['\n', '\t']), "a line is a line");
            prop_assert!(line.width() <= width, "{} > {}: {:?}", line.width(), width, text);
        }
    }

    #[test]
    fn a_wrapped_line_has_all_of_its_words(
        words in prop::collection::vec("[a-z日]{1,9}", 0..20),
        width in 1..30_usize,
    ) {
        let line = words.join(" ");
        let rows = Markdown::whole(&line.as_str().into(), width);
        let joined: String = rows.iter().map(Text::to_string).collect();
        prop_assert_eq!(joined.replace(' ', ""), words.concat());
    }
}

#[test]
fn a_text_has_no_heading_of_the_document_that_it_is_in() {
    let fenced = acpd_view::fenced_in;
    for text in [
        "## You",
        "# a\n## You\n",
        "You\n---",
        "You\n===\n",
        "  ##  You",
        "> ## You",
        "- ## You",
        "<h2>You</h2>",
        "<!-- the rest is hidden",
        "<h1\nid=a>You</h1>",
        "a\n\n## You ##",
    ] {
        let within = format!("## Agent\n\n{}\n\n## You\n\nnext\n", fenced(text));
        let headings: Vec<_> = headings(&within);
        assert_eq!(headings, ["2: Agent", "2: You"], "{within}");
    }
    for text in ["```\n## You", "~~~~ sh\nx\n~~~", "````\n```\n", "> ```\n> x"] {
        let within = format!("## Agent\n\n{}\n\n## You\n\nnext\n", fenced(text));
        assert_eq!(headings(&within), ["2: Agent", "2: You"], "{within}");
    }
    for text in
        ["plain", "```sh\n# x\n```\n", "### fine", "a < b\n", "- x\n- y\n", "a | b\n--|--\n1 | 2\n"]
    {
        let deeper = text.replace("### fine", "##### fine");
        assert_eq!(fenced(text), deeper);
    }
}

/// The headings of the two levels that a document has itself.
fn headings(text: &str) -> Vec<String> {
    use pulldown_cmark::{Event, Parser, Tag, TagEnd};
    let (mut all, mut open) = (Vec::new(), None);
    for event in Parser::new(text) {
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                open = Some((level as usize, String::new()));
            }
            Event::Text(said) => {
                if let Some((_, text)) = &mut open {
                    text.push_str(&said);
                }
            }
            Event::End(TagEnd::Heading(_)) => {
                let heading = open.take().filter(|(level, _)| *level <= 2);
                all.extend(heading.map(|(level, text)| format!("{level}: {text}")));
            }
            Event::Html(html) => assert!(!html.contains("<h"), "{html}"),
            _ => {}
        }
    }
    all
}
