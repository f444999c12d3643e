//! Record batches, compression and coordinator records: bytes to values and back, no I/O.
