// Where in etcd does an entry lie, and in which form? Objects lie below the prefix as the layout says; what only Hawser has
// lies beside it, below `<prefix>.hawser/`, so that one watch sees both in their order.

export interface EtcdLayout {
  /** What follows the prefix in etcd's key: `/minions/worker-1`. */
  path(key: string): string
  /** The key of the entry that lies there; undefined for what this server does not serve. */
  key(path: string): string | undefined
  /** The value as etcd keeps it. */
  encode(key: string, value: string): Uint8Array
  /** Throws an error that says why the bytes cannot be read. */
  decode(key: string, bytes: Uint8Array): string
}

export interface EtcdPlace {
  readonly prefix: string
  readonly layout: EtcdLayout
}

const ownFolder = '.hawser/'

/**
 * Keys of our own that are no entries. `format` says that Hawser keeps objects below the prefix, in which format, and whether
 * they may be used; `server` is the server that may write; `marker` is written to learn how far the copy has come; `compaction`
 * tells up to where history was forgotten, and by whom; `keys` holds the keys that all servers share.
 */
export const ownKeyNames = ['format', 'server', 'marker', 'compaction', 'keys'] as const

export function ownKey({ prefix }: EtcdPlace, name: (typeof ownKeyNames)[number]): Uint8Array {
  return bytesOf(`${prefix}${ownFolder}${name}`)
}

/** From the first key of ours to the first after the objects: `.` comes right before `/`, and `0` right after it. */
export function watchedRange({ prefix }: EtcdPlace): { readonly key: Uint8Array; readonly rangeEnd: Uint8Array } {
  return { key: bytesOf(`${prefix}${ownFolder}`), rangeEnd: bytesOf(`${prefix}0`) }
}

export function etcdKey({ prefix, layout }: EtcdPlace, key: string): Uint8Array {
  return bytesOf(prefix + layout.path(key))
}

export function entryKey({ prefix, layout }: EtcdPlace, bytes: Uint8Array): string | undefined {
  const path = textOf(bytes).slice(prefix.length)
  if (!path.startsWith('/') && !path.startsWith(ownFolder)) return undefined
  return layout.key(path)
}

export function bytesOf(text: string): Uint8Array {
  return Buffer.from(text)
}

export function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString()
}
