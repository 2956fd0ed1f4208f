// What JSON value does a YAML text hold? The library composes the nodes; we walk them, because its own ways to find
// repeated keys and aliases look at everything before, again and again. Each step here looks at one node once.
import { Composer, isAlias, isMap, isPair, isScalar, isSeq, Lexer, LineCounter, Parser } from 'yaml'
import type { CST, DocumentOptions, ParseOptions, SchemaOptions } from 'yaml'

export interface YamlLimits {
  /** How deep maps and lists may lie in each other. */
  readonly depth: number
  /** How many words and signs the text may have: reading one costs about a hundred times what it costs in JSON. */
  readonly tokens: number
  /** How many characters aliases may add to the text. */
  readonly aliasedCharacters: number
}

export class YamlTooDeep extends Error {}
export class YamlTooLong extends Error {}

/** `onRepeated` hears of every key that its map has already; the last one counts. Throws Error with the reason. */
export function parseYaml(text: string, limits: YamlLimits, onRepeated: (line: number) => void): unknown {
  const lineCounter = new LineCounter()
  const [document] = new Composer(options).compose(syntax(text, limits, lineCounter), true, text.length)
  const [fault] = document?.errors ?? []
  // The library composes nodes in nodes by calling itself.
  if (fault?.code === 'RESOURCE_EXHAUSTION') throw new YamlTooDeep('nested too deeply')
  if (fault !== undefined) throw new Error(`${fault.message}${placeOf(text, lineCounter, fault.pos[0])}`)
  const lineOf = (offset: number): number => lineCounter.linePos(offset).line
  const walk: Walk = { limits, anchors: new Map(), aliased: 0, repeated: (at) => onRepeated(lineOf(at)) }
  return valueOf(walk, document?.contents, 0).value
}

const options: ParseOptions & DocumentOptions & SchemaOptions = {
  version: '1.1',
  merge: true,
  logLevel: 'silent',
  // Looked for below: the library compares every key with all before it.
  uniqueKeys: false,
  // Ordered maps and sets are lists and maps to JSON; the library would look for repeated keys in them too.
  resolveKnownTags: false,
  customTags: (tags) => tags.filter((tag) => typeof tag === 'string' || !collectionTags.has(tag.tag)),
}
const collectionTags: ReadonlySet<string> = new Set(['omap', 'pairs', 'set'].map((name) => `tag:yaml.org,2002:${name}`))

function* syntax(text: string, limits: YamlLimits, lineCounter: LineCounter): Generator<CST.Token, void> {
  const parser = new Parser(lineCounter.addNewLine)
  lineCounter.addNewLine(0)
  let count = 0
  for (const token of new Lexer().lex(text)) {
    if (++count > limits.tokens) throw new YamlTooLong(`it has more than ${limits.tokens} words and signs`)
    yield* parser.next(token)
  }
  yield* parser.end()
}

/** As the library says it, which would look at the whole line for each of many faults. */
function placeOf(text: string, { lineStarts, linePos }: LineCounter, offset: number): string {
  if (offset < 0) return ''
  const { line, col } = linePos(offset)
  const start = lineStarts[line - 1] ?? 0
  // At the beginning of a line, the line before is meant as well.
  const from = text.slice(start, start + col - 1).trim() === '' ? (lineStarts[line - 2] ?? start) : start
  const colon = text.slice(from, lineStarts[line]).trim() === '' ? '' : ':'
  return ` at line ${line}, column ${col}${colon}`
}

interface Walk {
  readonly limits: YamlLimits
  /** The last value of each name so far; undefined while its own value is being read. */
  readonly anchors: Map<string, Anchor | undefined>
  aliased: number
  repeated(offset: number): void
}

/** `characters` is about how long it is as JSON; `aliases` how many aliases the busiest place in it stands for. */
interface Found {
  readonly value: unknown
  readonly characters: number
  readonly aliases: number
}

interface Anchor extends Found {
  uses: number
}

const nothing: Found = { value: null, characters: 4, aliases: 1 }

