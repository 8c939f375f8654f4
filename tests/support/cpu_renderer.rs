//! Draws what egui made with the processor alone, so that pictures of the window need no graphics
//! card, no driver and no display, and come out the same everywhere.

use std::collections::HashMap;

use egui::epaint::{Mesh, Primitive, Vertex};
use egui::{ColorImage, ImageData, TextureId, TexturesDelta};
use egui_kittest::TestRenderer;
use image::RgbaImage;

/// A renderer that fills triangles row by row.
#[derive(Default)]
pub struct CpuRenderer {
    textures: HashMap<TextureId, ColorImage>,
}

/// Premultiplied red, green, blue, alpha, each from 0 to 255, as the screen has them.
type Pixel = [f32; 4];

struct Canvas {
    width: usize,
    height: usize,
    pixels: Vec<Pixel>,
}

/// The pixels that may be drawn on: left, top, right, bottom.
#[derive(Clone, Copy)]
struct Clip {
    left: usize,
    top: usize,
    right: usize,
    bottom: usize,
}

impl TestRenderer for CpuRenderer {
    fn handle_delta(&mut self, delta: &mut TexturesDelta) {
        for (id, patches) in delta.set.drain() {
            for patch in patches {
                let ImageData::Color(image) = &patch.image;
                let Some([left, top]) = patch.pos else {
                    self.textures.insert(id, ColorImage::clone(image));
                    continue;
                };
                let whole = self
                    .textures
                    .get_mut(&id)
                    .expect("a patch follows its texture");
                let stride = whole.size[0];
                for (y, row) in image.pixels.chunks(image.size[0]).enumerate() {
                    let start = (top + y) * stride + left;
                    whole.pixels[start..start + row.len()].copy_from_slice(row);
                }
            }
        }
        for id in delta.free.drain() {
            self.textures.remove(&id);
        }
    }

    fn render(
        &mut self,
        ctx: &egui::Context,
        output: &egui::FullOutput,
    ) -> Result<RgbaImage, String> {
        let scale = ctx.pixels_per_point();
        let size = (ctx.content_rect().size() * scale).round();
        let mut canvas = Canvas {
            width: size.x as usize,
            height: size.y as usize,
            pixels: vec![[0.0; 4]; size.x as usize * size.y as usize],
        };
        for clipped in ctx.tessellate(output.shapes.clone(), scale) {
            let Primitive::Mesh(mesh) = &clipped.primitive else {
                return Err("the window paints with triangles only".to_owned());
            };
            let Some(texture) = self.textures.get(&mesh.texture_id) else {
                continue;
            };
            let bounds = clipped.clip_rect * scale;
            let clip = Clip {
                left: bounds.left().round().clamp(0.0, size.x) as usize,
                top: bounds.top().round().clamp(0.0, size.y) as usize,
                right: bounds.right().round().clamp(0.0, size.x) as usize,
                bottom: bounds.bottom().round().clamp(0.0, size.y) as usize,
            };
            draw(&mut canvas, clip, mesh, texture, scale);
        }
        let bytes = canvas
            .pixels
            .iter()
            .flatten()
            .map(|v| v.round().clamp(0.0, 255.0) as u8)
            .collect();
        RgbaImage::from_raw(canvas.width as u32, canvas.height as u32, bytes)
            .ok_or_else(|| "the picture has no pixels".to_owned())
    }
}

fn draw(canvas: &mut Canvas, clip: Clip, mesh: &Mesh, texture: &ColorImage, scale: f32) {
    for corner in mesh.indices.chunks_exact(3) {
        let corners = [corner[0], corner[1], corner[2]].map(|i| &mesh.vertices[i as usize]);
        fill(canvas, clip, corners, texture, scale);
    }
}

/// What changes over a triangle: texture place (in pixels of the texture) and tint.
type Traits = [f32; 6];

fn traits(vertex: &Vertex, texture: &ColorImage) -> Traits {
    let [r, g, b, a] = vertex.color.to_array().map(f32::from);
    let [w, h] = texture.size.map(|n| n as f32);
    [vertex.uv.x * w, vertex.uv.y * h, r, g, b, a]
}

