// What kind of value stands at this place? The schema table seen as a tree of nodes: structs, maps, lists that merge
// or not, and leaves. Server-side apply and strategic merge walk objects along it.
import { isAtomic, isAtomicMessage, listRule } from '../../api/schema/list-types.ts'
import { declaredFields, type FieldSchema, isBasicType, messageNames, messageSchema } from '../../api/schema/schema.ts'

export type SchemaNode =
  /** Owned and replaced as a whole, whatever it holds. */
  | { readonly kind: 'leaf' }
  | { readonly kind: 'struct'; readonly message: string }
  | { readonly kind: 'map'; readonly values: SchemaNode }
  | { readonly kind: 'set' }
  | { readonly kind: 'mapList'; readonly keys: readonly string[]; readonly items: SchemaNode }

export const leaf: SchemaNode = { kind: 'leaf' }

/** The node of a field inside a struct; a field that the schema does not know is a leaf. */
export function childNode(message: string, field: string): SchemaNode {
  return nodes.get(message)?.get(field) ?? leaf
}

export function structNode(message: string): SchemaNode {
  return { kind: 'struct', message }
}

/** The message that declares a JSON field: the message itself or one that is inlined in it. */
export function ownerOf(message: string, field: string): string {
  return declaredFields(message).get(field)?.owner ?? message
}

function buildNode(owner: string, field: FieldSchema): SchemaNode {
  switch (field.shape) {
    case 'list': {
      const rule = listRule(owner, field.name)
      if (rule.apply === 'set') return { kind: 'set' }
      if (rule.apply === 'map') return { kind: 'mapList', keys: rule.keys, items: structNode(field.type) }
      return leaf
    }
    case 'map':
      return isAtomic(owner, field.name, '') ? leaf : { kind: 'map', values: valueNode(field.type) }
    case 'one':
      return isAtomic(owner, field.name, field.type) ? leaf : plainNode(field.type)
    case 'inline':
      return leaf
    default:
      return field.shape satisfies never
  }
}

function valueNode(type: string): SchemaNode {
  return isAtomicMessage(type) ? leaf : plainNode(type)
}

function plainNode(type: string): SchemaNode {
  return isBasicType(type) || messageSchema(type)?.scalar === true ? leaf : structNode(type)
}

const nodes: ReadonlyMap<string, ReadonlyMap<string, SchemaNode>> = new Map(
  messageNames.map((message) => [message, nodesOf(message)]),
)

function nodesOf(message: string): ReadonlyMap<string, SchemaNode> {
  return new Map(Array.from(declaredFields(message), ([name, { owner, schema }]) => [name, buildNode(owner, schema)]))
}
