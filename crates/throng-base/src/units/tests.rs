use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[test]
fn counts_are_read() {
    for (text, count) in [
        ("0", 0),
        ("1_000", 1_000),
        ("100k", 100_000),
        ("2.5M", 2_500_000),
        (" 1G ", 1_000_000_000),
        ("0.001k", 1),
        ("18446744073709551615", u64::MAX),
    ] {
        assert_eq!(parse_count(text), Ok(count), "{text}");
    }
}

#[test]
fn durations_are_read() {
    for (text, nanos) in [
        ("1s", 1_000_000_000u64),
        ("250ms", 250_000_000),
        ("15m", 900_000_000_000),
        ("1h30m", 5_400_000_000_000),
        ("1h 30m", 5_400_000_000_000),
        ("10us", 10_000),
        ("10µs", 10_000),
        ("10μs", 10_000),
        ("1.5s", 1_500_000_000),
        ("0.1s", 100_000_000),
        ("1 d", 86_400_000_000_000),
        ("0s", 0),
    ] {
        assert_eq!(parse_duration(text), Ok(Duration::from_nanos(nanos)), "{text}");
    }
}

#[test]
fn bytes_rates_shares_and_spreads_are_read() {
    assert_eq!(parse_bytes("64KiB"), Ok(65_536));
    assert_eq!(parse_bytes("1MB"), Ok(1_000_000));
    assert_eq!(parse_bytes("512"), Ok(512));
    assert_eq!(parse_bytes("0.5 KiB"), Ok(512));
    assert_eq!(parse_rate("1000/s"), Ok(1_000.0));
    assert_eq!(parse_rate("5k/s"), Ok(5_000.0));
    assert_eq!(parse_rate("600/m"), Ok(10.0));
    assert_eq!(parse_rate("3600 / h"), Ok(1.0));
    assert_eq!(parse_rate("0.3/s"), Ok(0.3));
    for text in ["2.5Gbit", "2_500 Mbit", "2.5Gbit/s", "2500Mbit / s"] {
        assert_eq!(parse_bit_rate(text), Ok(2.5e9), "{text}");
    }
    assert_eq!(parse_share("0.01%"), Ok(0.0001));
    assert_eq!(parse_jitter("1s"), Ok((ms(1_000), 0.0)));
    for text in ["1s ±10%", "1s +-10%", "1s +/- 10 %", "1s±10%"] {
        assert_eq!(parse_jitter(text), Ok((ms(1_000), 0.1)), "{text}");
    }
}

/// Each mistake points at its own bytes.
#[test]
fn mistakes_are_named_and_placed() {
    fn check<T: std::fmt::Debug>(read: Result<T, UnitError>, text: &str, at: &str, says: &str) {
        let error = read.expect_err(text);
        assert_eq!(&text[error.span.clone()], at, "{text}: {error}");
        assert!(error.to_string().contains(says), "{text}: {error}");
    }
    let duration = |text, at, says| check(parse_duration(text), text, at, says);
    duration("", "", "a value is missing");
    duration("soon", "soon", "a number must begin");
    duration("-1s", "-1s", "a number must begin");
    duration("5", "5", "the unit is missing");
    duration("5 min", "min", "did you mean `m`?");
    duration("15M", "M", "did you mean `m`?");
    duration("5 parsecs", "parsecs", "`parsecs` is not a unit here (");
    duration("30m1h", "1h", "from large to small");
    duration("1s1s", "1s", "each once");
    duration("999999999999h", "999999999999h", "too large");
    duration("1s!", "!", "unexpected text");
    duration("1.2.3s", "1.2.3", "a number must begin");
    let count = |text, at, says| check(parse_count(text), text, at, says);
    count("1.5", "1.5", "not a whole number");
    count("100K", "K", "did you mean `k`?");
    count("100m", "m", "did you mean `M`?");
    count("18446744073709551616", "18446744073709551616", "too large");
    count("1G2", "2", "unexpected text");
    check(parse_bytes("64kib"), "64kib", "kib", "did you mean `KiB`?");
    check(parse_rate("1000"), "1000", "", "the unit is missing");
    check(parse_rate("1000/"), "1000/", "", "the unit is missing");
    check(parse_rate("1000/sec"), "1000/sec", "sec", "did you mean `s`?");
    check(parse_rate("1000/fortnight"), "1000/fortnight", "fortnight", "a rate such as");
    check(parse_bit_rate("25"), "25", "", "the unit is missing");
    check(parse_bit_rate("25GB"), "25GB", "GB", "did you mean `Gbit`?");
    check(parse_bit_rate("25Gbit/m"), "25Gbit/m", "m", "is not a unit here");
    check(parse_share("0.01"), "0.01", "0.01", "the unit is missing");
    check(parse_jitter("1s ±10"), "1s ±10", "10", "the unit is missing");
    check(parse_jitter("1s 10%"), "1s 10%", "10", "the unit is missing");
}

