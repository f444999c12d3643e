//! Bytes of a message by chance, made from the table itself and not from the code that is made of it.

use xtask::generate::parse::{Api, Field, Kind, Message};

/// Numbers by chance, the same for the same seed.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(2).wrapping_add(0x9e37_79b9_7f4a_7c15))
    }

    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).unwrap() % limit
    }

    pub fn byte(&mut self) -> u8 {
        u8::try_from(self.below(256)).unwrap()
    }

    fn one_in(&mut self, of: usize) -> bool {
        self.below(of) == 0
    }
}

/// A message of this version.
pub fn sample(api: &Api, message: &Message, version: i16, random: &mut Random) -> Vec<u8> {
    let flexible = api.flexible.is_some_and(|first| version >= first);
    let mut out = Vec::new();
    Sample { message, version, flexible, random }.fields(&mut out, &message.fields);
    out
}

struct Sample<'a> {
    message: &'a Message,
    version: i16,
    flexible: bool,
    random: &'a mut Random,
}

impl Sample<'_> {
    fn fields(&mut self, out: &mut Vec<u8>, fields: &[Field]) {
        let version = self.version;
        let is_there = |field: &&Field| (field.span.first..=field.span.last).contains(&version);
        for field in fields.iter().filter(|field| field.tag.is_none() && is_there(field)) {
            self.value(out, field, false);
        }
        if !self.flexible {
            return;
        }
        let mut tags = Vec::new();
        for field in fields.iter().filter(|field| field.tag.is_some() && is_there(field)) {
            if self.random.one_in(2) {
                let mut body = Vec::new();
                // One that has its default is left out by whoever writes it.
                self.value(&mut body, field, true);
                tags.push((field.tag.unwrap(), body));
            }
        }
        varint(out, tags.len());
        for (tag, body) in tags {
            varint(out, tag as usize);
            varint(out, body.len());
            out.extend(body);
        }
    }

    fn value(&mut self, out: &mut Vec<u8>, field: &Field, is_no_default: bool) {
        let may_be_null = field.nullable.is_some_and(|first| self.version >= first) && !is_no_default;
        let is_null = may_be_null && self.random.one_in(3);
        if field.is_array {
            let count = self.random.below(3) + usize::from(is_no_default);
            self.length(out, false, (!is_null).then_some(count));
            for _ in 0..if is_null { 0 } else { count } {
                self.element(out, field, is_no_default, false);
            }
        } else if let (Kind::Struct(_), true) = (&field.kind, field.nullable.is_some()) {
            out.push(if is_null { 0xff } else { 1 });
            if !is_null {
                self.element(out, field, is_no_default, false);
            }
        } else {
            self.element(out, field, is_no_default, is_null);
        }
    }

    fn element(&mut self, out: &mut Vec<u8>, field: &Field, is_no_default: bool, is_null: bool) {
        let integer = |random: &mut Random, bytes: usize| -> Vec<u8> {
            match random.below(4) {
                // -1 and 0 are defaults, and so is the greatest.
                _ if is_no_default => [&vec![0; bytes - 1][..], &[7]].concat(),
                0 => vec![0; bytes],
                1 => vec![0xff; bytes],
                _ => (0..bytes).map(|_| random.byte()).collect(),
            }
        };
        match &field.kind {
            Kind::Plain("bool") => {
                let not_default = u8::from(field.default.as_deref() != Some("true"));
                out.push(if is_no_default { not_default } else { not_default & self.random.byte() & 1 });
            }
            Kind::Plain("i8") => out.extend(integer(self.random, 1)),
            Kind::Plain("i16") => out.extend(integer(self.random, 2)),
            Kind::Plain("i32") => out.extend(integer(self.random, 4)),
            Kind::Plain("i64") => out.extend(integer(self.random, 8)),
            Kind::Plain("uuid") => out.extend(integer(self.random, 16)),
            Kind::Plain("str") => {
                let text: String = (0..self.random.below(4) + usize::from(is_no_default))
                    .map(|_| ['a', 'ß', '𝄞', '-'][self.random.below(4)])
                    .collect();
                self.length(out, true, (!is_null).then_some(text.len()));
                out.extend(if is_null { &[] } else { text.as_bytes() });
            }
            Kind::Plain("bytes" | "records") => {
                let bytes: Vec<u8> = (0..self.random.below(5)).map(|_| self.random.byte()).collect();
                self.length(out, false, (!is_null).then_some(bytes.len()));
                out.extend(if is_null { vec![] } else { bytes });
            }
            Kind::Plain(other) => panic!("no sample of {other}"),
            Kind::Struct(name) => {
                let shared = self.message.structs.iter().find(|one| one.name == *name);
                let fields = field.fields.as_ref().or(shared.map(|one| &one.fields)).unwrap();
                if is_no_default {
                    // Its first field makes the difference.
                    self.value(out, &fields[0], true);
                    self.fields(out, &fields[1..]);
                } else {
                    self.fields(out, fields);
                }
            }
        }
    }

    fn length(&mut self, out: &mut Vec<u8>, is_short: bool, length: Option<usize>) {
        match (self.flexible, length) {
            (true, length) => varint(out, length.map_or(0, |length| length + 1)),
            (false, None) => out.extend(if is_short { vec![0xff; 2] } else { vec![0xff; 4] }),
            (false, Some(length)) if is_short => out.extend(i16::try_from(length).unwrap().to_be_bytes()),
            (false, Some(length)) => out.extend(i32::try_from(length).unwrap().to_be_bytes()),
        }
    }
}

fn varint(out: &mut Vec<u8>, mut value: usize) {
    while value > 0x7f {
        out.push(u8::try_from(value & 0x7f).unwrap() | 0x80);
        value >>= 7;
    }
    out.push(u8::try_from(value).unwrap());
}
