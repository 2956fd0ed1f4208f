// How is one stored event seen through both event APIs? core/v1 Event is what we store;
// events.k8s.io/v1 renames its members. Unset members stay unset in both directions.
import type { Event } from '../generated/types.ts'
import type { KubeObject } from '../meta.ts'

type Loose = Readonly<Record<string, unknown>>

const storedToView: Readonly<Record<string, string>> = {
  involvedObject: 'regarding',
  message: 'note',
  source: 'deprecatedSource',
  firstTimestamp: 'deprecatedFirstTimestamp',
  lastTimestamp: 'deprecatedLastTimestamp',
  count: 'deprecatedCount',
  reportingComponent: 'reportingController',
}
const viewToStored: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(storedToView).map(([stored, view]) => [view, stored]),
)

export function fromStoredEvent(event: KubeObject): KubeObject {
  const { reportingController, reportingInstance, ...view } = renamed(event, storedToView) as KubeObject & Loose
  return {
    ...view,
    // The old API shows these even when they are empty, this one does not.
    ...(reportingController ? { reportingController } : {}),
    ...(reportingInstance ? { reportingInstance } : {}),
    kind: 'Event',
    apiVersion: 'events.k8s.io/v1',
  }
}

export function toStoredEvent(event: KubeObject): Event {
  // Read by the schema of the view, which requires what the stored form requires, under other names.
  const stored = renamed(event, viewToStored) as Event
  return { ...stored, kind: 'Event', apiVersion: 'v1' }
}

function renamed(event: KubeObject, names: Readonly<Record<string, string>>): KubeObject {
  const entries = Object.entries(event).map(([name, value]) => [names[name] ?? name, value])
  return Object.fromEntries(entries) as KubeObject // metadata is among the entries and keeps its name
}
