#![allow(clippy::unwrap_used)]

use std::sync::{Arc, Mutex};

use super::*;
use crate::source::Event;
use crate::testing::{event, id};

fn config(script: &str) -> ChildConfig {
    ChildConfig {
        group: "alerts".to_owned(),
        stderr: Box::new(|_, _| {}),
        ..ChildConfig::new("sh", ["-c", script])
    }
}

fn handle(config: ChildConfig, event: &Event) -> Result<Vec<String>, String> {
    let answer = Exec::new(config).handle(&Delivery { topic: "quakes", id: id(0), event, attempt: 2 });
    match answer {
        Ok(Answer::Handled { records }) => {
            Ok(records.iter().map(|record| record.json().to_owned()).collect())
        }
        Ok(other) => panic!("{other:?}"),
        Err(error) => Err(error.to_string()),
    }
}

#[track_caller]
fn check(script: &str, expect: Result<&[&str], &str>) {
    match (handle(config(script), &event(1)), expect) {
        (Ok(records), Ok(expect)) => assert_eq!(records, expect, "{script}"),
        (Err(error), Err(expect)) => assert!(error.contains(expect), "{script}: {error}"),
        (got, expect) => panic!("{script}: {got:?}, not {expect:?}"),
    }
}

#[test]
fn the_exit_code_is_the_answer_and_each_line_a_record() {
    check("true", Ok(&[]));
    check("cat > /dev/null", Ok(&[]));
    check("echo '{\"a\": 1.10}'; echo; printf '\"x\"'", Ok(&["{\"a\": 1.10}", "\"x\""]));
    check("exec >&-; exec 2>&-; exit 0", Ok(&[]));
    check("exit 3", Err("the command exited with code 3"));
    check("kill -9 $$", Err("the command was killed by signal 9"));
    check(
        "echo '{}'; for n in 1 2 3 4; do echo \"word $n\" >&2; done; exit 1",
        Err("code 1; its last words: word 2\n  word 3\n  word 4"),
    );
    check("echo done", Err("a line that is no record: done"));
    check("echo done; exit 7", Err("exited with code 7"));
    check("printf '\\377\\n'", Err("not UTF-8"));
    check("head -c 9000000 /dev/zero | tr '\\0' x", Err("more than 8388608 bytes"));
    check("while :; do head -c 8000000 /dev/zero | tr '\\0' x; echo; done", Err("more than 67108864 bytes"));
}

#[test]
fn what_it_is_told() {
    let told = "IFS= read -r line; printf '\"%s\"\\n' $LEFTOFF_TOPIC $LEFTOFF_GROUP $LEFTOFF_PARTITION $LEFTOFF_OFFSET \
                ${LEFTOFF_KEY-none} $LEFTOFF_ATTEMPT $LEFTOFF_ID; echo \"$line\"; read -r more && echo more; true";
    let ids = format!("\"{}/0/41\"", id(0).topic_id);
    let records = handle(config(told), &event(41)).unwrap();
    let expect = ["\"quakes\"", "\"alerts\"", "0", "41", "\"k41\"", "2", &ids]
        .map(|word| if word.starts_with('"') { word.to_owned() } else { format!("\"{word}\"") });
    assert_eq!(records[..7], expect);
    assert!(records[7].starts_with("{\"id\":\"quakes/0/41#2\"") && records.len() == 8, "{records:?}");
    // What an environment cannot hold is left out of it, and in the line all the same.
    for key in [None, Some(vec![0xff]), Some(b"a\0b".to_vec()), Some(vec![b'k'; 1 << 20])] {
        let records = handle(config(told), &Event { key, ..event(41) }).unwrap();
        assert_eq!(records[4], "\"none\"");
    }
    // An event that it does not read, and that is larger than a pipe.
    let large = Event { value: Some(vec![b'x'; 4 << 20]), ..event(1) };
    let late = "exec 0<&-; n=0; while [ $n -lt 50000 ]; do n=$((n + 1)); done; echo 1";
    assert_eq!(handle(config(late), &large).unwrap(), ["1"]);
}

#[test]
fn one_that_takes_too_long_is_killed_with_what_it_started() {
    let dir = tempfile::tempdir().unwrap();
    let pid = dir.path().join("pid");
    let script = format!("trap '' TERM; sleep 1000 & echo $! > {}; wait", pid.display());
    let timeout = Some(Duration::from_millis(200));
    let error = handle(ChildConfig { timeout, ..config(&script) }, &event(1)).unwrap_err();
    assert!(error.contains("no answer within 200ms"), "{error}");
    let pid = std::fs::read_to_string(pid).unwrap();
    let stat = format!("/proc/{}/stat", pid.trim());
    while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z")) {
        std::thread::yield_now();
    }
    // One that closes its stdout and works on has not answered.
    let error = handle(ChildConfig { timeout, ..config("exec >&-; sleep 1000") }, &event(1)).unwrap_err();
    assert!(error.contains("no answer within 200ms"), "{error}");
    let stop = Some(Arc::new(std::sync::atomic::AtomicBool::new(true)));
    let drain = Duration::from_millis(50);
    let error = handle(ChildConfig { stop, drain, ..config("sleep 1000") }, &event(1)).unwrap_err();
    assert!(error.contains("did not finish within 50ms of the stop"), "{error}");
}

#[test]
fn its_stderr_is_passed_on_with_its_event() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let to = heard.clone();
    let stderr = Box::new(move |event: Option<&str>, line: &str| {
        to.lock().unwrap().push(format!("{} {line}", event.unwrap()));
    });
    handle(ChildConfig { stderr, ..config("echo one >&2; printf two >&2") }, &event(7)).unwrap();
    assert_eq!(*heard.lock().unwrap(), ["quakes/0/7 one", "quakes/0/7 two"]);
}
