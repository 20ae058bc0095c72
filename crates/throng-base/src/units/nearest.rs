//! Suggestion of a known name for an unknown one.

/// Returns the candidate that is nearest to `name`, if at most a third of the longer name's letters
/// differ. Ignores case. Of two equally near candidates it returns the first.
///
/// ```
/// use throng_base::units::nearest;
/// assert_eq!(nearest("conect", ["close", "connect"]), Some("connect"));
/// assert_eq!(nearest("banana", ["close", "connect"]), None);
/// ```
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name: Vec<char> = name.chars().flat_map(char::to_lowercase).collect();
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let letters: Vec<char> = candidate.chars().flat_map(char::to_lowercase).collect();
        let longer = name.len().max(letters.len());
        let bound = if longer < 3 { longer / 2 } else { (longer / 3).min(DISTANCE_MAX) };
        let distance = distance(&name, &letters);
        if distance <= bound && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// Most edits between two similar names, even if they are long.
const DISTANCE_MAX: usize = 3;

/// Returns how many insertions, deletions, replacements and swaps of neighbours turn `a` into `b`
/// (Damerau-Levenshtein, where no piece is edited twice).
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before: Vec<usize> = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(a: &str, b: &str, expected: usize) {
        let letters = |text: &str| text.chars().collect::<Vec<_>>();
        assert_eq!(distance(&letters(a), &letters(b)), expected, "{a} -> {b}");
        assert_eq!(distance(&letters(b), &letters(a)), expected, "{b} -> {a}");
    }

    #[test]
    fn distance_counts_edits_and_a_swap_once() {
        check("", "", 0);
        check("", "abc", 3);
        check("connect", "connect", 0);
        check("connect", "conect", 1);
        check("expect", "exepct", 1);
        check("kitten", "sitting", 3);
    }

    #[test]
    fn a_near_name_is_found_and_a_far_one_is_not() {
        let steps = ["connect", "send", "expect", "wait", "every", "repeat", "stay", "close"];
        assert_eq!(nearest("Expect", steps), Some("expect"));
        assert_eq!(nearest("exepct", steps), Some("expect"));
        assert_eq!(nearest("wiat", steps), Some("wait"));
        assert_eq!(nearest("rpeat", steps), Some("repeat"));
        assert_eq!(nearest("subscribe", steps), None);
        assert_eq!(nearest("", steps), None);
    }

    #[test]
    fn short_names_need_half_their_letters() {
        assert_eq!(nearest("tp", ["to"]), Some("to"));
        assert_eq!(nearest("x", ["to"]), None);
    }
}
