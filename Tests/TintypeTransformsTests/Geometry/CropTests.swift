// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing
import TintypeImage
import TintypeTestSupport
import TintypeTransforms

@Suite struct CropTests {
    @Test(
        arguments: [
            (Crop.rectangle(x: 10, y: 20, width: 30, height: 5), (10, 20, 30, 5)),
            // A crop does not extend beyond the image.
            (.rectangle(x: -5, y: 30, width: 20, height: 100), (0, 30, 15, 10)),
            (.rectangle(x: 50, y: -1, width: Int.max, height: 2), (50, 0, 10, 1)),
            (.rectangle(x: Int.min + 1, y: 0, width: Int.max, height: 4), nil),
            (.rectangle(x: -9, y: 0, width: Int.max, height: Int.max), (0, 0, 60, 40)),
            (.shares(x: 0.5, y: 0.25, width: 0.25, height: 0.5), (30, 10, 15, 20)),
            (.shares(x: 0, y: 0, width: 1, height: 1), (0, 0, 60, 40)),
            (.shares(x: -1, y: 0.9, width: 1.5, height: 1e300), (0, 36, 30, 4)),
            (.shares(x: 0.999, y: 0, width: 1e-9, height: 0.01), (59, 0, 1, 1)),
            (.size(width: 20, height: 10), (20, 15, 20, 10)),
            (.size(width: 20, height: 10, gravity: .northWest), (0, 0, 20, 10)),
            (.size(width: 20, height: 10, gravity: .southEast), (40, 30, 20, 10)),
            (.size(width: 20, height: 10, gravity: .focus(x: 0.25, y: 0.9)), (5, 30, 20, 10)),
            // A crop is never larger than the image, which limits each side separately.
            (.size(width: 1_000, height: 10), (0, 15, 60, 10)),
            (.aspectRatio(1), (10, 0, 40, 40)),
            (.aspectRatio(2, gravity: .north), (0, 0, 60, 30)),
            (.aspectRatio(1e300), (0, 20, 60, 1)),
            (.aspectRatio(1e-300, gravity: .east), (59, 0, 1, 40)),
        ] as [(Crop, (Int, Int, Int, Int)?)]
    )
    func `names whole pixels of the image`(crop: Crop, expected: (Int, Int, Int, Int)?) throws {
        guard let expected else {
            #expect(throws: TransformError.self) { try crop.rectangle(width: 60, height: 40) }
            return
        }
        let part = try crop.rectangle(width: 60, height: 40)
        #expect((part.x, part.y, part.width, part.height) == expected)
        let pixels = try PixelBuffer.noise(.gray8, width: 60, height: 40)
        let cropped = try crop.transform(Image(pixels: pixels)).pixels
        #expect((cropped.width, cropped.height) == (part.width, part.height))
        #expect(cropped.largestDifference { pixels.sample($0 + part.x, $1 + part.y, $2) } == 0)
        #expect(try crop.footprint(for: pixels.layout).result == cropped.layout)
    }

    @Test(
        arguments: [
            .rectangle(x: 0, y: 0, width: 0, height: 5), .rectangle(x: 0, y: 0, width: 5, height: -1),
            .rectangle(x: 60, y: 0, width: 5, height: 5), .rectangle(x: 0, y: -5, width: 5, height: 5),
            .rectangle(x: Int.max, y: Int.max, width: Int.max, height: Int.max),
            .rectangle(x: Int.min, y: 0, width: Int.min, height: 1),
            .shares(x: .nan, y: 0, width: 1, height: 1), .shares(x: 0, y: 0, width: .infinity, height: 1),
            .shares(x: 0, y: 0, width: 0, height: 1), .shares(x: 1, y: 0, width: 1, height: 1),
            .shares(x: -1, y: 0, width: 1, height: 1), .size(width: 0, height: 5), .size(width: 5, height: Int.min),
            .aspectRatio(0), .aspectRatio(-1), .aspectRatio(.nan), .aspectRatio(.infinity),
        ] as [Crop]
    )
    func `what names no part of the image is refused`(crop: Crop) throws {
        let image = Image(pixels: try .noise(.rgb8, width: 60, height: 40))
        let error = #expect(throws: TransformError.self) { try crop.transform(image) }
        #expect(error?.code == .invalidParameter)
        #expect(throws: TransformError.self) { try crop.footprint(for: image.pixels.layout) }
    }

