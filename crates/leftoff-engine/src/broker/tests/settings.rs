//! Topic settings: all of Kafka's, and how they are altered.

use std::sync::Arc;

use super::rig::Rig;
use crate::broker::{
    AlterSetting, BROKER_SETTINGS, GROUP_SETTINGS, KeptFor, Request, Settings, TOPIC_SETTINGS,
};
use crate::disk::Disk;
use crate::disk::mem::MemDisk;

#[test]
fn every_setting_takes_its_own_default() {
    for known in [TOPIC_SETTINGS, BROKER_SETTINGS, GROUP_SETTINGS].concat() {
        let list_of_nothing = known.is_list() && known.default.is_empty();
        assert!(known.takes(known.default) || list_of_nothing, "{known:?}");
        assert!(!known.doc.is_empty() && known.doc.len() < 130, "{known:?}");
    }
    for known in TOPIC_SETTINGS {
        assert_eq!(TOPIC_SETTINGS.iter().filter(|other| other.name == known.name).count(), 1, "{known:?}");
        assert_eq!(Settings::default().value(known.name), (known.default, false));
    }
}

#[test]
fn values_that_do_not_fit_are_refused_by_name() {
    let cases = [
        ("cleanup.policy", "compact,delete", true),
        ("cleanup.policy", "compress", false),
        ("cleanup.policy", "", false),
        ("compression.type", "zstd", true),
        ("compression.type", "rar", false),
        ("preallocate", "true", true),
        ("preallocate", "yes", false),
        ("min.cleanable.dirty.ratio", "0.25", true),
        ("min.cleanable.dirty.ratio", "1.5", false),
        ("min.cleanable.dirty.ratio", "NaN", false),
        ("message.timestamp.type", "LogAppendTime", true),
        ("message.timestamp.type", "logappendtime", false),
        ("segment.bytes", "2147483648", false),
        ("retention.ms", "-2", false),
        ("leader.replication.throttled.replicas", "0:1,1:1", true),
    ];
    for (name, value, fits) in cases {
        let set = Settings::default().set(name, Some(value));
        assert_eq!(set.is_ok(), fits, "{name}={value}");
        if let Err(error) = set {
            assert!(error.to_string().starts_with(&format!("{name}={value}: expected ")), "{error}");
        }
    }
}

/// Steps of `IncrementalAlterConfigs`: `name=v`, `name-`, `name+=v`, `name-=v`; what is given then, or `!`.
fn check(given: &str, steps: &str, expect: &str) {
    let mut settings = Settings::default();
    for (name, value) in given.split(' ').filter_map(|pair| pair.split_once('=')) {
        settings.set(name, Some(value)).unwrap();
    }
    let steps: Vec<(&str, AlterSetting<'_>)> = steps
        .split(' ')
        .map(|step| {
            if let Some((name, value)) = step.split_once("+=") {
                (name, AlterSetting::Append(value))
            } else if let Some((name, value)) = step.split_once("-=") {
                (name, AlterSetting::Subtract(value))
            } else if let Some((name, value)) = step.split_once('=') {
                (name, AlterSetting::Set(value))
            } else {
                (step.strip_suffix('-').unwrap(), AlterSetting::Delete)
            }
        })
        .collect();
    let got = match settings.alter(&steps) {
        Err(_) => "!".to_owned(),
        Ok(changes) => {
            for (name, value) in &changes {
                settings.set(name, value.as_deref()).unwrap();
            }
            let given = settings.given().iter().map(|(name, value)| format!("{name}={value}"));
            given.collect::<Vec<_>>().join(" ")
        }
    };
    assert_eq!(got, expect, "{given} {steps:?}");
}

#[test]
fn settings_are_altered_step_by_step() {
    check("", "retention.ms=5", "retention.ms=5");
    check("retention.ms=5 segment.ms=7", "retention.ms-", "segment.ms=7");
    check("", "cleanup.policy+=compact", "cleanup.policy=delete,compact");
    check("cleanup.policy=compact", "cleanup.policy+=compact", "cleanup.policy=compact");
    check("cleanup.policy=compact,delete", "cleanup.policy-=delete", "cleanup.policy=compact");
    check("cleanup.policy=compact", "cleanup.policy-=compact", "!");
    check("", "retention.ms+=5", "!");
    check("", "colour=red", "!");
    check("", "retention.ms=5 segment.ms=x", "!");
}

#[test]
fn the_older_way_of_altering_takes_back_what_is_not_named() {
    let mut settings = Settings::default();
    settings.set("retention.ms", Some("5")).unwrap();
    settings.set("segment.ms", Some("7")).unwrap();
    let changes = settings.replace(&[("segment.ms", "8")]);
    let expect = [("retention.ms".to_owned(), None), ("segment.ms".to_owned(), Some("8".to_owned()))];
    assert_eq!(changes, expect);
}

#[test]
fn only_kafkas_protocol_asks_for_large_segments() {
    let mut settings = Settings::default();
    settings.set("segment.bytes", Some("1048575")).unwrap();
    assert!(settings.check_as_kafka().unwrap_err().to_string().contains("at least 1048576 bytes"));
    settings.set("segment.bytes", Some("1048576")).unwrap();
    settings.check_as_kafka().unwrap();
}

/// The newest record of a key may be in the oldest segment.
#[test]
fn what_is_to_be_compacted_is_not_deleted_by_age_or_size() {
    let mut settings = Settings::default();
    settings.set("retention.bytes", Some("9")).unwrap();
    assert_eq!((settings.retention_ms(), settings.retention_bytes()), (Some(604_800_000), Some(9)));
    settings.set("cleanup.policy", Some("compact")).unwrap();
    assert_eq!((settings.retention_ms(), settings.retention_bytes()), (None, None));
    settings.set("cleanup.policy", Some("compact,delete")).unwrap();
    assert_eq!(settings.retention_bytes(), Some(9));
}

#[test]
fn settings_of_brokers_and_groups_are_kept_over_a_start() {
    let disk: Arc<dyn Disk> = Arc::new(MemDisk::new());
    let mut rig = Rig::open(&disk).unwrap();
    let of = |name: &str| KeptFor { resource_type: 32, name: name.to_owned() };
    let mut keep = |group: &str, name: &str, value: Option<&str>| {
        let settings = vec![(name.to_owned(), value.map(str::to_owned))];
        rig.ask(Request::Keep { of: of(group), settings }).unwrap();
    };
    keep("g", "b", Some("2"));
    keep("g", "a", Some("1"));
    keep("g", "b", Some("3"));
    keep("h", "a", Some("1"));
    keep("h", "a", None);
    drop(rig);
    let rig = Rig::open(&disk).unwrap();
    let metadata = rig.broker.state().metadata();
    let text = |(name, value): &(String, String)| format!("{name}={value}");
    assert_eq!(metadata.kept(&of("g")).iter().map(text).collect::<Vec<_>>(), ["a=1", "b=3"]);
    assert_eq!(metadata.keepers().collect::<Vec<_>>(), [&of("g")], "nothing is left of h");
}
