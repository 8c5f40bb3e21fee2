//! Bench programs that `tests/bench/run` can ask for one figure at a time.
//!
//! ```text
//! exchange list                the names, a line each
//! exchange growth              the names of what is run with few elements and with eight times as many, a line each
//! exchange repeat NAME N       runs it N times: what an instruction counter watches
//! exchange time NAME           nanoseconds of one run: the median of many batches
//! allocations NAME             allocations and bytes allocated by one run
//! ```

mod cases;
mod growth;

use std::{
    env,
    process::ExitCode,
    time::{Duration, Instant},
};

pub use cases::cases;
pub use growth::growth;

/// Something to measure: a name and what one run does. It must do the same work in every run.
pub struct Case {
    name: &'static str,
    run: Box<dyn FnMut()>,
}

impl Case {
    /// A case; what `run` computes belongs into `core::hint::black_box`, or the compiler leaves it out.
    #[must_use]
    pub fn new(name: &'static str, run: impl FnMut() + 'static) -> Self {
        Self { name, run: Box::new(run) }
    }
}

/// Runs something and tells what it allocated: how many times, and how many bytes.
pub type Allocated = fn(&mut dyn FnMut()) -> (u64, u64);

/// Does what the command line asks for: lists, repeats, measures time.
#[must_use]
pub fn main(mut cases: Vec<Case>, mut growth: Vec<Case>) -> ExitCode {
    let words = words();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (verb, name, count) = match *words.as_slice() {
        [verb] => (verb, "", None),
        [verb, name] => (verb, name, None),
        [verb, name, count] => (verb, name, count.parse().ok()),
        _ => return usage(VERBS),
    };
    match verb {
        "list" => {
            cases.iter().for_each(|case| println!("{}", case.name));
            return ExitCode::SUCCESS;
        }
        "growth" => {
            growth.iter().for_each(|case| println!("{}", case.name));
            return ExitCode::SUCCESS;
        }
        _ => cases.append(&mut growth),
    }
    match (verb, count, find(&mut cases, name)) {
        ("repeat", Some(count), Some(run)) => (0..count).for_each(|_: u32| run()),
        ("time", None, Some(run)) => println!("{:.0}", nanoseconds(run)),
        _ => return usage(VERBS),
    }
    ExitCode::SUCCESS
}

const VERBS: &str = "list | growth | repeat NAME N | time NAME";

/// Counts the allocations of the case that the command line names, after a few runs that may fill what stays.
#[must_use]
pub fn count(mut cases: Vec<Case>, allocated: Allocated) -> ExitCode {
    let words = words();
    let name = words.first().map_or("", String::as_str);
    let Some(run) = find(&mut cases, name) else { return usage("NAME") };
    (0..16).for_each(|_| run());
    let (allocations, bytes) = allocated(run);
    println!("{allocations} {bytes}");
    ExitCode::SUCCESS
}

/// Cargo adds `--bench`.
fn words() -> Vec<String> {
    env::args().skip(1).filter(|word| !word.starts_with("--")).collect()
}

fn find<'c>(cases: &'c mut [Case], name: &str) -> Option<&'c mut dyn FnMut()> {
    cases.iter_mut().find(|case| case.name == name).map(|case| &mut *case.run as &mut dyn FnMut())
}

fn usage(words: &str) -> ExitCode {
    eprintln!("usage: {words}");
    ExitCode::FAILURE
}

/// The median over batches of at least a millisecond, within half a second.
#[allow(clippy::disallowed_methods, reason = "a bench measures time")]
fn nanoseconds(run: &mut dyn FnMut()) -> f64 {
    let mut batch = |count: u32| {
        let start = Instant::now();
        (0..count).for_each(|_| run());
        start.elapsed()
    };
    let mut count = 1;
    while batch(count) < Duration::from_millis(1) && count < 1 << 24 {
        count *= 2;
    }
    let begun = Instant::now();
    let mut each = Vec::new();
    while begun.elapsed() < Duration::from_millis(500) && each.len() < 1_000 {
        each.push(batch(count).as_secs_f64() * 1e9 / f64::from(count));
    }
    each.sort_by(f64::total_cmp);
    each.get(each.len() / 2).copied().unwrap_or(f64::NAN)
}
