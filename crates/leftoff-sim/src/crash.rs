//! Cuts the power after every disk operation of a script, and holds every image that is left to the oracle.

use std::fmt;
use std::sync::Arc;

use leftoff_engine::broker::View;
use leftoff_engine::disk::Disk;
use leftoff_engine::disk::mem::MemDisk;

use crate::driver::{Mood, Run, Stop};
use crate::history::History;
use crate::oracle::{self, Expect};
use crate::script::Script;

/// How much is tried.
#[derive(Debug, Clone, Copy)]
pub struct Budget {
    /// Of so many operations the power is cut after one.
    pub point_every: u64,
    /// Images after each operation.
    pub images: usize,
    /// Of so many images one is opened a second time, cut once more, and written on.
    pub second_every: usize,
    /// Of so many images one has the power cut at every operation of its recovery.
    pub recovery_every: usize,
    /// Images after each operation of a recovery.
    pub recovery_images: usize,
}

/// What was done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tried {
    /// Operations after which the power was cut.
    pub points: u64,
    /// Images that were opened.
    pub images: u64,
}

/// Where it went wrong.
#[derive(Debug, Clone)]
pub struct Failure {
    /// The script's name.
    pub name: String,
    /// The script.
    pub text: String,
    /// The power was cut after so many operations.
    pub point: u64,
    /// The number of the image among those that [`seed`] gives; `None`: before the cut.
    pub image: Option<usize>,
    /// In which part of the trial.
    pub during: String,
    /// What is wrong.
    pub what: String,
}

/// The variable of the environment that runs one case only: `NAME`, `NAME:POINT` or `NAME:POINT:IMAGE`.
pub const ONLY: &str = "LEFTOFF_CRASH";

/// The name of scripts that are made by chance.
pub const RANDOM: &str = "random";

/// The variable of the environment that has the text of one such script.
pub const SCRIPT: &str = "LEFTOFF_SCRIPT";

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { name, text, point, image, during, what } = self;
        let image = image.map_or(String::new(), |image| format!(":{image}"));
        writeln!(f, "script {name}: {text}")?;
        writeln!(f, "power cut after operation {point}, seed {}, {during}:", seed(*point))?;
        writeln!(f, "  {what}")?;
        let script = if name == RANDOM { format!("{SCRIPT}={text:?} ") } else { String::new() };
        write!(f, "run only this: {script}{ONLY}={name}:{point}{image} cargo test -p leftoff-sim")
    }
}

/// One case, as [`ONLY`] names it.
#[derive(Debug, Clone, Default)]
pub struct Only {
    /// The script.
    pub name: Option<String>,
    /// The operation after which the power is cut.
    pub point: Option<u64>,
    /// The image.
    pub image: Option<usize>,
}

impl Only {
    /// From the environment.
    pub fn from_env() -> Only {
        let text = std::env::var(ONLY).unwrap_or_default();
        let mut parts = text.split(':').filter(|part| !part.is_empty());
        Only {
            name: parts.next().map(str::to_owned),
            point: parts.next().and_then(|part| part.parse().ok()),
            image: parts.next().and_then(|part| part.parse().ok()),
        }
    }

    /// Whether a script is to be run.
    pub fn is_wanted(&self, name: &str) -> bool {
        self.name.as_ref().is_none_or(|only| only == name)
    }
}

/// The seed of the images after so many operations.
pub fn seed(point: u64) -> u64 {
    point.wrapping_mul(0x9E37_79B9).wrapping_add(1)
}

/// A new directory of ours, all of it on the disk.
///
/// # Panics
/// If that cannot be made: then nothing can be tried.
pub fn new_directory(script: &Script) -> MemDisk {
    let disk = MemDisk::new();
    let mut run = Run::open(Arc::new(disk.clone()), script, History::default(), Mood::Sound)
        .map_err(|(_, stop)| stop)
        .expect("a new directory");
    run.close().expect("a clean stop");
    let everything = disk.survivors(2, 0).into_iter().find(|image| same_files(image, &disk));
    everything.expect("one image is the one in which everything survives")
}

