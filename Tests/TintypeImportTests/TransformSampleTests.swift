// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import Tintype

/// The transformer of the docs, as they show it.
@Suite struct TransformSampleTests {
    @Test func `a transformer of a program's own makes its image, also from a description`() throws {
        let layout = try PixelLayout(format: .rgba8, width: 3, height: 2)
        let pixels = try PixelBuffer(layout) { bytes in
            for offset in 0..<layout.byteCount {
                bytes.storeBytes(of: UInt8(offset % 251), toByteOffset: offset, as: UInt8.self)
            }
        }
        let decoder = JSONDecoder()
        decoder.userInfo[.tintypeTransformers] = ["posterize": Posterize.self] as TransformPipeline.OwnKinds
        let pipeline = try decoder.decode(
            TransformPipeline.self,
            from: Data(#"[{"posterize": {"levels": 2}}]"#.utf8)
        )
        let made = try pipeline.transform(Image(pixels: pixels)).pixels
        made.withBytes { bytes in
            let samples = (0..<4).map { bytes.unsafeLoad(fromByteOffset: $0, as: UInt8.self) }
            #expect(samples == [0, 0, 0, 3])
        }
    }

    @Test func `the docs have it so`() throws {
        let file = URL(filePath: #filePath)
        let root = file.deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
        let docs = try String(contentsOf: root.appending(path: "Docs/transforms.md"), encoding: .utf8)
        let source = try String(contentsOf: file, encoding: .utf8)
        let start = try #require(source.ranges(of: "struct Posterize").last)
        #expect(docs.contains(String(source[start.lowerBound...])))
    }
}

struct Posterize: ImageTransformer, Codable {
    var levels: Int
    var key: String { "posterize(\(self.levels))" }  // every parameter: results are stored by it

    func transform(_ image: Image) throws -> Image {
        let layout = image.pixels.layout
        let plane = layout.planes[0]
        let hasAlpha = layout.format.hasAlpha
        let step = 255 / max(1, self.levels - 1)
        let pixels = try PixelBuffer(layout) { target in
            image.pixels.withBytes { source in
                for row in 0..<plane.height {
                    for place in 0..<plane.usedBytesPerRow {
                        let offset = row * plane.bytesPerRow + place
                        let sample = Int(source.unsafeLoad(fromByteOffset: offset, as: UInt8.self))
                        let isAlpha = hasAlpha && place % 4 == 3
                        let made = isAlpha ? sample : min(255, (sample + step / 2) / step * step)
                        target.storeBytes(of: UInt8(made), toByteOffset: offset, as: UInt8.self)
                    }
                }
            }
        }
        return image.replacingPixels(pixels, orientation: .up)
    }
}
