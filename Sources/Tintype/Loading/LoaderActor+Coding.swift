public import FoundationEssentials
public import TintypeCoding
public import TintypeImage
public import TintypeRendering

extension LoaderActor {
    /// What the start of the file says about its image; no pixels are decoded.
    ///
    /// Alternatives are not tried.
    ///
    /// - Throws: `LoadError`; `CancellationError` when the task is cancelled.
    public nonisolated func header(for request: ImageRequest) async throws -> ImageHeader {
        let request = try await self.admitted(request)
        let data = try await self.dataResponse(forAdmitted: request).data
        do {
            return try await self.services.decoding.header(of: data, for: request.rendering)
        } catch {
            throw LoadError.wrapping(error)
        }
    }

    /// How and where the image was taken, and its blocks of metadata; no pixels are decoded.
    ///
    /// Read from the encoded bytes, which are loaded where they are not on disk: images in memory have none. Where the
    /// bytes are at hand, as with ``LoadOptions/keepData``, an ``ImageDecoder`` gives the same.
    ///
    /// - Throws: `LoadError`; `CancellationError` when the task is cancelled. What is broken of the metadata is left out.
    public nonisolated func metadata(for request: ImageRequest) async throws -> ImageMetadata {
        let request = try await self.admitted(request)
        let data = try await self.dataResponse(forAdmitted: request).data
        do {
            return try await self.services.decoding.metadata(of: data, for: request.rendering)
        } catch {
            throw LoadError.wrapping(error)
        }
    }

    /// The frames of the image that `request` names, decoded when they are asked for, each brought to the size that the
    /// request asks for.
    ///
    /// A still image is a source of one frame. All that read the frames of one request share them. Alternatives are not
    /// tried: ``ImageResponse/alternative`` says whose frames to ask for.
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
            for: request.rendering,
            pool: self.framePool
        )
    }

    /// Returns the response as its request asks for an animation: as a still image, or with all of its frames decoded.
    nonisolated func withFrames(_ response: ImageResponse, for request: ImageRequest) async throws -> ImageResponse {
        if request.options.contains(.firstFrameOnly) { return response.still }
        if request.options.contains(.preloadAllFrames) { try await self.preloadFrames(of: response, for: request) }
        return response
    }

    /// Decodes the frames of the animation that an image stands for, unless they are there.
    ///
    /// - Throws: `CancellationError` only: what is wrong with a frame is found when that is asked for.
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
    /// A longer side than `maximumSide` is brought to it first. The encode waits until there is room for what it takes, as
    /// decodes do: see ``Configuration/decodingMemory``.
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
    /// All frames are held at once, and count as memory of the loader: see ``Configuration/decodingMemory``.
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
    /// The caller holds the frames, and the loader counts what the encode takes besides.
    ///
    /// - Throws: `LoadError`; `CancellationError` when the task is cancelled.
    public nonisolated func encode(
        _ animation: AnimationContent,
        as format: ImageFormat,
        options: EncodeOptions = EncodeOptions()
    ) async throws -> Data {
        try await self.encoded { try await $0.encode(animation, as: format, options: options) }
    }

    /// Runs an encode that its caller can leave at once.
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

    /// Whether a coder is registered that writes `format`.
    public nonisolated func canEncode(_ format: ImageFormat) -> Bool {
        (try? self.services.decoding.registry.coder(encoding: format)) != nil
    }
}
