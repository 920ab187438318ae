// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import TintypeCoding
import TintypeImage
import TintypeTestSupport

/// Describes images and the options of their encodes: the file is the text of the recipe, and the child makes the image.
protocol EncodeFiles: FileGenerator {
    /// The format that is written.
    static var format: ImageFormat { get }
}

enum EncodeJPEGFiles: EncodeFiles {
    static let format = ImageFormat.jpeg
}

enum EncodePNGFiles: EncodeFiles {
    static let format = ImageFormat.png
}

enum EncodeGIFFiles: EncodeFiles {
    static let format = ImageFormat.gif
}

enum EncodeWebPFiles: EncodeFiles {
    static let format = ImageFormat.webp
}

extension EncodeFiles {
    static var coder: String { "encode-\(self.format.name)" }

    static var kinds: [Kind] { self.format == .jpeg ? [.encode] : [.encode, .encodeFrames] }

    static var genes: [Gene] {
        [
            .logarithmic("pixels", 1...8_000_000), .linear("aspect", -16...16), .linear("samples", 0...2),
            .linear("texture", 0...4), .logarithmic("cell", 1...64), .logarithmic("levels", 2...256),
            .linear("alpha", 0...3), .logarithmic("frames", 1...30), .linear("change", 0...100),
            .linear("quality", 1...100), .linear("progressive", 0...1), .linear("subsampling", 0...3),
            .linear("compression", 0...2), .linear("nearLossless", 0...100), .linear("level", 0...9),
            .linear("filter", 0...2), .linear("dithered", 0...1), .logarithmic("limit", 0...4_000),
        ]
    }

    static var seeds: [[String: Int]] {
        let whole = ["pixels": 4_000_000, "cell": 1, "frames": 1, "quality": 80, "level": 6, "dithered": 1]
        let changes: [[String: Int]] = [
            ["samples": 1, "texture": 2, "levels": 256], ["samples": 1, "texture": 2, "levels": 2, "quality": 100],
            ["samples": 2, "texture": 2, "levels": 256, "alpha": 1], ["samples": 0, "texture": 2, "levels": 2],
            ["samples": 0, "texture": 0, "levels": 2], ["samples": 1, "texture": 1, "levels": 256],
            ["samples": 2, "texture": 2, "levels": 256, "alpha": 1, "compression": 1, "level": 9],
            ["samples": 1, "texture": 2, "levels": 2, "quality": 100, "subsampling": 1, "progressive": 1],
            ["samples": 1, "texture": 2, "levels": 256, "level": 0],
            ["samples": 1, "texture": 3, "levels": 256, "limit": 20, "pixels": 400_000],
            ["samples": 1, "texture": 2, "levels": 256, "pixels": 200_000, "frames": 20, "change": 100],
            [
                "samples": 2, "texture": 2, "levels": 256, "alpha": 2, "pixels": 200_000, "frames": 20, "change": 50,
                "compression": 1,
            ],
            ["samples": 1, "texture": 2, "levels": 256, "pixels": 100_000, "aspect": 16],
        ]
        return changes.map { whole.merging($0) { $1 } }
    }

    static func file(_ recipe: Recipe) -> [UInt8] {
        Array(recipe.genes.map { "\($0.name)=\(recipe[$0.name])" }.joined(separator: "\n").utf8)
    }
}

/// The image that a child creates from a description, and the options to encode it with.
struct EncodeSubject {
    private let recipe: Recipe

    init(_ file: Data) throws {
        var values: [String: Int] = [:]
        for line in String(decoding: file, as: UTF8.self).split(separator: "\n") {
            let parts = line.split(separator: "=")
            guard parts.count == 2, let value = Int(parts[1]) else { throw Failure("\(line) is no NAME=VALUE") }
            values[String(parts[0])] = value
        }
        self.recipe = Recipe(EncodeJPEGFiles.allGenes, values)
    }

    var options: EncodeOptions {
        let recipe = self.recipe
        let pixels = recipe["pixels"]
        return EncodeOptions(
            quality: recipe["quality"],
            isProgressive: recipe["progressive"] == 1,
            chromaSubsampling: [.automatic, .none, .half, .quarter][recipe["subsampling"]],
            compression: [.lossy, .lossless, .nearLossless(recipe["nearLossless"])][recipe["compression"]],
            pngLevel: recipe["level"],
            pngFilter: [.automatic, .none, .all][recipe["filter"]],
            // The limit in thousandths of a byte per pixel, or 0 for no limit.
            maximumByteCount: recipe["limit"] == 0 ? nil : 1_000 + pixels * recipe["limit"] / 1_000,
            isDithered: recipe["dithered"] == 1
        )
    }