#[test]
fn quantities_are_shown_in_their_usual_form() {
    for (nanos, text) in [
        (0, "0s"),
        (250_000_000, "250ms"),
        (1_500_000_000, "1.5s"),
        (5_400_000_000_000, "1h30m"),
        (90_500_000_000, "1m30.5s"),
        (10_000, "10us"),
        (7, "7ns"),
    ] {
        assert_eq!(show_duration(Duration::from_nanos(nanos)), text);
    }
    assert_eq!(show_count(100_000), "100k");
    assert_eq!(show_count(2_500_000), "2.5M");
    assert_eq!(show_count(123_456), "123456");
    assert_eq!(show_bytes(65_536), "64KiB");
    assert_eq!(show_bytes(1_000_000), "1MB");
    assert_eq!(show_bytes(512), "512");
    assert_eq!(show_rate(5_000.0), "5k/s");
    assert_eq!(show_rate(1.0 / 60.0), "1/m");
    assert_eq!(show_rate(0.3), "18/m");
    assert_eq!(show_share(0.0001), "0.01%");
    assert_eq!(show_share(0.1), "10%");
}

#[test]
fn brief_forms_have_three_digits() {
    for (nanos, text) in [
        (1_234_567, "1.23ms"),
        (999_999, "1ms"),
        (45_678_000_000, "45.7s"),
        (59_999_000_000, "1m"),
        (725_400_000_000, "12m5s"),
        (12, "12ns"),
    ] {
        assert_eq!(brief_duration(Duration::from_nanos(nanos)), text);
    }
    for (count, text) in [
        (0.0, "0"),
        (950.0, "950"),
        (12_345.0, "12.3k"),
        (999_950.0, "1M"),
        (1_049_000.0, "1.05M"),
        (0.5, "0.5"),
    ] {
        assert_eq!(brief_count(count), text);
    }
    assert_eq!([0.0, 12.5, 1234.0, 3.4e6].map(brief_count), ["0", "12.5", "1.23k", "3.4M"]);
    assert_eq!(brief_rate(1000.0), "1k/s");
    assert_eq!(
        [512.0, 1023.97, 2048.0, 12.34 * 1048576.0].map(brief_bytes),
        ["512 B", "1.00 KiB", "2.00 KiB", "12.3 MiB"]
    );
    assert_eq!(
        [85, 3400, 100_000, 1_200_000].map(brief_micros),
        ["85 µs", "3.40 ms", "100 ms", "1.20 s"]
    );
    assert_eq!([0.0001, 0.0123, 1.0].map(brief_share), ["0.0100 %", "1.23 %", "100 %"]);
}

proptest! {
    #[test]
    fn shown_text_is_parsed_as_the_same_value(
        nanos: u64,
        count: u64,
        shift in 0u32..64,
        whole in 0u64..1 << 53,
    ) {
        for nanos in [nanos, nanos >> shift] {
            let duration = Duration::from_nanos(nanos);
            prop_assert_eq!(parse_duration(&show_duration(duration)), Ok(duration));
        }
        for count in [count, count >> shift, (count >> shift) / 1_000 * 1_000] {
            prop_assert_eq!(parse_count(&show_count(count)), Ok(count));
            prop_assert_eq!(parse_bytes(&show_bytes(count)), Ok(count));
        }
        prop_assert_eq!(parse_rate(&show_rate(whole as f64)), Ok(whole as f64));
    }

    #[test]
    fn a_shown_rate_reads_as_the_same(rate in 0.0f64..1e9) {
        let read = parse_rate(&show_rate(rate)).unwrap();
        prop_assert!((read - rate).abs() <= rate * 1e-12, "{} != {}", read, rate);
    }

    #[test]
    fn any_text_is_read_or_refused_inside_itself(text in ".{0,24}") {
        for error in [
            parse_count(&text).err(),
            parse_duration(&text).err(),
            parse_bytes(&text).err(),
            parse_rate(&text).err(),
            parse_share(&text).err(),
            parse_jitter(&text).err(),
        ].into_iter().flatten() {
            prop_assert!(text.get(error.span.clone()).is_some(), "{:?} {:?}", text, error);
        }
    }
}
