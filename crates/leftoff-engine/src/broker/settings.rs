//! Topic settings, by Kafka's names.
//!
//! A setting is checked when it is given ([`Settings::set`]); what is in the log was checked once and is read as it is,
//! so that a setting which a later version drops never keeps a directory from opening.

/// The settings of a topic: what was given, over Kafka's defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Settings {
    given: Vec<(String, String)>,
}

/// A setting that is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// No such setting.
    #[error("unknown topic setting {name:?}; known are {}", known())]
    Unknown {
        /// The name that was given.
        name: String,
    },
    /// The value does not fit.
    #[error("{name}={value}: expected {expected}")]
    Value {
        /// Which setting.
        name: String,
        /// What was given.
        value: String,
        /// What it takes.
        expected: String,
    },
}

struct Known {
    name: &'static str,
    default: i64,
    least: i64,
    most: i64,
    unit: &'static str,
}

/// Kafka's names and defaults (`TopicConfig`, `LogConfig`); -1 means no limit where Kafka has it so.
const KNOWN: [Known; 5] = [
    Known {
        name: "retention.ms",
        default: 604_800_000,
        least: -1,
        most: i64::MAX,
        unit: "milliseconds, -1 for ever",
    },
    Known {
        name: "retention.bytes",
        default: -1,
        least: -1,
        most: i64::MAX,
        unit: "bytes, -1 without limit",
    },
    Known { name: "segment.bytes", default: 1_073_741_824, least: 1, most: i32::MAX as i64, unit: "bytes" },
    Known { name: "segment.ms", default: 604_800_000, least: 1, most: i64::MAX, unit: "milliseconds" },
    Known {
        name: "max.message.bytes",
        default: 1_048_588,
        least: 61,
        most: i32::MAX as i64 - 1,
        unit: "bytes",
    },
];

fn known() -> String {
    KNOWN.iter().map(|known| known.name).collect::<Vec<_>>().join(", ")
}

impl Settings {
    /// Takes settings that are already in the log.
    pub(crate) fn from_log(given: Vec<(String, String)>) -> Settings {
        Settings { given }
    }

    /// What was given, in the order of names.
    pub fn given(&self) -> &[(String, String)] {
        &self.given
    }

    /// Sets one setting, or takes it back to its default with `None`.
    ///
    /// # Errors
    /// [`SettingError`] for a name or value that Kafka does not know either.
    pub fn set(&mut self, name: &str, value: Option<&str>) -> Result<(), SettingError> {
        let known = KNOWN
            .iter()
            .find(|known| known.name == name)
            .ok_or_else(|| SettingError::Unknown { name: name.to_owned() })?;
        if let Some(value) = value {
            let fits = value.parse::<i64>().is_ok_and(|number| (known.least..=known.most).contains(&number));
            if !fits {
                let expected =
                    format!("a whole number from {} to {} ({})", known.least, known.most, known.unit);
                return Err(SettingError::Value { name: name.to_owned(), value: value.to_owned(), expected });
            }
        }
        self.given.retain(|(given, _)| given != name);
        if let Some(value) = value {
            self.given.push((name.to_owned(), value.to_owned()));
            self.given.sort();
        }
        Ok(())
    }

    /// Every setting with its value, and whether it was given.
    pub fn all(&self) -> Vec<(&'static str, i64, bool)> {
        KNOWN
            .iter()
            .map(|known| (known.name, self.number(known.name), self.text(known.name).is_some()))
            .collect()
    }

    /// Segments whose age, from the moment they were closed, passes this are deleted. `None`: never.
    pub fn retention_ms(&self) -> Option<i64> {
        Some(self.number("retention.ms")).filter(|limit| *limit >= 0)
    }

    /// A partition larger than this loses its oldest segments. `None`: no limit.
    pub fn retention_bytes(&self) -> Option<u64> {
        u64::try_from(self.number("retention.bytes")).ok()
    }

    /// A segment that would grow beyond this is closed.
    pub fn segment_bytes(&self) -> u64 {
        self.number("segment.bytes").unsigned_abs()
    }

    /// A segment older than this is closed at the next append.
    pub fn segment_ms(&self) -> i64 {
        self.number("segment.ms")
    }

    /// The largest record batch that is taken.
    pub fn max_message_bytes(&self) -> u64 {
        self.number("max.message.bytes").unsigned_abs()
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.given.iter().find(|(given, _)| given == name).map(|(_, value)| value.as_str())
    }

    fn number(&self, name: &str) -> i64 {
        let default = KNOWN.iter().find(|known| known.name == name).map_or(-1, |known| known.default);
        self.text(name).and_then(|value| value.parse().ok()).unwrap_or(default)
    }
}
