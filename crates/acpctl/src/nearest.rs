//! What somebody may have wanted to type.

/// The candidate that is nearest to a text: two letters in the wrong order are one step, and a word that only
/// begins in the same way is far. `None` if all are too far.
pub(crate) fn nearest<'a>(
    typed: &str,
    candidates: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    // A comparison takes as much memory as the lengths multiplied.
    let candidates = candidates.filter(|known| typed.len() <= 64 && known.len() <= 64);
    let distances = candidates.map(|known| (strsim::damerau_levenshtein(known, typed), known));
    let near = distances.filter(|(distance, known)| *distance <= 1 + known.len() / 4);
    near.min_by_key(|(distance, _)| *distance).map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_swap_is_nearer_than_a_common_beginning() {
        let verbs = || ["session", "ps", "acp", "agent", "run", "attach", "answer"].into_iter();
        assert_eq!(nearest("sp", verbs()), Some("ps"));
        assert_eq!(nearest("atatch", verbs()), Some("attach"));
        assert_eq!(nearest("rnu", verbs()), Some("run"));
        assert_eq!(nearest("sesion", verbs()), Some("session"));
        assert_eq!(nearest("frobnicate", verbs()), None);
        assert_eq!(nearest(&"x".repeat(1 << 20), verbs()), None);
    }
}
