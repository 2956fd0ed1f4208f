// `hawser volume …`: volumes in a person's words, over claims, volumes and snapshots.
import { buildRoutes } from '../../routes.ts'
import { create } from './create.ts'
import { exportVolume } from './export.ts'
import { inspect } from './inspect.ts'
import { ls } from './ls.ts'
import { resize } from './resize.ts'
import { rm } from './rm.ts'
import { restore, snapshot } from './snapshot.ts'

export const volume = buildRoutes({
  routes: { create, ls, inspect, resize, snapshot, restore, export: exportVolume, rm },
  docs: {
    brief: 'Create, list, expand, snapshot, export and delete volumes',
    fullDescription: [
      'Shortcuts for claims and their volumes.',
      '',
      'Examples:',
      '  hawser volume create data --size 1Gi',
      '  hawser volume ls',
      '  hawser volume snapshot data --as monday',
    ].join('\n'),
  },
})
