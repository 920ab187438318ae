// SPDX-License-Identifier: Apache-2.0

import Glibc
import Tintype

/// `tintype show`: draws images in the terminal.
struct ShowCommand: Subcommand {
    static let name = "show"
    static let summary = "draw images in the terminal"
    static let flags: Set = ["--still", "--reload"]
    static let values: Set = ["--protocol", "--width", "--height", "--loops", "--cache-dir"]
    static let help = """
        Draws images in the terminal while they load; several in a grid.

        Usage: tintype show <url|path>... [options]

          --protocol NAME       kitty, sixel or blocks; default auto, as the terminal says that it can
          --width N             columns for all images; default the columns of the terminal
          --height N            rows for all images; default the rows of the terminal
          --still               only the first image of an animation
          --loops N             play animations so often, 0 for ever; default as they say
          --cache-dir DIR       the disk cache; default ~/.cache/tintype
          --reload              load from the origin whatever is cached

        Animations play until a key is pressed. Images are never enlarged. Where standard output
        is no terminal, they are written below each other as half blocks, 80 columns wide, unless
        --protocol and --width say otherwise; in 24-bit colours where COLORTERM is truecolor.
        """

    /// The loads that run at once.
    static let concurrency = 4
    /// How long a terminal may take to say what it can do.
    private static let answerTime = Duration.seconds(1)
    /// The number of columns without a terminal.
    private static let usualColumns = 80

    private let inputs: [Input]
    private let graphics: GraphicsProtocol?
    private let columns: Int?
    private let rows: Int?
    private let playback: ShowPage.Playback
    private let configuration: LoaderActor.Configuration
    private let cachePolicy: CachePolicy?

    init(_ arguments: ParsedArguments) throws(UsageError) {
        self.inputs = try arguments.requireInputs()
        let names = ["auto"] + GraphicsProtocol.allCases.map(\.rawValue)
        self.graphics = try arguments.choice("--protocol", of: names).flatMap { GraphicsProtocol(rawValue: $0) }
        self.columns = try arguments.number("--width", in: 1...1_000)
        self.rows = try arguments.number("--height", in: 1...1_000)
        let loops = try arguments.number("--loops", in: 0...1_000_000)
        guard !arguments.has("--still") || loops == nil else {
            throw UsageError("--still and --loops contradict each other")
        }
        self.playback = arguments.has("--still") ? .still : .loops(loops)
        self.configuration = try LoadCommandOptions.configuration(arguments)
        self.cachePolicy = arguments.has("--reload") ? .reload : nil
    }

    func run() async throws -> Bool {
        let loader = LoaderActor(configuration: await self.configuration.sparing())
        let output = Output.standard
        // A dumb terminal has no cursor that could be moved.
        guard output.isTerminal, Self.variable("TERM") != "dumb" else {
            return try await self.write(to: output, by: loader)
        }
        guard let input = try TerminalInput.open() else {
            return try await self.draw(on: output, input: nil, by: loader)
        }
        return try await input.reading { try await self.draw(on: output, input: $0, by: loader) }
    }

    // MARK: On a terminal

    private func draw(on output: Output, input: TerminalInput?, by loader: LoaderActor) async throws -> Bool {
        let drawing = try await self.drawing(on: output, input: input)
        let size = output.size
        let area = CellSize(
            columns: min(size.columns, self.columns ?? size.columns),
            // The line below the images must be there as well.
            rows: max(1, min(size.rows - 1, self.rows ?? size.rows))
        )
        let screen = try TerminalScreen(output: output, drawing: drawing)
        let page = ShowPage(
            loader: loader,
            screen: screen,
            drawing: drawing,
            input: input,
            playback: self.playback,
            cachePolicy: self.cachePolicy
        )
        var rest = self.inputs[...]
        var succeeded = true
        while !rest.isEmpty {
            let ratio = drawing.cell.height / drawing.cell.width
            let layout = ScreenLayout(rest.count, in: area, cellRatio: ratio)
            let failures = try await page.show(Array(rest.prefix(layout.places.count)), at: layout.places)
            for (input, error) in failures {
                Output.error.tell(ErrorText(error).line(for: input.text))
                succeeded = false
            }
            rest = rest.dropFirst(layout.places.count)
        }
        return succeeded
    }

    /// How to draw on the terminal: as it was asked for, or as the terminal says that it can.
    private func drawing(on output: Output, input: TerminalInput?) async throws -> ImageDrawing {
        var window = output.pixelSize
        let asksGraphics = self.graphics == nil
        let asksSize = window == nil && self.graphics != .blocks
        var answers = TerminalAnswers()
        if let input, asksGraphics || asksSize {
            let query = TerminalAnswers.query(graphics: asksGraphics, size: asksSize)
            answers = await input.answers(to: query, within: Self.answerTime)
            try Task.checkCancellation()
        }
        window = window ?? answers.window
        let size = output.size
        var cell = answers.cell.map { ImageDrawing.PixelExtent(width: Double($0.width), height: Double($0.height)) }
        if cell == nil, let window {
            cell = ImageDrawing.PixelExtent(
                width: Double(window.width) / Double(size.columns),
                height: Double(window.height) / Double(size.rows)
            )
        }
        // A cell under a pixel, or of a shape that none has, is a terminal's mistake.
        cell = cell.flatMap { $0.width >= 1 && (0.5...8).contains($0.height / $0.width) ? $0 : nil }
        let known: GraphicsProtocol = answers.knowsKitty ? .kitty : answers.knowsSixel ? .sixel : .blocks
        return ImageDrawing(self.graphics ?? known, colors: Self.colors, cell: cell)
    }

    private static var colors: BlockEncoder.Colors {
        ["truecolor", "24bit"].contains(self.variable("COLORTERM")) ? .direct : .palette
    }

    private static func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

    // MARK: Off a terminal

    /// Writes the images below each other.
    private func write(to output: Output, by loader: LoaderActor) async throws -> Bool {
        let drawing = ImageDrawing(self.graphics ?? .blocks, colors: Self.colors, cell: nil)
        let area = CellSize(columns: self.columns ?? Self.usualColumns, rows: self.rows ?? 1_000)
        var succeeded = true
        for (index, input) in self.inputs.enumerated() {
            do {
                let request = ImageRequest(
                    url: input.url,
                    thumbnail: drawing.resize(into: area),
                    cachePolicy: self.cachePolicy
                )
                let drawn = try drawing.drawing(of: try await loader.image(for: request), in: area)
                try Output.check(output.write(try self.text(of: drawn, drawing, id: UInt32(index + 1))))
            } catch let error as CancellationError {
                throw error
            } catch let error as OutputError {
                throw error
            } catch {
                Output.error.tell(ErrorText(error).line(for: input.text))
                succeeded = false
            }
        }
        return succeeded
    }

    private func text(of drawn: ImageDrawing.Drawing, _ drawing: ImageDrawing, id: UInt32) throws -> [UInt8] {
        switch drawn.content {
        case .lines(let lines): lines.flatMap { $0 + [UInt8(ascii: "\n")] }
        case .pixels(let pixels):
            // Kitty does not move the cursor; Sixel leaves it on the last line of the image.
            try drawing.bytes(of: pixels, id: id, cells: drawn.size, isStill: true)
                + Array(repeating: UInt8(ascii: "\n"), count: drawing.graphics == .kitty ? drawn.size.rows : 1)
        }
    }
}
