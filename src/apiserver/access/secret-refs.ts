// Which secrets does an object name? References in its spec, and pairs of annotations or parameters that end in
// `secret-name` and `secret-namespace`. Pure.

export interface SecretRef {
  readonly name: string
  /** Empty when the reference does not say. */
  readonly namespace: string
}

/** Members called `…secretRef`, at any depth. */
export function secretRefsIn(value: unknown, depth = 0): readonly SecretRef[] {
  if (typeof value !== 'object' || value === null || depth > 8) return []
  return Object.entries(value).flatMap(([member, item]) => {
    if (!/secretRef$/i.test(member) || typeof item !== 'object' || item === null) return secretRefsIn(item, depth + 1)
    const { name, namespace } = item as { name?: unknown; namespace?: unknown } // a reference of some kind
    return typeof name === 'string' ? [{ name, namespace: typeof namespace === 'string' ? namespace : '' }] : []
  })
}

/** `csi.storage.k8s.io/node-stage-secret-name` with `…-namespace`, and the older `csiNodeStageSecretName` with its own. */
export function secretPairsIn(words: Readonly<Record<string, string>> | undefined): readonly SecretRef[] {
  return Object.entries(words ?? {}).flatMap(([key, name]) => {
    if (!/(secret-name|SecretName)$/.test(key) || name === '') return []
    return [{ name, namespace: words?.[`${key}space`] ?? '' }]
  })
}

/** Whether a reference of a class, which may hold templates such as `${pvc.namespace}`, can mean this secret. */
export function canMean(template: SecretRef, secret: SecretRef): boolean {
  return matches(template.name, secret.name) && matches(template.namespace, secret.namespace)
}

function matches(template: string, text: string): boolean {
  const parts = template.split(/\$\{[^}]*\}/)
  const [first = ''] = parts
  if (parts.length === 1) return text === template
  const last = parts.at(-1) ?? ''
  if (!text.startsWith(first) || !text.endsWith(last) || text.length < first.length + last.length) return false
  // In order, without overlap: the earliest place for each part leaves the most room for the next.
  let at = first.length
  for (const part of parts.slice(1, -1)) {
    const found = text.indexOf(part, at)
    if (found < 0) return false
    at = found + part.length
  }
  return at <= text.length - last.length
}
