import FoundationEssentials
import Tintype

/// What came of one input of `tintype load`.
struct LoadResult: Sendable {
    let input: Input
    let outcome: Result<LoadedPicture, any Error>
    /// Why the picture is not cached, where that failed.
    var warning: String?
}

/// A picture that was loaded, as it is reported.
struct LoadedPicture: Encodable, Sendable {
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

    /// The report for people.
    var line: String {
        let (format, size) = (self.format ?? "picture", "\(self.width)x\(self.height)")
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
            let clock = ContinuousClock()
            let start = clock.now
            let response = try await self.load(input, index: index)
            let time = start.duration(to: clock.now)
            var written: WrittenFile?
            if let output = self.options.output {
                written = try await self.write(response, of: input, index: index, to: output)
            }
            let loaded = LoadedPicture(
                url: input.text,
                source: response.source.rawValue,
                format: response.metadata.formatName,
                width: response.image.width,
                height: response.image.height,
                bytes: response.metadata.byteCount ?? 0,
                milliseconds: (time / .milliseconds(1) * 1_000).rounded() / 1_000,
                output: written?.path.text,
                outputFormat: written?.format.name,
                outputBytes: written?.byteCount
            )
            return LoadResult(
                input: input,
                outcome: .success(loaded),
                warning: response.storeError.map { ErrorText($0).line }
            )
        } catch let error as CancellationError {
            throw error
        } catch {
            return LoadResult(input: input, outcome: .failure(error))
        }
    }

    private func load(_ input: Input, index: Int) async throws -> ImageResponse {
        let request = ImageRequest(
            url: input.url,
            thumbnail: self.options.resize,
            options: self.options.loadOptions,
            cachePolicy: self.options.cachePolicy
        )
        for try await event in self.loader.events(for: request) {
            switch event {
            case .progress(let progress): self.board.update(index, progress)
            case .preview, .cached: break
            case .finished(let response): return response
            }
        }
        throw CancellationError()
    }

    /// - Returns: What was written, unless the input is that file and has those bytes.
    private func write(
        _ response: ImageResponse,
        of input: Input,
        index: Int,
        to output: Argument
    ) async throws -> WrittenFile? {
        let loaded = response.metadata.formatName.flatMap { ImageFormat(name: $0) }
        let format = self.format(loaded: loaded, image: response.image, output: output)
        let path = self.path(index: index, format: format, output: output)
        let isUnchanged = format == loaded && self.options.resize == nil && self.options.quality == nil
        if isUnchanged, let data = response.data {
            if input.url.isFileURL, OutputFile.isSameFile(input.path, path) { return nil }
            try self.write(data, of: input, index: index, to: path)
            return WrittenFile(path: path, format: format, byteCount: data.count)
        }
        if self.options.writesToDirectory, input.url.isFileURL, OutputFile.isSameFile(input.path, path) {
            throw OutputError(
                message: "\(path.text.abbreviated) is the input and would be overwritten; name another folder."
            )
        }
        var options = EncodeOptions(quality: self.options.quality ?? EncodeOptions().quality)
        if self.options.keepsMetadata, let data = response.data {
            let coders = self.options.configuration.coders
            let decoder = try ImageDecoder(data, registry: coders, limits: self.options.configuration.limits)
            options.metadata = EncodeOptions.Metadata(carryingOver: try decoder.metadata())
        }
        let data = try await self.loader.encode(response.image, as: format, options: options)
        try self.write(data, of: input, index: index, to: path)
        return WrittenFile(path: path, format: format, byteCount: data.count)
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
