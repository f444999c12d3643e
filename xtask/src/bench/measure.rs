//! Processes timed from outside: wall clock, CPU seconds and peak memory as the kernel counts them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::Context as _;

/// A command to be run.
#[derive(Debug, Clone)]
pub struct Run<'a> {
    program: &'a Path,
    args: Vec<String>,
    dir: PathBuf,
    stdin: Option<PathBuf>,
    stdout: Option<PathBuf>,
}

impl<'a> Run<'a> {
    pub fn new(program: &'a Path, args: &[&str]) -> Run<'a> {
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        Run { program, args, dir: PathBuf::from("."), stdin: None, stdout: None }
    }

    pub fn dir(mut self, dir: &Path) -> Run<'a> {
        self.dir = dir.to_owned();
        self
    }

    pub fn stdin(mut self, path: PathBuf) -> Run<'a> {
        self.stdin = Some(path);
        self
    }

    pub fn stdout(mut self, path: &str) -> Run<'a> {
        self.stdout = Some(PathBuf::from(path));
        self
    }
}

/// What a run took.
#[derive(Debug, Clone, Copy)]
pub struct Took {
    pub success: bool,
    pub wall_s: f64,
    pub cpu_s: f64,
    /// The most memory that was resident, in KiB.
    pub resident_kib: u64,
}

/// Runs a command to its end.
pub fn run(run: &Run<'_>) -> anyhow::Result<Took> {
    let report = tempfile::NamedTempFile::new()?;
    // GNU time, where it is installed, tells what the kernel counted; without it only the clock is read.
    let time = Path::new("/usr/bin/time");
    let mut command = if time.exists() {
        let mut command = Command::new(time);
        command.args(["-f", "%U %S %M", "-o"]).arg(report.path()).arg(run.program);
        command
    } else {
        Command::new(run.program)
    };
    command.args(&run.args).current_dir(&run.dir);
    command.stdin(match &run.stdin {
        Some(path) => File::open(path)?.into(),
        None => Stdio::null(),
    });
    if let Some(path) = &run.stdout {
        command.stdout(File::create(path)?);
    }
    let started = Instant::now();
    let status = command.status().with_context(|| format!("cannot run {}", run.program.display()))?;
    let wall_s = started.elapsed().as_secs_f64();
    let text = std::fs::read_to_string(report.path())?;
    let numbers: Vec<f64> =
        text.lines().last().unwrap_or("").split(' ').filter_map(|word| word.parse().ok()).collect();
    let (cpu_s, resident_kib) = match numbers[..] {
        [user, system, resident] => (user + system, resident as u64),
        _ => (f64::NAN, 0),
    };
    Ok(Took { success: status.success(), wall_s, cpu_s, resident_kib })
}

/// The middle one.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
