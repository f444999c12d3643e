//! A group of the classic protocol: its generation and members.

use super::{ConsumerOffsetsError, ends, tagged_fields, version};
use crate::primitives::{ReadError, Reader, Writer};

const WHAT: &str = "GroupMetadataValue";
const LAST_READ: i16 = 4;
/// The version that is written. 4 says no more, and Kafka before 3.6 does not read it.
const WRITTEN: i16 = 3;
/// The least that a member takes in any version: four strings or byte arrays, a byte each, and the session timeout.
const MIN_MEMBER_BYTES: usize = 8;

/// Kafka's `GroupMetadataValue`. Versions 0 to 4 are read, 3 is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupMetadataValue {
    /// What the members speak: `consumer`, `connect`, ….
    pub protocol_type: String,
    /// The generation; it rises with each rebalance.
    pub generation: i32,
    /// The protocol (assignor) that the members agreed on; `None` for an empty group.
    pub protocol: Option<String>,
    /// The leader's member id; `None` for an empty group.
    pub leader: Option<String>,
    /// Since when the group is in its state, in milliseconds since 1970; -1 if that is unknown.
    pub current_state_timestamp_ms: i64,
    /// The members.
    pub members: Vec<MemberMetadata>,
}

/// A member of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberMetadata {
    /// Its member id.
    pub member_id: String,
    /// The name of a static member (KIP-345).
    pub group_instance_id: Option<String>,
    /// The client id that it sent.
    pub client_id: String,
    /// Where it connected from.
    pub client_host: String,
    /// How long it may take to join again, in milliseconds. Version 0 has none; there it is the session timeout, as in Kafka.
    pub rebalance_timeout_ms: i32,
    /// How long it may be silent, in milliseconds.
    pub session_timeout_ms: i32,
    /// Its subscription, in its protocol's own bytes.
    pub subscription: Vec<u8>,
    /// Its assignment, in its protocol's own bytes.
    pub assignment: Vec<u8>,
}

impl GroupMetadataValue {
    /// The value in these bytes.
    ///
    /// # Errors
    /// [`ConsumerOffsetsError`].
    pub fn decode(bytes: &[u8]) -> Result<GroupMetadataValue, ConsumerOffsetsError> {
        let mut reader = Reader::new(bytes);
        let version = version(&mut reader, WHAT, LAST_READ)?;
        let mut fields = Fields { reader, version };
        let value = GroupMetadataValue {
            protocol_type: fields.str()?,
            generation: fields.reader.i32()?,
            protocol: fields.nullable_str()?,
            leader: fields.nullable_str()?,
            current_state_timestamp_ms: if version >= 2 { fields.reader.i64()? } else { -1 },
            members: fields.members()?,
        };
        fields.end_of_struct()?;
        ends(&fields.reader)?;
        Ok(value)
    }

    /// The value's bytes, version 3.
    ///
    /// # Panics
    /// If a string is longer than [`MAX_STR_BYTES`](crate::primitives::MAX_STR_BYTES), or bytes than 2 GiB.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut writer = Writer::new(&mut bytes);
        writer.i16(WRITTEN);
        writer.str(&self.protocol_type);
        writer.i32(self.generation);
        writer.nullable_str(self.protocol.as_deref());
        writer.nullable_str(self.leader.as_deref());
        writer.i64(self.current_state_timestamp_ms);
        writer.i32(i32::try_from(self.members.len()).expect("a group of 2^31 members"));
        for member in &self.members {
            member.write(&mut writer);
        }
        bytes
    }
}

impl MemberMetadata {
    fn write(&self, writer: &mut Writer<'_>) {
        writer.str(&self.member_id);
        writer.nullable_str(self.group_instance_id.as_deref());
        writer.str(&self.client_id);
        writer.str(&self.client_host);
        writer.i32(self.rebalance_timeout_ms);
        writer.i32(self.session_timeout_ms);
        writer.bytes(&self.subscription);
        writer.bytes(&self.assignment);
    }
}

/// Fields of a value of this version; from 4 on they are compact and followed by tagged ones (KIP-482).
struct Fields<'a> {
    reader: Reader<'a>,
    version: i16,
}

impl Fields<'_> {
    fn members(&mut self) -> Result<Vec<MemberMetadata>, ConsumerOffsetsError> {
        let count = if self.is_flexible() {
            self.reader.compact_count(MIN_MEMBER_BYTES)?
        } else {
            self.reader.count(MIN_MEMBER_BYTES)?
        };
        // No room is made in advance: a member takes many times its bytes here.
        (0..count).map(|_| self.member()).collect()
    }

    fn member(&mut self) -> Result<MemberMetadata, ConsumerOffsetsError> {
        let member_id = self.str()?;
        let group_instance_id = if self.version >= 3 { self.nullable_str()? } else { None };
        let client_id = self.str()?;
        let client_host = self.str()?;
        let rebalance_timeout_ms = if self.version >= 1 { Some(self.reader.i32()?) } else { None };
        let session_timeout_ms = self.reader.i32()?;
        let member = MemberMetadata {
            member_id,
            group_instance_id,
            client_id,
            client_host,
            rebalance_timeout_ms: rebalance_timeout_ms.unwrap_or(session_timeout_ms),
            session_timeout_ms,
            subscription: self.bytes()?,
            assignment: self.bytes()?,
        };
        self.end_of_struct()?;
        Ok(member)
    }

    fn str(&mut self) -> Result<String, ReadError> {
        let text = if self.is_flexible() { self.reader.compact_str() } else { self.reader.str() };
        text.map(str::to_owned)
    }

    fn nullable_str(&mut self) -> Result<Option<String>, ReadError> {
        let text =
            if self.is_flexible() { self.reader.nullable_compact_str() } else { self.reader.nullable_str() };
        Ok(text?.map(str::to_owned))
    }

    fn bytes(&mut self) -> Result<Vec<u8>, ReadError> {
        let bytes = if self.is_flexible() { self.reader.compact_bytes() } else { self.reader.bytes() };
        bytes.map(<[u8]>::to_vec)
    }

    fn end_of_struct(&mut self) -> Result<(), ConsumerOffsetsError> {
        if self.is_flexible() { tagged_fields(&mut self.reader, |_, _| Ok(())) } else { Ok(()) }
    }

    fn is_flexible(&self) -> bool {
        self.version >= 4
    }
}
