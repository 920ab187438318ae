// SPDX-License-Identifier: Apache-2.0

/// An image of the corpus for benchmarks.
struct SubjectImage: Sendable {
    /// The file's path in the corpus.
    let file: String
    /// The size of the upright image.
    let width: Int
    let height: Int
    /// Whether to remove its metadata first, because only some sides convert its colour profile.
    var isStripped = false
    /// Whether it is a JPEG of several scans.
    var isProgressive = false

    var isJPEG: Bool { self.file.hasSuffix(".jpg") }
    var megapixels: Double { Double(self.width * self.height) / 1e6 }

    /// Returns the size after the codec scales it down, with fractions of a pixel rounded up.
    func size(dividedBy divisor: Int) -> (width: Int, height: Int) {
        ((self.width + divisor - 1) / divisor, (self.height + divisor - 1) / divisor)
    }

    /// Returns the path of the file, or of a stand-in of the same size and format.
    func path(_ session: Session) async throws -> String {
        let photographs = session.photographs
        return self.isStripped
            ? try await photographs.plain(self.file, width: self.width, height: self.height, session)
            : try await photographs.path(self.file, width: self.width, height: self.height, session)
    }

    /// 12 MP of a camera, 4:2:2, baseline.
    static let camera = SubjectImage(file: "photos/Canon_EOS_450D.jpg", width: 4272, height: 2848)
    /// 12 MP of a telephone, 4:2:0, baseline.
    static let telephone = SubjectImage(file: "photos/TestJFIF.jpg", width: 4032, height: 3024, isStripped: true)
    /// 18 MP, 4:4:4, progressive.
    static let progressive = SubjectImage(
        file: "photos/TestImageLarge.jpg",
        width: 5250,
        height: 3450,
        isProgressive: true
    )
    /// About 50 kB, of the harness' own making.
    static let small = SubjectImage(file: "photograph-50kB.jpg", width: 800, height: 533)
    /// A photograph in 24-bit PNG.
    static let pngPhotograph = SubjectImage(file: "photos/1.png", width: 768, height: 512)
    /// Another photograph in 24-bit PNG.
    static let pngOther = SubjectImage(file: "photos/3.png", width: 768, height: 512)
    /// A large drawing in 24-bit PNG.
    static let pngDrawing = SubjectImage(file: "photos/60430844748882ff66b9a5598ef06dd6.png", width: 1446, height: 2048)
    /// A photograph in lossy WebP.
    static let webpPhotograph = SubjectImage(file: "photos/webpvp8.webp", width: 1600, height: 900)

    /// The photographs of the corpus in three formats, without a diagram.
    static let photographs =
        [
            camera,
            telephone,
            progressive,
            SubjectImage(file: "photos/Canon_PowerShot_A85.jpg", width: 2272, height: 1704),
            SubjectImage(file: "photos/Issue_266.jpg", width: 5760, height: 3840, isStripped: true),
            SubjectImage(file: "photos/Issue_525.jpg", width: 4032, height: 3024, isStripped: true),
            SubjectImage(file: "photos/large.jpg", width: 4000, height: 6000, isStripped: true),
            webpPhotograph,
            pngPhotograph,
            SubjectImage(file: "photos/2.png", width: 768, height: 512),
            pngOther,
            SubjectImage(file: "photos/4.png", width: 512, height: 768),
            pngDrawing,
        ]
}
