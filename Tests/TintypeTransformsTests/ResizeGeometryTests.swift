import TestTraits
import Testing
import TintypeTransforms

/// A source, a resize and the size that must come of them.
struct GeometryCase: Sendable, CustomTestStringConvertible {
    let source: (width: Int, height: Int)
    let resize: Resize
    let result: (width: Int, height: Int)

    init(_ width: Int, _ height: Int, _ resize: Resize, is resultWidth: Int, _ resultHeight: Int) {
        self.source = (width, height)
        self.resize = resize
        self.result = (resultWidth, resultHeight)
    }

    var testDescription: String {
        "\(self.source.width)x\(self.source.height) \(self.resize.key)"
    }
}

@Suite(.computing) struct ResizeGeometryTests {
    static let sizes: [GeometryCase] = [
        GeometryCase(5_250, 3_450, .fit(width: 400, height: 300), is: 400, 263),
        GeometryCase(200, 100, .fit(width: 50, height: 50), is: 50, 25),
        GeometryCase(200, 100, .fit(width: 50, height: 20), is: 40, 20),
        GeometryCase(200, 100, .fit(width: 20, height: 50), is: 20, 10),
        GeometryCase(200, 100, .fit(width: 300, height: 300), is: 200, 100),
        GeometryCase(200, 100, .fit(width: 300, height: 300, upscales: true), is: 300, 150),
        GeometryCase(200, 100, .fit(width: 200, height: 100), is: 200, 100),
        GeometryCase(100, 200, .fit(width: 150, height: 150), is: 75, 150),
        GeometryCase(100, 200, .fit(width: 300, height: 300), is: 100, 200),
        GeometryCase(100, 200, .fit(width: 300, height: 300, upscales: true), is: 150, 300),
        GeometryCase(640, 480, .fit(width: 480, height: 480), is: 480, 360),
        GeometryCase(640, 480, .fit(width: 1_280, height: 1_280), is: 640, 480),
        GeometryCase(640, 480, .fit(width: 1_280, height: 1_280, upscales: true), is: 1_280, 960),
        GeometryCase(10_000, 1, .fit(width: 100, height: 100), is: 100, 1),
        GeometryCase(1, 10_000, .fit(width: 100, height: 100), is: 1, 100),
        GeometryCase(1, 1, .fit(width: 1, height: 1), is: 1, 1),
        GeometryCase(200, 100, .fill(width: 300, height: 300), is: 100, 100),
        GeometryCase(200, 100, .fill(width: 300, height: 125), is: 200, 83),
        GeometryCase(200, 100, .fill(width: 250, height: 300), is: 83, 100),
        GeometryCase(200, 100, .fill(width: 50, height: 50), is: 50, 50),
        GeometryCase(200, 100, .fill(width: 150, height: 50), is: 150, 50),
        GeometryCase(200, 100, .fill(width: 300, height: 300, upscales: true), is: 300, 300),
        GeometryCase(640, 480, .fill(width: 400, height: 400), is: 400, 400),
        GeometryCase(640, 480, .fill(width: 960, height: 960), is: 480, 480),
        GeometryCase(640, 480, .fill(width: 640, height: 480), is: 640, 480),
        GeometryCase(300, 300, .fill(width: 200, height: 100), is: 200, 100),
        GeometryCase(100, 200, .stretch(width: 150, height: 150), is: 100, 150),
        GeometryCase(100, 200, .stretch(width: 150, height: 150, upscales: true), is: 150, 150),
        GeometryCase(100, 200, .stretch(width: 10, height: 10), is: 10, 10),
        GeometryCase(100, 200, .stretch(width: 500, height: 500), is: 100, 200),
        GeometryCase(100, 200, .stretch(width: 1, height: 1), is: 1, 1),
    ]

    @Test(arguments: Self.sizes) func givesTheSize(of geometry: GeometryCase) throws {
        let result = try ResizeGeometry(
            geometry.resize,
            width: geometry.source.width,
            height: geometry.source.height
        )
        #expect((result.width, result.height) == geometry.result)
    }

    @Test(arguments: Self.sizes) func readsWithinTheSource(of geometry: GeometryCase) throws {
        let (width, height) = geometry.source
        let result = try ResizeGeometry(geometry.resize, width: width, height: height)
        #expect(result.left >= 0)
        #expect(result.top >= 0)
        #expect(result.left + result.sourceWidth <= Double(width) + 1e-9)
        #expect(result.top + result.sourceHeight <= Double(height) + 1e-9)
        // What is cut off is cut off evenly.
        #expect(abs(2 * result.left + result.sourceWidth - Double(width)) < 1e-9)
        #expect(abs(2 * result.top + result.sourceHeight - Double(height)) < 1e-9)
    }

    @Test(arguments: [Resize.Mode.fit, .stretch]) func onlyFillCuts(mode: Resize.Mode) throws {
        let geometry = try ResizeGeometry(Resize(width: 33, height: 77, mode: mode), width: 200, height: 100)
        #expect(geometry.left == 0)
        #expect(geometry.top == 0)
        #expect(geometry.sourceWidth == 200)
        #expect(geometry.sourceHeight == 100)
    }

    @Test func fillCutsTheSidesThatStandOver() throws {
        let geometry = try ResizeGeometry(.fill(width: 400, height: 400), width: 640, height: 480)
        #expect(geometry.left == 80)
        #expect(geometry.top == 0)
        #expect(geometry.sourceWidth == 480)
        #expect(geometry.sourceHeight == 480)
    }

    @Test(arguments: Resize.Mode.allCases, [(0, 5), (5, 0), (-1, 5), (5, Int.min), (0, 0)])
    func aBoxWithoutAreaIsRefused(mode: Resize.Mode, box: (width: Int, height: Int)) {
        let error = #expect(throws: TransformError.self) {
            try ResizeGeometry(Resize(width: box.width, height: box.height, mode: mode), width: 10, height: 10)
        }
        #expect(error?.code == .invalidSize)
        #expect(error?.message.contains("\(box.width)x\(box.height)") == true)
    }

    @Test func transposingExchangesTheAxes() throws {
        let geometry = try ResizeGeometry(.fill(width: 30, height: 10), width: 70, height: 90)
        let transposed = geometry.transposed
        #expect(transposed.transposed == geometry)
        #expect(transposed.left == geometry.top)
        #expect(transposed.sourceWidth == geometry.sourceHeight)
        #expect((transposed.width, transposed.height) == (10, 30))
    }

    @Test func scalingMovesThePartAndKeepsTheSize() throws {
        let geometry = try ResizeGeometry(.fill(width: 400, height: 400), width: 640, height: 480)
            .scaled(byWidth: 0.25, height: 0.5)
        #expect(geometry.left == 20)
        #expect(geometry.sourceWidth == 120)
        #expect(geometry.sourceHeight == 240)
        #expect((geometry.width, geometry.height) == (400, 400))
    }

    @Test func keysDifferForEveryParameter() {
        var keys: Set<String> = []
        for mode in Resize.Mode.allCases {
            for filter in Resize.Filter.allCases {
                for upscales in [false, true] {
                    for (width, height) in [(1, 2), (2, 1), (12, 1)] {
                        let resize = Resize(
                            width: width,
                            height: height,
                            mode: mode,
                            upscales: upscales,
                            filter: filter
                        )
                        keys.insert(resize.key)
                    }
                }
            }
        }
        #expect(keys.count == 3 * 4 * 2 * 3)
    }
}
