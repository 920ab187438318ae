// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCodingSamples
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCoding

/// Compares the metadata of files that other programs wrote with the values that Pillow reads.
@Suite(.computing) struct MetadataReferenceTests {
    private static func metadata(_ url: URL) throws -> ImageMetadata {
        try ImageDecoder(try Data(contentsOf: url), registry: SampleFiles.registry).metadata()
    }

    @Test(arguments: [
        ("camera.jpg", ImageMetadata.PixelDensity(horizontal: 240, vertical: 240, unit: .inch)),
        ("camera.png", ImageMetadata.PixelDensity(horizontal: 9_449, vertical: 9_449, unit: .meter)),
        ("camera.webp", ImageMetadata.PixelDensity(horizontal: 240, vertical: 240, unit: .inch)),
    ])
    func `an image of another program is read in each format`(name: String, density: ImageMetadata.PixelDensity?) throws
    {
        let metadata = try Self.metadata(Fixtures.url(name))
        #expect(metadata.cameraMake == "Example" && metadata.cameraModel == "Example One")
        #expect(metadata.lensModel == "Example 35mm F2" && metadata.orientation == .right)
        #expect(metadata.dateTaken?.description == "2024-05-06T07:08:09.125+02:00")
        #expect(metadata.density == density)
        let position = try #require(metadata.position)
        #expect(abs(position.latitude - 47.370_094_44) < 1e-8 && abs(position.longitude - -8.549_105_56) < 1e-8)
        #expect(position.altitude == 408.1)
        #expect(
            metadata.xmp.map { String(decoding: $0, as: UTF8.self).contains("exif:GPSLatitude=\"47,22.2056N\"") }
                == true
        )

        let carried = EncodeOptions.Metadata(carryingOver: metadata)
        let again = ImageMetadata(exif: carried.exif, xmp: carried.xmp)
        #expect(again.position == nil && again.orientation == .up && again.dateTaken == metadata.dateTaken)
        let packet = String(decoding: try #require(again.xmp), as: UTF8.self)
        #expect(!packet.contains("GPSL") && packet.contains("xmp:Rating=\"4\""))
    }

    /// A file of the corpus and its expected metadata.
    struct Sample: Sendable, CustomTestStringConvertible {
        let path: String
        var camera: [String?] = [nil, nil]
        var lens: String?
        var date: String?
        /// The latitude, longitude and altitude.
        var position: [Double]?
        var density: ImageMetadata.PixelDensity?
        /// The sizes of the blocks in bytes.
        var xmp: Int?
        var iptc: Int?

        var testDescription: String { self.path }
    }

    private static func inches(_ density: Double) -> ImageMetadata.PixelDensity? {
        ImageMetadata.PixelDensity(horizontal: density, vertical: density, unit: .inch)
    }

    private static func meters(_ density: Double) -> ImageMetadata.PixelDensity? {
        ImageMetadata.PixelDensity(horizontal: density, vertical: density, unit: .meter)
    }

