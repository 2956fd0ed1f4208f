// Are lists whole? Every volume and snapshot is on some page, once, and no page is longer than asked.
import type { Check } from '../check.ts'
import { answered, must } from '../finding.ts'
import type { Lab } from '../lab.ts'
import { attach, createSnapshot, someVolume } from '../scene.ts'

const honesty = { suite: 'honesty' } as const
const words = ['one', 'two', 'three'] as const
/** A driver with this many pages of one entry each has no end, or too many volumes for a check of this kind. */
const mostPages = 2_000

type Page = { readonly ids: readonly string[]; readonly nextToken: string }

async function pagesOf(call: string, ask: (startingToken: string) => Promise<Page>): Promise<string[]> {
  const ids: string[] = []
  const asked = new Set<string>()
  for (let token = ''; asked.size < mostPages;) {
    asked.add(token)
    const page = await answered(`${call} with max_entries 1`, ask(token))
    must(page.ids.length <= 1, `${call} with max_entries 1 answered ${page.ids.length} entries`)
    ids.push(...page.ids)
    if (page.nextToken === '') return ids
    must(!asked.has(page.nextToken), `${call} answered the token ${JSON.stringify(page.nextToken)} twice`)
    token = page.nextToken
  }
  must(false, `${call} with max_entries 1 did not end after ${mostPages} pages`)
}

function mustHold(call: string, all: readonly string[], wanted: readonly string[]): void {
  for (const id of wanted) {
    const times = all.filter((each) => each === id).length
    must(times === 1, `${id} is on ${times === 0 ? 'no page' : `${times} pages`} of ${call}`)
  }
}

async function volumePage(lab: Lab, startingToken: string): Promise<Page> {
  const { entries, nextToken } = await lab.controller.listVolumes({ maxEntries: 1, startingToken })
  return { ids: entries.map(({ volume }) => volume?.volumeId ?? ''), nextToken }
}

async function snapshotPage(lab: Lab, startingToken: string): Promise<Page> {
  const { entries, nextToken } = await lab.controller.listSnapshots({ maxEntries: 1, startingToken })
  return { ids: entries.map(({ snapshot }) => snapshot?.snapshotId ?? ''), nextToken }
}

const volumes: readonly Check[] = [
  {
    ...honesty,
    id: 'honesty/list-volumes/shows',
    title: 'a new volume is listed',
    call: 'ListVolumes',
    says: 'the answer has all volumes that the plugin knows of',
    needs: { controller: ['CREATE_DELETE_VOLUME', 'LIST_VOLUMES'] },
    async run(lab) {
      const { volumeId } = await someVolume(lab)
      const { entries } = await answered('ListVolumes', lab.controller.listVolumes({}))
      must(
        entries.some(({ volume }) => volume?.volumeId === volumeId),
        `${volumeId} was made and is not listed`,
      )
    },
  },
  {
    ...honesty,
    id: 'honesty/list-volumes/pages',
    title: 'ListVolumes in pages shows every volume once',
    call: 'ListVolumes',
    says: 'at most max_entries are answered, and next_token leads to the rest',
    needs: { controller: ['CREATE_DELETE_VOLUME', 'LIST_VOLUMES'] },
    async run(lab) {
      const made: string[] = []
      for (const word of words) made.push((await someVolume(lab, word)).volumeId)
      const all = await pagesOf('ListVolumes', (token) => volumePage(lab, token))
      mustHold('ListVolumes', all, made)
    },
  },
  {
    ...honesty,
    id: 'honesty/list-volumes/published-nodes',
    title: 'ListVolumes shows where a volume is published',
    call: 'ListVolumes',
    says: 'published_node_ids has all nodes that the volume is controller-published on',
    needs: { controller: ['CREATE_DELETE_VOLUME', 'LIST_VOLUMES_PUBLISHED_NODES', 'PUBLISH_UNPUBLISH_VOLUME'] },
    async run(lab) {
      const volume = await someVolume(lab)
      const { volumeId } = volume
      const nodeId = lab.facts.nodeId ?? ''
      const nodes = async () => {
        const { entries } = await answered('ListVolumes', lab.controller.listVolumes({}))
        return entries.find((entry) => entry.volume?.volumeId === volumeId)?.status?.publishedNodeIds ?? []
      }
      await attach(lab, volume)
      must((await nodes()).includes(nodeId), `${volumeId} is published to ${nodeId}, and ListVolumes does not say so`)
      await answered(
        'ControllerUnpublishVolume',
        lab.controller.controllerUnpublishVolume({ volumeId, nodeId, secrets: { ...lab.recipe.secrets } }),
      )
      must(!(await nodes()).includes(nodeId), `${volumeId} is unpublished, and ListVolumes still shows ${nodeId}`)
    },
  },
]

