// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Testing
import Tintype
import TintypeTestSupport
import TintypeTestTraits

/// JPEGs that a loader changes without decoding them.
@Suite(.waiting, .timeLimit(.minutes(5))) struct LosslessTransformTests {
    private let fixture: LoaderFixture

    init() throws {
        self.fixture = try LoaderFixture()
    }

    @Test func `what is loaded is changed on a lane, and decoded by none`() async throws {
        let loader = self.fixture.makeLoader { $0.decodingMemory = 1 << 20 }
        let request = ImageRequest(url: Fixtures.url("camera.jpg"))
        let data = try await loader.data(for: request)
        let transform = JPEGTransform(turnsUpright: true, coding: .progressive, metadata: .carriedOver)
        let results = try await withThrowingTaskGroup(of: Data.self) { group in
            // The memory does not have room for all of them at once.
            for _ in 0..<8 { group.addTask { try await loader.transform(data, by: transform).data } }
            return try await group.reduce(into: Set()) { $0.insert($1) }
        }
        let result = try transform.apply(to: data)
        #expect(results == [result.data])
        #expect((result.width, result.height) == (32, 48))
        #expect(self.fixture.decodes.count == 0)
    }

    @Test func `errors are the loader's, limits too`() async throws {
        let loader = self.fixture.makeLoader { $0.limits.maximumPixels = 1_000 }
        func code(_ name: String, _ transform: JPEGTransform) async throws -> LoadError.Code? {
            let data = try Fixtures.data(name)
            return await #expect(throws: LoadError.self) { try await loader.transform(data, by: transform) }?.code
        }
        #expect(try await code("camera.jpg", JPEGTransform(turn: .rotate90)) == .tooManyPixels)
        #expect(try await code("camera.png", JPEGTransform(turn: .rotate90)) == .unsupportedFormat)
        let perfect = JPEGTransform(crop: PixelRectangle(x: 1, y: 0, width: 1, height: 1), isPerfect: true)
        let data = try Fixtures.data("camera.jpg")
        let error = await #expect(throws: LoadError.self) {
            try await self.fixture.makeLoader().transform(data, by: perfect)
        }
        #expect(error?.code.description == "notLossless" && error?.underlyingError is CodingError)
    }

    @Test func `a cancelled task changes nothing`() async throws {
        let loader = self.fixture.makeLoader()
        let data = try Fixtures.data("camera.jpg")
        let task = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return try await loader.transform(data, by: JPEGTransform(turn: .rotate90))
        }
        await #expect(throws: CancellationError.self) { try await task.value }
    }
}
