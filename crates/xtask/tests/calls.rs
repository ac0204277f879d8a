//! Calls between the files of acpd-core, held by a test: a type whose methods are in many files lets each of
//! them call all others, which the imports do not show.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Expr, FnArg, ImplItemFn, ItemFn, ItemImpl, ItemStruct, Pat, ReturnType, Token, Type};
use xtask::workspace;

/// Methods of the standard library: a receiver of unknown type is no type of ours.
const COMMON: &str = "clear clone collect contains contains_key entry extend filter first get get_mut insert \
    is_empty iter keys last len map next push remove retain set take values";

/// A method: the file in which it is, and the name of the type that it returns.
struct Method {
    file: String,
    result: String,
}

/// Fields, methods and functions of a crate.
#[derive(Default)]
struct Declared {
    fields: BTreeMap<(String, String), String>,
    methods: BTreeMap<(String, String), Method>,
    /// Types that have a method of this name.
    owners: BTreeMap<String, BTreeSet<String>>,
    types: BTreeSet<String>,
    /// Module and name of a function → its file.
    functions: BTreeMap<(String, String), String>,
}

/// Returns the last name of the module that a file is.
fn module(file: &str) -> &str {
    let path = file.trim_end_matches(".rs").trim_end_matches("/mod");
    path.rsplit('/').next().unwrap_or_default()
}

/// File → files that it calls.
type Calls = BTreeMap<String, BTreeSet<String>>;

/// Returns the name of a type without references and containers.
fn type_name(ty: &Type, own: &str) -> String {
    match ty {
        Type::Reference(reference) => type_name(&reference.elem, own),
        Type::Path(path) => {
            let Some(last) = path.path.segments.last() else { return String::new() };
            let inner = match &last.arguments {
                syn::PathArguments::AngleBracketed(arguments) => {
                    arguments.args.iter().rev().find_map(|argument| match argument {
                        syn::GenericArgument::Type(ty) => Some(type_name(ty, own)),
                        _ => None,
                    })
                }
                _ => None,
            };
            let name = last.ident.to_string();
            inner.unwrap_or_else(|| if name == "Self" { own.to_owned() } else { name })
        }
        _ => String::new(),
    }
}

fn result_name(output: &ReturnType, own: &str) -> String {
    match output {
        ReturnType::Type(_, ty) => type_name(ty, own),
        ReturnType::Default => String::new(),
    }
}

/// Collects the declarations of a file.
struct Collector<'a> {
    file: &'a str,
    own: String,
    declared: &'a mut Declared,
}

impl Visit<'_> for Collector<'_> {
    fn visit_item_struct(&mut self, item: &ItemStruct) {
        for field in &item.fields {
            if let Some(name) = &field.ident {
                let key = (item.ident.to_string(), name.to_string());
                self.declared.fields.insert(key, type_name(&field.ty, ""));
            }
        }
    }

    fn visit_item_impl(&mut self, item: &ItemImpl) {
        self.own = type_name(&item.self_ty, "");
        self.declared.types.insert(self.own.clone());
        visit::visit_item_impl(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &ImplItemFn) {
        let name = item.sig.ident.to_string();
        let result = result_name(&item.sig.output, &self.own);
        self.declared.owners.entry(name.clone()).or_default().insert(self.own.clone());
        let method = Method { file: self.file.to_owned(), result };
        self.declared.methods.insert((self.own.clone(), name), method);
    }

    fn visit_item_fn(&mut self, item: &ItemFn) {
        let key = (module(self.file).to_owned(), item.sig.ident.to_string());
        self.declared.functions.insert(key, self.file.to_owned());
    }
}

/// Finds the calls of a file.
struct Caller<'a> {
    file: &'a str,
    own: String,
    /// Imported name → the module that has it.
    imports: BTreeMap<String, String>,
    locals: BTreeMap<String, String>,
    declared: &'a Declared,
    calls: &'a mut Calls,
}

