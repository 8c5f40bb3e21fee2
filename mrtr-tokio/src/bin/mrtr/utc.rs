//! A point in time as people write it.

use mrtr_core::Timestamp;

/// RFC 3339 in UTC with milliseconds: `2026-07-28T12:00:00.000Z`.
pub(crate) fn utc(time: Timestamp) -> String {
    let (seconds, millis) = (time.as_unix_millis() / 1_000, time.as_unix_millis() % 1_000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

/// The Gregorian date so many days after 1 January 1970. Counted in years that begin in March, so that the leap day is
/// the last one of its year.
const fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468; // from 1 March of the year 0
    let (era, day) = (days / 146_097, days % 146_097); // of 400 years
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153; // March is 0
    let first = (153 * month + 2) / 5;
    let (month, carry) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + carry, month, day - first + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_day_of_eight_centuries_follows_the_one_before() {
        let leap =
            |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for days in 0..800 * 366 {
            assert_eq!(date(days), (year, month, day));
            let last = match month {
                2 => 28 + u64::from(leap(year)),
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            (day, month) = if day == last { (1, month + 1) } else { (day + 1, month) };
            (month, year) = if month == 13 { (1, year + 1) } else { (month, year) };
        }
    }

    #[test]
    fn as_rfc_3339_has_it() {
        let utc = |millis| utc(Timestamp::from_unix_millis(millis));
        assert_eq!(utc(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(utc(951_782_400_001), "2000-02-29T00:00:00.001Z");
        assert_eq!(utc(1_785_239_999_999), "2026-07-28T11:59:59.999Z");
        assert_eq!(utc((1 << 48) - 1), "10889-08-02T05:31:50.655Z");
    }
}
