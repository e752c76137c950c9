// What of the page's text cannot be read: a sentence for each word that is broken between letters in a table, is cut off
// or lies beyond the window with no box to scroll it into view, for each image that is not shown, and one if the page
// itself scrolls sideways.
const faults = [];
const fault = (what, word, element) => faults.push(
  `${what}: "${word}" in <${element.tagName.toLowerCase()}> of ${element.closest("[id]")?.id ?? "the page"}`);

for (const closed of document.querySelectorAll("details")) closed.open = true;

// Between two ideographs, and beside hyphens, slashes and the like, a browser may break a line.
const WORD = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}]|(?:(?![\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}])[\p{L}\p{N}_.,:'%+[\]])+/gu;

const clips = (value) => value === "hidden" || value === "clip";
const scrolls = (value) => value === "auto" || value === "scroll";

function check(range, word) {
  const element = range.startContainer.parentElement;
  const boxes = [...range.getClientRects()].filter((box) => box.width > 0 && box.height > 0);
  if (!boxes.length) return;
  if (element.closest("table") && boxes.length > 1) fault("broken between letters", word, element);
  const { left, right, top, bottom } = range.getBoundingClientRect();
  let scrollable = false;
  for (let parent = element; parent; parent = parent.parentElement) {
    const style = getComputedStyle(parent), box = parent.getBoundingClientRect();
    if (parent.tagName === "TH" || parent.tagName === "TD") {
      if (right > box.right + 1 || left < box.left - 1) fault("wider than its cell", word, element);
    }
    if (scrolls(style.overflowX)) {
      if (left - box.left + parent.scrollLeft < -1) fault("cut off on the left", word, element);
      scrollable = true;
      break;
    }
    if (clips(style.overflowX) && (right > box.right + 1 || left < box.left - 1)) fault("cut off", word, element);
    if (clips(style.overflowY) && (bottom > box.bottom + 1 || top < box.top - 1)) fault("cut off", word, element);
  }
  if (!scrollable && (right > innerWidth + 1 || left < -1)) fault("beyond the window", word, element);
}

const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
while (texts.nextNode()) {
  const text = texts.currentNode, range = document.createRange();
  if (text.parentElement.closest("pre, style")) continue;
  for (const word of text.data.matchAll(WORD)) {
    range.setStart(text, word.index);
    range.setEnd(text, word.index + word[0].length);
    check(range, word[0]);
  }
}
for (const image of document.images) if (!image.naturalWidth) fault("not shown", image.src.slice(0, 20), image);
if (document.scrollingElement.scrollWidth > innerWidth) faults.push("the page scrolls sideways");
return faults;