impl Caller<'_> {
    fn call(&mut self, file: &str) {
        if file != self.file {
            self.calls.entry(self.file.to_owned()).or_default().insert(file.to_owned());
        }
    }

    fn method(&self, receiver: &str, name: &str) -> Option<&Method> {
        self.declared.methods.get(&(receiver.to_owned(), name.to_owned()))
    }

    /// The method that is meant: that of the receiver's type, else the only one of this name.
    fn meant(&self, receiver: &str, name: &str) -> Option<&Method> {
        if let Some(method) = self.method(receiver, name) {
            return Some(method);
        }
        let is_foreign = !receiver.is_empty() && !self.declared.types.contains(receiver);
        let is_common = COMMON.split(' ').any(|common| common == name);
        let owners = self.declared.owners.get(name).filter(|_| !is_common)?;
        if is_foreign {
            return None;
        }
        if owners.len() == 1 { self.method(owners.first()?, name) } else { None }
    }

    /// Returns the name of an expression's type, as far as it can be seen.
    fn type_of(&self, expr: &Expr) -> String {
        match expr {
            Expr::Path(path) => match path.path.get_ident().map(ToString::to_string) {
                Some(name) if name == "self" => self.own.clone(),
                Some(name) => self.locals.get(&name).cloned().unwrap_or_default(),
                None => String::new(),
            },
            Expr::Field(field) => {
                let syn::Member::Named(name) = &field.member else { return String::new() };
                let key = (self.type_of(&field.base), name.to_string());
                self.declared.fields.get(&key).cloned().unwrap_or_default()
            }
            Expr::MethodCall(call) => {
                let receiver = self.type_of(&call.receiver);
                let method = self.meant(&receiver, &call.method.to_string());
                method.map_or(receiver, |method| method.result.clone())
            }
            Expr::Call(call) => match &*call.func {
                Expr::Path(path) if path.path.segments.len() > 1 => {
                    let names: Vec<_> = path.path.segments.iter().rev().take(2).collect();
                    let (name, owner) = (names[0].ident.to_string(), names[1].ident.to_string());
                    let owner = if owner == "Self" { self.own.clone() } else { owner };
                    self.method(&owner, &name).map_or(owner, |method| method.result.clone())
                }
                _ => String::new(),
            },
            Expr::Index(index) => self.type_of(&index.expr),
            Expr::Paren(paren) => self.type_of(&paren.expr),
            Expr::Reference(reference) => self.type_of(&reference.expr),
            Expr::Struct(literal) => {
                let name = literal.path.segments.last().map(|last| last.ident.to_string());
                name.map_or(
                    String::new(),
                    |name| if name == "Self" { self.own.clone() } else { name },
                )
            }
            Expr::Try(tried) => self.type_of(&tried.expr),
            Expr::Unary(unary) => self.type_of(&unary.expr),
            _ => String::new(),
        }
    }

    fn bind(&mut self, pat: &Pat, name: &str) {
        match pat {
            Pat::Ident(ident) => {
                self.locals.insert(ident.ident.to_string(), name.to_owned());
            }
            Pat::Reference(reference) => self.bind(&reference.pat, name),
            Pat::TupleStruct(tuple) if tuple.elems.len() == 1 => self.bind(&tuple.elems[0], name),
            Pat::Type(typed) => {
                let name = type_name(&typed.ty, &self.own);
                self.bind(&typed.pat, &name);
            }
            _ => {}
        }
    }
}

impl Visit<'_> for Caller<'_> {
    fn visit_item_impl(&mut self, item: &ItemImpl) {
        self.own = type_name(&item.self_ty, "");
        visit::visit_item_impl(self, item);
        self.own.clear();
    }

    fn visit_signature(&mut self, signature: &syn::Signature) {
        self.locals.clear();
        for input in &signature.inputs {
            if let FnArg::Typed(typed) = input {
                let name = type_name(&typed.ty, &self.own);
                self.bind(&typed.pat, &name);
            }
        }
    }

    fn visit_local(&mut self, local: &syn::Local) {
        visit::visit_local(self, local);
        let name = local.init.as_ref().map(|init| self.type_of(&init.expr));
        self.bind(&local.pat, &name.unwrap_or_default());
    }

    fn visit_expr_let(&mut self, expr: &syn::ExprLet) {
        visit::visit_expr_let(self, expr);
        let name = self.type_of(&expr.expr);
        self.bind(&expr.pat, &name);
    }

    fn visit_expr_for_loop(&mut self, expr: &syn::ExprForLoop) {
        let name = self.type_of(&expr.expr);
        self.bind(&expr.pat, &name);
        visit::visit_expr_for_loop(self, expr);
    }

    fn visit_expr_method_call(&mut self, call: &syn::ExprMethodCall) {
        visit::visit_expr_method_call(self, call);
        let receiver = self.type_of(&call.receiver);
        let file =
            self.meant(&receiver, &call.method.to_string()).map(|method| method.file.clone());
        if let Some(file) = file {
            self.call(&file);
        }
    }

    /// Patterns and other syntax of a macro's own hide its calls.
    fn visit_macro(&mut self, called: &syn::Macro) {
        let arguments = called.parse_body_with(Punctuated::<Expr, Token![,]>::parse_terminated);
        for argument in arguments.into_iter().flatten() {
            self.visit_expr(&argument);
        }
    }

