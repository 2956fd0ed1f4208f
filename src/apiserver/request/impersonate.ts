// As whom does the request act? `Impersonate-*` headers, as `kubectl --as` sends them: for those who may, in the words of
// Kubernetes; nobody's headers are ignored.
import { badRequest } from '../../api/status-error.ts'
import type { Attributes } from '../access/roles.ts'
import type { User } from './call.ts'

type Headers = Readonly<Record<string, string | undefined>>

const extraPrefix = 'impersonate-extra-'
const authentication = 'authentication.k8s.io'
const accountPrefix = 'system:serviceaccount:'

/** The user that the headers name, before anybody has checked whether it may be; undefined when they name none. */
export function impersonatedUser(headers: Headers): User | undefined {
  if (!Object.keys(headers).some((header) => header.startsWith('impersonate-'))) return undefined
  const name = headers['impersonate-user']
  const uid = headers['impersonate-uid']
  const groups = values(headers['impersonate-group'])
  const extra = extraOf(headers)
  if (!name) {
    const asked = [...(groups.length > 0 ? ['groups'] : []), ...(uid ? ['a uid'] : []), ...(extra ? ['extra'] : [])]
    if (asked.length > 0) throw badRequest(`requested ${asked.join(', ')} without impersonating a user`)
    return undefined
  }
  return { name, groups: completeGroups(name, groups), ...(uid ? { uid } : {}), ...(extra ? { extra } : {}) }
}

/** What the authenticated user must be allowed to `impersonate`, one after the other. */
export function impersonationAttributes(headers: Headers, user: User): readonly Attributes[] {
  const account = accountOf(user.name)
  return [
    account
      ? question('', 'serviceaccounts', account.name, { namespace: account.namespace })
      : question('', 'users', user.name),
    ...values(headers['impersonate-group']).map((group) => question('', 'groups', group)),
    ...Object.entries(user.extra ?? {}).flatMap(([key, texts]) =>
      texts.map((text) => question(authentication, 'userextras', text, { subresource: key })),
    ),
    ...(user.uid === undefined ? [] : [question(authentication, 'uids', user.uid)]),
  ]
}

function question(
  group: string,
  resource: string,
  name: string,
  more: { readonly namespace?: string; readonly subresource?: string } = {},
): Attributes {
  const { namespace, subresource } = more
  return { verb: 'impersonate', group, resource, name, namespace, subresource, fieldSelector: undefined }
}

/** Headers that come several times arrive joined; names of groups hold no comma with a space behind it. */
function values(header: string | undefined): readonly string[] {
  return (header ?? '').split(', ').filter((each) => each !== '')
}

/** The key follows the prefix, percent-encoded because it may hold what a header's name may not. */
function extraOf(headers: Headers): Readonly<Record<string, readonly string[]>> | undefined {
  const found = Object.entries(headers).filter(([name]) => name.startsWith(extraPrefix))
  if (found.length === 0) return undefined
  return Object.fromEntries(found.map(([name, value]) => [decoded(name.slice(extraPrefix.length)), values(value)]))
}

function decoded(key: string): string {
  try {
    return decodeURIComponent(key)
  } catch {
    return key
  }
}

/** What everybody of the kind belongs to. */
function completeGroups(name: string, asked: readonly string[]): readonly string[] {
  const account = accountOf(name)
  const own =
    account && asked.length === 0 ? ['system:serviceaccounts', `system:serviceaccounts:${account.namespace}`] : asked
  if (own.includes('system:authenticated') || own.includes('system:unauthenticated')) return own
  return [...own, name === 'system:anonymous' ? 'system:unauthenticated' : 'system:authenticated']
}

function accountOf(user: string): { readonly namespace: string; readonly name: string } | undefined {
  if (!user.startsWith(accountPrefix)) return undefined
  const [namespace = '', name = '', ...more] = user.slice(accountPrefix.length).split(':')
  return namespace !== '' && name !== '' && more.length === 0 ? { namespace, name } : undefined
}
