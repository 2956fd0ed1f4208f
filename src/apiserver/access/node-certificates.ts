// How does a node get its certificate, and how does it lose it? It makes a key and asks; the server signs and records the
// certificate. A certificate of a node that is not recorded is nobody's: removing the record shuts the node out.
import type { Secret } from '../../api/generated/types.ts'
import { kinds } from '../../api/kinds.ts'
import { badRequest, forbidden, isConflict, serviceUnavailable } from '../../api/status-error.ts'
import { isSubdomain } from '../../api/validation/formats.ts'
import type { ObjectApi } from '../../api/verbs.ts'
import type { ServerContext } from '../objects/context.ts'
import { findObject } from '../objects/context.ts'
import type { User } from '../request/call.ts'
import type { AdmissionFacts } from './bootstrap.ts'
import { bootstrapIdOfUser, bootstrapRef, bootstrapSecret, planAdmission, readBootstrap } from './bootstrap.ts'
import { groupsOfRoles, nodeNameOf, roleOf } from './grants.ts'

/** The authority's hand: `main` gives it, where there is an authority. */
export interface NodeSigner {
  /** Undefined for a request that cannot be read, or whose signature is not by its own key. */
  read(request: string): Promise<SigningRequest | undefined>
}

interface SigningRequest {
  /** Hash of its public key. */
  readonly key: string
  sign(user: Pick<User, 'name' | 'groups'>, now: number, lifetimeMs: number): Promise<SignedCertificate>
}

interface SignedCertificate {
  /** PEM. */
  readonly certificate: string
  /** As `fingerprint256` of a TLS peer. */
  readonly fingerprint: string
}

export interface IssueDeps {
  readonly context: ServerContext
  /** As the server itself. */
  readonly api: ObjectApi
  readonly signer: NodeSigner | undefined
}

const lifetimeMs = 90 * 24 * 3600_000
const recordType = 'hawser.dev/node-certificates'
/** The one in use, the one before it, and one whose answer may be lost. */
const mostRecorded = 3
const longestRequest = 16 * 1024
const tries = 8
const certificates = { group: 'hawser.dev', plural: 'nodecertificates' }

const recordRef = (node: string) => ({ namespace: 'kube-system', name: `node-certificates-${node}` })

/** `spec.node` and `spec.request` (PEM, PKCS#10) become `status.certificate`. */
export async function issueNodeCertificate(deps: IssueDeps, user: User, body: unknown): Promise<object> {
  const { spec } = (body ?? {}) as { spec?: { node?: unknown; request?: unknown } } // checked below
  const { node, request } = spec ?? {}
  if (typeof node !== 'string' || isSubdomain(node).length > 0 || node.length > 200)
    throw badRequest('spec.node must be the name of a node, of at most 200 characters')
  if (typeof request !== 'string' || request.length > longestRequest)
    throw badRequest('spec.request must be a certificate request (PEM) of at most 16 KiB')
  if (!deps.signer) throw serviceUnavailable('this server has no authority that signs certificates')
  const read = await deps.signer.read(request)
  if (!read) throw badRequest('spec.request is not a certificate request signed by its own key')
  const joins = roleOf(user) === 'node-bootstrap'
  if (joins) await admit(deps, user, node, read.key)
  else if (roleOf(user) !== 'node' || nodeNameOf(user) !== node)
    throw forbidden(certificates, '', 'a node gets certificates of its own, and a bootstrap token the first one')
  const subject = { name: `system:node:${node}`, groups: [groupsOfRoles.node] }
  const signed = await read.sign(subject, deps.context.clock.now(), lifetimeMs)
  await record(deps, node, signed.fingerprint, joins)
  const { certificate } = signed
  return { apiVersion: 'hawser.dev/v1', kind: 'NodeCertificate', metadata: {}, spec, status: { certificate } }
}

/** A certificate of a node counts only while it is recorded. Others are what they say. */
export async function isCurrentCertificate(context: ServerContext, user: User, fingerprint: string): Promise<boolean> {
  if (!user.groups.includes(groupsOfRoles.node)) return true
  const found = await findObject(context, kinds.Secret, recordRef(nodeNameOf(user)))
  return found !== undefined && recorded(found as Secret).includes(fingerprint)
}

/** One use of the token is spent, unless the same machine asks again. Two at once do not share one use. */
async function admit({ context, api }: IssueDeps, user: User, node: string, key: string): Promise<void> {
  const id = bootstrapIdOfUser(user)
  for (let attempt = 1; ; attempt++) {
    const secret = (await findObject(context, kinds.Secret, bootstrapRef(id))) as Secret | undefined
    const bootstrap = secret && readBootstrap(secret)
    if (!bootstrap) throw forbidden(certificates, '', 'this token was removed')
    const facts: AdmissionFacts = { bootstrap, node, key, isTaken: await isTaken(context, node) }
    const plan = planAdmission(facts)
    if (plan.kind === 'refused') throw forbidden(certificates, '', plan.reason)
    if (plan.kind === 'again') return
    const { data } = bootstrapSecret(id, plan.next)
    try {
      await api.update('Secret', { ...secret, ...(data && { data }) })
      return
    } catch (error) {
      if (!isConflict(error) || attempt >= tries) throw error
    }
  }
}

async function isTaken(context: ServerContext, node: string): Promise<boolean> {
  if ((await findObject(context, kinds.Node, { name: node })) !== undefined) return true
  return (await findObject(context, kinds.Secret, recordRef(node))) !== undefined
}

/** A machine that joins takes the place of another of its name; one that renews keeps the certificate it still uses. */
async function record({ context, api }: IssueDeps, node: string, fingerprint: string, joins: boolean): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const known = (await findObject(context, kinds.Secret, recordRef(node))) as Secret | undefined
    const kept = known && !joins ? recorded(known) : []
    const text = [fingerprint, ...kept].slice(0, mostRecorded).join('\n')
    const data = { certificates: Buffer.from(text).toString('base64') }
    try {
      if (known) await api.update('Secret', { ...known, data })
      // Whoever renews was recorded a moment ago: it has been removed since.
      else if (joins) await api.create('Secret', recordOf(node, data))
      else throw forbidden(certificates, '', `node ${node} was removed`)
      return
    } catch (error) {
      if (!isConflict(error) || attempt >= tries) throw error
    }
  }
}

function recordOf(node: string, data: Readonly<Record<string, string>>): Secret {
  return { apiVersion: 'v1', kind: 'Secret', metadata: recordRef(node), type: recordType, data: { ...data } }
}

function recorded({ type, data }: Secret): readonly string[] {
  if (type !== recordType) return []
  return Buffer.from(data?.['certificates'] ?? '', 'base64')
    .toString('utf8')
    .split('\n')
}