    func image() throws -> Image { try self.image(frame: 0, pixels: "pixels") }

    /// Frames that together have a few million pixels at most.
    func animation() throws -> AnimationContent {
        AnimationContent(
            frames: try (0..<self.recipe["frames"]).map {
                AnimationContent.Frame(image: try self.image(frame: $0, pixels: "pixels"), milliseconds: 50)
            }
        )
    }

    private func image(frame: Int, pixels: String) throws -> Image {
        var recipe = self.recipe
        if recipe["frames"] > 1 { recipe.reduce(pixels, to: 8_000_000 / recipe["frames"]) }
        let size = recipe.size(pixels: pixels, aspect: "aspect", limit: 16_383)
        let format: PixelFormat = [.gray8, .rgb8, .rgba8][recipe["samples"]]
        let layout = try PixelLayout(format: format, width: size.width, height: size.height)
        let (channels, stride) = (format.channelCount, layout.planes[0].bytesPerRow)
        let changedRows = frame == 0 ? 0 : size.height * recipe["change"] / 100
        let texture = Texel(recipe)
        let buffer = try PixelBuffer(
            layout,
            fillingUnsafely: { target in
                for row in 0..<size.height {
                    let frame = row < changedRows ? frame : 0
                    for column in 0..<size.width {
                        let start = row * stride + column * channels
                        let texel = texture.value(column, row, frame)
                        for channel in 0..<channels {
                            target[start + channel] = UInt8(truncatingIfNeeded: texel >> UInt32(8 * channel))
                        }
                    }
                }
            }
        )
        return Image(pixels: buffer)
    }
}

/// Samples of a texture: flat (0), a gradient (1), noise (2), noise on a gradient (3), or stripes (4).
private struct Texel {
    private let kind: Int
    private let cell: Int
    private let levels: UInt32
    private let alpha: Int
    private let seed: UInt64

    init(_ recipe: Recipe) {
        self.kind = recipe["texture"]
        self.cell = max(1, recipe["cell"])
        self.levels = UInt32(max(2, recipe["levels"]))
        self.alpha = recipe["alpha"]
        self.seed = UInt64(recipe["seed"])
    }

    /// Red in the lowest byte, alpha in the highest.
    func value(_ column: Int, _ row: Int, _ frame: Int) -> UInt32 {
        let noise = self.noise(column / self.cell, row / self.cell, frame)
        let slope = UInt32(truncatingIfNeeded: (column + row + frame) / self.cell & 255) &* 0x010101
        let color: UInt32 =
            switch self.kind {
            case 0: 0x406080 &+ UInt32(truncatingIfNeeded: frame)
            case 1: slope
            case 2: self.quantized(noise)
            case 3: slope &+ (noise & 0x1F1F1F)
            default: (column / self.cell + frame) & 1 == 0 ? 0 : 0xFFFFFF
            }
        let alpha: UInt32 =
            switch self.alpha {
            case 0: 255
            case 1: noise >> 24
            case 2: noise >> 31 == 0 ? 0 : 255
            default: slope & 255
            }
        return color & 0xFFFFFF | alpha << 24
    }

    private func quantized(_ noise: UInt32) -> UInt32 {
        guard self.levels < 256 else { return noise }
        var result: UInt32 = 0
        for shift in [UInt32(0), 8, 16] {
            result |= (noise >> shift & 255) * self.levels / 256 * 255 / (self.levels - 1) << shift
        }
        return result
    }

    private func noise(_ column: Int, _ row: Int, _ frame: Int) -> UInt32 {
        // SplitMix64.
        var value = UInt64(truncatingIfNeeded: (frame << 40) ^ (row << 20) ^ column) &+ self.seed << 48
        value = (value &+ 0x9E37_79B9_7F4A_7C15) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ value >> 27) &* 0x94D0_49BB_1331_11EB
        return UInt32(truncatingIfNeeded: (value ^ value >> 31) >> 16)
    }
}
