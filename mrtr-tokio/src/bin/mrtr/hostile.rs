//! `mrtr hostile`: a server that misbehaves, for people who write clients.

use std::{
    net::SocketAddr,
    process,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use clap::Args;
use mrtr_core::testkit::{self, Carrier, Case, Expected};
use mrtr_tokio::hostile::{self, Ended};
use tokio::net::TcpListener;

use crate::{Failure, args, serve, show};

#[derive(Args)]
#[group(id = "hostile")]
#[command(group = clap::ArgGroup::new("how").required(true))]
#[command(
    after_help = "What the client does wrong is told on standard error as it is seen, and makes the exit code 1.\n\
    `mrtr hostile --list CASE` says what a correct client does. A case over HTTP has the url …/CASE."
)]
pub(crate) struct Hostile {
    /// The case. With --list or --listen it may be left out: all of them.
    #[arg(required_if_eq("stdio", "true"))]
    case: Option<String>,
    /// Says what the case does and what a correct client makes of it.
    #[arg(long, group = "how")]
    list: bool,
    /// The list as JSON, an object a line.
    #[arg(long, conflicts_with_all = ["listen", "stdio"])]
    json: bool,
    /// Serves over HTTP at this address, port 0 for any. The url is printed.
    #[arg(long, value_name = "ADDR", group = "how", value_parser = args::address)]
    listen: Option<SocketAddr>,
    /// Serves on standard input and output.
    #[arg(long, group = "how")]
    stdio: bool,
}

pub(crate) async fn run(hostile: Hostile) -> Result<(), Failure> {
    let case = match &hostile.case {
        None => None,
        Some(name) => Some(testkit::case(name).ok_or_else(|| unknown(name))?),
    };
    if hostile.list {
        testkit::cases().filter(|one| case.is_none_or(|case| case.name() == one.name())).for_each(|case| {
            show::result(&if hostile.json { json(case) } else { text(case) });
        });
        return Ok(());
    }
    let faults = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&faults);
    let watch = move |case: &'static str, fault: &'static str| {
        count.fetch_add(1, Ordering::Relaxed);
        show::complain(&format!("{case}: the client {fault}"));
    };
    match (hostile.listen, case) {
        (Some(address), case) => {
            if let Some(case) = case {
                over(case, Carrier::Http)?;
            }
            let listener = TcpListener::bind(address)
                .await
                .map_err(|error| Failure::new(format!("{address}: {error}")))?;
            let address = listener.local_addr().map_err(Failure::new)?;
            show::result(&format!("http://{address}/{}", case.map_or("", Case::name)));
            hostile::http(listener, watch, serve::asked_to_stop()).await.map_err(Failure::new)?;
        }
        (None, Some(case)) => {
            over(case, Carrier::Stdio)?;
            let served = hostile::stdio(case, tokio::io::stdin(), tokio::io::stdout(), watch);
            if served.await.map_err(Failure::new)? == Ended::Died {
                // As servers die: without a word, and without waiting for anything.
                process::exit(1);
            }
        }
        (None, None) => return Err(Failure::usage("which case? `mrtr hostile --list` has them all")),
    }
    match faults.load(Ordering::Relaxed) {
        0 => Ok(()),
        seen => Err(Failure::new(format!("{seen} faults of the client were seen"))),
    }
}

fn unknown(name: &str) -> Failure {
    // What begins alike, or has the word in it.
    let near: Vec<_> =
        testkit::cases().map(Case::name).filter(|one| one.contains(name) || name.contains(one)).collect();
    // A letter is in most of them.
    let hint = match near.len() {
        1..=30 => near.join(", "),
        _ => String::from("`mrtr hostile --list` has them all"),
    };
    Failure::usage(format!("there is no case {:?}: {hint}", show::line(name, 40)))
}

fn over(case: &Case, carrier: Carrier) -> Result<(), Failure> {
    let (is, other) = match carrier {
        Carrier::Http => ("HTTP", "--stdio"),
        Carrier::Stdio => ("stdio", "--listen"),
    };
    match case.expected(carrier) {
        Some(_) => Ok(()),
        None => Err(Failure::usage(format!("{} makes no sense over {is}: use {other}", case.name()))),
    }
}

fn text(case: &Case) -> String {
    let ends = match (case.expected(Carrier::Http), case.expected(Carrier::Stdio)) {
        (Some(http), Some(stdio)) if http == stdio => String::from(word(http)),
        (Some(http), Some(stdio)) => format!("{} over HTTP, {} over stdio", word(http), word(stdio)),
        (Some(http), None) => format!("{}; over HTTP only", word(http)),
        (None, Some(stdio)) => format!("{}; over stdio only", word(stdio)),
        (None, None) => String::new(),
    };
    let rules = case.rules().join(" ");
    format!("{} ({ends}) {rules}\n  {}\n  Right: {}", case.name(), case.does(), case.right())
}

fn json(case: &Case) -> String {
    let ends = |carrier| case.expected(carrier).map(word);
    serde_json::json!({
        "name": case.name(),
        "rules": case.rules(),
        "does": case.does(),
        "right": case.right(),
        "http": ends(Carrier::Http),
        "stdio": ends(Carrier::Stdio),
    })
    .to_string()
}

const fn word(expected: Expected) -> &'static str {
    match expected {
        Expected::Completes => "completes",
        Expected::PeerError => "peer-error",
        Expected::Refuses => "refuses",
        Expected::Stops => "stops",
        Expected::Breaks => "breaks",
        Expected::TimesOut => "times-out",
        // There is no other so far.
        _ => "other",
    }
}
