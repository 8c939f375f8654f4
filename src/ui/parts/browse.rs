//! The window's own dialog for files and folders, for desktops that have none.
//!
//! It reads no folder itself: it wishes for a listing, and shows what comes.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use egui::{Align, Button, Context, Id, Key, Layout, RichText, ScrollArea, Ui};

use crate::model::error::Result;
use crate::model::untrusted::{Untrusted, shown};
use crate::present::units::bytes;
use crate::ui::parts::controls::{ICON, Weight, button, field, icon_button, note, soft};
use crate::ui::parts::icon::Icon;
use crate::ui::parts::question::dialog;
use crate::ui::ports::Pick;
use crate::ui::theme::{palette, tokens};
use crate::ui::wish::Wish;

/// The name that a list is saved under when nothing else is said.
pub const SAVE_NAME: &str = "digests.md5";

/// One name of a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FolderItem {
    /// Its name.
    pub name: OsString,
    /// It is a folder, or a link to one.
    pub is_folder: bool,
    /// Its length in bytes.
    pub size: u64,
}

/// An open dialog.
#[derive(Debug)]
pub struct OwnPicker {
    pick: Pick,
    folder: PathBuf,
    typed: String,
    hidden: bool,
    name: String,
    chosen: Vec<OsString>,
    items: Option<Result<Vec<FolderItem>>>,
}

impl OwnPicker {
    /// Opens the dialog for what is to be picked; nothing is listed before [`Self::go`].
    pub fn open(pick: Pick, folder: &Path) -> Self {
        Self {
            pick,
            folder: folder.to_path_buf(),
            typed: Untrusted::from(folder).to_string(),
            hidden: false,
            name: SAVE_NAME.to_owned(),
            chosen: Vec::new(),
            items: None,
        }
    }

    /// Returns the folder that is shown.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Takes a folder's names, unless another folder is shown by now.
    pub fn listed(&mut self, folder: &Path, items: Result<Vec<FolderItem>>) {
        if folder == self.folder {
            self.items = Some(items);
        }
    }

    fn go(&mut self, folder: PathBuf, wishes: &mut Vec<Wish>) {
        self.typed = Untrusted::from(&*folder).to_string();
        self.chosen.clear();
        self.items = None;
        wishes.push(Wish::List(folder.clone()));
        self.folder = folder;
    }

    /// Draws the dialog.
    pub fn show(&mut self, ctx: &Context, wishes: &mut Vec<Wish>) {
        let room = ctx.content_rect().size();
        let shown = dialog(ctx, Id::unique("own picker")).show(ctx, |ui| {
            ui.set_width((room.x - 96.0).clamp(80.0, 560.0));
            let words = match self.pick {
                Pick::Folder => "Choose a folder",
                Pick::Files => "Choose files",
                Pick::SaveList => "Save list as",
            };
            let p = palette(ui);
            ui.label(
                RichText::new(words)
                    .size(tokens().text.heading)
                    .color(p.text),
            );
            self.place(ui, wishes);
            self.list(ui, (room.y - 264.0).clamp(40.0, 320.0), wishes);
            if self.pick == Pick::SaveList {
                let width = ui.available_width();
                field(ui, &mut self.name, "File name", SAVE_NAME, width);
            }
            ui.add_space(4.0);
            self.buttons(ui, wishes);
        });
        if shown.should_close() {
            wishes.push(Wish::Picked(Vec::new()));
        }
    }

    fn place(&mut self, ui: &mut Ui, wishes: &mut Vec<Wish>) {
        ui.horizontal(|ui| {
            let parent = self.folder.parent().map(Path::to_path_buf);
            if icon_button(ui, Icon::Up, "Folder above", parent.is_some()).clicked() {
                if let Some(parent) = parent {
                    self.go(parent, wishes);
                }
            }
            let width = ui.available_width();
            let typed = field(ui, &mut self.typed, "Folder", "/", width);
            let enter = typed.lost_focus() && ui.input(|i| i.key_pressed(Key::Enter));
            if enter && self.typed.starts_with('/') {
                self.go(PathBuf::from(self.typed.trim()), wishes);
            }
        });
    }

