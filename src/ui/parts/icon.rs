//! The icons: strokes on a grid of 16 by 16, drawn in the colour of the text beside them, so that
//! they look the same whatever fonts a computer has.

use egui::{Color32, Painter, Pos2, Rect, Shape, Stroke};

/// A drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is called after what it shows or means")]
pub enum Icon {
    Plus,
    Cross,
    Up,
    Down,
    Play,
    Pause,
    Retry,
    Folder,
    Check,
    NotEqual,
    Warn,
    Dot,
    Ring,
    Clock,
    Search,
    More,
    Swap,
    Trash,
    Save,
    Eye,
    Into,
    Minus,
}

enum Stroked {
    /// A line through these points.
    Line(&'static [(f32, f32)]),
    /// A filled convex shape.
    Fill(&'static [(f32, f32)]),
    /// A circle: centre and radius.
    Circle(f32, f32, f32),
    /// A filled circle.
    Disc(f32, f32, f32),
}

use Stroked::{Circle, Disc, Fill, Line};

impl Icon {
    fn strokes(self) -> &'static [Stroked] {
        match self {
            Self::Plus => &[
                Line(&[(8.0, 3.0), (8.0, 13.0)]),
                Line(&[(3.0, 8.0), (13.0, 8.0)]),
            ],
            Self::Minus => &[Line(&[(3.0, 8.0), (13.0, 8.0)])],
            Self::Cross => &[
                Line(&[(4.0, 4.0), (12.0, 12.0)]),
                Line(&[(12.0, 4.0), (4.0, 12.0)]),
            ],
            Self::Up => &[Line(&[(3.5, 10.0), (8.0, 5.5), (12.5, 10.0)])],
            Self::Down => &[Line(&[(3.5, 6.0), (8.0, 10.5), (12.5, 6.0)])],
            Self::Play => &[Fill(&[(4.5, 2.5), (13.0, 8.0), (4.5, 13.5)])],
            Self::Pause => &[
                Fill(&[(4.0, 3.0), (6.5, 3.0), (6.5, 13.0), (4.0, 13.0)]),
                Fill(&[(9.5, 3.0), (12.0, 3.0), (12.0, 13.0), (9.5, 13.0)]),
            ],
            Self::Retry => &[
                Line(&[
                    (12.6, 6.2),
                    (11.0, 4.0),
                    (8.4, 3.1),
                    (5.6, 3.8),
                    (3.6, 6.0),
                    (3.2, 8.8),
                    (4.4, 11.3),
                    (6.8, 12.8),
                    (9.6, 12.6),
                    (11.8, 11.0),
                ]),
                Line(&[(12.9, 2.8), (12.7, 6.3), (9.2, 6.3)]),
            ],
            Self::Folder => &[Line(&[
                (2.0, 12.5),
                (2.0, 3.5),
                (6.0, 3.5),
                (7.5, 5.5),
                (14.0, 5.5),
                (14.0, 12.5),
                (2.0, 12.5),
            ])],
            Self::Check => &[Line(&[(3.0, 8.5), (6.5, 12.0), (13.0, 4.5)])],
            Self::NotEqual => &[
                Line(&[(3.0, 6.0), (13.0, 6.0)]),
                Line(&[(3.0, 10.0), (13.0, 10.0)]),
                Line(&[(11.0, 2.5), (5.0, 13.5)]),
            ],
            Self::Warn => &[
                Line(&[(8.0, 2.5), (14.2, 13.2), (1.8, 13.2), (8.0, 2.5)]),
                Line(&[(8.0, 6.5), (8.0, 9.6)]),
                Disc(8.0, 11.4, 0.9),
            ],
            Self::Dot => &[Disc(8.0, 8.0, 4.0)],
            Self::Ring => &[Circle(8.0, 8.0, 4.0)],
            Self::Clock => &[
                Circle(8.0, 8.0, 5.8),
                Line(&[(8.0, 4.6), (8.0, 8.2), (10.6, 9.8)]),
            ],
            Self::Search => &[Circle(7.0, 7.0, 4.4), Line(&[(10.3, 10.3), (13.6, 13.6)])],
            Self::More => &[
                Disc(3.5, 8.0, 1.4),
                Disc(8.0, 8.0, 1.4),
                Disc(12.5, 8.0, 1.4),
            ],
            Self::Swap => &[
                Line(&[(5.0, 13.0), (5.0, 3.0)]),
                Line(&[(2.3, 5.7), (5.0, 3.0), (7.7, 5.7)]),
                Line(&[(11.0, 3.0), (11.0, 13.0)]),
                Line(&[(8.3, 10.3), (11.0, 13.0), (13.7, 10.3)]),
            ],
            Self::Trash => &[
                Line(&[(2.5, 4.5), (13.5, 4.5)]),
                Line(&[(6.0, 4.5), (6.0, 2.5), (10.0, 2.5), (10.0, 4.5)]),
                Line(&[(4.0, 4.5), (4.6, 13.5), (11.4, 13.5), (12.0, 4.5)]),
            ],
            Self::Save => &[
                Line(&[(8.0, 2.5), (8.0, 10.0)]),
                Line(&[(4.8, 6.9), (8.0, 10.1), (11.2, 6.9)]),
                Line(&[(2.5, 10.0), (2.5, 13.3), (13.5, 13.3), (13.5, 10.0)]),
            ],
            Self::Eye => &[
                Line(&[
                    (1.5, 8.0),
                    (4.5, 4.9),
                    (8.0, 3.9),
                    (11.5, 4.9),
                    (14.5, 8.0),
                    (11.5, 11.1),
                    (8.0, 12.1),
                    (4.5, 11.1),
                    (1.5, 8.0),
                ]),
                Disc(8.0, 8.0, 2.0),
            ],
            Self::Into => &[
                Line(&[(8.0, 2.0), (8.0, 9.5)]),
                Line(&[(4.8, 6.4), (8.0, 9.6), (11.2, 6.4)]),
                Line(&[(2.5, 8.5), (2.5, 13.5), (13.5, 13.5), (13.5, 8.5)]),
            ],
        }
    }

    /// Draws it in the middle of a rectangle, as large as fits.
    pub fn paint(self, painter: &Painter, rect: Rect, colour: Color32) {
        let scale = rect.width().min(rect.height()) / 16.0;
        let corner = rect.center() - egui::Vec2::splat(8.0 * scale);
        let at = |(x, y): (f32, f32)| Pos2::new(corner.x + x * scale, corner.y + y * scale);
        let stroke = Stroke::new(1.5 * scale, colour);
        for part in self.strokes() {
            painter.add(match part {
                Line(points) => Shape::line(points.iter().copied().map(at).collect(), stroke),
                Fill(points) => Shape::convex_polygon(
                    points.iter().copied().map(at).collect(),
                    colour,
                    Stroke::NONE,
                ),
                Circle(x, y, r) => Shape::circle_stroke(at((*x, *y)), r * scale, stroke),
                Disc(x, y, r) => Shape::circle_filled(at((*x, *y)), r * scale, colour),
            });
        }
    }
}
