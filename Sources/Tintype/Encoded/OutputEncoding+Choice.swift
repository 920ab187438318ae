// SPDX-License-Identifier: Apache-2.0

import TintypeImage
import TintypeRendering

extension OutputEncoding {
    /// Returns the format and the options for an image, as ``automatic(among:frameLimit:)`` describes.
    ///
    /// - Parameters:
    ///   - image: The image, or the first frame of an animation.
    ///   - isAnimated: Whether several frames are to be encoded if the format holds them.
    ///   - pipeline: The coders, and the lanes on which pixels are read if they decide.
    /// - Returns: The choice.
    /// - Throws: `CancellationError`.
    func choice(for image: Image, isAnimated: Bool, by pipeline: EncodePipeline) async throws -> Choice {
        let choices = self.choices
        guard choices.count > 1 else { return choices[0] }
        if let own = choices.first(where: { $0.format == image.sourceFormat }) { return own }
        let animated = isAnimated ? choices.filter { pipeline.writesAnimations(as: $0.format) } : []
        if let choice = animated.first(where: { $0.format != .png }) ?? animated.first { return choice }
        // All other formats that are written hold transparency.
        guard choices[0].format == .jpeg, try await pipeline.hasTransparency(image) else { return choices[0] }
        return choices.first { $0.format != .jpeg } ?? choices[0]
    }
}