    fn visit_use_tree(&mut self, tree: &syn::UseTree) {
        if let syn::UseTree::Path(path) = tree {
            let leaves: Vec<&syn::UseTree> = match &*path.tree {
                syn::UseTree::Group(group) => group.items.iter().collect(),
                leaf => vec![leaf],
            };
            let names = leaves.iter().filter_map(|leaf| match leaf {
                syn::UseTree::Name(name) => Some(name.ident.to_string()),
                _ => None,
            });
            self.imports.extend(names.map(|name| (name, path.ident.to_string())));
        }
        visit::visit_use_tree(self, tree);
    }

    fn visit_expr_path(&mut self, expr: &syn::ExprPath) {
        let mut names = expr.path.segments.iter().rev().map(|segment| segment.ident.to_string());
        let Some(name) = names.next() else { return };
        let owner = match names.next() {
            Some(owner) if owner == "Self" => self.own.clone(),
            Some(owner) => owner,
            None if self.locals.contains_key(&name) => return,
            None => self.imports.get(&name).cloned().unwrap_or_default(),
        };
        let function = || self.declared.functions.get(&(owner.clone(), name.clone()));
        let method = self.method(&owner, &name).map(|method| &method.file);
        if let Some(file) = method.or_else(function).cloned() {
            self.call(&file);
        }
    }
}

/// Returns the calls between files, which are given with their text.
fn calls(files: &[(String, String)]) -> Calls {
    let parsed: Vec<(&str, syn::File)> = files
        .iter()
        .map(|(file, text)| (file.as_str(), syn::parse_file(text).expect("a source file")))
        .collect();
    let mut declared = Declared::default();
    for (file, ast) in &parsed {
        Collector { file, own: String::new(), declared: &mut declared }.visit_file(ast);
    }
    let mut calls = Calls::new();
    for (file, ast) in &parsed {
        let (own, locals, imports) = Default::default();
        let (declared, calls) = (&declared, &mut calls);
        Caller { file, own, imports, locals, declared, calls }.visit_file(ast);
    }
    calls
}

/// Returns the files that can be reached from one, over at least one call.
fn reached<'c>(calls: &'c Calls, from: &str) -> BTreeSet<&'c str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = calls.get(from).into_iter().flatten().map(String::as_str).collect();
    while let Some(file) = open.pop() {
        if reached.insert(file) {
            open.extend(calls.get(file).into_iter().flatten().map(String::as_str));
        }
    }
    reached
}

/// Returns the largest set of files that reach each other.
fn largest_circle(calls: &Calls) -> Vec<&str> {
    let all: BTreeMap<&str, BTreeSet<&str>> =
        calls.keys().map(|file| (file.as_str(), reached(calls, file))).collect();
    let circle = |file: &str| -> Vec<&str> {
        let others = all[file].iter().copied();
        others.filter(|other| all.get(other).is_some_and(|back| back.contains(file))).collect()
    };
    all.keys().map(|file| circle(file)).max_by_key(Vec::len).unwrap_or_default()
}

fn read(folder: &Path, files: &mut Vec<(String, String)>) {
    for path in fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path()) {
        let name = path.display().to_string();
        if path.is_dir() {
            read(&path, files);
        } else if path.extension().is_some_and(|end| end == "rs") && !name.ends_with("tests.rs") {
            let text = fs::read_to_string(&path).expect("a source file");
            // Unit tests call their own file alone.
            let text = text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            files.push((name, text.to_owned()));
        }
    }
}

#[test]
fn no_files_of_the_core_call_each_other_in_a_circle() {
    let root = workspace::root().join("crates/acpd-core/src");
    let mut files = Vec::new();
    read(&root, &mut files);
    for (name, _) in &mut files {
        *name = name.split_once("/acpd-core/src/").expect("a file of the crate").1.to_owned();
    }
    let calls = calls(&files);
    assert_eq!(largest_circle(&calls), Vec::<&str>::new());
}

/// A circle over a field, a local variable, a parameter and a function, for any name of the type.
#[test]
fn a_circle_of_calls_is_found() {
    let file = |name: &str, text: &str| (name.to_owned(), text.to_owned());
    let mut files = vec![
        file(
            "a",
            "pub struct Machine { part: Part } impl Machine { fn one(&mut self) { self.two(); } }",
        ),
        file(
            "b",
            "impl Machine { fn two(&mut self) { let part = &mut self.part; part.three(self); } }",
        ),
        file(
            "c",
            "use crate::d::four; pub struct Part; impl Part { fn three(&self, on: &mut Machine) { four(on); } }",
        ),
        file("d", "fn four(machine: &mut Machine) { println!(); }"),
    ];
    assert_eq!(largest_circle(&calls(&files)), Vec::<&str>::new());
    files[3].1 = "fn four(machine: &mut Machine) { machine.one(); }".to_owned();
    assert_eq!(largest_circle(&calls(&files)), ["a", "b", "c", "d"]);
}
