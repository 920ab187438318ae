// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Tintype

/// The result for one input of `tintype load`.
struct LoadResult: Sendable {
    let input: Input
    let outcome: Result<LoadedImage, any Error>
    /// Why the image is not cached, if that failed.
    var storeWarning: String?
}

/// An image that was loaded, as it is reported.
struct LoadedImage: Encodable, Sendable {
    let url: String
    let source: String
    let format: String?
    let width: Int
    let height: Int
    /// The bytes that were loaded, of the format of the source.
    let bytes: Int
    let milliseconds: Double
    /// The file that was written, if one was; its format and its bytes.
    var output: String?
    var outputFormat: String?
    var outputBytes: Int?
    /// The kinds of damage in what was loaded, if there is any.
    var warnings: [String]?

    /// The report for people.
    var line: String {
        let (format, size) = (self.format?.printable ?? "image", "\(self.width)x\(self.height)")
        let bytes = Readable.bytes(Int64(self.bytes))
        let end = "from \(self.source) in \(Readable.tenths(self.milliseconds)) ms"
        guard let output, let outputFormat, let outputBytes else {
            return "\(self.url.abbreviated): \(format) \(size), \(bytes), \(end)"
        }
        return "\(self.url.abbreviated): wrote \(output.abbreviated), \(outputFormat) \(size), "
            + "\(Readable.bytes(Int64(outputBytes))); \(format), \(bytes), \(end)"
    }
}

/// A file that was written.
private struct WrittenFile {
    let path: Argument
    let format: ImageFormat
    let byteCount: Int
}

/// Loads one input, shows its progress and writes its file.
struct LoadJob: Sendable {
    let loader: LoaderActor
    let options: LoadCommandOptions
    let board: ProgressBoard

    /// - Throws: Only `CancellationError`; other errors are the result.
    func run(_ input: Input, index: Int) async throws -> LoadResult {
        self.board.start(index, label: input.text)
        defer { self.board.end(index) }
        do {
            if let transform = self.options.lossless {
                return try await self.change(input, index: index, by: transform)
            }
            let clock = ContinuousClock()
            let start = clock.now
            let (response, source) = try await self.load(input, index: index)
            let time = start.duration(to: clock.now)
            var written: WrittenFile?
            if let output = self.options.output {
                written = try await self.write(response, of: input, index: index, to: output)
            }
            let loaded = LoadedImage(
                url: input.text,
                source: source.rawValue,
                format: response.metadata.formatName,
                width: response.image.width,
                height: response.image.height,
                bytes: response.metadata.byteCount ?? 0,
                milliseconds: (time / .milliseconds(1) * 1_000).rounded() / 1_000,
                output: written?.path.text,
                outputFormat: written?.format.name,
                outputBytes: written?.byteCount,
                warnings: self.warnings(of: response.damage)
            )
            return LoadResult(
                input: input,
                outcome: .success(loaded),
                storeWarning: response.storeError.map { ErrorText($0).line }
            )
        } catch let error as CancellationError {
            throw error
        } catch {
            return LoadResult(input: input, outcome: .failure(error))
        }
    }

    /// Loads the bytes of one input, changes them without decoding them, and writes them.
    private func change(_ input: Input, index: Int, by transform: JPEGTransform) async throws -> LoadResult {
        let clock = ContinuousClock()
        let start = clock.now
        let response = try await self.loader.dataResponse(for: self.request(for: input))
        let result = try await self.loader.transform(response.data, by: transform)
        let time = start.duration(to: clock.now)
        // The size as people see it, after the orientation if the image was not turned.
        let header = try? ImageDecoder(result.data, registry: CoderRegistry()).header
        let (width, height) = header?.uprightSize ?? (result.width, result.height)
        var written: WrittenFile?
        if let output = self.options.output {
            let path = self.path(index: index, format: .jpeg, output: output)
            try self.refuseInput(input, at: path)
            self.tell(result, of: input, by: transform)
            try self.write(result.data, of: input, index: index, to: path)
            written = WrittenFile(path: path, format: .jpeg, byteCount: result.data.count)
        }
        let loaded = LoadedImage(
            url: input.text,
            source: response.source.rawValue,
            format: ImageFormat.jpeg.name,
            width: width,
            height: height,
            bytes: response.data.count,
            milliseconds: (time / .milliseconds(1) * 1_000).rounded() / 1_000,
            output: written?.path.text,
            outputFormat: written?.format.name,
            outputBytes: written?.byteCount,
            warnings: self.warnings(of: result.damage)
        )
        return LoadResult(
            input: input,
            outcome: .success(loaded),
            storeWarning: response.storeError.map { ErrorText($0).line }
        )
    }

    private func warnings(of damage: ImageDamage) -> [String]? { damage.isEmpty ? nil : damage.reasons }

    /// Says where whole blocks made something else of the image than was asked for.
    private func tell(_ result: JPEGTransform.Result, of input: Input, by transform: JPEGTransform) {
        let name = input.text.abbreviated
        if result.trimmedColumns > 0 || result.trimmedRows > 0 {
            let what = "\(result.trimmedColumns) columns and \(result.trimmedRows) rows at the edge were left out"
            self.board.tell("tintype: \(name): \(what), as they are not of whole blocks")
        }
        if let crop = result.crop, crop != transform.crop {
            let what = "the crop is \(crop.width)x\(crop.height)+\(crop.x)+\(crop.y)"
            self.board.tell("tintype: \(name): \(what), as it begins at a block")
        }
    }

