//! "Did you mean …": the name nearest to one that is not known.

/// The name that `wanted` was probably meant to be, or `None` if none is near. Of equally near ones the
/// first.
pub fn nearest<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let folded = wanted.to_lowercase();
    // A third of the letters may be wrong: a slip or two in a name, never another word.
    let letters = folded.chars().count();
    let limit = (letters / 3).max(1);
    let near = |name: &'a str| (distance(&folded, &name.to_lowercase(), limit), name);
    let (distance, name) = names.into_iter().map(near).min_by_key(|(distance, _)| *distance)?;
    (distance <= limit && distance < letters).then_some(name)
}

/// The hint for an unknown name, if a near one exists.
pub fn did_you_mean<'a>(wanted: &str, names: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(wanted, names).map(|name| format!("did you mean '{name}'?"))
}

/// How many letters must be put in, taken out, changed or swapped with their neighbour; above `limit` only
/// roughly.
fn distance(a: &str, b: &str, limit: usize) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    if a.len().abs_diff(b.len()) > limit {
        return a.len().abs_diff(b.len());
    }
    let mut before_last = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = change.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before_last[j - 2] + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_understood_and_other_words_are_not() {
        let names = ["quakes", "flights", "orders.v1", "é"];
        let table = [
            ("quake", Some("quakes")),
            ("qaukes", Some("quakes")),
            ("Quakes", Some("quakes")),
            ("flihgt", Some("flights")),
            ("orders-v2", Some("orders.v1")),
            ("e", None),
            ("payments", None),
            ("É", Some("é")),
            ("", None),
            ("quakesquakesquakes", None),
        ];
        for (wanted, expect) in table {
            assert_eq!(nearest(wanted, names), expect, "{wanted}");
        }
        assert_eq!(nearest("quakes", []), None);
        assert_eq!(did_you_mean("quake", names).as_deref(), Some("did you mean 'quakes'?"));
    }
}
