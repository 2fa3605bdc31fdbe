//! `time.now`: what time it is.

use callgate_core::time::Timestamp;
use jiff::tz::{Offset, TimeZone};
use serde::Deserialize;
use serde_json::json;

use super::definition::ToolDef;
use super::error::{ToolError, ToolResult};

/// Longer than any name in the time zone database (the longest has 32 characters).
const MAX_TIMEZONE_CHARS: usize = 64;

/// What `time.now` says of itself.
#[must_use]
pub fn definition() -> ToolDef {
    ToolDef::reading(
        "time.now",
        "Tells the present time, in UTC or in a time zone.",
        r#"{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","additionalProperties":false,"properties":{
"timezone":{"type":"string","minLength":1,"maxLength":64,"description":"an IANA name (Europe/Rome) or an offset from UTC (+02:00); UTC when absent"}}}"#,
    )
}

/// Arguments of `time.now`.
#[derive(Clone, Default, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NowArgs {
    /// An IANA name or an offset from UTC such as `+02:00`; UTC when absent. Never the host's own zone, so that the answer
    /// depends on the arguments alone.
    pub timezone: Option<String>,
}

/// The moment `now` (a reading of the host's wall clock) as `{"rfc3339", "unix_ms", "timezone", "offset"}`.
///
/// # Errors
///
/// Refuses a time zone that is no offset and not in the database, and a moment beyond the year 9999.
pub fn now(args: &NowArgs, now: Timestamp) -> ToolResult {
    let (name, zone) = match args.timezone.as_deref() {
        None => ("UTC", TimeZone::UTC),
        Some(name) => (name, find(name)?),
    };
    let unix_ms = now.as_unix_millis();
    let moment = i64::try_from(unix_ms)
        .ok()
        .and_then(|millis| jiff::Timestamp::from_millisecond(millis).ok())
        .ok_or_else(|| ToolError::failed("the clock of this host is beyond the year 9999"))?;
    let offset = zone.to_offset(moment);
    Ok(json!({
        "rfc3339": format!("{:.3}", moment.display_with_offset(offset)),
        "unix_ms": unix_ms,
        "timezone": name,
        "offset": offset_text(offset),
    }))
}

fn find(name: &str) -> Result<TimeZone, ToolError> {
    let unknown =
        || ToolError::refused("timezone: neither an IANA name such as Europe/Rome nor an offset such as +02:00");
    // The database may be a directory of the host. Only what can be a name in it is looked up.
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'_' | b'-' | b'+' | b':');
    if name.is_empty() || name.len() > MAX_TIMEZONE_CHARS || !name.bytes().all(plain) {
        return Err(unknown());
    }
    if name == "Z" || name.eq_ignore_ascii_case("UTC") {
        return Ok(TimeZone::UTC);
    }
    if name.starts_with(['+', '-']) {
        return offset(name).map(TimeZone::fixed).ok_or_else(unknown);
    }
    TimeZone::get(name).map_err(|error| unknown().with_detail(error.to_string()))
}

/// Reads `+HH:MM` or `-HH:MM`, the form of RFC 3339 section 5.6. `-00:00` there means that the zone is unknown, and is refused.
fn offset(text: &str) -> Option<Offset> {
    let (sign, rest) = match text.split_at_checked(1)? {
        ("+", rest) => (1, rest),
        ("-", rest) => (-1, rest),
        _ => return None,
    };
    let (hours, minutes) = rest.split_once(':')?;
    let two_digits = |part: &str| -> Option<i32> {
        (part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit())).then(|| part.parse().ok())?
    };
    let (hours, minutes) = (two_digits(hours)?, two_digits(minutes)?);
    let seconds = hours * 3_600 + minutes * 60;
    if hours > 23 || minutes > 59 || (sign < 0 && seconds == 0) {
        return None;
    }
    Offset::from_seconds(sign * seconds).ok()
}

fn offset_text(offset: Offset) -> String {
    let seconds = offset.seconds();
    let sign = if seconds < 0 { '-' } else { '+' };
    let minutes = seconds.unsigned_abs() / 60;
    format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toolkit::Fault;

    const MOMENT: Timestamp = Timestamp::from_unix_millis(1_796_000_329_007);

    fn ask(timezone: &str) -> ToolResult {
        now(&NowArgs { timezone: Some(timezone.to_owned()) }, MOMENT)
    }

    #[test]
    fn the_default_is_utc_whatever_the_host_says() {
        let answer = now(&NowArgs::default(), MOMENT).unwrap();
        assert_eq!(
            answer,
            json!({"rfc3339": "2026-11-30T00:58:49.007+00:00", "unix_ms": 1_796_000_329_007_u64, "timezone": "UTC", "offset": "+00:00"})
        );
    }

    #[test]
    fn names_and_offsets_give_the_same_instant() {
        for (zone, text) in [
            ("Europe/Rome", "2026-11-30T01:58:49.007+01:00"),
            ("Asia/Kolkata", "2026-11-30T06:28:49.007+05:30"),
            ("+05:30", "2026-11-30T06:28:49.007+05:30"),
            ("-11:00", "2026-11-29T13:58:49.007-11:00"),
            ("Z", "2026-11-30T00:58:49.007+00:00"),
        ] {
            let answer = ask(zone).unwrap();
            assert_eq!(answer["rfc3339"], text, "{zone}");
            assert_eq!(answer["timezone"], zone);
        }
    }

    #[test]
    fn daylight_saving_changes_the_offset() {
        let summer = Timestamp::from_unix_millis(1_782_000_000_000);
        let answer = now(&NowArgs { timezone: Some("Europe/Rome".to_owned()) }, summer).unwrap();
        assert_eq!(answer["offset"], "+02:00");
    }

    #[test]
    fn what_is_no_time_zone_is_refused() {
        for zone in [
            "",
            "Mars/Olympus",
            "+25:00",
            "+02:60",
            "-00:00",
            "+2:00",
            "+0200",
            "../../etc/passwd",
            "Europe/Rome\0",
            "/etc/localtime",
        ] {
            let error = ask(zone).unwrap_err();
            assert_eq!(error.fault, Fault::Refused, "{zone:?}");
            // L4: the reason never holds the value.
            assert!(zone.is_empty() || !error.message.contains(zone), "{zone:?}");
        }
    }

    #[test]
    fn a_clock_beyond_the_calendar_is_no_panic() {
        for millis in [u64::MAX, i64::MAX as u64, 253_402_300_800_000] {
            let error = now(&NowArgs::default(), Timestamp::from_unix_millis(millis)).unwrap_err();
            assert_eq!(error.fault, Fault::Failed);
        }
    }
}
