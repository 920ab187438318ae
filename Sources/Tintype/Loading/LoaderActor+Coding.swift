// SPDX-License-Identifier: Apache-2.0

public import FoundationEssentials
public import TintypeCoding
public import TintypeImage
public import TintypeRendering
import TintypeRequests

extension LoaderActor {
    /// Returns the header of the image, without decoding pixels.
    ///
    /// Does not try alternatives.
    ///
    /// ```swift
    /// let header = try await loader.header(for: request)
    /// print(header.format, header.uprightSize)
    /// ```
    ///
    /// - Throws: `LoadError`; `CancellationError` when the task is cancelled.
    public nonisolated func header(for request: ImageRequest) async throws -> ImageHeader {
        let request = try await self.admitted(request)
        return try await self.header(of: self.dataResponse(forAdmitted: request).data, for: request)
    }

    /// Returns the header of the image that `request` has loaded, on a lane.
    package nonisolated func header(of data: Data, for request: ImageRequest) async throws -> ImageHeader {
        do {
            return try await self.services.decoding.header(of: data, for: request.renderingRequest)
        } catch {
            throw LoadError.wrapping(error)
        }
    }

    /// Returns the metadata of the image: how and where it was taken, and its raw blocks, without decoding pixels.
    ///
    /// The metadata comes from the encoded bytes, which the call loads if they are not on disk, because images in
    /// memory have none. If you have the bytes, as with ``LoadOptions/keepData``, an ``ImageDecoder`` returns the same.
    /// The result lacks damaged parts.
    ///
    /// ```swift
    /// let metadata = try await loader.metadata(for: request)
    /// print(metadata.cameraModel ?? "", metadata.dateTaken?.description ?? "")
    /// ```
    ///
    /// - Throws: `LoadError`; `CancellationError` when the task is cancelled.
    public nonisolated func metadata(for request: ImageRequest) async throws -> ImageMetadata {
        let request = try await self.admitted(request)
        let data = try await self.dataResponse(forAdmitted: request).data
        do {
            return try await self.services.decoding.metadata(of: data, for: request.renderingRequest)
        } catch {
            throw LoadError.wrapping(error)
        }
    }

    /// Returns the frames of the image that `request` names, decoded on demand, each at the requested size.
    ///
    /// A still image is a source of one frame. All readers of the frames of one request share them. The call does not
    /// try alternatives: ``ImageResponse/alternative`` says which request has frames.
    ///
    /// ```swift
    /// let frames = try await loader.frames(for: request)
    /// for index in 0..<frames.frameCount { show(try await frames.frame(at: index)) }
    /// ```
    ///
    /// - Throws: `LoadError`; `CancellationError` when the task is cancelled.
    public nonisolated func frames(for request: ImageRequest) async throws -> FrameSource {
        let request = try await self.admitted(request)
        let response = try await self.dataResponse(forAdmitted: request)
        do {
            return try await self.frames(of: response.data, body: response.metadata.bodyDigest, for: request)
        } catch {
            throw LoadError.wrapping(error)
        }
    }

    private nonisolated func frames(of data: Data, body: UInt64?, for request: ImageRequest) async throws -> FrameSource
    {
        let name = body.map { RequestKeys.frames(of: request, body: $0) }
        return try await self.services.decoding.frames(
            of: data,
            named: name,
            for: request.renderingRequest,
            pool: self.framePool
        )
    }

    /// Returns the response as its request wants animations: as a still image, or with all frames decoded.
    nonisolated func withFrames(_ response: ImageResponse, for request: ImageRequest) async throws -> ImageResponse {
        if request.options.contains(.firstFrameOnly) { return response.still }
        if request.options.contains(.preloadAllFrames) { try await self.preloadFrames(of: response, for: request) }
        return response
    }

    /// Decodes the frames of an animation, unless they are in the pool.
    ///
    /// - Throws: `CancellationError` only. A damaged frame throws when it is requested.
    private nonisolated func preloadFrames(of response: ImageResponse, for request: ImageRequest) async throws {
        guard response.isAnimated else { return }
        let body = response.metadata.bodyDigest
        if let body {
            let name = RequestKeys.frames(of: request, body: body)
            guard !self.framePool.holds(response.frameCount, named: name) else { return }
        }
        do {
            let data: Data
            if let known = response.data {
                data = known
            } else {
                data = try await self.dataResponse(forAdmitted: request).data
            }
            try await self.frames(of: data, body: body, for: request).preload()
        } catch let error as CancellationError {
            throw error
        } catch {}
    }

    /// Encodes an image on a lane.
    ///
    /// The call first scales the image down if a side is longer than `maximumSide`. Like a decode, the encode waits
    /// until there is room for its memory: see ``Configuration/decodingMemory``.
    ///
    /// ```swift
    /// let jpeg = try await loader.encode(image, as: .jpeg, options: EncodeOptions(quality: 75), maximumSide: 800)
    /// ```
    ///
    /// - Throws: `LoadError`; `CancellationError` when the task is cancelled.
    public nonisolated func encode(
        _ image: Image,
        as format: ImageFormat? = nil,
        options: EncodeOptions = EncodeOptions(),
        maximumSide: Int? = nil
    ) async throws -> Data {
        try await self.encoded { try await $0.encode(image, as: format, options: options, maximumSide: maximumSide) }
    }

    /// Decodes all frames of an animation and encodes them, on lanes.
    ///
    /// The loader holds all frames at once and counts their memory: see ``Configuration/decodingMemory``.
    ///
    /// ```swift
    /// let webp = try await loader.encode(loader.frames(for: request), as: .webp)
    /// ```
    ///
    /// - Throws: `LoadError`; `CancellationError` when the task is cancelled.
    public nonisolated func encode(
        _ frames: FrameSource,
        as format: ImageFormat,
        options: EncodeOptions = EncodeOptions()
    ) async throws -> Data {
        try await self.encoded { try await $0.encode(frames, as: format, options: options) }
    }

    /// Encodes an animation on a lane.
    ///
    /// The caller holds the frames, and the loader counts the other memory of the encode.
    ///
    /// ```swift
    /// let frames = [image, logo].map { AnimationContent.Frame(image: $0, milliseconds: 500) }
    /// let gif = try await loader.encode(AnimationContent(frames: frames), as: .gif)
    /// ```
    ///
    /// - Throws: `LoadError`; `CancellationError` when the task is cancelled.
    public nonisolated func encode(
        _ animation: AnimationContent,
        as format: ImageFormat,
        options: EncodeOptions = EncodeOptions()
    ) async throws -> Data {
        try await self.encoded { try await $0.encode(animation, as: format, options: options) }
    }

    /// Runs an encode whose caller returns at once when it is cancelled.
    private nonisolated func encoded(
        by encode: @escaping @Sendable (EncodePipeline) async throws -> Data
    ) async throws -> Data {
        do {
            let encoding = self.services.encoding
            return try await encoding.leavingOnCancellation { try await encode(encoding) }
        } catch {
            throw LoadError.wrapping(error)
        }
    }

    /// Returns whether a registered coder writes `format`.
    ///
    /// ```swift
    /// let writesAVIF = loader.canEncode(.avif)  // false without a coder of your own
    /// ```
    public nonisolated func canEncode(_ format: ImageFormat) -> Bool {
        (try? self.services.decoding.registry.coder(encoding: format)) != nil
    }
}