    static let samples: [Sample] = [
        Sample(
            path: "icc/image-p3.jpg",
            camera: ["NIKON CORPORATION", "NIKON D800E"],
            date: "2012-08-08T22:07:18.100",
            position: [65.055_577_78, -16.625_702_78, 904.1],
            density: Self.inches(72),
            xmp: 4_002,
            iptc: 103
        ),
        Sample(
            path: "webp/HTC_Desire.webp",
            camera: ["HTC", "HTC Desire"],
            date: "2011-05-06T09:59:48",
            position: [45.500_666_67, 9.110_333_33, 217],
            density: Self.inches(72)
        ),
        Sample(
            path: "photos/Issue_266.jpg",
            camera: ["Canon", "Canon EOS 5D Mark III"],
            lens: "EF24-70mm f/2.8L USM",
            date: "2016-01-12T15:33:28",
            density: Self.inches(300),
            xmp: 8_354,
            iptc: 93
        ),
        Sample(
            path: "photos/Issue_525.jpg",
            camera: ["samsung", "SM-G965W"],
            date: "2020-10-27T13:23:33.861",
            density: Self.inches(72),
            xmp: 3_528,
            iptc: 39
        ),
        Sample(
            path: "photos/Canon_PowerShot_A85.jpg",
            camera: ["Canon", "Canon PowerShot A85"],
            date: "2005-01-31T05:51:17",
            density: Self.inches(180)
        ),
        // EXIF has a density of 180, but the container has precedence.
        Sample(
            path: "jpeg/flower.jpg",
            camera: ["Canon", "Canon PowerShot S40"],
            date: "2003-12-14T12:01:44",
            density: Self.inches(72)
        ),
        Sample(
            path: "jpeg/iptc.jpg",
            camera: ["Nokia", "N70-1"],
            date: "2006-07-08T21:14:45",
            density: Self.inches(300),
            iptc: 99
        ),
        // The position directory has no coordinates.
        Sample(
            path: "jpeg/empty_gps_ifd.jpg",
            camera: ["Xiaomi", "Redmi Note 9S"],
            date: "2020-07-27T14:46:48.781",
            density: Self.inches(72)
        ),
        // The density is stored as text.
        Sample(
            path: "jpeg/broken_exif_dpi.jpg",
            camera: ["NIKON CORPORATION", "NIKON D800"],
            date: "2013-09-11T16:45:13.900"
        ),
        Sample(path: "jpeg/app13-multiple.jpg", iptc: 36),
        Sample(
            path: "jpeg/exif-ifd-offset.jpg",
            density: ImageMetadata.PixelDensity(horizontal: 200, vertical: 200, unit: .centimeter),
            xmp: 3_522
        ),
        Sample(
            path: "jpeg/jfif_unit_cm.jpg",
            density: ImageMetadata.PixelDensity(horizontal: 1, vertical: 2, unit: .centimeter)
        ),
        Sample(path: "jpeg/photoshop-200dpi.jpg", density: Self.inches(200), xmp: 3_522),
        Sample(path: "photos/TestJFIF.jpg", density: Self.inches(300), xmp: 2_370),
        Sample(path: "png/xmp_tags_orientation_exiftool.png", density: Self.meters(2_835), xmp: 985),
        Sample(path: "png/gama-srgb-order-issue_304.png", density: Self.meters(11_811), xmp: 3_557),
        Sample(path: "webp/simple_xmp.webp", xmp: 2_860),
    ]

    @Test(.enabled(if: Fixtures.corpus != nil), arguments: Self.samples)
    func `files of cameras and editors are read as others read them`(sample: Sample) throws {
        let metadata = try Self.metadata(try #require(Fixtures.corpus).appending(path: sample.path))
        #expect([metadata.cameraMake, metadata.cameraModel] == sample.camera)
        #expect(metadata.lensModel == sample.lens)
        #expect(metadata.dateTaken?.description == sample.date)
        #expect(metadata.density == sample.density)
        #expect(metadata.xmp?.count == sample.xmp && metadata.iptc?.count == sample.iptc)
        #expect((metadata.position == nil) == (sample.position == nil))
        if let position = metadata.position, let expected = sample.position {
            let numbers = [position.latitude, position.longitude, position.altitude ?? 0]
            for (number, expected) in zip(numbers, expected) { #expect(abs(number - expected) < 1e-7) }
        }
        // Everything except the position is carried over to another file.
        let carried = EncodeOptions.Metadata(carryingOver: metadata)
        let again = ImageMetadata(exif: carried.exif, xmp: carried.xmp)
        #expect(again.cameraModel == metadata.cameraModel && again.dateTaken == metadata.dateTaken)
        #expect(again.position == nil && again.orientation == .up && (again.xmp == nil) == (metadata.xmp == nil))
    }

    /// Reads whole files, and files without their last third.
    @Test(.enabled(if: Fixtures.corpus != nil), arguments: [1.0, 0.66])
    func `the metadata of any file is read without harm, and loses its position`(part: Double) throws {
        let corpus = try #require(Fixtures.corpus)
        var count = 0
        for path in try FileManager.default.subpathsOfDirectory(atPath: corpus.path).sorted() {
            guard let file = try? Data(contentsOf: corpus.appending(path: path)), file.count < 2 << 20 else { continue }
            let data = file.prefix(Int(Double(file.count) * part))
            guard let decoder = try? ImageDecoder(Data(data), registry: SampleFiles.registry) else { continue }
            let metadata = try decoder.metadata()
            #expect(metadata.orientation == decoder.header.orientation, "\(path)")
            let carried = EncodeOptions.Metadata(carryingOver: metadata)
            let again = ImageMetadata(exif: carried.exif, xmp: carried.xmp)
            #expect(again.position == nil && again.orientation == .up, "\(path)")
            #expect(again.cameraModel == metadata.cameraModel && again.dateTaken == metadata.dateTaken, "\(path)")
            count += 1
        }
        #expect(count > 500)
    }
}
