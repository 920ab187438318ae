// SPDX-License-Identifier: Apache-2.0

import TintypeConcurrency

/// A list could not be read.
struct ListError: Error {
    let message: String
}

/// Reads the list of a prefetch, line by line.
///
/// The list may be endless, and standard input may be a person who types. So the reader waits on a thread of its own,
/// reads ahead only what is there, and keeps a limited part of the list.
actor ListReader {
    /// The longest line: a file that is not a list may have no line ends.
    private static let maximumLineByteCount = 1 << 20
    /// The memory for lines that are read ahead.
    private static let maximumByteCount = 16 << 20
    /// The byte order mark that some programs write before text in UTF-8.
    private static let byteOrderMark: [UInt8] = [0xEF, 0xBB, 0xBF]

    private nonisolated let executor = ThreadExecutor(name: "tintype-list")
    nonisolated var unownedExecutor: UnownedSerialExecutor { self.executor.asUnownedSerialExecutor() }

    private let path: Argument
    private var file: InputFile?
    /// The lines that were read ahead, the last one first.
    private var lines: [Argument] = []
    private var byteCount = 0
    /// The beginning of the line whose end has not come.
    private var lastLine: [UInt8] = []
    private var isAtStart = true
    private var hasEnded = false
    private var returnedCount = 0

    /// Makes a reader of a file, or of standard input if `path` is `-`.
    ///
    /// - Throws: `ThreadError` if the system refuses the thread.
    init(_ path: Argument) throws(ThreadError) {
        self.path = path
        try self.executor.start()
    }

    deinit {
        self.executor.shutdown()
    }

    /// A line of the list.
    struct Line: Sendable {
        let text: Argument
        /// The lines of the list; `nil` while its end is not known.
        let count: Int?
    }

    /// Returns the next line that is neither empty nor a comment; `nil` at the end.
    ///
    /// - Throws: ``ListError``; `CancellationError` when the task is cancelled.
    func next() throws -> Line? {
        do {
            try self.readAhead()
        } catch let error as SystemError {
            try Task.checkCancellation()
            throw ListError(message: "The list \(self.name) cannot be read (\(error)).")
        }
        guard let line = self.lines.popLast() else { return nil }
        self.byteCount -= Self.byteCount(of: line)
        self.returnedCount += 1
        return Line(text: line, count: self.hasEnded ? self.returnedCount + self.lines.count : nil)
    }

    /// Waits for a line, and takes up what else is there.
    private func readAhead() throws {
        guard !self.hasEnded, self.byteCount < Self.maximumByteCount / 2 else { return }
        if self.file == nil { self.file = try InputFile(self.path) }
        var new: [Argument] = []
        while !self.hasEnded, self.byteCount < Self.maximumByteCount {
            let isWaiting = self.lines.isEmpty && new.isEmpty
            guard let piece = isWaiting ? try self.file?.read() : try self.file?.readAvailable(within: 0) else { break }
            let added = try self.split(piece)
            self.byteCount += added.reduce(0) { $0 + Self.byteCount(of: $1) }
            new += added
        }
        if !new.isEmpty { self.lines = new.reversed() + self.lines }
    }

    /// The memory of a line, with that of an array and its place in another.
    private static func byteCount(of line: Argument) -> Int { line.bytes.count + 64 }

    /// Returns the lines that end with `piece`, or with the list if it is empty.
    private func split(_ piece: [UInt8]) throws -> [Argument] {
        guard !piece.contains(0) else {
            throw ListError(message: "The list \(self.name) is not text in UTF-8; give it one URL a line.")
        }
        self.hasEnded = piece.isEmpty
        let whole = piece.lastIndex { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }
        var text = self.lastLine
        if let whole { text += piece[...whole] }
        self.lastLine = self.hasEnded ? [] : (whole == nil ? text : []) + piece[(whole.map { $0 + 1 } ?? 0)...]
        guard self.lastLine.count <= Self.maximumLineByteCount else {
            throw ListError(message: "The list \(self.name) has a line of over a megabyte; give it one URL a line.")
        }
        guard whole != nil || self.hasEnded else { return [] }
        var lines = text[...]
        if self.isAtStart, lines.starts(with: Self.byteOrderMark) { lines = lines.dropFirst(Self.byteOrderMark.count) }
        self.isAtStart = false
        return lines.split { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }
            .flatMap { Self.lines(in: $0) }
            .filter { !$0.bytes.isEmpty && $0.bytes.first != UInt8(ascii: "#") }
    }

    /// Text may end its lines in other ways; a path that is not text has only one.
    private static func lines(in line: ArraySlice<UInt8>) -> [Argument] {
        guard let text = String(validating: line, as: UTF8.self) else {
            return [Argument(bytes: self.trimmed(line) { $0 == UInt8(ascii: "\t") || $0 == UInt8(ascii: " ") })]
        }
        return text.split(whereSeparator: \.isNewline).map { Argument(String(self.trimmed($0, \.isWhitespace))) }
    }

    /// Blanks at both ends are no part of an address.
    private static func trimmed<Line: BidirectionalCollection>(
        _ line: Line,
        _ isBlank: (Line.Element) -> Bool
    ) -> Line.SubSequence {
        guard let start = line.firstIndex(where: { !isBlank($0) }), let end = line.lastIndex(where: { !isBlank($0) })
        else { return line[line.endIndex...] }
        return line[start...end]
    }

    /// The list's name in messages.
    nonisolated var name: String { self.path.text == "-" ? "on standard input" : self.path.text.abbreviated }
}
