//! What `DumpLogSegments` prints, as values.

/// What the tool found in some files.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Dump {
    /// A part for each file, in the order they were given.
    pub files: Vec<FileDump>,
    /// Lines that belong to no file or that a sound file does not lead to: mismatches, invalid bytes, warnings.
    pub complaints: Vec<String>,
}

/// What the tool found in one file.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FileDump {
    /// The path as it was given.
    pub path: String,
    /// How many record batches; 0 in an index.
    pub batches: usize,
    /// The records, in the order of the file.
    pub records: Vec<DumpedRecord>,
    /// The tool says that there is nothing in it.
    pub is_empty: bool,
    /// The tool says that it passed the sanity check.
    pub is_sane: bool,
}

/// A record, as the tool shows it.
#[derive(Debug, PartialEq, Eq)]
pub struct DumpedRecord {
    /// Its offset.
    pub offset: i64,
    /// Its create time.
    pub timestamp_ms: i64,
    /// `None` for a null key.
    pub key: Option<String>,
    /// `None` for a null value.
    pub value: Option<String>,
    /// The names of its headers.
    pub header_keys: Vec<String>,
}

impl Dump {
    /// Reads what the tool printed. Nothing is passed over but what stands for no gap ([`is_no_gap`]): what is not understood is a
    /// complaint.
    pub fn parse(printed: &str) -> Dump {
        let mut dump = Dump::default();
        let mut gaps_in = None;
        for line in printed.lines().filter(|line| !line.is_empty()) {
            if let Some(path) = line.strip_prefix("Non-consecutive offsets in ") {
                gaps_in = Some(path);
                continue;
            }
            match gaps_in.filter(|_| line.starts_with("  ")) {
                Some(path) if is_no_gap(path, line) => {}
                Some(path) => dump.complaints.push(format!("{path}:{line}")),
                None => dump.take(line),
            }
        }
        dump
    }

    fn take(&mut self, line: &str) {
        if let Some(path) = line.strip_prefix("Dumping ") {
            self.files.push(FileDump { path: path.to_owned(), ..FileDump::default() });
            return;
        }
        let understood = match self.files.last_mut() {
            Some(file) => file.take(line),
            None => false,
        };
        if !understood {
            self.complaints.push(line.to_owned());
        }
    }
}

/// The tool takes every segment for the first: before the first record of one at offset 750 it says that "-1 is followed by 750".
fn is_no_gap(path: &str, line: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let base = name.strip_suffix(".log").and_then(|digits| digits.parse::<i64>().ok());
    base.is_some_and(|base| line == format!("  -1 is followed by {base}"))
}

impl FileDump {
    /// Whether the line is one that a sound file leads to.
    fn take(&mut self, line: &str) -> bool {
        if line.starts_with("baseOffset: ") {
            self.batches += 1;
            return line.ends_with(" isvalid: true");
        }
        if let Some(record) = line.strip_prefix("| ") {
            let record = DumpedRecord::parse(record);
            let understood = record.is_some();
            self.records.extend(record);
            return understood;
        }
        let rest = line.strip_prefix(&self.path).unwrap_or(line);
        match rest {
            " is empty." => self.is_empty = true,
            " passed sanity check." => self.is_sane = true,
            _ => return line.starts_with("Log starting offset: "),
        }
        true
    }
}

impl DumpedRecord {
    /// `offset: 0 CreateTime: 1 keySize: 2 valueSize: 2 sequence: -1 headerKeys: [a,b] key: k1 payload: v1`. A null key or value has
    /// the size -1, and a null key is left out.
    fn parse(line: &str) -> Option<DumpedRecord> {
        let (numbers, rest) = line.split_once(" headerKeys: [")?;
        let (header_keys, rest) = rest.split_once(']')?;
        let number = |name: &str| {
            let mut words = numbers.split(' ').skip_while(|word| *word != name);
            words.nth(1)?.parse::<i64>().ok()
        };
        let (key_bytes, value_bytes) = (number("keySize:")?, number("valueSize:")?);
        let rest = rest.strip_prefix(" key: ").unwrap_or(rest);
        let (key, value) = rest.split_once(" payload: ").unwrap_or((rest, ""));
        Some(DumpedRecord {
            offset: number("offset:")?,
            timestamp_ms: number("CreateTime:")?,
            key: (key_bytes >= 0).then(|| key.to_owned()),
            value: (value_bytes >= 0).then(|| value.to_owned()),
            header_keys: header_keys.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect(),
        })
    }
}

#[cfg(test)]
mod tests;
