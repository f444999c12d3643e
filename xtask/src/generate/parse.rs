//! The schema table, read: `crates/leftoff-wire/schema/messages.txt`, whose head says what its lines mean.

use anyhow::{Context as _, bail};

/// An API: its request and its response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Api {
    /// Its number.
    pub key: i16,
    /// Its name.
    pub name: String,
    /// The versions that are known.
    pub versions: Span,
    /// The first flexible version, if there is one.
    pub flexible: Option<i16>,
    /// What is asked.
    pub request: Message,
    /// What is answered.
    pub response: Message,
}

/// One of the two.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Message {
    /// Its fields, in order.
    pub fields: Vec<Field>,
    /// Types that several fields have.
    pub structs: Vec<Struct>,
}

/// A type with fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Struct {
    /// Its name.
    pub name: String,
    /// Its fields, in order.
    pub fields: Vec<Field>,
}

/// A field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// What it is, or its elements are.
    pub kind: Kind,
    /// Whether it is an array of that.
    pub is_array: bool,
    /// The first version in which it may be null.
    pub nullable: Option<i16>,
    /// Where it is present.
    pub span: Span,
    /// The number of a tagged field.
    pub tag: Option<u32>,
    /// What it is where it is absent, if that is not nothing.
    pub default: Option<String>,
    /// Whether it may be left out in silence.
    pub ignorable: bool,
    /// The fields of a struct that is given in place.
    pub fields: Option<Vec<Field>>,
}

/// What a field, or an element of it, is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// A type of the notation.
    Plain(&'static str),
    /// A struct by name.
    Struct(String),
}

/// Versions, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The first.
    pub first: i16,
    /// The last.
    pub last: i16,
}

const PLAIN: [&str; 9] = ["i8", "i16", "i32", "i64", "bool", "str", "bytes", "uuid", "records"];

/// Reads the whole table.
///
/// # Errors
/// With the line that is not of the notation.
pub fn parse(text: &str) -> anyhow::Result<Vec<Api>> {
    let mut lines = Lines { lines: text.lines().collect(), next: 0 };
    let mut apis = Vec::new();
    while let Some(line) = lines.take() {
        let number = lines.next;
        apis.push(
            api(line, &mut lines).with_context(|| format!("messages.txt, at or behind line {number}"))?,
        );
    }
    Ok(apis)
}

struct Lines<'a> {
    lines: Vec<&'a str>,
    next: usize,
}

impl<'a> Lines<'a> {
    /// The next line that says something.
    fn take(&mut self) -> Option<&'a str> {
        loop {
            let line = self.lines.get(self.next)?.trim();
            self.next += 1;
            if !line.is_empty() && !line.starts_with('#') {
                return Some(line);
            }
        }
    }

    fn put_back(&mut self) {
        self.next -= 1;
    }
}

fn api(line: &str, lines: &mut Lines<'_>) -> anyhow::Result<Api> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let ["api", key, name, versions, "flexible", flexible] = words[..] else {
        bail!("expected api KEY NAME VERSIONS flexible N, found {line:?}");
    };
    let versions = span(versions, Span { first: 0, last: i16::MAX })?;
    let flexible = match flexible {
        "none" => None,
        number => Some(number.parse().context("the first flexible version")?),
    };
    if lines.take() != Some("request") {
        bail!("{name}: expected its request");
    }
    let request = message(lines, versions)?;
    if lines.take() != Some("response") {
        bail!("{name}: expected its response");
    }
    let response = message(lines, versions)?;
    Ok(Api { key: key.parse()?, name: name.to_owned(), versions, flexible, request, response })
}

fn message(lines: &mut Lines<'_>, versions: Span) -> anyhow::Result<Message> {
    let mut message = Message::default();
    while let Some(line) = lines.take() {
        if line == "response" || line.starts_with("api ") {
            lines.put_back();
            break;
        }
        if let Some(name) = line.strip_prefix("struct ").and_then(|line| line.strip_suffix(" {")) {
            message.structs.push(Struct { name: name.to_owned(), fields: braced(lines, versions)? });
        } else {
            message.fields.push(field(line, lines, versions)?);
        }
    }
    Ok(message)
}

fn braced(lines: &mut Lines<'_>, versions: Span) -> anyhow::Result<Vec<Field>> {
    let mut fields = Vec::new();
    loop {
        match lines.take() {
            Some("}") => return Ok(fields),
            Some(line) => fields.push(field(line, lines, versions)?),
            None => bail!("a brace is not closed"),
        }
    }
}

fn field(line: &str, lines: &mut Lines<'_>, versions: Span) -> anyhow::Result<Field> {
    let (line, opens) = line.strip_suffix(" {").map_or((line, false), |line| (line, true));
    let mut words = line.split_whitespace();
    let (Some(name), Some(kind)) = (words.next(), words.next()) else { bail!("no field: {line:?}") };
    let (kind, nullable) = match kind.split_once('?') {
        None => (kind, None),
        Some((kind, "")) => (kind, Some(versions.first)),
        Some((kind, from)) => (kind, Some(from.trim_end_matches('+').parse().context("nullable from")?)),
    };
    let element = kind.strip_prefix('[').and_then(|kind| kind.strip_suffix(']'));
    let is_array = element.is_some();
    let element = element.unwrap_or(kind);
    let kind = match PLAIN.into_iter().find(|plain| *plain == element) {
        Some(plain) => Kind::Plain(plain),
        None if element.starts_with(char::is_uppercase) => Kind::Struct(element.to_owned()),
        None => bail!("{name}: no type {element:?}"),
    };
    let mut field = Field {
        name: name.to_owned(),
        kind,
        is_array,
        nullable,
        span: versions,
        tag: None,
        default: None,
        ignorable: false,
        fields: None,
    };
    while let Some(word) = words.next() {
        match word {
            "tag" => field.tag = Some(words.next().context("the tag's number")?.parse()?),
            "=" => field.default = Some(words.next().context("the default")?.to_owned()),
            "ignorable" => field.ignorable = true,
            word => match word.strip_prefix('@') {
                Some(at) => field.span = span(at, versions)?,
                None => bail!("{name}: {word:?} is no word of the notation"),
            },
        }
    }
    if opens {
        field.fields = Some(braced(lines, versions)?);
    }
    Ok(field)
}

/// `5+`, `2-4`, `3`
fn span(text: &str, versions: Span) -> anyhow::Result<Span> {
    let number = |text: &str| text.parse::<i16>().with_context(|| format!("{text:?} is no version"));
    Ok(match (text.strip_suffix('+'), text.split_once('-')) {
        (Some(first), _) => Span { first: number(first)?, last: versions.last },
        (None, Some((first, last))) => Span { first: number(first)?, last: number(last)? },
        (None, None) => Span { first: number(text)?, last: number(text)? },
    })
}
