//! The demo's effects: a file with the id of a handled event on each line, synced line by line.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::Path;

use crate::cli::failure::Failure;

/// The file, open to add effects.
pub struct Effects {
    file: File,
}

impl Effects {
    /// Opens the file. A line that a kill cut short is no effect, and is cut off.
    pub fn open(path: &Path) -> Result<Effects, Failure> {
        let io = failed(path);
        let mut file = OpenOptions::new().read(true).write(true).open(path).map_err(&io)?;
        let mut reader = BufReader::new(&file);
        let (mut whole, mut line) = (0, Vec::new());
        while reader.read_until(b'\n', &mut line).map_err(&io)? > 0 && line.ends_with(b"\n") {
            whole += line.len() as u64;
            line.clear();
        }
        file.set_len(whole).map_err(&io)?;
        file.seek(SeekFrom::End(0)).map_err(&io)?;
        Ok(Effects { file })
    }

    /// Adds one effect; returns when it is on disk.
    pub fn add(&mut self, id: &str) -> std::io::Result<()> {
        self.file.write_all(format!("{id}\n").as_bytes())?;
        self.file.sync_data()
    }
}

/// Makes the empty file, on disk.
pub fn create(path: &Path) -> Result<(), Failure> {
    let file = File::create_new(path).and_then(|file| file.sync_all());
    file.map_err(failed(path))
}

/// The ids in the file, in order.
pub fn ids(path: &Path) -> Result<Vec<String>, Failure> {
    let lines = File::open(path).and_then(|file| BufReader::new(file).lines().collect());
    lines.map_err(failed(path))
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> Failure {
    let path = path.to_owned();
    move |error| Failure::storage(format!("{}: {error}", path.display()))
}
