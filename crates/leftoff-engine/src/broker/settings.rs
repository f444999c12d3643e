//! Topic settings, by Kafka's names.
//!
//! A setting is checked when it is given ([`Settings::set`]); what is in the log was checked once and is read as it is,
//! so that a setting which a later version drops never keeps a directory from opening.

use leftoff_wire::record_batch::TimestampType;

use crate::broker::setting_table::{TOPIC_SETTINGS, topic_setting};

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

fn known() -> String {
    TOPIC_SETTINGS.iter().map(|known| known.name).collect::<Vec<_>>().join(", ")
}

/// Kafka's least `segment.bytes` since 4.0. Only its protocol asks for it.
const LEAST_SEGMENT_BYTES: u64 = 1024 * 1024;
/// How many of the settings a person is always shown; others are when they are given.
const ALWAYS_SHOWN: usize = 5;

/// One step of Kafka's `IncrementalAlterConfigs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlterSetting<'a> {
    /// This value from now on.
    Set(&'a str),
    /// Back to the default.
    Delete,
    /// These words more, of a list.
    Append(&'a str),
    /// Without these words, of a list.
    Subtract(&'a str),
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
        let known = topic_setting(name).ok_or_else(|| SettingError::Unknown { name: name.to_owned() })?;
        if let Some(value) = value
            && !known.takes(value)
        {
            let expected = known.expected();
            return Err(SettingError::Value { name: name.to_owned(), value: value.to_owned(), expected });
        }
        self.given.retain(|(given, _)| given != name);
        if let Some(value) = value {
            self.given.push((name.to_owned(), value.to_owned()));
            self.given.sort();
        }
        Ok(())
    }

    /// The settings that matter most, and all that were given: name, value, whether it was given.
    pub fn all(&self) -> Vec<(&'static str, String, bool)> {
        let shown = TOPIC_SETTINGS.iter().enumerate().map(|(number, known)| {
            let (value, is_given) = self.value(known.name);
            (number, (known.name, value.to_owned(), is_given))
        });
        shown.filter(|(number, (.., given))| *number < ALWAYS_SHOWN || *given).map(|(_, row)| row).collect()
    }

    /// The value of a setting and whether it was given; of one that is not known it is empty.
    pub fn value(&self, name: &str) -> (&str, bool) {
        match self.text(name) {
            Some(given) => (given, true),
            None => (topic_setting(name).map_or("", |known| known.default), false),
        }
    }

    /// What steps of `IncrementalAlterConfigs` come to, for [`crate::broker::Request::AlterTopic`].
    ///
    /// # Errors
    /// [`SettingError`]: an unknown name, a value that does not fit, words for what is no list.
    pub fn alter(
        &self,
        steps: &[(&str, AlterSetting<'_>)],
    ) -> Result<Vec<(String, Option<String>)>, SettingError> {
        let mut after = self.clone();
        for (name, step) in steps {
            let known =
                topic_setting(name).ok_or_else(|| SettingError::Unknown { name: (*name).to_owned() })?;
            let words = |text: &str| -> Vec<String> {
                text.split(',').map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect()
            };
            let mut list = words(after.value(name).0);
            let value = match step {
                AlterSetting::Set(value) => Some((*value).to_owned()),
                AlterSetting::Delete => None,
                AlterSetting::Append(given) | AlterSetting::Subtract(given) if !known.is_list() => {
                    let (name, value) = ((*name).to_owned(), (*given).to_owned());
                    let expected = "a whole value: it is no list to append to or subtract from".to_owned();
                    return Err(SettingError::Value { name, value, expected });
                }
                AlterSetting::Append(given) => {
                    let more = words(given).into_iter().filter(|word| !list.contains(word));
                    let more: Vec<String> = more.collect();
                    list.extend(more);
                    Some(list.join(","))
                }
                AlterSetting::Subtract(given) => {
                    let gone = words(given);
                    list.retain(|word| !gone.contains(word));
                    Some(list.join(","))
                }
            };
            after.set(name, value.as_deref())?;
        }
        let altered = steps.iter().map(|(name, _)| ((*name).to_owned(), after.text(name).map(str::to_owned)));
        Ok(altered.collect())
    }

    /// What Kafka's older `AlterConfigs` comes to: these settings, and no others.
    pub fn replace(&self, given: &[(&str, &str)]) -> Vec<(String, Option<String>)> {
        let is_gone = |name: &str| given.iter().all(|(stays, _)| *stays != name);
        let gone = self.given.iter().filter(|(name, _)| is_gone(name)).map(|(name, _)| (name.clone(), None));
        let set = given.iter().map(|(name, value)| ((*name).to_owned(), Some((*value).to_owned())));
        gone.chain(set).collect()
    }

    /// What Kafka's protocol asks for beyond [`Settings::set`].
    ///
    /// # Errors
    /// [`SettingError::Value`].
    pub fn check_as_kafka(&self) -> Result<(), SettingError> {
        let bytes = self.segment_bytes();
        if bytes < LEAST_SEGMENT_BYTES {
            let (name, value) = ("segment.bytes".to_owned(), bytes.to_string());
            let expected = format!("at least {LEAST_SEGMENT_BYTES} bytes");
            return Err(SettingError::Value { name, value, expected });
        }
        Ok(())
    }

    /// Whether old segments are deleted by age and size: not where only `compact` is given, since the newest record of a key
    /// may be in one.
    fn deletes(&self) -> bool {
        self.value("cleanup.policy").0.split(',').any(|word| word.trim() == "delete")
    }

    /// What retention does about events that a group has yet to read: `None`: it deletes them. Else they are kept, in
    /// partitions up to so many bytes.
    pub fn unread(&self) -> Option<u64> {
        let keeps = self.value("leftoff.retention.unread").0 == "keep";
        let bytes = u64::try_from(self.number("leftoff.retention.unread.bytes")).unwrap_or(u64::MAX);
        keeps.then_some(bytes)
    }

    /// Whether records need keys.
    pub fn needs_keys(&self) -> bool {
        self.value("cleanup.policy").0.split(',').any(|word| word.trim() == "compact")
    }

    /// Whose clock the timestamps are from.
    pub fn timestamp_type(&self) -> TimestampType {
        match self.value("message.timestamp.type").0 {
            "LogAppendTime" => TimestampType::LogAppendTime,
            _ => TimestampType::CreateTime,
        }
    }

    /// How far a producer's timestamp may lie in the past, and in the future.
    pub fn timestamp_limits_ms(&self) -> (i64, i64) {
        (self.number("message.timestamp.before.max.ms"), self.number("message.timestamp.after.max.ms"))
    }

    /// Segments whose age, from the moment they were closed, passes this are deleted. `None`: never.
    pub fn retention_ms(&self) -> Option<i64> {
        Some(self.number("retention.ms")).filter(|limit| *limit >= 0 && self.deletes())
    }

    /// A partition larger than this loses its oldest segments. `None`: no limit.
    pub fn retention_bytes(&self) -> Option<u64> {
        u64::try_from(self.number("retention.bytes")).ok().filter(|_| self.deletes())
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
        let default = || topic_setting(name).and_then(|known| known.default.parse().ok()).unwrap_or(-1);
        self.text(name).and_then(|value| value.parse().ok()).unwrap_or_else(default)
    }
}
