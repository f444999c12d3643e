#![allow(clippy::unwrap_used)]

use super::*;

const FULL: EventView<'static> = EventView {
    topic: "quakes",
    partition: 3,
    offset: Offset::new(41).unwrap(),
    timestamp_ms: 1_517_363_399_650,
    key: Some(b"uw1"),
    value: Some(b"a \"b\", c"),
    headers: &[(b"h", Some(b"v")), (b"n", None), (b"raw", Some(b"\xff"))],
};
const EMPTY: EventView<'static> = EventView { key: None, value: None, headers: &[], ..FULL };
const RAW: EventView<'static> = EventView { key: Some(b""), value: Some(b"\xff\n"), headers: &[], ..FULL };

fn written(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).unwrap();
    out.iter().map(|b| if b.is_ascii() { char::from(*b) } else { '?' }).collect()
}

#[test]
fn templates() {
    let table = [
        ("%s\\n", FULL, "a \"b\", c\n"),
        ("%v%n", FULL, "a \"b\", c\n"),
        ("%t %p:%o @%T %k", FULL, "quakes 3:41 @1517363399650 uw1"),
        ("%K %S|%h|", FULL, "3 8|h=v,n,raw=?|"),
        ("%k %K %s %S %h.", EMPTY, " -1  -1 ."),
        ("[%k]%K", RAW, "[]0"),
        ("100%% \\t\\r\\0\\x41\\\\", FULL, "100% \t\r\0A\\"),
        ("é", FULL, "??"),
        ("", FULL, ""),
    ];
    for (template, event, expect) in table {
        let format: EventFormat = template.parse().unwrap();
        assert_eq!(written(|out| format.write(out, &event)), expect, "{template}");
    }
    assert_eq!(written(|out| EventFormat::value_per_line().write(out, &FULL)), "a \"b\", c\n");
    let wide = written(|out| EventFormat::wide().write(out, &FULL));
    assert_eq!(wide, "quakes:3:41\t1517363399650\tuw1\ta \"b\", c\n");
}

#[test]
fn wrong_templates_name_the_part() {
    let table = [
        ("%x", "'%x' in '%x' is not known"),
        ("a%", "'a%' ends within '%'"),
        ("\\q", "'\\q' in '\\q' is not known"),
        ("a\\", "'a\\' ends within '\\'"),
        ("\\x4", "'\\x' in '\\x4' is not known"),
        ("\\x+1", "'\\x' in '\\x+1' is not known"),
    ];
    for (template, problem) in table {
        assert_eq!(template.parse::<EventFormat>().unwrap_err().problem(), problem);
    }
}

#[test]
fn json_keeps_every_byte() {
    let table = [
        (
            FULL,
            r#"{"topic":"quakes","partition":3,"offset":41,"timestamp_ms":1517363399650,"key":"uw1","value":"a \"b\", c","headers":[["h","v"],["n",null],["raw",{"base64":"/w=="}]]}"#,
        ),
        (
            EMPTY,
            r#"{"topic":"quakes","partition":3,"offset":41,"timestamp_ms":1517363399650,"key":null,"value":null,"headers":[]}"#,
        ),
        (
            RAW,
            r#"{"topic":"quakes","partition":3,"offset":41,"timestamp_ms":1517363399650,"key":"","value_base64":"/wo=","headers":[]}"#,
        ),
    ];
    for (event, expect) in table {
        assert_eq!(written(|out| write_json(out, &event)), format!("{expect}\n"));
    }
}

#[test]
fn csv_quotes_what_needs_it() {
    let table = [
        (FULL, "quakes,3,41,1517363399650,uw1,\"a \"\"b\"\", c\"\n"),
        (EMPTY, "quakes,3,41,1517363399650,,\n"),
        (RAW, "quakes,3,41,1517363399650,\"\",\"?\n\"\n"),
    ];
    for (event, expect) in table {
        assert_eq!(written(|out| write_csv(out, &event)), expect);
    }
}
