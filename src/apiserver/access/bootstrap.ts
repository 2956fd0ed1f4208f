// Which machine may become a node? Whoever brings a bootstrap token that is not over and not used up. Tokens are secrets of
// kube-system; of the token itself they hold a hash only.
import { hash } from 'node:crypto'
import type { Secret } from '../../api/generated/types.ts'
import { parseJsonObject } from '../../api/json.ts'
import { groupsOfRoles } from './grants.ts'
import type { User } from '../request/call.ts'

export const bootstrapSecretType = 'hawser.dev/bootstrap-token'
const tokenForm = /^([a-z0-9]{6})\.([a-z0-9]{16})$/
const userPrefix = 'system:bootstrap:'

/** The id of a text that looks like a bootstrap token. */
export function bootstrapIdOf(token: string): string | undefined {
  return tokenForm.exec(token)?.[1]
}

export function bootstrapUser(id: string): User {
  return { name: `${userPrefix}${id}`, groups: [groupsOfRoles['node-bootstrap'], 'system:authenticated'] }
}

/** Of a user with the role node-bootstrap. */
export function bootstrapIdOfUser({ name }: User): string {
  return name.slice(userPrefix.length)
}

export const bootstrapRef = (id: string) => ({ namespace: 'kube-system', name: `bootstrap-token-${id}` })

/** What a bootstrap token is good for. */
export interface Bootstrap {
  readonly digest: string
  /** Milliseconds since 1970. */
  readonly expiresAt: number
  readonly uses: number
  /** Only for a node of this name, which may exist already. */
  readonly node?: string
  /** The keys of machines that were let in, by the names of their nodes: they may ask again. */
  readonly admitted: Readonly<Record<string, string>>
}

export function bootstrapDigest(token: string): string {
  return hash('sha256', token, 'hex')
}

export function bootstrapSecret(id: string, bootstrap: Bootstrap): Secret {
  const { digest, expiresAt, uses, node, admitted } = bootstrap
  const data = {
    'token-sha256': digest,
    expiration: new Date(expiresAt).toISOString(),
    uses: String(uses),
    admitted: JSON.stringify(admitted),
    ...(node === undefined ? {} : { node }),
  }
  return {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: bootstrapRef(id),
    type: bootstrapSecretType,
    data: Object.fromEntries(Object.entries(data).map(([key, value]) => [key, encode(value)])),
  }
}

/** Undefined for a secret that is something else, or damaged. */
export function readBootstrap(secret: Secret): Bootstrap | undefined {
  if (secret.type !== bootstrapSecretType) return undefined
  const text = (key: string) => decode(secret.data?.[key] ?? '')
  const [digest, expiresAt, uses] = [text('token-sha256'), Date.parse(text('expiration')), Number(text('uses'))]
  if (digest === '' || Number.isNaN(expiresAt) || !Number.isSafeInteger(uses)) return undefined
  const node = text('node')
  return { digest, expiresAt, uses, admitted: readMap(text('admitted')), ...(node === '' ? {} : { node }) }
}

export type Admission =
  | { readonly kind: 'refused'; readonly reason: string }
  /** The same machine asks again: its first answer was lost. */
  | { readonly kind: 'again' }
  | { readonly kind: 'admitted'; readonly next: Bootstrap }

export interface AdmissionFacts {
  readonly bootstrap: Bootstrap
  readonly node: string
  /** Hash of the machine's public key. */
  readonly key: string
  /** A node of this name is there, or has a certificate. */
  readonly isTaken: boolean
}

export function planAdmission({ bootstrap, node, key, isTaken }: AdmissionFacts): Admission {
  const { admitted, uses } = bootstrap
  if (bootstrap.node !== undefined && bootstrap.node !== node)
    return refused(`this token is for node ${bootstrap.node}, not for ${node}`)
  if (admitted[node] === key) return { kind: 'again' }
  if (uses <= 0) return refused('this token is used up; "hawser token join-command" on the server makes a new one')
  if (isTaken && bootstrap.node === undefined) {
    const other = `choose another name with --node-name, or take its place: hawser token join-command --node ${node}`
    return refused(`node ${node} exists already; ${other}`)
  }
  return { kind: 'admitted', next: { ...bootstrap, uses: uses - 1, admitted: { ...admitted, [node]: key } } }
}

function refused(reason: string): Admission {
  return { kind: 'refused', reason }
}

function readMap(text: string): Readonly<Record<string, string>> {
  return (parseJsonObject(text) ?? {}) as Readonly<Record<string, string>> // we wrote it
}

function encode(text: string): string {
  return Buffer.from(text).toString('base64')
}

function decode(text: string): string {
  return Buffer.from(text, 'base64').toString('utf8')
}
