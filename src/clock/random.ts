// Where does chance come from? From one seeded generator, so that a seed reproduces a run exactly.
// (The real program seeds it from the operating system; see main.)

export interface Random {
  /** A number in [0, 1). */
  next(): number
  /** A whole number in [0, below). */
  below(limit: number): number
  pick<T>(items: readonly [T, ...T[]] | readonly T[]): T
  chance(probability: number): boolean
  /** A version 4 UUID. */
  uid(): string
  /** Five characters as Kubernetes puts behind generateName. */
  suffix(): string
  bytes(count: number): Uint8Array
  /** An independent generator derived from this one. */
  fork(): Random
}

/** No vowels and no look-alikes, so that no words appear in names. */
const suffixAlphabet = 'bcdfghjklmnpqrstvwxz2456789'

export function createRandom(seed: string | number | Uint8Array): Random {
  let [a, b, c, d] = seedState(seed)
  // sfc32: small, fast, passes PractRand; not for secrets (those come from the platform's own generator).
  const next32 = () => {
    const t = (((a + b) | 0) + d) | 0
    d = (d + 1) | 0
    a = b ^ (b >>> 9)
    b = (c + (c << 3)) | 0
    c = (c << 21) | (c >>> 11)
    c = (c + t) | 0
    return t >>> 0
  }
  for (let i = 0; i < 15; i++) next32()

  const next = () => next32() / 2 ** 32
  const below = (limit: number) => Math.floor(next() * limit)
  const bytes = (count: number) => Uint8Array.from({ length: count }, () => next32() & 0xff)
  return {
    next,
    below,
    bytes,
    pick: (items) => items[below(items.length)] as (typeof items)[number],
    chance: (probability) => next() < probability,
    uid() {
      let text = ''
      for (let index = 0; index < 16; index++) {
        const byte = next32() & 0xff
        if (index === 4 || index === 6 || index === 8 || index === 10) text += '-'
        text += hexBytes[index === 6 ? (byte & 0x0f) | 0x40 : index === 8 ? (byte & 0x3f) | 0x80 : byte]
      }
      return text
    },
    suffix: () => Array.from({ length: 5 }, () => suffixAlphabet[below(suffixAlphabet.length)]).join(''),
    fork: () => createRandom(bytes(16)),
  }
}

const hexBytes = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))

function seedState(seed: string | number | Uint8Array): [number, number, number, number] {
  const bytes = seed instanceof Uint8Array ? seed : new TextEncoder().encode(String(seed))
  const state: [number, number, number, number] = [0x9e3779b9, 0x243f6a88, 0xb7e15162, 1]
  bytes.forEach((byte, index) => {
    const lane = (index & 3) as 0 | 1 | 2 | 3
    state[lane] = Math.imul(state[lane] ^ byte, 0x01000193) ^ (state[lane] >>> 15)
  })
  return state
}
