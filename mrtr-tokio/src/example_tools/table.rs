//! `book_table`: one question leads to the next.

use mrtr_core::{
    form::{Elicited, Field, Form, Format},
    handler::{Ctx, RpcError, ToolResult},
    wire::Action,
};

#[derive(serde::Deserialize)]
struct Day {
    date: String,
}

#[derive(serde::Deserialize)]
struct Slot {
    time: String,
}

#[derive(serde::Deserialize)]
struct Arguments {
    people: Option<u8>,
}

const NOTHING: &str = "No table was booked.";

pub(super) async fn book(ctx: Ctx) -> Result<ToolResult, RpcError> {
    let people = ctx.args::<Arguments>()?.people.unwrap_or(2);
    if !(1..=8).contains(&people) {
        return Err(RpcError::invalid_params("Invalid params: arguments.people is not between 1 and 8"));
    }
    let mut question = format!("When should the table for {people} be?");
    // Asked again under the same key, which the library numbers: date, date#1, …
    let (date, times) = loop {
        let form = Form::builder(&question)
            .field(
                Field::string("date")
                    .title("Date")
                    .description("Year-month-day")
                    .format(Format::Date)
                    .required(),
            )
            .build()?;
        let Elicited::Accept(Day { date }) = ctx.elicit("date", &form).await? else {
            return Ok(ToolResult::text(NOTHING));
        };
        match free_times(&date, people) {
            Some(times) if times.is_empty() => {
                question = format!("We are closed on Mondays, and {date} is one. Another day?")
            }
            Some(times) => break (date, times),
            None => question = String::from("That is no day of the calendar. Another one?"),
        }
    };
    let times = times
        .into_iter()
        .fold(Field::select("time").title("Time").required(), |field, time| field.choice(time));
    let form = Form::builder(format!("These times are free on {date}.")).field(times).build()?;
    let Elicited::Accept(Slot { time }) = ctx.elicit("time", &form).await? else {
        return Ok(ToolResult::text(NOTHING));
    };
    match ctx.confirm("book", format!("Book a table for {people} on {date} at {time}?")).await? {
        Action::Accept => {
            // Made once, and the same in the log, in the mail and in the result, however often this line runs.
            let reference = ctx.once("reference", || {
                let [a, b, c, ..] = ctx.seed();
                format!("T{a:02X}{b:02X}{c:02X}")
            })?;
            Ok(ToolResult::text(format!(
                "Booked: a table for {people} on {date} at {time}. Reference {reference}."
            )))
        }
        Action::Decline | Action::Cancel => Ok(ToolResult::text(NOTHING)),
    }
}

/// The times that are free on a day (`2026-12-24`): none on Mondays; `None` if it is no day. A large party finds
/// fewer.
fn free_times(date: &str, people: u8) -> Option<Vec<&'static str>> {
    let mut parts = date.splitn(3, '-');
    let mut part = || parts.next()?.parse::<i32>().ok();
    let (year, month, day) = (part()?, part()?, part()?);
    let all: &[&str] = match weekday(year, month, day)? {
        0 => &[],
        4 | 5 => &["18:00", "20:30"],
        6 => &["11:30", "13:30", "18:00"],
        _ => &["12:00", "18:00", "19:30", "21:00"],
    };
    let skip = if people > 4 { all.len() / 2 } else { 0 };
    Some(all.iter().skip(skip).copied().collect())
}

/// The day of the week, Monday being 0 (Sakamoto's method).
fn weekday(year: i32, month: i32, day: i32) -> Option<i32> {
    const OFFSETS: [i32; 12] = [0, 3, 2, 5, 0, 3, 5, 1, 4, 6, 2, 4];
    let offset = OFFSETS.get(usize::try_from(month.checked_sub(1)?).ok()?)?;
    if !(1..=31).contains(&day) || !(1..=9999).contains(&year) {
        return None;
    }
    let year = if month < 3 { year - 1 } else { year };
    Some((year + year / 4 - year / 100 + year / 400 + offset + day + 6) % 7)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_go_by_the_day_and_the_party() {
        // Known days: 2026-11-30 is a Monday, 2026-12-24 a Thursday, 2024-02-29 a Thursday too.
        assert_eq!(free_times("2026-11-30", 2), Some(vec![]));
        assert_eq!(weekday(2026, 12, 24), Some(3));
        assert_eq!(weekday(2024, 2, 29), Some(3));
        assert_eq!(free_times("2026-12-25", 2), Some(vec!["18:00", "20:30"]));
        assert_eq!(free_times("2026-12-25", 6), Some(vec!["20:30"]));
        assert_eq!(free_times("2026-13-01", 2), None);
        assert_eq!(free_times("today", 2), None);
    }
}
