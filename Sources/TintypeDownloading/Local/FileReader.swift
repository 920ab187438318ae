// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import TintypeConcurrency
import TintypeHTTP

/// Reads files on a thread of its own, which may block.
actor FileReader {
    private static let chunkSize = 1 << 20

    private nonisolated let executor = ThreadExecutor(name: "tintype-files")
    nonisolated var unownedExecutor: UnownedSerialExecutor { self.executor.asUnownedSerialExecutor() }

    deinit {
        self.executor.shutdown()
    }

    /// Ends the thread, once it has read what it was asked for.
    nonisolated func retire() async {
        if self.executor.isStarted { await self.finishReading() }
        self.executor.retire()
    }

    private func finishReading() {}

    /// Makes sure that there is a thread to read on.
    nonisolated func start(for address: ResourceAddress) throws(DownloadError) {
        do throws(ThreadError) {
            try self.executor.start()
        } catch {
            throw .threadRefused(error, at: address)
        }
    }

    /// The content of a file as a response, with what tells its versions apart as `ETag`.
    ///
    /// A file that the `conditions` describe is not read: the response has status 304 and no body. One that was changed
    /// just before is read once more: its times may have been the same before another change.
    ///
    /// - Throws: ``DownloadError``, or `CancellationError` when the task is cancelled on the way.
    func response(
        of file: FileSource,
        limit: Int,
        conditions: HeaderFields = [:],
        report: @Sendable (TransferProgress) -> Void
    ) throws -> DownloadResponse {
        let start = ContinuousClock.now
        let requestTime = Date()
        let (address, url) = (file.address, file.url)
        let (descriptor, status) = try self.open(file)
        defer { close(descriptor) }
        let (size, isSettled) = (Int(status.st_size), Self.isSettled(status, at: requestTime))
        let headers = Self.headers(of: file, status, isSettled: isSettled)
        let isKnown = Precondition.isNotModified(
            conditions,
            stored: Validators(headers),
            storedDate: nil,
            now: requestTime
        )
        guard !isKnown || !isSettled else {
            return DownloadResponse(body: Data(), url: url, status: 304, headers: headers, requestTime: requestTime)
        }
        guard size <= limit else { throw DownloadError.bodyTooLarge(limit: limit, declared: Int64(size), at: address) }
        var body = BodyBuffer(limit: limit)
        body.reserve(declared: size)
        while try self.readChunk(from: descriptor, into: &body, of: file) {
            guard body.count <= limit else {
                throw DownloadError.bodyTooLarge(limit: limit, declared: nil, at: address)
            }
            report(TransferProgress(receivedBytes: Int64(body.count), expectedBytes: Int64(size)))
            try Task.checkCancellation()
        }
        guard body.count > 0 else { throw DownloadError.emptyBody(status: file.status, headers: [:], at: address) }
        var metrics = TransferMetrics()
        metrics.bytes = Int64(body.count)
        metrics.total = .now - start
        return DownloadResponse(
            body: body.takeData(),
            status: file.status,
            headers: headers,
            url: url,
            metrics: metrics,
            requestTime: requestTime,
            responseTime: Date()
        )
    }

    private func open(_ file: FileSource) throws(DownloadError) -> (descriptor: CInt, status: stat) {
        // Without O_NONBLOCK a pipe without a writer would hold the thread for ever.
        let descriptor = file.open(O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw .fileNotOpened(file.name, code: errno, at: file.address) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG else {
            close(descriptor)
            let isDirectory = status.st_mode & S_IFMT == S_IFDIR
            let reason = isDirectory ? "it is a directory" : "it is not an ordinary file"
            throw .fileUnreadable(file.name, reason: reason, at: file.address)
        }
        return (descriptor, status)
    }

    /// Whether later changes give the file other times than it has now.
    ///
    /// No file system counts times in steps of more than two seconds.
    private static func isSettled(_ status: stat, at time: Date) -> Bool {
        time.timeIntervalSince1970 - Double(status.st_ctim.tv_sec) > 3
    }

    private static func headers(of file: FileSource, _ status: stat, isSettled: Bool) -> HeaderFields {
        // Servers hand tags on: they must not tell inodes. The time of the last change of any kind tells a
        // file that took another one's place as well.
        let (modified, changed) = (status.st_mtim, status.st_ctim)
        let times = "\(modified.tv_sec).\(modified.tv_nsec)-\(changed.tv_sec).\(changed.tv_nsec)"
        var headers: HeaderFields = ["ETag": "\"\(status.st_size)-\(times)\(isSettled ? "" : "-new")\""]
        if file.status != nil {
            let date = Date(timeIntervalSince1970: Double(modified.tv_sec))
            headers.append(HTTPDate.text(of: date), for: "Last-Modified")
        }
        return headers
    }

    /// Reads some bytes; returns false at the end of the file.
    private func readChunk(
        from descriptor: CInt,
        into body: inout BodyBuffer,
        of file: FileSource
    ) throws(DownloadError) -> Bool {
        var code: CInt = 0
        // One byte over the limit is room enough to see that a file has grown.
        let maximum = min(Self.chunkSize - 1, body.limit - body.count) + 1
        let count = body.appendInPlace(maximum: maximum) { space in
            while true {
                let count = read(descriptor, space.baseAddress, space.count)
                if count >= 0 || errno != EINTR {
                    code = errno
                    return count
                }
            }
        }
        guard let count else { throw .outOfMemory(at: file.address) }
        guard count >= 0 else {
            throw .fileUnreadable(file.name, reason: String(cString: strerror(code)), at: file.address)
        }
        return count > 0
    }
}

/// The path in a `file:` URL: bytes, as Linux names files, which need not be UTF-8.
struct FilePath: Sendable {
    /// The bytes with a zero behind them.
    private let bytes: [CChar]
    /// The path for messages; what is not UTF-8 is replaced.
    let text: String

    /// The absolute path that a URL of this machine names.
    init(_ address: ResourceAddress) throws(DownloadError) {
        var rest = address.resource
        // A query or a fragment is no part of a file's name; in a name they are escaped.
        if let end = rest.firstIndex(where: { $0 == "?" || $0 == "#" }) { rest = rest[..<end] }
        if rest.hasPrefix("//") {
            let afterSlashes = rest.dropFirst(2)
            let host = afterSlashes.prefix { $0 != "/" }
            guard host.isEmpty || host.lowercased() == "localhost" else {
                throw DownloadError(
                    code: .invalidURL,
                    message: "The file URL names the host \(host); only files of this machine can be read.",
                    url: DownloadError.url(address)
                )
            }
            rest = afterSlashes[host.endIndex...]
        }
        let bytes = PercentEncoding.decode(rest.utf8)
        guard bytes.first == UInt8(ascii: "/"), !bytes.contains(0) else {
            throw DownloadError(
                code: .invalidURL,
                message:
                    "The file URL \(DownloadError.shown(address)) has no absolute path; write file:///folder/name.",
                url: DownloadError.url(address)
            )
        }
        self.bytes = bytes.map { CChar(bitPattern: $0) } + [0]
        self.text = String(decoding: bytes, as: UTF8.self)
    }

    /// Opens the file; returns the descriptor, or -1 with `errno` set.
    func open(_ flags: CInt) -> CInt {
        self.bytes.withUnsafeBufferPointer { path in
            path.baseAddress.map { Glibc.open($0, flags) } ?? -1
        }
    }
}
