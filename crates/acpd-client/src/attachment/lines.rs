//! Lines of a file: `10` or `10-20`, from 1, the last one included.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Lines {
    first: usize,
    last: usize,
}

impl Lines {
    pub(super) fn is_meant(text: &str) -> bool {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
    }

    pub(super) fn parse(text: &str) -> Option<Lines> {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        let (first, last) = (first.parse().ok()?, last.parse().ok()?);
        (1 <= first && first <= last).then_some(Lines { first, last })
    }

    pub(super) fn first(self) -> usize {
        self.first
    }

    /// Returns these lines and the number of the last line found; `None` if there are none.
    pub(super) fn of(self, text: &str) -> Option<(String, usize)> {
        let lines = text.split_inclusive('\n').skip(self.first - 1);
        let lines: Vec<&str> = lines.take(self.last - self.first + 1).collect();
        (!lines.is_empty()).then(|| (lines.concat(), self.first + lines.len() - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_count_from_one_and_go_up() {
        assert_eq!(Lines::parse("7"), Some(Lines { first: 7, last: 7 }));
        assert_eq!(Lines::parse("7-9"), Some(Lines { first: 7, last: 9 }));
        for text in ["", "0", "0-1", "3-2", "-3", "3-", "1-2-3", "99999999999999999999999"] {
            assert_eq!(Lines::parse(text), None, "{text}");
        }
    }

    #[test]
    fn every_window_is_what_lies_between_its_lines() {
        for text in ["", "a", "a\n", "a\n\nb", "a\r\nb\nc\n"] {
            let count = text.split_inclusive('\n').count();
            for first in 1..=count + 1 {
                for last in first..=count + 1 {
                    let window = Lines { first, last }.of(text);
                    if first > count {
                        assert_eq!(window, None);
                        continue;
                    }
                    let before = Lines { first: 1, last: first.max(2) - 1 }.of(text);
                    let before = before.filter(|_| first > 1).map_or(String::new(), |part| part.0);
                    let after = Lines { first: last + 1, last: usize::MAX }.of(text);
                    let after = after.map_or(String::new(), |part| part.0);
                    let (part, end) = window.unwrap();
                    assert_eq!(before + &part + &after, text);
                    assert_eq!(end, last.min(count));
                }
            }
        }
    }
}
