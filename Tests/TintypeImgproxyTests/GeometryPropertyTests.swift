// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeImage
import TintypeTestSupport

@testable import TintypeImgproxy

/// The properties of the geometry for any options and any source.
@Suite struct GeometryPropertyTests {
    private func side(_ generator: inout SeededGenerator, upTo limit: Int) -> Int {
        switch Int.random(in: 0..<6, using: &generator) {
        case 0: 0
        case 1: 1
        case 2: limit
        case 3: Int.random(in: 0...limit, using: &generator)
        default: Int.random(in: 0...min(limit, 500), using: &generator)
        }
    }

    private func offset(_ generator: inout SeededGenerator) -> Double {
        [0, 0.3, -0.7, 1, -20, 5_000, -1_000_000].randomElement(using: &generator) ?? 0
    }

    private func gravity(_ kinds: Set<GravityOption.Kind>, _ generator: inout SeededGenerator) -> GravityOption {
        let kind = kinds.sorted { $0.rawValue < $1.rawValue }.randomElement(using: &generator) ?? .center
        guard kind != .focusPoint else {
            return GravityOption(
                kind,
                x: .random(in: 0...1, using: &generator),
                y: .random(in: 0...1, using: &generator)
            )
        }
        return GravityOption(kind, x: self.offset(&generator), y: self.offset(&generator))
    }

    private func options(_ generator: inout SeededGenerator) -> ProcessingOptions {
        var options = ProcessingOptions()
        options.limits.resultSide = [0, 1, 2, 50, 1_000, 8_192, 65_535].randomElement(using: &generator) ?? 0
        options.resizingType = ResizingType.allCases.randomElement(using: &generator) ?? .fit
        let limit = SecurityLimits.largestSide
        options.width = self.side(&generator, upTo: limit)
        options.height = self.side(&generator, upTo: limit)
        if Bool.random(using: &generator) { options.minimumWidth = self.side(&generator, upTo: limit) }
        if Bool.random(using: &generator) { options.minimumHeight = self.side(&generator, upTo: limit) }
        options.horizontalZoom = [1, 1, 1, 0.3, 0.000_001, 100].randomElement(using: &generator) ?? 1
        options.verticalZoom = [1, 1, 1, 0.7, 0.000_001, 100].randomElement(using: &generator) ?? 1
        options.pixelRatio = [1, 1, 2, 0.5, 0.000_001, 8].randomElement(using: &generator) ?? 1
        options.enlarges = .random(using: &generator)
        options.extend.isOn = .random(using: &generator)
        options.extend.gravity = self.gravity(GravityOption.extendKinds, &generator)
        options.extendAspectRatio.isOn = .random(using: &generator)
        options.extendAspectRatio.gravity = self.gravity(GravityOption.extendKinds, &generator)
        options.gravity = self.gravity(GravityOption.cropKinds, &generator)
        if Bool.random(using: &generator) {
            options.crop.width = [0, 0.2, 1, 70, 1_000_000].randomElement(using: &generator) ?? 0
            options.crop.height = [0, 0.9, 1, 33, 1_000_000].randomElement(using: &generator) ?? 0
            options.crop.gravity = self.gravity(GravityOption.cropKinds, &generator)
        }
        if Bool.random(using: &generator) {
            options.padding.top = self.side(&generator, upTo: limit)
            options.padding.left = self.side(&generator, upTo: limit)
            options.padding.right = self.side(&generator, upTo: 9)
        }
        options.rotation = [0, 90, 180, 270].randomElement(using: &generator) ?? 0
        var watermark = WatermarkOption(opacity: 1)
        watermark.position = self.gravity(GravityOption.watermarkKinds, &generator)
        watermark.scale = [0, 0.1, 10].randomElement(using: &generator) ?? 0
        options.watermark = watermark
        return options
    }

    private func isInside(_ box: PixelRectangle, _ size: PixelSize) -> Bool {
        box.x >= 0 && box.y >= 0 && box.width >= 1 && box.height >= 1 && box.x + box.width <= size.width
            && box.y + box.height <= size.height
    }

    @Test func `every box lies in its image, and no result is over the limit`() throws {
        var generator = SeededGenerator(seed: 24)
        for _ in 0..<100_000 {
            let options = self.options(&generator)
            let width = self.side(&generator, upTo: SecurityLimits.largestSide)
            let height = self.side(&generator, upTo: SecurityLimits.largestSide)
            let geometry = ResultGeometry(options, sourceWidth: width, sourceHeight: height)
            let limit = options.limits.effectiveResultSide
            let watermark = try #require(options.watermark)
            let mark = WatermarkGeometry(watermark, on: geometry, width: height, height: width).box
            let holds =
                self.isInside(geometry.crop, geometry.source) && self.isInside(geometry.resultCrop, geometry.scaled)
                && self.isInside(geometry.position, geometry.canvas)
                && geometry.position.size == geometry.resultCrop.size
                && 1...limit ~= geometry.size.width && 1...limit ~= geometry.size.height
                && geometry.pixelRatio > 0 && geometry.pixelRatio.isFinite
                && mark.width >= 1 && mark.height >= 1 && mark.x < geometry.size.width && mark.y < geometry.size.height
                && mark.x + mark.width > 0 && mark.y + mark.height > 0
            // One expectation for each set would take longer than the geometry.
            if !holds { Issue.record("\(options.canonicalText) on \(width) x \(height): \(geometry), \(mark)") }
        }
    }
}