    fn list(&mut self, ui: &mut Ui, height: f32, wishes: &mut Vec<Wish>) {
        let p = palette(ui);
        let items = match &self.items {
            None => {
                soft(ui, "Reading\u{2026}");
                return;
            }
            Some(Err(error)) => {
                note(ui, error.to_string(), p.bad);
                return;
            }
            Some(Ok(items)) => items,
        };
        let folders_only = self.pick == Pick::Folder;
        let visible: Vec<usize> = (0..items.len())
            .filter(|i| items[*i].is_folder || !folders_only)
            .filter(|i| self.hidden || !items[*i].name.as_bytes().starts_with(b"."))
            .collect();
        if visible.is_empty() {
            soft(
                ui,
                if folders_only {
                    "No folder in here"
                } else {
                    "Nothing in here"
                },
            );
        }
        let mut clicked = None;
        ScrollArea::vertical()
            .id_salt("folder items")
            .max_height(height)
            .auto_shrink([false, true])
            .show_rows(ui, tokens().space.control, visible.len(), |ui, range| {
                for i in &visible[range] {
                    let item = &items[*i];
                    let chosen = self.chosen.contains(&item.name);
                    if item_row(ui, item, chosen) {
                        clicked = Some((item.is_folder, item.name.clone()));
                    }
                }
            });
        match clicked {
            Some((true, name)) => self.go(self.folder.join(name), wishes),
            Some((false, name)) => self.choose(name),
            None => {}
        }
    }

    /// Chooses a file, or lets go of one that was chosen.
    fn choose(&mut self, name: OsString) {
        if self.pick == Pick::SaveList {
            self.name = name.to_string_lossy().into_owned();
        } else if let Some(at) = self.chosen.iter().position(|other| *other == name) {
            self.chosen.remove(at);
        } else {
            self.chosen.push(name);
        }
    }

    fn buttons(&mut self, ui: &mut Ui, wishes: &mut Vec<Wish>) {
        ui.horizontal(|ui| {
            let (words, ready) = match self.pick {
                Pick::Folder => ("Choose this folder", true),
                Pick::Files => ("Choose", !self.chosen.is_empty()),
                Pick::SaveList => ("Save", is_name(OsStr::new(self.name.trim()))),
            };
            if button(ui, None, words, Weight::Main, ready).clicked() {
                wishes.push(Wish::Picked(self.picked()));
            }
            if button(ui, None, "Cancel", Weight::Plain, true).clicked() {
                wishes.push(Wish::Picked(Vec::new()));
            }
            ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
                ui.checkbox(&mut self.hidden, "Hidden ones too");
            });
        });
    }

    fn picked(&self) -> Vec<PathBuf> {
        match self.pick {
            Pick::Folder => vec![self.folder.clone()],
            Pick::Files => self
                .chosen
                .iter()
                .map(|name| self.folder.join(name))
                .collect(),
            Pick::SaveList => vec![self.folder.join(self.name.trim())],
        }
    }
}

fn is_name(name: &OsStr) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.as_bytes().contains(&b'/')
}

fn item_row(ui: &mut Ui, item: &FolderItem, chosen: bool) -> bool {
    let p = palette(ui);
    let name = shown(item.name.as_bytes());
    ui.horizontal(|ui| {
        ui.with_layout(Layout::right_to_left(Align::Center), |ui| {
            if !item.is_folder {
                soft(ui, bytes(item.size));
            }
            ui.with_layout(Layout::left_to_right(Align::Center), |ui| {
                let (rect, _) =
                    ui.allocate_exact_size(egui::Vec2::splat(ICON), egui::Sense::hover());
                if item.is_folder {
                    Icon::Folder.paint(ui.painter(), rect, p.accent);
                } else if chosen {
                    Icon::Check.paint(ui.painter(), rect, p.accent);
                }
                let row = Button::selectable(chosen, "").left_text(&name).truncate();
                let size = [ui.available_width(), tokens().space.control];
                ui.add_sized(size, row).accessible_name(&name).clicked()
            })
            .inner
        })
        .inner
    })
    .inner
}

/// Sorts a folder's names as people look for them: folders first, then by name without regard to
/// case.
pub fn sort(items: &mut [FolderItem]) {
    items.sort_by_cached_key(|item| {
        (
            !item.is_folder,
            item.name.to_string_lossy().to_lowercase(),
            item.name.clone(),
        )
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_come_first_and_case_does_not_count() {
        let item = |name: &str, is_folder| FolderItem {
            name: name.into(),
            is_folder,
            size: 0,
        };
        let mut items = [
            item("b", false),
            item("Z", true),
            item("A", false),
            item("y", true),
        ];
        sort(&mut items);
        let names: Vec<_> = items
            .iter()
            .map(|i| i.name.to_string_lossy().into_owned())
            .collect();
        assert_eq!(names, ["y", "Z", "A", "b"]);
    }

    #[test]
    fn a_list_is_saved_under_a_name_and_not_a_path() {
        for bad in ["", ".", "..", "a/b"] {
            assert!(!is_name(OsStr::new(bad)), "{bad}");
        }
        assert!(is_name(OsStr::new(SAVE_NAME)));
    }
}