    @Test(arguments: [PixelFormat.gray8, .rgb8, .rgba8])
    func `keeps samples of every format as they are`(format: PixelFormat) throws {
        let pixels = try PixelBuffer.noise(format, width: 70, height: 9)
        let crop = Crop.rectangle(x: 3, y: 2, width: 64, height: 5)
        let cropped = try crop.transform(Image(pixels: pixels)).pixels
        #expect(cropped.format == format)
        #expect(cropped.largestDifference { pixels.sample($0 + 3, $1 + 2, $2) } == 0)
    }

    /// Crops a part that is larger than a processor cache.
    ///
    /// Its rows end within a cache line or at the end of one.
    @Test(arguments: [(2_101, 3), (2_112, 0)])
    func `a large part is copied in full`(width: Int, left: Int) throws {
        let noise = try PixelBuffer.noise(.rgba8, width: 2_120, height: 1).samples
        let layout = try PixelLayout(format: .rgba8, width: 2_120, height: 2_100)
        let bytesPerRow = layout.planes[0].bytesPerRow
        // Each row begins at another sample.
        func samples(of row: Int) -> [UInt8] { Array(noise[(row * 7 % 2_000)...] + noise[..<(row * 7 % 2_000)]) }
        let pixels = try PixelBuffer(
            layout,
            fillingUnsafely: { bytes in
                for row in 0..<2_100 { bytes[(row * bytesPerRow)...].copyBytes(from: samples(of: row)) }
            }
        )
        let crop = Crop.rectangle(x: left, y: 50, width: width, height: 2_040)
        let cropped = try crop.transform(Image(pixels: pixels)).pixels
        #expect(cropped.width == width && cropped.height == 2_040 && cropped.byteCount >= 16 << 20)
        for row in 0..<2_040 {
            let expected = samples(of: row + 50)[(left * 4)...].prefix(width * 4)
            try #require(cropped.row(row).elementsEqual(expected), "row \(row)")
        }
    }

    @Test(arguments: [Crop.size(width: 90, height: 90), .shares(x: 0, y: 0, width: 1, height: 1), .aspectRatio(1.5)])
    func `a crop that cuts nothing off gives the image itself`(crop: Crop) throws {
        let image = Image(pixels: try .noise(.rgb8, width: 60, height: 40))
        #expect(try crop.transform(image).pixels === image.pixels)
    }

    @Test(arguments: [
        (#"{"rectangle":{"x":1,"y":2,"width":3,"height":4}}"#, Crop.rectangle(x: 1, y: 2, width: 3, height: 4)),
        (#"{"shares":{"x":0.5,"y":0,"width":0.5,"height":1}}"#, .shares(x: 0.5, y: 0, width: 0.5, height: 1)),
        (#"{"size":{"width":3,"height":4}}"#, .size(width: 3, height: 4)),
        (
            #"{"size":{"width":3,"height":4,"gravity":"0.3,0.7"}}"#,
            .size(width: 3, height: 4, gravity: .focus(x: 0.3, y: 0.7))
        ),
        (#"{"aspectRatio":{"ratio":1.5,"gravity":"north"}}"#, .aspectRatio(1.5, gravity: .north)),
    ])
    func `is read from a description and written to one`(text: String, crop: Crop) throws {
        #expect(try JSONDecoder().decode(Crop.self, from: Data(text.utf8)) == crop)
        #expect(try JSONDecoder().decode(Crop.self, from: JSONEncoder().encode(crop)) == crop)
    }

    @Test(arguments: [
        "{}", #"{"size":{"width":3}}"#, #"{"size":{"width":1,"height":1},"shares":{}}"#,
        #"{"size":{"width":3,"height":4,"gravity":"up"}}"#,
    ])
    func `other descriptions are refused`(text: String) {
        #expect(throws: DecodingError.self) { try JSONDecoder().decode(Crop.self, from: Data(text.utf8)) }
    }

    @Test func `keys tell all parameters apart`() {
        let crops: [Crop] = [
            .rectangle(x: 1, y: 2, width: 3, height: 4), .rectangle(x: 2, y: 1, width: 3, height: 4),
            .rectangle(x: 1, y: 2, width: 4, height: 3), .shares(x: 0.1, y: 0.2, width: 0.3, height: 0.4),
            .shares(x: 0.1, y: 0.2, width: 0.4, height: 0.3), .size(width: 3, height: 4), .size(width: 4, height: 3),
            .size(width: 3, height: 4, gravity: .north), .aspectRatio(1.5), .aspectRatio(1.5, gravity: .north),
            .aspectRatio(1.25),
        ]
        #expect(Set(crops.map(\.key)).count == crops.count)
    }
}