fn same_files(one: &MemDisk, other: &MemDisk) -> bool {
    let root = std::path::Path::new("");
    let files = |disk: &MemDisk| -> Vec<(String, u64)> {
        let mut files = Vec::new();
        for entry in disk.list(root).unwrap_or_default() {
            let path = root.join(&entry.name);
            let len = disk.metadata(&path).ok().flatten().map_or(0, |meta| meta.len_bytes);
            files.push((entry.name.clone(), len));
            for inner in disk.list(&path).unwrap_or_default() {
                let len =
                    disk.metadata(&path.join(&inner.name)).ok().flatten().map_or(0, |meta| meta.len_bytes);
                files.push((format!("{}/{}", entry.name, inner.name), len));
            }
        }
        files
    };
    files(one) == files(other)
}

/// Runs a script from `base` (an empty disk, or a directory), cutting the power after every operation.
///
/// # Errors
/// The first [`Failure`].
pub fn explore(
    name: &str,
    text: &str,
    base: &MemDisk,
    budget: Budget,
    only: &Only,
) -> Result<Tried, Box<Failure>> {
    let script = Script::parse(text);
    let mut trial = Trial { name, script: &script, budget, tried: Tried::default() };
    let operations = trial.without_a_cut(base)?;
    for point in 0..=operations {
        let is_next = point.is_multiple_of(budget.point_every);
        if only.point.map_or(is_next, |only| only == point) {
            trial.cut_after(base, point, only.image)?;
        }
    }
    Ok(trial.tried)
}

struct Trial<'a> {
    name: &'a str,
    script: &'a Script,
    budget: Budget,
    tried: Tried,
}

/// What is done after a crash: every log is written to once more.
pub(crate) const AFTERWARDS: &str = "topic afterwards 1; append-everywhere & append afterwards/0 2; commit later afterwards/0 +1; set later afterwards/0 +1 -> afterwards/0 1";

