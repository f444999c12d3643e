//! What a client may do, where it asks: everything, since nobody is kept from anything. Bits by Kafka's `AclOperation`.

/// "Not asked".
pub(super) const NOT_ASKED: i32 = i32::MIN;

const READ: i32 = 1 << 3;
const WRITE: i32 = 1 << 4;
const CREATE: i32 = 1 << 5;
const DELETE: i32 = 1 << 6;
const ALTER: i32 = 1 << 7;
const DESCRIBE: i32 = 1 << 8;
const CLUSTER_ACTION: i32 = 1 << 9;
const DESCRIBE_CONFIGS: i32 = 1 << 10;
const ALTER_CONFIGS: i32 = 1 << 11;
const IDEMPOTENT_WRITE: i32 = 1 << 12;

const CONFIGS: i32 = DESCRIBE_CONFIGS | ALTER_CONFIGS;
/// With the cluster.
pub(super) const CLUSTER: i32 = CREATE | ALTER | DESCRIBE | CLUSTER_ACTION | CONFIGS | IDEMPOTENT_WRITE;
/// With a topic.
pub(super) const TOPIC: i32 = READ | WRITE | CREATE | DELETE | ALTER | DESCRIBE | CONFIGS;
/// With a group.
pub(super) const GROUP: i32 = READ | DELETE | DESCRIBE | CONFIGS;

/// These, if somebody asks.
pub(super) fn if_asked(is_asked: bool, operations: i32) -> i32 {
    if is_asked { operations } else { NOT_ASKED }
}
