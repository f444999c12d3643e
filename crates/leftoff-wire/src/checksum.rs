//! CRC-32C, the checksum of record batches and of our own small files.

/// CRC-32C (Castagnoli) of these bytes.
pub fn crc32c(bytes: &[u8]) -> u32 {
    crc_fast::crc32_iscsi(bytes)
}
