// SPDX-License-Identifier: Apache-2.0

import FoundationEssentials
import Glibc
import Testing
import Tintype
import TintypeTestSupport
import TintypeTestTraits

@testable import TintypeCommand

/// The output of `tintype show` on terminals of all kinds, and in files.
@Suite(.waiting, .timeLimit(.minutes(5))) struct ShowTests {
    let fixture: CommandFixture

    init() throws {
        self.fixture = try CommandFixture()
    }

    private static let kittyAnswers = [("\u{1B}[c", "\u{1B}_Gi=31;OK\u{1B}\\\u{1B}[6;20;10t\u{1B}[?62c")]
    private static let sixelAnswers = [("\u{1B}[c", "\u{1B}[6;20;10t\u{1B}[?62;4;22c")]
    private static let plainAnswers = [("\u{1B}[c", "\u{1B}[?6c")]
    private static let trueColor = "export COLORTERM=truecolor"

    private func start(
        _ arguments: [String],
        on terminal: PseudoTerminal,
        prelude: String = ShowTests.trueColor,
        isRead: Bool = true
    ) throws -> CommandProcess {
        let process = try CommandProcess(
            ["show"] + arguments,
            in: self.fixture.folder,
            files: Array(repeating: terminal.path, count: 3),
            isTerminal: true,
            prelude: prelude
        )
        if isRead { terminal.startReading() }
        return process
    }

    /// Runs the command to its end, and returns the final content of the terminal.
    private func run(
        _ arguments: [String],
        on terminal: PseudoTerminal,
        code: CInt = 0,
        prelude: String = ShowTests.trueColor
    ) async throws -> TerminalModel {
        let settings = terminal.settings
        let process = try self.start(arguments, on: terminal, prelude: prelude)
        #expect(await process.wait() == code, "\(terminal.text)")
        await terminal.waitUntilClosed()
        #expect(terminal.settings == settings)
        let model = try self.model(of: terminal)
        #expect(model.isCursorVisible && model.column == 0)
        return model
    }

    private func model(of terminal: PseudoTerminal, columns: Int = 80, rows: Int = 24) throws -> TerminalModel {
        var model = TerminalModel(columns: columns, rows: rows)
        try model.write(terminal.bytes)
        return model
    }

    /// Writes an image of a few colours that are exact in Sixel to a file.
    @discardableResult
    private func makeImage(_ name: String, width: Int = 24, height: Int = 30, seed: UInt64 = 1) throws -> DrawnImage {
        var generator = SeededGenerator(seed: seed)
        let pixels = try PixelBuffer.make(.rgb8, width: width, height: height) { _, _, _ in
            UInt8(51 * Int.random(in: 0...5, using: &generator))
        }
        let data = try PNGCoder().encode(Image(pixels: pixels), as: .png, options: EncodeOptions())
        try self.fixture.folder.write(data, to: name)
        return DrawnImage(TerminalPixels(pixels))
    }

    /// Writes an animation of four frames with different grays to a file.
    private func makeAnimation(_ name: String, loopCount: Int, milliseconds: Int = 20) throws {
        let frames = try (1...4).map { number in
            let pixels = try PixelBuffer.make(.rgb8, width: 12, height: 8) { _, _, _ in UInt8(51 * number) }
            return AnimationContent.Frame(image: Image(pixels: pixels), milliseconds: milliseconds)
        }
        let animation = AnimationContent(frames: frames, loopCount: loopCount)
        let data = try PNGCoder().encode(animation, as: .png, options: EncodeOptions())
        try self.fixture.folder.write(data, to: name)
    }

    // MARK: Protocols

    @Test func `a terminal that knows Kitty's graphics gets the pixels`() async throws {
        let image = try self.makeImage("a.png")
        let model = try await self.run(["a.png"], on: try PseudoTerminal(answers: Self.kittyAnswers))
        #expect(model.kitty.values.map(\.image) == [image])
        #expect(model.kitty.values.allSatisfy { $0.row == 0 && $0.column == 0 && $0.cells == [nil, nil] })
        #expect(model.sixel.isEmpty && model.row == 2)
    }

    @Test func `a terminal that knows Sixel gets that`() async throws {
        let image = try self.makeImage("a.png")
        let model = try await self.run(["a.png"], on: try PseudoTerminal(answers: Self.sixelAnswers))
        #expect(model.sixel.map(\.image) == [image])
        #expect(model.kittyCount == 0 && model.row == 2)
    }

    @Test(arguments: [Self.plainAnswers, []])
    func `a terminal that knows neither, or says nothing, gets half blocks`(
        _ answers: [(String, String)]
    ) async throws {
        let image = try self.makeImage("a.png")
        let model = try await self.run(["a.png"], on: try PseudoTerminal(answers: answers))
        #expect(try model.blocks(columns: 24, rows: 15) == image)
        #expect(model.kittyCount == 0 && model.sixel.isEmpty && model.row == 15)
        #expect(!model.hasIndexedColors)
    }

    @Test func `without 24-bit colours there are 256`() async throws {
        try self.makeImage("a.png")
        let terminal = try PseudoTerminal(answers: Self.plainAnswers)
        #expect(try await self.run(["a.png"], on: terminal, prelude: ":").hasIndexedColors)
    }

    @Test(arguments: GraphicsProtocol.allCases)
    func `a protocol that is asked for is not asked about`(_ graphics: GraphicsProtocol) async throws {
        try self.makeImage("a.png")
        let terminal = try PseudoTerminal(pixels: (800, 480))
        let model = try await self.run(["a.png", "--protocol", graphics.rawValue], on: terminal)
        #expect(!terminal.text.contains("\u{1B}[c"))
        #expect((model.kittyCount, model.sixel.count) == (graphics == .kitty ? 1 : 0, graphics == .sixel ? 1 : 0))
    }

    @Test func `where the size of cells is not known, the terminal scales to them`() async throws {
        try self.makeImage("a.png", width: 100, height: 100)
        let terminal = try PseudoTerminal(answers: Self.plainAnswers)
        let model = try await self.run(["a.png", "--protocol=kitty"], on: terminal)
        #expect(model.kitty.values.map(\.cells) == [["10", "5"]])
    }

    // MARK: Size

    @Test func `an image is brought to the terminal, or to the width that is asked for`() async throws {
        try self.makeImage("a.png", width: 2_000, height: 500)
        try self.makeImage("b.png", width: 100, height: 3_000)
        let wide = try await self.run(["a.png"], on: try PseudoTerminal(answers: Self.plainAnswers))
        #expect(wide.row == 10)
        let narrow = try await self.run(["a.png", "--width", "20"], on: try PseudoTerminal(answers: Self.kittyAnswers))
        #expect(narrow.kitty.values.map { [$0.image.width, $0.image.height] } == [[200, 50]])
        // The image leaves room for the line below it.
        let tall = try await self.run(["b.png"], on: try PseudoTerminal(answers: Self.plainAnswers))
        #expect(tall.row == 23)
        let low = try await self.run(
            ["b.png", "--height", "5"],
            on: try PseudoTerminal(pixels: (800, 480), answers: Self.sixelAnswers)
        )
        #expect(low.sixel.map(\.image.height) == [96])
    }

    @Test func `what is on the terminal already is scrolled away and not drawn over`() async throws {
        let image = try self.makeImage("a.png")
        let terminal = try PseudoTerminal(answers: Self.plainAnswers)
        let prelude = "\(Self.trueColor) && for line in {1..20}; do echo line $line; done"
        let model = try await self.run(["a.png"], on: terminal, prelude: prelude)
        #expect(model.lines[7] == "line 20" && model.row == 23)
        #expect(try model.blocks(row: 8, columns: 24, rows: 15) == image)
    }

    // MARK: Loading

    @Test func `an image is shown before its last byte, and replaced`() async throws {
        let pixels = try PixelBuffer.smooth(.rgb8, width: 320, height: 240)
        let jpeg = try JPEGCoder().encode(
            Image(pixels: pixels),
            as: .jpeg,
            options: EncodeOptions(isProgressive: true)
        )
        let body = Array(jpeg)
        let middle = body.count * 3 / 4
        let door = Latch()
        let origin = try FaultyOrigin([
            "/a.jpg": FaultyResponse([
                FaultyResponse.head(200, [("Content-Length", "\(body.count)")]), .send(Array(body[..<middle])),
                .wait(door), .send(Array(body[middle...])),
            ])
        ])
        let terminal = try PseudoTerminal(answers: Self.kittyAnswers)
        let process = try self.start([origin.url("/a.jpg").absoluteString], on: terminal)
        #expect(await terminal.wait { $0.contains("a=T") }, "\(terminal.text)")
        door.open()
        #expect(await process.wait() == 0)
        await terminal.waitUntilClosed()
        let model = try self.model(of: terminal)
        #expect(model.kittyCount >= 2)
        let shown = try #require(model.kitty.values.first)
        #expect(model.kitty.count == 1 && shown.image.width == 320)
        let whole = try ImageDecoder(jpeg, registry: CoderRegistry()).decodeStored(options: DecodeOptions()).image
        #expect(shown.image == DrawnImage(TerminalPixels(whole.pixels)))
        // The line that showed the progress has been erased.
        #expect(model.lines.joined().isEmpty)
    }

    @Test(arguments: [Self.plainAnswers, Self.kittyAnswers, Self.sixelAnswers])
    func `several images are a grid, and one that fails leaves its place empty`(
        _ answers: [(String, String)]
    ) async throws {
        let hostile = "evil\u{1B}[2J\u{202E}.png"
        let names = ["first.png", "missing.png", hostile, "last.png"]
        var images: [String: DrawnImage] = [:]
        for (index, name) in names.enumerated() where name != "missing.png" {
            images[name] = try self.makeImage(name, width: 10, height: 12, seed: UInt64(index))
        }
        let model = try await self.run(names, on: try PseudoTerminal(answers: answers), code: 1)
        let places = ScreenLayout(4, in: CellSize(columns: 80, rows: 23), cellRatio: 2).places
        let drawn = Array(model.kitty.values) + model.sixel
        // The report of the failure scrolls the first line away if the grid fills the terminal.
        let scrolled = model.lines[0].contains("first.png") ? 0 : 1
        for (name, place) in zip(names, places) {
            let row = place.row - scrolled
            if row >= 0 {
                let label = String(Array(model.lines[row]).dropFirst(place.column).prefix(place.size.columns))
                let text = name == "missing.png" ? "missing.png  failed" : name == hostile ? "evil [2J .png" : name
                #expect(label.hasPrefix(text), "\(model.lines)")
            }
            let image = drawn.first { $0.row == row + 1 && $0.column == place.column }?.image
            if model.kittyCount + model.sixel.count > 0 {
                #expect(image == images[name], "\(name)")
            } else {
                let blocks = try model.blocks(row: row + 1, column: place.column, columns: 10, rows: 6)
                #expect(
                    blocks == images[name]
                        ?? DrawnImage(width: 10, height: 12, pixels: Array(repeating: 0, count: 120))
                )
            }
        }
        #expect(model.lines.contains { $0.hasPrefix("tintype: missing.png: ") }, "\(model.lines)")
    }

    @Test func `more images than the terminal has room for are pages`() async throws {
        let names = (1...30).map { "\($0).png" }
        for (index, name) in names.enumerated() { try self.makeImage(name, seed: UInt64(index)) }
        let terminal = try PseudoTerminal(answers: Self.kittyAnswers)
        let model = try await self.run(names, on: terminal)
        #expect(model.kittyCount == 30 && model.kitty.count == 30)
        // The first images have scrolled out of the terminal.
        #expect(model.kitty.values.contains { $0.row < 0 } && model.kitty.values.allSatisfy { $0.row < 23 })
    }

    // MARK: Animations

    @Test(arguments: ["q", "\u{1B}", "\u{1A}", "\u{1C}"])
    func `an animation moves until a key is pressed`(_ key: String) async throws {
        try self.makeAnimation("a.png", loopCount: 0)
        let terminal = try PseudoTerminal(answers: Self.kittyAnswers)
        let settings = terminal.settings
        let process = try self.start(["a.png"], on: terminal)
        #expect(await terminal.wait { $0.matches(of: /a=T/).count >= 10 }, "\(terminal.text)")
        #expect(terminal.settings != settings)
        terminal.type(key)
        #expect(await process.wait() == 0)
        await terminal.waitUntilClosed()
        #expect(terminal.settings == settings)
        let model = try self.model(of: terminal)
        #expect(model.kitty.count == 1 && model.isCursorVisible && model.row == 1)
        // The terminal does not echo the typed key.
        #expect(model.lines.joined().isEmpty)
    }

    @Test(arguments: [(["--loops", "2"], 8), (["--still"], 0), ([], 12)])
    func `an animation is played as often as it is asked for, or says, or not at all`(
        _ options: [String],
        _ frameCount: Int
    ) async throws {
        try self.makeAnimation("a.png", loopCount: 3, milliseconds: 500)
        let terminal = try PseudoTerminal(answers: Self.sixelAnswers)
        let model = try await self.run(["a.png"] + options, on: terminal)
        // The command draws the first image before the animation starts.
        let grays = model.sixel.map { ($0.image.pixels.first ?? 0) & 255 }
        let frames: [UInt32] = [51, 102, 153, 204]
        let expected = [51] + (0..<frameCount).map { frames[$0 % 4] }
        // On a busy machine, the player skips late frames, but never the last one.
        var rest = grays[...]
        for gray in expected where gray == rest.first { rest.removeFirst() }
        #expect(rest.isEmpty && grays.first == 51 && grays.last == expected.last, "\(grays)")
        // One loop less would have four frames less.
        #expect(grays.count > expected.count - 4, "\(grays)")
    }

    // MARK: Ends

    @Test(arguments: [(SIGINT, CInt(130)), (SIGTERM, CInt(143))])
    func `a signal gives the terminal back`(_ signal: CInt, _ code: CInt) async throws {
        try self.makeAnimation("a.png", loopCount: 0)
        let terminal = try PseudoTerminal(answers: Self.kittyAnswers)
        let settings = terminal.settings
        let process = try self.start(["a.png"], on: terminal)
        #expect(await terminal.wait { $0.matches(of: /a=T/).count >= 3 }, "\(terminal.text)")
        if signal == SIGINT { terminal.type("\u{3}") } else { process.signal(signal) }
        #expect(await process.wait() == code)
        await terminal.waitUntilClosed()
        #expect(terminal.settings == settings)
        #expect(try self.model(of: terminal).isCursorVisible)
    }

    @Test func `a load that is interrupted gives the terminal back`() async throws {
        let origin = try FaultyOrigin(["/1": .silence])
        let terminal = try PseudoTerminal(answers: Self.plainAnswers)
        let settings = terminal.settings
        let process = try self.start([origin.url("/1").absoluteString, "missing.png"], on: terminal)
        await origin.waitForRequests(for: "/1")
        terminal.type("\u{3}")
        #expect(await process.wait() == 130)
        await terminal.waitUntilClosed()
        #expect(terminal.settings == settings)
        #expect(try self.model(of: terminal).isCursorVisible)
    }

    @Test func `the second signal gives back a terminal that takes no more`() async throws {
        let noise = try PixelBuffer.noise(.rgb8, width: 800, height: 400)
        let data = try PNGCoder().encode(Image(pixels: noise), as: .png, options: EncodeOptions())
        try self.fixture.folder.write(data, to: "a.png")
        let terminal = try PseudoTerminal(pixels: (800, 480))
        let settings = terminal.settings
        let process = try self.start(["a.png", "--protocol", "kitty"], on: terminal, isRead: false)
        await until { terminal.unreadCount >= 4_000 }
        #expect(terminal.settings != settings)
        process.signal(SIGINT)
        process.signal(SIGTERM)
        #expect(await process.wait() == 143)
        #expect(terminal.settings == settings)
        // Let the terminal close.
        terminal.startReading()
        await terminal.waitUntilClosed()
    }

    // MARK: Off a terminal

    @Test func `off a terminal half blocks are written, and nothing that moves a cursor`() async throws {
        let image = try self.makeImage("a.png")
        try self.makeImage("b.png", width: 500, height: 10)
        let run = try await self.fixture.run(["show", "a.png", "missing.png", "b.png"], prelude: Self.trueColor)
        #expect(run.code == 1)
        #expect(run.errorLines.count == 1 && run.errors.hasPrefix("tintype: missing.png: "))
        var model = TerminalModel(columns: 100, rows: 40)
        try model.write(Array(run.output.utf8).flatMap { $0 == 10 ? [13, 10] : [$0] })
        #expect(try model.blocks(columns: 24, rows: 15) == image)
        // The second image is 80 columns wide, and below the first one.
        #expect(model.row == 16)
        #expect(try model.blocks(row: 15, columns: 80, rows: 1).pixels.allSatisfy { $0 != 0 })
        #expect(!run.output.contains("\u{1B}7") && !run.output.contains("?25"))
    }

    @Test func `off a terminal another protocol and width can be had`() async throws {
        try self.makeImage("a.png", width: 500, height: 500)
        let run = try await self.fixture.run("show", "a.png", "--protocol", "sixel", "--width", "10")
        #expect(run.code == 0)
        var model = TerminalModel()
        try model.write(Array(run.output.utf8))
        #expect(model.sixel.map(\.image.width) == [100])
    }

    @Test func `a terminal that cannot move its cursor gets what a file gets`() async throws {
        try self.makeImage("a.png")
        let terminal = try PseudoTerminal()
        let process = try self.start(["a.png"], on: terminal, prelude: "export TERM=dumb")
        #expect(await process.wait() == 0)
        await terminal.waitUntilClosed()
        #expect(!terminal.text.contains("\u{1B}7") && terminal.text.contains("\u{2580}"))
    }

    @Test func `an output that cannot be written is an error`() async throws {
        try self.makeImage("a.png")
        let run = try await self.fixture.run(["show", "a.png"], outputPath: "/dev/full")
        #expect(run.code == 1)
        #expect(run.errors == "tintype: Standard output cannot be written (No space left on device).\n")
    }
}
