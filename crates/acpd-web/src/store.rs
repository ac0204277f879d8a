//! Tokens and codes on disk: one file with mode 0600, replaced as a whole, without a secret that
//! grants access. The push subscription of a browser is kept with its token, and removed with it.
//!
//! ```text
//!  code: made ──2 min──▶ gone          token: made by a code, or by name ──▶ revoked
//!          └──── said ──▶ a token
//! ```
//!
//! The server and the commands next to it change the file under a lock. A code becomes a token in
//! one change, so it never works twice.

use std::io::{BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use acpd_client::Paths;
use acpd_sys::files::{self, Version};
use acpd_sys::lock::InstanceLock;
use serde::{Deserialize, Serialize};

use crate::failure::Failure;
use crate::scope::Scopes;
use crate::secret::{Hash, Secret};
use crate::subscription::Subscription;

pub(crate) const CODE_LIFE: Duration = Duration::from_mins(2);
/// Codes that live at the same time; the oldest one goes first.
const MOST_CODES: usize = 5;
/// Bytes of the longest valid file.
const LONGEST: u64 = 1 << 20;
/// Longest wait for another process that changes the file.
const PATIENCE: Duration = Duration::from_secs(5);
/// Characters of the longest name of a token.
const LONGEST_NAME: usize = 60;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TokenInfo {
    /// The permanent name of the token.
    pub id: String,
    /// The owner's name for the token. Untrusted: escape it.
    pub name: String,
    pub scopes: Scopes,
    /// Ms since the epoch.
    pub created: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Token {
    #[serde(flatten)]
    info: TokenInfo,
    key: Hash,
    /// A browser must also send its cookie; a program has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cookie: Option<Hash>,
    /// The browser wants notifications there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    push: Option<Subscription>,
}

/// A code, which is good for one token.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Code {
    hash: Hash,
    scopes: Scopes,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// Ms since the epoch.
    created: u64,
}

impl Code {
    fn is_alive(&self, now: u64) -> bool {
        // Holds also when the clock was set back.
        now.abs_diff(self.created) < CODE_LIFE.as_millis() as u64
    }
}

#[derive(Debug, Default, Clone, Serialize, Deserialize)]
struct Content {
    tokens: Vec<Token>,
    codes: Vec<Code>,
}

/// The secrets of a browser that has just signed in.
pub(crate) struct SignedIn {
    pub(crate) token: TokenInfo,
    pub(crate) key: Secret,
    pub(crate) cookie: Secret,
}

#[derive(Debug)]
pub(crate) struct Store {
    folder: PathBuf,
    /// The content that was read last, and the version of its file.
    read: Mutex<Option<(Version, Arc<Content>)>>,
}

impl Store {
    pub(crate) fn open(paths: &Paths) -> Result<Store, Failure> {
        let folder = folder(paths);
        files::private_dir(&paths.state)?;
        files::private_dir(&folder)?;
        Ok(Store { folder, read: Mutex::default() })
    }

    fn path(&self) -> PathBuf {
        self.folder.join("tokens.json")
    }

    /// All tokens, the oldest first.
    pub(crate) fn tokens(&self) -> Result<Vec<TokenInfo>, Failure> {
        Ok(self.content()?.tokens.iter().map(|token| token.info.clone()).collect())
    }

    /// `is_page`: a page sends its origin, a program does not.
    pub(crate) fn token(
        &self,
        key: &str,
        cookie: Option<&str>,
        is_page: bool,
    ) -> Result<Option<TokenInfo>, Failure> {
        let (key, cookie) = (Hash::of(key), cookie.map(Hash::of));
        let is_it = |token: &&Token| {
            let has_cookie = match (&token.cookie, &cookie) {
                (Some(kept), Some(brought)) => kept.is(brought),
                // Scripts can read a browser's key, so a program cannot use it.
                (Some(_), None) => false,
                (None, _) => !is_page,
            };
            token.key.is(&key) & has_cookie
        };
        // All are compared, so that the time does not show the position.
        let content = self.content()?;
        Ok(content.tokens.iter().filter(is_it).fold(None, |_, token| Some(token.info.clone())))
    }

    pub(crate) fn has(&self, id: &str) -> Result<bool, Failure> {
        Ok(self.content()?.tokens.iter().any(|token| token.info.id == id))
    }

    pub(crate) fn add_code(&self, scopes: Scopes, name: Option<String>) -> Result<Secret, Failure> {
        let secret = Secret::code()?;
        let (hash, created) = (secret.hash(), now());
        self.change(|content| {
            content.codes.retain(|code| code.is_alive(created));
            let over = (content.codes.len() + 1).saturating_sub(MOST_CODES);
            content.codes.drain(..over);
            content.codes.push(Code {
                hash,
                scopes,
                name: name.map(|name| tidy_name(&name)),
                created,
            });
        })?;
        Ok(secret)
    }

    /// Makes a token from a code. `called` is its name if the code has none.
    pub(crate) fn redeem(&self, word: &str, called: &str) -> Result<Option<SignedIn>, Failure> {
        let (said, time) = (Hash::of(word), now());
        let find = |content: &Content| {
            let fits = |code: &Code| code.hash.is(&said) & code.is_alive(time);
            content.codes.iter().rposition(fits)
        };
        // A wrong guess must not cause a write.
        if find(&*self.content()?).is_none() {
            return Ok(None);
        }
        let (key, cookie, id) = (Secret::key()?, Secret::key()?, Secret::code()?);
        let token = self.change(|content| {
            let code = content.codes.remove(find(content)?);
            let name = free_name(&content.tokens, &code.name.unwrap_or_else(|| tidy_name(called)));
            let info = TokenInfo { id: short(&id), name, scopes: code.scopes, created: time };
            let (key, cookie) = (key.hash(), Some(cookie.hash()));
            content.tokens.push(Token { info: info.clone(), key, cookie, push: None });
            Some(info)
        })?;
        Ok(token.map(|token| SignedIn { token, key, cookie }))
    }

    /// Makes a token for a program, which needs no cookie.
    pub(crate) fn add_program(&self, name: &str, scopes: Scopes) -> Result<Secret, Failure> {
        let (key, id, name) = (Secret::key()?, Secret::code()?, tidy_name(name));
        if name.is_empty() {
            return Err(Failure::new("a token needs a name"));
        }
        let is_new = self.change(|content| {
            let is_new = content.tokens.iter().all(|token| token.info.name != name);
            if is_new {
                let name = name.clone();
                let info = TokenInfo { id: short(&id), name, scopes, created: now() };
                content.tokens.push(Token { info, key: key.hash(), cookie: None, push: None });
            }
            is_new
        })?;
        if is_new {
            return Ok(key);
        }
        let error = Failure::new(format!("there is a token `{name}`"));
        Err(error.hint(format!(
            "choose another name, or take that one back: `acpctl web token revoke '{name}'`"
        )))
    }

    /// Removes and returns the tokens that fit.
    pub(crate) fn revoke(
        &self,
        fits: impl Fn(&TokenInfo) -> bool,
    ) -> Result<Vec<TokenInfo>, Failure> {
        if !self.content()?.tokens.iter().any(|token| fits(&token.info)) {
            return Ok(Vec::new());
        }
        self.change(|content| {
            let gone = content.tokens.extract_if(.., |token| fits(&token.info));
            gone.map(|token| token.info).collect()
        })
    }

    /// Sets the push subscription of a token. Another token with the same subscription loses it:
    /// the same browser has signed in again.
    pub(crate) fn subscribe(&self, id: &str, push: Option<Subscription>) -> Result<(), Failure> {
        self.change(|content| {
            for token in &mut content.tokens {
                if token.info.id == id {
                    token.push.clone_from(&push);
                } else if push.is_some() && token.push == push {
                    token.push = None;
                }
            }
        })
    }

    /// Removes a subscription whose browser no longer listens.
    pub(crate) fn forget(&self, id: &str, gone: &Subscription) -> Result<(), Failure> {
        self.change(|content| {
            let is_it =
                |token: &&mut Token| token.info.id == id && token.push.as_ref() == Some(gone);
            content.tokens.iter_mut().filter(is_it).for_each(|token| token.push = None);
        })
    }

    pub(crate) fn subscriptions(&self) -> Result<Vec<(String, Subscription)>, Failure> {
        let content = self.content()?;
        let all = content.tokens.iter();
        Ok(all.filter_map(|token| Some((token.info.id.clone(), token.push.clone()?))).collect())
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Reads the file again if it has changed.
    fn content(&self) -> Result<Arc<Content>, Failure> {
        let path = self.path();
        let Some(version) = files::version(&path) else { return Ok(Arc::default()) };
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, content)) = &*read
            && *of == version
        {
            return Ok(Arc::clone(content));
        }
        let file = BufReader::new(files::secret_file(&path)?.take(LONGEST));
        let content: Content = serde_json::from_reader(file).map_err(|error| {
            Failure::about(format!("cannot read `{}`", path.display()), &error)
                .hint("remove that file to sign out everybody, and sign in again")
        })?;
        let content = Arc::new(content);
        *read = Some((version, Arc::clone(&content)));
        Ok(content)
    }

    /// The holder may write here.
    pub(crate) fn lock(&self) -> Result<InstanceLock, Failure> {
        Ok(InstanceLock::acquire_wait(&self.folder.join("tokens.lock"), PATIENCE)?)
    }

    /// Changes the file. Meanwhile, readers see the old content.
    fn change<R>(&self, change: impl FnOnce(&mut Content) -> R) -> Result<R, Failure> {
        let lock = self.lock()?;
        let mut content = Content::clone(&*self.content()?);
        let changed = change(&mut content);
        let path = self.path();
        let text = serde_json::to_vec_pretty(&content).map_err(|error| {
            Failure::about(format!("cannot write `{}`", path.display()), &error)
        })?;
        files::put_secret(&path, &text)?;
        drop(lock);
        Ok(changed)
    }
}

