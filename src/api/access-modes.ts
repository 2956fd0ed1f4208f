// What are the access modes called, in full and in short? In the order in which sets of them are shown (MAT-3).

export const shortModes = {
  ReadWriteOnce: 'RWO',
  ReadOnlyMany: 'ROX',
  ReadWriteMany: 'RWX',
  ReadWriteOncePod: 'RWOP',
} as const

export type AccessMode = keyof typeof shortModes

export const accessModes = Object.keys(shortModes) as readonly AccessMode[]

/** `RWO,ROX`, as tables show a set of modes. */
export function accessModesText(modes: readonly string[] | undefined): string {
  return accessModes
    .filter((mode) => modes?.includes(mode) === true)
    .map((mode) => shortModes[mode])
    .join(',')
}
