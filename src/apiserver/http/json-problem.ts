// What is wrong with this JSON, in the words Go's reader would use? Users and tools know those texts.
// Only called for text that JSON.parse has refused, so nothing here decides what is valid.

export function jsonProblem(text: string): string {
  const scanner = { text, at: 0 }
  try {
    value(scanner)
    space(scanner)
    if (scanner.at < text.length) fail(scanner, 'after top-level value')
    return 'invalid JSON'
  } catch (error) {
    if (error instanceof Problem) return error.message
    throw error
  }
}

const snippetLength = 30

/** The beginning of a body that could not be read; of what is no object only the bytes are shown. */
export function snippet(text: string): string {
  if (text === '') return '<empty>'
  const bytes = Buffer.from(text)
  const start = bytes.subarray(0, snippetLength)
  const shown = text.startsWith('{') ? start.toString() : start.toString('hex')
  return bytes.length > snippetLength ? `${shown} ...` : shown
}

class Problem extends Error {}

interface Scanner {
  readonly text: string
  at: number
}

function fail(scanner: Scanner, where: string): never {
  const character = scanner.text[scanner.at]
  if (character === undefined) throw new Problem('unexpected end of JSON input')
  throw new Problem(`invalid character ${quoted(character)} ${where}`)
}

function quoted(character: string): string {
  if (character === "'") return `'\\''`
  if (character === '"') return `'"'`
  const escaped = JSON.stringify(character).slice(1, -1)
  return `'${/^\\u00[01]/.test(escaped) ? `\\x${escaped.slice(-2)}` : escaped}'`
}

function space(scanner: Scanner): void {
  while (/[ \t\r\n]/.test(scanner.text[scanner.at] ?? '')) scanner.at++
}

/** Depth is bounded before: see codec.ts. */
function value(scanner: Scanner): void {
  space(scanner)
  const character = scanner.text[scanner.at] ?? ''
  if (character === '{') return object(scanner)
  if (character === '[') return array(scanner)
  if (character === '"') return string(scanner)
  if (character === '-' || /\d/.test(character)) return number(scanner)
  for (const word of ['true', 'false', 'null']) if (character === word[0]) return literal(scanner, word)
  fail(scanner, 'looking for beginning of value')
}

function object(scanner: Scanner): void {
  scanner.at++
  space(scanner)
  if (scanner.text[scanner.at] === '}') return void scanner.at++
  for (;;) {
    space(scanner)
    if (scanner.text[scanner.at] !== '"') fail(scanner, 'looking for beginning of object key string')
    string(scanner)
    space(scanner)
    if (scanner.text[scanner.at] !== ':') fail(scanner, 'after object key')
    scanner.at++
    value(scanner)
    space(scanner)
    if (scanner.text[scanner.at] === '}') return void scanner.at++
    if (scanner.text[scanner.at] !== ',') fail(scanner, 'after object key:value pair')
    scanner.at++
  }
}

function array(scanner: Scanner): void {
  scanner.at++
  space(scanner)
  if (scanner.text[scanner.at] === ']') return void scanner.at++
  for (;;) {
    value(scanner)
    space(scanner)
    if (scanner.text[scanner.at] === ']') return void scanner.at++
    if (scanner.text[scanner.at] !== ',') fail(scanner, 'after array element')
    scanner.at++
  }
}

function string(scanner: Scanner): void {
  scanner.at++
  for (;;) {
    const character = scanner.text[scanner.at]
    if (character === undefined || character < ' ') fail(scanner, 'in string literal')
    scanner.at++
    if (character === '"') return
    if (character !== '\\') continue
    if (scanner.text[scanner.at] === 'u') {
      for (let digit = 0; digit < 4; digit++) {
        scanner.at++
        if (!/[0-9a-fA-F]/.test(scanner.text[scanner.at] ?? '')) fail(scanner, 'in \\u hexadecimal character escape')
      }
    } else if (!/["\\/bfnrt]/.test(scanner.text[scanner.at] ?? '')) fail(scanner, 'in string escape code')
    scanner.at++
  }
}

function literal(scanner: Scanner, word: string): void {
  for (const character of word) {
    if (scanner.text[scanner.at] !== character) fail(scanner, `in literal ${word} (expecting '${character}')`)
    scanner.at++
  }
}

function number(scanner: Scanner): void {
  if (scanner.text[scanner.at] === '-') scanner.at++
  if (scanner.text[scanner.at] === '0') scanner.at++
  else digits(scanner, 'in numeric literal')
  if (scanner.text[scanner.at] === '.') {
    scanner.at++
    digits(scanner, 'after decimal point in numeric literal')
  }
  if (/[eE]/.test(scanner.text[scanner.at] ?? '')) {
    scanner.at++
    if (/[+-]/.test(scanner.text[scanner.at] ?? '')) scanner.at++
    digits(scanner, 'in exponent of numeric literal')
  }
}

function digits(scanner: Scanner, where: string): void {
  if (!/\d/.test(scanner.text[scanner.at] ?? '')) fail(scanner, where)
  while (/\d/.test(scanner.text[scanner.at] ?? '')) scanner.at++
}
