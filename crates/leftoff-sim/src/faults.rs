//! Lets calls of the disk fail.
