// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import TintypeCodingSamples
import TintypeConcurrency
import TintypeConformanceSupport
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCoding

/// Lossless turns, crops and codings of JPEGs.
@Suite(.computing, .timeLimit(.minutes(5))) struct JPEGTransformTests {
    struct Kind: Sendable, CustomTestStringConvertible {
        let testDescription: String
        var format = PixelFormat.rgb8
        var sampling = EncodeOptions.ChromaSubsampling.none
        var isProgressive = false

        func data(width: Int, height: Int) throws -> Data {
            var options = EncodeOptions(quality: 85, isProgressive: self.isProgressive)
            options.chromaSubsampling = self.sampling
            let pixels = try PixelBuffer.noise(self.format, width: width, height: height)
            return try JPEGCoder().encode(Image(pixels: pixels), as: .jpeg, options: options)
        }

        var unit: (width: Int, height: Int) {
            (self.sampling == .none ? 8 : 16, self.sampling == .quarter ? 16 : 8)
        }
    }

    private static let kinds = [
        Kind(testDescription: "4:4:4"),
        Kind(testDescription: "4:2:2", sampling: .half),
        Kind(testDescription: "4:2:0", sampling: .quarter),
        Kind(testDescription: "4:2:0, progressive", sampling: .quarter, isProgressive: true),
        Kind(testDescription: "gray", format: .gray8),
    ]

    private static func isSwapping(_ turn: JPEGTransform.Turn) -> Bool { JPEGTurn(turn).swapsSides }

    private static func inverse(_ turn: JPEGTransform.Turn) -> JPEGTransform.Turn {
        turn == .rotate90 ? .rotate270 : turn == .rotate270 ? .rotate90 : turn
    }

    // MARK: Turns

    @Test(arguments: Self.kinds, JPEGTransform.Turn.allCases)
    func `a turn moves each coefficient, and its inverse moves it back`(_ kind: Kind, _ turn: JPEGTransform.Turn) throws
    {
        let data = try kind.data(width: 64, height: 48)
        let source = try #require(JPEGCoefficients(data))
        for coding in [JPEGTransform.Coding.standardTables, .optimizedTables, .progressive] {
            let result = try JPEGTransform(turn: turn, isPerfect: true, coding: coding).apply(to: data)
            let turned = try #require(JPEGCoefficients(result.data))
            #expect(turned.difference(from: source, turned: turn) == nil)
            #expect((result.width, result.height) == (Self.isSwapping(turn) ? (48, 64) : (64, 48)))
            #expect((turned.width, turned.height) == (result.width, result.height))
            let back = try JPEGTransform(turn: Self.inverse(turn), isPerfect: true, coding: coding).apply(
                to: result.data
            )
            #expect(try #require(JPEGCoefficients(back.data)) == source)
        }
    }

    @Test(arguments: Self.kinds, JPEGTransform.Turn.allCases)
    func `blocks that are cut are left out where they would come first`(
        _ kind: Kind,
        _ turn: JPEGTransform.Turn
    ) throws {
        let data = try kind.data(width: 53, height: 37)
        let source = try #require(JPEGCoefficients(data))
        let parts = JPEGTurn(turn)
        var size = (width: 53, height: 37)
        var unit = kind.unit
        if parts.swapsSides { (size, unit) = ((37, 53), (unit.height, unit.width)) }
        let columns = parts.reversesColumns ? size.width % unit.width : 0
        let rows = parts.reversesRows ? size.height % unit.height : 0
        for coding in [JPEGTransform.Coding.standardTables, .optimizedTables] {
            let result = try JPEGTransform(turn: turn, coding: coding).apply(to: data)
            #expect((result.trimmedColumns, result.trimmedRows) == (columns, rows))
            #expect((result.width, result.height) == (size.width - columns, size.height - rows))
            let turned = try #require(JPEGCoefficients(result.data))
            #expect(turned.difference(from: source, turned: turn) == nil)
            #expect((turned.width, turned.height) == (result.width, result.height))
        }
        let perfect = JPEGTransform(turn: turn, isPerfect: true)
        guard columns > 0 || rows > 0 else {
            #expect(throws: Never.self) { try perfect.apply(to: data) }
            return
        }
        Self.expect(.notLossless) { try perfect.apply(to: data) }
    }

    /// The library's own transforms are the reference for ours.
    @Test(arguments: Self.kinds, JPEGTransform.Turn.allCases)
    func `TurboJPEG and code of our own write the same bytes`(_ kind: Kind, _ turn: JPEGTransform.Turn) throws {
        let data = try kind.data(width: 85, height: 70)
        for coding in [JPEGTransform.Coding.standardTables, .progressive] {
            for crop in [nil, PixelRectangle(x: 20, y: 16, width: 30, height: 31)] {
                for isGray in [false, true] {
                    let transform = JPEGTransform(turn: turn, crop: crop, isGray: isGray, coding: coding)
                    let (turbo, own) = try Self.both(transform, data)
                    #expect(turbo == own, "\(coding), \(String(describing: crop)), gray: \(isGray)")
                }
            }
        }
    }

    /// Returns the file that TurboJPEG writes, and the file that our own code writes.
    private static func both(_ transform: JPEGTransform, _ data: Data) throws -> (turbo: Data?, own: Data) {
        let header = try JPEGHeader(data, work: DecodeWork(DecodingLimits()))
        return try data.withUnsafeBytes { source in
            let job = JPEGRecoding(
                source: source,
                header: header,
                geometry: try JPEGGeometry(transform, of: header),
                coding: transform.coding,
                isGray: transform.isGray,
                allowsTruncated: false,
                maximumByteCount: .max
            )
            let turbo = try job.throughTurboJPEG(units: 1_000, DecodeWork(DecodingLimits()))?.data
            return (turbo, try job.throughLibrary(DecodeWork(DecodingLimits())).data)
        }
    }

    @Test(arguments: JPEGTransform.Turn.allCases)
    func `what is turned without loss looks like what is turned by its pixels`(_ turn: JPEGTransform.Turn) throws {
        let orientations: [JPEGTransform.Turn: Orientation] = [
            .none: .up, .rotate90: .right, .rotate180: .down, .rotate270: .left, .flipHorizontal: .upMirrored,
            .flipVertical: .downMirrored, .transpose: .leftMirrored, .transverse: .rightMirrored,
        ]
        let data = try SampleFiles.smooth(.jpeg, .gray8, width: 64, height: 32)
        let stored = try SampleFiles.decode(data).pixels
        let expected = try Image(pixels: stored, orientation: try #require(orientations[turn])).upright().pixels
        let pixels = try SampleFiles.decode(JPEGTransform(turn: turn).apply(to: data).data).pixels
        #expect((pixels.width, pixels.height) == (expected.width, expected.height))
        let worst = zip(Self.samples(pixels), Self.samples(expected)).map { abs(Int($0) - Int($1)) }.max() ?? 0
        // The order in which rows and columns are rounded depends on the turn.
        #expect(worst <= 2)
    }

    private static func samples(_ pixels: PixelBuffer) -> [UInt8] {
        let plane = pixels.layout.planes[0]
        return pixels.withUnsafeBytes { bytes in
            (0..<plane.height).flatMap { row in
                Array(bytes[(plane.offset + row * plane.bytesPerRow)...].prefix(plane.usedBytesPerRow))
            }
        }
    }

    @Test(arguments: Orientation.allCases, [false, true])
    func `an image becomes upright by its EXIF block`(_ orientation: Orientation, isLittleEndian: Bool) throws {
        let pixels = try PixelBuffer.noise(.rgb8, width: 48, height: 32)
        let data = try SampleFiles.jpeg(pixels, orientation: Int(orientation.rawValue), isLittleEndian: isLittleEndian)
        let result = try JPEGTransform(turnsUpright: true).apply(to: data)
        let expected = orientation.uprightSize(width: 48, height: 32)
        #expect((result.width, result.height) == expected)
        #expect(try JPEGCoder().open(result.data).header.orientation == .up)
        let turns: [Orientation: JPEGTransform.Turn] = [
            .up: .none, .upMirrored: .flipHorizontal, .down: .rotate180, .downMirrored: .flipVertical,
            .leftMirrored: .transpose, .right: .rotate90, .rightMirrored: .transverse, .left: .rotate270,
        ]
        let turned = try #require(JPEGCoefficients(result.data))
        let turn = try #require(turns[orientation])
        #expect(turned.difference(from: try #require(JPEGCoefficients(data)), turned: turn) == nil)
        // An upright image needs no change.
        #expect(try JPEGTransform(turnsUpright: true).apply(to: result.data).data == result.data)
    }

    @Test(arguments: JPEGTransform.Turn.allCases, JPEGTransform.Turn.allCases)
    func `two turns are one`(_ first: JPEGTransform.Turn, _ second: JPEGTransform.Turn) throws {
        let data = try SampleFiles.smooth(.jpeg, .gray8, width: 24, height: 16)
        let once = try JPEGTransform(turn: first).apply(to: data).data
        let twice = try JPEGTransform(turn: second).apply(to: once).data
        let together = try JPEGTransform(turn: first.followed(by: second)).apply(to: data).data
        #expect(JPEGCoefficients(twice) == JPEGCoefficients(together))
    }

    @Test(arguments: [
        (JPEGTransform.Turn.flipHorizontal, false), (.rotate180, false), (.transpose, true), (.none, true),
    ])
    func `an image of one pixel cannot be mirrored`(_ turn: JPEGTransform.Turn, isPossible: Bool) throws {
        let data = try SampleFiles.smooth(.jpeg, width: 1, height: 1)
        let transform = JPEGTransform(turn: turn, coding: .optimizedTables)
        guard isPossible else { return Self.expect(.notLossless) { try transform.apply(to: data) } }
        let result = try transform.apply(to: data)
        #expect((result.width, result.height) == (1, 1))
    }

    // MARK: Crops

    @Test(arguments: Self.kinds, JPEGTransform.Turn.allCases)
    func `a crop begins at a block and ends where it was to end`(_ kind: Kind, _ turn: JPEGTransform.Turn) throws {
        let data = try kind.data(width: 128, height: 96)
        let source = try #require(JPEGCoefficients(data))
        let unit = Self.isSwapping(turn) ? (width: kind.unit.height, height: kind.unit.width) : kind.unit
        let wanted = PixelRectangle(x: 37, y: 21, width: 40, height: 50)
        let expected = PixelRectangle(
            x: 37 / unit.width * unit.width,
            y: 21 / unit.height * unit.height,
            width: 40 + 37 % unit.width,
            height: 50 + 21 % unit.height
        )
        for coding in [JPEGTransform.Coding.standardTables, .optimizedTables] {
            let result = try JPEGTransform(turn: turn, crop: wanted, coding: coding).apply(to: data)
            #expect(result.crop == expected)
            #expect((result.width, result.height) == (expected.width, expected.height))
            let cut = try #require(JPEGCoefficients(result.data))
            #expect(cut.difference(from: source, turned: turn, from: (expected.x, expected.y)) == nil)
            #expect((cut.width, cut.height) == (result.width, result.height))
        }
        Self.expect(.notLossless) { try JPEGTransform(turn: turn, crop: wanted, isPerfect: true).apply(to: data) }
        let aligned = PixelRectangle(x: 32, y: 16, width: 1, height: 80)
        #expect(try JPEGTransform(turn: turn, crop: aligned, isPerfect: true).apply(to: data).crop == aligned)
    }

    @Test(arguments: [
        (-1, 0, 4, 4), (0, -8, 4, 4), (0, 0, 0, 4), (0, 0, 4, -1), (64, 0, 1, 1), (0, 48, 1, 1), (8, 0, 57, 1),
        (0, 8, 1, 41), (Int.max, 0, 1, 1), (8, 8, Int.max, Int.max), (Int.min, Int.min, Int.max, Int.max),
    ])
    func `a crop that is not within the image is refused`(_ x: Int, _ y: Int, _ width: Int, _ height: Int) throws {
        let data = try SampleFiles.smooth(.jpeg)
        let crop = PixelRectangle(x: x, y: y, width: width, height: height)
        Self.expect(.invalidOptions) { try JPEGTransform(crop: crop).apply(to: data) }
    }

    @Test func `a crop of everything changes nothing`() throws {
        let data = try SampleFiles.smooth(.jpeg)
        let crop = PixelRectangle(x: 0, y: 0, width: 64, height: 48)
        let result = try JPEGTransform(crop: crop).apply(to: data)
        #expect(result.data == data && result.crop == crop)
    }

    // MARK: Coding

    @Test(arguments: Self.kinds) func `gray is the brightness that was there`(_ kind: Kind) throws {
        let data = try kind.data(width: 53, height: 37)
        let source = try #require(JPEGCoefficients(data))
        for coding in [JPEGTransform.Coding.standardTables, .optimizedTables] {
            for turn in [JPEGTransform.Turn.none, .rotate90] {
                let result = try JPEGTransform(turn: turn, isGray: true, coding: coding).apply(to: data)
                let gray = try #require(JPEGCoefficients(result.data))
                #expect(gray.difference(from: source, turned: turn, isGray: true) == nil)
                // An image of one component has blocks of 8 pixels, whatever the subsampling of the source.
                #expect(result.trimmedColumns == (turn == .none ? 0 : 5))
                #expect(try SampleFiles.decode(result.data).pixels.format == .gray8)
            }
        }
    }

    @Test func `what has to be coded anew is coded as it was`() throws {
        let progressive = try Kind(testDescription: "", isProgressive: true).data(width: 64, height: 48)
        let standard = try Kind(testDescription: "").data(width: 64, height: 48)
        let optimized = try JPEGTransform(coding: .optimizedTables).apply(to: standard).data
        for (data, coding) in [
            (progressive, JPEGTransform.Coding.progressive), (standard, .standardTables), (optimized, .optimizedTables),
        ] {
            let stored = try JPEGTransform(turn: .rotate90).apply(to: data).data
            #expect(try stored == JPEGTransform(turn: .rotate90, coding: coding).apply(to: data).data)
        }
        #expect(optimized.count < standard.count)
    }

    @Test func `nothing to do gives back the file as it is`() throws {
        let data = try SampleFiles.smooth(.jpeg) + Data("what comes behind".utf8)
        #expect(try JPEGTransform().apply(to: data).data == data)
        let stripped = try JPEGTransform(metadata: .none).apply(to: data).data
        #expect(stripped.firstRange(of: Data("behind".utf8)) == nil && stripped.suffix(2) == Data([0xFF, 0xD9]))
    }

    @Test func `restarts and scans in any number stay in what is only stripped`() throws {
        for data in [
            SlowFiles.flatJPEG(64, 48), try Kind(testDescription: "", isProgressive: true).data(width: 64, height: 48),
        ] {
            var noted = data
            noted.insert(contentsOf: [0xFF, 0xFE, 0, 9] + Array("comment".utf8), at: 2)
            let stripped = try JPEGTransform(metadata: .none).apply(to: noted).data
            #expect(stripped.count <= data.count)
            #expect(JPEGCoefficients(stripped) == JPEGCoefficients(data))
            #expect(stripped.firstRange(of: Data("comment".utf8)) == nil)
        }
    }

    // MARK: Limits

    @Test func `limits are those of a decode`() throws {
        let data = try Kind(testDescription: "", sampling: .quarter).data(width: 64, height: 48)
        func expect(_ code: CodingError.Code, _ limits: DecodingLimits, coding: JPEGTransform.Coding = .stored) {
            Self.expect(code) { try JPEGTransform(turn: .rotate90, coding: coding).apply(to: data, limits: limits) }
        }
        expect(.tooManyPixels, DecodingLimits(maximumPixels: 3_000))
        expect(.sideTooLong, DecodingLimits(maximumSide: 63))
        expect(.tooManyBytes, DecodingLimits(maximumEncodedBytes: data.count - 1))
        for coding in JPEGTransform.Coding.allCases {
            expect(.tooMuchWork, DecodingLimits(maximumWork: data.count), coding: coding)
        }
        // The progressive file is smaller, so coding it with the standard tables exceeds the limit.
        let small = try JPEGTransform(coding: .progressive).apply(to: data).data
        let limits = DecodingLimits(maximumEncodedBytes: small.count)
        Self.expect(.tooManyBytes) {
            try JPEGTransform(coding: .standardTables).apply(to: small, limits: limits)
        }
        #expect(throws: Never.self) { try JPEGTransform(turn: .rotate90).apply(to: small, limits: limits) }
    }

    @Test func `five hundred scans of a large image are refused at once`() throws {
        let data = SlowFiles.scans(499, 10_000, 10_000)
        Self.expect(.tooMuchWork) { try JPEGTransform(turn: .rotate90).apply(to: data) }
    }

    @Test(arguments: [JPEGTransform.Coding.standardTables, .optimizedTables, .progressive])
    func `a cancelled task stops inside`(coding: JPEGTransform.Coding) async throws {
        let data = SlowFiles.flatJPEG(4_000, 3_000)
        let plan = try JPEGTransformPlan(
            JPEGTransform(turn: .rotate90, coding: coding),
            of: data,
            limits: DecodingLimits()
        )
        let looks = Locked(0)
        let observer = DecodeWork.Observer(look: { _ in
            looks.withLock { $0 += 1 }
            withUnsafeCurrentTask { $0?.cancel() }
        })
        let task = Task {
            try DecodeWork.$observer.withValue(observer) { try plan.carryOut() }
        }
        await #expect(throws: CancellationError.self) { _ = try await task.value }
        #expect(looks.withLock { $0 } == 1)
    }

    @Test(.enabled(if: AllocatedMemory.isMeasured), arguments: [JPEGTransform.Turn.none, .rotate90], [false, true])
    func `a transform takes what the gate counts`(_ turn: JPEGTransform.Turn, isProgressive: Bool) throws {
        var options = EncodeOptions(quality: 60, isProgressive: isProgressive)
        options.chromaSubsampling = .quarter
        let image = Image(pixels: try PixelBuffer.make(.rgb8, width: 2_000, height: 1_504) { _, _, _ in 100 })
        let data = try JPEGCoder().encode(image, as: .jpeg, options: options)
        for coding in [JPEGTransform.Coding.standardTables, .optimizedTables, .progressive] {
            let transform = JPEGTransform(turn: turn, coding: coding)
            let plan = try JPEGTransformPlan(transform, of: data, limits: DecodingLimits())
            let (_, taken) = try AllocatedMemory.peak { try plan.carryOut() }
            let tolerance = max(taken, plan.byteCount) / 10 + 1 << 20
            #expect(abs(plan.byteCount - taken) <= tolerance, "\(coding): counted \(plan.byteCount), took \(taken)")
        }
    }

    // MARK: Values

    @Test func `a transform goes through JSON and back, and what is missing has its default`() throws {
        let transform = JPEGTransform(
            turnsUpright: true,
            turn: .transverse,
            crop: PixelRectangle(x: 1, y: 2, width: 3, height: 4),
            isPerfect: true,
            isGray: true,
            coding: .progressive,
            metadata: .carriedOver,
            keepsPosition: true,
            keepsColorProfile: false,
            allowsTruncated: true
        )
        let coded = try JSONEncoder().encode(transform)
        #expect(try JSONDecoder().decode(JPEGTransform.self, from: coded) == transform)
        #expect(try JSONDecoder().decode(JPEGTransform.self, from: Data("{}".utf8)) == JPEGTransform())
        let text = Data(#"{"turn": "rotate90", "metadata": "none"}"#.utf8)
        #expect(
            try JSONDecoder().decode(JPEGTransform.self, from: text) == JPEGTransform(turn: .rotate90, metadata: .none)
        )
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode(JPEGTransform.self, from: Data(#"{"turn": "sideways"}"#.utf8))
        }
    }

    static func expect(_ code: CodingError.Code, _ body: () throws -> JPEGTransform.Result) {
        let error = #expect(throws: CodingError.self) { try body() }
        #expect(error?.code == code, "\(String(describing: error))")
    }
}