const snapshotNeeds = { controller: ['CREATE_DELETE_VOLUME', 'CREATE_DELETE_SNAPSHOT', 'LIST_SNAPSHOTS'] } as const

const snapshots: readonly Check[] = [
  {
    ...honesty,
    id: 'honesty/list-snapshots/pages',
    title: 'ListSnapshots in pages shows every snapshot once',
    call: 'ListSnapshots',
    says: 'at most max_entries are answered, and next_token leads to the rest',
    needs: snapshotNeeds,
    async run(lab) {
      const { volumeId } = await someVolume(lab)
      const made: string[] = []
      for (const word of words) made.push((await createSnapshot(lab, word, volumeId)).snapshotId)
      const all = await pagesOf('ListSnapshots', (token) => snapshotPage(lab, token))
      mustHold('ListSnapshots', all, made)
    },
  },
  {
    ...honesty,
    id: 'honesty/list-snapshots/by-id',
    title: 'ListSnapshots by id answers that snapshot only, and nothing for an unknown one',
    call: 'ListSnapshots',
    says: 'snapshot_id limits the answer to that snapshot; an empty list if there is none',
    needs: snapshotNeeds,
    async run(lab) {
      const { volumeId } = await someVolume(lab)
      const { snapshotId } = await createSnapshot(lab, 'one', volumeId)
      await createSnapshot(lab, 'two', volumeId)
      const find = async (id: string) => {
        const { entries } = await answered('ListSnapshots by id', lab.controller.listSnapshots({ snapshotId: id }))
        return entries.map(({ snapshot }) => snapshot?.snapshotId ?? '')
      }
      const found = await find(snapshotId)
      must(found.join() === snapshotId, `ListSnapshots of ${snapshotId} answered ${found.join(', ') || 'nothing'}`)
      const unknown = await find(lab.named('no-such-id'))
      must(unknown.length === 0, `ListSnapshots of an unknown id answered ${unknown.join(', ')}`)
    },
  },
  {
    ...honesty,
    id: 'honesty/list-snapshots/by-source',
    title: 'ListSnapshots by volume answers the snapshots of that volume only',
    call: 'ListSnapshots',
    says: 'source_volume_id limits the answer to snapshots of that volume',
    needs: snapshotNeeds,
    async run(lab) {
      const [mine, other] = [await someVolume(lab, 'mine'), await someVolume(lab, 'other')]
      const { snapshotId } = await createSnapshot(lab, 'mine', mine.volumeId)
      await createSnapshot(lab, 'other', other.volumeId)
      const { entries } = await answered(
        'ListSnapshots by volume',
        lab.controller.listSnapshots({ sourceVolumeId: mine.volumeId }),
      )
      const found = entries.map(({ snapshot }) => snapshot?.snapshotId ?? '')
      must(found.join() === snapshotId, `ListSnapshots of ${mine.volumeId} answered ${found.join(', ') || 'nothing'}`)
    },
  },
]

export const listChecks: readonly Check[] = [...volumes, ...snapshots]
