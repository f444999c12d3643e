//! The files that the rules look at.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Context as _;

/// Kinds of files that people write here. Data, licences and lock files are not looked into.
const OURS: &[&str] = &[".rs", ".md", ".toml", ".py", ".sh", ".xml", ".yml", ".ci/run"];

/// Hidden folders that are part of the project; any other belongs to a tool.
const HIDDEN_BUT_OURS: &[&str] = &[".cargo", ".ci", ".github"];

/// A file that people write.
#[derive(Debug, Clone)]
pub struct File {
    /// Relative to the root, with `/`.
    pub path: String,
    /// The whole text.
    pub text: String,
}

/// The project as the rules see it.
#[derive(Debug, Default)]
pub struct Tree {
    /// What people write, in the order of the paths.
    pub files: Vec<File>,
    /// Every path, folders too; `""` is the root.
    paths: BTreeSet<String>,
}

impl Tree {
    /// Reads the project at `root`. Leaves out build folders (those with a `CACHEDIR.TAG`), tools' hidden folders and symbolic links.
    ///
    /// # Errors
    ///
    /// When a folder or a file cannot be read, or a file that people write is not UTF-8.
    pub fn read(root: &Path) -> anyhow::Result<Tree> {
        let mut tree = Tree::default();
        tree.read_folder(root, "")?;
        tree.files.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(tree)
    }

    /// A tree of these files.
    #[must_use]
    pub fn of(files: Vec<File>) -> Tree {
        let mut paths = BTreeSet::new();
        for file in &files {
            let mut path = file.path.as_str();
            while paths.insert(path.to_owned()) {
                path = path.rsplit_once('/').map_or("", |(folder, _)| folder);
            }
        }
        Tree { files, paths }
    }

    /// Whether there is a file or a folder at `path`.
    #[must_use]
    pub fn has(&self, path: &str) -> bool {
        self.paths.contains(path)
    }

    /// The file at `path`.
    #[must_use]
    pub fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    /// The files whose path ends so.
    pub fn ending<'a>(&'a self, end: &'a str) -> impl Iterator<Item = &'a File> {
        self.files.iter().filter(move |file| file.path.ends_with(end))
    }

    fn read_folder(&mut self, folder: &Path, path: &str) -> anyhow::Result<()> {
        self.paths.insert(path.to_owned());
        for entry in std::fs::read_dir(folder).with_context(|| format!("cannot list {}", folder.display()))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let below = if path.is_empty() { name.clone() } else { format!("{path}/{name}") };
            let kind = entry.file_type()?;
            if kind.is_dir() && is_ours(&entry.path(), &name) {
                self.read_folder(&entry.path(), &below)?;
            } else if kind.is_file() {
                self.read_file(&entry.path(), below)?;
            }
        }
        Ok(())
    }

    fn read_file(&mut self, file: &Path, path: String) -> anyhow::Result<()> {
        self.paths.insert(path.clone());
        if OURS.iter().any(|end| path.ends_with(end)) {
            let text = std::fs::read_to_string(file).with_context(|| format!("cannot read {path}"))?;
            self.files.push(File { path, text });
        }
        Ok(())
    }
}

fn is_ours(folder: &Path, name: &str) -> bool {
    let hidden = name.starts_with('.') && !HIDDEN_BUT_OURS.contains(&name);
    !hidden && !folder.join("CACHEDIR.TAG").exists()
}
