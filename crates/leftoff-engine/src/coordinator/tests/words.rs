//! The words of headers: who, why, flags. They go out and come back, and nothing else comes in.

use proptest::prelude::*;

use crate::coordinator::*;

#[test]
fn who_is_four_words() {
    let who = Who::new("a b", "", "h\to\nst", "leftoff 0.1");
    assert_eq!(who.to_string(), "a_b - h_o_st leftoff_0.1");
    assert!(who.is_member());
    assert!(!Who::unknown().is_member());
    for text in ["", "a b c", "a b c d e", "a  c d", "a b c ", "a b c\td e", " a b c"] {
        assert_eq!(Who::parse(text), None, "{text:?}");
    }
}

#[test]
fn why_and_flags_read_back() {
    for why in Why::ALL {
        assert_eq!(Why::parse(why.as_str()), Some(why));
    }
    assert_eq!(Why::parse("Commit"), None);
    let flags = Flags::NONE.with(Flag::Backwards).with(Flag::AboveEnd);
    assert_eq!(flags.to_string(), "above-end,backwards");
    assert_eq!(Flags::parse("backwards,above-end"), Some(flags));
    assert_eq!(Flags::parse(""), Some(Flags::NONE));
    assert_eq!(Flags::parse("backwards,"), None);
    assert_eq!(Flags::from_iter(Flag::ALL).to_string(), "above-end,below-start,backwards,no-read");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn who_reads_back(parts in proptest::array::uniform4("\\PC{0,300}|.{0,20}")) {
        let [member, client, host, software] = &parts;
        let who = Who::new(member, client, host, software);
        prop_assert!(who.to_string().len() <= 4 * MAX_WHO_PART_BYTES + 3);
        prop_assert_eq!(Who::parse(&who.to_string()), Some(who));
    }
}