/// The folder of all files of the server.
pub(crate) fn folder(paths: &Paths) -> PathBuf {
    paths.state.join("web")
}

/// The file whose lock the server holds. Its second line is the address.
pub(crate) fn server_lock(paths: &Paths) -> PathBuf {
    folder(paths).join("server.lock")
}

/// Enough of a random word to tell tokens apart.
fn short(word: &Secret) -> String {
    word.reveal()[..8].to_owned()
}

/// A name on one line, of up to [`LONGEST_NAME`] characters.
pub(crate) fn tidy_name(name: &str) -> String {
    let words: Vec<&str> =
        name.split(|char: char| char.is_whitespace() || char.is_control()).collect();
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    words.join(" ").chars().take(LONGEST_NAME).collect()
}

/// The name, with a number if another token has it.
fn free_name(tokens: &[Token], name: &str) -> String {
    let is_free = |name: &str| tokens.iter().all(|token| token.info.name != name);
    let numbered = (2_usize..).map(|number| format!("{name} {number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(|name| is_free(name)).unwrap_or_default()
}

/// Milliseconds since the epoch.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn home() -> (tempfile::TempDir, Store) {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let paths = Paths { runtime: at("r"), state: at("s"), config: at("c") };
        let store = Store::open(&paths).unwrap();
        (dir, store)
    }

    #[test]
    fn a_code_becomes_one_token_and_the_file_holds_no_secret() {
        let (_dir, store) = home();
        let code = store.add_code(Scopes::default(), None).unwrap();
        assert!(store.redeem("guess", "phone").unwrap().is_none());
        let phone = store.redeem(code.reveal(), "my\n phone").unwrap().unwrap();
        assert_eq!(phone.token.name, "my phone");
        assert!(store.redeem(code.reveal(), "phone").unwrap().is_none());

        let key = phone.key.reveal();
        let cookie = Some(phone.cookie.reveal());
        let fits = |cookie, is_page| store.token(key, cookie, is_page).unwrap().is_some();
        assert!(fits(cookie, true) && fits(cookie, false));
        assert!(!fits(None, true) && !fits(None, false) && !fits(Some("other"), true));

        let path = store.path();
        let text = fs::read_to_string(&path).unwrap();
        for secret in [code.reveal(), key, phone.cookie.reveal()] {
            assert!(!text.contains(secret), "{text}");
        }
        files::secret_file(&path).unwrap();
        assert_eq!(store.revoke(|token| token.name == "my phone").unwrap().len(), 1);
        assert!(!fits(cookie, true));
    }

    #[test]
    fn a_token_for_a_program_is_none_for_a_page_and_its_name_is_its_own() {
        let (_dir, store) = home();
        let key = store.add_program("ide", Scopes::default()).unwrap();
        let fits = |is_page| store.token(key.reveal(), None, is_page).unwrap().is_some();
        assert!(fits(false) && !fits(true));
        assert!(store.add_program("ide", Scopes::default()).is_err());
        assert!(store.add_program(" \n", Scopes::default()).is_err());
    }

    #[test]
    fn so_many_codes_live_and_each_for_a_while() {
        let (_dir, store) = home();
        let codes: Vec<Secret> =
            (0..=MOST_CODES).map(|_| store.add_code(Scopes::default(), None).unwrap()).collect();
        assert!(store.redeem(codes[0].reveal(), "a").unwrap().is_none());
        assert!(store.redeem(codes[1].reveal(), "a").unwrap().is_some());
        assert_eq!(store.redeem(codes[2].reveal(), "a").unwrap().unwrap().token.name, "a 2");
        let code =
            Code { hash: Hash::of("x"), scopes: Scopes::default(), name: None, created: 1_000_000 };
        assert!(code.is_alive(1_119_999) && !code.is_alive(1_120_000) && !code.is_alive(1));
    }

    #[test]
    fn a_file_that_others_may_read_or_that_is_broken_lets_nobody_in() {
        let (_dir, store) = home();
        store.add_program("ide", Scopes::default()).unwrap();
        if files::HAS_MODES {
            let opened = fs::File::open(store.path()).unwrap();
            files::set_mode(&opened, 0o644).unwrap();
            assert!(store.tokens().is_err());
            files::set_mode(&opened, 0o600).unwrap();
        }
        fs::write(store.path(), "{").unwrap();
        assert!(store.tokens().unwrap_err().way_out().is_some());
    }
}
