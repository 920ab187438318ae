// SPDX-License-Identifier: Apache-2.0
// Written by .ci/embed-page from Page.html.

/// The web page on which people try the server out.
package enum PageContents {
    /// The strong entity tag of the page.
    package static let entityTag = "\"WHSA5R8oprtAayya\""

    /// The value of the field `Content-Security-Policy` that the page needs.
    ///
    /// It allows the page's own style and script by their hashes, and nothing of other origins.
    package static let contentSecurityPolicy = """
        default-src 'none';\
         script-src 'sha256-0crWaei10sdENSe8MTZ0rQIhZP1qu6tGRghzRGvyUIg=';\
         style-src 'sha256-qpGQDjRtWPTQADUwi61Wy1BuU3QCsWvFi+sPcz5Jlp0=';\
         img-src 'self' blob: data:;\
         connect-src 'self';\
         form-action 'self';\
         base-uri 'none';\
         frame-ancestors 'none'
        """

    /// The page.
    // swift-format-ignore
    package static let html = ##"""
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Tintype</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<link rel="icon" href="data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'
%3E%3Cpath d='M3 1h10l2 2v10l-2 2H3l-2-2V3z' fill='%23211c17'/%3E%3Cellipse cx='8' cy='8' rx='4' ry='5'
 fill='%23c9ae8c'/%3E%3C/svg%3E">
<style>
:root {
    color-scheme: light dark;
    --ground: #f2eee6;
    --raised: #fbf9f4;
    --ink: #211c17;
    --muted: #655b4e;
    --rule: #d6cdbe;
    --edge: #857a6b;
    --accent: #9a2b18;
    --on-accent: #fff8f2;
    --plate: #171412;
    --on-plate: #e8ddce;
    --plate-muted: #a99d8e;
    --plate-rule: #453c34;
    --safelight: #ff8a66;
    --serif: "Iowan Old Style", "Palatino Linotype", Palatino, "URW Palladio L", P052, "Book Antiqua", Georgia, serif;
    --sans: system-ui, -apple-system, "Segoe UI", "Helvetica Neue", "Noto Sans", "Liberation Sans", sans-serif;
    --mono: ui-monospace, "SF Mono", "Cascadia Mono", "DejaVu Sans Mono", "Liberation Mono", Menlo, monospace;
}
@media (prefers-color-scheme: dark) {
    :root {
        --ground: #14110f;
        --raised: #1d1916;
        --ink: #ece3d7;
        --muted: #aba091;
        --rule: #372f29;
        --edge: #83776a;
        --accent: #ff8a66;
        --on-accent: #1a0f0a;
        --plate: #0b0908;
        --plate-rule: #3a322b;
    }
}
*, *::before, *::after { box-sizing: border-box; }
[hidden] { display: none !important; }
html { scroll-padding: 1rem; -webkit-text-size-adjust: 100%; }
body {
    margin: 0; background: var(--ground); color: var(--ink);
    font: 15px/1.5 var(--sans); font-variant-numeric: tabular-nums;
}
.page { max-width: 84rem; margin: 0 auto; padding: 0 clamp(1rem, 3vw, 2.5rem); }
h1, h2, p, dl, dd, figure, fieldset, legend { margin: 0; padding: 0; border: 0; min-width: 0; }
h1 { font: 400 2.1rem/1.1 var(--serif); letter-spacing: .005em; }
h2 { font: italic 400 1.25rem/1.3 var(--serif); }
.unseen {
    position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap;
}
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }

header { display: flex; flex-wrap: wrap; align-items: baseline; gap: .1rem 1rem; padding: 1.75rem 0 1.25rem; }
header svg { align-self: center; margin-right: -.25rem; fill: var(--plate); stroke: var(--edge); }
header ellipse { fill: #c9ae8c; stroke: none; }
header p { color: var(--muted); font: italic 1.05rem/1.4 var(--serif); }
footer {
    margin: 3rem 0 2rem; padding-top: 1rem; border-top: 1px solid var(--rule); color: var(--muted);
    font-size: .85rem;
}

/* Controls */
label, .label { display: block; color: var(--muted); font-size: .8125rem; line-height: 1.4; }
label .value { float: right; color: var(--ink); }
input, select, button, textarea { font: inherit; color: inherit; }
input:is([type=text], [type=number]), select, textarea {
    display: block; width: 100%; min-height: 2.25rem; margin-top: .2rem; padding: .3rem .6rem;
    background: var(--raised); color: var(--ink); border: 1px solid var(--edge); border-radius: 2px;
    font-size: .9375rem;
}
input::placeholder { color: var(--muted); opacity: 1; }
input:is([type=text], [type=number]):user-invalid {
    border-color: var(--accent); box-shadow: 0 0 0 1px var(--accent);
}
input[type=range] { display: block; width: 100%; height: 1.75rem; margin: 0; accent-color: var(--accent); }
input[type=checkbox], input[type=radio] { accent-color: var(--accent); }
input[type=color] {
    width: 3.5rem; height: 2.25rem; padding: 3px;
    background: var(--raised); border: 1px solid var(--edge); border-radius: 2px;
}
.check {
    display: flex; align-items: center; gap: .5rem; min-height: 2.25rem; color: var(--ink); font-size: .9375rem;
}
.grid > .check { align-self: end; }
.check input:not([type=color]) { width: 1.05rem; height: 1.05rem; margin: 0; }
button, .button {
    display: inline-flex; align-items: center; justify-content: center; min-height: 2.25rem; padding: .3rem .9rem;
    background: transparent; border: 1px solid var(--edge); border-radius: 2px; color: var(--ink);
    font-size: .9375rem; cursor: pointer; white-space: nowrap;
}
:is(button, .button):hover { border-color: var(--accent); color: var(--accent); }
.primary { background: var(--accent); border-color: var(--accent); color: var(--on-accent); }
.primary:hover { background: var(--ink); border-color: var(--ink); color: var(--ground); }
.plain {
    min-height: 1.75rem; padding: .1rem .2rem; border-color: transparent; color: var(--muted);
    font-size: .875rem; text-decoration: underline; text-underline-offset: .2em;
}
.plain:hover { border-color: transparent; }

/* Source */
.source {
    display: grid; grid-template-columns: 1fr auto auto; gap: .5rem; align-items: end; padding-bottom: 1.5rem;
}
.source label.wide { grid-column: 1 / -1; margin-bottom: -.3rem; }
.source input[type=text] { min-height: 2.75rem; margin: 0; padding: .4rem .8rem; font-size: 1rem; }
.source :is(button, .button) { min-height: 2.75rem; padding-inline: 1.2rem; }
.button:has(:focus-visible) { outline: 2px solid var(--accent); outline-offset: 2px; }
.note { color: var(--muted); font-size: .875rem; }
footer code { white-space: nowrap; }
noscript p {
    margin-bottom: 1.25rem; padding: .6rem .9rem; border-left: 3px solid var(--accent);
    background: var(--raised); color: var(--ink);
}

/* The bench: the plate beside the options */
.bench { display: grid; grid-template-columns: minmax(0, 1fr) 19.5rem; gap: 2.25rem; align-items: start; }
.work { position: sticky; top: 1rem; }
.bar {
    display: flex; flex-wrap: wrap; align-items: center; justify-content: space-between; gap: .25rem 1rem;
    min-height: 2.25rem; margin-bottom: .5rem;
}
.choices { display: flex; flex-wrap: wrap; gap: 0 1.1rem; }
.choices label {
    position: relative; padding: .3rem 0; color: var(--muted); font-size: .875rem; cursor: pointer;
}
.choices input {
    position: absolute; inset: 0; width: 100%; height: 100%; margin: 0; opacity: 0; cursor: pointer;
}
.choices label:hover { color: var(--ink); }
.choices label:has(:checked) { color: var(--ink); box-shadow: 0 2px var(--accent); }
.choices label:has(:focus-visible) { outline: 2px solid var(--accent); outline-offset: 3px; }

.plate {
    --corner: 14px;
    --far: calc(100% - var(--corner));
    position: relative; display: grid; place-items: center; gap: 1.25rem; min-height: 22rem; padding: 1.75rem;
    overflow: hidden; background: var(--plate); color: var(--on-plate);
    clip-path: polygon(var(--corner) 0, var(--far) 0, 100% var(--corner), 100% var(--far), var(--far) 100%,
        var(--corner) 100%, 0 var(--far), 0 var(--corner));
}
.plate::before {
    content: ""; position: absolute; inset: 7px; border: 1px solid var(--plate-rule); pointer-events: none;
}
.plate .empty {
    max-width: 27rem; text-align: center; color: var(--plate-muted); font: italic 1.2rem/1.5 var(--serif);
}
.plate :focus-visible { outline-color: var(--safelight); }
.plate figure, .plate .slider {
    --tall: 56vh;
    position: relative; aspect-ratio: var(--ratio, 1);
    width: min(100%, var(--tall) * var(--ratio, 1), max(var(--width, 0) * 1px, 16rem));
}
.plate img { display: block; width: 100%; height: 100%; object-fit: fill; }
.plate img[data-fit=cover] { object-fit: cover; object-position: var(--place, 50% 50%); }
.plate img[data-fit=contain] { object-fit: contain; }
.plate img:not([src]) { visibility: hidden; }
.spot { position: relative; height: 100%; }
.after img { background: repeating-conic-gradient(#2c2622 0 25%, #211c19 0 50%) 0 0 / 16px 16px; }
.plate figcaption {
    position: absolute; bottom: .5rem; padding: .1rem .5rem; background: rgb(11 9 8 / .82); color: var(--on-plate);
    font: italic .875rem/1.5 var(--serif); pointer-events: none;
}
.before figcaption { left: .5rem; }
.after figcaption { right: .5rem; }
.plate[data-view=compare] > :is(figure, .slider) { grid-area: 1 / 1; }
.plate[data-view=compare] .before {
    z-index: 1; clip-path: inset(0 calc(100% - var(--split, 50%)) 0 0); background: var(--plate);
}
.plate[data-view=compare]:has(.after[hidden]) .before { clip-path: none; }
.plate[data-view=compare] .slider { z-index: 2; }
.plate[data-view=beside] { grid-template-columns: 1fr 1fr; }
.plate[data-view=beside] figcaption {
    position: static; padding: .35rem 0 0; background: none; color: var(--plate-muted);
}
.plate[data-view=beside] figure { aspect-ratio: auto; margin-block: auto; }
.plate[data-view=beside] figure img { height: auto; aspect-ratio: var(--ratio, 1); }
.plate[data-view=beside] .spot { height: auto; cursor: crosshair; }
.plate:not([data-view=compare]) .slider, .plate[data-view=result] .before { display: none; }
.plate.bare > :is(figure, .slider) { display: none; }
.plate:not(.bare) > .empty { display: none; }
.slider input {
    position: absolute; inset: 0; height: 100%; opacity: 0; cursor: ew-resize; appearance: none;
    touch-action: pan-y;
}
.slider input::-webkit-slider-thumb { appearance: none; width: 1px; height: 100%; }
.slider input::-moz-range-thumb { width: 1px; height: 100%; border: 0; }
.slider .line {
    position: absolute; inset: 0 auto 0 var(--split, 50%); width: 2px; margin-left: -1px;
    background: var(--on-plate); pointer-events: none;
}
.slider .line::after {
    content: "‹ ›"; position: absolute; top: 50%; left: 50%; width: 2.1rem; height: 2.1rem; translate: -50% -50%;
    border: 2px solid var(--on-plate); border-radius: 50%; background: rgb(11 9 8 / .7);
    font: 1.2rem/1.65rem var(--sans); text-align: center; white-space: nowrap;
}
.slider :focus-visible + .line { background: var(--safelight); }
.slider :focus-visible + .line::after {
    border-color: var(--safelight); outline: 2px solid var(--safelight); outline-offset: 3px;
}
.mark { position: absolute; left: var(--x); top: var(--y); width: 1.5rem; height: 1.5rem; translate: -50% -50%;
    border: 2px solid var(--safelight); border-radius: 50%;
    box-shadow: 0 0 0 1.5px #0b0908, inset 0 0 0 1.5px #0b0908;
    pointer-events: none; }
.plate:not([data-view=beside]) .mark { display: none; }
.plate::after {
    content: ""; position: absolute; z-index: 4; left: 0; bottom: 0; width: 100%; height: 3px;
    background: var(--safelight); scale: 0 1; transform-origin: left;
}
.plate[aria-busy=true]::after { scale: .9 1; transition: scale 4s cubic-bezier(.1, .7, .3, 1) .15s; }
.plate[aria-busy=true] .after img { opacity: .8; }
.plate.dropping { box-shadow: inset 0 0 0 3px var(--safelight); }
@keyframes develop { from { filter: brightness(.45) sepia(.7); } }
.after img.fresh { animation: develop .45s ease-out; }
#status { margin-top: .75rem; }
#status.error {
    padding: .6rem .9rem; border-left: 3px solid var(--accent); background: var(--raised);
    overflow-wrap: anywhere;
}

.figures {
    display: grid; grid-template-columns: repeat(auto-fit, minmax(7.5rem, 1fr)); gap: 1rem 1.5rem;
    margin-top: 1rem;
}
.figures dt { color: var(--muted); font-size: .8125rem; }
.figures dd { font: 1.45rem/1.25 var(--serif); font-variant-numeric: lining-nums; white-space: nowrap; }
.figures dd small {
    display: block; min-height: 1.4em; color: var(--muted); font: .8125rem/1.4 var(--sans); white-space: normal;
}

/* Options */
.grid { display: grid; grid-template-columns: 1fr 1fr; gap: .75rem; }
.grid > .wide { grid-column: 1 / -1; }
details { border-top: 1px solid var(--rule); }
details:last-of-type { border-bottom: 1px solid var(--rule); }
summary {
    display: flex; align-items: center; gap: .6rem; padding: .55rem .1rem; font: 1.0625rem/1.4 var(--serif);
    cursor: pointer; list-style: none;
}
summary::-webkit-details-marker { display: none; }
summary::before {
    content: ""; width: .45rem; height: .45rem; border: solid var(--muted); border-width: 0 1.5px 1.5px 0;
    rotate: -45deg; transition: rotate .15s;
}
[open] > summary::before { rotate: 45deg; translate: 0 -.15rem; }
summary:hover { color: var(--accent); }
summary .count { margin-left: auto; color: var(--accent); font: .8125rem/1 var(--sans); }
details > fieldset, details > div { padding: .1rem .1rem 1.1rem; }
details:has(> fieldset:disabled) { display: none; }
.compass { display: grid; grid-template-columns: repeat(3, 2.25rem); gap: 3px; }
.compass input {
    appearance: none;
    width: 100%; height: 2.25rem; margin: 0; border: 1px solid var(--edge); background: var(--raised);
    border-radius: 2px; cursor: pointer;
}
.compass input:checked {
    background: var(--accent); border-color: var(--accent); box-shadow: inset 0 0 0 4px var(--raised);
}
.gravity { display: flex; gap: 1.25rem; align-items: center; margin-top: .3rem; }

/* URL and code */
.output {
    display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1fr); gap: 2rem 2.25rem; margin-top: 2.5rem;
    padding-top: 1.25rem; border-top: 1px solid var(--rule);
}
.copyable {
    display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: .2rem .5rem; align-items: start;
    margin-bottom: .9rem;
}
.copyable label { grid-column: 1 / -1; }
textarea {
    margin: 0; resize: vertical; font: .8125rem/1.5 var(--mono); overflow-wrap: anywhere; word-break: break-all;
    field-sizing: content;
}
pre {
    margin: 0; padding: .9rem 1rem; white-space: pre-wrap; overflow-wrap: anywhere;
    background: var(--raised); border: 1px solid var(--rule); border-radius: 2px; font: .8125rem/1.6 var(--mono);
}

@media (max-width: 60rem) {
    .bench, .output { display: block; }
    .work { display: contents; }
    .plate {
        position: sticky; top: 0; z-index: 5; min-height: 11rem; padding: 1rem; gap: .75rem;
        margin-inline: -1rem; --corner: 0px;
    }
    .plate figure, .plate .slider { --tall: 34vh; }
    .plate figure { max-width: 100%; }
    html { scroll-padding-top: calc(34vh + 4rem); }
    .figures { grid-template-columns: repeat(3, minmax(0, 1fr)); gap: .75rem .6rem; }
    .figures dd { font-size: 1.15rem; }
    .figures small { font-size: .75rem; }
    .plate::before { display: none; }
    .options { margin-top: 2rem; }
    .output > section + section { margin-top: 1.75rem; }
}
@media (max-width: 32rem) {
    .source { grid-template-columns: 1fr 1fr; }
    .source input[type=text] { grid-column: 1 / -1; }
    h1 { font-size: 1.8rem; }
    header { padding: 1.1rem 0 .9rem; }
}
@media (prefers-reduced-motion: reduce) {
    *, *::before, *::after { animation: none !important; transition: none !important; }
}
@media (forced-colors: active) {
    .compass input:checked { forced-color-adjust: none; }
    .choices label:has(:checked) { border-bottom: 2px solid; }
}
</style>
</head>
<body>
<div class="page">
<header>
    <svg width="28" height="32" viewBox="0 0 28 32" aria-hidden="true">
        <path d="M4 .5h20L27.5 4v24L24 31.5H4L.5 28V4z"/><ellipse cx="14" cy="16" rx="7.5" ry="10"/>
    </svg>
    <h1>Tintype</h1>
    <p>Images, developed on request.</p>
</header>
<main>
<noscript><p>Without JavaScript this form opens the image that it describes. File uploads, the comparison and the
code need JavaScript.</p></noscript>
<section class="source" aria-label="Source">
    <label class="wide" for="url">Image URL</label>
    <input type="text" id="url" name="url" form="options" inputmode="url" required autocomplete="off"
        autocapitalize="off" spellcheck="false" placeholder="https://example.com/photograph.jpg" maxlength="4096">
    <label class="button scripted" hidden>
        <input class="unseen" type="file" id="file" accept="image/*">Choose a file
    </label>
    <button class="primary" form="options">Develop</button>
</section>
<div class="bench">
<div class="work scripted" hidden>
    <div class="bar">
        <h2 id="result">Result</h2>
        <fieldset class="choices" id="views">
            <legend class="unseen">View</legend>
            <label><input type="radio" name="view" value="compare" checked>Slider</label>
            <label><input type="radio" name="view" value="beside">Side by side</label>
            <label><input type="radio" name="view" value="result">Result only</label>
        </fieldset>
    </div>
    <div class="plate bare" id="plate" data-view="compare" role="group" aria-labelledby="result">
        <p class="empty">Enter the URL of an image, or drop a file here.</p>
        <figure class="before" id="before">
            <div class="spot" id="spot">
                <img alt="The original image">
                <span class="mark" id="mark" hidden></span>
            </div>
            <figcaption>Original</figcaption>
        </figure>
        <figure class="after" id="after">
            <img alt="The resulting image">
            <figcaption>Result</figcaption>
        </figure>
        <div class="slider">
            <input type="range" id="split" min="0" max="100" step="any" value="50"
                aria-label="Share of the original that is visible">
            <span class="line"></span>
        </div>
    </div>
    <div>
        <p id="status" role="status" class="unseen"></p>
        <dl class="figures" id="figures" hidden>
            <div><dt>Size</dt><dd id="bytes"></dd></div>
            <div><dt>Saved</dt><dd id="saved"></dd></div>
            <div><dt>Dimensions</dt><dd id="dimensions"></dd></div>
            <div><dt>Format</dt><dd id="format"></dd></div>
            <div><dt>Time</dt><dd id="time"></dd></div>
            <div><dt>Served from</dt><dd id="cache"></dd></div>
        </dl>
    </div>
</div>
<form class="options" id="options" action="./" method="get" aria-labelledby="options-title">
    <div class="bar">
        <h2 id="options-title">Options</h2>
        <button class="plain scripted" type="button" id="restore" hidden>Reset</button>
    </div>
    <details open>
        <summary>Size <span class="count"></span></summary>
        <div class="grid">
            <label>Width<input type="number" name="w" min="0" max="8192" placeholder="auto"></label>
            <label>Height<input type="number" name="h" min="0" max="8192" placeholder="auto"></label>
            <label class="wide">Resizing type
                <select name="rt">
                    <option value="fit">Fit inside</option>
                    <option value="fill">Fill and crop</option>
                    <option value="fill-down">Fill, never enlarge</option>
                    <option value="force">Force, ignore proportions</option>
                    <option value="auto">Automatic: fit or fill</option>
                </select>
            </label>
            <label>Pixel ratio<input type="number" name="dpr" min="0.1" max="8" step="any" placeholder="1"></label>
            <label class="check"><input type="checkbox" name="el" value="1">Enlarge</label>
        </div>
    </details>
    <details open>
        <summary>Output <span class="count"></span></summary>
        <div class="grid">
            <label>Format
                <select name="f">
                    <option value="">Automatic</option>
                    <option value="jpg">JPEG</option>
                    <option value="png">PNG</option>
                    <option value="webp">WebP</option>
                    <option value="gif">GIF</option>
                </select>
            </label>
            <label>Maximum bytes<input type="number" name="mb" min="0" placeholder="none"></label>
            <label class="wide">Quality<input type="range" name="q" max="100" value="0" data-zero="default"></label>
        </div>
    </details>
    <details>
        <summary id="crop-title">Crop and gravity <span class="count"></span></summary>
        <fieldset disabled class="grid" aria-labelledby="crop-title">
            <label>Crop width<input type="number" name="cw" min="0" step="any" placeholder="full"></label>
            <label>Crop height<input type="number" name="ch" min="0" step="any" placeholder="full"></label>
            <p class="wide note">Below 1: a fraction of the image.</p>
            <fieldset class="wide">
                <legend class="label">Gravity</legend>
                <div class="gravity">
                    <div class="compass">
                        <input type="radio" name="g" value="nowe" aria-label="North-west">
                        <input type="radio" name="g" value="no" aria-label="North">
                        <input type="radio" name="g" value="noea" aria-label="North-east">
                        <input type="radio" name="g" value="we" aria-label="West">
                        <input type="radio" name="g" value="ce" aria-label="Centre" checked>
                        <input type="radio" name="g" value="ea" aria-label="East">
                        <input type="radio" name="g" value="sowe" aria-label="South-west">
                        <input type="radio" name="g" value="so" aria-label="South">
                        <input type="radio" name="g" value="soea" aria-label="South-east">
                    </div>
                    <div>
                        <label class="check"><input type="radio" name="g" value="sm">Smart</label>
                        <label class="check"><input type="radio" name="g" value="fp">Focus point</label>
                    </div>
                </div>
            </fieldset>
            <label>Focus, horizontal<input type="number" name="fx" min="0" max="1" step="0.01" value="0.5"></label>
            <label>Focus, vertical<input type="number" name="fy" min="0" max="1" step="0.01" value="0.5"></label>
            <p class="wide note">To set the focus point, click the original in the view side by side.</p>
        </fieldset>
    </details>
    <details>
        <summary id="adjust-title">Adjust <span class="count"></span></summary>
        <fieldset disabled class="grid" aria-labelledby="adjust-title">
            <label>Rotate
                <select name="rot">
                    <option value="0">No</option>
                    <option value="90">90° clockwise</option>
                    <option value="180">180°</option>
                    <option value="270">90° anticlockwise</option>
                </select>
            </label>
            <div>
                <label class="check"><input type="checkbox" name="fh" value="1">Flip horizontally</label>
                <label class="check"><input type="checkbox" name="fv" value="1">Flip vertically</label>
            </div>
            <label class="wide">Blur<input type="range" name="bl" max="30" step="0.5" value="0"></label>
            <label class="wide">Sharpen<input type="range" name="sh" max="10" step="0.1" value="0"></label>
            <label class="wide">Pixelate<input type="range" name="pix" max="64" value="0"></label>
        </fieldset>
    </details>
    <details>
        <summary id="canvas-title">Canvas <span class="count"></span></summary>
        <fieldset disabled class="grid" aria-labelledby="canvas-title">
            <label class="wide">Padding: top, right, bottom, left<input type="text" name="pd" inputmode="numeric"
                pattern="\s*\d{1,5}([\s,]+\d{1,5}){0,3}\s*" placeholder="20 or 10 20 10 20"></label>
            <label class="check"><input type="checkbox" name="bg" value="1">Background</label>
            <label class="check">Colour<input type="color" name="bgc" value="#ffffff"></label>
            <label class="wide">Trim threshold
                <input type="number" name="t" min="0" step="any" placeholder="off">
            </label>
        </fieldset>
    </details>
    <details>
        <summary id="more-title">Presets and other options <span class="count"></span></summary>
        <fieldset disabled class="grid" aria-labelledby="more-title">
            <label class="wide">Presets<input type="text" name="pr" autocapitalize="off" spellcheck="false"
                placeholder="names, by commas"></label>
            <label class="wide">Other options<input type="text" name="more" autocapitalize="off" spellcheck="false"
                placeholder="z:2/mw:100"></label>
        </fieldset>
    </details>
</form>
</div>
<div class="output" id="output" hidden>
<section aria-labelledby="url-title">
    <div class="bar"><h2 id="url-title">URL</h2></div>
    <div class="copyable">
        <label for="path">Path, without its signature</label>
        <textarea id="path" rows="2" readonly></textarea><button type="button" data-copy="path"
            aria-label="Copy the path">Copy</button>
    </div>
    <div class="copyable">
        <label for="address">Complete URL</label>
        <textarea id="address" rows="3" readonly></textarea><button type="button" data-copy="address"
            aria-label="Copy the complete URL">Copy</button>
    </div>
    <p class="note" id="upload-note" hidden>The server keeps an uploaded image for some minutes only. Programs need an
    image with a URL of its own.</p>
</section>
<section aria-labelledby="code-title">
    <div class="bar">
        <h2 id="code-title">Code</h2>
        <fieldset class="choices" id="languages">
            <legend class="unseen">Language</legend>
            <label><input type="radio" name="language" value="shell" checked>curl and HTML</label>
            <label><input type="radio" name="language" value="python">Python</label>
            <label><input type="radio" name="language" value="typescript">TypeScript</label>
        </fieldset>
    </div>
    <div class="copyable">
        <pre><code id="code"></code></pre>
        <button type="button" data-copy="code" aria-label="Copy the code">Copy</button>
    </div>
</section>
</div>
</main>
<footer>This page is for trying options out. The server offers it on loopback, or if it was started with
<code>--ui</code>.</footer>
</div>
<script type="module">
const find = id => document.getElementById(id)
const form = find("options"), plate = find("plate"), status = find("status")
const before = find("before"), after = find("after")
const field = name => form.elements[name]
const text = name => field(name).value.trim()

// Every control has its default in the HTML.
const controls = [...form.elements].filter(control => control.name)
const isSet = control =>
    control.matches("[type=checkbox], [type=radio]") ? control.checked !== control.defaultChecked && control.checked
    : control.matches("select") ? control.selectedIndex > 0
    : control.value.trim() !== control.defaultValue

// ---- The path ----

/** Percent-encodes every character that a URL, a shell or HTML could take for its own. */
const escape = (value, kept = "") => value.toWellFormed().replace(
    new RegExp(`[^\\w\\-.~/:$&,;=+!${kept}]`, "gu"),
    character => encodeURIComponent(character)
        .replace(/['()*]/, mark => "%" + mark.charCodeAt(0).toString(16).toUpperCase()))

/** Escapes a source. Browsers would resolve dot segments, and the server would repair `:/`. */
function escapeSource(source) {
    const escaped = escape(source).replace(/:(?=\/[^/])/g, "%3A")
    return /\/\.\.?(\/|$)/.test(escaped) ? escaped.replaceAll("/", "%2F") : escaped
}

/** Returns the options as they stand in the URL, except for the format. */
function options() {
    const list = []
    const add = (name, ...values) => list.push([name, ...values].join(":"))
    const presets = text("pr").split(/[\s,:]+/).filter(Boolean)
    if (presets.length) add("pr", ...presets)
    for (const name of ["rt", "w", "h", "el", "dpr"]) if (isSet(field(name))) add(name, text(name))
    if (text("cw") || text("ch")) add("c", text("cw") || 0, text("ch") || 0)
    const gravity = field("g").value
    if (gravity === "fp") add("g", "fp", text("fx") || 0.5, text("fy") || 0.5)
    else if (gravity !== "ce") add("g", gravity)
    if (text("t")) add("t", text("t"))
    if (isSet(field("rot"))) add("rot", text("rot"))
    if (field("fh").checked || field("fv").checked) add("fl", +field("fh").checked, +field("fv").checked)
    for (const name of ["bl", "sh", "pix"]) if (isSet(field(name))) add(name, text(name))
    if (text("pd")) add("pd", ...text("pd").split(/[\s,]+/))
    if (field("bg").checked) add("bg", field("bgc").value.slice(1))
    for (const name of ["q", "mb"]) if (isSet(field(name))) add(name, text(name))
    list.push(...text("more").split("/").filter(Boolean))
    return list.map(option => escape(option, "%"))
}

const join = (list, source, format) =>
    ["", ...list, "plain", escapeSource(source)].join("/") + (format ? "@" + format : "")

/** Resolves a path of the server. The page need not be at the root of its host. */
const resolve = path => new URL("." + path, document.baseURI.split(/[?#]/)[0]).href

// ---- The server ----

let isSigned = true

/** Asks the server to sign a path. A server without keys has no signatures, and takes `unsafe`. */
async function sign(path, signal) {
    if (isSigned) {
        const answer = await fetch(resolve("/sign"), { method: "POST", body: path, signal })
        if (answer.status !== 404) {
            if (!answer.ok) throw await refusal(answer)
            const signed = (await answer.text()).trim()
            if (!/^\/(unsafe|insecure)\//.test(signed)) return signed
        }
        isSigned = false
    }
    return "/unsafe" + path
}

/** Makes an error of an answer. */
async function refusal(answer) {
    const body = (await answer.text()).trim().slice(0, 500)
    const wait = answer.headers.get("Retry-After"), identifier = answer.headers.get("X-Request-ID")
    return new Error([
        `${answer.status}: ${body || answer.statusText || "The server gave no reason"}`.replace(/([^.!?])$/, "$1."),
        wait && `Try again in ${wait} s.`,
        answer.status === 404 && text("url").startsWith("upload:") && "An upload expires. Choose the file again.",
        identifier && `Request ${identifier}.`,
    ].filter(Boolean).join(" "))
}

const accept = "image/avif,image/webp,image/apng,image/*,*/*;q=0.8"

/** Requests a path. The answer comes from the server even if the browser has it. */
async function request(path, signal) {
    const answer = await fetch(resolve(path), { signal, cache: "no-store", headers: { Accept: accept } })
    if (!answer.ok) throw await refusal(answer)
    return answer
}

// ---- What the page shows ----

function say(message, isError = false) {
    status.textContent = message
    status.className = isError ? "error" : "unseen"
}

const describe = error =>
    error instanceof TypeError ? "The server does not answer. Check that it is running." : error.message

const units = [[1e6, "MB"], [1e3, "kB"], [1, "B"]]
function formatBytes(count) {
    const [size, unit] = units.find(([size]) => count >= size) ?? units[2]
    return (count / size).toLocaleString("en", { maximumSignificantDigits: size > 1 ? 3 : 21 }) + "\u00a0" + unit
}
const formatTime = milliseconds => {
    const precision = milliseconds < 10 ? { maximumSignificantDigits: 2 } : { maximumFractionDigits: 0 }
    return milliseconds.toLocaleString("en", precision) + "\u00a0ms"
}
const formatSize = (width, height) => `${width}\u00a0×\u00a0${height}`
const formatNames = { jpg: "JPEG", jpeg: "JPEG", png: "PNG", apng: "APNG", webp: "WebP", gif: "GIF", avif: "AVIF",
    heic: "HEIC", tiff: "TIFF", bmp: "BMP", jxl: "JPEG XL", ico: "ICO" }
const formatName = name => {
    const short = name?.replace(/^image\/(x-)?/, "").split(/[+;]/)[0].toLowerCase() ?? ""
    return formatNames[short] ?? short.toUpperCase()
}

function figure(id, value, detail = "") {
    const small = document.createElement("small")
    small.textContent = detail
    find(id).replaceChildren(value || "–", small)
}

/** Shows the bytes of an image once the browser has decoded them. Returns false if it cannot. */
async function show(place, blob, signal) {
    const address = URL.createObjectURL(blob), image = place.querySelector("img"), next = new Image()
    next.src = address
    const size = await next.decode().then(() => [next.naturalWidth, next.naturalHeight], () => null)
    if (signal.aborted || !size) {
        URL.revokeObjectURL(address)
        if (!signal.aborted) image.removeAttribute("src")
        return size
    }
    URL.revokeObjectURL(image.src)
    image.src = address
    image.classList.remove("fresh")
    requestAnimationFrame(() => image.classList.add("fresh"))
    return size
}

let original = {}, result = {}

/** Gives both images their places. With the slider, both fill the frame of the result. */
function arrange() {
    const view = plate.dataset.view = document.querySelector("[name=view]:checked").value
    const frame = (element, { width, height }) => {
        if (!width) return
        element.style.setProperty("--ratio", width / height)
        element.style.setProperty("--width", width)
    }
    const isCompared = view === "compare"
    frame(after, result)
    frame(plate.querySelector(".slider"), result)
    frame(before, isCompared && result.width ? result : original)
    const image = before.querySelector("img")
    const isMoved = ["cw", "ch", "t", "pd", "more", "pr"].some(text) || isSet(field("rot")) || field("fh").checked ||
        field("fv").checked
    const isCut = text("rt") !== "fit" && text("rt") !== "force"
    image.dataset.fit = !isCompared || !isMoved && !isCut ? "fill" : isMoved ? "contain" : "cover"
    image.style.setProperty("--place", isCut ? placeOfCut() : "50% 50%")
    plate.classList.toggle("bare", !original.width && !result.width)
    before.hidden = !original.width
    after.hidden = !result.width
    plate.querySelector(".slider").hidden = !original.width || !result.width
    const isFocused = field("g").value === "fp"
    find("mark").hidden = !isFocused
    const [x, y] = unturn(+text("fx"), +text("fy"))
    find("mark").style.setProperty("--x", x * 100 + "%")
    find("mark").style.setProperty("--y", y * 100 + "%")
}

/** Returns which part of the original a filled result shows, as a CSS position. */
function placeOfCut() {
    const gravity = field("g").value
    if (gravity !== "fp") {
        const x = /we$/.test(gravity) ? 0 : /ea$/.test(gravity) ? 100 : 50
        const y = /^no/.test(gravity) ? 0 : /^so/.test(gravity) ? 100 : 50
        return `${x}% ${y}%`
    }
    const scale = Math.max(result.width / original.width, result.height / original.height)
    const along = (focus, whole, part) => {
        const rest = whole * scale - part
        return rest < 0.5 ? 50 : 100 * Math.min(Math.max((focus * whole * scale - part / 2) / rest, 0), 1)
    }
    const x = along(+text("fx"), original.width, result.width), y = along(+text("fy"), original.height, result.height)
    return `${x}% ${y}%`
}

/** Maps a point of the original to the rotated and flipped image, to which gravity applies. */
function turn(x, y) {
    for (let angle = +text("rot"); angle > 0; angle -= 90) [x, y] = [1 - y, x]
    return [field("fh").checked ? 1 - x : x, field("fv").checked ? 1 - y : y]
}
function unturn(x, y) {
    if (field("fh").checked) x = 1 - x
    if (field("fv").checked) y = 1 - y
    for (let angle = +text("rot"); angle > 0; angle -= 90) [x, y] = [y, 1 - x]
    return [x, y]
}

// ---- Loading ----

let loading = new AbortController(), loadingOriginal = new AbortController(), file = null

/** Loads the original, once for each source. A file of the user is shown as it is. */
async function loadOriginal(source) {
    if (original.source === source) return
    loadingOriginal.abort()
    const { signal } = loadingOriginal = new AbortController()
    const loaded = { source }
    original = loaded
    before.querySelector("img").removeAttribute("src")
    const local = file?.source === source ? file.blob : null
    const information = sign(join([], source), signal)
        .then(path => request("/info" + path, signal)).then(answer => answer.json()).catch(() => ({}))
    try {
        const blob = local ?? await sign(join(["raw:1"], source), signal)
            .then(path => request(path, signal)).then(answer => answer.blob())
        loaded.bytes = blob.size
        const size = await show(before, blob, signal)
        const { width, height, format } = await information
        if (signal.aborted) return
        const [shownWidth, shownHeight] = size ?? [width, height]
        Object.assign(loaded, { width: shownWidth, height: shownHeight, format: formatName(format ?? blob.type) })
        if (!size && result.blob) say("The browser cannot show the format of the original.")
    } catch {
        // The result's own request reports what is wrong with the source.
        if (signal.aborted) return
        original = {}
    }
    arrange()
    report()
}

/** Writes the figures of the result, compared with the original. */
function report() {
    find("figures").hidden = !result.blob
    if (!result.blob) return
    const saved = original.bytes ? 1 - result.blob.size / original.bytes : null
    figure("bytes", formatBytes(result.blob.size), original.bytes ? `of ${formatBytes(original.bytes)}` : "")
    const percent = Math.round(Math.abs(saved) * 100) + "\u00a0%"
    figure("saved", saved === null ? "" : saved < 0 ? "nothing" : percent, saved < 0 ? percent + " larger" : "")
    figure("dimensions", formatSize(result.width, result.height),
        original.width ? `of ${formatSize(original.width, original.height)}` : "")
    figure("format", result.format, original.format ? `from ${original.format}` : "")
    figure("time", formatTime(result.serverTime ?? result.time),
        result.serverTime === undefined ? "" : `${formatTime(result.time)} in all`)
    figure("cache", result.cache)
}

/** Forgets the result of an earlier source. */
function clear() {
    result = {}
    after.querySelector("img").removeAttribute("src")
    arrange()
    report()
}

/** Requests the image that the controls describe, in place of an earlier request. */
async function develop() {
    loading.abort()
    const { signal } = loading = new AbortController()
    const source = text("url")
    remember()
    if (!source) return plate.setAttribute("aria-busy", "false")
    const wrong = form.querySelector("input:invalid")
    if (wrong) return say(`${wrong.labels[0].firstChild.textContent.trim()}: ${wrong.validationMessage}`, true)
    const list = options(), format = text("f"), path = join(list, source, format)
    plate.setAttribute("aria-busy", "true")
    try {
        const signed = await sign(path, signal)
        address = { list, source, format, path, signed }
        writeAddress()
        loadOriginal(source)
        const start = performance.now()
        const answer = await request(signed, signal)
        const blob = await answer.blob(), time = performance.now() - start
        const size = await show(after, blob, signal)
        if (signal.aborted) return
        const header = name => answer.headers.get(name)
        const total = /\btotal;dur=([\d.]+)/.exec(header("Server-Timing"))
        result = {
            blob, time, serverTime: total ? +total[1] : undefined, cache: header("X-Cache") ?? "",
            width: +header("X-Result-Width") || size?.[0] || 0, height: +header("X-Result-Height") || size?.[1] || 0,
            format: formatName(header("Content-Type")), source,
        }
        arrange()
        report()
        writeCode()
        if (!size) throw new Error("The browser cannot show the format of the result.")
        const origin = result.cache ? `, from ${result.cache}` : ""
        say(`${formatSize(result.width, result.height)} ${result.format}, ${formatBytes(blob.size)}${origin}.`)
    } catch (error) {
        if (signal.aborted) return
        say(describe(error), true)
        if (result.source !== source) clear()
    } finally {
        if (!signal.aborted) plate.setAttribute("aria-busy", "false")
    }
}

let timer
function schedule(delay = 300) {
    clearTimeout(timer)
    timer = setTimeout(develop, delay)
}

/** Uploads a file, which then has a URL like any other image. */
async function upload(blob) {
    if (blob.size > 32_000_000) return say(`The file has ${formatBytes(blob.size)}. The limit is 32 MB.`, true)
    loading.abort()
    const { signal } = loading = new AbortController()
    plate.setAttribute("aria-busy", "true")
    say(`Uploading ${formatBytes(blob.size)}.`)
    try {
        const answer = await fetch(resolve("/upload"), {
            method: "POST", body: blob, signal, headers: { "Content-Type": blob.type || "application/octet-stream" },
        })
        if (!answer.ok) throw await refusal(answer)
        const { source } = await answer.json()
        file = { source, blob }
        field("url").value = source
        develop()
    } catch (error) {
        if (signal.aborted) return
        plate.setAttribute("aria-busy", "false")
        say(describe(error), true)
    }
}

// ---- URL and code ----

let address = null

function writeAddress() {
    find("output").hidden = false
    find("path").value = address.path
    find("address").value = resolve(address.signed)
    find("upload-note").hidden = !address.source.startsWith("upload:")
    writeCode()
}

const quote = JSON.stringify

const languages = {
    shell({ signed }) {
        const url = resolve(signed)
        const size = result.width ? ` width="${result.width}" height="${result.height}"` : ""
        return `curl --output image.${(result.format || "jpeg").toLowerCase()} '${url}'\n\n` +
            `<img src="${url.replaceAll("&", "&amp;")}"${size} alt="">`
    },
    python({ list, source, format, signed }) {
        // The client always writes `rs` and `g` last. Empty arguments keep what presets and other options say.
        const given = name => list.findLast(option => option.startsWith(name + ":"))?.slice(name.length + 1)
        const others = list.filter(option => !/^(rt|w|h|el|g):/.test(option))
        const unset = text("pr") || text("more") ? '""' : null
        const signature = signed.split("/")[1]
        const lines = [
            `    ${quote(source)},`,
            `    proxy_host=${quote(resolve("").replace(/\/$/, ""))},`,
            isSigned && '    key=os.environ["IMGPROXY_KEY"],\n    salt=os.environ["IMGPROXY_SALT"],',
            `    resizing_type=${given("rt") ? quote(given("rt")) : unset ?? '"fit"'},`,
            (given("w") || unset) && `    width=${given("w") ?? unset},`,
            (given("h") || unset) && `    height=${given("h") ?? unset},`,
            given("g") && `    gravity=${quote(given("g"))},`,
            given("el") && "    enlarge=True,",
            format && `    extension=${quote(format)},`,
            others.length && `    advanced=[${others.map(quote).join(", ")}],`,
        ]
        return `${isSigned ? "import os\n\n" : ""}from imgproxy import ImgProxy  # pip install imgproxy\n\n` +
            (isSigned && signature.length < 43 ? "# This client cannot shorten signatures.\n" : "") +
            `image = ImgProxy(\n${lines.filter(Boolean).join("\n")}\n)\nprint(image)`
    },
    typescript({ list, source, format, signed }) {
        const host = quote(resolve("").replace(/\/$/, "") + (isSigned ? "/" : "/unsafe"))
        const count = Math.floor(signed.split("/")[1].length * 3 / 4)
        return (isSigned ? 'import { createHmac } from "node:crypto";\n\n' : "") +
            `const options = ${list.length ? `[${list.map(quote).join(", ")}]` : "[] as string[]"};\n` +
            `const source = encodeURIComponent(${quote(source)});\n` +
            `const path = ["", ...options, "plain", source].join("/")${format ? ` + "@${format}"` : ""};\n` +
            (isSigned ? 'const bytes = (name: string) => Buffer.from(process.env[name]!, "hex");\n' +
                'const signature = createHmac("sha256", bytes("IMGPROXY_KEY"))\n' +
                '    .update(bytes("IMGPROXY_SALT")).update(path)\n' +
                `    .digest()${count < 32 ? `.subarray(0, ${count})` : ""}.toString("base64url");\n` : "") +
            `\nconst answer = await fetch(${host} + ${isSigned ? "signature + " : ""}path);\n` +
            "const image = await answer.arrayBuffer();"
    },
}

function writeCode() {
    const language = document.querySelector("[name=language]:checked").value
    find("code").textContent = address ? languages[language](address) : ""
}

async function copy(button) {
    const place = find(button.dataset.copy), value = place.value ?? place.textContent
    // Only secure origins have a clipboard: HTTPS and loopback.
    if (navigator.clipboard) await navigator.clipboard.writeText(value)
    else {
        getSelection().selectAllChildren(place)
        place.select?.()
        document.execCommand("copy")
        button.focus()
    }
    button.textContent = "Copied"
    say("Copied.")
    setTimeout(() => button.textContent = "Copy", 1500)
}

// ---- State and events ----

/** Keeps the controls in the fragment of the page's address, so that it survives reloads and can be shared. */
function remember() {
    const set = new URLSearchParams()
    for (const control of controls) if (isSet(control)) set.set(control.name, control.value.trim())
    history.replaceState(null, "", "#" + set)
}

function recall() {
    for (const [name, value] of new URLSearchParams(location.hash.slice(1))) {
        const found = controls.filter(control => control.name === name)
        for (const control of found) {
            if (control.matches("[type=checkbox], [type=radio]")) control.checked = control.value === value
            else control.value = value
        }
        found[0]?.closest("details")?.setAttribute("open", "")
    }
}

/** Shows the values of the sliders, and how many options of a group are set. */
function annotate() {
    for (const slider of form.querySelectorAll("[type=range]")) {
        const value = slider.value === "0" ? slider.dataset.zero ?? "off" : slider.value
        slider.previousElementSibling.textContent = value
        slider.setAttribute("aria-valuetext", value)
    }
    for (const group of form.querySelectorAll("details")) {
        // The focus point counts with its gravity, and the colour with its background.
        const count = controls.filter(control =>
            group.contains(control) && isSet(control) && !["fx", "fy", "bgc"].includes(control.name)).length
        group.querySelector(".count").textContent = count ? `${count} set` : ""
    }
}

function change(delay) {
    annotate()
    if (result.width) arrange()
    schedule(delay)
}

for (const element of document.querySelectorAll(".scripted")) element.hidden = false
for (const element of form.querySelectorAll("fieldset:disabled")) element.disabled = false
for (const slider of form.querySelectorAll("[type=range]")) {
    // The slider says its value itself.
    slider.before(Object.assign(document.createElement("span"), { className: "value", ariaHidden: "true" }))
}

form.addEventListener("submit", event => {
    event.preventDefault()
    change(0)
})
form.addEventListener("input", event => {
    if (event.target.name === "url") return
    if (["fx", "fy"].includes(event.target.name)) form.elements.g.value = "fp"
    if (event.target.name === "bgc") field("bg").checked = true
    if (event.target.name === "g" && field("g").value === "fp") {
        document.querySelector("[name=view][value=beside]").checked = true
        arrange()
    }
    change()
})
field("url").addEventListener("change", () => change(0))
field("url").addEventListener("paste", event => {
    if (!event.clipboardData.files.length) setTimeout(() => change(0))
})
find("restore").addEventListener("click", () => {
    const source = field("url").value
    form.reset()
    field("url").value = source
    change(0)
})
find("file").addEventListener("change", event => {
    if (event.target.files[0]) upload(event.target.files[0])
    event.target.value = ""
})
find("views").addEventListener("change", arrange)
find("languages").addEventListener("change", writeCode)
find("split").addEventListener("input", event => {
    plate.style.setProperty("--split", event.target.value + "%")
    event.target.setAttribute("aria-valuetext", Math.round(event.target.value) + " %")
})
find("spot").addEventListener("click", event => {
    if (plate.dataset.view !== "beside") return
    const box = before.querySelector("img").getBoundingClientRect()
    const share = (position, start, length) => Math.min(Math.max((position - start) / length, 0), 1)
    const [x, y] = turn(share(event.clientX, box.left, box.width), share(event.clientY, box.top, box.height))
    form.elements.g.value = "fp"
    field("fx").value = x.toFixed(2)
    field("fy").value = y.toFixed(2)
    change(0)
})
for (const button of document.querySelectorAll("[data-copy]")) button.addEventListener("click", () => copy(button))

const isDropped = event => event.dataTransfer.types.includes("Files")
addEventListener("dragover", event => {
    if (!isDropped(event)) return
    event.preventDefault()
    plate.classList.add("dropping")
})
addEventListener("dragleave", event => {
    if (!event.relatedTarget) plate.classList.remove("dropping")
})
addEventListener("drop", event => {
    if (!isDropped(event)) return
    event.preventDefault()
    plate.classList.remove("dropping")
    if (event.dataTransfer.files[0]) upload(event.dataTransfer.files[0])
})
addEventListener("paste", event => {
    if (event.clipboardData.files[0]) upload(event.clipboardData.files[0])
})

recall()
annotate()
arrange()
if (text("url")) develop()
</script>
</body>
</html>

"""##
}
