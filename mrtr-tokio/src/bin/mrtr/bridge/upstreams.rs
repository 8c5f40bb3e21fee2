//! Which servers are behind the bridge: the command line's one, or those of a file.

use std::{collections::BTreeMap, path::Path, sync::Arc};

use mrtr_core::wire::Era;
use mrtr_tokio::{
    bridge::Reach,
    client::{self, Bearer, Proxy, Roots, Stderr},
};
use serde::Deserialize;
use tokio::process::Command;

use super::{Bridge, Server};
use crate::{Failure, screen};

/// The file of `--config`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    upstreams: BTreeMap<String, Table>,
}

/// One server in it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    command: Option<Vec<String>>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    url: Option<String>,
    bearer_env: Option<String>,
    era: Option<FileEra>,
    #[serde(default)]
    replay: Vec<String>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum FileEra {
    Modern,
    Legacy,
}

/// The servers that the options name.
pub(super) fn named(args: &Bridge) -> Result<Vec<Server>, Failure> {
    if let Some(path) = &args.config {
        return of_file(path, args);
    }
    let era = args.era.map(Era::from);
    let name = |derived: &str| args.name.clone().unwrap_or_else(|| plain(derived));
    let replay = args.replay.clone();
    let server = match &args.upstream {
        Some(url) => {
            let host = url.split("://").nth(1).unwrap_or_default();
            let host = host.split(['/', ':', '?', '#']).next().unwrap_or_default();
            let token = args.bearer_env.as_deref().map(|name| ("--bearer-env", name));
            Server { name: name(host), reach: behind(url, token, args)?, era, replay }
        }
        None => {
            let program = args.server.first().map(String::as_str).unwrap_or_default();
            let file = Path::new(program).file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default();
            let reach = process(&args.server, &BTreeMap::new(), &secrets(args, []))?;
            Server { name: name(&file), reach, era, replay }
        }
    };
    Ok(vec![server])
}

