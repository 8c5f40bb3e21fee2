//! `mrtr resume`: a call that was put aside.

use crate::{
    Failure,
    args::Resume,
    call::{Aside, conduct, tell},
    saved::Store,
    show,
    terminal::Terminal,
};

pub(crate) async fn run(resume: Resume) -> Result<(), Failure> {
    let terminal = Terminal::new(&resume.answering)?;
    let store = Store::new(&resume.file, resume.key_file.as_deref())?;
    let saved = store.read()?;
    let url = match (&resume.url, &saved.url) {
        (Some(url), _) => Some(url.as_str()),
        (None, _) if resume.reach.stdio => None,
        // Whoever wrote the file would be given them.
        (None, Some(url)) if resume.reach.carries_credentials() && !saved.sealed => {
            return Err(Failure::usage(format!(
                "the file is not sealed, so its server is only a claim: to send credentials there, say so: mrtr resume FILE {}",
                show::line(url, 400)
            )));
        }
        (None, Some(url)) => Some(url.as_str()),
        (None, None) => {
            return Err(Failure::usage(
                "the file does not say where the server is: mrtr resume FILE URL, or mrtr resume FILE --stdio -- CMD…",
            ));
        }
    };
    let client = resume.reach.client(url, &resume.answering)?;
    let waiting = store.load(&client, &saved)?;
    let done = conduct(&terminal, client.resume(waiting, &terminal)).await;
    // A tool that says that it failed has said so: there is nothing to carry on.
    let over = matches!(done, Some(Ok(_)));
    let said = tell(done, &client, &resume.answering, &Aside::Into(&store), &terminal);
    client.close().await;
    // An error of the server's may be about the state, and then the call is over; or about this moment. One of this
    // machine's, a full disk for example, is no reason to lose what is there: a result that nobody could read is none.
    if over && show::lost().is_none() {
        store.remove();
    }
    said.map(|_| ())
}
