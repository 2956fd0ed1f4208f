// May a start go on with this file or directory? Not if somebody else could have written it, or could write to it later.
import { explainDistrust } from '../host/trusted-path.ts'
import { distrustOf } from '../host/linux/trusted-path.ts'
import { UsageError } from './config.ts'

/** Throws a UsageError with path, owner, mode and the command that helps. What is not there passes. */
export function requireTrustedPath(path: string, what: string): void {
  const found = distrustOf(path)
  if (!found) return
  const { sentence, remedy } = explainDistrust(what, found)
  throw new UsageError(sentence, remedy)
}

/** A manifest that is fetched starts pods: whoever is on the way must not be able to change it. */
export function requireTrustedUrl(url: string): void {
  const { protocol, hostname } = new URL(url)
  const isOwn = ['localhost', '[::1]'].includes(hostname) || hostname.startsWith('127.')
  if (protocol === 'https:' || isOwn) return
  throw new UsageError(
    `the manifest URL ${url} is not used, for others could change it on its way: it is not https`,
    'name an https URL with --manifest-url, or a directory with --manifests',
  )
}