fn of_file(path: &Path, args: &Bridge) -> Result<Vec<Server>, Failure> {
    let wrong = |error: &dyn std::fmt::Display| Failure::usage(format!("{}: {error}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
    let file: File = toml::from_str(&text).map_err(|error| wrong(&error))?;
    if file.upstreams.is_empty() {
        return Err(wrong(&"no [upstreams.NAME] in it"));
    }
    let tokens = file.upstreams.values().filter_map(|table| table.bearer_env.as_deref());
    let secrets = secrets(args, tokens);
    let server = |(name, table): (String, Table)| {
        let reach = match (&table.command, &table.url) {
            (Some(command), None) if table.bearer_env.is_none() => process(command, &table.env, &secrets)?,
            (None, Some(url)) if table.env.is_empty() => {
                let token = table.bearer_env.as_deref().map(|name| ("bearer_env", name));
                behind(url, token, args)?
            }
            _ => {
                return Err(wrong(&format_args!(
                    "upstreams.{name} needs either `command`, with or without `env`, or `url`, with or without `bearer_env`"
                )));
            }
        };
        let era = table.era.map(|era| match era {
            FileEra::Modern => Era::Modern,
            FileEra::Legacy => Era::Legacy,
        });
        Ok(Server { name, reach, era, replay: table.replay })
    };
    file.upstreams.into_iter().map(server).collect()
}

/// The variables with secrets of the bridge's own. No server that it starts is to see them.
fn secrets<'a>(args: &'a Bridge, tokens: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let own = [args.keys.key_env.as_deref(), args.bearer_env.as_deref(), args.peers.env()];
    #[cfg(unix)]
    let inbox = args.inbox_token.env();
    #[cfg(not(unix))]
    let inbox = None;
    own.into_iter().chain([inbox]).flatten().chain(tokens).map(String::from).collect()
}

/// A server that is started: by the operator's words alone, without a shell. It gets this process's environment but for
/// `secrets`, and then `env`; to confine it further, the words begin with a program that does.
fn process(words: &[String], env: &BTreeMap<String, String>, secrets: &[String]) -> Result<Reach, Failure> {
    let Some((program, args)) = words.split_first() else {
        return Err(Failure::usage("the server's command is empty"));
    };
    let (program, args, env, secrets) = (program.clone(), args.to_vec(), env.clone(), secrets.to_vec());
    let command = move || {
        let mut command = Command::new(&program);
        command.args(&args);
        for name in &secrets {
            command.env_remove(name);
        }
        command.envs(&env);
        // Ctrl-C is for the bridge, which ends its servers in order.
        #[cfg(unix)]
        command.process_group(0);
        command
    };
    Ok(Reach::process(command, Stderr::Lines(Arc::new(screen::server_line))))
}

/// A server at a url, with the token that is in a variable; what names the variable is said if it is not set.
fn behind(url: &str, token: Option<(&str, &str)>, args: &Bridge) -> Result<Reach, Failure> {
    let mut options = client::Options::default();
    if let Some((option, name)) = token {
        let token = std::env::var(name).map_err(|_| Failure::unset(option, name))?;
        let bearer = Bearer::new(&token).map_err(|error| Failure::usage(format!("{name}: {error}")))?;
        options.authorize = Some(Arc::new(bearer));
    }
    options.proxy = match args.proxy.as_deref() {
        None => Proxy::Environment,
        Some("none") => Proxy::Direct,
        Some(url) => Proxy::Url(url.into()),
    };
    if let Some(path) = &args.ca_file {
        let pem = std::fs::read(path);
        let pem = pem.map_err(|error| Failure::usage(format!("{}: {error}", path.display())))?;
        options.roots = Roots::SystemAnd(pem);
    }
    Reach::url(url, &options).map_err(Failure::usage)
}

/// What may be a name, of a text; a server is always called something.
fn plain(text: &str) -> String {
    let name: String = text
        .chars()
        .map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '-' })
        .take(64)
        .collect();
    if name.is_empty() { String::from("server") } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_says_what_is_meant_and_nothing_else() {
        let good = "[upstreams.a]\ncommand = [\"x\"]\n[upstreams.a.env]\nA = \"1\"\n[upstreams.b]\nurl = \"http://b\"\nera = \"legacy\"\nreplay = [\"t\", \"u\"]";
        let file: File = toml::from_str(good).unwrap();
        assert_eq!(file.upstreams.len(), 2);
        assert_eq!(file.upstreams["b"].replay, ["t", "u"]);
        assert!(file.upstreams["a"].replay.is_empty());
        for wrong in [
            "",
            "[upstream.a]",
            "[upstreams.a]\ntoken = \"secret\"",
            "[upstreams.a]\nera = \"new\"",
            "[upstreams.a]\nreplay = \"t\"",
        ] {
            assert!(toml::from_str::<File>(wrong).is_err(), "{wrong}");
        }
    }

    /// every variable that an option names holds a secret of the bridge's own.
    #[test]
    fn no_variable_that_is_named_reaches_a_server() {
        let named = |command: &clap::Command, line: &[&str]| {
            let line = [&["mrtr", "bridge", "--listen"], line].concat();
            let found = command.clone().try_get_matches_from(line).unwrap();
            let (_, found) = found.subcommand().unwrap();
            let bridge = <Bridge as clap::FromArgMatches>::from_arg_matches(found).unwrap();
            secrets(&bridge, [])
        };
        let command = <crate::args::Args as clap::CommandFactory>::command();
        let of_bridge = command.find_subcommand("bridge").unwrap();
        let options: Vec<_> = of_bridge.get_arguments().filter_map(|one| one.get_long()).collect();
        let with_variables: Vec<_> = options.into_iter().filter(|option| option.ends_with("-env")).collect();
        assert_eq!(with_variables.len(), if cfg!(unix) { 4 } else { 3 }, "{with_variables:?}");
        for option in with_variables {
            let mut line = vec![format!("--{option}=SECRET"), String::from("--upstream=http://a/")];
            if option == "inbox-token-env" {
                line.push(String::from("--inbox=127.0.0.1:1"));
            }
            let line: Vec<_> = line.iter().map(String::as_str).collect();
            assert_eq!(named(&command, &line), ["SECRET"], "{option}");
        }
    }

    #[test]
    fn names_fit() {
        assert_eq!(
            (&*plain("mcp.example.com"), &*plain(""), plain(&"x".repeat(99)).len()),
            ("mcp-example-com", "server", 64)
        );
    }
}
