// How does OpenAPI v2 look in the protobuf that kubectl up to 1.28 asks for (gnostic's openapi.v2.Document)?
// The JSON document is made once and written out field by field; numbers are those of OpenAPIv2.proto.
import { kindNames, kinds } from '../../api/kinds.ts'
import { type Method, type Operation, type Parameter, type PathItem, pathsOf } from '../openapi/paths.ts'
import { type Schema, schemasOf } from '../openapi/schemas.ts'
import { WireWriter } from './wire.ts'

export interface OpenApiV2 {
  readonly swagger: '2.0'
  readonly info: { readonly title: string; readonly version: string }
  readonly paths: Readonly<Record<string, PathItem>>
  readonly definitions: Readonly<Record<string, Schema>>
}

export function openApiV2Json(): OpenApiV2 {
  const infos = kindNames.map((name) => kinds[name])
  return {
    swagger: '2.0',
    info: { title: 'Hawser', version: 'v1.35.0' },
    paths: pathsOf(infos, 'v2'),
    definitions: schemasOf(infos, 'v2'),
  }
}

export function openApiV2Protobuf(): Uint8Array {
  const document = openApiV2Json()
  const paths = new WireWriter()
  for (const [path, item] of Object.entries(document.paths)) paths.message(2, named(path, pathItem(item)))
  const definitions = new WireWriter()
  for (const [name, schema] of Object.entries(document.definitions)) {
    definitions.message(1, named(name, schemaMessage(schema)))
  }
  return new WireWriter()
    .text(1, document.swagger)
    .message(2, new WireWriter().text(1, document.info.title).text(2, document.info.version))
    .message(8, paths)
    .message(9, definitions)
    .finish()
}

function named(name: string, value: WireWriter): WireWriter {
  return new WireWriter().text(1, name).message(2, value)
}

/** Extensions travel as YAML text; JSON is YAML. */
function extensions(writer: WireWriter, field: number, object: object): void {
  for (const [name, value] of Object.entries(object)) {
    if (!name.startsWith('x-') || value === undefined) continue
    writer.message(field, named(name, new WireWriter().text(2, `${JSON.stringify(value)}\n`)))
  }
}

const methodFields: readonly (readonly [Method, number])[] = [
  ['get', 2],
  ['put', 3],
  ['post', 4],
  ['delete', 5],
  ['patch', 8],
]

function pathItem(item: PathItem): WireWriter {
  const writer = new WireWriter()
  for (const [method, field] of methodFields) {
    const operation = item[method]
    if (operation !== undefined) writer.message(field, operationMessage(operation))
  }
  for (const parameter of item.parameters ?? []) writer.message(9, parameterMessage(parameter))
  return writer
}

function operationMessage(operation: Operation): WireWriter {
  const writer = new WireWriter().text(3, operation.description).text(5, operation.operationId)
  for (const type of operation.produces ?? []) writer.text(6, type)
  for (const type of operation.consumes ?? []) writer.text(7, type)
  for (const parameter of operation.parameters) writer.message(8, parameterMessage(parameter))
  const responses = new WireWriter()
  for (const [code, response] of Object.entries(operation.responses)) {
    const inner = new WireWriter().text(1, response.description)
    if (response.schema !== undefined) inner.message(2, new WireWriter().message(1, schemaMessage(response.schema)))
    responses.message(1, named(code, new WireWriter().message(1, inner)))
  }
  writer.message(9, responses)
  extensions(writer, 13, operation)
  return writer
}

/** ParametersItem → Parameter → body, or the query and path forms of NonBodyParameter. */
function parameterMessage(parameter: Parameter): WireWriter {
  const inItem = (message: WireWriter) => new WireWriter().message(1, message)
  if (parameter.in === 'body') {
    const body = new WireWriter().text(2, parameter.name).text(3, 'body')
    if (parameter.required === true) body.number(4, 1)
    if (parameter.schema !== undefined) body.message(5, schemaMessage(parameter.schema))
    return inItem(new WireWriter().message(1, body))
  }
  const isQuery = parameter.in === 'query'
  const inner = new WireWriter()
  if (parameter.required === true) inner.number(1, 1)
  inner
    .text(2, parameter.in)
    .text(4, parameter.name)
    .text(isQuery ? 6 : 5, parameter.type ?? 'string')
  if (parameter.uniqueItems === true) inner.number(isQuery ? 20 : 19, 1)
  const nonBody = new WireWriter().message(isQuery ? 3 : 4, inner)
  return inItem(new WireWriter().message(2, nonBody))
}

function schemaMessage(schema: Schema): WireWriter {
  const writer = new WireWriter()
  if (schema.$ref !== undefined) writer.text(1, schema.$ref)
  if (schema.format !== undefined) writer.text(2, schema.format)
  if (schema.description !== undefined) writer.text(4, schema.description)
  for (const name of schema.required ?? []) writer.text(19, name)
  for (const word of schema.enum ?? []) writer.message(20, new WireWriter().text(2, `${JSON.stringify(word)}\n`))
  if (schema.additionalProperties !== undefined) {
    writer.message(21, new WireWriter().message(1, schemaMessage(schema.additionalProperties)))
  }
  if (schema.type !== undefined) writer.message(22, new WireWriter().text(1, schema.type))
  if (schema.items !== undefined) writer.message(23, new WireWriter().message(1, schemaMessage(schema.items)))
  if (schema.properties !== undefined) {
    const properties = new WireWriter()
    for (const [name, inner] of Object.entries(schema.properties)) {
      properties.message(1, named(name, schemaMessage(inner)))
    }
    writer.message(25, properties)
  }
  extensions(writer, 31, schema)
  return writer
}
