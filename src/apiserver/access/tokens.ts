// Whose token is this? Static tokens from the data directory, and tokens of service accounts that we signed ourselves.
import { hash } from 'node:crypto'
import { kinds } from '../../api/kinds.ts'
import type { Secret, ServiceAccount } from '../../api/generated/types.ts'
import type { User } from '../request/call.ts'
import type { ServerContext } from '../objects/context.ts'
import { findObject } from '../objects/context.ts'
import { bootstrapDigest, bootstrapIdOf, bootstrapRef, bootstrapUser, readBootstrap } from './bootstrap.ts'
import { groupsOfRoles } from './grants.ts'
import { isCurrentCertificate } from './node-certificates.ts'
import type { TokenKeys } from './token-keys.ts'
import { createTokenKeys } from './token-keys.ts'

export interface StaticToken {
  readonly token: string
  readonly user: User
}

interface TokenClaims {
  readonly namespace: string
  readonly serviceAccount: { readonly name: string; readonly uid: string }
  /** The token is good only while this pod (or secret) exists. */
  readonly boundTo?: { readonly kind: 'Pod' | 'Secret'; readonly name: string; readonly uid: string }
  readonly audiences: readonly string[]
  readonly issuedAt: number
  readonly expiresAt: number
  /** When it should have been read again, if it is good for longer. */
  readonly warnAfter?: number
}

interface Authenticated {
  readonly user: User
  readonly audiences: readonly string[]
}

export interface Tokens {
  authenticate(token: string, audiences?: readonly string[]): Promise<Authenticated | undefined>
  /** Whether a certificate that the authority signed still counts. */
  acceptCertificate(user: User, fingerprint: string): Promise<boolean>
  sign(claims: TokenClaims): string
  /** With which others verify what `sign` made. */
  readonly keySet: TokenKeys['keySet']
}

export const defaultAudience = 'https://kubernetes.default.svc'
/** An account with this annotation has the role it names; others may only ask about themselves. */
const roleAnnotation = 'hawser.dev/role'

/** From `secret` the key follows that signs service account tokens; it belongs to this cluster alone. */
export function createTokens(context: ServerContext, statics: readonly StaticToken[], secret: Uint8Array): Tokens {
  const keys = createTokenKeys(secret)
  // Looking up a hash takes the same time whatever the token shares with a real one.
  const users = new Map(statics.map(({ token, user }) => [digest(token), user]))
  return {
    async authenticate(token, audiences = [defaultAudience]) {
      const user = users.get(digest(token))
      if (user !== undefined) return { user, audiences }
      const id = bootstrapIdOf(token)
      if (id !== undefined) return await bootstrapped(context, id, token, audiences)
      const claims = readClaims(token, keys)
      if (claims === undefined || !isTime(context.clock.now(), claims)) return undefined
      const shared = claims.audiences.filter((audience) => audiences.includes(audience))
      if (shared.length === 0) return undefined
      const account = await userOfClaims(context, claims)
      return account === undefined ? undefined : { user: account, audiences: shared }
    },
    acceptCertificate: (user, fingerprint) => isCurrentCertificate(context, user, fingerprint),
    sign: (claims) => keys.sign(payloadOf(claims)),
    keySet: keys.keySet,
  }
}

/** As Kubernetes does: a minute, for clocks that are set a little. */
const leewayMs = 60_000

/**
 * Not before it was made, not after its end. A token from the future was made while the clock was wrong: it would be good for longer
 * than anybody wanted, by as much as the clock was ahead.
 */
function isTime(now: number, { issuedAt, expiresAt }: Pick<TokenClaims, 'issuedAt' | 'expiresAt'>): boolean {
  return now < expiresAt && !(issuedAt > now + leewayMs)
}

