// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import TintypeCoding
import TintypeRendering
import TintypeRequests

extension LoaderActor {
    /// Changes a JPEG without loss, on a lane: turns, crops, strips or encodes it again without decoding it.
    ///
    /// The limits are the loader's, and the memory counts as that of decodes does.
    ///
    /// ```swift
    /// let result = try await loader.transform(data, by: JPEGTransform(turnsUpright: true))
    /// print(result.width, result.height, result.data.count)
    /// ```
    ///
    /// - Parameters:
    ///   - data: The encoded bytes, such as ``data(for:)`` returns.
    ///   - transform: The change.
    /// - Returns: The changed file, and what was done to it.
    /// - Throws: `LoadError`; `CancellationError` when the task is cancelled.
    public nonisolated func transform(_ data: Data, by transform: JPEGTransform) async throws -> JPEGTransform.Result {
        let decoding = self.services.decoding
        do {
            return try await decoding.lanes.run(
                planning: { try JPEGTransformPlan(transform, of: data, limits: decoding.limits) },
                byteCount: { $0.byteCount },
                { try $0.carryOut() }
            )
        } catch {
            throw LoadError.wrapping(error)
        }
    }
}