    private func load(_ input: Input, index: Int) async throws -> (response: ImageResponse, source: LoadSource) {
        var cached: LoadSource?
        for try await event in self.loader.events(for: self.request(for: input)) {
            switch event {
            case .progress(let progress): self.board.update(index, progress)
            case .preview: break
            case .cached(let response): cached = response.source
            case .finished(let response): return (response, Self.source(of: response, cached: cached))
            }
        }
        throw CancellationError()
    }

    /// Returns the origin of the bytes of an image.
    ///
    /// A revalidated image finally comes from memory, because the load has put the cached one there before.
    private static func source(of response: ImageResponse, cached: LoadSource?) -> LoadSource {
        guard response.source == .memory, let cached else { return response.source }
        return response.metrics.transfer.map { $0.bytes > 0 } == true ? .network : cached
    }

    private func request(for input: Input) -> ImageRequest {
        ImageRequest(
            url: input.url,
            transforms: self.options.transforms?.pipeline ?? [],
            options: self.options.loadOptions,
            cachePolicy: self.options.cachePolicy
        )
    }

    /// - Returns: The written file, unless the input is that file with the same bytes.
    private func write(
        _ response: ImageResponse,
        of input: Input,
        index: Int,
        to output: Argument
    ) async throws -> WrittenFile? {
        let loaded = response.metadata.formatName.flatMap { ImageFormat(name: $0) }
        let format = self.format(loaded: loaded, image: response.image, output: output)
        let path = self.path(index: index, format: format, output: output)
        self.tellOfUnknownName(path, as: format, of: input)
        let isStill = response.frameCount == 1 || self.options.isStill
        let isUnchanged =
            format == loaded && self.options.transforms?.pipeline.isEmpty != false && self.options.quality == nil
            && !(self.options.isProgressive && format == .jpeg)
            && isStill == (response.frameCount == 1)
        if isUnchanged, let data = response.data {
            if input.url.isFileURL, OutputFile.isSameFile(input.path, path) { return nil }
            try self.write(data, of: input, index: index, to: path)
            return WrittenFile(path: path, format: format, byteCount: data.count)
        }
        try self.refuseInput(input, at: path)
        var options = EncodeOptions(quality: self.options.quality ?? EncodeOptions().quality)
        options.isProgressive = self.options.isProgressive
        if let background = self.options.transforms?.background { options.background = background }
        if self.options.keepsMetadata, let data = response.data {
            let coders = self.options.configuration.coders
            let decoder = try ImageDecoder(data, registry: coders, limits: self.options.configuration.limits)
            options.metadata = EncodeOptions.Metadata(carryingOver: try decoder.metadata())
        }
        let data: Data
        if isStill || format == .jpeg {
            if !isStill {
                let name = input.text.abbreviated
                self.board.tell(
                    "tintype: \(name): only the first of \(response.frameCount) frames is written: JPEG has no animations"
                )
            }
            data = try await self.loader.encode(response.image, as: format, options: options)
        } else {
            let frames = try await self.loader.frames(for: self.request(for: input))
            data = try await self.loader.encode(frames, as: format, options: options)
        }
        try self.write(data, of: input, index: index, to: path)
        return WrittenFile(path: path, format: format, byteCount: data.count)
    }

    /// Refuses to write into a folder over the input: a file that is named may be meant.
    private func refuseInput(_ input: Input, at path: Argument) throws(OutputError) {
        guard self.options.writesToDirectory, input.url.isFileURL, OutputFile.isSameFile(input.path, path) else {
            return
        }
        throw OutputError(
            message: "\(path.text.abbreviated) is the input and would be overwritten; name another folder."
        )
    }

    /// Writes a file, and says what its user may not expect: a new folder, another name than the input's.
    private func write(_ data: Data, of input: Input, index: Int, to path: Argument) throws {
        if let folder = try OutputFile.write(data, to: path) {
            self.board.tell("tintype: made the folder \(folder.text.abbreviated)")
        }
        if self.options.writesToDirectory, self.options.stems[index] != input.stem {
            let (name, path) = (input.text.abbreviated, path.text.abbreviated)
            self.board.tell("tintype: \(name): written to \(path), as another input has the same name")
        }
    }

    /// Reports the format of a file whose name stands for none: the name may be mistyped.
    private func tellOfUnknownName(_ path: Argument, as format: ImageFormat, of input: Input) {
        let ending = URL(filePath: path.text).pathExtension
        guard self.options.format == nil, !ending.isEmpty, LoadCommandOptions.format(named: path) == nil else { return }
        let (name, file) = (input.text.abbreviated, path.text.abbreviated)
        self.board.tell(
            "tintype: \(name): \(file) is written as \(format.name), as no format is named \(ending.abbreviated); "
                + "choose one with --format"
        )
    }

    /// As asked for, else as the file's name says, else as loaded, else by what the pixels need.
    private func format(loaded: ImageFormat?, image: Image, output: Argument) -> ImageFormat {
        if let format = self.options.format { return format }
        if !self.options.writesToDirectory, let format = LoadCommandOptions.format(named: output) { return format }
        if let loaded, self.loader.canEncode(loaded) { return loaded }
        return image.hasAlpha ? .png : .jpeg
    }

    private func path(index: Int, format: ImageFormat, output: Argument) -> Argument {
        guard self.options.writesToDirectory else { return output }
        let separator = output.bytes.last == UInt8(ascii: "/") ? "" : "/"
        let name = "\(separator)\(self.options.stems[index]).\(format.fileExtension)"
        return Argument(bytes: output.bytes + name.utf8)
    }
}