impl Trial<'_> {
    fn without_a_cut(&self, base: &MemDisk) -> Result<u64, Box<Failure>> {
        let disk = base.image();
        let (_, stop) = live(&disk, self.script, Mood::Watched);
        match stop {
            None => Ok(disk.operations()),
            Some(stop) => Err(self.failure(disk.operations(), None, "without a cut", &format!("{stop:?}"))),
        }
    }

    fn cut_after(&mut self, base: &MemDisk, point: u64, only: Option<usize>) -> Result<(), Box<Failure>> {
        self.tried.points += 1;
        let disk = base.image();
        disk.cut_power_after(point);
        let (history, stop) = live(&disk, self.script, Mood::Sound);
        if let Some(Stop::Wrong(what)) = stop {
            return Err(self.failure(point, None, "when the power was cut", &what));
        }
        let killed = disk.image();
        if only.is_none() {
            self.hold_killed(&killed, &history, point)?;
        }
        for (number, image) in disk.survivors(self.budget.images, seed(point)).into_iter().enumerate() {
            if only.is_none_or(|only| only == number) {
                self.tried.images += 1;
                self.hold(&image, &history, point, number)?;
            }
        }
        Ok(())
    }

    /// SIGKILL at that operation: everything that was written is there, and unsynced. Then the power is cut.
    fn hold_killed(&mut self, killed: &MemDisk, history: &History, point: u64) -> Result<(), Box<Failure>> {
        let during = "killed";
        self.view(killed, history, Expect::READER)
            .map_err(|what| self.failure(point, None, during, &what))?;
        let disk = killed.image();
        let history = self.opened(&disk, history, point, None, during)?;
        for image in disk.survivors(self.budget.recovery_images, seed(point)) {
            self.tried.images += 1;
            self.opened(&image, &history, point, None, "killed, started, then the power was cut")?;
        }
        Ok(())
    }

    fn hold(
        &mut self,
        image: &MemDisk,
        history: &History,
        point: u64,
        number: usize,
    ) -> Result<(), Box<Failure>> {
        let place = Some(number);
        self.view(image, history, Expect::READER_AFTER_POWER_CUT)
            .map_err(|what| self.failure(point, place, "a reader before recovery", &what))?;
        let disk = image.image();
        let settled = self.opened(&disk, history, point, place, "recovery")?;
        let turn = point as usize + number;
        if turn.is_multiple_of(self.budget.second_every) {
            self.hold_again(&disk, &settled, point, number)?;
        }
        if turn.is_multiple_of(self.budget.recovery_every) {
            self.cut_recovery(image, history, disk.operations(), point, number)?;
        }
        Ok(())
    }

    /// A second start finds the same and does nothing; a power cut right after the first takes nothing of it; and the
    /// directory takes new events, which the next power cut does not take.
    fn hold_again(
        &mut self,
        disk: &MemDisk,
        settled: &History,
        point: u64,
        number: usize,
    ) -> Result<(), Box<Failure>> {
        let place = Some(number);
        for image in disk.survivors(self.budget.recovery_images, seed(point)) {
            self.tried.images += 1;
            self.opened(&image, settled, point, place, "a power cut right after recovery")?;
        }
        let second = Run::open(Arc::new(disk.image()), self.script, settled.clone(), Mood::Sound);
        let mut run = second
            .map_err(|(_, stop)| self.failure(point, place, "the second start", &format!("{stop:?}")))?;
        let recovered = run.broker().map(|broker| broker.recovered().clone()).unwrap_or_default();
        if recovered.kept_bytes + recovered.cut_bytes > 0 {
            return Err(self.failure(
                point,
                place,
                "the second start",
                &format!("not settled: {recovered:?}"),
            ));
        }
        let disk = disk.image();
        let opened = Run::open(Arc::new(disk.clone()), self.script, settled.clone(), Mood::Sound);
        run = opened
            .map_err(|(_, stop)| self.failure(point, place, "the third start", &format!("{stop:?}")))?;
        let mut afterwards = Script::parse(AFTERWARDS);
        afterwards.config = self.script.config.clone();
        run.set_script(afterwards);
        run.go().map_err(|stop| self.failure(point, place, "going on afterwards", &format!("{stop:?}")))?;
        let history = run.history.clone();
        drop(run);
        for image in disk.survivors(self.budget.recovery_images, seed(point)) {
            self.tried.images += 1;
            self.opened(&image, &history, point, place, "a power cut after going on")?;
        }
        Ok(())
    }

    fn cut_recovery(
        &mut self,
        image: &MemDisk,
        history: &History,
        operations: u64,
        point: u64,
        number: usize,
    ) -> Result<(), Box<Failure>> {
        for second in 0..operations {
            let disk = image.image();
            disk.cut_power_after(second);
            let during = format!("recovery cut after its operation {second}");
            let history = match Run::open(Arc::new(disk.clone()), self.script, history.clone(), Mood::Sound) {
                Err((history, Stop::PowerCut)) => history,
                // The last operations tidy up, and what they could not do is not missed.
                Ok(run) => run.history,
                Err((_, stop)) => {
                    return Err(self.failure(point, Some(number), &during, &format!("{stop:?}")));
                }
            };
            for image in disk.survivors(self.budget.recovery_images, seed(second)) {
                self.tried.images += 1;
                self.view(&image, &history, Expect::READER_AFTER_POWER_CUT).map_err(|what| {
                    self.failure(point, Some(number), &format!("{during}: a reader"), &what)
                })?;
                self.opened(&image, &history, point, Some(number), &during)?;
            }
        }
        Ok(())
    }

    fn opened(
        &self,
        disk: &MemDisk,
        history: &History,
        point: u64,
        image: Option<usize>,
        during: &str,
    ) -> Result<History, Box<Failure>> {
        match Run::open(Arc::new(disk.clone()), self.script, history.clone(), Mood::Sound) {
            Ok(run) => Ok(run.history),
            Err((_, stop)) => Err(self.failure(point, image, during, &format!("{stop:?}"))),
        }
    }

    fn view(&self, disk: &MemDisk, history: &History, expect: Expect) -> Result<(), String> {
        let disk: Arc<dyn Disk> = Arc::new(disk.clone());
        match View::open(&disk) {
            Ok(view) => oracle::check(history, view.state(), expect.of(&view)).map(|_| ()),
            Err(leftoff_engine::broker::OpenError::Empty) if history.topics.is_empty() => Ok(()),
            Err(error) => Err(format!("cannot be read: {error}")),
        }
    }

    fn failure(&self, point: u64, image: Option<usize>, during: &str, what: &str) -> Box<Failure> {
        Box::new(Failure {
            name: self.name.to_owned(),
            text: self.script.text.clone(),
            point,
            image,
            during: during.to_owned(),
            what: what.to_owned(),
        })
    }
}

/// From the start to a clean stop, or to whatever comes in between.
fn live(disk: &MemDisk, script: &Script, mood: Mood) -> (History, Option<Stop>) {
    let mut run = match Run::open(Arc::new(disk.clone()), script, History::default(), mood) {
        Ok(run) => run,
        Err((history, stop)) => return (history, Some(stop)),
    };
    let stop = run.go().and_then(|()| run.close()).err();
    (run.history.clone(), stop)
}
