// Which server does the doctor ask? That of the directory that it looks at, unless somebody names another.

export interface KubeconfigFacts {
  /** By flag. */
  readonly named?: string
  /** The file in the data directory. */
  readonly own: string
  readonly directoryNamed: boolean
  readonly ownExists: boolean
  /** $HAWSER_KUBECONFIG is set: chosen for Hawser, unlike $KUBECONFIG. */
  readonly hasHawserVariable: boolean
}

/** Undefined: as every other command, by the environment. */
export function doctorKubeconfig(facts: KubeconfigFacts): string | undefined {
  const { named, own, directoryNamed, ownExists, hasHawserVariable } = facts
  if (named !== undefined) return named
  return directoryNamed || (ownExists && !hasHawserVariable) ? own : undefined
}