/** Also when it is used up: a machine whose answer was lost may ask again. */
async function bootstrapped(
  context: ServerContext,
  id: string,
  token: string,
  audiences: readonly string[],
): Promise<Authenticated | undefined> {
  const secret = (await findObject(context, kinds.Secret, bootstrapRef(id))) as Secret | undefined
  const known = secret && readBootstrap(secret)
  if (known?.digest !== bootstrapDigest(token)) return undefined
  const issuedAt = Date.parse(secret?.metadata.creationTimestamp ?? '')
  if (!isTime(context.clock.now(), { issuedAt, expiresAt: known.expiresAt })) return undefined
  return { user: bootstrapUser(id), audiences }
}

async function userOfClaims(context: ServerContext, claims: TokenClaims): Promise<User | undefined> {
  const { namespace, serviceAccount, boundTo } = claims
  const account = (await findObject(context, kinds.ServiceAccount, { namespace, name: serviceAccount.name })) as
    | ServiceAccount
    | undefined
  if (account?.metadata.uid !== serviceAccount.uid) return undefined
  if (boundTo !== undefined) {
    const info = boundTo.kind === 'Pod' ? kinds.Pod : kinds.Secret
    const bound = await findObject(context, info, { namespace, name: boundTo.name })
    if (bound?.metadata.uid !== boundTo.uid) return undefined
  }
  const role = account.metadata.annotations?.[roleAnnotation]
  const granted = isRoleOfAccount(role) ? [groupsOfRoles[role]] : []
  return {
    name: `system:serviceaccount:${namespace}:${serviceAccount.name}`,
    uid: serviceAccount.uid,
    groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated', ...granted],
    ...(boundTo?.kind === 'Pod'
      ? {
          extra: {
            'authentication.kubernetes.io/pod-name': [boundTo.name],
            'authentication.kubernetes.io/pod-uid': [boundTo.uid],
          },
        }
      : {}),
  }
}

/** A node's role needs the node's name, and a bootstrap token its id, which a service account does not have. */
function isRoleOfAccount(role: string | undefined): role is 'admin' | 'read-only' | 'monitoring' | 'controller' {
  return role !== undefined && role !== 'node' && role !== 'node-bootstrap' && Object.hasOwn(groupsOfRoles, role)
}

function payloadOf(claims: TokenClaims): object {
  const { namespace, serviceAccount, boundTo, warnAfter } = claims
  return {
    iss: defaultAudience,
    sub: `system:serviceaccount:${namespace}:${serviceAccount.name}`,
    aud: claims.audiences,
    iat: Math.floor(claims.issuedAt / 1000),
    nbf: Math.floor(claims.issuedAt / 1000),
    exp: Math.floor(claims.expiresAt / 1000),
    'kubernetes.io': {
      namespace,
      serviceaccount: serviceAccount,
      ...(boundTo === undefined ? {} : { [boundTo.kind.toLowerCase()]: { name: boundTo.name, uid: boundTo.uid } }),
      ...(warnAfter === undefined ? {} : { warnafter: Math.floor(warnAfter / 1000) }),
    },
  }
}

function readClaims(token: string, keys: TokenKeys): TokenClaims | undefined {
  // Signed with our key, so it is what `payloadOf` made.
  const body = keys.read(token) as
    | undefined
    | {
        aud: string[]
        iat: number
        exp: number
        'kubernetes.io': {
          namespace: string
          serviceaccount: { name: string; uid: string }
          pod?: { name: string; uid: string }
          secret?: { name: string; uid: string }
        }
      }
  if (body === undefined) return undefined
  const own = body['kubernetes.io']
  const bound =
    own.pod !== undefined
      ? { kind: 'Pod' as const, ...own.pod }
      : own.secret !== undefined
        ? { kind: 'Secret' as const, ...own.secret }
        : undefined
  return {
    namespace: own.namespace,
    serviceAccount: own.serviceaccount,
    ...(bound === undefined ? {} : { boundTo: bound }),
    audiences: body.aud,
    issuedAt: body.iat * 1000,
    expiresAt: body.exp * 1000,
  }
}

function digest(text: string): string {
  return hash('sha256', text, 'hex')
}
