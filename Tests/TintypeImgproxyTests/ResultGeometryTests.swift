// SPDX-License-Identifier: Apache-2.0

import Testing
import TintypeImage

@testable import TintypeImgproxy

/// The sizes and places of results of an image with 200 x 100 pixels.
@Suite struct ResultGeometryTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let options: String
        let width: Int
        let height: Int

        init(_ options: String, _ width: Int, _ height: Int) {
            self.options = options
            self.width = width
            self.height = height
        }

        var testDescription: String { self.options }
    }

    private func geometry(_ options: String, width: Int = 200, height: Int = 100) throws -> ResultGeometry {
        ResultGeometry(try readOptions(options), sourceWidth: width, sourceHeight: height)
    }

    private static let imgproxySizes = [
        Case("rs:fit:50:50", 50, 25), Case("rs:fit:50:20", 40, 20), Case("rs:fit:300:300", 200, 100),
        Case("rs:fit:300:125/el:1", 250, 125), Case("rs:fit:0:200/el:1", 400, 200), Case("rs:fit:20:50/ex:1", 20, 50),
        Case("rs:fit:0:200/ex:1", 200, 200), Case("rs:fit:300:125/exar:1", 240, 100),
        Case("rs:fit:0:200/exar:1", 200, 100), Case("rs:fill:50:20", 50, 20), Case("rs:fill:300:50", 200, 50),
        Case("rs:fill:300:300", 200, 100), Case("rs:fill:250:300/el:1", 250, 300),
        Case("rs:fill:100:300/ex:1", 100, 300), Case("rs:fill:300:300/exar:1", 200, 200),
        Case("rs:fill-down:300:300", 100, 100), Case("rs:fill-down:300:125", 200, 83),
        Case("rs:fill-down:300:0", 200, 100), Case("mrd:50/rs:fit:150:0", 50, 25),
        Case("mrd:50/rs:fill:1000:50", 50, 13),
        Case("mrd:50/rs:fill-down:100:1000", 5, 50), Case("mrd:200/rs:fit:100:100/pd:100:200:300:400", 200, 129),
        Case("mrd:100/rs:fit:100:150/rot:90", 50, 100), Case("rs:fill:100:26/dpr:2", 200, 52),
        Case("rs:fill:26:100/g:no:5/dpr:2", 26, 100), Case("c:50:50:ce:10:10/dpr:0.5", 25, 25),
        Case("dpr:2/pd:20:30:40:10/el:1", 480, 320), Case("w:500/h:500/ex:1:no:0:5/dpr:0.5", 250, 250),
    ]

    private static let moreSizes = [
        Case("rs:auto:50:50", 50, 50), Case("rs:auto:20:50", 20, 10), Case("rs:force:50:50", 50, 50),
        Case("rs:force:50:0", 50, 100), Case("z:2", 200, 100), Case("z:2/el:1", 400, 200), Case("w:50/z:2", 100, 50),
        Case("w:50/mw:80", 50, 40), Case("c:0.5:0.5/w:50", 50, 25), Case("w:50/pd:10/dpr:2", 140, 90),
        Case("w:150/dpr:2", 200, 100), Case("w:300/dpr:0.5", 150, 75), Case("w:300/dpr:0.5/ex:1", 150, 50),
        Case("rot:90/w:50", 50, 100), Case("rs:force:300:50", 200, 33),
    ]

    private static let otherServersSizes = [
        Case("rs:fit:20:50", 20, 10), Case("rs:fit:0:50", 100, 50), Case("rs:fit:50:0", 50, 25),
        Case("rs:fit:0:200", 200, 100), Case("rs:fill-down:250:300", 83, 100), Case("rs:fit:50:50/ex:1", 50, 50),
        Case("rs:fit:300:300/exar:1", 200, 200), Case("rs:fit:250:500/exar:1", 200, 400),
    ]

    /// Sizes by the rules, for the corners that the other tables leave out.
    private static let corners = [
        Case("w:0", 200, 100), Case("rot:180", 200, 100), Case("rot:270/h:50", 25, 50), Case("rot:-90/w:50", 50, 100),
        Case("c:0:50", 200, 50), Case("c:1000:1000", 200, 100), Case("c:0.001:0.001", 1, 1), Case("c:50.9:1", 50, 1),
        Case("mh:40/w:50", 50, 40), Case("mw:400", 400, 200), Case("z:0.5:0.25", 100, 25), Case("w:50/dpr:0.01", 1, 1),
        Case("rs:fill-down:300:300/el:1", 300, 300), Case("w:300/h:300/el:1/dpr:2", 600, 300),
        Case("pd:10", 220, 120), Case("pd:3/dpr:0.5", 104, 54), Case("mrd:1/pd:1", 1, 1), Case("mrd:2/w:1/pd:2", 1, 1),
        Case("rs:fit:9000:0/el:1/mrd:10000", 9_000, 4_500), Case("rs:fit:8192:8192/el:1/dpr:8", 8_192, 4_096),
    ]

    @Test(arguments: imgproxySizes + moreSizes + otherServersSizes + corners)
    func `a result has the size that imgproxy gives it`(expected: Case) throws {
        let size = try self.geometry(expected.options).size
        #expect(size == PixelSize(width: expected.width, height: expected.height))
    }

    struct Place: Sendable, CustomTestStringConvertible {
        let options: String
        let box: PixelRectangle

        init(_ options: String, _ x: Int, _ y: Int, _ width: Int, _ height: Int) {
            self.options = options
            self.box = PixelRectangle(x: x, y: y, width: width, height: height)
        }

        var testDescription: String { self.options }
    }

    @Test(arguments: [
        Place("c:50:50:soea:10:20", 140, 30, 50, 50), Place("c:50:50:nowe:0.1:0.1", 20, 10, 50, 50),
        Place("c:50:50:fp:1:0", 150, 0, 50, 50), Place("c:50:50:ce", 76, 26, 50, 50), Place("c:50:50", 76, 26, 50, 50),
        Place("c:50:50/g:nowe", 0, 0, 50, 50), Place("c:50:50:ce:10:10/dpr:0.5", 86, 36, 50, 50),
        Place("c:50:50:no", 76, 0, 50, 50), Place("c:50:50:so", 76, 50, 50, 50), Place("c:50:50:ea", 150, 26, 50, 50),
        Place("c:50:50:we", 0, 26, 50, 50), Place("c:50:50:noea:5:7", 145, 7, 50, 50),
        Place("c:50:50:sowe:5:7", 5, 43, 50, 50), Place("c:50:50:we:-5", 0, 26, 50, 50),
        Place("c:50:50:ea:1000:1000", 0, 50, 50, 50), Place("c:50:50:fp:0.5:0.5", 75, 25, 50, 50),
        Place("c:50:50:sm", 76, 26, 50, 50), Place("rot:90/c:50:50:soea", 50, 150, 50, 50),
    ])
    func `a part is cut out at the place of its gravity`(expected: Place) throws {
        #expect(try self.geometry(expected.options).crop == expected.box)
    }

    @Test func `the centre of odd sizes is half a pixel further`() throws {
        let geometry = try self.geometry("c:10:10", width: 201, height: 101)
        #expect(geometry.crop == PixelRectangle(x: 96, y: 46, width: 10, height: 10))
    }

    @Test(arguments: [
        Place("rs:fill:50:50/g:we:5", 5, 0, 50, 50), Place("rs:fill:50:50/g:we:5/dpr:2", 10, 0, 100, 100),
        Place("rs:fill:50:50", 26, 0, 50, 50), Place("rs:fill:50:50/g:fp:0:0", 0, 0, 50, 50),
        Place("rs:fill:50:50/g:ea:0.1", 40, 0, 50, 50), Place("rs:fill:50:50/g:sm", 26, 0, 50, 50),
    ])
    func `the result is cut at the place of its gravity`(expected: Place) throws {
        #expect(try self.geometry(expected.options).resultCrop == expected.box)
    }

    @Test(arguments: [
        Place("rs:fit:20:50/ex:1", 0, 20, 20, 10), Place("rs:fit:20:50/ex:1:no:0:5", 0, 5, 20, 10),
        Place("rs:fit:20:50/ex:1:so", 0, 40, 20, 10), Place("rs:fit:20:50/ex:1:so:0:0.1", 0, 35, 20, 10),
        Place("w:500/h:500/ex:1:no:0:5/dpr:0.5", 76, 2, 100, 50), Place("rs:fit:300:300/exar:1:so", 0, 100, 200, 100),
        Place("rs:fit:20:50/ex:1:fp:0.5:0", 0, 0, 20, 10), Place("pd:10", 0, 0, 200, 100),
    ])
    func `an image lies on its canvas at the place of the gravity`(expected: Place) throws {
        #expect(try self.geometry(expected.options).position == expected.box)
    }

    @Test(arguments: [(0, 0), (-5, .min), (.max, .max), (.max, 1)])
    func `impossible sizes of a source give a possible result`(width: Int, height: Int) throws {
        let size = try self.geometry("rs:fill:8192:1/el:1/z:100/dpr:8", width: width, height: height).size
        #expect(1...8_192 ~= size.width && 1...8_192 ~= size.height)
    }

    @Test(arguments: [
        Place("wm:1", 90, 46, 20, 10), Place("wm:1:soea:5:5", 175, 85, 20, 10), Place("wm:1:nowe", 0, 0, 20, 10),
        Place("wm:1:ce:0:0:0.5", 50, 26, 100, 50), Place("wm:1:ea:-1000", 199, 46, 20, 10),
        Place("wm:1:we:-1000", -19, 46, 20, 10), Place("wm:1:no:0.1:0.1", 110, 10, 20, 10),
    ])
    func `a watermark has the size and the place of its option`(expected: Place) throws {
        let options = try readOptions(expected.options)
        let result = ResultGeometry(options, sourceWidth: 200, sourceHeight: 100)
        let watermark = WatermarkGeometry(try #require(options.watermark), on: result, width: 20, height: 10)
        #expect(watermark.box == expected.box && !watermark.isRepeated)
    }

    @Test func `the offsets of a repeated watermark are its gaps`() throws {
        let options = try readOptions("wm:0.5:re:10:0.1/w:50/dpr:2")
        let result = ResultGeometry(options, sourceWidth: 200, sourceHeight: 100)
        let watermark = WatermarkGeometry(try #require(options.watermark), on: result, width: 20, height: 10)
        #expect(watermark.isRepeated && watermark.horizontalGap == 20 && watermark.verticalGap == 5)
    }
}
