// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeServer

@Suite(.waiting, .timeLimit(.minutes(5))) struct AccessLogTests {
    /// A line as a program reads it.
    private struct Line: Decodable {
        let level: String
        let message: String?
        let path: String?
        let number: String?
        let droppedLines: Int?

        enum CodingKeys: String, CodingKey {
            case level, message, path, number
            case droppedLines = "dropped_lines"
        }
    }

    /// The reading end of a pipe, and the bytes that were read.
    private struct Reader {
        let descriptor: CInt
        private var bytes: [UInt8] = []

        init(_ descriptor: CInt) {
            self.descriptor = descriptor
        }

        /// Reads the bytes that the pipe has, without waiting for more.
        mutating func read() {
            var buffer = [UInt8](repeating: 0, count: 65_536)
            while true {
                let count = Glibc.read(self.descriptor, &buffer, buffer.count)
                guard count > 0 else { return }
                self.bytes.append(contentsOf: buffer[..<count])
            }
        }

        func lines() throws -> [Line] { try AccessLogTests.lines(self.bytes) }
    }

    /// Returns the lines that are complete.
    private static func lines(_ bytes: some BidirectionalCollection<UInt8>) throws -> [Line] {
        guard let end = bytes.lastIndex(of: UInt8(ascii: "\n")) else { return [] }
        let lines = bytes[..<end].split(separator: UInt8(ascii: "\n"))
        return try lines.map { try JSONDecoder().decode(Line.self, from: Data($0)) }
    }

    private let folder: TemporaryDirectory

    init() throws {
        self.folder = try TemporaryDirectory()
    }

    private func openFile() throws -> CInt {
        let descriptor = open(self.folder.path(of: "log"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        try #require(descriptor >= 0)
        return descriptor
    }

    private func fileLines() throws -> [Line] {
        try Self.lines(Data(contentsOf: self.folder.url(of: "log")))
    }

    /// Opens a pipe whose reading end does not block.
    private func openPipe(blocksWriter: Bool = true) throws -> (writer: CInt, reader: CInt) {
        var ends: [CInt] = [0, 0]
        // A process that another test starts must not keep the pipe open.
        try #require(pipe(&ends) == 0)
        for end in ends { try #require(fcntl(end, F_SETFD, FD_CLOEXEC) == 0) }
        try #require(fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0)
        if !blocksWriter { try #require(fcntl(ends[1], F_SETFL, O_NONBLOCK) == 0) }
        return (ends[1], ends[0])
    }

    @Test func `lines are written in their order`() async throws {
        let descriptor = try self.openFile()
        defer { close(descriptor) }
        let log = AccessLog(.json, to: descriptor)
        log.log(.info, "The server listens.", ["number": "0"])
        for number in 1...100 { log.append(try ExchangeSamples.record("GET /\(number)")) }
        log.flush()
        log.log(.info, "The server ends.", ["number": "101"])
        await log.finish(within: .seconds(60))
        let lines = try self.fileLines()
        #expect(lines.map { $0.path ?? "/\($0.number ?? "")" } == (0...101).map { "/\($0)" })
        #expect(log.droppedLineCount == 0)
    }

    @Test func `lines of a turn wait for its end, unless they are many`() async throws {
        let descriptor = try self.openFile()
        defer { close(descriptor) }
        let log = AccessLog(.json, to: descriptor)
        log.append(try ExchangeSamples.record())
        #expect(try self.fileLines().isEmpty)
        let exchange = try ExchangeSamples.record("GET /\(String(repeating: "a", count: 1_000))")
        for _ in 0..<100 { log.append(exchange) }
        try await until { try !self.fileLines().isEmpty }
        await log.finish(within: .seconds(60))
        #expect(try self.fileLines().count == 101)
    }

    @Test func `lines of several threads stay whole`() async throws {
        let descriptor = try self.openFile()
        defer { close(descriptor) }
        let log = AccessLog(.json, to: descriptor)
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<8 {
                group.addTask { for number in 0..<500 { log.log(.info, "a", ["number": "\(task * 500 + number)"]) } }
            }
        }
        await log.finish(within: .seconds(60))
        let numbers = try self.fileLines().compactMap { $0.number.flatMap { Int($0) } }
        #expect(numbers.sorted() == Array(0..<4_000))
    }

    @Test(arguments: [true, false])
    func `a full pipe stops nobody, and a line tells how many lines were dropped`(blocksWriter: Bool) async throws {
        let (writer, descriptor) = try self.openPipe(blocksWriter: blocksWriter)
        defer {
            close(writer)
            close(descriptor)
        }
        var reader = Reader(descriptor)
        let log = AccessLog(.json, to: writer, capacity: 100_000)
        let exchange = try ExchangeSamples.record()
        // Much more than the pipe and the buffer take. Nobody reads.
        for _ in 0..<20_000 {
            log.append(exchange)
            log.flush()
        }
        #expect(log.droppedLineCount > 0)

        var lines: [Line] = []
        try await until {
            reader.read()
            lines = try reader.lines()
            return lines.reduce(0) { $0 + ($1.droppedLines ?? 1) } >= 20_000
        }
        let notices = lines.filter { $0.droppedLines != nil }
        #expect(lines.count - notices.count + log.droppedLineCount == 20_000)
        #expect(notices.reduce(0) { $0 + ($1.droppedLines ?? 0) } == log.droppedLineCount)
        #expect(notices.allSatisfy { $0.level == "warning" })

        // The log goes on afterwards.
        log.log(.info, "last")
        try await until {
            reader.read()
            return try reader.lines().last?.message == "last"
        }
        await log.finish(within: .seconds(60))
    }

    @Test func `the end does not wait for a stuck reader, and a reader that is gone ends no process`() async throws {
        let (writer, reader) = try self.openPipe()
        defer { close(writer) }
        let log = AccessLog(.json, to: writer)
        let exchange = try ExchangeSamples.record()
        for _ in 0..<1_000 { log.append(exchange) }
        // It returns, although the pipe takes only a part.
        await log.finish(within: .milliseconds(10))
        close(reader)
        await until { log.droppedLineCount > 0 }
        await log.finish(within: .seconds(60))
    }
}
