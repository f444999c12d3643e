//! As much of a `Cargo.toml` as the rules ask for. Line by line: one `key = value` a line is how ours are written.

use super::tree::File;

/// A `key = value` of a `Cargo.toml`, with the section it stands in.
#[derive(Debug, PartialEq, Eq)]
pub struct Setting<'a> {
    /// Without the brackets: `dev-dependencies`.
    pub section: &'a str,
    /// What stands before the `=`: `anyhow.workspace`.
    pub key: &'a str,
    /// What stands behind it.
    pub value: &'a str,
    /// The line, from 1 on.
    pub line: usize,
}

impl<'a> Setting<'a> {
    /// The dependency that this line is about, if it is about one: `leftoff-wire` of `leftoff-wire.workspace = true`.
    #[must_use]
    pub fn dependency(&self) -> Option<&'a str> {
        let name = match self.section.rsplit_once("dependencies") {
            Some((_, "")) => self.key,
            // `[dependencies.anyhow]`
            Some((_, below)) => below.trim_start_matches('.'),
            None => return None,
        };
        let name = name.split('.').next().unwrap_or(name);
        Some(name.trim_matches(['"', ' ']))
    }
}

/// Every setting of a `Cargo.toml`.
pub fn settings(file: &File) -> impl Iterator<Item = Setting<'_>> {
    let mut section = "";
    file.text.lines().enumerate().filter_map(move |(number, line)| {
        let line = line.trim();
        if let Some(name) = line.strip_prefix('[') {
            section = name.trim_end_matches(']').trim();
            return None;
        }
        let (key, value) = line.split_once('=').filter(|_| !line.starts_with('#'))?;
        Some(Setting { section, key: key.trim(), value: value.trim(), line: number + 1 })
    })
}
