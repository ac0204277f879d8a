//! Suggestions for misspelt words.

/// Most bytes to compare: a comparison takes memory for the product of the lengths.
const LONGEST: usize = 128;

/// The candidate nearest to a text; `None` if all are too far. Two swapped letters count as one
/// change, and so does an end that was added after a dash.
pub fn nearest<'a>(typed: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let is_short = |known: &&str| typed.len() <= LONGEST && known.len() <= LONGEST;
    let candidates = candidates.into_iter().filter(is_short);
    let distances = candidates.map(|known| (distance(typed, known), known));
    let close = (typed.chars().count() / 3).max(1);
    let near = distances.filter(|(distance, _)| *distance <= close);
    near.min_by_key(|(distance, _)| *distance).map(|(_, known)| known)
}

fn distance(typed: &str, known: &str) -> usize {
    match typed.strip_prefix(known) {
        Some(rest) if rest.starts_with(['-', '_']) => 1,
        _ => strsim::damerau_levenshtein(known, typed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_swap_is_nearer_than_a_common_beginning() {
        let verbs = ["session", "ps", "acp", "agent", "run", "attach", "answer"];
        assert_eq!(nearest("sp", verbs), Some("ps"));
        assert_eq!(nearest("atatch", verbs), Some("attach"));
        assert_eq!(nearest("rnu", verbs), Some("run"));
        assert_eq!(nearest("sesion", verbs), Some("session"));
        assert_eq!(nearest("agent-x", verbs), Some("agent"));
        assert_eq!(nearest("frobnicate", verbs), None);
        assert_eq!(nearest(&"x".repeat(1 << 20), verbs), None);
    }
}
