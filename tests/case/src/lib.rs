//! The attribute that makes a function a case of the behaviour tests.

use proc_macro2::{TokenStream, TokenTree};
use quote::quote;

/// Registers the function as a case. Its name is that of the function behind that of its outermost module; the arguments are what it
/// needs, each a variant of `Need`, or `..` and a list of them:
///
/// ```ignore
/// #[case]
/// fn bad_input() {}
///
/// #[case(Root, Program("busybox"))]
/// fn a_cell_is_restarted() {}
///
/// #[case(..NEEDS)]
/// fn a_cell_is_held() {}
/// ```
///
/// A function with one parameter gets the path of an empty directory, which is removed when the function returns:
///
/// ```ignore
/// #[case]
/// fn a_run_is_exported(dir: &Path) {}
/// ```
///
/// A function with other parameters is several cases, each with its name, its arguments, a semicolon and its needs:
///
/// ```ignore
/// #[case(a_crash_in_crun("crun"); Root, Program("crun"))]
/// #[case(a_crash_in_podman("podman"); Root, Program("podman"))]
/// fn a_crash(engine: &str) {}
/// ```
///
/// `Need`, `Case` and the distributed slice `CASES` are those of `crate::support`.
#[proc_macro_attribute]
pub fn case(
    arguments: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    let item = TokenStream::from(item);
    let mut behind_attributes = item
        .clone()
        .into_iter()
        .skip_while(|token| !is(token, "fn"));
    let function = behind_attributes
        .nth(1)
        .expect("`case` is for functions only");
    let takes_nothing = behind_attributes.next().is_none_or(|list| is(&list, "()"));
    let arguments: Vec<TokenTree> = TokenStream::from(arguments).into_iter().collect();
    let (name, values, needs) = match &arguments[..] {
        [name, values, semicolon, needs @ ..] if is(semicolon, ";") => {
            (name, quote!(#values), needs)
        }
        needs if takes_nothing => (&function, quote!(()), needs),
        needs => {
            let directory = quote!(tempfile::tempdir().expect("a directory").path());
            (&function, quote!((#directory)), needs)
        }
    };
    let needs = match needs {
        [dot, _, list @ ..] if is(dot, ".") => quote!(#(#list)*),
        needs => quote!(&[#(#needs)*]),
    };
    quote! {
        #item
        const _: () = {
            #[allow(unused_imports, reason = "a case may need nothing, or a list")]
            use crate::support::Need::*;
            #[linkme::distributed_slice(crate::support::CASES)]
            static CASE: crate::support::Case = crate::support::Case {
                module: module_path!(),
                function: stringify!(#name),
                needs: #needs,
                run: || {
                    // A case fails by a panic: a result that nobody looks at would hide another way.
                    let () = #function #values;
                },
            };
        };
    }
    .into()
}

fn is(token: &TokenTree, text: &str) -> bool {
    token.to_string() == text
}
