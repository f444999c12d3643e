//! Kafka's requests and responses, as far as they are served: a module each, made by `cargo xtask generate` from
//! `schema/messages.txt`.
//!
//! What is decoded borrows from the frame. Whatever the bytes are, the answer is a message or a [`DecodeError`] that names
//! message, version, field and place: a count reserves nothing, and one message has at most [`MAX_ELEMENTS`] elements.

mod api;
mod codec;
mod error_code;
mod header;

pub mod add_offsets_to_txn;
pub mod add_partitions_to_txn;
pub mod alter_configs;
pub mod api_versions;
pub mod consumer_group_describe;
pub mod consumer_group_heartbeat;
pub mod create_partitions;
pub mod create_topics;
pub mod delete_groups;
pub mod delete_records;
pub mod delete_topics;
pub mod describe_cluster;
pub mod describe_configs;
pub mod describe_groups;
pub mod describe_log_dirs;
pub mod describe_producers;
pub mod describe_topic_partitions;
pub mod describe_transactions;
pub mod end_txn;
pub mod fetch;
pub mod find_coordinator;
pub mod heartbeat;
pub mod incremental_alter_configs;
pub mod init_producer_id;
pub mod join_group;
pub mod leave_group;
pub mod list_config_resources;
pub mod list_groups;
pub mod list_offsets;
pub mod list_partition_reassignments;
pub mod list_transactions;
pub mod metadata;
pub mod offset_commit;
pub mod offset_delete;
pub mod offset_fetch;
pub mod offset_for_leader_epoch;
pub mod produce;
pub mod sasl_authenticate;
pub mod sasl_handshake;
pub mod sync_group;
pub mod txn_offset_commit;

pub use api::ApiKey;
pub use codec::{DecodeError, DecodeFault, Decoder, EncodeError, EncodeFault, Encoder, MAX_ELEMENTS};
pub use error_code::ErrorCode;
pub use header::{RequestHeader, ResponseHeader};
