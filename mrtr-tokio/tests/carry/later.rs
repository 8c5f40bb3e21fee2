//! `mrtr call --save` and `mrtr resume`: a call that is carried on by other processes.

use std::path::{Path, PathBuf};

use mrtr_core::Limits;
use mrtr_tokio::server::{Anonymous, Endpoint};

use crate::{
    command::{MRTR, run},
    support::{Running, service},
};

/// A folder of its own, removed in the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("mrtr-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().into()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

async fn server() -> Running {
    let (service, _seen) = service(Limits::default());
    Running::start(Endpoint::new(service, Anonymous::new()), Default::default()).await
}

#[tokio::test]
async fn a_call_waits_in_a_file_for_its_answers_w_01() {
    let (running, folder) = (server().await, Folder::new("later"));
    let (url, file) = (running.url(), folder.file("call"));
    let (out, err, code) = run(&["call", &url, "name", "--save", &file]).await;
    assert_eq!((out.as_str(), code), ("", 3), "{err}");
    assert!(err.contains("not answered: \"name\"") && err.contains(&format!("mrtr resume {file}")), "{err}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    }
    // Without an answer it goes on waiting, and nothing is sent.
    let before = std::fs::read(&file).unwrap();
    assert_eq!(run(&["resume", &file]).await.2, 3);
    assert!(Path::new(&file).exists());
    // The next question comes, and is saved in its place.
    let (_, err, code) = run(&["resume", &file, "--answer", r#"name="Ada""#]).await;
    assert!(code == 3 && err.contains("\"sure\""), "{err}");
    assert_ne!(std::fs::read(&file).unwrap(), before);
    let (out, err, code) = run(&["resume", &file, &url, "--answer", "sure=accept"]).await;
    assert_eq!((out.as_str(), code), ("Hello, Ada!\n", 0), "{err}");
    assert!(!Path::new(&file).exists(), "it is over");
    // Nothing else was left there.
    assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 0);
}

#[tokio::test]
async fn a_saved_call_goes_nowhere_else_r_092() {
    let (running, folder) = (server().await, Folder::new("elsewhere"));
    let (url, file) = (running.url(), folder.file("call"));
    assert_eq!(run(&["call", &url, "name", "--save", &file]).await.2, 3);
    let other = server().await;
    let answered = ["--answer", "name=\"Ada\""];
    let (_, err, code) = run(&[&["resume", &file, &other.url()], &answered[..]].concat()).await;
    assert!(code == 1 && err.contains("another server"), "{err}");
    // Nor if the line that people read is changed.
    let bytes = std::fs::read(&file).unwrap();
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap();
    let head = String::from_utf8(bytes[..end].to_vec()).unwrap();
    let changed = head.replace(&running.address.port().to_string(), &other.address.port().to_string());
    let changed = [changed.as_bytes(), &bytes[end..]].concat();
    std::fs::write(&file, changed).unwrap();
    let (_, err, code) = run(&[&["resume", &file], &answered[..]].concat()).await;
    assert!(code == 1 && err.contains("another server"), "{err}");
    // Credentials go only where the person says.
    std::fs::write(&file, &bytes).unwrap();
    let with_token = [&["resume", &file, "--header", "X-Key: secret"], &answered[..]].concat();
    let (_, err, code) = run(&with_token).await;
    assert!(code == 2 && err.contains(&url), "{err}");
    // What is no saved call is said to be none; what is broken, too.
    for bytes in [b"".as_slice(), b"{}\n", b"text\nmore", &bytes[..end + 40]] {
        std::fs::write(&file, bytes).unwrap();
        let (_, err, code) = run(&[&["resume", &file, &url], &answered[..]].concat()).await;
        assert!(code == 1 && err.contains(&file), "{err}");
    }
    assert_eq!(run(&["resume", &folder.file("none")]).await.2, 1);
    // A file that is there is not overwritten, and nothing is called for nothing.
    let (_, err, code) = run(&["call", &url, "name", "--save", &file]).await;
    assert!(code == 1 && err.contains("is there already"), "{err}");
}

#[tokio::test]
async fn a_call_over_stdio_is_carried_on_by_the_same_command_r_185() {
    let folder = Folder::new("stdio");
    let (file, key) = (folder.file("call"), folder.file("key"));
    assert_eq!(run(&["keygen", "--out", &key]).await.2, 0);
    let server = ["--", MRTR, "serve", "--stdio", "--key-file", &key];
    let call = ["call", "--stdio", "plan", "--args", r#"{"city":"Oslo"}"#, "--save", &file];
    let (_, err, code) = run(&[&call[..], &server].concat()).await;
    assert_eq!(code, 3, "{err}");
    // A command is not taken from a file.
    let (_, err, code) = run(&["resume", &file, "--answer", "days=1"]).await;
    assert!(code == 2 && err.contains("--stdio"), "{err}");
    let resume = ["resume", &file, "--stdio", "--answer", "days=1", "--answer", "pace=\"slow\""];
    let (out, err, code) = run(&[&resume[..], &server].concat()).await;
    assert_eq!((out.as_str(), code), ("Oslo, 1 day, slow\n", 0), "{err}");
}

#[tokio::test]
async fn a_sealed_call_opens_with_its_key_alone() {
    let (running, folder) = (server().await, Folder::new("sealed"));
    let (url, file) = (running.url(), folder.file("call"));
    let (key, other) = (folder.file("key"), folder.file("other"));
    for key in [&key, &other] {
        assert_eq!(run(&["keygen", "--out", key]).await.2, 0);
    }
    let sealed = ["call", &url, "name", "--answer", "name=\"Adalbert\"", "--save", &file, "--key-file", &key];
    assert_eq!(run(&sealed).await.2, 3);
    let bytes = std::fs::read(&file).unwrap();
    assert!(!bytes.windows(8).any(|window| window == b"Adalbert"), "nothing of it can be read");
    let resume = |more: &'static [&'static str], key: String| {
        let file = file.clone();
        async move {
            let mut args = vec!["resume", &*file, "--answer", "sure=accept"];
            if !key.is_empty() {
                args.extend(["--key-file", &key]);
            }
            run(&[&args[..], more].concat()).await
        }
    };
    let (_, err, code) = resume(&[], String::new()).await;
    assert!(code == 1 && err.contains("--key-file"), "{err}");
    assert_eq!(resume(&[], other).await.2, 1);
    let mut changed = bytes.clone();
    *changed.last_mut().unwrap() ^= 1;
    std::fs::write(&file, changed).unwrap();
    assert_eq!(resume(&[], key.clone()).await.2, 1);
    // One that is not sealed is not taken for one that is: its server is only a claim.
    let plain = folder.file("plain");
    assert_eq!(run(&["call", &url, "name", "--save", &plain]).await.2, 3);
    std::fs::copy(&plain, &file).unwrap();
    assert_eq!(resume(&[], key.clone()).await.2, 1);
    // Of a sealed file the server is believed, with credentials too.
    std::fs::write(&file, &bytes).unwrap();
    let (out, err, code) = resume(&["--header", "X-Key: secret"], key).await;
    assert_eq!((out.as_str(), code), ("Hello, Adalbert!\n", 0), "{err}");
}

#[tokio::test]
async fn answers_come_from_a_file_and_scripts_get_json() {
    let (running, folder) = (server().await, Folder::new("answers"));
    let (url, answers, file) = (running.url(), folder.file("answers.json"), folder.file("call"));
    std::fs::write(&answers, r#"{"name":{"name":"Ada"},"sure":"accept","other":1}"#).unwrap();
    let (out, err, code) = run(&["call", &url, "name", "--answers", &answers]).await;
    assert_eq!((out.as_str(), code), ("Hello, Ada!\n", 0), "{err}");
    assert!(err.contains("\"other\" was not used"), "{err}");
    // One that is given by name comes first.
    let both = ["call", &url, "name", "--answers", &answers, "--answer", r#"sure={"action":"decline"}"#];
    assert_eq!(run(&both).await.0, "nobody\n");
    for wrong in ["[]", "{", "{\"a\":1,\"a\":2}"] {
        std::fs::write(&answers, wrong).unwrap();
        assert_eq!(run(&["call", &url, "name", "--answers", &answers]).await.2, 2, "{wrong}");
    }

    let json = |out: &str| serde_json::from_str::<serde_json::Value>(out).unwrap();
    let (out, _, code) = run(&["call", &url, "echo", "--args", r#"{"text":"hi"}"#, "--json"]).await;
    assert_eq!((json(&out)["content"][0]["text"].as_str(), code), (Some("hi"), 0));
    let (out, _, code) = run(&["call", &url, "name", "--json", "--save", &file]).await;
    let error = &json(&out)["error"];
    assert_eq!((error["kind"].as_str(), error["exit"].as_i64(), code), (Some("unanswered"), Some(3), 3));
    assert_eq!(error["saved"].as_str(), Some(&*file));
    assert_eq!(error["questions"][0]["key"], "name");
    assert_eq!(error["questions"][0]["request"]["params"]["message"], "Your name?");
    let (out, _, code) = run(&["call", &url, "none", "--json"]).await;
    let error = &json(&out)["error"];
    assert_eq!((error["kind"].as_str(), error["code"].as_i64(), code), (Some("refused"), Some(-32602), 4));
    // Whatever goes wrong, and however early.
    let (nowhere, none) = (folder.file("no/call"), folder.file("none"));
    let failed: [(&[&str], &str, i32); 8] = [
        (&["call", "--json"], "usage", 2),
        (&["call", &url, "name", "--json", "--timeout", "0"], "usage", 2),
        (&["call", &url, "name", "--json", "--args", "{"], "usage", 2),
        (&["call", "nowhere", "name", "--json"], "usage", 2),
        (&["call", &url, "name", "--json", "--answers", &none], "failed", 1),
        (&["resume", &none, "--json"], "failed", 1),
        (&["state", "inspect", "none", "--json"], "failed", 1),
        (&["demo", "--json", "--no-such-option"], "usage", 2),
    ];
    for (args, kind, exit) in failed {
        let (out, err, code) = run(args).await;
        let error = &json(&out)["error"];
        assert_eq!(
            (error["kind"].as_str(), error["exit"].as_i64(), code),
            (Some(kind), Some(exit.into()), exit)
        );
        assert!(!error["message"].as_str().unwrap().is_empty() && !err.is_empty(), "{args:?}");
    }
    // A call that could not be saved is not made.
    let (out, err, code) =
        run(&["call", &url, "echo", "--args", r#"{"text":"hi"}"#, "--save", &nowhere]).await;
    assert_eq!((out.as_str(), code), ("", 1));
    assert!(err.contains("there is no folder"), "{err}");
}

/// The words that are printed to carry a call on do so when they are typed.
#[cfg(unix)]
#[tokio::test]
async fn what_is_said_to_carry_a_call_on_does() {
    let (running, folder) = (server().await, Folder::new("it's here"));
    let (url, file, key) = (running.url(), folder.file("my call"), folder.file("my key"));
    assert_eq!(run(&["keygen", "--out", &key]).await.2, 0);
    let (_, err, _) = run(&["call", &url, "name", "--save", &file, "--key-file", &key]).await;
    let said = err.split("saved: mrtr ").nth(1).unwrap().split(" carries it on").next().unwrap();
    let typed = format!("exec \"$0\" {said} --answer 'name=\"Ada\"' --answer sure=accept");
    let output = tokio::process::Command::new("sh").args(["-c", &typed, MRTR]).output().await.unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "Hello, Ada!\n", "{typed}");
}

/// A call that waits is not lost because its next round could not be saved.
#[cfg(unix)]
#[tokio::test]
async fn a_saved_call_outlives_a_fault_of_this_machine() {
    let (running, folder) = (server().await, Folder::new("outlives"));
    let (url, file) = (running.url(), folder.file("call"));
    assert_eq!(run(&["call", &url, "name", "--save", &file]).await.2, 3);
    // A name so long that nothing longer can be written beside it.
    let long = folder.file(&"c".repeat(250));
    std::fs::rename(&file, &long).unwrap();
    let before = std::fs::read(&long).unwrap();
    let (out, err, code) = run(&["resume", &long, "--answer", r#"name="Ada""#, "--json"]).await;
    assert!(code == 1 && err.contains("not saved") && err.contains("\"sure\""), "{err}");
    assert!(out.contains(r#""key":"sure""#), "{out}");
    assert_eq!(std::fs::read(&long).unwrap(), before);
}

/// Nor is it lost with a result that nobody could read.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_saved_call_outlives_a_result_that_is_not_written() {
    let (running, folder) = (server().await, Folder::new("unread"));
    let (url, file) = (running.url(), folder.file("call"));
    assert_eq!(run(&["call", &url, "name", "--save", &file]).await.2, 3);
    let words = ["resume", &file, "--answer", r#"name="Ada""#, "--answer", "sure=accept"];
    let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = tokio::process::Command::new(MRTR);
    let child = command.args(words).stdout(full).stderr(std::process::Stdio::piped()).spawn().unwrap();
    let ended = child.wait_with_output().await.unwrap();
    let err = String::from_utf8(ended.stderr).unwrap();
    assert!(ended.status.code() == Some(1) && err.contains("standard output: No space left"), "{err}");
    let (_, err, code) = run(&words).await;
    assert_eq!(code, 0, "{err}");
    assert!(!Path::new(&file).exists());
}
