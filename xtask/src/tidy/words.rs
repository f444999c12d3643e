//! Words that do not belong in what is finished.

use super::Problem;
use super::imports::is_test;
use super::source::Source;
use super::tree::{File, Tree};

/// Where a word is looked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Where {
    /// Rust without comments and strings.
    Code,
    /// The same, in tests only.
    TestCode,
    /// Comments of Rust, and the whole of other files.
    Prose,
    /// Everywhere, strings too.
    All,
}

struct Word {
    text: &'static str,
    place: Where,
    hint: &'static str,
}

const WORDS: &[Word] = &[
    Word { text: "todo!", place: Where::Code, hint: "finish it, or take it out" },
    Word { text: "unimplemented!", place: Where::Code, hint: "finish it, or take it out" },
    Word { text: "dbg!", place: Where::Code, hint: "take it out" },
    Word {
        text: "#[ignore",
        place: Where::Code,
        hint: "a test that does not run proves nothing: mend it or delete it",
    },
    Word { text: "sleep(", place: Where::TestCode, hint: "wait for what you mean, not for time to pass" },
    Word { text: "FIXME", place: Where::Prose, hint: "do it now, or write an issue" },
    Word { text: "XXX", place: Where::Prose, hint: "do it now, or write an issue" },
    Word {
        text: "/work/",
        place: Where::All,
        hint: "no path of one machine: make it relative or an argument",
    },
    Word {
        text: "/tmp/wt",
        place: Where::All,
        hint: "no path of one machine: make it relative or an argument",
    },
];

/// A file that may have a word all the same.
struct Allowed {
    file: &'static str,
    word: &'static str,
    /// For who reads this table.
    #[allow(dead_code)]
    reason: &'static str,
}

const ALLOWED: &[Allowed] = &[
    Allowed {
        file: "crates/leftoff-audit/tests/ten_million.rs",
        word: "#[ignore",
        reason: "too slow without optimisation; .ci/run runs it with",
    },
    Allowed { file: "xtask/src/tidy/words.rs", word: "/work/", reason: "the table of words" },
    Allowed { file: "xtask/src/tidy/words.rs", word: "/tmp/wt", reason: "the table of words" },
    Allowed { file: "xtask/src/tidy/tests.rs", word: "/work/", reason: "bad examples" },
    Allowed { file: "xtask/src/tidy/tests.rs", word: "/tmp/wt", reason: "bad examples" },
];

/// Every word of [`WORDS`] in its place, and every row of [`ALLOWED`] that is not needed.
pub fn check(tree: &Tree) -> Vec<Problem> {
    tree.files.iter().flat_map(check_file).collect()
}

fn check_file(file: &File) -> Vec<Problem> {
    let views = Views::of(file);
    WORDS.iter().flat_map(|word| check_word(file, &views, word)).collect()
}

fn check_word(file: &File, views: &Views, word: &Word) -> Vec<Problem> {
    let allowed = ALLOWED.iter().any(|row| row.file == file.path && row.word == word.text);
    let view = views.of_place(word.place);
    let lines = view.lines().enumerate().filter(|(_, line)| has_word(line, word.text));
    let problem = |line, what| Problem { file: file.path.clone(), line, what, hint: word.hint.to_owned() };
    let mut found: Vec<Problem> =
        lines.map(|(number, _)| problem(number + 1, format!("`{}`", word.text))).collect();
    if !allowed {
        return found;
    }
    if found.is_empty() {
        let hint = "take the row out of xtask/src/tidy/words.rs".to_owned();
        let what = format!("`{}` is allowed here and not used", word.text);
        return vec![Problem { hint, ..problem(1, what) }];
    }
    found.clear();
    found
}

/// Whole words only: `sleep(` is not in `asleep(`, and a template of `mktemp` is no mark.
fn has_word(line: &str, word: &str) -> bool {
    let part_of_word = |c: char| c == '_' || c.is_alphanumeric();
    let open_start = word.starts_with(part_of_word);
    let open_end = word.ends_with(part_of_word);
    line.match_indices(word).any(|(at, _)| {
        let clear_before = !open_start || !line[..at].ends_with(part_of_word);
        let clear_behind = !open_end || !line[at + word.len()..].starts_with(part_of_word);
        clear_before && clear_behind
    })
}

struct Views<'a> {
    all: &'a str,
    code: String,
    test_code: String,
    prose: String,
}

impl Views<'_> {
    fn of(file: &File) -> Views<'_> {
        if !file.path.ends_with(".rs") {
            return Views {
                all: &file.text,
                code: String::new(),
                test_code: String::new(),
                prose: file.text.clone(),
            };
        }
        let source = Source::of(&file.text);
        let test_code = if is_test(&file.path) { source.code.clone() } else { inline_tests(&source.code) };
        Views { all: &file.text, code: source.code, test_code, prose: source.comments }
    }

    fn of_place(&self, place: Where) -> &str {
        match place {
            Where::Code => &self.code,
            Where::TestCode => &self.test_code,
            Where::Prose => &self.prose,
            Where::All => self.all,
        }
    }
}

/// The lines from `mod tests {` on, the others empty: tests stand last in a file.
fn inline_tests(code: &str) -> String {
    let start = code.find("mod tests {").unwrap_or(code.len());
    let before = code[..start].matches('\n').count();
    "\n".repeat(before) + &code[start..]
}
