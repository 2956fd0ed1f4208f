// What may be written to a terminal? Names and messages come from drivers, pods and other users: a control character in them could
// move the cursor, hide a line or set the title. Colours that we add ourselves stay.

/** Line ends and tabs stay; other control characters become `\u…`. `color`: our own colours are in the text. */
export function terminalText(text: string, color: boolean): string {
  return text.replaceAll(color ? exceptColors : controls, escaped)
}

const controls = /[^\P{Cc}\n\t]/gu
/** `ESC [ numbers m` chooses colours and weight, nothing else. */
const exceptColors = /(?!\u001b\[[\d;]*m)[^\P{Cc}\n\t]/gu // eslint-disable-line no-control-regex

const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
