//! A value that does not parse: what it was, what was expected, and an example that works.

use std::fmt;

/// Why a value was refused. Secrets never get in here: see [`super::place::hide_password`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadValue {
    problem: String,
    hint: String,
}

impl BadValue {
    /// `value` is not a `what`; `forms` lists what is read, `example` is one that works.
    pub fn new(value: &str, what: &str, forms: &str, example: &str) -> BadValue {
        BadValue {
            problem: format!("'{}' is not {what}", shorten(value)),
            hint: format!("expected {forms}, for example {example}"),
        }
    }

    /// A refusal in its own words.
    pub fn refuse(problem: impl Into<String>, hint: impl Into<String>) -> BadValue {
        BadValue { problem: problem.into(), hint: hint.into() }
    }

    /// What is wrong, naming the value.
    pub fn problem(&self) -> &str {
        &self.problem
    }

    /// What to write instead.
    pub fn hint(&self) -> &str {
        &self.hint
    }
}

impl fmt::Display for BadValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.problem, self.hint)
    }
}

impl std::error::Error for BadValue {}

/// The longest text from a user's data that a message repeats, in characters.
const SHOWN_CHARS: usize = 80;

/// `text` on one line and not longer than a message bears; control characters are escaped, so that a terminal
/// shows them and does not obey them.
pub fn shorten(text: &str) -> String {
    let mut shown = String::new();
    for (number, c) in text.chars().enumerate() {
        if number == SHOWN_CHARS {
            shown.push('…');
            break;
        }
        if c.is_control() { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shortened_text_stays_on_one_line() {
        let long = "é".repeat(81);
        let cut = format!("{}…", "é".repeat(80));
        for (text, expect) in [("abc", "abc"), ("a\nb\x1b[2J", "a\\nb\\u{1b}[2J"), (&long, &cut)] {
            assert_eq!(shorten(text), expect);
        }
    }
}
