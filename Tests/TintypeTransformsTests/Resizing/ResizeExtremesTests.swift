// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeImage
import TintypeTestSupport
import TintypeTestTraits
import TintypeTransforms

@Suite(.computing, .timeLimit(.minutes(10))) struct ResizeExtremesTests {
    @Test(
        arguments: [(1, 100), (100, 1), (1, 1), (2, 2), (3, 500), (500, 3), (20_000, 1), (1, 20_000)],
        [PixelFormat.gray8, .rgb8, .rgba8]
    )
    func `thin images can be resized`(size: (width: Int, height: Int), format: PixelFormat) throws {
        let image = Image(pixels: try .make(format, width: size.width, height: size.height) { _, _, _ in 200 })
        for (width, height) in [(1, 1), (10, 1), (1, 10), (5, 7), (64, 64)] {
            let resize = Resize(width: width, height: height, mode: .stretch, upscales: true)
            let pixels = try image.resized(resize).pixels
            #expect((pixels.width, pixels.height) == (width, height))
            #expect(pixels.largestDifference { _, _, _ in 200 } <= 1)
        }
    }

    @Test(arguments: Resize.Filter.allCases) func `extreme ratios can be resized`(filter: Resize.Filter) throws {
        let image = Image(pixels: try .make(.rgb8, width: 3_000, height: 2) { _, _, _ in 99 })
        for (width, height) in [(1, 300), (2, 2), (3_000, 1), (10, 1_000)] {
            let resize = Resize(width: width, height: height, mode: .stretch, upscales: true, filter: filter)
            let pixels = try image.resized(resize).pixels
            #expect((pixels.width, pixels.height) == (width, height))
            #expect(pixels.largestDifference { _, _, _ in 99 } == 0)
        }
    }

    @Test(arguments: Resize.Mode.allCases) func `every small size works`(mode: Resize.Mode) throws {
        let image = Image(pixels: try .make(.rgba8, width: 9, height: 7) { _, _, channel in channel == 3 ? 255 : 60 })
        for width in 1...12 {
            for height in 1...12 {
                let resize = Resize(width: width, height: height, mode: mode, upscales: true)
                let pixels = try image.resized(resize).pixels
                #expect(pixels.largestDifference { $2 == 3 ? 255 : 60 } == 0, "\(width)x\(height)")
            }
        }
    }

    @Test func `a target too large for memory is an error`() throws {
        let image = Image(pixels: try .noise(.gray8, width: 2, height: 2))
        #expect(throws: (any Error).self) {
            try image.resized(.stretch(width: Int(Int32.max) + 1, height: 1, upscales: true))
        }
    }

    @Test func `a cancelled task stops`() async throws {
        let image = Image(pixels: try .noise(.rgb8, width: 300, height: 300))
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try image.resized(.fit(width: 100, height: 100))
        }
        await #expect(throws: CancellationError.self) { try await task.value }
    }

    @Test func `many threads resize the same image`() async throws {
        let image = Image(pixels: try .noise(.rgba8, width: 120, height: 90))
        let expected = try image.resized(.fit(width: 50, height: 50)).pixels.samples
        try await withThrowingTaskGroup(of: Bool.self) { group in
            for _ in 0..<32 {
                group.addTask { try image.resized(.fit(width: 50, height: 50)).pixels.samples == expected }
            }
            for try await isSame in group { #expect(isSame) }
        }
    }
}