function valueOf(walk: Walk, node: unknown, depth: number): Found {
  if (depth > walk.limits.depth) throw new YamlTooDeep('nested too deeply')
  if (isAlias(node)) return aliasValue(walk, node.source)
  if (!isScalar(node) && !isMap(node) && !isSeq(node)) return isPair(node) ? mapValue(walk, [node], depth) : nothing
  const { anchor } = node
  if (anchor !== undefined) walk.anchors.set(anchor, undefined)
  const found = isMap(node)
    ? mapValue(walk, node.items, depth)
    : isSeq(node)
      ? listValue(walk, node.items, depth)
      : { value: node.value, characters: 4 + textOf(node.value).length, aliases: 1 }
  if (anchor !== undefined) walk.anchors.set(anchor, { ...found, uses: 1 })
  return found
}

/** The same bound as the library's: an alias of a value full of aliases counts as often as those. */
const maxAliases = 100

function aliasValue(walk: Walk, name: string): Found {
  const anchor = walk.anchors.get(name)
  if (anchor === undefined) {
    if (walk.anchors.has(name)) throw new Error(`anchor '${name}' value contains itself`)
    throw new Error(`Unresolved alias (the anchor must be set before the alias): ${name}`)
  }
  anchor.uses += 1
  walk.aliased += anchor.characters
  const aliases = anchor.uses * anchor.aliases
  if (aliases > maxAliases || walk.aliased > walk.limits.aliasedCharacters) {
    throw new Error('Excessive alias count indicates a resource exhaustion attack')
  }
  return { value: anchor.value, characters: anchor.characters, aliases }
}

function listValue(walk: Walk, items: readonly unknown[], depth: number): Found {
  const value: unknown[] = []
  let characters = 2
  let aliases = 0
  for (const item of items) {
    const found = valueOf(walk, item, depth + 1)
    value.push(found.value)
    characters += found.characters
    aliases = Math.max(aliases, found.aliases)
  }
  return { value, characters, aliases }
}

interface Entry {
  readonly key: unknown
  readonly value: unknown
}

function mapValue(walk: Walk, entries: readonly Entry[], depth: number): Found {
  const named = new Map<string, unknown>()
  const merged = new Map<string, unknown>()
  const keys = new Set<unknown>()
  let characters = 2
  let aliases = 0
  for (const { key, value } of entries) {
    if (isScalar(key)) {
      if (keys.has(key.value)) walk.repeated(key.range?.[0] ?? 0)
      keys.add(key.value)
    }
    const name = isMergeKey(key) ? undefined : keyText(valueOf(walk, key, depth + 1).value)
    const found = valueOf(walk, value, depth + 1)
    if (name === undefined) mergeInto(merged, found.value)
    else named.set(name, found.value)
    characters += found.characters + (name?.length ?? 0) + 4
    aliases = Math.max(aliases, found.aliases)
  }
  return { value: objectOf(named, merged), characters, aliases }
}

/** `<<` without quotes becomes a symbol in the library. */
function isMergeKey(key: unknown): boolean {
  return isScalar(key) && typeof key.value === 'symbol'
}

/** What is merged first counts, and what the map names itself counts more. */
function mergeInto(merged: Map<string, unknown>, source: unknown): void {
  for (const map of Array.isArray(source) ? source : [source]) {
    if (typeof map !== 'object' || map === null || Array.isArray(map) || map instanceof Date) {
      throw new Error('Merge sources must be maps or map aliases')
    }
    for (const [name, value] of Object.entries(map)) if (!merged.has(name)) merged.set(name, value)
  }
}

function objectOf(named: ReadonlyMap<string, unknown>, merged: ReadonlyMap<string, unknown>): unknown {
  const rest = Array.from(merged).filter(([name]) => !named.has(name))
  return Object.fromEntries([...rest, ...named])
}

function keyText(key: unknown): string {
  if (key === null || key === undefined) return ''
  if (typeof key === 'object' && !(key instanceof Date)) throw new Error('invalid map key: it is a map or a list')
  return textOf(key)
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : String(value)
}
