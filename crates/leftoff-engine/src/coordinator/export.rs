//! Offsets as rows, to go into a file and come back.

use leftoff_wire::{Committed, Uuid};

use super::{Group, OffsetToCommit, PartitionKey};

/// One offset of a group, as it is exported and imported. The topic's id goes along, so that an offset is not taken for another topic's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportRow {
    /// The group.
    pub group: String,
    /// The topic's name.
    pub topic: String,
    /// The topic's id.
    pub topic_id: Uuid,
    /// The partition's number.
    pub partition: i32,
    /// The next offset to read.
    pub committed: Committed,
    /// The leader epoch of the last handled event, if it is known (KIP-320).
    pub leader_epoch: Option<i32>,
    /// The committer's own words.
    pub metadata: String,
}

impl Group {
    /// Every offset of the group, sorted by topic and partition.
    pub fn export(&self) -> Vec<ExportRow> {
        self.offsets()
            .map(|(topic, partition, entry)| ExportRow {
                group: self.name().to_owned(),
                topic: topic.to_owned(),
                topic_id: entry.topic_id,
                partition,
                committed: entry.committed,
                leader_epoch: entry.leader_epoch,
                metadata: entry.metadata.clone(),
            })
            .collect()
    }
}

impl ExportRow {
    /// The offset, to be committed with [`Why::Import`](super::Why::Import).
    pub fn to_commit(&self) -> OffsetToCommit {
        OffsetToCommit {
            key: PartitionKey {
                topic: self.topic.clone(),
                topic_id: self.topic_id,
                partition: self.partition,
            },
            committed: self.committed,
            leader_epoch: self.leader_epoch,
            metadata: self.metadata.clone(),
        }
    }
}
