//! Settings of brokers and groups that Kafka lets be changed while it runs and that mean nothing here: they are taken, kept and shown.
//!
//! Kafka's others of a broker either say what this one does, and are given at its start, or hold secrets, which are not kept.

use crate::broker::setting_table::{SettingInfo, int, long, settings};
use crate::broker::{Effect, SettingKind};

/// Of a broker.
pub const BROKER_SETTINGS: &[SettingInfo] = settings! {
    "background.threads" int(1), "10", Kept, "", "threads", "threads are counted differently here";
    "follower.replication.throttled.rate" long(0), "9223372036854775807", Kept, "", "bytes a second", "there is one copy";
    "leader.replication.throttled.rate" long(0), "9223372036854775807", Kept, "", "bytes a second", "there is one copy";
    "log.cleaner.backoff.ms" long(0), "15000", Kept, "", "milliseconds", "nothing is compacted yet";
    "log.cleaner.dedupe.buffer.size" long(1), "134217728", Kept, "", "bytes", "nothing is compacted yet";
    "log.cleaner.io.buffer.load.factor" SettingKind::Share, "0.9", Kept, "", "", "nothing is compacted yet";
    "log.cleaner.io.buffer.size" int(0), "524288", Kept, "", "bytes", "nothing is compacted yet";
    "log.cleaner.threads" int(0), "1", Kept, "", "threads", "nothing is compacted yet";
    "num.io.threads" int(1), "8", Kept, "", "threads", "threads are counted differently here";
    "num.network.threads" int(1), "3", Kept, "", "threads", "threads are counted differently here";
    "num.recovery.threads.per.data.dir" int(1), "2", Kept, "", "threads", "threads are counted differently here";
    "num.replica.fetchers" int(1), "1", Kept, "", "threads", "there is one copy";
    "sasl.kerberos.min.time.before.relogin" long(0), "60000", Kept, "", "milliseconds", "there is no Kerberos";
    "sasl.kerberos.ticket.renew.jitter" SettingKind::Share, "0.05", Kept, "", "", "there is no Kerberos";
    "sasl.kerberos.ticket.renew.window.factor" SettingKind::Share, "0.8", Kept, "", "", "there is no Kerberos";
    "sasl.login.refresh.buffer.seconds" SettingKind::Int { least: 0, most: 3600 }, "300", Kept, "", "seconds",
        "the broker logs in nowhere";
    "sasl.login.refresh.min.period.seconds" SettingKind::Int { least: 0, most: 900 }, "60", Kept, "", "seconds",
        "the broker logs in nowhere";
};

/// Of a group.
pub const GROUP_SETTINGS: &[SettingInfo] = settings! {
    "consumer.assignment.interval.ms" int(0), "1000", Kept, "group.consumer.assignment.interval.ms", "milliseconds",
        "groups of the consumer protocol are not served yet";
    "consumer.heartbeat.interval.ms" int(1), "5000", Kept, "group.consumer.heartbeat.interval.ms", "milliseconds",
        "groups of the consumer protocol are not served yet";
    "consumer.session.timeout.ms" int(1), "45000", Kept, "group.consumer.session.timeout.ms", "milliseconds",
        "groups of the consumer protocol are not served yet";
};

/// Those of one of Kafka's resource types: 4 a broker, 32 a group.
pub fn kept_settings(resource_type: i8) -> &'static [SettingInfo] {
    match resource_type {
        4 => BROKER_SETTINGS,
        32 => GROUP_SETTINGS,
        _ => &[],
    }
}
