// SPDX-License-Identifier: Apache-2.0

import Foundation
import Tintype
import TintypeTestSupport

/// Loads of photographs from an ordinary origin at a fixed rate, independent of earlier loads.
struct HealthyTraffic: Sendable {
    private struct Photograph: Sendable {
        let path: String
        let pixels: Image
    }

    /// The interval between loads, which keeps a fifth of one core busy.
    private static let interval = Duration.milliseconds(20)
    private static let thumbnail = Resize.fit(width: 200, height: 200)

    private let origin: NginxOrigin
    private let photographs: [Photograph]
    private let loader: LoaderActor

    /// Makes photographs for the origin, and records the expected result of each.
    init(loader: LoaderActor) async throws {
        // A loader of its own, so that the one under attack starts cold.
        var configuration = LoaderActor.Configuration()
        configuration.disk = nil
        let maker = LoaderActor(configuration: configuration)
        let origin = try NginxOrigin()
        var photographs: [Photograph] = []
        for name in ["flower.jpg", "kodak-3.png"] {
            for side in [480, 512, 544, 576] {
                let request = ImageRequest(url: Fixtures.url(name), thumbnail: .fit(width: side, height: side))
                let path = "\(name)-\(side).jpg"
                try origin.write(try await maker.encode(try await maker.image(for: request), as: .jpeg), to: path)
                let expected = ImageRequest(url: origin.url("/\(path)"), thumbnail: Self.thumbnail)
                photographs.append(Photograph(path: path, pixels: try await maker.image(for: expected)))
            }
        }
        self.origin = origin
        self.photographs = photographs
        self.loader = loader
    }

    /// Runs until it is cancelled, and records each load under the phase at its start.
    func run(_ ledger: Ledger, phase: @escaping @Sendable () -> Phase) async {
        await withDiscardingTaskGroup { group in
            let clock = ContinuousClock()
            var due = clock.now
            var number = 0
            while !Task.isCancelled {
                try? await clock.sleep(until: due, tolerance: .zero)
                let (start, turn, current) = (due, number, phase())
                // Measure from the planned start, so that a late start counts.
                group.addTask { await self.load(turn, from: start, current, ledger) }
                number += 1
                due += Self.interval
            }
        }
    }

    private func load(_ number: Int, from start: ContinuousClock.Instant, _ phase: Phase, _ ledger: Ledger) async {
        let photograph = self.photographs[number % self.photographs.count]
        let url = self.origin.url("/\(photograph.path)?\(number)")
        do {
            let response = try await self.loader.response(for: ImageRequest(url: url, thumbnail: Self.thumbnail))
            ledger.add(HealthyLoad(response.metrics, duration: .now - start), phase)
            if !Self.isSame(response.image, photograph.pixels) {
                ledger.add(fault: "a healthy load got another image: \(url)")
            }
        } catch is CancellationError {
            // The run is over.
        } catch {
            ledger.add(fault: "a healthy load failed: \(error)")
        }
    }

    private static func isSame(_ one: Image, _ other: Image) -> Bool {
        Pixels.bytes(of: one) == Pixels.bytes(of: other)
    }
}
