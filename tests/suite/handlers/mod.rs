//! What authors of handlers use: scripts, typed return-style answers, ways to degrade, tickets.

mod degrading;
mod elsewhere;
mod json_text;
mod return_style;
mod scripts;
mod tickets;
mod up_front;
