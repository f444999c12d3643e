//! A [`Verdict`] for people. The last line has the form of the lesson: `lost: [] | handled twice: []`.

use std::fmt::{self, Write as _};

use super::{Found, Lines, Verdict};

/// How many lines or unknown effects are shown one by one.
const SHOWN: usize = 10;

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_kinds(self, f)?;
        write_blame(self, f)?;
        write_lines(f, "torn line", &self.torn_lines)?;
        write_lines(f, "unreadable line", &self.unreadable_lines)?;
        for sentence in &self.cannot_tell {
            writeln!(f, "cannot tell: {sentence}")?;
        }
        if self.unfinished.is_empty() {
            writeln!(f, "nothing left")?;
        } else {
            writeln!(f, "{} unfinished: {}", self.unfinished.count, self.unfinished)?;
        }
        f.write_str(&self.last_line())
    }
}

/// One line for each kind that occurs.
fn write_kinds(verdict: &Verdict, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let faults = [
        ("out of order", &verdict.out_of_order),
        ("deleted before handling", &verdict.deleted_before_handling),
        ("dead", &verdict.dead),
    ];
    let decisions = [
        ("handled again by decision", &verdict.repeated_by_decision),
        ("skipped by decision", &verdict.skipped),
        ("filtered", &verdict.filtered),
        ("handled without output", &verdict.without_output),
        ("absorbed", &verdict.absorbed),
    ];
    for (name, found) in faults.into_iter().chain(decisions) {
        if found.is_empty() {
            continue;
        }
        // What is nobody's fault is counted rather than listed when there is much of it.
        let is_long = found.names.len() > SHOWN || found.unnamed > 0;
        if is_long && decisions.iter().any(|(decision, _)| *decision == name) {
            writeln!(f, "{name}: {} events (JSON names them)", found.count)?;
        } else {
            writeln!(f, "{name}: {found}")?;
        }
    }
    Ok(())
}

/// What producers and inventors did, and offsets that promise no good.
fn write_blame(verdict: &Verdict, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let produced = &verdict.produced_twice;
    if produced.count > 0 {
        let ids: Vec<String> = produced.ids.iter().map(|one| one.id.clone()).collect();
        let unnamed = produced.count - ids.len() as u64;
        writeln!(f, "produced twice: {}", python_list_and_more(&ids, unnamed))?;
    }
    let unknown = &verdict.unknown_effects;
    for one in unknown.named.iter().take(SHOWN) {
        writeln!(f, "unknown effect: {} ({})", quoted(&one.name), one.why)?;
    }
    if unknown.count > 0 {
        writeln!(f, "unknown effects: {}", unknown.count)?;
    }
    for ahead in &verdict.ahead_of_end {
        writeln!(
            f,
            "ahead of the end: {}/{} would go on with offset {}, and the log's next offset is {}",
            verdict.topic, ahead.partition, ahead.saved_next, ahead.end
        )?;
    }
    Ok(())
}

fn write_lines(f: &mut fmt::Formatter<'_>, what: &str, lines: &Lines) -> fmt::Result {
    for line in lines.first.iter().take(SHOWN) {
        writeln!(f, "{what}: {} line {}: {}", line.source, line.line, line.why)?;
    }
    let rest = lines.count.saturating_sub(SHOWN as u64);
    if rest > 0 {
        writeln!(f, "{what}: {rest} more")?;
    }
    Ok(())
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&python_list_and_more(&self.names, self.unnamed))
    }
}

/// Names as Python prints a list of strings: `['e7', 'it\'s']`. Always with single quotes; whatever would not show
/// itself on a terminal is escaped.
pub fn python_list<S: AsRef<str>>(names: &[S]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| quoted(name.as_ref())).collect();
    format!("[{}]", quoted.join(", "))
}

fn python_list_and_more(names: &[String], unnamed: u64) -> String {
    let mut list = python_list(names);
    if unnamed > 0 {
        // Writing to a String cannot fail.
        let _ = write!(list, " and {unnamed} more");
    }
    list
}

fn quoted(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 2);
    out.push('\'');
    for c in name.chars() {
        push_escaped(&mut out, c);
    }
    out.push('\'');
    out
}

fn push_escaped(out: &mut String, c: char) {
    let code = c as u32;
    // Writing to a String cannot fail.
    let _ = match c {
        '\\' | '\'' => write!(out, "\\{c}"),
        '\n' => write!(out, "\\n"),
        '\r' => write!(out, "\\r"),
        '\t' => write!(out, "\\t"),
        '"' => write!(out, "\""),
        _ if shows_itself(c) => write!(out, "{c}"),
        _ if code < 0x100 => write!(out, "\\x{code:02x}"),
        _ if code < 0x1_0000 => write!(out, "\\u{code:04x}"),
        _ => write!(out, "\\U{code:08x}"),
    };
}

/// Letters, signs and marks do; controls, format characters, private and unassigned ones do not.
fn shows_itself(c: char) -> bool {
    c.escape_debug().len() == 1
}
