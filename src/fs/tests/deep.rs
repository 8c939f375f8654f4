//! Trees deeper than the descriptors that are held, and than any path.

use std::sync::Arc;

use super::{rel, root};
use crate::fs::filter::Filter;
use crate::fs::root::Dir;
use crate::fs::tree;
use crate::fs::walk::{Found, Walk};
use crate::model::error::ErrorKind;

/// Makes folders inside each other, with a file beside each.
fn chain(top: Arc<Dir>, name: &[u8], depth: usize) {
    let mut at = top;
    for _ in 0..depth {
        at.make_dir(name, 0o755).unwrap();
        drop(at.create_part(b"z").unwrap());
        let fd = tree::open_to_list(&*at, name).unwrap();
        at = Arc::new(Dir::held(fd, true));
    }
}

#[test]
fn a_tree_deeper_than_the_open_folders_is_listed_whole_and_removed() {
    let tmp = tempfile::tempdir().unwrap();
    let root = root(tmp.path());
    root.make_dirs(&rel("t")).unwrap();
    chain(root.dir(Some(&rel("t"))).unwrap(), b"d", 300);
    let found: Vec<_> = Walk::new(Arc::clone(&root), None, Filter::default(), None).collect();
    assert_eq!(found.len(), 601);
    assert!(found.iter().all(|f| matches!(f, Found::Entry { .. })));
    root.top().remove_tree(b"t").unwrap();
    assert!(root.top().list().unwrap().is_empty());
}

#[test]
fn a_path_longer_than_any_path_fails_alone_and_can_be_removed() {
    let tmp = tempfile::tempdir().unwrap();
    let root = root(tmp.path());
    root.make_dirs(&rel("t")).unwrap();
    // 40 times 201 bytes; a path holds 4096.
    chain(root.dir(Some(&rel("t"))).unwrap(), &[b'd'; 200], 40);
    drop(root.top().create_part(b"u").unwrap());
    let mut failed = 0;
    let mut last = None;
    for found in Walk::new(Arc::clone(&root), None, Filter::default(), None) {
        match found {
            Found::Failed { path, error } => {
                assert!(path.len() > 4096);
                assert_eq!(error.kind, ErrorKind::Unsupported, "{error}");
                failed += 1;
            }
            Found::Entry { entry, .. } => last = Some(entry.path),
            other => panic!("{other:?}"),
        }
    }
    // The folder at the limit; the file beside it is shorter.
    assert_eq!(failed, 1);
    assert_eq!(last, Some(rel("u")));
    root.top().remove_tree(b"t").unwrap();
}

#[test]
fn a_folder_of_a_hundred_thousand_files_costs_a_few_megabytes() {
    let tmp = tempfile::tempdir().unwrap();
    let root = root(tmp.path());
    let top = root.top();
    for i in 0..100_000 {
        drop(top.create_part(format!("file-{i:08}").as_bytes()).unwrap());
    }
    let fd = tree::open_to_list(&*top, b".").unwrap();
    let (names, error) = tree::names(&fd);
    assert_eq!(error, None);
    assert_eq!(names.len(), 100_000);
    assert!(names.memory() < 8 << 20, "{}", names.memory());

    let mut before = Vec::new();
    let mut count = 0;
    for found in Walk::new(root, None, Filter::default(), None) {
        let Found::Entry { entry, .. } = found else {
            panic!("{found:?}")
        };
        assert!(before.as_slice() < entry.path.as_bytes());
        before = entry.path.as_bytes().to_vec();
        count += 1;
    }
    assert_eq!(count, 100_000);
}
