//! Offsets of a group as lines `TOPIC,PARTITION,NEXT`, the form of Kafka's `kafka-consumer-groups --export`
//! and `--from-file`: what `groups export` writes and `groups import` and `groups reset --from-file` read.

use std::collections::BTreeSet;
use std::io::{self, BufRead, Write};

use leftoff_wire::Offset;

use super::args::value::{offset, partition, topic_name};
use super::bad_value::{BadValue, shorten};
use super::event_line::LineReader;
use super::failure::Failure;

/// The most lines that are read; far above what a directory holds, and a bound on memory.
pub const MAX_LINES: usize = 1_000_000;

/// Where a group goes on in one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetLine {
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: i32,
    /// The next offset to read, as Kafka writes it; not the last handled one.
    pub next: Offset,
}

/// Reads lines in which commas, tabs or blanks stand between the parts. Blank lines, lines that begin with
/// `#` and a first line of column names are passed over. A partition given twice is refused: which one was
/// meant?
pub fn read_offset_lines(input: impl BufRead) -> Result<Vec<OffsetLine>, Failure> {
    let mut reader = LineReader::new(input);
    let mut lines = Vec::new();
    let mut seen = BTreeSet::new();
    while let Some(line) = reader.next_line()? {
        let text = String::from_utf8_lossy(line.bytes);
        let text = text.trim();
        let is_title = line.number == 1 && text.to_lowercase().starts_with("topic,partition,");
        if text.is_empty() || text.starts_with('#') || is_title {
            continue;
        }
        let wrong = |problem: &str, hint: &str| {
            Failure::usage(format!("line {}: {problem}: {}", line.number, shorten(text))).hint(hint)
        };
        let read = parse(text).map_err(|bad| wrong(bad.problem(), bad.hint()))?;
        if !seen.insert((read.topic.clone(), read.partition)) {
            return Err(wrong("this partition was given before", "leave one of the two lines"));
        }
        lines.push(read);
        if lines.len() > MAX_LINES {
            return Err(wrong("more lines than can be read at once", "split the file"));
        }
    }
    Ok(lines)
}

fn parse(text: &str) -> Result<OffsetLine, BadValue> {
    let is_gap = |c: char| c == ',' || c.is_whitespace();
    let parts: Vec<&str> = text.split(is_gap).filter(|part| !part.is_empty()).collect();
    match parts.as_slice() {
        [topic, number, next] => {
            Ok(OffsetLine { topic: topic_name(topic)?, partition: partition(number)?, next: offset(next)? })
        }
        _ => Err(BadValue::refuse(
            "not TOPIC,PARTITION,NEXT",
            "write three parts per line, for example quakes,0,1707",
        )),
    }
}

/// Writes lines that [`read_offset_lines`] and Kafka's tools read.
pub fn write_offset_lines(out: &mut impl Write, lines: &[OffsetLine]) -> io::Result<()> {
    for line in lines {
        writeln!(out, "{},{},{}", line.topic, line.partition, line.next)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn check(input: &str, expect: Result<&str, &str>) {
        let got = read_offset_lines(input.as_bytes());
        match (got, expect) {
            (Ok(lines), Ok(expect)) => {
                let mut out = Vec::new();
                write_offset_lines(&mut out, &lines).unwrap();
                assert_eq!(String::from_utf8(out).unwrap(), expect, "{input}");
            }
            (Err(failure), Err(expect)) => assert_eq!(failure.to_string(), expect),
            (got, expect) => panic!("{input}: got {got:?}, expected {expect:?}"),
        }
    }

    #[test]
    fn lines_are_read_in_the_forms_of_several_tools_and_written_in_kafkas() {
        check("", Ok(""));
        check("quakes,0,1707\nquakes,1,5\n", Ok("quakes,0,1707\nquakes,1,5\n"));
        check("topic,partition,next\nquakes,0,1707", Ok("quakes,0,1707\n"));
        check(
            "# saved before the move\n\nquakes 0 1707\r\nflights\t1\t5\n",
            Ok("quakes,0,1707\nflights,1,5\n"),
        );
        check("quakes, 0, 1707", Ok("quakes,0,1707\n"));
        check("quakes,0", Err("line 1: not TOPIC,PARTITION,NEXT: quakes,0"));
        check("a,0,1\ng,quakes,0,1", Err("line 2: not TOPIC,PARTITION,NEXT: g,quakes,0,1"));
        check("a,0,1\na,0,2", Err("line 2: this partition was given before: a,0,2"));
        check("a,0,-1", Err("line 1: '-1' is not an offset: a,0,-1"));
        check("a,x,1", Err("line 1: 'x' is not a partition: a,x,1"));
        check("a/b,0,1", Err("line 1: 'a/b' is not a topic name: a/b,0,1"));
    }
}
