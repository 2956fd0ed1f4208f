// What did the client send? JSON, YAML or protobuf bytes become one JSON value, within limits of size and depth.
import { badRequest, requestEntityTooLarge, StatusError, unsupportedMediaType } from '../../api/status-error.ts'
import { errorText } from '../../telemetry/error-text.ts'
import { jsonProblem, snippet } from './json-problem.ts'
import { decodeProtobuf, protobufContentType } from '../protobuf/decode.ts'
import { repeatedFields } from './repeated-fields.ts'
import { parseYaml, YamlTooDeep, YamlTooLong } from './yaml.ts'

export const bodyLimit = 3 * 1024 * 1024
const depthLimit = 200
/** Fields and items of lists. Reading, checking and storing one takes about 4 µs: together less than 50 ms. */
export const valuesLimit = 10_000
const yamlLimits = { depth: depthLimit, tokens: 12_000, aliasedCharacters: bodyLimit }
const yamlLimit = 1024 * 1024
export const acceptedTypes: readonly string[] = ['application/json', 'application/yaml', protobufContentType]

/** Is told about every field that a text names twice; the last one counts. */
export type OnRepeated = (what: string) => void

/** The parsed value of a body whose text was not what it claimed to be carries what the text was. */
export function decodeBody(contentType: string | undefined, bytes: Uint8Array, onRepeated?: OnRepeated): unknown {
  checkSize(bytes)
  const type = mediaType(contentType)
  switch (type) {
    case '':
    case 'application/json':
      return parseJson(bytes, onRepeated)
    case 'application/yaml':
      return parseJsonOrYaml(bytes, onRepeated)
    case protobufContentType:
      return decodeProtobuf(bytes).object
    default:
      throw unsupportedMediaType(acceptedTypes)
  }
}

export function mediaType(contentType: string | undefined): string {
  return (contentType ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? ''
}

/** `apply` bodies are YAML by name and JSON in practice. */
export function parseJsonOrYaml(bytes: Uint8Array, onRepeated?: OnRepeated): unknown {
  checkSize(bytes)
  const text = textOf(bytes)
  checkShape(text)
  try {
    return JSON.parse(text)
  } catch {
    // Not JSON, then YAML.
  }
  if (text.length > yamlLimit)
    throw requestEntityTooLarge(`the YAML is too long to read: limit is ${yamlLimit}; send JSON`)
  try {
    const value = parseYaml(text, yamlLimits, (line) => onRepeated?.(`line ${line}: key already set in map`))
    // Round trip: dates, binaries and shared nodes become what JSON can say, and depth is checked again.
    const json = JSON.stringify(value) ?? 'null'
    checkShape(json)
    return JSON.parse(json)
  } catch (error) {
    if (error instanceof StatusError) throw error
    if (error instanceof YamlTooDeep) throw tooDeep()
    if (error instanceof YamlTooLong)
      throw requestEntityTooLarge(`the YAML is too long to read: ${error.message}; send JSON`)
    throw badRequest(`error converting YAML to JSON: yaml: ${firstLine(error)}`)
  }
}

export class MalformedJson extends Error {
  /** The beginning of it. */
  readonly text: string

  constructor(message: string, text: string) {
    super(message)
    this.name = 'MalformedJson'
    this.text = text
  }
}

export function parseJson(bytes: Uint8Array, onRepeated?: OnRepeated): unknown {
  const text = textOf(bytes)
  checkShape(text)
  try {
    const value: unknown = JSON.parse(text)
    if (onRepeated !== undefined) for (const what of repeatedFields(text, value)) onRepeated(what)
    return value
  } catch {
    throw new MalformedJson(jsonProblem(text), snippet(text))
  }
}

function checkSize(bytes: Uint8Array): void {
  if (bytes.length > bodyLimit) throw requestEntityTooLarge(`limit is ${bodyLimit}`)
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('utf8')
}

/** Deep nesting would exhaust the stack of everything that walks the value; many values would hold up everybody else. */
function checkShape(text: string): void {
  let depth = 0
  let values = 0
  let inString = false
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    if (inString) {
      if (code === 92) index++
      else if (code === 34) inString = false
    } else if (code === 34) inString = true
    else if (code === 123 || code === 91) {
      if (++depth > depthLimit) throw tooDeep()
    } else if (code === 125 || code === 93) depth--
    else if (code === 44 && ++values > valuesLimit) throw tooMany()
  }
}

function tooMany(): StatusError {
  return requestEntityTooLarge(`limit is ${valuesLimit} fields and items of lists`)
}

function tooDeep(): StatusError {
  return badRequest(`the body of the request is nested more than ${depthLimit} levels deep`)
}

function firstLine(error: unknown): string {
  return errorText(error).split('\n', 1)[0] ?? ''
}
