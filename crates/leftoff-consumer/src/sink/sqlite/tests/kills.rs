//! A process that writes without pause is killed with SIGKILL, again and again: after each kill the database holds the rows of
//! exactly the events below its offsets, each once.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use super::*;

/// Of each database.
const KILLS: usize = 30;
const PARTITIONS: i32 = 2;
/// Where the child finds the folder, and its seed.
const FOLDER: &str = "LEFTOFF_SQLITE_KILLS_FOLDER";
/// What the child says after each write.
const WRITTEN: &str = "written";
/// Set where each event is produced twice, and its copy to be absorbed.
const TWICE: &str = "LEFTOFF_SQLITE_KILLS_TWICE";
const SEED: &str = "LEFTOFF_SQLITE_KILLS_SEED";

#[test]
fn killed_while_it_writes() {
    // On a real file system: in memory a lock or a sync may be another.
    let folder = TempDir::new().unwrap();
    for (mode, twice) in [("wal", false), ("delete", false), ("wal", true)] {
        let folder = folder.path().join(format!("{mode}-{twice}"));
        fs::create_dir(&folder).unwrap();
        sql(
            &folder,
            &format!(
                "PRAGMA journal_mode = {mode}; CREATE TABLE t (place TEXT PRIMARY KEY, leftoff_id TEXT)"
            ),
        );
        let mut seed = 7;
        let mut last = 0;
        for kill in 0..KILLS {
            let mut child = start(&folder, kill, twice);
            // Sometimes at once, sometimes after a few more writes: it goes on meanwhile, so it is in the midst of one.
            let writes = usize::try_from(random(&mut seed) % 20).unwrap();
            let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
            assert_eq!(
                lines.filter(|line| line == WRITTEN).take(writes).count(),
                writes,
                "it ended by itself"
            );
            child.kill().unwrap();
            child.wait().unwrap();
            last = judge(&folder, twice);
        }
        assert!(last > 100, "it came to {last} only");
    }
}

fn start(folder: &Path, seed: usize, twice: bool) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "sink::sqlite::tests::kills::the_child", "--nocapture"]);
    command.env(FOLDER, folder).env(SEED, (seed + 1).to_string());
    if twice {
        command.env(TWICE, "yes");
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

/// What the process does that is killed. Run by itself it does nothing.
#[test]
fn the_child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let mut seed: u64 = std::env::var(SEED).unwrap().parse().unwrap();
    let mut sink = sink(Path::new(&folder));
    let claims: Vec<_> = (0..PARTITIONS).map(claim_of).collect();
    let mut stands = sink.claim(&claims).unwrap().next;
    loop {
        let mut outputs = Vec::new();
        let mut moves = Vec::new();
        for partition in 0..PARTITIONS {
            let stand = stands[&id(partition)].map(|next| next.next().get());
            let (from, count) = (stand.unwrap_or(0), i64::try_from(random(&mut seed) % 4).unwrap());
            for offset in from..from + count {
                let output = outcome(&sink, partition, offset);
                sink.check(&output).unwrap();
                outputs.push(output);
            }
            if count > 0 {
                moves.push(moved(partition, stand, from + count));
                stands.insert(id(partition), Some(next(from + count)));
            }
        }
        assert_eq!(sink.write(&outputs, &moves).unwrap(), Written::Written);
        // Not by `println!`, which tests capture. Whoever reads it may be done with it.
        let _ = writeln!(io::stdout(), "{WRITTEN}");
    }
}

/// As the runner does it.
fn outcome(sink: &SqliteSink, partition: i32, offset: i64) -> Output {
    if std::env::var_os(TWICE).is_none() {
        return output(partition, offset, &text(partition, offset));
    }
    let event_id = format!("{partition}/{}", offset / 2).into_bytes();
    if sink.has_taken(id(partition), at(offset), &event_id).unwrap() {
        return Output { outcome: Outcome::Absorbed, ..output(partition, offset, "-") };
    }
    Output { event_id: Some(event_id), ..output(partition, offset, &text(partition, offset)) }
}

/// What comes of an event.
fn text(partition: i32, offset: i64) -> String {
    match offset % 5 {
        0 => "f".to_owned(),
        1 => "1 2".to_owned(),
        2 => format!(r#"{{"table":"t","row":{{"place":"{partition}/{offset}"}}}}"#),
        3 => "-".to_owned(),
        _ => "3".to_owned(),
    }
}

/// Reads the tables, and compares them with what must come of the events below the offsets. Their sum.
fn judge(folder: &Path, twice: bool) -> i64 {
    let mut expect: [Vec<String>; 3] = Default::default();
    let mut sum = 0;
    for row in rows(folder, OFFSETS) {
        let words: Vec<&str> = row.split(' ').collect();
        let (partition, next): (i32, i64) = (words[0].parse().unwrap(), words[1].parse().unwrap_or(0));
        sum += next;
        for offset in 0..next {
            let place = format!("{partition} {offset}");
            match offset % 5 {
                _ if twice && offset % 2 == 1 => expect[1].push(format!("{place} {offset} absorbed")),
                0 => expect[1].push(format!("{place} {offset} filtered")),
                1 => expect[0].extend([format!("{place} 0 1"), format!("{place} 1 2")]),
                2 => expect[2].push(format!("{partition}/{offset}")),
                3 => expect[1].push(format!("{place} {offset} handled")),
                _ => expect[0].push(format!("{place} 0 3")),
            }
        }
    }
    expect[2].sort();
    let [events, outcomes, named] = expect;
    assert_eq!(rows(folder, EVENTS), events);
    assert_eq!(rows(folder, OUTCOMES), outcomes);
    assert_eq!(rows(folder, "SELECT place FROM t ORDER BY 1"), named);
    assert_eq!(rows(folder, "PRAGMA integrity_check"), ["ok"]);
    sum
}

/// A xorshift generator: the same kills from the same seed, as far as the machine plays along.
fn random(seed: &mut u64) -> u64 {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    *seed
}
