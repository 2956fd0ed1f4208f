// What is an event? One stored kind with two views: core/v1, which is what we store, and events.k8s.io/v1, which renames
// members and is stricter.
import type { Event, EventsEvent } from '../generated/types.ts'
import { filled } from '../defaults/absent.ts'
import { eventRules, newEventRules } from '../validation/events.ts'
import { isPathSegment } from '../validation/formats.ts'
import { age } from './age.ts'
import { defineKind, reading } from './define-kind.ts'
import type { SelectableField } from './define-kind.ts'
import { fromStoredEvent, toStoredEvent } from './event-views.ts'
import { column, nameColumn, wideColumn } from './printer.ts'
import type { Cell, Printer } from './printer.ts'

const eventColumns: Printer<Event>['columns'] = [
  column('Last Seen', 'When this was last seen.'),
  column('Type', 'Normal or Warning.'),
  column('Reason', 'One word for machines.'),
  column('Object', 'What the event is about.'),
  wideColumn('Subobject', 'The part of the object it is about.'),
  wideColumn('Source', 'Who reported it.'),
  column('Message', 'One sentence for people.'),
  wideColumn('First Seen', 'When this was first seen.'),
  wideColumn('Count', 'How often this was seen.'),
  { ...nameColumn, priority: 1 },
]

const common = {
  kind: 'Event',
  plural: 'events',
  scope: 'Namespaced',
  shortNames: ['ev'],
  description: 'A report about an object: what happened, to what, and how often.',
  strategy: { updateCreates: true },
  access: { controllers: { verbs: [...reading, 'create', 'patch'] }, nodes: { may: 'ownEvents' } },
} as const

export const eventKind = defineKind<Event>({
  ...common,
  group: '',
  message: 'core.Event',
  selectableFields: {
    ...referenceFields('involvedObject'),
    reason: {},
    reportingComponent: {},
    source: { path: 'source.component' },
    type: {},
  },
  defaults: defaultEvent,
  // The core API never checked the names of events.
  validation: { ...eventRules, name: isPathSegment, metadataErrorsOnce: true },
  table: { columns: eventColumns, cells: eventCells },
})

export const eventsEventKind = defineKind<EventsEvent>({
  ...common,
  group: 'events.k8s.io',
  message: 'events.Event',
  selectableFields: { ...referenceFields('regarding'), reason: {}, reportingController: {}, type: {} },
  validation: newEventRules,
  view: { of: 'Event', fromStored: fromStoredEvent, toStored: toStoredEvent },
  table: { columns: eventColumns, cells: (event, now) => eventCells(toStoredEvent(event), now) },
})

function referenceFields(name: string): Readonly<Record<string, SelectableField>> {
  const members = ['kind', 'namespace', 'name', 'uid', 'apiVersion', 'resourceVersion', 'fieldPath']
  return Object.fromEntries(members.map((member) => [`${name}.${member}`, {}]))
}

function defaultEvent(event: Event): Event {
  const shown = { reportingComponent: '', reportingInstance: '', source: {}, ...event }
  return filled(shown, ['eventTime', 'firstTimestamp', 'lastTimestamp'])
}

function eventCells(event: Event, now: number): readonly Cell[] {
  const { series, source, involvedObject: about = {} } = event
  const first = event.firstTimestamp ?? event.eventTime
  const last = series?.lastObservedTime ?? event.lastTimestamp ?? first
  const kind = (about.kind ?? '').toLowerCase()
  const reporter = [source?.component || event.reportingComponent, source?.host || event.reportingInstance]
  return [
    age(last, now),
    event.type ?? '',
    event.reason ?? '',
    about.name ? `${kind}/${about.name}` : kind,
    about.fieldPath ?? '',
    reporter.filter((word) => word !== undefined && word !== '').join(', '),
    (event.message ?? '').trim(),
    age(first, now),
    series?.count ?? (event.count || 1),
    event.metadata.name,
  ]
}
