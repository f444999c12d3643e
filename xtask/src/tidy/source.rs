//! Rust text, split into what the compiler reads and what people read.

/// Two views of a Rust file. Both have the length and the lines of the file; what belongs to neither (the inside of strings)
/// or to the other is blank.
#[derive(Debug)]
pub struct Source {
    /// Without comments, and with empty strings.
    pub code: String,
    /// Only comments.
    pub comments: String,
}

/// A word or a sign of Rust code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    /// An identifier, a number, `::`, or a single sign.
    pub text: &'a str,
    /// The line, from 1 on.
    pub line: usize,
}

impl Token<'_> {
    /// Whether it can be a part of a path.
    #[must_use]
    pub fn is_word(self) -> bool {
        self.text.starts_with(|first: char| first == '_' || first.is_alphabetic())
    }
}

impl Source {
    /// Splits `text`.
    #[must_use]
    pub fn of(text: &str) -> Source {
        let mut split = Split { text, code: blank(text), comments: blank(text), at: 0 };
        while split.at < text.len() {
            split.step();
        }
        Source { code: utf8(split.code), comments: utf8(split.comments) }
    }

    /// The words and signs of the code.
    #[must_use]
    pub fn tokens(&self) -> Vec<Token<'_>> {
        let mut tokens = Vec::new();
        for (number, line) in self.code.lines().enumerate() {
            let mut rest = line.trim_start();
            while !rest.is_empty() {
                let (text, behind) = rest.split_at(token_len(rest));
                tokens.push(Token { text, line: number + 1 });
                rest = behind.trim_start();
            }
        }
        tokens
    }
}

/// `rest` starts with a token: how long is it?
fn token_len(rest: &str) -> usize {
    let in_word = |c: char| c == '_' || c.is_alphanumeric();
    match rest.find(|c| !in_word(c)) {
        Some(0) if rest.starts_with("::") => 2,
        Some(0) => rest.chars().next().map_or(1, char::len_utf8),
        Some(end) => end,
        None => rest.len(),
    }
}

fn blank(text: &str) -> Vec<u8> {
    text.bytes().map(|byte| if byte == b'\n' { b'\n' } else { b' ' }).collect()
}

/// Pieces are cut at ASCII signs only, so whole characters were copied.
fn utf8(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).expect("whole characters were copied")
}

struct Split<'a> {
    text: &'a str,
    code: Vec<u8>,
    comments: Vec<u8>,
    at: usize,
}

impl Split<'_> {
    fn step(&mut self) {
        let rest = &self.text[self.at..];
        if rest.starts_with("//") {
            let end = rest.find('\n').unwrap_or(rest.len());
            return self.comment(end);
        }
        if rest.starts_with("/*") {
            return self.comment(block_comment_len(rest));
        }
        if let Some(len) = raw_string_len(rest).filter(|_| !self.inside_word()) {
            return self.skip(len);
        }
        if rest.starts_with('"') {
            return self.skip(quoted_len(rest, '"'));
        }
        if is_character(rest) {
            return self.skip(quoted_len(rest, '\''));
        }
        self.copy(rest.chars().next().map_or(1, char::len_utf8));
    }

    /// `for"` is not a raw string that starts with `r`.
    fn inside_word(&self) -> bool {
        self.text[..self.at].ends_with(|before: char| before == '_' || before.is_alphanumeric())
    }

    fn comment(&mut self, len: usize) {
        let range = self.at..self.at + len;
        self.comments[range.clone()].copy_from_slice(&self.text.as_bytes()[range]);
        self.at += len;
    }

    fn copy(&mut self, len: usize) {
        let range = self.at..self.at + len;
        self.code[range.clone()].copy_from_slice(&self.text.as_bytes()[range]);
        self.at += len;
    }

    fn skip(&mut self, len: usize) {
        self.at += len;
    }
}

/// Block comments nest.
fn block_comment_len(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        let here = &rest.as_bytes()[at..];
        if here.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if here.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// `r"…"`, `r#"…"#`, `br"…"`, `cr"…"` and so on.
fn raw_string_len(rest: &str) -> Option<usize> {
    let behind_r =
        rest.strip_prefix("br").or_else(|| rest.strip_prefix("cr")).or_else(|| rest.strip_prefix('r'))?;
    let behind_hashes = behind_r.trim_start_matches('#');
    let hashes = behind_r.len() - behind_hashes.len();
    let inside = behind_hashes.strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let inside_len = inside.find(&end).map_or(inside.len(), |at| at + end.len());
    Some(rest.len() - inside.len() + inside_len)
}

/// A string or a character with escapes; a file that ends in one is all string.
fn quoted_len(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

/// `'a'` and `'\n'`, but not the lifetime `'a`.
fn is_character(rest: &str) -> bool {
    let mut signs = rest.chars();
    let three = (signs.next(), signs.next(), signs.next());
    matches!(three, (Some('\''), Some('\\'), _) | (Some('\''), Some(_), Some('\'')))
}
