// SPDX-License-Identifier: Apache-2.0

import Tintype
import TintypeConcurrency
import TintypeTargets

/// Images on a terminal: a target with a key for each place.
///
/// The screen draws in the lines below the cursor, and scrolls to make room for them. Between two drawings the cursor
/// is hidden at the start of the drawing. The screen has a thread of its own, because writing to a terminal blocks.
actor TerminalScreen: ImageTarget {
    static let showCursor = "\u{1B}[?25h"
    private static let hideCursor = "\u{1B}[?25l"

    /// The content of a place.
    private struct Slot {
        let place: ScreenLayout.Place
        let label: String
        /// The text of the label's line, or of the first line without a label.
        var status = ""
        /// The cells that an image takes.
        var size: CellSize?
        /// The name of the image in the terminal.
        var imageID: UInt32?
    }

    nonisolated let imageLoads = TargetLoads()
    private nonisolated let executor = ThreadExecutor(name: "tintype-screen")
    nonisolated var unownedExecutor: UnownedSerialExecutor { self.executor.asUnownedSerialExecutor() }

    private let output: Output
    private let drawing: ImageDrawing
    private var slots: [TargetKey: Slot] = [:]
    /// The lines below the first that are there to be drawn on.
    private var reservedRows = 0
    /// Random at first, because the images of other programs have numbers as well.
    private var nextImageID = UInt32.random(in: 0x0100_0000...0x7FFF_FFFF)
    /// The `errno` of the first write that failed; nothing is written after it.
    private var failure: CInt = 0

    /// Creates a screen in the lines below the cursor.
    ///
    /// - Parameters:
    ///   - output: The terminal.
    ///   - drawing: The way of drawing.
    /// - Throws: `ThreadError` if the system refuses the thread.
    init(output: Output, drawing: ImageDrawing) throws(ThreadError) {
        self.output = output
        self.drawing = drawing
        try self.executor.start()
    }

    deinit {
        self.executor.shutdown()
    }

    // MARK: Pages

    /// Creates places for images, and makes room for the ones with labels.
    func begin(_ places: [(key: TargetKey, place: ScreenLayout.Place, label: String)]) {
        self.write("\(Self.hideCursor)\r")
        for (key, place, label) in places {
            self.slots[key] = Slot(place: place, label: label.printable)
            if place.hasLabel {
                self.reserve(place.row + 1 + place.size.rows)
                self.show(status: "", at: key)
            }
        }
    }

    /// Keeps the drawings, and moves to the line below them.
    ///
    /// - Throws: `OutputError` if the terminal could not be written.
    func end() throws(OutputError) {
        // The text after a label stays, because it names the failure.
        for (key, slot) in self.slots where !slot.place.hasLabel { self.show(status: "", at: key) }
        let used = self.slots.values.map { slot in
            slot.place.row + (slot.place.hasLabel ? 1 : 0) + (slot.size?.rows ?? 0)
        }
        let rows = min(self.reservedRows, used.max() ?? 0)
        self.write((rows > 0 ? "\u{1B}[\(rows)B\r" : "") + Self.showCursor)
        self.slots = [:]
        self.reservedRows = 0
        try Output.check(self.failure)
    }

    // MARK: ImageTarget

    func setPlaceholder(_ placeholder: Image?, for key: TargetKey) {
        if let placeholder { return self.show(placeholder, at: key, isStill: true) }
        self.erase(key)
    }

    func setImage(_ image: TargetImage, for key: TargetKey) {
        self.show(image.image, at: key, isStill: true)
    }

    func setProgress(_ progress: TargetProgress, for key: TargetKey) {
        switch progress {
        case .started, .completed: self.show(status: "", at: key)
        case .received(let transfer):
            let figures =
                transfer.fractionCompleted.map { "\(Int($0 * 100)) %" } ?? Readable.bytes(transfer.receivedBytes)
            self.show(status: figures, at: key)
        }
    }

    func loadDidFail(_ error: any Error, for key: TargetKey) {
        self.show(status: "failed", at: key)
    }

    /// Shows a frame of an animation.
    func show(frame: Image, at key: TargetKey) {
        self.show(frame, at: key, isStill: false)
    }

    // MARK: Drawing

    private func show(_ image: Image, at key: TargetKey, isStill: Bool) {
        guard self.failure == 0, let slot = self.slots[key] else { return }
        do {
            let drawing = try self.drawing.drawing(of: image, in: slot.place.size)
            try self.draw(drawing, at: key, isStill: isStill)
        } catch {
            // The load has ended, or the image did not fit into memory and stays out.
            if !(error is CancellationError) { self.show(status: "failed", at: key) }
        }
    }

    private func draw(_ drawing: ImageDrawing.Drawing, at key: TargetKey, isStill: Bool) throws {
        guard var slot = self.slots[key] else { return }
        let first = slot.place.row + (slot.place.hasLabel ? 1 : 0)
        self.reserve(first + drawing.size.rows)
        var bytes: [UInt8] = []
        // Transparent parts would show the earlier content.
        let pixels: TerminalPixels? = if case .pixels(let pixels) = drawing.content { pixels } else { nil }
        let leavesWhatIsThere = self.drawing.graphics == .sixel && pixels?.isTransparent == true
        if !slot.place.hasLabel, !slot.status.isEmpty {
            bytes += self.blanks(at: first, slot.place.column, CellSize(columns: slot.place.size.columns, rows: 1))
            slot.status = ""
        }
        if let old = slot.size, old != drawing.size || leavesWhatIsThere, self.drawing.graphics != .kitty {
            bytes += self.blanks(at: first, slot.place.column, old)
        }
        switch drawing.content {
        case .pixels(let pixels):
            let id = self.nextImageID
            self.nextImageID = id == .max ? 1 : id + 1
            bytes += Self.move(to: first, slot.place.column)
            bytes += try self.drawing.bytes(of: pixels, id: id, cells: drawing.size, isStill: isStill)
            bytes += Self.moveBack
            // The old one goes only when the new one is there, so that nothing flickers.
            if self.drawing.graphics == .kitty {
                if let old = slot.imageID { bytes += KittyEncoder.delete(old) }
                slot.imageID = id
            }
        case .lines(let lines):
            for (row, line) in lines.enumerated() {
                bytes += Self.move(to: first + row, slot.place.column)
                bytes += line
                bytes += Self.moveBack
            }
        }
        slot.size = drawing.size
        self.slots[key] = slot
        self.write(bytes)
    }

    private func erase(_ key: TargetKey) {
        guard var slot = self.slots[key], let size = slot.size else { return }
        let first = slot.place.row + (slot.place.hasLabel ? 1 : 0)
        self.write(slot.imageID.map { KittyEncoder.delete($0) } ?? self.blanks(at: first, slot.place.column, size))
        slot.size = nil
        slot.imageID = nil
        self.slots[key] = slot
    }

    /// Shows how far a load is: beside the label, or in the first line until there is an image.
    private func show(status: String, at key: TargetKey) {
        guard var slot = self.slots[key] else { return }
        let isNew = status != slot.status || slot.place.hasLabel
        guard isNew, slot.place.hasLabel || slot.size == nil else { return }
        slot.status = status
        self.slots[key] = slot
        let columns = slot.place.size.columns
        let isNamed = slot.place.hasLabel || !status.isEmpty
        let room = max(0, columns - (status.isEmpty ? 0 : status.columns + 2))
        let name = isNamed ? slot.label.shortened(to: room) : ""
        let text = status.isEmpty || name.isEmpty ? name + status : "\(name)  \(status)"
        self.reserve(slot.place.row + 1)
        var bytes = Self.move(to: slot.place.row, slot.place.column)
        bytes += text.shortened(to: columns).padded(to: columns).utf8
        self.write(bytes + Self.moveBack)
    }

    /// Makes sure that the lines below exist, and returns to the same place.
    private func reserve(_ rows: Int) {
        guard rows > self.reservedRows else { return }
        let down = self.reservedRows > 0 ? "\u{1B}[\(self.reservedRows)B" : ""
        let new = String(repeating: "\n", count: rows - self.reservedRows)
        self.reservedRows = rows
        self.write("\(down)\(new)\r\u{1B}[\(rows)A")
    }

    private func blanks(at row: Int, _ column: Int, _ size: CellSize) -> [UInt8] {
        (row..<row + size.rows).flatMap { row in
            Self.move(to: row, column) + "\u{1B}[\(size.columns)X".utf8 + Self.moveBack
        }
    }

    /// Saves the place of the cursor, and moves from there.
    private static func move(to row: Int, _ column: Int) -> [UInt8] {
        var text = "\u{1B}7"
        if row > 0 { text += "\u{1B}[\(row)B" }
        if column > 0 { text += "\u{1B}[\(column)C" }
        return Array(text.utf8)
    }

    private static let moveBack = Array("\u{1B}8".utf8)

    private func write(_ text: String) {
        self.write(Array(text.utf8))
    }

    private func write(_ bytes: [UInt8]) {
        guard self.failure == 0 else { return }
        self.failure = self.output.write(bytes)
    }
}