fn fill(canvas: &mut Canvas, clip: Clip, corners: [&Vertex; 3], texture: &ColorImage, scale: f32) {
    let p = corners.map(|v| (v.pos * scale).to_vec2());
    let (ab, ac) = (p[1] - p[0], p[2] - p[0]);
    let area = ab.x * ac.y - ab.y * ac.x;
    if area == 0.0 || !area.is_finite() {
        return;
    }
    // Each trait is a plane over the picture: its value at the first corner and its two slopes.
    let t = corners.map(|v| traits(v, texture));
    let mut slope_x = [0.0; 6];
    let mut slope_y = [0.0; 6];
    for i in 0..6 {
        let (b, c) = (t[1][i] - t[0][i], t[2][i] - t[0][i]);
        slope_x[i] = (b * ac.y - c * ab.y) / area;
        slope_y[i] = (c * ab.x - b * ac.x) / area;
    }
    let plain = (slope_x[0], slope_x[1], slope_y[0], slope_y[1]) == (0.0, 0.0, 0.0, 0.0);
    let plain = plain.then(|| sample(texture, t[0][0], t[0][1]));

    let top = p.iter().map(|p| p.y).fold(f32::INFINITY, f32::min);
    let bottom = p.iter().map(|p| p.y).fold(f32::NEG_INFINITY, f32::max);
    for y in first(top).max(clip.top)..first(bottom).min(clip.bottom) {
        let middle = y as f32 + 0.5;
        // A row crosses two of the three sides; neighbours share sides, so that no pixel is drawn
        // twice and none is left out.
        let mut span = (f32::INFINITY, f32::NEG_INFINITY);
        for (from, to) in [(p[0], p[1]), (p[1], p[2]), (p[2], p[0])] {
            let (upper, lower) = if from.y <= to.y {
                (from, to)
            } else {
                (to, from)
            };
            if upper.y <= middle && middle < lower.y {
                let x = upper.x + (lower.x - upper.x) * (middle - upper.y) / (lower.y - upper.y);
                span = (span.0.min(x), span.1.max(x));
            }
        }
        for x in first(span.0).max(clip.left)..first(span.1).min(clip.right) {
            let (dx, dy) = (x as f32 + 0.5 - p[0].x, middle - p[0].y);
            let at = |i: usize| t[0][i] + slope_x[i] * dx + slope_y[i] * dy;
            let texel = plain.unwrap_or_else(|| sample(texture, at(0), at(1)));
            let under = &mut canvas.pixels[y * canvas.width + x];
            let ink: Pixel =
                std::array::from_fn(|i| texel[i] * at(i + 2).clamp(0.0, 255.0) / 255.0);
            for i in 0..4 {
                under[i] = ink[i] + under[i] * (1.0 - ink[3] / 255.0);
            }
        }
    }
}

/// Returns the first pixel whose middle is not before this place.
fn first(place: f32) -> usize {
    (place - 0.5).ceil().max(0.0) as usize
}

/// Mixes the four texels around a place.
fn sample(texture: &ColorImage, x: f32, y: f32) -> Pixel {
    let [w, h] = texture.size;
    let (x, y) = (x - 0.5, y - 0.5);
    let texel = |x: f32, y: f32| {
        let x = (x.max(0.0) as usize).min(w - 1);
        let y = (y.max(0.0) as usize).min(h - 1);
        texture.pixels[y * w + x].to_array().map(f32::from)
    };
    let (left, top) = (x.floor(), y.floor());
    let (fx, fy) = (x - left, y - top);
    let mix =
        |a: Pixel, b: Pixel, f: f32| -> Pixel { std::array::from_fn(|i| a[i] + (b[i] - a[i]) * f) };
    let above = mix(texel(left, top), texel(left + 1.0, top), fx);
    let below = mix(texel(left, top + 1.0), texel(left + 1.0, top + 1.0), fx);
    mix(above, below, fy)
}
